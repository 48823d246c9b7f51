"""Turns labelled by one classifier: each text once, with the same label in training, evaluation and conversation."""

import sys
from types import SimpleNamespace

import pytest
import torch

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.classifiers import label_cache
from listenwell.classifiers.label_cache import (
    LABELLER,
    CachedLabeller,
    cached_labeller,
    fingerprint,
    label_all,
    label_contexts,
    labelled_with,
)
from listenwell.contract import Controls
from listenwell.data.batching import EncodingConfig
from listenwell.data.dialogue import Dialogue, Example, Label, Turn
from listenwell.labels.sets import EMOTION_INTENT
from listenwell.labels.taxonomy import LABELS
from listenwell.systems.bot import Bot


class Counting:
    """Labels a text by its length and records its inputs."""

    def __init__(self, part=None, labels=EMOTION_INTENT):
        self.given = []

    def label(self, texts):
        self.given += texts
        return [Label(LABELS[len(text) % 41], "machine", 0.75) for text in texts]


@pytest.fixture
def faked(monkeypatch):
    """Replaces the real classifier wherever a checkpoint's labeller is created."""
    monkeypatch.setitem(sys.modules, "listenwell.classifiers.labeller", SimpleNamespace(Labeller=Counting))


def item(*context, reply=None, label=None):
    turns = tuple(Turn("speaker", text, Label("proud")) for text in context)
    return Example("d#1", turns, None if reply is None else Turn("listener", reply, label and Label(label)))


def names(turns):
    return [turn.label and turn.label.name for turn in turns]


def test_every_turn_of_a_context_is_labelled_anew_and_each_text_once():
    labeller = Counting()
    labelled = label_contexts([item("a", "bb", reply="c", label="sad"), item("a")], labeller)
    assert labeller.given == ["a", "bb"]
    assert names(labelled[0].context) == [LABELS[1], LABELS[2]]
    assert labelled[0].context[0].label == Label(LABELS[1], "machine", 0.75)
    assert labelled[0].reply.label == Label("sad")
    assert names(labelled[1].context) == [LABELS[1]]
    assert label_contexts([], labeller) == []


def test_for_learning_a_reply_keeps_the_label_of_its_corpus_and_gets_one_where_it_has_none():
    labelled = label_all([item("a", reply="bb", label="consoling"), item("a", reply="ccc")], Counting())
    assert [one.reply.label.name for one in labelled] == ["consoling", LABELS[3]]
    assert names(labelled[0].context) == [LABELS[1]]
    assert label_all([item("a")], Counting())[0].reply is None


def test_the_neutral_of_another_label_set_is_not_taken_for_ours():
    theirs = [item("a", reply="bb", label="neutral"), item("a", reply="bb", label="joy")]
    assert [one.reply.label.name for one in label_all(theirs, Counting())] == [LABELS[2]] * 2
    assert not labelled_with(EMOTION_INTENT, (one.reply for one in theirs))
    ours = [*theirs[:1], item("a", reply="b", label="joyful")]
    assert [one.reply.label.name for one in label_all(ours, Counting())] == ["neutral", "joyful"]
    assert labelled_with(EMOTION_INTENT, (one.reply for one in ours))
    assert not labelled_with(EMOTION_INTENT, [None, Turn("listener", "x")])


# What is cached


def test_what_was_labelled_once_is_never_labelled_again(tmp_path, monkeypatch):
    monkeypatch.setattr(label_cache, "CHUNK", 2)
    progress = []

    def begin(name, total):
        progress.append(total)
        return progress.append

    path = tmp_path / "labels" / "x.jsonl"
    first = CachedLabeller(Counting(), path, begin)
    labels = first.label(["a", "bb", "a", "ccc"])
    assert [label.name for label in labels] == [LABELS[1], LABELS[2], LABELS[1], LABELS[3]]
    assert first.labeller.given == ["a", "bb", "ccc"]
    assert progress == [3, 2, 1]
    again = CachedLabeller(Counting(), path, begin)
    assert again.label(["ccc", "a"]) == [labels[3], labels[0]]
    assert again.labeller.given == []
    assert progress == [3, 2, 1]


def test_a_line_cut_in_two_is_labelled_again(tmp_path):
    path = tmp_path / "x.jsonl"
    CachedLabeller(Counting(), path).label(["a", "bb"])
    path.write_text(path.read_text()[:-9])
    again = CachedLabeller(Counting(), path)
    assert [label.name for label in again.label(["a", "bb"])] == [LABELS[1], LABELS[2]]
    assert again.labeller.given == ["bb"]


def test_where_nothing_can_be_kept_the_labels_are_given_all_the_same(tmp_path):
    (tmp_path / "labels").write_text("a file where a folder should be")
    assert CachedLabeller(Counting(), tmp_path / "labels" / "x.jsonl").label(["a"])[0].name == LABELS[1]


