"""Label sets by name: the labels in the order of their ids, and the polarity of each label.

A set is registered once under its name. The sets of the corpora are defined here; a program adds its own with
`register`, a recipe with its key `label_sets`. The set of a recipe is stored in the config.json of its checkpoints:

    label_sets: {mine: [calm, tense]}                                       # in a recipe
    label_sets: {mine: {labels: [calm, tense], polarity: {tense: negative}}}

There are four polarities: "ambiguous" is a feeling that may be either (surprise), "neutral" is no feeling at all. That
is finer than MIME's two groups of the 32 emotions (`taxonomy.polarity`), which count "surprised" as positive. A label
without a well-defined polarity has none: the eight intents are what a reply does, not what is felt.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, get_args

from listenwell.labels.empathy import PAIR_LABELS
from listenwell.labels.taxonomy import EMOTIONS, LABELS, NEUTRAL, unknown_name
from listenwell.labels.taxonomy import polarity as mime_polarity

Polarity = Literal["positive", "negative", "ambiguous", "neutral"]


@dataclass(frozen=True)
class LabelSet:
    """Named labels in the order of their ids."""

    name: str
    labels: tuple[str, ...]
    polarity: Mapping[str, Polarity] = field(default_factory=dict)
    """The polarity of the labels that have one."""

    def __post_init__(self) -> None:
        if len(self.labels) < 2:
            raise ValueError(f"label set {self.name}: {len(self.labels)} labels, expected at least 2")
        if twice := [label for label in self.ids if self.labels.count(label) > 1]:
            raise ValueError(f"label set {self.name}: the label {twice[0]!r} occurs more than once")
        for label, polarity in self.polarity.items():
            if label not in self.ids:
                raise ValueError(f"label set {self.name}, polarity: {unknown_name('label', label, self.labels)}")
            if polarity not in get_args(Polarity):
                raise ValueError(
                    f"label set {self.name}: {unknown_name(f'polarity of {label}', str(polarity), get_args(Polarity))}"
                )

    @cached_property
    def ids(self) -> dict[str, int]:
        return {label: index for index, label in enumerate(self.labels)}

    def id_of(self, label: str) -> int:
        """Returns the id of a label. An unknown label raises ValueError, which suggests a similar one."""
        if label not in self.ids:
            raise ValueError(unknown_name("label", label, self.labels))
        return self.ids[label]

    @cached_property
    def neutral(self) -> str | None:
        """The label for no feeling, if there is one: the label named "neutral", or the only one of that polarity."""
        if NEUTRAL in self.ids:
            return NEUTRAL
        neutral = [label for label, polarity in self.polarity.items() if polarity == "neutral"]
        return neutral[0] if len(neutral) == 1 else None

    def __len__(self) -> int:
        return len(self.labels)

    def __contains__(self, label: object) -> bool:
        return label in self.ids

    def __iter__(self) -> Iterator[str]:
        return iter(self.labels)

    def __hash__(self) -> int:
        return hash((self.name, self.labels))

    def to_json(self) -> Any:
        """Returns the set as in a recipe: a list, or a mapping with the polarities."""
        return {"labels": list(self.labels), "polarity": dict(self.polarity)} if self.polarity else list(self.labels)

    @classmethod
    def from_json(cls, name: str, record: Any) -> LabelSet:
        labels, polarity = record, {}
        if isinstance(record, Mapping) and set(record) <= {"labels", "polarity"}:
            labels, polarity = record.get("labels"), record.get("polarity", {})
        if not isinstance(labels, list | tuple) or not all(isinstance(label, str) for label in labels):
            raise ValueError(
                f"label set {name}: expected a list of labels, or labels: and polarity:, found {record!r}; "
                "a label that YAML reads as a number or as true needs quotes"
            )
        if not isinstance(polarity, Mapping):
            raise ValueError(f"label set {name}: polarity is {polarity!r}, expected {{label: polarity}}")
        return cls(name, tuple(labels), dict(polarity))


_REGISTERED: dict[str, LabelSet] = {}
_OWN: ContextVar[Mapping[str, LabelSet]] = ContextVar(
    "label sets of a recipe or checkpoint", default=MappingProxyType({})
)


def register(labels: LabelSet) -> LabelSet:
    """Registers a set under its name. A different set under a name that is taken raises ValueError."""
    known = _REGISTERED.setdefault(labels.name, labels)
    if known.labels != labels.labels:
        raise ValueError(
            f"there is another label set called {labels.name}, with {len(known)} labels; name it otherwise"
        )
    return known


def label_set(name: str | LabelSet) -> LabelSet:
    """Returns the set with this name, from the recipe or checkpoint being read, else from the registered ones."""
    if isinstance(name, LabelSet):
        return name
    known = {**_REGISTERED, **_OWN.get()}
    if name not in known:
        raise ValueError(
            unknown_name("label set", name, known) + "; a set of your own is defined by label_sets: in the recipe"
        )
    return known[name]


def set_with(labels: Collection[str]) -> LabelSet | None:
    """Returns the first known set that has all of these labels, if any."""
    known = (*_OWN.get().values(), *_REGISTERED.values())
    return next((one for one in known if all(label in one for label in labels)), None)


@contextmanager
def own_label_sets(sets: Mapping[str, LabelSet]) -> Iterator[None]:
    """Within this context, these sets are also known by name. Two checkpoints may have different sets of one name."""
    token = _OWN.set({**_OWN.get(), **sets})
    try:
        yield
    finally:
        _OWN.reset(token)


def read_label_sets(records: Mapping[str, Any]) -> dict[str, LabelSet]:
    """Returns the sets that a recipe or checkpoint defines."""
    return {name: LabelSet.from_json(name, record) for name, record in records.items()}


def check_new(sets: Mapping[str, LabelSet]) -> None:
    """Raises ValueError if a set reuses a registered name for other labels: files that refer to it would be misread."""
    for labels in sets.values():
        known = _REGISTERED.get(labels.name, labels)
        if known.labels != labels.labels:
            raise ValueError(f"label_sets: {labels.name} is a set of {len(known)} labels already; name it otherwise")


def is_built_in(labels: LabelSet) -> bool:
    """Whether the set is part of listenwell, so that checkpoints need not store it."""
    return labels.name in BUILT_IN and _REGISTERED[labels.name].labels == labels.labels


def _set(name: str, labels: str | tuple[str, ...], **groups: str) -> LabelSet:
    """Registers a set. Labels and groups are separated by ", "."""
    names = tuple(labels.split(", ")) if isinstance(labels, str) else labels
    polarities: tuple[Polarity, ...] = get_args(Polarity)
    grouped = {label: group for group in polarities for label in groups.get(group, "").split(", ") if label}
    return register(LabelSet(name, names, {label: grouped[label] for label in names if label in grouped}))


EMOTION = register(LabelSet("emotion", EMOTIONS, {name: mime_polarity(name) for name in EMOTIONS}))
"""The 32 emotions of EmpatheticDialogues, in MIME's groups."""

