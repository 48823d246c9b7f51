"""What care infers from several turns: signs that add up, grief that lowers them, answers to its questions."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from listenwell.data.dialogue import Turn
from listenwell.systems import safety
from listenwell.systems.safety import care_reply, detect, detectors, help_lines, is_care, load_resources
from listenwell.systems.safety.classifier import backbone
from listenwell.systems.safety.conversation import joined, sign_in
from listenwell.systems.safety.detector import Sign
from listenwell.systems.safety.detectors import RuleDetector, register
from listenwell.systems.safety.replies import WORDS, care_given

CASES = Path(safety.__file__).parent / "cases"
needs_classifier = pytest.mark.skipif(backbone() is None, reason="no package carries MiniLM here")
ASKING = care_reply(Sign("self-harm", "indirect", "en", "", ""), load_resources(region="us"))


def talk(*texts: str) -> tuple[Turn, ...]:
    """The speaker has the last word."""
    first = "speaker" if len(texts) % 2 else "listener"
    other = {"speaker": "listener", "listener": "speaker"}
    return tuple(Turn(first if place % 2 == 0 else other[first], text) for place, text in enumerate(texts))


def heard(*texts: str) -> str | None:
    sign, _ = sign_in(talk(*texts))
    return None if sign is None else sign.directness


@needs_classifier
def test_conversations_of_the_development_cases_are_heard(capsys: pytest.CaptureFixture[str]):
    lines = (CASES / "conversations.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    turns = [tuple(Turn(turn["speaker"], turn["text"]) for turn in case["turns"]) for case in cases]
    all_of = Counter(case["sign"] for case in cases)
    signs = Counter(case["sign"] for case, said in zip(cases, turns, strict=True) if sign_in(said)[0] is not None)
    with capsys.disabled():
        print("\nconversations:")
        for sign, count in all_of.items():
            print(f"  {sign or 'none':<9} {signs[sign]:>4} of {count:<4} {100 * signs[sign] / count:5.1f} %")
    assert signs["direct"] >= 0.95 * all_of["direct"]
    assert signs["indirect"] >= 0.80 * all_of["indirect"]
    assert signs[None] <= 0.02 * all_of[None]


@needs_classifier
def test_means_and_intent_in_different_messages_add_up():
    assert detect("I want to use them") is None
    assert heard(
        "It's getting too loud in my head and I found my old blades",
        "What kind of blades are they?",
        "I want to use them",
    )
    assert heard("脑子里好吵，我翻到以前的刀片了", "什么刀片？", "我想用它")


@needs_classifier
@pytest.mark.parametrize(
    "texts",
    [
        ("I found my old blades", "What kind?", "Ice skates! I want to use them on the lake"),
        ("I bought a rope today", "Are you going climbing?", "Yes, outdoors, for the first time"),
        ("My grandfather left me his rifle", "Do you hunt?", "We go out for deer in November"),
        ("我翻到以前的刀片了", "什么刀片？", "做模型用的，想用它把飞机做完"),
    ],
)
def test_a_tool_is_no_sign(texts: tuple[str, ...]):
    assert heard(*texts) is None


@needs_classifier
def test_a_death_that_was_told_lowers_what_is_only_implied():
    assert heard("My dog died on Tuesday", "I'm sorry.", "I keep looking at her bed. The house is so quiet.") is None
    assert heard("狗狗周二走了", "很抱歉。", "我总是看它的窝，家里好安静") is None


@needs_classifier
def test_the_bereaved_who_want_to_follow_are_heard():
    assert heard("My wife died in June", "I'm so sorry.", "I want to be where she is")
    assert heard("我奶奶走了", "节哀。", "她是唯一疼我的人，我想去找她了")


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("Do you think of hurting yourself?", "yes"), "direct"),
        (("Are you having thoughts of suicide?", "I do"), "direct"),
        (("Are you thinking of killing yourself?", "maybe"), "indirect"),
        (("Are you safe right now?", "not really"), "indirect"),
        (("Are you safe right now?", "yes, I'm at my mum's"), None),
        (("Are you thinking of hurting yourself?", "no, not at all"), None),
        (("Do you like tea?", "yes"), None),
        (("你在想伤害自己吗？", "是"), "direct"),
        (("你在想伤害自己吗？", "没有"), None),
        (("你现在安全吗？", "不知道"), "indirect"),
        ((ASKING, "yes"), "direct"),
        ((ASKING, "no, I'm only tired"), None),
    ],
)
def test_a_question_about_harm_is_answered(texts: tuple[str, ...], expected: str | None):
    assert heard("I had a long day", *texts) == expected


def test_a_denial_does_not_hide_what_is_said_beside_it():
    assert heard("I had a long day", ASKING, "no. I want to kill myself, that's all") == "direct"


def test_an_indirect_sign_gets_two_sentences_and_one_line():
    words, line = ASKING.split("\n\n")
    assert words.endswith("?")
    assert "988" in line
    assert "\n" not in line
    for kinds in WORDS.values():
        for kind, (direct, asking, _) in kinds.items():
            assert len(asking) < len(direct) or kind != "self-harm"
            assert "{" not in asking


def test_the_whole_card_comes_once_it_is_confirmed_and_only_once():
    def reply(*texts: str) -> str:
        sign, again = sign_in(talk(*texts))
        assert sign is not None
        return care_reply(sign, load_resources(), again)

    hint = "Everyone would be better off without me"
    asking = reply(hint)
    card = reply(hint, asking, "yes")
    assert [care_given(text).tier for text in (asking, card)] == ["asking", "direct"]
    shorter = reply(hint, asking, "yes", card, "I have them here")
    assert care_given(shorter).tier == "shorter"
    assert is_care(shorter)


@needs_classifier
@pytest.mark.parametrize("answer", ["I want to use them", "tonight", "Nobody would miss me", "I have the pills here"])
def test_who_goes_on_after_the_question_gets_the_whole_card(answer: str):
    hint = "Everyone would be better off without me"
    sign, again = sign_in(talk(hint, ASKING, answer))
    assert (str(sign), again) == ("self-harm, direct", False)


def test_a_yes_after_the_shorter_reply_gets_the_whole_card():
    hint = Sign("self-harm", "indirect", "en", "", "")
    shorter = care_reply(hint, load_resources(), again=True)
    sign, again = sign_in(talk("I had a long day", ASKING, "I don't know", shorter, "yes"))
    assert (str(sign), again) == ("self-harm, direct", False)


def test_a_denial_closes_care():
    turns = ("Everyone would be better off without me", ASKING, "no, I'm only tired of this week", "Rest a little.")
    assert heard(*turns, "ok") is None
    sign, again = sign_in(talk(*turns, "I wish I had never been born"))
    assert (str(sign), again) == ("self-harm, indirect", False)


def test_what_care_has_answered_is_not_counted_again():
    later = "we went to the lake with my cousins and ate far too much ice cream"
    card = care_reply(Sign("self-harm", "direct", "en", "", ""), load_resources())
    assert heard("I want to kill myself", card, later) is None


def test_help_lines_name_everybody_or_those_of_a_kind():
    us = load_resources(region="us")
    assert len(help_lines(us, "en")) == len(us.lines)
    assert all("Violence" in line for line in help_lines(us, "en", "danger"))


def test_messages_are_joined_as_sentences():
    assert joined(["I am tired", "Really?", " so tired "]) == "I am tired. Really? so tired."
    assert joined(["好累", "真的！"]) == "好累。 真的！"


def test_another_detector_can_be_registered(monkeypatch: pytest.MonkeyPatch):
    """A language is defined by its detector: its findings count in messages and in conversations."""

    class Loud(RuleDetector):
        def reads(self, text: str) -> bool:
            return "!!!" in text

        def detect(self, text: str) -> Sign | None:
            return Sign("danger", "direct", "zh", text, "loud")

    monkeypatch.setattr(detectors, "DETECTORS", dict(detectors.DETECTORS))
    register(Loud("zh", detectors.CHINESE))
    assert detect("!!!") is not None
    assert heard("hello", "hi", "!!!") == "direct"


@needs_classifier
def test_grief_does_not_lower_a_sign_of_somebody_with_a_means_at_hand():
    told = ("My dog died last night. She was fourteen.", "I am so sorry.")
    assert heard(*told, "It's getting too loud in my head and I found my old blades") == "indirect"
    assert heard(*told, "I keep looking at her bed. The house is so quiet.") is None
