"""Detectors: one per language. `register` adds another; all other code asks the detectors that read a text.

A detector for a new language is a class with the methods of `Detector`, or `RuleDetector` over rules of that language
(a data file in the form of english.yaml, and a group in conversation.yaml).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from listenwell.systems.safety.detector import ALONE, BACKED, CHINESE, LanguageCode, Sign, decide, rules
from listenwell.systems.safety.evidence import Messages, Question, YesNo, evidence, joined, script

if TYPE_CHECKING:
    from listenwell.systems.safety.classifier import CrisisClassifier

SENTENCE = re.compile(r"[^.!?…\n]+[.!?…]*")
OWN = re.compile(r"\b(i|im|ive|my|myself)\b", re.IGNORECASE)
LATIN = re.compile("[A-Za-z]{2}|[A-Za-z][^A-Za-z][A-Za-z]|[Ａ-Ｚａ-ｚ]")
TOGETHER_ALONE = 2.0
"""The log-odds that the classifier must exceed for a sign in several messages that no rule finds."""
TOGETHER_BACKED = 0.5
"""The same for a sign that a rule finds in them."""
IMPERSONAL = 2.5
"""Added to the threshold if nobody says "I" except in a question: the classifier saw little of shops and hotels."""
CHINESE_ALONE, CHINESE_TOGETHER = 0.8, 1.8
"""Thresholds of the Chinese classifier without a rule, for one message and for several."""
CHINESE_DOUBT = 1.0
"""Added to these if a guard suppressed a rule, the means have another use, or a death was mentioned."""
CHINESE_OUTRIGHT, CHINESE_BACKED = -2.5, -1.0
"""Thresholds for a direct and for an indirect sign that a rule finds."""
CHINESE_UPHELD, CHINESE_MOURNING = -0.8, 0.5
"""Thresholds for an indirect sign in the last message, given the messages before it; and if a death was mentioned."""
MOODS = ("hints", "no reason", "end of strength", "burden", "passive")
"""Indirect signs that are a mood rather than a plan: tired people show them as well."""
MOOD_BACKED = -1.0
"""Threshold for one of these that a rule finds in a message."""
UPHELD = -0.5
"""Threshold for a sign in the last message that only the classifier found, given the messages before it."""
MOURNING = 1.0
"""The same if a death was mentioned."""
LOWERED_BY_GRIEF = (*MOODS, "farewell", "means")
"""Indirect signs that the bereaved show as well; they do not count in grief if there is no classifier."""


class Detector(Protocol):
    """Reads the messages of one language."""

    language: LanguageCode

    def reads(self, text: str) -> bool:
        """Whether a text has words of this language."""
        ...

    def detect(self, text: str) -> Sign | None:
        """The most urgent sign in one message."""
        ...

    def together(self, messages: Sequence[str]) -> Sign | None:
        """The sign of several messages together, the last of which shows none by itself."""
        ...

    def read_ahead(self, text: str, messages: Sequence[str]) -> None:
        """Prepares `detect` for a message and `together` for the recent ones, if reading is slow."""
        ...

    def upholds(self, sign: Sign, messages: Sequence[str]) -> bool:
        """Whether a sign in the last message still holds given the messages before it."""
        ...

    def continues(self, sign: Sign, messages: Sequence[str]) -> bool:
        """Whether the last message leaves the sign of an earlier one standing rather than explaining it away."""
        ...

    def follows(self, text: str) -> bool:
        """Whether a message without a sign may belong to one shortly before it."""
        ...

    def eased(self, text: str) -> bool:
        """Whether a message takes back what was said, or mentions help."""
        ...

    def asks(self, text: str, about: Question) -> bool:
        """Whether a listener's text asks about harm, or about being safe."""
        ...

    def answer(self, text: str) -> YesNo | None:
        """The answer of a message to a yes-or-no question."""
        ...

    def says_more(self, text: str) -> bool:
        """Whether a message after Care's question names means or an intent."""
        ...


class RuleDetector:
    """Uses rules alone."""

    def __init__(self, language: LanguageCode, script: re.Pattern[str]) -> None:
        self.language: LanguageCode = language
        self.script = script

    def reads(self, text: str) -> bool:
        return self.script.search(text) is not None

    def detect(self, text: str) -> Sign | None:
        return rules(self.language).look(text)

    def together(self, messages: Sequence[str]) -> Sign | None:
        sign = evidence(self.language).sign(messages)
        if sign is not None:
            return sign
        look = rules(self.language).look
        sign = look(joined(messages))
        # A sign in the earlier messages alone was detected when they came: the last one must contribute to it.
        return sign if sign is not None and look(joined(messages[:-1])) is None else None

    def read_ahead(self, text: str, messages: Sequence[str]) -> None:
        """Does nothing: rules are fast."""

    def upholds(self, sign: Sign, messages: Sequence[str]) -> bool:
        lowered = sign.directness == "indirect" and sign.why.startswith(LOWERED_BY_GRIEF)
        return not (lowered and evidence(self.language).mourns(messages))

    def continues(self, sign: Sign, messages: Sequence[str]) -> bool:
        return rules(self.language).look(joined(messages)) is not None

    def follows(self, text: str) -> bool:
        return rules(self.language).follows(text)

    def eased(self, text: str) -> bool:
        return rules(self.language).eased.search(rules(self.language).normal(text)) is not None

    def asks(self, text: str, about: Question) -> bool:
        return evidence(self.language).is_question(text, about)

    def answer(self, text: str) -> YesNo | None:
        return evidence(self.language).answer(text)

    def says_more(self, text: str) -> bool:
        return evidence(self.language).has(text, "means", "intent")


