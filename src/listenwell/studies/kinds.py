"""What raters are asked: the papers' kinds of study, with their questions, scales and anchors.

A kind defines the format of an answer and validates answers. Raters see replies under letters. Which system a letter
stands for is decided anew for every display and never leaves the server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from listenwell.labels.taxonomy import EMOTIONS, unknown_name

KindName = Literal["likert", "ab", "drag", "emotion"]
KINDS: tuple[KindName, ...] = ("likert", "ab", "drag", "emotion")

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

LEFT, RIGHT, TIE, BOTH_BAD = "left", "right", "tie", "both-bad"
AREAS: tuple[str, ...] = ("good", "okay", "bad")


@dataclass(frozen=True, slots=True)
class Scale:
    """One question with a number as its answer."""

    key: str
    name: str
    question: str
    anchors: Mapping[str, str] = field(default_factory=dict)
    """What the numbers stand for; numbers in between may have none."""
    min: int = 1
    max: int = 5

    def to_json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "name": self.name,
            "question": self.question,
            "anchors": dict(self.anchors),
            "min": self.min,
            "max": self.max,
        }

    def check(self, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not self.min <= value <= self.max:
            raise ValueError(f"{self.key} is a whole number from {self.min} to {self.max}, found {value!r}")


MIME_SCALES = (
    Scale("empathy", "Empathy", "How much emotional understanding does the response show?", {"1": "none", "5": "best"}),
    Scale(
        "relevance",
        "Relevance",
        "How much topical relevance does the response have to the context?",
        {"1": "none", "5": "best"},
    ),
    Scale("fluency", "Fluency", "How much linguistic clarity does the response have?", {"1": "none", "5": "best"}),
)
"""MIME § 4.3, with the questions verbatim."""

DUAL_EMP_SCALES = (
    Scale(
        "empathy",
        "Empathy",
        "Which degree of emotional understanding of the context does the response show?",
        {"1": "worst", "5": "best performance"},
    ),
    Scale(
        "relevance",
        "Relevance",
        "Is the response relevant on topic with the context?",
        {"1": "worst", "5": "best performance"},
    ),
    Scale(
        "fluency",
        "Fluency",
        "How grammatically correct and readable is the response?",
        {"1": "worst", "5": "best performance"},
    ),
)
"""Dual-Emp § 4.4."""

_UNSURE = {"1": "unacceptable", "2": "unsure", "3": "moderate", "4": "unsure", "5": "excellent"}
BERT_JOINT_SCALES = (
    Scale("relevance", "Relevance", "Does the response fit what was said?", _UNSURE),
    Scale("fluency", "Fluency", "Is the response fluent?", _UNSURE),
    Scale("consistency", "Consistency", "Is the response consistent with the conversational history?", _UNSURE),
)
"""BERT (JT)'s anchors: 1, 3 and 5 are unacceptable, moderate and excellent; 2 and 4 are for unsure raters. The paper's
Table 2 has fluency and consistency."""

_DILEMMA = "Points 2 and 4 are for decision dilemmas."
STRATEGY_MEMORY_SCALES = (
    Scale(
        "qual",
        "Qual",
        "How good is the response?",
        {
            "1": "An irrelevant response should be scored as 1. An incomplete response that the annotators cannot "
            "get the speaker’s meaning should also be assigned as 1.",
            "2": _DILEMMA,
            "3": "A valid response that only satisfies the user’s query should be marked as 3 points.",
            "4": _DILEMMA,
            "5": "A response coherent to the conversational contexts and appropriate to the current topic without "
            "typos should be marked as 5 points.",
        },
    ),
    Scale(
        "div",
        "Div",
        "How diverse is the response?",
        {
            "1": "1 point is for the universal reply (i.e., “I do think so!”) or the response containing no more "
            "than three unique words (i.e., “That is OK”) should be assigned to point 1.",
            "2": _DILEMMA,
            "3": "A normal response of a single clause or a single topic should be marked as 3 points.",
            "4": _DILEMMA,
            "5": "5 points stand for an output response with at least two clauses from different topics, where the"
            " topic may be transferred from the current conversation to another scenario (For example, the "
            "query is “How’s the weather?”; and response “It’s fine today, let’s play basketball” transfers "
            "the weather topic to sports. Such a case should be scored as 5 points).",
        },
    ),
    Scale(
        "emo",
        "Emo",
        "Is the response empathetic and emotionally positive?",
        {
            "1": "A response that cannot satisfy any one aspect should be scored as 1 point.",
            "2": f"{_DILEMMA} For example, when the input query is “Kobe Bryant had a plane crash. We lost him, so "
            "sad”. 2 points are for the response of “Come on, cheer up. We still love NBA”.",
            "3": "A response that satisfies only one aspect should be scored as 3 points. For example, 3 points "
            "are for the response of “Yes, we lost him. I’m extremely heartbroken these days”.",
            "4": _DILEMMA,
            "5": "An output response that satisfies the two aspects (empathetic and emotionally positive) should "
            "be assigned as a full mark (5 points). For example, 5 points are for the response of “Sorry to "
            "hear that crash. He’s a legend and will be my idol forever. Hope his family and fans can recover"
            " soon”.",
        },
    ),
)
"""Strategy memory's appendix C, verbatim, sorted by points, with quotation marks repaired that the PDF broke."""

