"""A recipe with a custom label set: training, saving, loading, replies, evaluation, calibration with these labels."""

import json
from collections import Counter
from dataclasses import replace

import pytest
import yaml

from listenwell import checkpoint
from listenwell.classifiers.calibration import calibrate
from listenwell.classifiers.labeller import Labeller
from listenwell.configuration import ConfigError
from listenwell.contract import LabelSets
from listenwell.data.batching import EncodingConfig, Targets, encode
from listenwell.data.dialogue import Dialogue, Example, Label, Turn, examples
from listenwell.data.sources import jsonl
from listenwell.evaluation.classifier_scores import evaluate_labels, labelled_turns
from listenwell.evaluation.evaluate import evaluate
from listenwell.labels.sets import LabelSet, label_set
from listenwell.models.trs import Trs
from listenwell.systems.bot import Bot
from listenwell.training import run
from listenwell.training.data import feeds, unknown_emotions
from listenwell.training.recipe_files import load_recipe

MOODS = ("calm", "tense", "numb")

OPENINGS = {
    "calm": "The lake was quiet and I sat there all day",
    "tense": "The exam is tomorrow and my hands shake",
    "numb": "I feel nothing at all since then",
}


def quietly(what, items):
    return lambda done: None


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Short dialogues in three moods, with the speaker's turns labelled accordingly."""
    path = tmp_path_factory.mktemp("moods") / "moods.jsonl"
    dialogues = [
        Dialogue(
            f"{split}-{mood}-{number}",
            (
                Turn("speaker", f"{OPENINGS[mood]} {number}", Label(mood)),
                Turn("listener", f"tell me more about day {number}", Label("calm")),
            ),
            emotion=Label(mood),
            split=split,
        )
        for split in ("train", "valid", "test")
        for mood in MOODS
        for number in range(6)
    ]
    jsonl.write(dialogues, path)
    return path


def recipe_of(folder, corpus, **fields):
    recipe = {
        "name": "moods",
        "label_sets": {"moods": {"labels": list(MOODS), "polarity": {"calm": "positive", "tense": "negative"}}},
        "data": {"source": str(corpus)},
        "model": {"name": "multi-trs", "emotions": "moods", "width": 16, "heads": 2, "feed_forward": 24},
        "stages": [{"epochs": 12, "optimizers": {"main": {"rate": 0.01, "warmup": 2}}}],
        **fields,
    }
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(recipe))
    return load_recipe(str(path))


