"""Whether a discrete latent is used: its information, the cost of another context's value, replies under its values."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from test_evaluate import made_items, quiet

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.commands.consensus import consensus as command
from listenwell.evaluation.consensus import consensus, latent_statistics
from listenwell.systems.base import LatentScores
from listenwell.systems.reply import Reply


def by_name(scores):
    return {score.name: score for score in scores}


def test_a_latent_that_tells_contexts_apart_has_information_and_is_worth_something():
    sure = np.log(np.array([[0.98, 0.02], [0.02, 0.98]]))
    nll = np.array([[2.0, 8.0], [8.0, 2.0]])
    scores = by_name(latent_statistics(LatentScores(sure, nll, np.array([2.0, 2.0])), 0))
    entropy = -(0.98 * math.log(0.98) + 0.02 * math.log(0.02))
    assert scores["information"].value == pytest.approx(math.log(2) - entropy)
    own = -math.log(0.98 * math.exp(-2) + 0.02 * math.exp(-8))
    other = -math.log(0.02 * math.exp(-2) + 0.98 * math.exp(-8))
    assert scores["perplexity-latent"].value == pytest.approx(math.exp(own / 2))
    assert scores["perplexity-other-latent"].value == pytest.approx(math.exp(other / 2))
    assert scores["latent-ratio"].value == pytest.approx(math.exp((other - own) / 2))
    assert scores["values-used"].value == 2


def test_a_latent_that_is_the_same_everywhere_tells_nothing():
    same = np.log(np.full((4, 3), 1 / 3))
    scores = by_name(latent_statistics(LatentScores(same, np.ones((4, 3)), np.ones(4)), 20))
    assert scores["information"].value == pytest.approx(0, abs=1e-12)
    assert scores["latent-ratio"].value == pytest.approx(1)
    assert scores["values-used"].value == 1


class Talker:
    name = "talker"

    def latent_scores(self, items, done=None):
        log_q = np.log(np.tile([0.1, 0.2, 0.7], (len(items), 1)))
        return LatentScores(log_q, np.ones((len(items), 3)), np.ones(len(items)))

    def replies(self, talks, controls=None, done=None):
        return [Reply(f"under {controls.latent_value}", reasons={"consensus": controls.latent_value}) for _ in talks]


def test_replies_are_shown_under_the_chosen_value_and_the_most_common_ones():
    result = consensus(Talker(), made_items(), quiet, shown=2, values=2, resamples=0)
    assert len(result.records) == 2
    texts = {name: reply["text"] for name, reply in result.records[0]["replies"].items()}
    assert texts == {"chosen": "under None", "2": "under 2", "1": "under 1"}


def test_a_system_without_such_a_latent_is_refused(capsys):
    with pytest.raises(ValueError, match="trs has no discrete latent; dual-emp and sing-emp have one"):
        command("trs", "shipped", limit=2)


def test_the_command_measures_a_trained_system(tiny_model, tokenizer, tmp_path, capsys):
    checkpoint.save(Checkpoint("dual-emp", tiny_model("dual-emp"), tokenizer), tmp_path / "run")
    command(str(tmp_path / "run"), "shipped", limit=6, contexts=2, values=2, out=tmp_path / "c", resamples=0)
    assert "stands for" in capsys.readouterr().out
    scores = json.loads((tmp_path / "c" / "scores.json").read_text())
    assert scores["command"] == "consensus"
    assert scores["scores"][0]["name"] == "information"
    records = [json.loads(line) for line in (tmp_path / "c" / "replies.jsonl").read_text().splitlines()]
    assert all("chosen" in record["replies"] for record in records)
