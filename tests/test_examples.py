"""The scripts in examples/ run unchanged, on the shipped corpus and small systems."""

from __future__ import annotations

import runpy
import sys
from itertools import islice
from pathlib import Path

from listenwell import loading
from listenwell.data.sources import jsonl, shipped
from test_remote import Protocol, answer

EXAMPLES = Path(__file__).parents[1] / "examples"


def run_example(monkeypatch, name: str, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", [name, *words])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def test_talk_prints_a_reply_and_what_was_heard(monkeypatch, capsys):
    run_example(monkeypatch, "talk.py", "multi-trs")
    assert "emotion: " in capsys.readouterr().out


def test_own_corpus_trains_and_scores(monkeypatch, capsys, tmp_path):
    mine = tmp_path / "mine.jsonl"
    jsonl.write([d for s in ("train", "valid", "test") for d in islice(shipped.read(s), 32)], mine)
    small = ["model.width=16", "model.heads=2", "stages.0.examples=16", "stages.0.validate_every=9"]
    quick = ["decoding.method=greedy", "decoding.max_length=6"]
    run_example(monkeypatch, "own_corpus.py", str(mine), str(tmp_path / "run"), *small, *quick)
    assert "perplexity" in capsys.readouterr().out


def test_compare_scores_two_systems_on_the_same_items(monkeypatch, capsys):
    run_example(monkeypatch, "compare.py", "multi-trs", "trs", "4")
    out = capsys.readouterr().out
    assert "multi-trs" in out
    assert "perplexity-word" in out


def test_every_example_is_run_here():
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == {"talk.py", "own_corpus.py", "compare.py", "endpoint.py"}


def test_endpoint_prints_what_a_server_writes(monkeypatch, capsys):
    monkeypatch.setattr(loading, "shipped", dict)  # without the house system, the endpoint works alone
    with Protocol() as server:
        server.faults = [answer("That is hard."), answer("Did they say why?")]
        run_example(monkeypatch, "endpoint.py", "small", server.url)
        assert "questioning" in server.bodies[1]["messages"][0]["content"]
    assert capsys.readouterr().out.splitlines() == ["That is hard.", "Did they say why?"]
