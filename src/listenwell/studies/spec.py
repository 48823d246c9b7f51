"""The specification of a study: one record, given by flags or by a recipe file in recipes/studies/."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from listenwell.configuration import OptionError, mistakes
from listenwell.labels.taxonomy import unknown_name
from listenwell.studies.kinds import LETTERS, Kind, KindName, kind_named

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

HUMAN = "human"
"""The system whose replies are the human replies of the corpus."""


@dataclass(frozen=True)
class Bonus:
    """Checks in which the human reply is among the candidates (MEED2 § 5.4.1)."""

    per_task: int = 0
    """Items per task that have a check."""
    source: str = ""
    """Use only items of this source, if there are several; all sources if empty."""
    good_enough: tuple[str, str] = ("good", "okay")
    """The areas in which the human reply earns a bonus point."""


@dataclass(frozen=True)
class Filters:
    """Filters for untrustworthy tasks and raters. A report always shows the numbers with and without them."""

    min_minutes: float = 0.0
    """A task done faster is suspicious. With bonus checks it is discarded if it also has too few bonus points."""
    min_bonus: int = 0
    """Bonus points that clear a fast task."""
    needs_bonus: bool = False
    """Whether every task needs `min_bonus` points, fast or not, as in MEED2's last step before its scores."""
    sameness: float = 0.95
    """A rater who gives the same answer in more than this share of at least `sameness_from` judgements is left out."""
    sameness_from: int = 20


@dataclass(frozen=True)
class Pay:
    """What raters are paid. People who stop in the middle of a task are paid for the part they did."""

    per_task: float = 0.0
    bonus: float = 0.0
    """Extra pay for a task in which every bonus check was passed."""
    currency: str = "USD"


@dataclass(frozen=True)
class Power:
    """The assumptions of the power analysis."""

    power: float = 0.8
    alpha: float = 0.05
    difference: float = 0.25
    """The difference between two systems' means to detect: points on the scale, or a share (ab: wins minus losses)."""
    deviation: float = 1.0
    """Standard deviation of the paired differences per item, averaged over raters; not used for ab."""
    ties: float = 0.33
    """Expected share of items without a winner; ab only. MIME's Table 3 has a third."""


