"""Cues find their speakers in a script with almost the same text."""

from __future__ import annotations

import csv
import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.data.curation.alignment import GAP, MISMATCH, Line, align, align_words, read_script
from listenwell.data.curation.cues import Cue
from listenwell.data.curation.labels_from_scripts import labelled_files, pair_labels

SCRIPT = [
    Line("ann", "Well, hello there, did you sleep well?"),
    Line("bob", "Oh, like a stone, really, thank you. And you?"),
    Line("ann", "I never sleep."),
    Line("ann@bob", "Good night!"),
    Line("cat#unknown", "What a strange house this is."),
]


def cues(*texts: str) -> list[Cue]:
    return [Cue("f", number, None, None, text) for number, text in enumerate(texts, start=1)]


def test_cues_get_the_speakers_of_their_words() -> None:
    found = align(cues("Hello there. Did you sleep well?", "Like a stone.", "And you? I never sleep."), SCRIPT)
    assert [(each.first, each.last) for each in found] == [("ann", "ann"), ("bob", "bob"), ("bob", "ann")]


def test_what_the_script_does_not_have_has_no_speaker() -> None:
    found = align(cues("Previously on Some Show", "Hello there, did you sleep well?"), SCRIPT)
    assert [each.first for each in found] == [None, "ann"]


def test_a_line_of_several_speakers_names_none() -> None:
    found = align(cues("I never sleep.", "Good night!", "A strange house this is."), SCRIPT)
    assert [each.first for each in found] == ["ann", None, "cat#unknown"]


def test_pairs_are_labelled_where_both_sides_are_known() -> None:
    found = align(cues("Hello there,", "did you sleep well?", "Like a stone.", "Good night!", "I never sleep."), SCRIPT)
    assert pair_labels(found).tolist() == [1, 0, -1, -1]


def test_without_words_nothing_is_known() -> None:
    assert [each.first for each in align(cues("...", "Hi."), [])] == [None, None]


def slow_best(left: list[str], right: list[str]) -> float:
    """The score of the best alignment, cell by cell."""
    table = np.zeros((len(left) + 1, len(right) + 1))
    table[0] = GAP * np.arange(len(right) + 1)
    table[:, 0] = GAP * np.arange(len(left) + 1)
    for i, a in enumerate(left, start=1):
        for j, b in enumerate(right, start=1):
            pair = 1 + 0.15 * min(len(a), 8) if a == b else MISMATCH
            table[i, j] = max(table[i - 1, j - 1] + pair, table[i - 1, j] + GAP, table[i, j - 1] + GAP)
    return float(table[-1, -1])


WORDS = st.lists(st.sampled_from(["a", "the", "house", "never"]), min_size=1, max_size=9)


@given(WORDS, WORDS)
def test_the_alignment_is_the_best_one(left: list[str], right: list[str]) -> None:
    pairs = align_words(left, right)
    assert all(left[i] == right[j] for i, j in pairs)
    assert all(i < k and j < m for (i, j), (k, m) in itertools.pairwise(pairs))
    # Two gaps cost less than a mismatch, so the score is that of the equal words, with gaps for all others.
    gaps = len(left) + len(right) - 2 * len(pairs)
    score = sum(1 + 0.15 * min(len(left[i]), 8) for i, _ in pairs) + GAP * gaps
    assert score == pytest.approx(slow_best(left, right))


def test_a_script_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "script.txt"
    path.write_text("ann Hello there.\n\nbob\nbob  Who is it?\n", encoding="utf-8")
    assert read_script(path) == [Line("ann", "Hello there."), Line("bob", "Who is it?")]


def checked() -> list[dict[str, str]]:
    with open(Path(__file__).with_name("same_speaker_label_check.csv"), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_three_hundred_labels_were_checked_by_hand() -> None:
    rows = checked()
    assert len(rows) == 300
    assert {row["label"] for row in rows} == {row["judgement"] for row in rows} == {"same", "different"}
    assert sum(row["label"] != row["judgement"] for row in rows) == 1


@pytest.mark.data
def test_the_checked_labels_are_those_of_the_alignment(tmp_path: Path) -> None:
    root = Path(os.environ.get("LISTENWELL_DATA", "")) / "subtitles"
    if not root.is_dir():
        pytest.skip("LISTENWELL_DATA has no subtitles")
    # Only season 6 of one series: aligning all episodes takes a minute.
    (tmp_path / "lost").mkdir()
    (tmp_path / "scripts").symlink_to(root / "scripts")
    for path in (root / "lost").glob("lost.s06e0[3-7]*"):
        (tmp_path / "lost" / path.name).symlink_to(path)
    rows = {(row["episode"], row["before"], row["after"]): row["label"] for row in checked() if row["series"] == "lost"}
    found = 0
    for file in labelled_files(tmp_path, "lost"):
        names = [f"{cue.number}.{cue.part}" for cue in file.cues]
        for before, after, label in zip(names, names[1:], file.labels, strict=False):
            if expected := rows.get((file.episode, before, after)):
                assert label == (expected == "same")
                found += 1
    assert found >= 5