EMOTION_INTENT = register(LabelSet("emotion-intent", LABELS, {**EMOTION.polarity, NEUTRAL: "neutral"}))
"""The 41 labels of MEED2 and EDOS: the 32 emotions, eight intents, which have no polarity, and neutral."""

POLARITY = _set("polarity", "negative, neutral, positive", negative="negative", neutral="neutral", positive="positive")
"""The classes of a polarity classifier; `data.relabel` maps the labels of a corpus onto it."""

DAILYDIALOG = _set(
    "dailydialog",
    "no emotion, anger, disgust, fear, happiness, sadness, surprise",
    positive="happiness",
    negative="anger, disgust, fear, sadness",
    ambiguous="surprise",
    neutral="no emotion",
)
"""DailyDialog and XDailyDialog: Ekman's six emotions, and none, as numbered in the files."""

EMOTIONLINES = _set(
    "emotionlines",
    "neutral, joy, sadness, fear, anger, surprise, disgust, non-neutral",
    positive="joy",
    negative="anger, disgust, fear, sadness",
    ambiguous="surprise, non-neutral",
    neutral="neutral",
)
"""EmotionLines. "non-neutral": the five annotators found an emotion, but did not agree on one."""

GOEMOTIONS = _set(
    "goemotions",
    "admiration, amusement, anger, annoyance, approval, caring, confusion, curiosity, desire, disappointment, "
    "disapproval, disgust, embarrassment, excitement, fear, gratitude, grief, joy, love, nervousness, optimism, pride, "
    "realization, relief, remorse, sadness, surprise, neutral",
    positive=(
        "admiration, amusement, approval, caring, desire, excitement, gratitude, joy, love, optimism, pride, relief"
    ),
    negative=(
        "anger, annoyance, disappointment, disapproval, disgust, embarrassment, fear, grief, nervousness, remorse, "
        "sadness"
    ),
    ambiguous="confusion, curiosity, realization, surprise",
    neutral="neutral",
)
"""GoEmotions in the order of its emotions.txt, grouped as its authors do (their sentiment_mapping.json)."""

SMP = _set(
    "smp",
    "happy, angry, sad, fear, surprise, neutral",
    positive="happy",
    negative="angry, fear, sad",
    ambiguous="surprise",
    neutral="neutral",
)
"""The six labels of the SMP2020-EWECT evaluation."""

NLPCC = _set(
    "nlpcc",
    "anger, disgust, fear, happiness, like, sadness, surprise, none",
    positive="happiness, like",
    negative="anger, disgust, fear, sadness",
    ambiguous="surprise",
    neutral="none",
)
"""The seven emotions of NLPCC 2014, and none."""

EMPATHY = register(LabelSet("empathy", PAIR_LABELS))
"""EPITOME's levels of a reply's three kinds of empathy, combined."""

ORIGINS = register(LabelSet("origin", ("here", "elsewhere", "written")))
"""Where a reply comes from: a person said it in this dialogue, a person said it in another one, a system wrote it."""

RATINGS = register(LabelSet("rating", ("1", "2", "3", "4", "5")))
"""How good a reply is: from wrong or hurtful to what a warm, attentive person would say."""

CRISIS = register(
    LabelSet(
        "crisis",
        (
            "none",
            *(
                f"{kind}, {directness}"
                for kind in ("self-harm", "danger", "harm-to-others")
                for directness in ("direct", "indirect")
            ),
        ),
    )
)
"""What a message is a sign of, and whether it is stated. "danger" is danger from others."""

BUILT_IN = frozenset(_REGISTERED)

SET_OF_SOURCE: dict[str, LabelSet] = {
    "dailydialog": DAILYDIALOG,
    "xdailydialog": DAILYDIALOG,
    "edos": EMOTION_INTENT,
    "empathetic-intents": EMOTION_INTENT,
    "emotionlines": EMOTIONLINES,
    "goemotions": GOEMOTIONS,
    "smp2020-ewect": SMP,
    "nlpcc2014": NLPCC,
    "nlpcc2013": NLPCC,
    "nlpcc-sentences": NLPCC,
    "weibo-senti": POLARITY,
}
"""The label set of a source's turns, by the name of the source."""
