"""Unpaired data: what is kept, for which side, and how it is counted."""

import json
from pathlib import Path

import numpy as np
import pytest

from listenwell import cli
from listenwell.classifiers.labeller import Labeller
from listenwell.classifiers.unpaired import THRESHOLDS, UnpairedCounts, side_of, unpaired
from listenwell.data import sources
from listenwell.data.dialogue import Dialogue, Turn
from listenwell.data.sources.jsonl import write
from listenwell.labels.taxonomy import EMOTIONS, LABEL_ID, LABELS


class Fixed:
    """A labeller that gives neutral half the probability and "sad" a share of the rest: the last word, in percent."""

    def distribution(self, texts, done=None):
        probabilities = np.zeros((len(texts), len(LABELS)))
        for row, text in enumerate(texts):
            sure = float(text.split()[-1]) / 100
            probabilities[row, LABEL_ID["neutral"]] = 0.5
            probabilities[row, LABEL_ID["sad"]] = 0.5 * sure
            others = [LABEL_ID[name] for name in EMOTIONS if name != "sad"]
            probabilities[row, others] = 0.5 * (1 - sure) / len(others)
        return probabilities


def talk(number, *texts):
    turns = tuple(Turn("speaker" if index % 2 == 0 else "listener", text) for index, text in enumerate(texts))
    return Dialogue(str(number), turns, source="made")


def test_only_sure_texts_are_kept_by_their_probability_among_the_32_emotions():
    kept = list(unpaired([talk(1, "this is about 59", "this is about 60", "this is about 90")], Fixed(), 0.6))
    assert [dialogue.turns[0].text for dialogue in kept] == ["this is about 60", "this is about 90"]
    assert kept[1].emotion.name == "sad"
    assert kept[1].emotion.by == "machine"
    assert kept[1].emotion.confidence == pytest.approx(0.9)


def test_texts_of_fewer_than_three_words_and_repeated_ones_are_left_out():
    counts = UnpairedCounts()
    said = ["well 90", "oh well 90", "oh well 90", "Oh, well 90"]
    kept = list(unpaired([talk(1, *said)], Fixed(), 0.5, counts))
    assert [dialogue.turns[0].text for dialogue in kept] == ["oh well 90", "Oh, well 90"]
    assert counts.read.total() == 4
    assert counts.too_short.total() == 1
    assert counts.repeated.total() == 1


def test_no_dialogue_is_on_both_sides():
    dialogues = [talk(number, f"this is {number} about 90", f"that is {number} about 90") for number in range(200)]
    sides = {}
    for one in unpaired(dialogues, Fixed(), 0.6):
        sides.setdefault(one.id.split("-")[1], set()).add(one.turns[0].speaker)
    assert all(len(roles) == 1 for roles in sides.values())
    roles = [next(iter(one)) for one in sides.values()]
    assert 60 < roles.count("speaker") < 140
    assert side_of(dialogues[0]) == side_of(talk(0, "another text"))


def test_every_threshold_of_the_paper_is_counted_at_once():
    counts = UnpairedCounts()
    list(
        unpaired(
            [talk(n, f"number {n} is {sure}") for n, sure in enumerate((52, 57, 62, 67, 72))], Fixed(), 0.6, counts
        )
    )
    assert [counts.number(s, "speaker") + counts.number(s, "listener") for s in THRESHOLDS] == [5, 4, 3, 2, 1]
    assert sum(kept["sad"] for kept in counts.kept_by_side[0.6].values()) == 3


def test_a_threshold_that_is_no_probability_is_refused():
    with pytest.raises(ValueError, match="found 60"):
        list(unpaired([], Fixed(), 60))


@pytest.fixture
def talks(tmp_path, monkeypatch):
    """An open-domain corpus in the current folder, and the labeller above in place of a trained one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Labeller, "load", lambda using: Fixed())
    said = [talk(n, f"number {n} is {sure}", "oh 90") for n, sure in enumerate((52, 57, 62, 67, 72))]
    write(said, tmp_path / "talk.jsonl")
    return "talk.jsonl"


def test_the_command_writes_a_file_for_each_threshold_and_the_counts_beside_it(talks, capsys):
    cli.main(["data", "unpaired", talks, "--out", "u-{threshold}.jsonl", "--threshold", "0.5", "--threshold=0.65"])
    assert [len(list(sources.read(f"u-{s}.jsonl"))) for s in ("0.50", "0.65")] == [5, 2]
    counts = json.loads(Path("u-0.65.counts.json").read_text())
    assert sum(counts["kept"]["0.65"].values()) == 2
    assert sum(counts["emotions"]["0.50"][side]["sad"] for side in ("context", "response")) == 5
    assert sum(counts["too short"].values()) == 5
    assert "kept at 0.60" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--out", "there.jsonl"], "there.jsonl already exists"),
        (["--out", "u.jsonl", "--threshold", "60"], "found 60"),
        (["--out", "u.jsonl", "--threshold", "most"], "such as 0.6, found 'most'"),
        (["--out", "u.jsonl", "--threshold", "0.5", "--threshold", "0.6"], "--out 'u-{threshold}.jsonl'"),
        ([], "needs --out FILE.jsonl"),
    ],
)
def test_the_command_refuses_before_the_work(talks, words, said):
    Path("there.jsonl").write_text("mine")
    with pytest.raises(SystemExit) as ended:
        cli.main(["data", "unpaired", talks, *words])
    assert said in str(ended.value.code)
    assert sorted(path.name for path in Path().iterdir()) == ["talk.jsonl", "there.jsonl"]


def test_missing_corpora_are_named_with_the_way_out(talks, monkeypatch, tmp_path):
    monkeypatch.setenv("LISTENWELL_DATA", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        cli.main(["data", "unpaired", "--out", "u.jsonl"])
    assert "goemotions not found" in str(ended.value.code)
    assert "name the sources that you have" in str(ended.value.code)
