"""A conversation without a terminal: saying, undoing, retrying, switching, exporting."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest

from listenwell.backbones import locate
from listenwell.classifiers.labeller import Labeller
from listenwell.contract import Controls
from listenwell.data.dialogue import Label
from listenwell.decoding import Decoding
from listenwell.systems.bot import Bot
from listenwell.systems.conversation import Conversation, Exchange, default_labeller, summary
from listenwell.systems.reply import Reply
from listenwell.systems.safety import SafetyWrapper
from test_system import made_bot

SIGN = "I want to kill myself"


class Scripted:
    """A system that always gives the same reply and records its inputs."""

    name = "scripted"

    def __init__(self, text: str = "I see", **explanation: object) -> None:
        self.text, self.explanation = text, explanation
        self.calls: list[tuple[list[str], Controls | None]] = []

    def reply(self, talk: list[str], controls: Controls | None = None) -> Reply:
        self.calls.append((talk, controls))
        return Reply(self.text, system=self.name, **self.explanation)  # type: ignore[arg-type]


class Streaming(Scripted):
    def stream(self, talk: list[str], controls: Controls | None = None) -> Iterator[str]:
        yield "I"
        yield "I see"
        return self.reply(talk, controls)


class Seeded(Scripted):
    """A system whose reply is its seed."""

    def __init__(self, decoding: Decoding, known: int = 1000) -> None:
        super().__init__()
        self.decoding, self.known = decoding, known
        self.used = [decoding]

    def with_decoding(self, **changes: object) -> Seeded:
        other = Seeded(Decoding(**{**vars(self.decoding), **changes}), self.known)  # type: ignore[arg-type]
        self.used.append(other.decoding)
        return other

    def reply(self, talk: list[str], controls: Controls | None = None) -> Reply:
        return Reply(f"{self.decoding.method} {self.decoding.seed % self.known}", system=self.name)


class FixedLabeller:
    def label(self, texts: list[str]) -> list[Label]:
        return [Label("sad", "machine", 0.314) for _ in texts]


def test_every_message_is_answered_with_all_that_was_said_before():
    system = Scripted()
    conversation = Conversation(system)
    assert conversation.say("hello").text == "I see"
    conversation.say("again")
    assert system.calls[-1][0] == ["hello", "I see", "again"]
    assert conversation.texts == ["hello", "I see", "again", "I see"]


def test_undo_takes_back_the_last_exchange():
    conversation = Conversation(Scripted())
    conversation.say("hello")
    conversation.say("oops")
    assert conversation.undo().message == "oops"
    assert conversation.texts == ["hello", "I see"]
    conversation.undo()
    with pytest.raises(ValueError, match="nothing to undo"):
        conversation.undo()


def test_retry_replaces_the_reply_with_one_of_another_seed_each_time():
    conversation = Conversation(Seeded(Decoding(method="sample", seed=7)))
    conversation.say("hello")
    replies = {conversation.exchanges[-1].reply.text, conversation.retry().text, conversation.retry().text}
    assert len(replies) == 3
    assert all(reply.startswith("sample") for reply in replies)
    assert [exchange.message for exchange in conversation.exchanges] == ["hello"]
    with pytest.raises(ValueError, match="nothing to retry"):
        Conversation(Scripted()).retry()


@pytest.mark.parametrize("method", ["greedy", "beam"])
def test_a_retry_of_a_search_samples_since_a_search_finds_the_same_again(method: str):
    bot = made_bot(method=method)
    conversation = Conversation(SafetyWrapper(bot))
    first = conversation.say("i lost my job today").text
    assert conversation.retry().text != first
    assert bot.decoding.method == method  # the next message is answered as usual


def test_a_retry_that_finds_nothing_new_says_so():
    conversation = Conversation(Seeded(Decoding(method="sample"), known=1))
    conversation.say("hello")
    assert not conversation.exchanges[-1].repeats
    conversation.retry()
    assert conversation.exchanges[-1].repeats


def test_a_server_is_not_sent_a_seed_for_a_retry():
    system = Seeded(Decoding(method="sample"))
    system.name = "openai:small"
    conversation = Conversation(system)
    conversation.say("hello")
    conversation.retry()
    assert all(decoding.seed == 0 for decoding in system.used)


def test_a_retry_hears_what_came_before_and_not_the_reply_it_replaces():
    system = Streaming()
    conversation = Conversation(system)
    conversation.say("hello")
    conversation.say("again")
    conversation.retry()
    [*conversation.stream_retry()]
    assert [talk for talk, _ in system.calls[-2:]] == [["hello", "I see", "again"]] * 2
    assert len(conversation.exchanges) == 2


def test_a_retry_that_fails_leaves_the_reply_as_it_was():
    conversation = Conversation(Scripted())
    conversation.say("hello")

    def broken(talk: object, controls: object = None) -> Reply:
        raise KeyboardInterrupt

    conversation.system.reply = broken  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        conversation.retry()
    assert conversation.texts == ["hello", "I see"]


def test_words_of_care_stay_in_a_retry():
    conversation = Conversation(SafetyWrapper(Scripted()))
    words = conversation.say(SIGN).text
    assert conversation.exchanges[-1].is_care
    assert conversation.retry().text == words


def test_a_reply_is_streamed_where_it_can_be():
    conversation = Conversation(Streaming())
    assert conversation.streams
    assert [*conversation.stream("hello")] == ["I", "I see"]
    assert conversation.texts == ["hello", "I see"]
    assert not Conversation(Scripted()).streams
    assert not Conversation(made_bot(method="beam")).streams
    assert not Conversation(made_bot(method="sample", candidates=2)).streams


@pytest.mark.parametrize("name", ["multi-trs", "meed2"])
def test_a_streamed_reply_is_explained_like_one_that_is_not(name: str):
    bot = made_bot(name=name)
    streamed, whole = Conversation(SafetyWrapper(bot)), Conversation(bot)
    assert streamed.streams
    shown = [*streamed.stream("i lost my job")]
    reply = whole.say("i lost my job")
    assert shown[-1] == reply.text
    for part in ("text", "emotion", "emotions", "label", "reasons", "system"):
        assert getattr(streamed.exchanges[-1].reply, part) == getattr(reply, part)
    assert streamed.exchanges[-1].reply.candidates == ()


def test_a_crisis_is_answered_with_care_in_a_stream_too():
    conversation = Conversation(SafetyWrapper(Streaming()))
    [*conversation.stream(SIGN)]
    assert conversation.exchanges[-1].is_care


def test_a_situation_is_told_with_every_turn_and_exported():
    system = Scripted()
    conversation = Conversation(system, situation="They closed the office.")
    conversation.say("hello")
    conversation.say("again")
    assert [controls for _, controls in system.calls] == [Controls(situation="They closed the office.")] * 2
    assert conversation.to_dialogue("talk").situation == "They closed the office."
    assert "They closed the office." in conversation.to_markdown()


def test_another_system_is_not_asked_for_what_it_cannot_heed():
    first, second, third = Scripted(), Scripted(), Scripted()
    first.takes_label = first.takes_positivity = second.takes_label = True  # type: ignore[attr-defined]
    conversation = Conversation(first, intent="consoling", positivity=0.8)
    assert conversation.switch(second) == ["positivity"]
    assert conversation.controls == Controls(label="consoling")
    assert conversation.switch(third) == ["intent"]
    assert conversation.controls is None


def test_a_dialogue_record_has_the_turns_their_labels_and_who_talked():
    conversation = Conversation(Scripted(label="wishing"))
    conversation.say("hello")
    conversation.system = Scripted("")
    conversation.system.name = "other"
    conversation.say("again")
    dialogue = conversation.to_dialogue("mine")
    assert [(turn.speaker, turn.text) for turn in dialogue.turns] == [
        ("speaker", "hello"), ("listener", "I see"), ("speaker", "again"), ("listener", "…"),
    ]  # fmt: skip
    assert dialogue.turns[1].label == Label("wishing", by="machine")
    assert dialogue.source == "chat with scripted and other"


def test_a_transcript_reads_well_and_shows_text_as_it_was_said():
    conversation = Conversation(Scripted("*oh* [no]", emotion="sad", emotions={"sad": 0.5}, label="consoling"))
    conversation.say("# first\n\n1. second <b>")
    assert conversation.to_markdown(datetime(2024, 5, 1, 12, 30)) == "\n".join(
        [
            "# Conversation with scripted\n",
            "2024-05-01 12:30\n",
            "**You**\n",
            r"> \# first  ",
            ">",
            r"> 1\. second \<b>" + "\n",
            "**scripted**\n",
            r"> \*oh\* \[no\]" + "\n",
            "*heard: sad (50 %) · does: consoling*\n",
        ]
    )


def test_under_a_reply_stands_what_was_heard_and_what_it_does():
    reasons = {"heard": ["sad", "questioning", "faithful"], "probability": 0.3}
    reply = Reply("I hope so", emotion="sad", emotions={"sad": 0.7, "afraid": 0.3}, label="consoling", reasons=reasons)
    assert summary(Exchange("hi", reply)) == "heard: sad (70 %) · does: consoling (30 %)"


def test_a_system_that_chooses_no_intent_still_shows_what_it_heard():
    bot = made_bot()
    conversation = Conversation(bot)
    reply = conversation.say("i lost my job")
    assert reply.label is None
    assert summary(conversation.exchanges[-1]).startswith(f"heard: {reply.emotion} (")


def test_for_a_system_that_names_no_emotion_a_classifier_hears_and_is_named():
    for system in (made_bot(name="trs"), Scripted(label="wishing")):
        conversation = Conversation(system, labeller=FixedLabeller)  # type: ignore[arg-type]
        conversation.say("i lost my job")
        assert summary(conversation.exchanges[-1]).startswith(
            f"heard: sad (31 %, by the classifier, not by {system.name})"
        )


def test_nothing_is_shown_as_heard_where_nothing_hears():
    conversation = Conversation(made_bot(name="trs"))
    conversation.say("i lost my job")
    assert summary(conversation.exchanges[-1]) == ""


def test_the_classifier_is_not_downloaded(monkeypatch):
    monkeypatch.setattr(locate, "at_hand", lambda name: False)
    monkeypatch.setattr(Labeller, "load", lambda: pytest.fail("it would be downloaded"))
    assert default_labeller.__wrapped__() is None


def test_the_classifier_is_not_loaded_for_a_system_that_says_what_it_hears_nor_for_care():
    def load() -> None:
        raise AssertionError("it is not needed")

    for system, text in ((made_bot(), "hello"), (SafetyWrapper(Scripted()), SIGN)):
        conversation = Conversation(system, labeller=load)
        conversation.say(text)
        assert conversation.exchanges[-1].label is None


@pytest.mark.parametrize("method", ["greedy", "beam"])
def test_a_system_with_a_labeller_shows_what_that_hears_in_the_last_turn(method: str, tiny_classifier):
    ckpt = made_bot(name="meed2", method=method).checkpoint
    ckpt.parts = {"labeller": tiny_classifier()}
    conversation = Conversation(Bot(ckpt))
    for text in ("i lost my job today", "they closed the office"):
        reply = conversation.say(text)
        (recognised,) = Labeller(ckpt.parts["labeller"]).label([text])
        chance = 100 * reply.reasons["probability"]
        shown = summary(conversation.exchanges[-1])
        assert shown == f"heard: {recognised.name} · does: {reply.label} ({chance:.0f} %)"
    conversation.set_intent("consoling")
    conversation.say("yes")
    assert "· does: consoling (" in summary(conversation.exchanges[-1])
