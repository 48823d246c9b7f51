"""A trained model as a system: replies, explanations, streaming, likelihoods."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import listenwell
from listenwell import checkpoint, loading
from listenwell.backbones import locate as backbones
from listenwell.contract import Controls
from listenwell.data.dialogue import Dialogue, Example, Label, Turn
from listenwell.decoding import Decoding
from listenwell.labels.taxonomy import EMOTIONS
from listenwell.models import build
from listenwell.systems.base import as_context
from listenwell.systems.bot import Bot
from listenwell.systems.remote.endpoint import Endpoint
from listenwell.systems.safety import SafetyWrapper
from listenwell.text import TextConfig, train_tokenizer
from listenwell.weights import find

TEXTS = ["i lost my job today", "oh no , what happened ?", "they closed the office", "that must be hard for you ."]


def made_bot(kind: str = "word", name: str = "multi-trs", **decoding: object) -> Bot:
    torch.manual_seed(3)
    tokenizer = train_tokenizer(TEXTS * 2, TextConfig(kind=kind, size=300))
    choices = {"width": 16, "heads": 2, "feed_forward": 16}
    model = build(name, choices, tokenizer.vocabulary)
    options = Decoding(**{"max_length": 8, **decoding})  # type: ignore[arg-type]
    return Bot(checkpoint.Checkpoint(name, model, tokenizer, decoding=options))


def item(reply: str, context: str = "i lost my job", number: int = 0) -> Example:
    return Example(f"d#{number}", (Turn("speaker", context),), Turn("listener", reply), emotion=Label("sad"))


def test_a_reply_carries_its_text_the_emotion_heard_and_all_probabilities():
    reply = made_bot().reply(["I lost my job today"])
    assert isinstance(reply.text, str)
    assert set(reply.emotions) == set(EMOTIONS)
    assert reply.emotion == max(reply.emotions, key=reply.emotions.__getitem__) == next(iter(reply.emotions))
    assert math.isclose(sum(reply.emotions.values()), 1, abs_tol=1e-5)


def test_a_system_that_does_not_listen_for_emotions_names_none():
    reply = made_bot(name="trs").reply("hello")
    assert reply.emotion is None
    assert not reply.emotions


def test_one_text_a_list_and_a_dialogue_mean_the_same():
    bot = made_bot()
    dialogue = Dialogue("d", (Turn("speaker", "i lost my job"),))
    assert bot.reply("i lost my job") == bot.reply(["i lost my job"]) == bot.reply(dialogue)


def test_many_replies_equal_the_replies_one_by_one():
    bot = made_bot()
    talks = ["i lost my job", ["hello", "oh no", "they closed the office today"], "the office"]
    assert [reply.text for reply in bot.replies(talks)] == [bot.reply(talk).text for talk in talks]


def test_the_same_seed_samples_the_same_reply_and_another_seed_another():
    texts = {
        seed: made_bot(method="sample", seed=seed, max_length=20).reply("i lost my job").text for seed in (1, 2, 1, 3)
    }
    again = made_bot(method="sample", seed=1, max_length=20).reply("i lost my job").text
    assert texts[1] == again
    assert len(set(texts.values())) > 1


def test_every_turn_of_a_conversation_draws_anew_and_the_same_words_the_same():
    bot = made_bot(method="sample", max_length=20)
    talk = ["i lost my job", "oh no", "i lost my job"]
    assert bot.reply(talk) == bot.reply(talk)
    assert bot.reply(talk).text != bot.reply(talk[-1:]).text
    assert [*bot.stream(talk)][-1] == bot.reply(talk).text
    assert len({bot.reply(f"the office {'today ' * times}").text for times in range(5)}) > 1


def test_in_a_corpus_the_place_says_what_is_drawn():
    bot = made_bot(method="sample", max_length=20)
    one, other = (reply.text for reply in bot.replies(["i lost my job"] * 2))
    assert one != other
    assert bot.replies(["i lost my job"])[0].text == one
    assert bot.replies(["they closed the office", "i lost my job"])[1].text == other


def test_what_mime_has_in_mind_is_drawn_anew_at_every_turn_too(monkeypatch):
    from listenwell.models import mime

    draws, row_noise = [], mime.row_noise
    monkeypatch.setattr(mime, "row_noise", lambda rows, *rest: draws.append(tuple(rows)) or row_noise(rows, *rest))
    bot = made_bot(name="mime")
    bot.reply("i lost my job")
    [*bot.stream("i lost my job")]
    bot.reply(["i lost my job", "oh no", "they closed the office"])
    bot.replies(["i lost my job", "they closed the office"])
    first, streamed, second, corpus = draws
    assert first == streamed != second
    assert sorted(corpus) == [0, 1]


def test_beam_search_shows_its_candidates_best_first():
    reply = made_bot(method="beam", beams=4, candidates=3).reply("i lost my job")
    scores = [candidate.score for candidate in reply.candidates]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    assert reply.candidates[0].text == reply.text


def test_streaming_ends_with_the_greedy_reply():
    bot = made_bot()
    assert [*bot.stream("i lost my job")][-1] == bot.reply("i lost my job").text


def test_a_situation_that_is_told_is_the_speaker_s_first_words():
    controls = Controls(situation=" they closed the office ")
    assert as_context("i lost my job", controls) == (Turn("speaker", "they closed the office\ni lost my job"),)
    longer = as_context(["hello", "oh no", "i lost my job"], controls)
    assert [turn.text for turn in longer] == ["they closed the office\nhello", "oh no", "i lost my job"]
    begun = as_context(["what happened ?", "i lost my job"], controls)
    assert [turn.text for turn in begun] == ["what happened ?", "they closed the office\ni lost my job"]
    assert as_context("hello", Controls(situation=" ")) == as_context("hello")
    bot = made_bot(method="sample", max_length=20)
    for answer in (bot.reply, lambda *said: bot.replies([said[0]], *said[1:])[0]):
        recognised, plain = answer("i lost my job", controls), answer("i lost my job")
        assert recognised.emotions != plain.emotions
    assert [*bot.stream("i lost my job", controls)][-1] == bot.reply("i lost my job", controls).text
    corpus = Dialogue("d", (Turn("speaker", "i lost my job"),), situation="they closed the office")
    assert bot.reply(corpus) == bot.reply("i lost my job")


def test_turns_with_roles_are_the_turns_of_a_dialogue():
    turns = (Turn("speaker", "hello"), Turn("listener", "oh no"), Turn("speaker", "i lost my job"))
    chat_model = [{"role": "user" if t.speaker == "speaker" else "assistant", "content": t.text} for t in turns]
    own = [turn.to_json() for turn in turns]
    for talk in (chat_model, own, list(turns), (turn.text for turn in turns), (turn for turn in chat_model)):
        assert as_context(talk) == turns
    bot = made_bot()
    assert bot.reply(chat_model) == bot.reply(["hello", "oh no", "i lost my job"]) == bot.replies([own])[0]
    assert [*bot.stream(chat_model)][-1] == bot.reply(chat_model).text
    # Two consecutive turns of one person stay two turns: no role is guessed.
    assert [turn.speaker for turn in as_context([*chat_model, chat_model[0]])][-2:] == ["speaker", "speaker"]


@pytest.mark.parametrize(
    ("talk", "error", "message"),
    [
        (b"hello", TypeError, r"a conversation is a text, a list of turns.*found bytes \(b'hello'\)"),
        (None, TypeError, "a conversation is a text.*found NoneType"),
        (5, TypeError, r"found int \(5\)"),
        ({"role": "user", "content": "hi"}, TypeError, "a list of turns.*found dict"),
        (["hello", None, "hi"], TypeError, "turn 2 of 3 is NoneType, expected a text, or"),
        ([b"hi"], TypeError, "turn 1 of 1 is bytes"),
        (["hi", {"role": "user", "content": "hi"}], TypeError, "turn 1 of 2 is a text among turns with roles"),
        ([{"role": "user", "content": 7}], TypeError, r"turn 1 of 1: its content is int \(7\), expected a text"),
        ([{"role": "usr", "content": "hi"}], ValueError, "turn 1 of 1 has the role 'usr', expected one of user, assis"),
        ([{"content": "hi"}], ValueError, "has the role None"),
        ([{"role": "system", "content": "be kind"}], ValueError, "turn 1 of 1 has the role 'system'.*situation="),
        ([{"role": "assistant", "content": "hi"}], ValueError, "listener's own"),
        (iter(()), ValueError, "at least one text"),
    ],
)
def test_turns_that_are_none_are_named_with_their_place(talk, error, message):
    with pytest.raises(error, match=message):
        made_bot().reply(talk)


@pytest.mark.parametrize(
    ("talks", "error", "message"),
    [
        ("hello", TypeError, r"replies\(\) takes a list of conversations, found str; reply\(\) takes one"),
        ([{"role": "user", "content": "hi"}], TypeError, "conversation 1 is a single turn"),
        (["hello", ["hi", None]], TypeError, "conversation 2: turn 2 of 2 is NoneType"),
        (["hello", []], ValueError, "conversation 2: .*at least one text"),
    ],
)
def test_of_many_conversations_the_one_that_is_none_is_named(talks, error, message):
    for bot in (made_bot(), SafetyWrapper(made_bot())):
        with pytest.raises(error, match=message):
            bot.replies(talks)


def test_how_one_reply_is_written_can_be_said_by_name_and_the_system_stays_as_it_is():
    bot = made_bot(max_length=20)
    before = bot.decoding
    sampled = made_bot(max_length=20, method="sample", seed=3, temperature=2.0)
    for system in (bot, SafetyWrapper(bot)):
        wanted = {"method": "sample", "seed": 3, "temperature": 2.0}
        assert system.reply("i lost my job", **wanted).text == sampled.reply("i lost my job").text
        talks = ["i lost my job", "the office"]
        several = [reply.text for reply in sampled.replies(talks)]
        assert [reply.text for reply in system.replies(talks, **wanted)] == several
        assert [*system.stream("i lost my job", **wanted)][-1] == sampled.reply("i lost my job").text
        assert len(system.reply("hello", method="beam", beams=3, candidates=2).candidates) == 2
    assert bot.decoding == before


def test_an_option_of_one_method_alone_means_that_method():
    bot = made_bot(max_length=20)
    assert bot.reply("hello", temperature=3.0, seed=5) == bot.reply("hello", method="sample", temperature=3.0, seed=5)
    assert len(bot.reply("hello", beams=3, candidates=3).candidates) == 3


def test_the_names_that_a_reply_takes_are_those_of_its_decoding():
    from dataclasses import fields

    from listenwell.systems.controls import DecodingOptions
    from listenwell.systems.house.options import HouseDecoding

    assert [*DecodingOptions.__annotations__] == [field.name for field in fields(HouseDecoding)]


@pytest.mark.parametrize(
    ("named", "error", "message"),
    [
        ({"temprature": 1}, TypeError, "unknown option of a reply 'temprature'; did you mean 'temperature'"),
        ({"temperature": "hot"}, ValueError, "temperature is 'hot', expected a finite number above 0"),
        (
            {"rerank": {"plan": 1}},
            ValueError,
            "this system's decoding has no rerank; its options are method, max_length",
        ),
        ({"candidates": 3}, ValueError, r"candidates is 3, expected 1 for method greedy \(for more: sample or beam\)"),
        ({"intent": "consolling"}, ValueError, "unknown label 'consolling'; did you mean 'consoling'"),
        ({"intent": 3}, TypeError, "intent is 3, expected the name of a label"),
        ({"positivity": "much"}, ValueError, "positivity is a number from 0 to 1, found 'much'"),
        ({"situation": 3}, TypeError, "situation is 3, expected a text"),
        ({"controls": "consoling"}, TypeError, "controls are 'consoling', expected Controls; or ask by name"),
    ],
)
def test_what_cannot_be_asked_of_a_reply_is_told_at_once(named, error, message):
    bot = made_bot()
    for system in (bot, SafetyWrapper(bot)):
        for ask in (system.reply, system.stream, lambda talk, system=system, **named: system.replies([talk], **named)):
            with pytest.raises(error, match=message):
                ask("hello", **named)


@pytest.mark.parametrize(("talk", "message"), [([], "at least one text"), (["  "], "every turn is empty")])
def test_nothing_to_reply_to_is_an_error(talk: list[str], message: str):
    with pytest.raises(ValueError, match=message):
        made_bot().reply(talk)


def test_a_dialogue_that_ends_with_the_listener_has_nothing_to_reply_to():
    dialogue = Dialogue("d", (Turn("speaker", "hello"), Turn("listener", "hi")))
    with pytest.raises(ValueError, match="listener's own"):
        made_bot().reply(dialogue)


def test_words_nobody_has_seen_are_replied_to():
    assert isinstance(made_bot().reply("zyzzyva qwxz \U0001f600").text, str)


def test_likelihoods_count_tokens_words_and_unknown_words():
    likelihoods = made_bot().likelihoods([item("that must be hard ."), item("my zebra , my zebra and a gnu", number=1)])
    assert likelihoods is not None
    assert likelihoods.tokens.tolist() == [6, 9]  # including the end token
    assert likelihoods.words.tolist() == [5, 8]
    assert likelihoods.unknown.tolist() == [0, 5]
    assert likelihoods.unseen_types == 4  # zebra, and, a, gnu
    assert np.all(likelihoods.nll > 0)


def test_sub_words_know_every_word():
    likelihoods = made_bot("bpe").likelihoods([item("my zebra")])
    assert likelihoods is not None
    assert likelihoods.unknown.tolist() == [0]
    assert likelihoods.words.tolist() == [2]
    assert likelihoods.tokens[0] > 3


@pytest.mark.parametrize("name", ["multi-trs", "mime", "meed2"])
def test_in_half_the_bits_likelihoods_are_nearly_the_same_and_words_are_chosen_in_full_precision(name):
    items = [item("that must be hard ."), item("what happened ?", "they closed the office", number=1)]
    bot = made_bot(name=name)
    exact = bot.likelihoods(items)
    bot.precision = "bf16"
    likelihoods = bot.likelihoods(items)
    assert likelihoods.nll == pytest.approx(exact.nll, rel=0.01)
    assert not np.array_equal(likelihoods.nll, exact.nll)
    dtypes = set()
    step = bot.model.step
    bot.model.step = lambda *given: (dtypes.add((likelihoods := step(*given))[0].dtype), likelihoods)[1]
    assert isinstance(bot.reply("i lost my job").text, str)
    assert dtypes == {torch.float32}


def test_guidance_is_for_replies_that_were_asked_for_a_label():
    plain, guided = made_bot(name="meed2"), made_bot(name="meed2", guidance=20.0)
    torch.nn.init.normal_(plain.model.input.labels.weight)  # type: ignore[union-attr, arg-type]
    guided.model.load_state_dict(plain.model.state_dict())
    assert guided.reply("i lost my job") == plain.reply("i lost my job")
    controls = Controls(label="consoling")
    assert guided.reply("i lost my job", controls).text != plain.reply("i lost my job", controls).text
    assert guided.reply("i lost my job", controls).label == "consoling"
    assert guided.reply("i lost my job", controls).reasons == plain.reply("i lost my job", controls).reasons
    assert [*guided.stream("i lost my job", controls)][-1] == guided.reply("i lost my job", controls).text


def test_likelihoods_do_not_depend_on_the_gold_emotion():
    bot = made_bot()
    one, other = item("that must be hard ."), item("that must be hard .")
    other = Example(other.id, other.context, other.reply, emotion=Label("joyful"), situation="I won")
    assert bot.likelihoods([one]).nll == bot.likelihoods([other]).nll  # type: ignore[union-attr]


def test_a_saved_bot_comes_back_the_same(tmp_path):
    bot = made_bot()
    checkpoint.save(bot.checkpoint, tmp_path / "bot")
    again = listenwell.load(tmp_path / "bot")
    assert again.reply("i lost my job") == bot.reply("i lost my job")
    one, two = bot.likelihoods([item("hard")]), again.likelihoods([item("hard")])
    assert one.nll.tolist() == two.nll.tolist()  # type: ignore[union-attr]


def test_in_the_mode_stream_one_reply_is_written_and_it_can_be_shown_as_it_grows(tmp_path):
    checkpoint.save(made_bot(method="beam", beams=3, candidates=2).checkpoint, tmp_path / "bot")
    bot = listenwell.load(tmp_path / "bot", mode="stream")
    assert len(listenwell.load(tmp_path / "bot").reply("i lost my job").candidates) == 2
    assert len(bot.reply("i lost my job").candidates) == 1
    assert [*bot.stream("i lost my job")][-1] == bot.reply("i lost my job").text
    with pytest.raises(ValueError, match="unknown mode 'streem'; did you mean 'stream'"):
        listenwell.load(tmp_path / "bot", mode="streem")  # type: ignore[call-overload]


def test_who_names_no_system_talks_to_the_house_where_it_is_at_hand(monkeypatch):
    pytest.importorskip("peft")
    pytest.importorskip("transformers")
    names = {"multi-trs": Path("zoo/multi-trs"), "trs": Path("zoo/trs")}
    monkeypatch.setattr(loading, "shipped", lambda: names)
    assert loading.default_system() == "multi-trs"
    names["house"] = Path("zoo/house")
    monkeypatch.setattr(backbones, "at_hand", lambda name: True)
    assert loading.default_system() == "house"
    # What cannot be run is not a default: no language model, no encoder, no library.
    for lacking in ("smollm2", "minilm"):
        monkeypatch.setattr(backbones, "at_hand", lambda name, lacking=lacking: name != lacking)
        assert loading.default_system() == "multi-trs"
    monkeypatch.setattr(backbones, "at_hand", lambda name: True)
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    assert loading.default_system() == "multi-trs"


def test_an_endpoint_is_alone_where_the_house_cannot_hear(monkeypatch):
    monkeypatch.setattr(backbones, "at_hand", lambda name: False)
    bare = listenwell.load("openai:some", care=False, base_url="http://localhost:1/v1")
    assert isinstance(bare, Endpoint)


def test_half_a_surrogate_is_no_text_and_harms_nobody():
    talk = ["hi \ud800 there", "hello", "i lost my job"]
    assert [turn.text for turn in as_context(talk)] == ["hi ? there", "hello", "i lost my job"]
    assert SafetyWrapper(made_bot()).reply("i lost \udcff my job").text == made_bot().reply("i lost ? my job").text


def test_a_name_is_a_path_then_the_cache_then_what_ships(tmp_path, monkeypatch):
    monkeypatch.setenv("LISTENWELL_CACHE", str(tmp_path / "cache"))
    checkpoint.save(made_bot().checkpoint, tmp_path / "cache" / "my-bot")
    checkpoint.save(made_bot().checkpoint, tmp_path / "run" / "best")
    assert find("my_bot") == tmp_path / "cache" / "my-bot"
    assert find(tmp_path / "run") == tmp_path / "run" / "best"
    with pytest.raises(ValueError, match="did you mean 'my-bot'"):
        find("my-bto")
    with pytest.raises(ValueError, match="no trained system there"):
        find(tmp_path)


def test_shipped_systems_load_and_answer_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bot = listenwell.load("multi-trs")
    reply = bot.reply(["I lost my job today"])
    assert len(reply.text.split()) >= 2
    assert reply.emotion in EMOTIONS
