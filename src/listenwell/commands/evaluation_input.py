"""The input of `listenwell evaluate`: options, system and corpus, and where the result is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from listenwell.checkpoint import Checkpoint
    from listenwell.data.dialogue import Dialogue
    from listenwell.systems.house.options import HouseDecoding


USUAL_DATA = {"en": "empathetic-dialogues", "zh": "lccc"}
"""The default corpus for evaluating a system that replies, by its language."""


@dataclass(frozen=True, slots=True)
class Options:
    """The command-line options; see `evaluate` for what each means."""

    system: str
    data: str | None = None
    split: str = "test"
    path: Path | None = None
    part: str | None = None
    out: Path | None = None
    decoding: HouseDecoding | None = None
    limit: int = 0
    items: int = 0
    judge: str | None = None
    labeller: str | None = None
    empathy: str | None = None
    resamples: int = 1000
    json: bool = False
    positivity: float | None = None
    base_url: str | None = None
    precision: Literal["", "bf16"] = ""
    workers: int = 1
    metrics: str | None = None
    vectors: Path | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """What is evaluated: a trained checkpoint, or a model behind a server."""

    checkpoint: Checkpoint | None
    remote: Any = None

    @property
    def talks(self) -> bool:
        return self.checkpoint is None or self.checkpoint.model.talks

    @property
    def meta(self) -> dict[str, Any]:
        return {} if self.checkpoint is None else self.checkpoint.meta

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages it speaks, English first if it is one of them."""
        spoken = ("en",) if self.checkpoint is None else self.checkpoint.languages
        return tuple(sorted(spoken, key=lambda name: name != "en"))

    def trained_on(self) -> tuple[str | None, str | None]:
        """The source it was trained on, and the part of it."""
        data = self.meta.get("data", {})
        return data.get("source"), data.get("part")


@dataclass(frozen=True, slots=True)
class Corpus:
    """The dialogues to evaluate on, and the facts about them that are stored with the scores."""

    data: str
    part: str | None
    dialogues: Iterable[Dialogue]
    about: dict[str, Any]


def load_subject(options: Options) -> Subject:
    from listenwell import checkpoint
    from listenwell.loading import load
    from listenwell.weights import find, is_remote

    if is_remote(options.system) or options.base_url:
        if options.workers > 1:
            raise ValueError(
                f"{options.system} is behind a server, which gets several requests at once anyway; leave --workers out"
            )
        return Subject(None, load(options.system, care=False, base_url=options.base_url))
    return Subject(checkpoint.load(find(options.system)))


def read_corpus(options: Options, subject: Subject) -> Corpus:
    """Read the given source, or else the default one: by language, or for a classifier, the data it was trained on."""
    from listenwell.data import sources

    data, part = options.data, options.part
    trained_on, trained_part = subject.trained_on()
    if data is None and not subject.talks:
        data, part = trained_on, part or trained_part
    data = data or next((USUAL_DATA[name] for name in subject.languages if name in USUAL_DATA), USUAL_DATA["en"])
    split = None if options.split == "all" else options.split
    selection: dict[str, Any] = {} if part is None else {"part": part}
    about: dict[str, Any] = {
        "data": data,
        "split": options.split,
        **selection,
        "data hash": sources.data_hash(sources.data_files(data, options.path, split, **selection)),
        **{
            key: subject.meta[key]
            for key in ("commit", "seed", "examples", "seconds", "parameters")
            if key in subject.meta
        },
    }
    if subject.checkpoint is not None:
        selection["labels"] = subject.checkpoint.model.label_set
    dialogues = sources.read(data, options.path, split, **selection)
    return Corpus(data, part, as_trained(dialogues, subject.meta), about)


def as_trained(dialogues: Iterable[Dialogue], meta: dict[str, Any]) -> Iterable[Dialogue]:
    """Preprocess dialogues as in a classifier's training: strip emoticons if its recipe does."""
    from listenwell.data.relabel import without_emoticons

    is_stripped = meta.get("recipe", {}).get("data", {}).get("emoticons") is False
    return without_emoticons(dialogues) if is_stripped else dialogues


def output_folder(options: Options, usual: str) -> Path | None:
    """The folder for the evaluation: the one given, or else one inside the run's folder, if the system is a run."""
    from listenwell.outputs import EVALUATE, check_folder

    if options.out is not None or not Path(options.system).is_dir():
        return options.out
    out = Path(options.system) / "evaluation" / usual
    check_folder(out, EVALUATE)
    return out
