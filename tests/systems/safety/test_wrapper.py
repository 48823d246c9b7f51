"""A system behind care: messages with a sign never reach it, all others do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import listenwell
from listenwell import checkpoint
from listenwell.contract import Controls
from listenwell.data.dialogue import Dialogue, Example, Turn
from listenwell.systems.base import Likelihoods, Talk, as_context
from listenwell.systems.reply import Reply
from listenwell.systems.safety import SafetyWrapper, detect, is_care
from listenwell.systems.safety.resources import load_resources
from test_system import made_bot

SIGN = "I want to kill myself"


class Echo:
    """Repeats the last message, and records all its inputs."""

    name = "echo"
    decoding = "greedy"

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.asked: Controls | None = None

    def reply(self, talk: Talk, controls=None) -> Reply:
        self.asked = controls
        return self.replies([talk])[0]

    def replies(self, talks: Sequence[Talk], controls=None, done=None, first=0) -> list[Reply]:
        texts = [as_context(talk)[-1].text for talk in talks]
        self.seen += texts
        if done is not None:
            done(len(texts))
        return [Reply(text, emotion="sad", emotions={"sad": 1.0}, system=self.name) for text in texts]

    def likelihoods(self, items: Sequence[Example], done=None) -> Likelihoods | None:
        ones = np.ones(len(items))
        return Likelihoods(ones, ones, ones, ones, 0)

    def stream(self, talk: Talk, controls=None):
        yield self.reply(talk, controls).text

    def with_decoding(self, **changes: object) -> Echo:
        other = Echo()
        other.decoding = str(changes["method"])
        return other


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LISTENWELL_CARE", raising=False)
    monkeypatch.delenv("LISTENWELL_REGION", raising=False)


def test_the_system_never_sees_a_sign():
    echo = Echo()
    reply = SafetyWrapper(echo).reply(SIGN)
    assert echo.seen == []
    assert is_care(reply.text)
    assert reply.reasons == {"care": "self-harm, direct"}
    assert (reply.emotion, reply.emotions, reply.candidates, reply.system) == (None, {}, (), "echo")


def test_a_sign_in_a_situation_that_is_told_beforehand_is_heard_too():
    echo, told = Echo(), Controls(situation=SIGN)
    bot = SafetyWrapper(echo)
    assert is_care(bot.reply("hello", told).text)
    assert is_care(bot.reply(["How are you?", "hello"], told).text)
    assert is_care(bot.replies(["hello"], told)[0].text)
    assert is_care([*bot.stream("hello", told)][-1])
    assert echo.seen == []


def test_other_messages_go_to_the_system():
    reply = SafetyWrapper(Echo()).reply("I lost my job today")
    assert reply.text == "I lost my job today"
    assert reply.emotion == "sad"
    assert "care" not in reply.reasons


def test_a_batch_keeps_its_order_and_the_system_sees_only_the_rest():
    echo, ready = Echo(), []
    replies = SafetyWrapper(echo).replies(["hello there", SIGN, "it rained all day", "我不想活了"], done=ready.append)
    assert echo.seen == ["hello there", "it rained all day"]
    assert [is_care(reply.text) for reply in replies] == [False, True, False, True]
    assert [replies[0].text, replies[2].text] == echo.seen
    assert sum(ready) == 4


def test_a_batch_of_signs_alone_does_not_wake_the_system():
    echo = Echo()
    assert all(is_care(reply.text) for reply in SafetyWrapper(echo).replies([SIGN, SIGN]))
    assert echo.seen == []


def test_the_answer_is_in_the_language_of_the_sign():
    assert "program" in SafetyWrapper(Echo()).reply(SIGN).text
    assert "程序" in SafetyWrapper(Echo()).reply("我不想活了").text


def test_what_is_hinted_at_is_asked_and_what_is_said_is_answered():
    asked = SafetyWrapper(Echo()).reply("Everyone would be better off without me").text
    assert "I may be wrong" in asked
    assert "I may be wrong" not in SafetyWrapper(Echo()).reply(SIGN).text


def test_each_kind_has_its_own_words():
    texts = {
        SafetyWrapper(Echo()).reply(text).text
        for text in (SIGN, "My husband is hitting me", "I am going to stab my boss")
    }
    assert len(texts) == 3


def conversation(wrapped: SafetyWrapper, *messages: str) -> list[Reply]:
    texts: list[str] = []
    replies = []
    for message in messages:
        replies.append(wrapped.reply([*texts, message]))
        texts += [message, replies[-1].text]
    return replies


@pytest.mark.parametrize(
    "answer", ["yes", "I have the pills here", "tonight", "no one can help me with it anyway I think"]
)
def test_a_follow_up_stays_in_care_with_a_shorter_reply(answer: str):
    assert detect(answer) is None or "pills" in answer or "help" in answer
    first, second = conversation(SafetyWrapper(Echo()), SIGN, answer)
    assert second.reasons["care"].startswith("self-harm")
    assert is_care(second.text)
    assert len(second.text) < len(first.text)


def test_a_follow_up_in_chinese():
    first, second = conversation(SafetyWrapper(Echo()), "我不想活了", "嗯，药就在这里")
    assert is_care(second.text)
    assert len(second.text) < len(first.text)


@pytest.mark.parametrize(
    "answer", ["I was only joking", "thank you, I called my sister and I feel better", "谢谢，我已经打给我姐姐了"]
)
def test_relief_leaves_care(answer: str):
    echo = Echo()
    echo.languages = ("en", "zh")
    conversation(SafetyWrapper(echo), SIGN, answer)
    assert echo.seen == [answer]


def test_care_ends_some_messages_after_the_sign():
    echo = Echo()
    later = "we went to the lake with my cousins and ate far too much ice cream"
    conversation(SafetyWrapper(echo), SIGN, later, later, later, "ok")
    assert echo.seen == [later, later, later, "ok"]


def test_a_short_word_alone_is_no_follow_up():
    echo = Echo()
    SafetyWrapper(echo).reply("yes")
    assert echo.seen == ["yes"]


def test_a_graver_sign_gets_the_whole_reply():
    wrapped = SafetyWrapper(Echo())
    hinted, said = conversation(wrapped, "Everyone would be better off without me", SIGN)
    assert said.text == wrapped.reply(SIGN).text
    assert hinted.text != said.text


def test_an_earlier_sign_that_others_answered_is_still_answered_whole():
    turns = (Turn("speaker", SIGN), Turn("listener", "oh no"), Turn("speaker", "yes"))
    reply = SafetyWrapper(Echo()).reply(Dialogue("d", turns))
    assert reply.text == SafetyWrapper(Echo()).reply(SIGN).text


def test_what_the_listener_says_is_no_sign():
    echo = Echo()
    SafetyWrapper(echo).reply(["I am tired today", SIGN, "what did you say to me just then, I did not hear"])
    assert len(echo.seen) == 1


def test_measures_and_settings_are_the_systems():
    echo = Echo()
    wrapped = SafetyWrapper(echo)
    assert wrapped.name == "echo"
    assert wrapped.likelihoods([Example("a", (Turn("speaker", SIGN),))]).nll.tolist() == [1.0]
    wrapped.decoding = "beam"
    assert echo.decoding == "beam"
    with pytest.raises(AttributeError):
        _ = wrapped.nothing


def test_streams_and_other_decodings_are_cared_for():
    echo = Echo()
    wrapped = SafetyWrapper(echo)
    assert is_care(*wrapped.stream(SIGN))
    assert list(wrapped.stream("hello there")) == ["hello there"]
    other = wrapped.with_decoding(method="sample")
    assert other.decoding == "sample"
    assert is_care(other.reply(SIGN).text)


def test_what_is_asked_of_a_reply_can_be_said_by_name():
    echo = Echo()
    wrapped = SafetyWrapper(echo)
    with pytest.raises(ValueError, match="echo does not take an intent"):
        wrapped.reply("hello there", intent="consoling")
    echo.takes_label = echo.takes_positivity = True
    wrapped.reply("hello there", intent=" Consoling", positivity=0.8)
    assert echo.asked == Controls(label="consoling", positivity=0.8)
    assert list(wrapped.stream("hello there", situation="It is late.")) == ["hello there"]
    assert echo.asked == Controls(situation="It is late.")
    assert is_care(wrapped.reply("hello there", situation=SIGN).text)
    with pytest.raises(ValueError, match="did you mean"):
        wrapped.reply("hello there", intent="consolling")
    with pytest.raises(ValueError, match=r"intent: ask by name or by controls, not both"):
        wrapped.reply("hello there", Controls(emotion="sad"), intent="consoling")


def test_turns_that_can_be_read_once_alone_are_heard_and_answered():
    echo = Echo()
    assert SafetyWrapper(echo).reply(text for text in ["hello", "hi", "it rained"]).text == "it rained"
    assert is_care(SafetyWrapper(echo).reply({"role": "user", "content": text} for text in (SIGN,)).text)
    talks = (iter([text]) for text in ("hello", SIGN))
    assert [is_care(reply.text) for reply in SafetyWrapper(echo).replies(talks)] == [False, True]
    assert [*SafetyWrapper(echo).stream(iter(["hello"]))] == ["hello"]
    assert SIGN not in echo.seen


def test_a_system_that_writes_in_one_way_alone_says_so():
    echo = Echo()
    echo.decoding = None
    with pytest.raises(ValueError, match="echo writes in one way alone and cannot be given temperature"):
        SafetyWrapper(echo).reply("hello", temperature=1.0)


def test_given_resources_are_named():
    reply = SafetyWrapper(Echo(), load_resources(region="gb")).reply(SIGN)
    assert "116 123" in reply.text
    assert "999" in reply.text


def test_load_gives_a_cared_system_to_people_and_a_bare_one_to_measures(tmp_path):
    bot = made_bot()
    checkpoint.save(bot.checkpoint, tmp_path / "bot")
    wrapped = listenwell.load(tmp_path / "bot")
    assert isinstance(wrapped, SafetyWrapper)
    assert is_care(wrapped.reply(SIGN).text)
    assert wrapped.checkpoint.name == bot.name
    bare = listenwell.load(tmp_path / "bot", care=False)
    assert isinstance(bare, listenwell.Bot)
    assert "care" not in bare.reply(SIGN).reasons
    assert wrapped.reply("i lost my job today").text == bare.reply("i lost my job today").text
