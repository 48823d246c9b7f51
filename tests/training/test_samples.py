"""Replies to fixed validation contexts, and what a run records about the files it reads."""

import json

import pytest
import torch

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.configuration import ConfigError
from listenwell.contract import Model
from listenwell.training import run
from listenwell.training.data import file_hashes, input_files
from listenwell.training.display import read_journal
from listenwell.training.samples import SAMPLES, sample_replies


def test_the_replies_are_the_same_each_time_and_leave_the_random_state_alone(tiny_model, tokenizer, encoded):
    ckpt = Checkpoint("mime", tiny_model("mime"), tokenizer)
    before = torch.get_rng_state()
    first, again = (sample_replies(ckpt, encoded, torch.device("cpu")) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert first == again
    assert len(first) == SAMPLES
    assert all(reply["context"] for reply in first)


def test_a_classifier_says_nothing(tiny_classifier, encoded):
    assert sample_replies(tiny_classifier(), encoded, torch.device("cpu")) == []


def test_each_validation_logs_replies_to_the_same_contexts(tiny_recipe, tmp_path):
    run.train(tiny_recipe(), tmp_path / "run", quiet=True)
    records = read_journal(tmp_path / "run" / "log.jsonl")
    replies = [record for record in records if record["kind"] == "replies"]
    assert [record["update"] for record in replies] == [r["update"] for r in records if r["kind"] == "valid"]
    contexts = [[reply["context"] for reply in record["replies"]] for record in replies]
    assert contexts.count(contexts[0]) == len(contexts)


def test_a_changed_file_is_named_when_the_run_is_resumed(tiny_recipe, tiny_stage, small_corpus, tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_text(small_corpus.read_text())
    recipe = tiny_recipe(stages=[tiny_stage(examples=16, valid={"source": str(other), "split": "valid"})])
    run.train(recipe, tmp_path / "run", quiet=True)
    run.train(recipe, tmp_path / "run", quiet=True, resume=True)
    other.write_text(small_corpus.read_text() + "\n")
    with pytest.raises(ConfigError, match=r"begun with other data: other.jsonl valid: other.jsonl \(.*other.jsonl\)"):
        run.train(recipe, tmp_path / "run", quiet=True, resume=True)


def test_a_run_of_an_earlier_version_is_resumed_without_hashes_of_files(tiny_recipe, tmp_path):
    run.train(tiny_recipe(), tmp_path / "run", quiet=True)
    path = tmp_path / "run" / "last" / "training.json"
    record = json.loads(path.read_text())
    assert record.pop("files")
    path.write_text(json.dumps(record))
    assert run.train(tiny_recipe(), tmp_path / "run", quiet=True, resume=True) == tmp_path / "run" / "best"


def test_vectors_and_lexicon_are_among_the_files(tiny_recipe, tmp_path):
    for name in ("vectors.txt", "lexicon.json"):
        (tmp_path / name).write_text("x")
    recipe = tiny_recipe(vectors=str(tmp_path / "vectors.txt"), lexicon=str(tmp_path / "lexicon.json"))
    hashes = file_hashes(input_files(recipe))
    assert {"vectors: vectors.txt", "lexicon: lexicon.json"} <= set(hashes)


def test_a_model_is_handed_its_parts_when_built_and_when_loaded(tiny_model, tokenizer, tmp_path, monkeypatch):
    handed = []
    monkeypatch.setattr(Model, "attach", lambda self, parts: handed.append(sorted(parts)))
    part = Checkpoint("trs", tiny_model("trs"), tokenizer)
    whole = Checkpoint("trs", tiny_model("trs"), tokenizer, parts={"labeller": part})
    assert handed == [[], ["labeller"]]
    checkpoint.save(whole, tmp_path / "best")
    checkpoint.load(tmp_path / "best")
    assert handed[2:] == [[], ["labeller"]]
