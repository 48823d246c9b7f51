"""MEED2, the listener and the house writer with custom label sets, from the first update to a reply."""

import json

import pytest
import torch

from listenwell import checkpoint
from listenwell.classifiers.calibration import calibrate_choice, calibrate_listener
from listenwell.classifiers.listener import ListenerClassifier
from listenwell.contract import ABSENT
from listenwell.data.batching import EncodingConfig, Targets, collate, encode
from listenwell.data.dialogue import Dialogue, Example, Label, Turn, examples
from listenwell.data.sources import jsonl
from listenwell.evaluation.evaluate import evaluate
from listenwell.evaluation.listener_scores import evaluate_listening
from listenwell.labels.sets import EMOTION, EMOTION_INTENT, LabelSet, label_set
from listenwell.models.chat_text import PLAIN
from listenwell.systems.bot import Bot
from listenwell.systems.house.planner import check_plannable
from listenwell.systems.house.writer import HouseWriter
from listenwell.text import TextConfig
from listenwell.training import run

MOODS = ("calm", "tense")
MOVES = ("calm", "tense", "asking", "soothing")
SETS = {"moods": list(MOODS), "moves": list(MOVES)}


def quietly(what, items):
    return lambda done: None


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Dialogues in two moods: calm speakers are asked questions, tense ones are soothed."""
    texts = {"calm": ("The lake was quiet", "what did you see"), "tense": ("The exam is near", "you will do well")}
    dialogues = [
        Dialogue(
            f"{split}-{mood}-{number}",
            (
                Turn("speaker", f"{said} {number}", Label(mood)),
                Turn("listener", f"{answer} {number}", Label("asking" if mood == "calm" else "soothing")),
            ),
            emotion=Label(mood),
            split=split,
        )
        for split in ("train", "valid", "test")
        for mood, (said, answer) in texts.items()
        for number in range(6)
    ]
    path = tmp_path_factory.mktemp("moods") / "moods.jsonl"
    jsonl.write(dialogues, path)
    return path


@pytest.fixture
def trained(tiny_recipe, tiny_stage, corpus, tmp_path):
    """Train a model with these label sets for a dozen updates, and load the saved one."""

    def train(model, stage=None, **fields):
        data = {"source": str(corpus), "labels": "moves"}
        stages = [tiny_stage(**(stage or {}))]
        recipe = tiny_recipe(data=data, label_sets=SETS, model=model, stages=stages, **fields)
        ckpt = checkpoint.load(run.train(recipe, tmp_path / "run", quiet=True))
        assert (ckpt.model.emotions.labels, ckpt.model.label_set.labels) == (MOODS, MOVES)
        return ckpt

    return train


@pytest.fixture
def items(corpus):
    return [item for dialogue in jsonl.read(corpus, "test") for item in examples(dialogue)]


def test_meed2_replies_with_labels_of_the_recipe_s_own(trained, items, tmp_path):
    sizes = {"width": 16, "heads": 2, "feed_forward": 24, "encoder_layers": 1, "decoder_layers": 1}
    stage = {"moves": [{"objective": "joint"}], "optimizers": {"main": {"rate": 0.02, "warmup": 2}}}
    ckpt = trained(
        {"name": "meed2", "label_set": "moves", "emotions": "moods", "predictor_layers": 1, **sizes},
        stage,
        encoding=EncodingConfig(separators=True),
    )
    assert "moves" in json.loads((tmp_path / "run" / "best" / "config.json").read_text())["label_sets"]
    bot = Bot(ckpt)
    assert bot.reply("The exam is near 9").label in MOVES
    assert bot.reply("The exam is near 9", intent="soothing").label == "soothing"
    with pytest.raises(ValueError, match="unknown label 'consoling'"):
        bot.reply("The exam is near 9", intent="consoling")
    evaluation = evaluate(bot, items, {}, quietly, resamples=0)
    assert evaluation["label-f1"].value > 50
    assert {"perplexity", "perplexity-oracle"} <= {score.name for score in evaluation.scores}
    assert calibrate_choice(ckpt, items).items == len(items)


def test_the_listener_hears_emotions_of_the_recipe_s_own(trained, items, tiny_backbone, tmp_path):
    ckpt = trained(
        {"name": "house-listener", "emotions": "moods", "labels": "moves", "backbone": str(tiny_backbone)},
        {"moves": [{"objective": "listen"}], "criterion": "emotion"},
        text=TextConfig(kind="backbone", backbone=str(tiny_backbone)),
        encoding=EncodingConfig(separators=True),
    )
    listening = ListenerClassifier(ckpt)
    (prediction,) = listening.predict([items[0].context])
    assert (set(prediction.emotions), set(prediction.labels)) == (set(MOODS), set(MOVES))
    assert set(calibrate_listener(ckpt, items)) == {"emotion", "label"}
    evaluation = evaluate_listening(listening, items, {}, quietly, resamples=0)
    assert evaluation.confusion.shape == (2, 2)
    assert {"accuracy@1", "label-f1"} <= {score.name for score in evaluation.scores}
    with pytest.raises(ValueError, match="distinguishes moods, but the house system plans by emotion"):
        check_plannable(listening.name, ckpt.model.emotions, ckpt.model.label_set)


def test_the_house_writer_writes_by_plans_of_the_recipe_s_own(trained, items, tiny_chat_model):
    pytest.importorskip("peft")
    model = {"name": "house-writer", "emotions": "moods", "labels": "moves", "rank": 2}
    ckpt = trained(
        {**model, "backbone": str(tiny_chat_model)},
        text=TextConfig(kind="backbone", backbone=str(tiny_chat_model)),
        encoding=EncodingConfig(turns="chatml"),
    )
    writer = HouseWriter(ckpt)
    assert writer.feel(items).shape == (len(items), len(MOODS))
    plans = torch.tensor([[writer.label_set.id_of("soothing"), PLAIN]])
    (candidates,) = writer.write(items[:1], plans, [0])
    assert {one.moves for one in candidates} <= {("soothing",), ()}
    even = torch.full((len(items), len(MOVES)), 1 / len(MOVES)).log()
    assert (writer.likelihoods_by(items, even).nll > 0).all()
    assert writer.oracle_likelihoods(items).nll.shape == (len(items),)


def test_the_labels_of_positions_are_of_the_targets_set(tokenizer):
    context = (Turn("speaker", "hello", Label("tense")), Turn("listener", "hi"), Turn("speaker", "so", Label("sad")))
    item = Example("a", context)
    known = {"moves": LabelSet("moves", MOVES), "smp": label_set("smp"), "nlpcc": label_set("nlpcc")}
    ids = {}
    for name, labels in {**known, "usual": EMOTION_INTENT}.items():
        data = encode([item], tokenizer, EncodingConfig(separators=True), targets=Targets(labels))
        (row,) = collate(data, [0], tokenizer.pad).context.labels.tolist()
        ids[name] = sorted(set(row))
    none = known["nlpcc"].ids["none"]
    assert ids == {"moves": [ABSENT, 1], "smp": [2, 5], "nlpcc": [none], "usual": [27, 40]}
    assert EMOTION.neutral is None