class ChineseDetector(RuleDetector):
    """Uses rules and a learned classifier, which can overrule a rule and whose own signs are always indirect."""

    def __init__(self) -> None:
        super().__init__("zh", CHINESE)

    def detect(self, text: str) -> Sign | None:
        return self._decide(super().detect(text), [text], CHINESE_ALONE)

    def together(self, messages: Sequence[str]) -> Sign | None:
        return self._decide(super().together(messages), messages, CHINESE_TOGETHER)

    def upholds(self, sign: Sign, messages: Sequence[str]) -> bool:
        if sign.directness == "direct":
            return True
        least = CHINESE_MOURNING if evidence("zh").mourns(messages) else CHINESE_UPHELD
        return self._odds(messages) > least

    def continues(self, sign: Sign, messages: Sequence[str]) -> bool:
        return self._odds(messages) > CHINESE_UPHELD

    def _decide(self, sign: Sign | None, messages: Sequence[str], alone: float) -> Sign | None:
        odds = self._odds(messages)
        if sign is not None:
            return sign if odds > (CHINESE_OUTRIGHT if sign.directness == "direct" else CHINESE_BACKED) else None
        if odds <= alone or odds <= alone + self._doubt(messages):
            return None
        return Sign("self-harm", "indirect", "zh", joined(messages), "learned: it sounds like a sign")

    def _odds(self, messages: Sequence[str]) -> float:
        from listenwell.systems.safety.chinese_classifier import chinese_classifier  # imports torch

        return chinese_classifier().odds(joined(messages))

    def _doubt(self, messages: Sequence[str]) -> float:
        """Returns what a guard, another use of the means or a death adds to the threshold."""
        patterns = evidence("zh")
        against = rules("zh").silenced(joined(messages)) or patterns.is_harmless(messages) or patterns.mourns(messages)
        return CHINESE_DOUBT if against else 0.0


class EnglishDetector(RuleDetector):
    """Uses rules and, if its files are installed, a learned classifier that must agree."""

    def __init__(self) -> None:
        super().__init__("en", LATIN)

    def detect(self, text: str) -> Sign | None:
        sign = super().detect(text)
        classifier = self._classifier()
        if classifier is None:
            return sign
        ours = CHINESE.sub(" ", text)
        is_mood = sign is not None and sign.directness == "indirect" and sign.why.startswith(MOODS)
        backed, alone = MOOD_BACKED if is_mood else BACKED, ALONE + _doubt(ours)
        prediction = classifier.predict(ours, threshold=alone if sign is None else backed)
        return decide(text, sign, prediction, backed, alone)

    def together(self, messages: Sequence[str]) -> Sign | None:
        sign = super().together(messages)
        classifier = self._classifier()
        if classifier is None:
            return sign
        text = joined(messages)
        backed, alone = TOGETHER_BACKED, TOGETHER_ALONE + _doubt(text)
        prediction = classifier.predict(_script(messages), whole=True, threshold=alone if sign is None else backed)
        return decide(text, sign, prediction, backed, alone)

    def read_ahead(self, text: str, messages: Sequence[str]) -> None:
        """Lets the classifier read a message and the recent ones, which may be needed next, in one batch."""
        classifier = self._classifier()
        if classifier is not None:
            classifier.read_ahead((CHINESE.sub(" ", text), False), (_script(messages), True))

    def upholds(self, sign: Sign, messages: Sequence[str]) -> bool:
        classifier = self._classifier()
        if classifier is None:
            return super().upholds(sign, messages)
        learned = sign.why.startswith("learned")
        if sign.directness == "direct" and not learned:
            return True
        least = MOURNING if evidence("en").mourns(messages) else UPHELD if learned else BACKED
        return classifier.predict(_script(messages), whole=True, threshold=least).odds > least

    def continues(self, sign: Sign, messages: Sequence[str]) -> bool:
        classifier = self._classifier()
        if classifier is None:
            return super().continues(sign, messages)
        least = TOGETHER_BACKED
        return classifier.predict(_script(messages), whole=True, threshold=least).odds > least

    def _classifier(self) -> CrisisClassifier | None:
        from listenwell.systems.safety.classifier import english_classifier  # imports torch

        return english_classifier(rules("en").normal)


def _script(messages: Sequence[str]) -> str:
    """Returns messages as the English classifier reads them. Statements by the listener that show a sign are left out:
    the sign is not the speaker's."""
    if isinstance(messages, Messages):
        look = rules("en").look
        replies = ("" if "?" not in reply and look(reply) is not None else reply for reply in messages.replies)
        messages = Messages.of_pairs(zip(messages, replies, strict=True))
    return script(messages)


def _doubt(text: str) -> float:
    """Returns what is added to the thresholds without a rule for a text that says nothing about its writer."""
    statements = [sentence for sentence in SENTENCE.findall(text) if not sentence.endswith("?")]
    return 0.0 if any(OWN.search(sentence) for sentence in statements) else IMPERSONAL


DETECTORS: dict[LanguageCode, Detector] = {"zh": ChineseDetector(), "en": EnglishDetector()}


def register(detector: Detector) -> None:
    """Adds a detector, or replaces the one for its language."""
    DETECTORS[detector.language] = detector


def detector_for(language: LanguageCode) -> Detector:
    return DETECTORS[language]


def detectors_of(text: str) -> list[Detector]:
    """Returns the detectors that read a text; none for a text without words."""
    return [detector for detector in DETECTORS.values() if detector.reads(text)]
