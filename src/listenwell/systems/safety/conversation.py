"""Signs of danger over the recent conversation: what one message leaves open, several may say.

Means, intent and despair that are spread over messages add up; a death that was mentioned lowers the weight of what is
only implied; a "yes" to the question whether somebody thinks of hurting themselves is a direct sign. Everything is read
from the turns; nothing is remembered between calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from listenwell.data.dialogue import Turn, readable
from listenwell.systems.safety.detector import Directness, Kind, LanguageCode, Sign, detect, follows, rules
from listenwell.systems.safety.detectors import Detector, RuleDetector, detector_for, detectors_of
from listenwell.systems.safety.evidence import RECENT, Messages, Question, YesNo, joined
from listenwell.systems.safety.foreign_signs import detect_foreign
from listenwell.systems.safety.once import remembering
from listenwell.systems.safety.replies import Given, care_given, is_care

__all__ = ["LATELY", "RECENT", "joined", "sign_in"]

LATELY = 3
"""How many earlier messages of the speaker may keep a conversation in Care."""
ANSWERED, CONTINUED = "answer", "continued"
"""How `why` begins if a sign was inferred from what the listener said before."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A short answer to a question about harm: yes, no, or neither."""

    value: YesNo
    about: Kind


def sign_in(turns: Sequence[Turn]) -> tuple[Sign | None, bool]:
    """Returns the sign to answer in the last message, and whether Care has answered the same one before."""
    with remembering():
        sign = _sign(turns)
        return (None, False) if sign is None else _after_care(sign, turns)


def rules_speak(turns: Sequence[Turn]) -> bool:
    """Whether the rules alone see a reason to check at once: a sign in the last message, or Care shortly before.

    Takes a few milliseconds and decides nothing; `sign_in` does.
    """
    last = readable(turns[-1].text)
    readers = [reader for reader in detectors_of(last) if isinstance(reader, RuleDetector)]
    return (
        any(turn.speaker == "listener" and is_care(turn.text) for turn in _lately(turns))
        or any(rules(reader.language).look(last) is not None for reader in readers)
        or _answer(turns) is not None
        or detect_foreign(last) is not None
    )


def _after_care(sign: Sign, turns: Sequence[Turn]) -> tuple[Sign, bool]:
    tiers = {given.tier for given in _open_care(turns) if given.kind == sign.kind}
    if tiers and "direct" not in tiers and _goes_on(sign, turns[-1].text):
        sign = replace(sign, directness="direct", why=f"after care asked: {sign.why}")
    # The whole card is due once the sign is direct.
    return sign, "direct" in tiers or (bool(tiers) and sign.directness == "indirect")


def _goes_on(sign: Sign, text: str) -> bool:
    """Whether a message says more after Care's question: a sign of its own, means, or an intent."""
    if sign.why.startswith((ANSWERED, CONTINUED)):
        return any(reader.says_more(text) for reader in detectors_of(text))
    return True


def _sign(turns: Sequence[Turn]) -> Sign | None:
    messages = [turn.text for turn in turns if turn.speaker == "speaker"]
    last = messages[-1]
    answer = _answer(turns)
    if answer is not None and answer.value != "no":
        directness: Directness = "direct" if answer.value == "yes" else "indirect"
        return Sign(answer.about, directness, _language(messages), last, f"{ANSWERED}: asked, and {answer.value}")
    _read_ahead(last, turns)
    sign = detect(last)
    if sign is not None and _upheld(sign, turns):
        return sign
    if answer is not None or not last.strip():
        return None
    if sign is None and (sign := _together(turns)) is not None:
        return sign
    return _continued(turns, messages)


def _upheld(sign: Sign, turns: Sequence[Turn]) -> bool:
    """Whether a sign still holds in the context of the messages before it."""
    return detector_for(sign.language).upholds(sign, Messages.of(turns).recent())


def _together(turns: Sequence[Turn]) -> Sign | None:
    """Returns the sign of the recent messages taken together. What Care has answered is not counted again."""
    recent = _unanswered(turns)
    if len(recent) < 2:
        return None
    signs = (_read_together(detector, recent) for detector in detectors_of(recent[-1]))
    return next((sign for sign in signs if sign is not None), None)