EPITOME_SCALES = (
    Scale(
        "emotional-reactions",
        "Emotional reactions",
        "How much does the response voice warmth, compassion or concern after what the other person said?",
        {
            "0": "none",
            "1": "weak: alludes to such feelings without naming them",
            "2": "strong: names the feelings of the one who responds",
        },
        min=0,
        max=2,
    ),
    Scale(
        "interpretations",
        "Interpretations",
        "How much does the response tell what was understood of the other person's feelings and experiences?",
        {
            "0": "none",
            "1": "weak: only says that it understands",
            "2": "strong: names the inferred feeling or experience, or tells of a similar one",
        },
        min=0,
        max=2,
    ),
    Scale(
        "explorations",
        "Explorations",
        "How much does the response ask about feelings and experiences that the other person did not tell?",
        {"0": "none", "1": "weak: asks in general", "2": "strong: asks about a certain feeling or experience"},
        min=0,
        max=2,
    ),
)
"""After EPITOME (Sharma et al., 2020), in our words: people rate the same levels that its classifier predicts."""

EMOTION_SCALES = (
    Scale(
        "emotion",
        "Emotion accuracy",
        "Is the emotion of the response in accordance with the emotion named beside it and with the dialogue?",
        {
            "0": "irrelevant or contradictory",
            "1": "consistent with the predicted emotion and dialogue context",
        },
        min=0,
        max=1,
    ),
)
"""BERT (JT)'s emotion accuracy, 0 or 1."""

DRAG_QUESTION = "Rate the replies according to whether they are emotionally appropriate following earlier turns."
"""MEED2's Figure 7b."""

SCALE_SETS: dict[str, tuple[Scale, ...]] = {
    "mime": MIME_SCALES,
    "dual-emp": DUAL_EMP_SCALES,
    "bert-joint": BERT_JOINT_SCALES,
    "strategy-memory": STRATEGY_MEMORY_SCALES,
    "epitome": EPITOME_SCALES,
    "emotion": EMOTION_SCALES,
}
"""The scales of a study, by the name that recipes use."""


def scales_named(name: str) -> tuple[Scale, ...]:
    if name not in SCALE_SETS:
        raise ValueError(unknown_name("set of scales", name, SCALE_SETS))
    return SCALE_SETS[name]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of study: what is asked about each item, and what a valid answer is."""

    name: KindName
    scales: tuple[Scale, ...] = ()
    choices: tuple[str, ...] = ()
    picks_emotion: bool = False
    """An emotion study in which raters name the reply's emotion instead of judging 0 or 1."""

    def check(self, values: Any, letters: Sequence[str], some_scales: bool = False) -> None:
        """Raise ValueError for an answer that is incomplete or not of this kind. `letters` are the replies shown.

        With `some_scales`, scales may be left out: a machine may be able to judge only one of them.
        """
        if not isinstance(values, Mapping):
            raise ValueError(f"the values of an answer are an object, found {type(values).__name__}")
        if self.name == "ab":
            return self._check_choice(values)
        if set(values) != set(letters):
            raise ValueError(
                f"an answer is about the replies {', '.join(letters)}, found {', '.join(values) or 'none'}"
            )
        for letter in letters:
            self._check_reply(letter, values[letter], some_scales)

    def _check_choice(self, values: Mapping[str, Any]) -> None:
        if set(values) != {"choice"} or values["choice"] not in self.choices:
            raise ValueError(f"choice is one of {', '.join(self.choices)}, found {dict(values)!r}")

    def _check_reply(self, letter: str, value: Any, some_scales: bool) -> None:
        try:
            if self.name == "drag":
                if value not in self.choices:
                    raise ValueError(f"one of {', '.join(self.choices)} is expected, found {value!r}")
            elif self.picks_emotion:
                if value not in EMOTIONS:
                    raise ValueError(f"one of the emotions is expected, found {value!r}")
            elif self.name == "emotion":
                self.scales[0].check(value)
            else:
                self._check_ratings(value, some_scales)
        except ValueError as problem:
            raise ValueError(f"reply {letter}: {problem}") from None

    def _check_ratings(self, value: Any, some_scales: bool) -> None:
        keys = [scale.key for scale in self.scales]
        known = isinstance(value, Mapping) and bool(value) and set(value) <= set(keys)
        if not known or (not some_scales and len(value) < len(keys)):
            raise ValueError(f"one number each for {', '.join(keys)} is expected, found {value!r}")
        for scale in self.scales:
            if scale.key in value:
                scale.check(value[scale.key])


def kind_named(name: str, scales: str = "", both_bad: bool = True, picks_emotion: bool = False) -> Kind:
    """A kind of study with the questions of a set of scales."""
    if name == "likert":
        return Kind("likert", scales_named(scales or "mime"))
    if name == "ab":
        return Kind("ab", choices=(LEFT, RIGHT, TIE, *((BOTH_BAD,) if both_bad else ())))
    if name == "drag":
        return Kind("drag", choices=AREAS)
    if name == "emotion":
        return Kind("emotion", scales_named("emotion"), picks_emotion=picks_emotion)
    raise ValueError(unknown_name("kind of study", name, KINDS))
