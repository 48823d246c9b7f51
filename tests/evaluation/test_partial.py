"""An interrupted evaluation resumes from its saved replies."""

from __future__ import annotations

import json

import numpy as np
import pytest

from listenwell import checkpoint, cli
from listenwell.checkpoint import Checkpoint
from listenwell.data.dialogue import Example, Turn
from listenwell.evaluation import evaluate as evaluating
from listenwell.evaluation.partial import PartialResults, request_key
from listenwell.systems.base import Likelihoods
from listenwell.systems.bot import Bot
from listenwell.systems.reply import Candidate, Reply

REPLIES = [
    Reply("oh no", "sad", {"sad": 1 / 3, "angry": 2 / 3}, "consoling", {"heard": ["sad"]}, (Candidate("oh no", 0.1),)),
    Reply("that is great", candidates=(Candidate("that is great", -1 / 7, {"plan": 1 / 9}),), system="fake"),
]


def test_what_is_kept_comes_back_to_the_last_digit(tmp_path):
    PartialResults(tmp_path / "begun", "this").add(REPLIES, 2.5)
    again = PartialResults(tmp_path / "begun", "this")
    assert again.replies == REPLIES
    assert again.seconds == 2.5
    assert again.likelihoods() is None
    costs = Likelihoods(np.array([1 / 3, 2.0]), np.array([3.0, 4.0]), np.array([2, 3]), np.array([0, 1]), 1)
    again.save_likelihoods(costs)
    likelihoods = PartialResults(tmp_path / "begun", "this").likelihoods()
    assert likelihoods.unseen_types == 1
    for name in ("nll", "tokens", "words", "unknown"):
        assert np.array_equal(getattr(likelihoods, name), getattr(costs, name))
    again.delete()
    assert not (tmp_path / "begun").exists()


def test_what_was_kept_of_another_evaluation_goes(tmp_path):
    PartialResults(tmp_path / "begun", "this").add(REPLIES, 2.5)
    assert PartialResults(tmp_path / "begun", "that").replies == []
    assert PartialResults(tmp_path / "begun", "this").replies == []


def test_a_line_cut_in_two_is_written_again(tmp_path):
    kept = PartialResults(tmp_path / "begun", "this")
    kept.add(REPLIES[:1], 1)
    with (tmp_path / "begun" / "replies.jsonl").open("a") as lines:
        lines.write('[2.0, [{"text": "half a')
    again = PartialResults(tmp_path / "begun", "this")
    assert again.replies == REPLIES[:1]
    again.add(REPLIES[1:], 1)
    assert PartialResults(tmp_path / "begun", "this").replies == REPLIES


def test_a_mark_goes_by_what_is_asked_and_of_whom():
    one, other = (Example("a", (Turn("speaker", text),)) for text in ("hi", "ho"))
    marks = {request_key([one], 1), request_key([other], 1), request_key([one], 2), request_key([one, other], 1)}
    assert len(marks) == 4
    assert request_key([one], 1) == request_key([one], 1)


def test_an_evaluation_cut_off_ends_as_an_unbroken_one(tiny_model, tokenizer, tmp_path, monkeypatch, capsys):
    """With a model that samples: its noise depends on an item's index, not on what was written before."""
    monkeypatch.setattr(evaluating, "CHUNK", 4)
    ckpt = Checkpoint("mime", tiny_model("mime"), tokenizer)
    run = tmp_path / "run"
    checkpoint.save(ckpt, run / "best")
    words = ["evaluate", str(run), "--data", "shipped", "--limit", "10", "--resamples", "0"]
    words += ["--decoding.method", "sample", "--decoding.max_length", "5"]
    cli.main([*words, "--out", str(tmp_path / "unbroken")])
    whole, calls = Bot.replies, []

    def failing(self, talks, controls=None, done=None, first=0):
        calls.append(first)
        if len(calls) == 3:
            raise OSError("the cable was pulled")
        return whole(self, talks, controls, done, first)

    monkeypatch.setattr(Bot, "replies", failing)
    with pytest.raises(SystemExit, match="the cable was pulled"):
        cli.main([*words, "--out", str(tmp_path / "cut")])
    assert "8 replies are saved; the same command resumes from there" in capsys.readouterr().err
    cli.main([*words, "--out", str(tmp_path / "cut")])
    assert "resuming: 8 of 10 replies were written before" in capsys.readouterr().err
    assert calls == [0, 4, 8, 8]
    ends = [(tmp_path / name / "replies.jsonl").read_text() for name in ("unbroken", "cut")]
    assert ends[0] == ends[1]
    one, other = (json.loads((tmp_path / name / "scores.json").read_text())["scores"] for name in ("unbroken", "cut"))
    assert one == other
    assert [place.name for place in tmp_path.iterdir() if place.name.startswith(".")] == []


def test_scores_in_half_the_bits_say_so(tiny_model, tokenizer, tmp_path):
    checkpoint.save(Checkpoint("trs", tiny_model("trs"), tokenizer), tmp_path / "run" / "best")
    words = ["evaluate", str(tmp_path / "run"), "--data", "shipped", "--limit", "2", "--resamples", "0"]
    scores = {}
    for name, more in {"full": [], "half": ["--precision", "bf16"]}.items():
        cli.main([*words, *more, "--out", str(tmp_path / name)])
        scores[name] = json.loads((tmp_path / name / "scores.json").read_text())
    assert (scores["full"]["about"].get("precision"), scores["half"]["about"]["precision"]) == (None, "bf16")
    assert all("precision:bf16" in score["signature"] for score in scores["half"]["scores"])
    assert not any("precision" in score["signature"] for score in scores["full"]["scores"])
