"""Planning: decides what the next reply does, from what was recognised. Users see the plan and can overrule it.

It starts from what people do, the listener's p(label of the reply | dialogue), and shifts that by how much each label
lifts the mood (`positivity`, 0 to 1):

    p(l) ∝ p(l | dialogue) · exp(positivity · strength · lift(l))

How much a label lifts depends on the phase of the dialogue. The feeling is read from the last turn, or from the whole
dialogue if that turn is unclear:

- *share*: the speaker feels well. Mirroring that is right, as in MIME: the positive emotions lift most.
- *acknowledge*: the speaker feels bad, and no reply has acknowledged it yet. Acknowledging, sympathizing, consoling and
  asking lift; encouraging, suggesting and being cheerful come too early and are leaned away from: however strong the
  lean, these never become likelier than they are among people.
- *lift*: the speaker feels bad, and it was acknowledged. Encouraging, wishing well and consoling lift.

The division into positive and negative emotions is MIME's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from listenwell.classifiers.listener import ListenerPrediction, Now
from listenwell.contract import Controls
from listenwell.data.dialogue import Turn
from listenwell.labels.sets import EMOTION, EMOTION_INTENT, LabelSet
from listenwell.labels.taxonomy import EMOTIONS, LABELS, NEGATIVE, NEUTRAL, POSITIVE, label_id, polarity
from listenwell.systems.house.options import Lean, check_positivity

Phase = Literal["share", "acknowledge", "lift"]

FEELINGS, PLANS = EMOTION, EMOTION_INTENT
"""The labels that planning is based on, and those it can choose. The lift of each label is listed here by name, so
other label sets would need other rules."""

ACKNOWLEDGES: frozenset[str] = frozenset({"acknowledging", "sympathizing", "consoling"}) | NEGATIVE
"""Labels of a listener turn that acknowledges a negative feeling: these intents, or a negative emotion."""

PREMATURE: frozenset[str] = frozenset({"encouraging", "suggesting"}) | POSITIVE - {"caring", "surprised"}
"""Labels that come too early while a negative feeling is unacknowledged. Surprise at bad news, and caring, do not."""

LIFT: dict[str, float] = {
    **{name: 0.6 if name in POSITIVE else -0.6 for name in EMOTIONS},
    "encouraging": 1.0,
    "wishing": 0.8,
    "consoling": 0.6,
    "suggesting": 0.4,
    "sympathizing": 0.3,
    "acknowledging": 0.1,
    "agreeing": 0.1,
    "questioning": 0.0,
    NEUTRAL: 0.0,
}
"""How much each label lifts the mood of somebody who feels bad and was acknowledged, from -1 to 1."""

LIFTS: dict[Phase, dict[str, float]] = {
    "lift": LIFT,
    # There is nothing to console: it would puzzle a speaker who feels well.
    "share": {**LIFT, **dict.fromkeys(POSITIVE, 1.0), "consoling": -0.6, "sympathizing": -0.6},
    # Premature labels are lowest of all, so that no lean makes them likelier.
    "acknowledge": {
        **dict.fromkeys(LABELS, 0.0),
        **dict.fromkeys(PREMATURE, -1.0),
        "acknowledging": 1.0,
        "sympathizing": 1.0,
        "consoling": 0.8,
        "questioning": 0.5,
    },
}
"""How much each label lifts in each phase."""

REASONS: dict[Phase, str] = {
    "share": "positive feeling: share it",
    "acknowledge": "negative feeling not yet acknowledged: acknowledge before encouraging",
    "lift": "negative feeling acknowledged: now lift the mood",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What the next reply does, and why."""

    label: str
    """One of the 41."""
    chances: dict[str, float]
    """The probability of each label after the lean, likeliest first; 1 for a requested label."""
    positivity: float
    """The positivity applied."""
    reason: str
    """One human-readable sentence."""
    expected: dict[str, float]
    """What people would do: the probabilities before the lean, likeliest first."""
    phase: Phase
    """The phase of the dialogue, whatever was requested."""
    requested: bool = False
    """Whether the user requested the label."""