def test_without_a_file_labels_are_remembered_in_memory_and_not_for_ever(monkeypatch):
    monkeypatch.setattr(label_cache, "MOST", 3)
    labeller = CachedLabeller(Counting())
    texts = ["a", "bb", "ccc", "dddd"]
    assert [label.name for _ in range(2) for label in labeller.label(texts[:2])] == [LABELS[1], LABELS[2]] * 2
    assert labeller.labeller.given == texts[:2]
    for _ in range(2):  # when there are too many entries, it starts over
        assert [label.name for label in labeller.label(texts)] == [LABELS[number] for number in (1, 2, 3, 4)]
    assert labeller.labeller.given == [*texts, *texts]


def test_other_weights_have_another_memory(tiny_model, tokenizer):
    one, same, other = (Checkpoint("trs", tiny_model("trs"), tokenizer) for _ in range(3))
    with torch.no_grad():
        other.model.words.bias[0] += 1
    assert fingerprint(one) == fingerprint(same) != fingerprint(other)


# A system with a labeller


@pytest.fixture
def meed2(tiny_model, tokenizer, faked):
    labeller = Checkpoint("trs", tiny_model("trs"), tokenizer)
    model = tiny_model("meed2", predictor_layers=1)
    return Checkpoint("meed2", model, tokenizer, EncodingConfig(separators=True), parts={LABELLER: labeller})


def test_a_bot_hears_each_turn_and_tells_what_it_heard_and_does(meed2):
    bot = Bot(meed2)
    talk = ["I lost my keys", "Oh no?", "Yes, at home"]
    reply = bot.reply(talk)
    assert bot.labeller.labeller.given == talk
    labels = [LABELS[len(text)] for text in talk]
    assert reply.reasons["heard"] == labels
    assert reply.emotion == labels[-1]
    assert reply.label == reply.reasons["does"]
    assert not reply.emotions  # it names the emotion of a turn, without probabilities of all 32
    requested = bot.reply(talk, Controls(label="consoling"))
    assert requested.label == requested.reasons["does"] == "consoling"
    assert bot.with_decoding(max_length=3).labeller is bot.labeller


def test_a_bot_labels_no_turn_twice_whatever_it_is_asked_for(meed2):
    bot = Bot(meed2)
    context = (Turn("speaker", "I lost my keys"), Turn("listener", "Oh no?"), Turn("speaker", "Yes"))
    items = [Example("d#1", context, Turn("listener", "Where?", Label("questioning")))]
    bot.replies([Dialogue("d", context)])
    bot.replies([Dialogue("d", context)], Controls(label="consoling"))
    bot.likelihoods(items)
    bot.oracle_likelihoods(items)
    assert bot.labeller.labeller.given == [turn.text for turn in context]


def test_an_intent_that_is_heard_is_no_emotion(meed2):
    reply = Bot(meed2).reply("x" * 35)
    assert reply.reasons["heard"] == [LABELS[35]]
    assert reply.emotion is None


def test_a_corpus_s_own_labels_of_a_context_are_never_heard(meed2):
    bot = Bot(meed2)
    bare = Dialogue("d", (Turn("speaker", "I lost my keys"),))
    gold = Dialogue("d", (Turn("speaker", "I lost my keys", Label("joyful")),))
    assert bot.reply(bare) == bot.reply(gold)
    items = [Example("d#1", dialogue.turns, Turn("listener", "Oh no")) for dialogue in (bare, gold)]
    one, other = bot.likelihoods(items).nll
    assert one == other


def test_the_oracle_is_told_the_reply_s_label_and_nobody_else(meed2, tiny_model, tokenizer):
    bot = Bot(meed2)
    context = (Turn("speaker", "I lost my keys"),)
    items = [Example("d#1", context, Turn("listener", "Oh no", Label(name))) for name in ("sad", "wishing")]
    one, other = bot.oracle_likelihoods(items).nll
    assert one != other
    assert len(set(bot.likelihoods(items).nll.tolist())) == 1
    assert Bot(Checkpoint("trs", tiny_model("trs"), tokenizer)).oracle_likelihoods(items) is None
    assert Bot(Checkpoint("meed2-plain", tiny_model("meed2-plain"), tokenizer)).oracle_likelihoods(items) is None


def test_the_labeller_travels_with_the_system(meed2, tmp_path):
    checkpoint.save(meed2, tmp_path / "bot")
    again = checkpoint.load(tmp_path / "bot")
    assert fingerprint(again.parts[LABELLER]) == fingerprint(meed2.parts[LABELLER])
    talk = ["I lost my keys", "Oh no?", "Yes, at home"]
    assert Bot(again).reply(talk) == Bot(meed2).reply(talk)


def test_the_real_classifier_is_a_labeller(meed2, tiny_classifier, tmp_path, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("LISTENWELL_CACHE", str(tmp_path))
    part = tiny_classifier()
    labels = cached_labeller(part).label(["I lost my keys", "Oh no?"])
    assert all(label.name in LABELS and label.by == "machine" for label in labels)
    assert cached_labeller(part).label(["Oh no?"]) == labels[1:]
    meed2.parts = {LABELLER: part}
    checkpoint.save(meed2, tmp_path / "bot", eight_bit=True)
    reply = Bot(checkpoint.load(tmp_path / "bot")).reply(["I lost my keys", "Oh no?", "Yes, at home"])
    assert len(reply.reasons["heard"]) == 3
