"""Detectors: one per language. `register` adds another; everything else asks those that read a text.

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
"""How sure the classifier must be of a sign in several messages that no rule finds: the logarithm of its odds."""
TOGETHER_BACKED = 0.5
"""How sure of one that a rule finds in them."""
IMPERSONAL = 2.5
"""How much surer where nobody says "I" but in a question: the classifier knows little of shops and hotels."""
CHINESE_ALONE, CHINESE_TOGETHER = 0.8, 1.8
"""The same for the Chinese classifier, of a message and of several."""
CHINESE_DOUBT = 1.0
"""How much surer where a guard silenced a rule, the means have another use, or a death was told."""
CHINESE_OUTRIGHT, CHINESE_BACKED = -2.5, -1.0
"""How sure of a direct and of an indirect sign that a rule finds."""
CHINESE_UPHELD, CHINESE_MOURNING = -0.8, 0.5
"""How sure, having read what came before, of an indirect sign in the last message; and where a death was told."""
MOODS = ("hints", "no reason", "end of strength", "burden", "passive")
"""Indirect signs that are a mood more than a plan: whoever is tired shows them as well."""
MOOD_BACKED = -1.0
"""How sure the classifier must be of one of these that a rule finds in a message."""
UPHELD = -0.5
"""How sure it must be, having read what came before, of a sign that it alone found in the last message."""
MOURNING = 1.0
"""The same, where a death was told."""
LOWERED_BY_GRIEF = (*MOODS, "farewell", "means")
"""Indirect signs that the bereaved show as well, where no classifier can tell."""


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
        """The sign that messages make together, the last of which shows none alone."""
        ...

    def read_ahead(self, text: str, messages: Sequence[str]) -> None:
        """Prepares `detect` of a message and `together` of the recent ones, where reading takes long."""
        ...

    def upholds(self, sign: Sign, messages: Sequence[str]) -> bool:
        """Whether a sign of the last message stands beside those before it."""
        ...

    def continues(self, sign: Sign, messages: Sequence[str]) -> bool:
        """Whether the last message leaves the sign of an earlier one as it was, rather than explaining it away."""
        ...

    def follows(self, text: str) -> bool:
        """Whether a message without a sign may belong to one shortly before it."""
        ...

    def eased(self, text: str) -> bool:
        """Whether a message takes back what was said, or tells of help."""
        ...

    def asks(self, text: str, about: Question) -> bool:
        """Whether a listener asks about harm, or about being safe."""
        ...

    def answer(self, text: str) -> YesNo | None:
        """What a message says to a question of yes or no."""
        ...

    def says_more(self, text: str) -> bool:
        """Whether a message after the question of care names means or an intent."""
        ...


class RuleDetector:
    """By rules alone."""

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
        # What the messages before say alone was heard when they came: the last must have a part in it.
        return sign if sign is not None and look(joined(messages[:-1])) is None else None

    def read_ahead(self, text: str, messages: Sequence[str]) -> None:
        """Rules are quick: there is nothing to prepare."""

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
    """By rules and a learned classifier, which may speak against a rule, and whose own signs are indirect."""

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
        """What is added to the threshold where a guard, another use of the means or a death speaks against a sign."""
        patterns = evidence("zh")
        against = rules("zh").silenced(joined(messages)) or patterns.is_harmless(messages) or patterns.mourns(messages)
        return CHINESE_DOUBT if against else 0.0


class EnglishDetector(RuleDetector):
    """By rules and, where its files are at hand, by a learned classifier that must agree."""

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
        """Lets the classifier read a message and the recent ones, which may be asked for after it, at the same time."""
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
    """Messages as the English classifier reads them. What a listener states of themselves is left out: a sign in it is
    not the speaker's."""
    if isinstance(messages, Messages):
        look = rules("en").look
        replies = ("" if "?" not in reply and look(reply) is not None else reply for reply in messages.replies)
        messages = Messages.of_pairs(zip(messages, replies, strict=True))
    return script(messages)


def _doubt(text: str) -> float:
    """What is added to the thresholds of the classifier alone for a text that tells nothing of its writer."""
    statements = [sentence for sentence in SENTENCE.findall(text) if not sentence.endswith("?")]
    return 0.0 if any(OWN.search(sentence) for sentence in statements) else IMPERSONAL


DETECTORS: dict[LanguageCode, Detector] = {"zh": ChineseDetector(), "en": EnglishDetector()}


def register(detector: Detector) -> None:
    """Adds a detector, or puts another in the place of its language's."""
    DETECTORS[detector.language] = detector


def detector_for(language: LanguageCode) -> Detector:
    return DETECTORS[language]


def detectors_of(text: str) -> list[Detector]:
    """Those that read a text; none for a text without words."""
    return [detector for detector in DETECTORS.values() if detector.reads(text)]
