"""A system that writes backwards: from a listener's text to what it may reply to."""

import io
import json
from dataclasses import replace

import pytest

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.cli import main
from listenwell.data.batching import EncodingConfig
from listenwell.data.dialogue import Dialogue, Turn
from listenwell.data.sources import jsonl
from listenwell.decoding import Decoding
from listenwell.models import MODELS, Entry, trs
from listenwell.notices import SafetyWarning
from listenwell.systems.bot import Bot
from listenwell.systems.safety import SafetyWrapper
from listenwell.systems.safety.status import warn_of_languages

SAID = "I am so sorry to hear that."


class Backward(trs.Trs):
    """Reads a reply the way multi-trs reads a context."""

    directions = ("forward", "backward")

    def understand(self, batch, controls=None, direction="forward", generator=None):
        if direction == "backward":
            assert batch.context is None
            batch = replace(batch, context=batch.reply.as_source(self.vocabulary.ctx, self.vocabulary.end))
        return super().understand(batch, controls, direction, generator)


@pytest.fixture
def known(monkeypatch):
    monkeypatch.setattr(trs, "Backward", Backward, raising=False)
    monkeypatch.setitem(MODELS, "both-ways", Entry("listenwell.models.trs", "Backward", "", "", {"emotion": True}))


@pytest.fixture
def bot(known, tiny_model, tokenizer):
    return Bot(Checkpoint("both-ways", tiny_model("both-ways"), tokenizer, EncodingConfig(), Decoding(max_length=8)))


@pytest.fixture
def forward(tiny_model, tokenizer):
    return Bot(Checkpoint("multi-trs", tiny_model(), tokenizer))


def test_one_listener_text_is_answered_backwards_however_it_is_given(bot):
    reply = bot.reply(SAID, direction="backward")
    assert reply.text
    assert reply.emotions != bot.reply(SAID).emotions  # the speaker is encoded too
    for talk in ([SAID], [{"role": "assistant", "content": SAID}], Dialogue("d", (Turn("listener", SAID),))):
        assert bot.reply(talk, direction="backward") == reply
    assert bot.replies([SAID, "why?"], direction="backward")[0].text == reply.text
    *_, last = bot.stream(SAID, direction="backward")
    assert last == reply.text


def test_more_than_one_turn_is_refused_with_a_reason(bot):
    with pytest.raises(ValueError, match="backward takes one listener text, found 2 turns"):
        bot.reply(["hello", SAID], direction="backward")
    with pytest.raises(ValueError, match="conversation 2: backward takes one"):
        bot.replies([SAID, ["hello", SAID]], direction="backward")


def test_a_system_that_cannot_says_so_and_names_those_that_can(known, forward):
    with pytest.raises(ValueError, match=r"multi-trs does not write backward.*; dual-emp, both-ways can"):
        forward.reply(SAID, direction="backward")
    with pytest.raises(ValueError, match="unknown direction 'back'; did you mean 'backward'"):
        forward.reply(SAID, direction="back")
    assert forward.reply("hello", direction="forward") == forward.reply("hello")


@pytest.mark.filterwarnings("ignore::listenwell.notices.SafetyWarning")
def test_care_hears_what_is_read_backwards_too(bot):
    cared = SafetyWrapper(bot)
    assert cared.reply(SAID, direction="backward") == bot.reply(SAID, direction="backward")
    assert "care" in cared.reply("I want to die", direction="backward").reasons
    replies = cared.replies(["I want to die", SAID], direction="backward")
    assert "care" in replies[0].reasons
    assert "care" not in replies[1].reasons
    *_, last = cared.stream(SAID, direction="backward")
    assert last == bot.reply(SAID, direction="backward").text


def test_generate_writes_backwards_from_lines_and_from_a_corpus(bot, tmp_path, monkeypatch, capsys):
    checkpoint.save(bot.checkpoint, tmp_path / "saved")
    command = ["generate", str(tmp_path / "saved"), "--direction", "backward"]
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{SAID}\n"))
    main(command)
    record = json.loads(capsys.readouterr().out)
    assert record["context"] == [SAID]
    assert record["text"] == bot.replies([SAID], direction="backward")[0].text
    dialogue = Dialogue("d", (Turn("speaker", "I lost."), Turn("listener", SAID)), split="test")
    jsonl.write([dialogue], tmp_path / "corpus.jsonl")
    main([*command, "--data", str(tmp_path / "corpus.jsonl")])
    assert json.loads(capsys.readouterr().out) == {**record, "id": "d#1", "reference": "I lost."}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(["hello", SAID])))
    with pytest.raises(SystemExit, match="line 1: 2 texts, expected one"):
        main(command)


@pytest.mark.filterwarnings("ignore::listenwell.notices.SafetyWarning")
def test_care_says_where_a_system_speaks_a_language_that_it_does_not_know(forward):
    chinese = Bot(replace(forward.checkpoint, meta={"languages": ["zh", "de"]}))
    assert (forward.languages, SafetyWrapper(chinese).languages) == (("en",), ("zh", "de"))
    with pytest.warns(SafetyWarning, match="crisis care knows en and zh, but a-system speaks fr"):
        warn_of_languages("a-system", ["en", "fr"])