class Planner:
    """Turns predictions into a plan."""

    def __init__(self, leaning: Lean | None = None) -> None:
        self.leaning = Lean() if leaning is None else leaning

    def plan(
        self,
        prediction: ListenerPrediction,
        context: Sequence[Turn],
        labels: Sequence[str],
        controls: Controls | None = None,
        now: Now | None = None,
    ) -> Plan:
        """`labels` are the labels of the context turns, each one of the 41, from an utterance classifier.

        A clear feeling in the last turn (`now`) takes precedence over the dialogue's emotion."""
        controls = controls or Controls()
        positivity = self.leaning.positivity if controls.positivity is None else check_positivity(controls.positivity)
        feels_bad = feels_bad_now(prediction, now) if controls.emotion is None else is_negative({controls.emotion: 1.0})
        phase = find_phase(feels_bad, context, labels)
        if controls.label is not None:
            label_id(controls.label)
            chances = {controls.label: 1.0} | {name: 0.0 for name in LABELS if name != controls.label}
            reason = f"requested: {controls.label}"
        else:
            chances = lean(prediction.labels, LIFTS[phase], positivity * self.leaning.strength)
            reason = REASONS[phase] if positivity > 0 else "no lean: what people would likeliest do"
            reason += "" if controls.emotion is None else f" (given that the speaker feels {controls.emotion})"
        requested = controls.label is not None
        return Plan(next(iter(chances)), chances, positivity, reason, dict(prediction.labels), phase, requested)


def check_plannable(whose: str, emotions: LabelSet, labels: LabelSet) -> None:
    """Raises ValueError if a part predicts or writes by labels other than those the rules here are for."""
    for known, needed in ((emotions, FEELINGS), (labels, PLANS)):
        if known.labels != needed.labels:
            raise ValueError(
                f"{whose} distinguishes {known.name}, but the house system plans by {needed.name}; "
                "use it by itself, or train it with that label set"
            )


def find_phase(feels_bad: bool, context: Sequence[Turn], labels: Sequence[str]) -> Phase:
    """Returns the phase of a dialogue from the speaker's feeling and the labels of the turns so far."""
    if not feels_bad:
        return "share"
    return "lift" if is_acknowledged(context, labels) else "acknowledge"


def feels_bad_now(prediction: ListenerPrediction, now: Now | None) -> bool:
    """Judges by the last turn if its mood is clear, else by the dialogue."""
    if now is not None and (now.is_bad or now.is_good):
        return now.is_bad
    return is_negative(prediction.emotions)


def is_negative(emotions: Mapping[str, float]) -> bool:
    """Whether negative emotions have more than half of the probability in total."""
    return sum(chance for name, chance in emotions.items() if polarity(name) == "negative") > 0.5


def is_acknowledged(context: Sequence[Turn], labels: Sequence[str]) -> bool:
    """Whether a listener turn acknowledged the negative feeling.

    Turns from before the bad news do not count: "that is great" is no answer to what is said after it.
    """
    bad_news = False
    for turn, label in zip(context, labels, strict=True):
        label_id(label)
        if turn.speaker == "speaker":
            bad_news = bad_news or label not in POSITIVE
        elif bad_news and label in ACKNOWLEDGES:
            return True
    return False


def lean(chances: Mapping[str, float], lift: Mapping[str, float], by: float) -> dict[str, float]:
    """p(l) ∝ p(l) · exp(by · lift(l)), likeliest first."""
    return _ranked({name: chance * math.exp(by * lift[name]) for name, chance in chances.items()})


def _ranked(weights: Mapping[str, float]) -> dict[str, float]:
    """Normalizes to a sum of 1, largest first; ties are broken by the lower id."""
    total = sum(weights.values())
    return {
        name: weights[name] / total for name in sorted(weights, key=lambda name: (-weights[name], LABELS.index(name)))
    }