def _unanswered(turns: Sequence[Turn]) -> Messages:
    """Returns the recent messages since Care last answered."""
    answered = max(
        (place for place, turn in enumerate(turns) if turn.speaker == "listener" and is_care(turn.text)), default=-1
    )
    return Messages.of(turns[answered + 1 :]).recent()


def _read_ahead(last: str, turns: Sequence[Turn]) -> None:
    """Lets slow detectors read the last message and the recent ones in one batch: most are asked for both."""
    recent = _unanswered(turns)
    for detector in detectors_of(last):
        ours = recent.filtered(detector.reads)
        if len(ours) > 1 and not detector.eased(ours[-1]):
            detector.read_ahead(readable(last), ours)


def _read_together(detector: Detector, messages: Messages) -> Sign | None:
    ours = messages.filtered(detector.reads)
    if len(ours) < 2 or detector.eased(ours[-1]):
        return None
    return detector.together(ours)


def _continued(turns: Sequence[Turn], messages: Sequence[str]) -> Sign | None:
    """Returns the sign of an earlier message if the last one, such as "I have them here", continues it."""
    *before, last = messages
    if not follows(last):
        return None  # nearly every message: no need to check earlier messages
    if any(turn.speaker == "listener" and is_care(turn.text) for turn in _lately(turns)):
        return _kept_in_care(turns, last)
    earlier = next((sign for text in reversed(before[-LATELY:]) if (sign := detect(text)) is not None), None)
    if earlier is None or not follows(last, earlier):
        return None
    return earlier if detector_for(earlier.language).continues(earlier, Messages.of(turns).recent()) else None


def _kept_in_care(turns: Sequence[Turn], last: str) -> Sign | None:
    """Returns the sign that Care answered, taken from its last reply, unless the speaker has denied it since."""
    care = _open_care(turns)
    if not care:
        return None
    given = care[-1]
    directness: Directness = "direct" if any(each.tier == "direct" for each in care) else "indirect"
    sign = Sign(given.kind, directness, given.language, last, f"{CONTINUED}: care answered shortly before")
    return sign if follows(last, sign) else None


def _open_care(turns: Sequence[Turn]) -> list[Given]:
    """Returns Care's recent replies, except those after which the speaker denied the sign or told of relief."""
    care: list[Given] = []
    for turn in _lately(turns)[:-1]:
        if turn.speaker == "listener":
            care += [given for given in [care_given(turn.text)] if given is not None]
        elif care and _closes(turn.text, care[-1]):
            care.clear()
    return care


def _closes(text: str, given: Given) -> bool:
    readers = detectors_of(text) or [detector_for(given.language)]
    denied = given.tier == "asking" and any(reader.answer(text) == "no" for reader in readers)
    return (denied or any(reader.eased(text) for reader in readers)) and detect(text) is None


def _lately(turns: Sequence[Turn]) -> Sequence[Turn]:
    return turns[-2 * LATELY - 1 :]


def _answer(turns: Sequence[Turn]) -> Answer | None:
    """Returns the last message's answer to a question about harm that the listener asked just before it."""
    *before, last = turns
    if last.speaker != "speaker" or not before or before[-1].speaker != "listener":
        return None
    question = before[-1].text
    given = care_given(question)
    if given is not None and any(other.tier == "direct" for other in _open_care(turns)):
        return None  # the full card asks a different question
    safe = given is None and _asks(question, "safe")
    if given is None and not safe and not _asks(question, "harm"):
        return None
    readers = detectors_of(last.text) or detectors_of(question)  # "y" is too short to have a language
    said = next((value for reader in readers if (value := reader.answer(last.text)) is not None), None)
    if said is None or (given is not None and given.tier == "shorter" and said != "yes"):
        return None
    if safe:  # "are you safe?" has the opposite polarity, and "no" is not a direct sign
        said = "no" if said == "yes" else "unsure"
    return Answer(said, "self-harm" if given is None else given.kind)


def _asks(question: str, about: Question) -> bool:
    return any(mark in question for mark in "?？") and any(
        reader.asks(question, about) for reader in detectors_of(question)
    )


def _language(messages: Iterable[str]) -> LanguageCode:
    """Returns the language of the last message that has one: "嗯" and "yes" do, "5" does not."""
    for text in reversed(list(messages)):
        if readers := detectors_of(text):
            return readers[0].language
    return "en"
