"""An evaluation split over several processes gives the same result as one process."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from listenwell import checkpoint, cli
from listenwell.checkpoint import Checkpoint
from listenwell.data.dialogue import examples, without_annotations
from listenwell.data.sources import shipped
from listenwell.decoding import Decoding
from listenwell.evaluation import evaluate as evaluating
from listenwell.evaluation import workers
from listenwell.evaluation.evaluate import Progress
from listenwell.evaluation.partial import PartialResults
from listenwell.evaluation.workers import WorkerError, compute, load_like
from listenwell.systems.base import System

SAMPLED = Decoding(method="sample", max_length=5)


def silent(name: str, total: int):
    return lambda more: None


def killed(*arguments: object) -> System:
    """Instead of loading a system, the process exits as if out of memory."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


@pytest.fixture
def run(tiny_model, tokenizer, tmp_path) -> Path:
    """A run of a model that samples, both in its replies and in its likelihoods."""
    checkpoint.save(Checkpoint("mime", tiny_model("mime"), tokenizer), tmp_path / "run" / "best")
    return tmp_path / "run"


@pytest.fixture
def items():
    return [item for dialogue in shipped.read("test") for item in examples(dialogue)][:14]


def counting(counts: dict[str, int]) -> Progress:
    def begin(name: str, total: int):
        counts[name] = 0

        def done(more: int) -> None:
            counts[name] += more

        return done

    return begin


def test_two_workers_compute_what_one_process_does(run, items, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "CHUNK", 4)
    system = load_like(str(run), SAMPLED, "")
    kept, counts = PartialResults(tmp_path / "begun", "this"), {}
    compute(system, partial(load_like, str(run), SAMPLED, ""), items, 2, kept, counting(counts))
    alone = [
        reply
        for first in range(0, len(items), 4)
        for reply in system.replies([item.context for item in items[first : first + 4]], first=first)
    ]
    assert kept.replies == alone
    expected, likelihoods = system.likelihoods([without_annotations(item) for item in items]), kept.likelihoods()
    assert all(np.array_equal(getattr(likelihoods, name), getattr(expected, name)) for name in ("nll", "tokens"))
    assert counts == {"replies": 14, "likelihoods": 14}


def test_the_command_writes_the_same_with_one_and_two_workers(run, tmp_path):
    words = ["evaluate", str(run), "--data", "shipped", "--limit", "10", "--resamples", "10"]
    words += ["--decoding.method", "sample", "--decoding.max_length", "5"]
    for number in ("1", "2"):
        cli.main([*words, "--workers", number, "--out", str(tmp_path / number)])
    one, two = (json.loads((tmp_path / number / "scores.json").read_text()) for number in ("1", "2"))
    assert one["scores"] == two["scores"]
    assert (one["about"].get("workers"), two["about"]["workers"]) == (None, 2)
    assert (tmp_path / "1" / "replies.jsonl").read_text() == (tmp_path / "2" / "replies.jsonl").read_text()


def test_a_killed_worker_is_named_and_what_was_done_is_gone_on_with(run, items, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "CHUNK", 4)
    system = load_like(str(run), SAMPLED, "")
    kept = PartialResults(tmp_path / "begun", "this")
    later = system.replies([item.context for item in items[8:12]], first=8)
    kept.add(later, 1.0, first=8)
    with pytest.raises(WorkerError, match="killed, or there is not enough memory for 2 systems"):
        compute(system, killed, items, 2, kept, silent)
    again = PartialResults(tmp_path / "begun", "this")
    assert again.chunks[8] == (later, 1.0)
    left = [task.first for task in workers.tasks(system, items, again) if task.first is not None]
    assert left == [first for first in (0, 4, 8, 12) if first not in again.chunks]
    compute(system, partial(load_like, str(run), SAMPLED, ""), items, 2, again, silent)
    assert len(again.replies) == len(items)
    assert again.replies[8:12] == later


def test_the_command_says_so_and_keeps_the_replies(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(workers, "load_like", killed)
    words = ["evaluate", str(run), "--data", "shipped", "--limit", "10", "--workers", "2", "--resamples", "0"]
    with pytest.raises(SystemExit, match="fewer --workers"):
        cli.main([*words, "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def test_a_model_behind_a_server_takes_no_workers():
    with pytest.raises(SystemExit, match="gets several requests at once anyway; leave --workers out"):
        cli.main(["evaluate", "openai:any", "--base-url", "http://localhost:1/v1", "--workers", "2"])


def test_one_process_goes_on_from_what_several_did(run, items, tmp_path, monkeypatch):
    """Even if their chunks were smaller, as for the house system."""
    monkeypatch.setattr(evaluating, "CHUNK", 8)
    system = load_like(str(run), Decoding(method="greedy", max_length=5), "")
    whole, _ = evaluating.generate_replies(system, items, lambda more: None, None)
    kept = PartialResults(tmp_path / "begun", "this")
    kept.add(whole[8:12], 1.0, first=8)
    replies, _ = evaluating.generate_replies(system, items, lambda more: None, kept)
    assert replies == kept.replies == whole
    assert len(kept) == len(PartialResults(tmp_path / "begun", "this").replies) == len(items)


def test_replies_after_a_gap_are_kept_and_not_counted_as_the_beginning(run, items, tmp_path):
    system = load_like(str(run), SAMPLED, "")
    replies = system.replies([item.context for item in items[:4]])
    kept = PartialResults(tmp_path / "begun", "this")
    kept.add(replies[2:], 1.0, first=2)
    assert (kept.replies, len(kept)) == ([], 2)
    kept.add(replies[:2], 1.5)
    again = PartialResults(tmp_path / "begun", "this")
    assert (again.replies, again.seconds) == (replies, 2.5)