@pytest.fixture(scope="module")
def talker(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("talker")
    return run.train(recipe_of(folder, corpus), folder / "run", quiet=True)


def test_a_talking_model_knows_the_emotions_of_the_recipe_wherever_it_is_loaded(talker, tmp_path):
    config = json.loads((talker / "config.json").read_text())
    assert config["label_sets"]["moods"]["labels"] == list(MOODS)
    bot = Bot(checkpoint.load(talker))
    assert bot.emotions.labels == MOODS
    reply = bot.reply("The exam is tomorrow")
    assert set(reply.emotions) == set(MOODS)
    assert reply.emotion == next(iter(reply.emotions))
    checkpoint.save(bot.checkpoint, tmp_path / "copy")
    assert checkpoint.load(tmp_path / "copy").model.emotions == bot.emotions


def test_it_is_evaluated_by_these_emotions(talker, corpus):
    items = [item for dialogue in jsonl.read(corpus, "test") for item in examples(dialogue)]
    evaluation = evaluate(Bot(checkpoint.load(talker)), items, {}, quietly, resamples=0)
    assert evaluation["accuracy@1"].value > 80
    assert "accuracy@5" not in [score.name for score in evaluation.scores]
    assert evaluation.about["language"] == "en"


def test_a_classifier_of_one_s_own_labels_is_trained_evaluated_and_calibrated(tiny_backbone, corpus, tmp_path):
    reading = {"replies_by": ["speaker"], "sides": ["reply"], "labels": "moods", "labelled": True}
    recipe = recipe_of(
        tmp_path,
        corpus,
        data={"source": str(corpus), **reading},
        text={"kind": "backbone", "backbone": str(tiny_backbone)},
        model={"name": "emotion-intent", "labels": "moods", "backbone": str(tiny_backbone)},
        stages=[
            {
                "epochs": 12,
                "criterion": "label",
                "moves": [{"objective": "classify"}],
                "streams": {"train": {**{k: reading[k] for k in ("replies_by", "sides")}, "examples": 6}},
                "valid": {k: reading[k] for k in ("replies_by", "sides")},
                "optimizers": {"main": {"rate": 0.005, "warmup": 2}},
            }
        ],
    )
    ckpt = checkpoint.load(run.train(recipe, tmp_path / "run", quiet=True))
    labeller = Labeller(ckpt, ckpt.model.label_set)
    assert labeller.names == MOODS
    dialogues = list(jsonl.read(corpus, "test"))
    scores = evaluate_labels(labeller, labelled_turns(dialogues), {}, quietly, resamples=0)
    assert {one.label for one in scores.classes} == set(MOODS)
    calibration = calibrate(ckpt, [turn for dialogue in dialogues for turn in dialogue.turns])
    assert calibration.items == 2 * len(dialogues)
    assert calibration.nll_after <= calibration.nll_before


def test_six_emotions_are_learned_from_the_labels_of_contexts(tmp_path):
    """As in the posts of SMP2020: dialogues of one turn, whose label is the emotion."""
    path = tmp_path / "posts.jsonl"
    smp = label_set("smp").labels
    posts = [
        Dialogue(f"{split}-{name}", (Turn("speaker", f"今天 {name}", Label(name)),), language="zh", split=split)
        for split in ("train", "valid")
        for name in smp
    ]
    pairs = [
        Dialogue(f"{split}-{n}", (Turn("speaker", f"今天 {n}"), Turn("listener", "好 的")), language="zh", split=split)
        for split in ("train", "valid")
        for n in range(4)
    ]
    jsonl.write([*posts, *pairs], path)
    stages = [
        {
            "name": "posts",
            "criterion": "situation",
            "moves": [{"objective": "situation", "stream": "posts"}],
            "streams": {"posts": {"sides": ["context"], "emotion_of": "context"}},
            "valid": {"sides": ["context"], "emotion_of": "context"},
        },
        {"name": "talk"},
    ]
    model = {"name": "multi-trs", "emotions": "smp", "width": 16, "heads": 2, "feed_forward": 24}
    recipe = recipe_of(tmp_path, path, label_sets={}, model=model, stages=stages)
    bot = Bot(checkpoint.load(run.train(recipe, tmp_path / "run", quiet=True)))
    assert set(bot.reply("今天 好").emotions) == set(smp)
    assert bot.languages == ("zh",)
    assert "label_sets" not in json.loads((tmp_path / "run" / "best" / "config.json").read_text())


def test_a_context_s_label_of_any_set_can_be_the_target(tokenizer):
    context = (Turn("speaker", "hello", Label("tense")),)
    item = Example("a", context, Turn("listener", "hi", Label("consoling")), emotion=Label("sad"))
    moods = LabelSet("moods", MOODS)
    actual = encode([item], tokenizer, EncodingConfig(), targets=Targets(moods, "context", moods, "dialogue"))
    assert (actual.labels, actual.emotions) == ([1], [-100])
    usual = encode([item], tokenizer, EncodingConfig())
    assert (usual.labels, usual.emotions) == ([35], [27])


class TwoHeads(Trs):
    """A detector of the six emotions and a polarity judge in one model."""

    def label_sets(self, objective):
        return LabelSets({"situation": label_set("smp")}.get(objective, label_set("polarity")), self.emotions)


def test_each_objective_s_labels_are_checked_against_its_own_stream(tiny_recipe, tiny_stage, tmp_path, monkeypatch):
    def stage(**labels):
        streams = {name: {"examples": 8, "labels": one} for name, one in labels.items()}
        moves = [
            {"objective": "likelihood", "stream": "judged"},
            {"objective": "situation", "stream": "detected"},
        ]
        return tiny_stage(streams=streams, moves=moves, valid={"labels": "polarity"})

    monkeypatch.setattr("listenwell.models.trs.Trs", TwoHeads)
    good = tiny_recipe(stages=[stage(judged="polarity", detected="smp")])
    run.train(good, tmp_path / "good", quiet=True)
    bad = tiny_recipe(stages=[stage(judged="polarity", detected="polarity")])
    with pytest.raises(ConfigError, match=r"its labels are polarity, but situation of multi-trs knows labels: smp"):
        run.train(bad, tmp_path / "bad", quiet=True)


def test_emotions_of_another_set_than_the_model_s_are_refused(tiny_recipe, tmp_path, small_corpus):
    recipe = tiny_recipe(data={"source": str(small_corpus), "emotions": "smp"})
    with pytest.raises(ConfigError, match="its emotions are smp, but likelihood of multi-trs knows emotions: emotion"):
        run.train(recipe, tmp_path / "run", quiet=True)


def test_a_stream_s_own_words_on_labels_come_before_the_recipe_s(tiny_recipe, tiny_stage, tokenizer):
    recipe = tiny_recipe(stages=[tiny_stage(streams={"train": {"examples": 8, "label_of": "dialogue"}})])
    actual = feeds(recipe, recipe.stages[0], tokenizer, {})["train"].data
    assert actual.labels == actual.emotions


def test_a_label_set_that_nobody_knows_is_told_when_the_recipe_is_read(tmp_path, corpus):
    with pytest.raises(ConfigError, match="recipe moods: unknown label set 'mods'; did you mean 'moods'"):
        recipe_of(tmp_path, corpus, data={"source": str(corpus), "labels": "mods"})
    with pytest.raises(ConfigError, match="label_sets: emotion is a set of 32 labels already"):
        recipe_of(tmp_path, corpus, label_sets={"emotion": ["calm", "tense"]})


def test_emotions_outside_the_set_are_counted_and_the_near_ones_named():
    moods = LabelSet("moods", MOODS)
    assert unknown_emotions(Counter({"calm": 3}), moods) is None
    assert "2 examples have an emotion that is not one of the 3" in unknown_emotions(Counter({"tens": 2}), moods)


def test_items_of_several_languages_are_not_evaluated_together(talker, corpus):
    items = [item for dialogue in jsonl.read(corpus, "test") for item in examples(dialogue)]
    items[0] = replace(items[0], language="zh")
    with pytest.raises(ValueError, match=r"several languages \(17 in en, 1 in zh\); evaluate each"):
        evaluate(Bot(checkpoint.load(talker)), items, {}, quietly, resamples=0)
