"""The Chinese classifier: its two readers, the encoder's training data, and what ships."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.classifiers.labeller import Labeller
from listenwell.labels.sets import CRISIS
from listenwell.models.text_encoder import TextEncoder, TextEncoderConfig
from listenwell.systems.safety import chinese_learning, detect
from listenwell.systems.safety.chinese_classifier import ChineseClassifier, chinese_classifier, encoder_folder
from listenwell.systems.safety.chinese_learning import Message, lessons, written_cases
from listenwell.systems.safety.detector import rules
from listenwell.systems.safety.ngrams import NgramClassifier, size
from listenwell.text import TextConfig, train_tokenizer

OUTRIGHT, HINT, TALK = "我不想活了", "猫送给邻居了，花也送人了，这下谁也不欠了", "今天吃火锅"


@pytest.fixture(scope="module")
def encoder() -> Checkpoint:
    """Small and untrained."""
    torch.manual_seed(0)
    tokenizer = train_tokenizer([OUTRIGHT, HINT, TALK], TextConfig(kind="char"))
    config = TextEncoderConfig(width=16, heads=2, layers=1, feed_forward=16, labels=CRISIS.name)
    return Checkpoint("text-encoder", TextEncoder(config, tokenizer.vocabulary).eval(), tokenizer)


def test_half_of_the_odds_is_the_ngrams_and_half_the_encoders(encoder: Checkpoint):
    ngrams = NgramClassifier(np.zeros(size(), dtype=np.float16), bias=3.0)
    classifier = ChineseClassifier(ngrams, Labeller(encoder, CRISIS))
    assert classifier.odds(OUTRIGHT) == pytest.approx((3.0 + classifier.encoder_odds(OUTRIGHT)) / 2)


def test_the_encoder_reads_a_text_as_written_and_as_the_rules_read_it(encoder: Checkpoint):
    labeller = Labeller(encoder, CRISIS)
    text = "我不想活了!!!"
    by_view = []
    for view in (text, rules("zh").read(text)):
        chances = labeller.distribution([view])[0]
        by_view.append(np.log(1 - chances[0]) - np.log(chances[0]))
    classifier = ChineseClassifier(NgramClassifier(np.zeros(size(), dtype=np.float16), 0.0), labeller)
    assert classifier.encoder_odds(text) == pytest.approx(np.mean(by_view), abs=1e-5)


def test_each_round_has_every_case_and_some_ordinary_talk():
    cases = [Message(OUTRIGHT, True, batch="one", label=1), Message(HINT, True, batch="one", label=2)]
    corpus = [Message(TALK, False), Message("我想死", True, label=1)]
    texts = list(lessons(cases, corpus, rounds=3))
    labels = Counter(dialogue.turns[0].label.name for dialogue in texts if dialogue.turns[0].label is not None)
    assert labels == {"none": 3, CRISIS.labels[1]: 6, CRISIS.labels[2]: 3}
    assert {dialogue.split for dialogue in texts} == {"train"}


def test_batches_that_are_left_out_are_validated_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(chinese_learning, "corpus_messages", lambda: [Message(TALK, False)])
    chinese_learning.write_lessons(tmp_path / "lessons.jsonl", {"zh_b_traps"})
    records = [json.loads(line) for line in (tmp_path / "lessons.jsonl").read_text(encoding="utf-8").splitlines()]
    texts = {
        split: {record["turns"][0]["text"] for record in records if record["split"] == split}
        for split in ("train", "valid")
    }
    assert texts["valid"] == {case.text for case in written_cases() if case.batch == "zh_b_traps"}
    assert not texts["valid"] & texts["train"]
    assert {record["language"] for record in records} == {"zh"}


def test_what_ships_is_the_trained_encoder_in_eight_bits(encoder: Checkpoint, tmp_path: Path):
    checkpoint.save(encoder, tmp_path / "run" / "best")
    chinese_learning.ship(tmp_path / "run", tmp_path / "shipped")
    one, other = (Labeller.load(tmp_path / folder, CRISIS) for folder in ("run/best", "shipped"))
    assert np.allclose(one.log_probs([OUTRIGHT]), other.log_probs([OUTRIGHT]), atol=0.05)
    packed, whole = (tmp_path / name / "model.safetensors" for name in ("shipped", "run/best"))
    assert packed.stat().st_size < whole.stat().st_size


def test_the_shipped_encoder_tells_signs_from_talk():
    assert (encoder_folder() / "config.json").is_file()
    classifier = chinese_classifier()
    assert classifier.encoder_odds(OUTRIGHT) > 0 > classifier.encoder_odds(TALK)


def test_a_hint_that_no_rule_knows_is_heard():
    assert rules("zh").look(HINT) is None
    sign = detect(HINT)
    assert sign is not None
    assert sign.directness == "indirect"
