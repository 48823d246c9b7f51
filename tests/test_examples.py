"""The scripts of examples/ run as they are, on the shipped corpus and small systems."""

from __future__ import annotations

import runpy
import sys
from itertools import islice
from pathlib import Path

from listenwell.data.sources import jsonl, shipped
from listenwell.training import run

EXAMPLES = Path(__file__).parents[1] / "examples"


def run_example(monkeypatch, name: str, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", [name, *words])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def test_talk_prints_a_reply_and_what_was_heard(monkeypatch, capsys):
    run_example(monkeypatch, "talk.py", "multi-trs")
    assert "emotion: " in capsys.readouterr().out


def test_own_corpus_trains_and_scores(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(run, "draw", lambda folder: None)
    mine = tmp_path / "mine.jsonl"
    jsonl.write([d for s in ("train", "valid", "test") for d in islice(shipped.read(s), 32)], mine)
    small = ["model.width=16", "model.heads=2", "stages.0.examples=16", "stages.0.validate_every=9"]
    quick = ["decoding.method=greedy", "decoding.max_length=6"]
    run_example(monkeypatch, "own_corpus.py", str(mine), str(tmp_path / "run"), *small, *quick)
    assert "perplexity" in capsys.readouterr().out
