"""Whether a system follows a requested intent: a fake system that sometimes does, recognized by its words."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch
from test_evaluate import made_items, parrot, quiet

from listenwell import checkpoint
from listenwell.classifiers.label_cache import fingerprint
from listenwell.cli import main
from listenwell.data.batching import EncodingConfig
from listenwell.data.dialogue import Label
from listenwell.decoding import Decoding
from listenwell.evaluation.control import control
from listenwell.evaluation.experiment import write
from listenwell.labels.taxonomy import INTENTS
from listenwell.outputs import CONTROL
from listenwell.systems.house.options import HouseDecoding, Rerank
from listenwell.systems.reply import Reply


class Obedient:
    """Says the requested intent, except that it never says the last one and says the first only every second time."""

    name, takes_label = "obedient", True

    def __init__(self) -> None:
        self.requested: list[str] = []
        self.given: list = []

    def replies(self, talks, controls=None, done=None) -> list[Reply]:
        self.requested.append(controls.label)
        self.given += talks
        return [Reply(self._say(controls.label, index)) for index in range(len(talks))]

    def _say(self, intent: str, index: int) -> str:
        return "neutral" if intent == INTENTS[-1] or (intent == INTENTS[0] and index % 2) else intent


class Word:
    """Labels a text that is the name of a label with this label."""

    checkpoint = SimpleNamespace(
        name="emotion-intent",
        meta={"recipe": {"name": "by-the-word"}},
        model=torch.nn.Linear(1, 1),
        tokenizer=SimpleNamespace(backend=SimpleNamespace(to_str=lambda: "")),
    )

    def label(self, texts):
        return [Label(text, "machine") for text in texts]


def test_each_context_is_answered_once_for_each_intent_and_the_shares_are_told():
    system = Obedient()
    result = control(system, made_items(), Word(), quiet, resamples=20)
    assert system.requested == list(INTENTS)
    assert all(turn.label is None for dialogue in system.given for turn in dialogue.turns)
    scores = {score.name: score for score in result.scores}
    assert [score.name for score in result.scores][:2] == ["control-mean", "control-least"]
    assert scores["control-agreeing"].value == pytest.approx(50)
    assert scores["control-questioning"].value == pytest.approx(100)
    assert scores["control-wishing"].value == scores["control-least"].value == 0
    assert scores["control-mean"].value == pytest.approx(100 * 6.5 / 8)
    assert scores["control-mean"].low <= scores["control-mean"].value <= scores["control-mean"].high
    assert scores["control-least"].low is None
    assert scores["control-mean"].signature["items"] == "6"
    assert len(result.records) == 48
    assert result.records[1] == {"id": "d1#1", "asked": "agreeing", "reply": "neutral", "recognised": "neutral"}


def test_the_signature_says_by_whom_and_what_the_system_itself_chose_by():
    system = Obedient()
    for rerank, said in ((Rerank(), "no"), (Rerank(plan=0.5, fresh=1.0), "plan0.5,fresh1")):
        system.decoding = HouseDecoding(rerank=rerank)
        mean, *_ = control(system, made_items(2), Word(), quiet, resamples=0).scores
        assert mean.signature["reranked"] == said
    assert "guidance" not in str(mean.signature)
    system.decoding = Decoding(guidance=1.5)
    mean, *_ = control(system, made_items(2), Word(), quiet, resamples=0).scores
    assert mean.signature["guidance"] == "1.5"
    assert mean.signature["by"] == "by-the-word"
    assert mean.signature["weights"] == fingerprint(Word.checkpoint)[:8]


def test_the_numbers_and_every_reply_are_kept(tmp_path):
    result = control(Obedient(), made_items(2), Word(), quiet, ["sad", "wishing"], resamples=0)
    write(result, tmp_path / "control", CONTROL)
    scores = json.loads((tmp_path / "control" / "scores.json").read_text())["scores"]
    assert [score["name"] for score in scores] == ["control-mean", "control-least", "control-sad", "control-wishing"]
    assert len((tmp_path / "control" / "replies.jsonl").read_text().splitlines()) == 4


def test_what_cannot_be_measured_is_told():
    with pytest.raises(ValueError, match="parrot does not take an intent"):
        control(parrot(), made_items(), Word(), quiet)
    with pytest.raises(ValueError, match="unknown label 'wihsing'; did you mean 'wishing'"):
        control(Obedient(), made_items(), Word(), quiet, ["wihsing"])
    with pytest.raises(ValueError, match="nothing to reply to"):
        control(Obedient(), [], Word(), quiet)


@pytest.fixture
def run(tiny_model, tokenizer, tiny_classifier, tmp_path):
    """A run with a tiny MEED2 that labels turns with a tiny classifier."""
    ckpt = checkpoint.Checkpoint("meed2", tiny_model("meed2", predictor_layers=1), tokenizer)
    ckpt.encoding, ckpt.decoding = EncodingConfig(separators=True), Decoding(max_length=4)
    ckpt.parts = {"labeller": tiny_classifier()}
    checkpoint.save(ckpt, tmp_path / "run" / "best")
    return tmp_path / "run"


def test_the_command_measures_with_the_system_s_own_classifier_or_another(run, tiny_classifier, small_corpus, capsys):
    words = ["control", str(run), "--data", str(small_corpus), "--split", "valid", "--limit", "2", "--resamples", "0"]
    main([*words, "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert printed["about"]["items"] == 2
    assert printed["about"]["decoding"] == "greedy+max4"
    scores = {score["name"]: score for score in printed["scores"]}
    assert set(scores) == {"control-mean", "control-least", *(f"control-{intent}" for intent in INTENTS)}
    own = f"by:emotion-intent|weights:{fingerprint(tiny_classifier())[:8]}|reranked:no"
    assert own in scores["control-mean"]["signature"]
    records = list(map(json.loads, (run / "evaluation" / "control" / "replies.jsonl").read_text().splitlines()))
    assert [record["asked"] for record in records] == [intent for intent in INTENTS for _ in range(2)]
    hits = sum(record["asked"] == record["recognised"] for record in records)
    assert scores["control-mean"]["value"] == pytest.approx(100 * hits / len(records))
    other = tiny_classifier(pooling="start")
    torch.nn.init.normal_(other.model.out.weight)
    checkpoint.save(other, run / "other")
    main([*words, "--labeller", str(run / "other"), "--out", str(run / "out")])
    assert "control-mean" in capsys.readouterr().out
    assert fingerprint(other)[:8] in (run / "out" / "scores.json").read_text()


def test_a_system_that_takes_no_intent_is_told_so_before_a_classifier_is_asked_for(
    tiny_model, tokenizer, small_corpus, tmp_path
):
    checkpoint.save(checkpoint.Checkpoint("multi-trs", tiny_model(), tokenizer), tmp_path / "run" / "best")
    with pytest.raises(SystemExit, match="multi-trs does not take an intent"):
        main(["control", str(tmp_path / "run"), "--data", str(small_corpus), "--split", "valid", "--limit", "2"])
