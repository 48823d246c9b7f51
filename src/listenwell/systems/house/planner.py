"""Planning: what the next reply does, from what was recognised; shown to people, who can overrule it.

It starts from what people do, the listener's p(label of the reply | dialogue), and leans on it by how much each label
lifts the mood (`positivity`, 0 to 1):

    p(l) ∝ p(l | dialogue) · exp(positivity · strength · lift(l))

How much a label lifts depends on where the dialogue stands:

What is felt is read from the last turn, and from the dialogue where that turn leaves it open:

- *share*: the speaker feels well. To mirror that is right, as MIME does: the positive emotions lift most.
- *acknowledge*: the speaker feels bad, and no reply has acknowledged it yet. To acknowledge, to sympathize, to console
  or to ask lifts; to encourage, to suggest and to be cheerful comes too early, and is leaned away from: however strong
  the lean, these never become likelier than they are among people.
- *lift*: the speaker feels bad, and it was acknowledged. To encourage, to wish well and to console lifts.

Which emotions are positive is MIME's division.
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
"""What is planned by, and what a plan may be. How much each label lifts is written down here by its name, so that a
plan for other labels would need other rules."""

ACKNOWLEDGES: frozenset[str] = frozenset({"acknowledging", "sympathizing", "consoling"}) | NEGATIVE
"""Labels of a listener's turn that takes up a negative feeling: these intents, or a feeling like it."""

PREMATURE: frozenset[str] = frozenset({"encouraging", "suggesting"}) | POSITIVE - {"caring", "surprised"}
"""What comes too early while a negative feeling is not acknowledged. One may be surprised by bad news, and care."""

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
"""How much each label lifts the mood of somebody who feels bad and was heard, from -1 to 1."""

LIFTS: dict[Phase, dict[str, float]] = {
    "lift": LIFT,
    # There is nothing to console: those who feel well would be puzzled.
    "share": {**LIFT, **dict.fromkeys(POSITIVE, 1.0), "consoling": -0.6, "sympathizing": -0.6},
    # What is premature is lowest of all, so that no lean makes it likelier.
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
    """How probable each label is after the lean, likeliest first; certain where one was requested."""
    positivity: float
    """How far it leaned."""
    reason: str
    """One sentence for people."""
    expected: dict[str, float]
    """What people would do: the chances before the lean, likeliest first."""
    phase: Phase
    """Where the dialogue stands, whatever was requested."""
    requested: bool = False
    """The label was requested by the user."""


class Planner:
    """From predictions to a plan."""

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
        """`labels` are the labels of the turns of the context, each one of the 41, by a classifier of utterances.

        What is felt `now`, where that is clear, goes before the dialogue's emotion."""
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
    """Refuses a part that hears or writes by other labels than the rules here are for."""
    for known, needed in ((emotions, FEELINGS), (labels, PLANS)):
        if known.labels != needed.labels:
            raise ValueError(
                f"{whose} distinguishes {known.name}, but the house system plans by {needed.name}; "
                "use it by itself, or train it with that label set"
            )


def find_phase(feels_bad: bool, context: Sequence[Turn], labels: Sequence[str]) -> Phase:
    """Where a dialogue stands, by the speaker's feeling and the labels of the turns so far."""
    if not feels_bad:
        return "share"
    return "lift" if is_acknowledged(context, labels) else "acknowledge"


def feels_bad_now(prediction: ListenerPrediction, now: Now | None) -> bool:
    """By the last turn, where its mood is clear; else by the dialogue."""
    if now is not None and (now.is_bad or now.is_good):
        return now.is_bad
    return is_negative(prediction.emotions)


def is_negative(emotions: Mapping[str, float]) -> bool:
    """Whether more than half of the probability is on negative emotions, however it divides among them."""
    return sum(chance for name, chance in emotions.items() if polarity(name) == "negative") > 0.5


def is_acknowledged(context: Sequence[Turn], labels: Sequence[str]) -> bool:
    """Whether a turn of the listener took up the negative feeling.

    One that came while there was only good news could not: "that is great" is no answer to what is said after it.
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
    """As shares of one, the largest first; of equals the one with the lower id."""
    total = sum(weights.values())
    return {
        name: weights[name] / total for name in sorted(weights, key=lambda name: (-weights[name], LABELS.index(name)))
    }