@dataclass(frozen=True)
class StudySpec:
    """The specification from which a study is created."""

    kind: KindName
    systems: list[str]
    data: str = "empathetic-dialogues"
    """A source by name, several with + between, or a .jsonl file."""
    split: str = "test"
    path: str | None = None
    items: int = 100
    title: str = ""
    """The title that raters see; it must not name a system."""
    about: str = ""
    """A description for the researcher."""
    language: str = ""
    """The language of the pages and questions, such as en or zh; the language of the data if not given."""
    scales: str = ""
    """The questions of a likert study: mime, dual-emp, bert-joint, strategy-memory or epitome."""
    raters: int = 3
    """People per item."""
    task_size: int = 10
    """Items per task, which one rater does in a row."""
    max_tasks: int = 0
    """Maximum number of tasks per rater; 0 for no limit."""
    pairs: Literal["first", "all"] = "first"
    """ab: the first system against each of the others, or every pair."""
    both_bad: bool = True
    """ab: whether raters may also say that both replies are bad, in addition to a tie."""
    fourth_rater: bool = True
    """ab: one more rater for the items on which no two agree."""
    together: bool = True
    """Whether all systems' replies to an item are shown together, or one at a time, as in Dual-Emp."""
    show_reference: bool = False
    picks_emotion: bool = False
    last_turn_only: bool = False
    """Whether raters and systems see only the last turn, as in strategy memory, which is about single turns."""
    practice: bool = False
    bonus: Bonus = field(default_factory=Bonus)
    filters: Filters = field(default_factory=Filters)
    pay: Pay = field(default_factory=Pay)
    power: Power = field(default_factory=Power)
    lease_minutes: float = 60.0
    """Minutes of inactivity after which an abandoned task goes to another rater."""
    seed: int = 12345
    published: list[str] = field(default_factory=list)
    """Tables of published numbers to show for comparison, such as mime/2."""
    published_names: dict[str, str] = field(default_factory=dict)
    """The names of our systems in those tables."""
    welcome: list[str] = field(default_factory=list)
    instructions: list[str] = field(default_factory=list)
    datasheet: dict[str, str] = field(default_factory=dict)
    """Answers to datasheet (HEDS) questions that only the researcher knows, by question number."""

    def __post_init__(self) -> None:
        shown = len(self.systems) + (1 if self.bonus.per_task else 0)
        problems = [
            (not self.systems, "a study needs at least one system: --systems house,mime"),
            (len(set(self.systems)) < len(self.systems), f"a system is named twice in {', '.join(self.systems)}"),
            (self.kind == "ab" and len(self.systems) < 2, "an ab study compares two systems or more: --systems a,b"),
            (shown > len(LETTERS), f"at most {len(LETTERS)} replies can be shown together, found {shown}"),
            (self.items < 1, f"items is {self.items}, expected 1 or more"),
            (self.raters < 1, f"raters is {self.raters}, expected 1 or more"),
            (self.task_size < 1, f"task_size is {self.task_size}, expected 1 or more"),
            (self.bonus.per_task > self.task_size, "bonus.per_task is more than task_size"),
            (bool(self.bonus.per_task) and self.kind != "drag", "bonus checks belong to drag studies"),
            (bool(self.bonus.per_task) and HUMAN in self.systems, "with bonus checks, human is no system of its own"),
            (self.lease_minutes <= 0, f"lease_minutes is {self.lease_minutes}, expected more than 0"),
        ]
        for wrong, message in problems:
            if wrong:
                raise OptionError(message)
        self.kind_of_study()

    def kind_of_study(self) -> Kind:
        return kind_named(self.kind, self.scales, self.both_bad, self.picks_emotion)

    @property
    def spoken(self) -> Literal["en", "zh"]:
        """The language of the pages, out of those available."""
        return "zh" if self.language.startswith("zh") else "en"

    @property
    def scale_set(self) -> str:
        """The name of the set of scales; empty for a kind without scales."""
        return {"likert": self.scales or "mime", "emotion": "emotion"}.get(self.kind, "")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> StudySpec:
        nested = {"bonus": Bonus, "filters": Filters, "pay": Pay, "power": Power}
        fields = {key: nested[key](**value) if key in nested else value for key, value in record.items()}
        if "bonus" in fields:
            fields["bonus"] = replace(fields["bonus"], good_enough=tuple(fields["bonus"].good_enough))
        return cls(**fields)


def check_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise OptionError(
            f"a study's name is letters, digits, dots, hyphens and underscores, at most 64 of them, found {name!r}"
        )
    return name


def recipe_names() -> dict[str, Path]:
    """The shipped study recipes, by name."""
    folder = resources.files("listenwell").joinpath("recipes", "studies")
    return {Path(str(file)).stem: Path(str(file)) for file in folder.iterdir() if file.name.endswith(".yaml")}


def read_recipe(name_or_path: str, **changes: Any) -> StudySpec:
    """Read a study recipe from a file, or a shipped one by name, with `changes` to single fields."""
    import yaml

    path = Path(name_or_path).expanduser()
    if not path.is_file():
        ready = recipe_names()
        if name_or_path not in ready:
            raise OptionError(
                f"{unknown_name('study recipe', name_or_path, sorted(ready))}, or the path of a .yaml file"
            )
        path = ready[name_or_path]
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as problem:
        raise OptionError(f"{path}: not YAML: {' '.join(str(problem).split())}") from problem
    if not isinstance(content, dict):
        raise OptionError(f"{path}: a study recipe has keys with values, such as kind: likert")
    record = {**content, **changes}
    for mistake in mistakes(StudySpec, record):
        raise OptionError(f"{path}: {mistake}")
    try:
        return StudySpec.from_json(record)
    except OptionError as problem:
        raise OptionError(f"{path}: {problem}") from problem
