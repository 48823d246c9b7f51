"""Runs that start from another run's weights, use a classifier's labels, or learn words from other corpora."""

import json
import sys
from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.classifiers import label_cache
from listenwell.classifiers.label_cache import LABELLER
from listenwell.configuration import ConfigError
from listenwell.data.batching import EncodingConfig
from listenwell.data.dialogue import Label, examples
from listenwell.data.sources import jsonl, shipped
from listenwell.labels.taxonomy import LABELS
from listenwell.text import TextConfig
from listenwell.training import data, run
from listenwell.training.display import read_journal
from listenwell.training.trainer import Interrupted, Trainer

SMALL = {"width": 16, "heads": 2, "feed_forward": 24, "encoder_layers": 1, "decoder_layers": 1}


class Counting:
    """Labels a text by its length, and records the inputs of all instances."""

    given: ClassVar[list[str]] = []

    def __init__(self, part=None, labels=None):
        self.part = part

    def label(self, texts):
        Counting.given += texts
        return [Label(LABELS[len(text) % 41], "machine", 0.5) for text in texts]


@pytest.fixture(autouse=True)
def quickly(monkeypatch, tmp_path):
    monkeypatch.setenv("LISTENWELL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "listenwell.classifiers.labeller", SimpleNamespace(Labeller=Counting))
    monkeypatch.setattr(Counting, "given", [])


@pytest.fixture
def classifier(tiny_model, tokenizer, tmp_path):
    checkpoint.save(Checkpoint("trs", tiny_model("trs"), tokenizer), tmp_path / "classifier")
    return str(tmp_path / "classifier")


@pytest.fixture
def meed2(tiny_recipe, tiny_stage, classifier):
    """Make a recipe with MEED2's two stages and a labeller."""

    def make(**fields):
        predictor = tiny_stage(name="predictor", criterion="response-label", examples=32)
        predictor["moves"] = [{"objective": "response-label"}]
        predictor["optimizers"] = {"main": {"rate": 5e-3, "warmup": 2, "learns": ["predictor.*"]}}
        replies = tiny_stage(name="replies", examples=48)
        replies["optimizers"] = {
            "main": {"rate": 5e-3, "warmup": 2, "learns": ["input.*", "encoder.*", "decoder.*"]},
        }
        model = {"name": "meed2", "predictor_layers": 1, **SMALL}
        choices = {"stages": [predictor, replies], "model": model, "parts": {"labeller": classifier}}
        return tiny_recipe(**{**choices, "encoding": EncodingConfig(separators=True), **fields})

    return make


def weights(folder):
    return checkpoint.load(folder).model.state_dict()


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


# Labels from a classifier


def test_turns_are_labelled_once_and_the_classifier_becomes_a_part(meed2, small_corpus, classifier, tmp_path):
    best = run.train(meed2(), tmp_path / "run", quiet=True)
    known = [
        turn.text
        for split in ("train", "valid")
        for dialogue in jsonl.read(small_corpus, split)
        for item in examples(dialogue)
        for turn in item.context
    ]
    assert sorted(Counting.given) == sorted(set(known))  # every reply of this corpus has a label of its own
    part = checkpoint.load(best).parts[LABELLER]
    assert label_cache.fingerprint(part) == label_cache.fingerprint(checkpoint.load(checkpoint.Path(classifier)))
    kept = list((tmp_path / "cache" / "labels").iterdir())
    assert [file.stem for file in kept] == [label_cache.fingerprint(part)]
    Counting.given = []
    run.train(meed2(), tmp_path / "again", quiet=True)
    assert Counting.given == []
    assert same(weights(best), weights(tmp_path / "again" / "best"))
    names = {record["stage"] for record in read_journal(tmp_path / "run" / "log.jsonl")}
    assert names == {"predictor", "replies"}


def test_contexts_and_replies_are_encoded_with_their_labels(meed2, tokenizer):
    recipe = meed2()
    actual = data.encode_split(recipe, recipe.data, "train", tokenizer, cut_replies=True, labeller=Counting())
    items = list(data.read_examples(recipe.data, "train"))
    for item, side, label in zip(items, actual.contexts, actual.labels, strict=True):
        assert side.labels[-1] == len(item.context[-1].text) % 41
        assert LABELS[label] == item.reply.label.name


def test_a_run_that_hears_is_stopped_and_goes_on_as_if_it_never_was(meed2, tmp_path, monkeypatch):
    unbroken = run.train(meed2(), tmp_path / "unbroken", quiet=True)
    update, done = Trainer._update, []

    def stop(self, *arguments):
        done.append(self)
        if len(done) == 7:
            self._ask_to_stop()
        return update(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "_update", stop)
        with pytest.raises(Interrupted):
            run.train(meed2(), tmp_path / "broken", quiet=True)
    # The classifier may be gone, since the run has a copy.
    (tmp_path / "classifier" / "config.json").unlink()
    run.train(meed2(), tmp_path / "broken", quiet=True, resume=True)
    assert same(weights(unbroken), weights(tmp_path / "broken" / "best"))


def test_a_labeller_that_is_not_there_is_told(meed2, tmp_path):
    with pytest.raises(ValueError, match="unknown system 'emotion-intnt'"):
        run.train(meed2(parts={"labeller": "emotion-intnt"}), tmp_path / "run", quiet=True)


@pytest.mark.parametrize("calibrated", [True, False])
def test_a_part_that_is_not_calibrated_is_told_with_the_command(
    meed2, tiny_classifier, tmp_path, capsys, monkeypatch, calibrated
):
    classifier = tiny_classifier()
    classifier.meta |= {"calibration": {"temperature": 1.5}} if calibrated else {}
    checkpoint.save(classifier, tmp_path / "ears" / "best")
    monkeypatch.setattr(Trainer, "run", lambda self, source: self.journal.close())
    run.train(meed2(parts={"labeller": "ears"}), tmp_path / "run", quiet=True)
    printed = [line for line in capsys.readouterr().err.splitlines() if "calibrate" in line]
    wanted = f"labeller: ears is not calibrated, and this run keeps it as it is; first: listenwell calibrate {tmp_path}"
    assert bool(printed) != calibrated
    assert calibrated or f"{wanted}/ears" in printed[0]


# Starting from another run


def test_a_recipe_starts_from_the_run_of_that_name_beside_it(meed2, tiny_stage, small_corpus, tmp_path):
    first = run.train(meed2(name="first"), tmp_path / "first", quiet=True)
    none = tiny_stage(examples=1, optimizers={"main": {"rate": 0.0, "decay": 0.0}})
    second = run.train(meed2(start="first", parts={}, stages=[none]), tmp_path / "second", quiet=True)
    assert same(weights(first), weights(second))
    ckpt = checkpoint.load(second)
    assert ckpt.tokenizer.backend.to_str() == checkpoint.load(first).tokenizer.backend.to_str()
    assert set(ckpt.parts) == {LABELLER}  # the labeller of the first run
    mark = label_cache.fingerprint(checkpoint.load(first))
    assert ckpt.meta["start"] == {"name": "first", "hash": mark, "data": [str(small_corpus)]}
    elsewhere = meed2(start=str(tmp_path / "first"), stages=[none])
    assert same(weights(first), weights(run.train(elsewhere, tmp_path / "other" / "run", quiet=True)))


def test_what_starts_from_other_words_or_another_shape_is_told(tiny_recipe, tmp_path):
    run.train(tiny_recipe(), tmp_path / "first", quiet=True)
    other = TextConfig(kind="bpe", size=300)
    with pytest.raises(ConfigError, match=r"first has [\d,]+ tokens of kind word, .* text.kind bpe and text.size 300"):
        run.train(tiny_recipe(start="first", text=other), tmp_path / "second", quiet=True)
    wider = {"name": "multi-trs", "width": 32, "heads": 2, "feed_forward": 24}
    with pytest.raises(ConfigError, match="the weights of first, a multi-trs, do not fit this model"):
        run.train(tiny_recipe(start="first", model=wider), tmp_path / "second", quiet=True)
    run.train(tiny_recipe(text=other), tmp_path / "pieces", quiet=True)
    fewer = TextConfig(kind="bpe", size=290)
    with pytest.raises(ConfigError, match=r"pieces has 300 tokens of kind bpe, .* text.size 290 asks for"):
        run.train(tiny_recipe(start="pieces", text=fewer), tmp_path / "second", quiet=True)
    assert not (tmp_path / "second").exists()


def test_a_run_that_is_not_trained_yet_is_told_with_the_command(tiny_recipe, tmp_path):
    with pytest.raises(ConfigError, match=r"start: unknown system 'meed2-os-cpu'.*listenwell train meed2-os-cpu"):
        run.train(tiny_recipe(start="meed2-os-cpu"), tmp_path / "run", quiet=True)


# Words of other corpora


def test_a_vocabulary_may_be_learned_from_several_corpora(tiny_recipe, small_corpus):
    alone = data.learn_tokenizer(tiny_recipe())
    together = data.learn_tokenizer(tiny_recipe(vocabulary=f"shipped+{small_corpus}"))
    texts = " ".join(turn.text for dialogue in shipped.read("train") for turn in dialogue.turns)
    assert together.unk not in together.encode(texts)
    assert alone.unk in alone.encode(texts)


def test_a_recipe_without_these_keys_is_the_recipe_it_was(tiny_recipe):
    said = json.dumps(tiny_recipe().to_dict())
    assert all(f'"{key}": ""' in said for key in ("start", "vocabulary"))
    assert '"parts": {}' in said
    assert tiny_recipe().fingerprint() == tiny_recipe(start="", parts={}, vocabulary="").fingerprint()
    assert tiny_recipe().fingerprint() != tiny_recipe(start="x").fingerprint()


def test_emotions_that_are_not_learned_are_counted_with_the_near_name(
    tiny_recipe, small_corpus, tmp_path, capsys, monkeypatch
):
    path = tmp_path / "mine.jsonl"
    text = small_corpus.read_text(encoding="utf-8")
    records = [json.loads(line) for line in text.splitlines()]
    for record in records[:2]:
        record["emotion"] = "joyfull"
    records[2]["emotion"] = "Joyful"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    monkeypatch.setattr(Trainer, "run", lambda self, source: self.journal.close())
    run.train(tiny_recipe(data={"source": str(path)}), tmp_path / "run", quiet=True)
    replies = sum(turn["speaker"] == "listener" for record in records[:2] for turn in record["turns"])
    said = " ".join(capsys.readouterr().err.split())
    assert f"{replies} examples have an emotion that is not one of the 32" in said
    assert f"{replies} of joyfull (joyful?)" in said
