"""Replies written for contexts of EmpatheticDialogues: put in the place of people's, and nothing else changed."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from listenwell.data import sources
from listenwell.data.dialogue import Dialogue, examples
from listenwell.data.sources import attentive, empathetic_dialogues
from listenwell.data.sources.report import Report
from listenwell.labels.taxonomy import EMOTIONS, INTENTS
from listenwell.text import words

HEADER = "conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """EmpatheticDialogues with the dialogues of the first three replies, and one that was not answered."""
    rows = []
    for dialogue in [*(one.dialogue for one in list(attentive.written_replies())[:3]), "hit:0_conv:99999"]:
        said = [f"{dialogue},{turn + 1},sad,I was sad,{turn % 2 + 1},turn {turn},5|5|5_2|2|2," for turn in range(8)]
        rows += [line + "\n" for line in said]
    (tmp_path / "train.csv").write_text(HEADER + "".join(rows), encoding="utf-8")
    return tmp_path


def test_each_dialogue_ends_with_the_reply_that_was_written_for_it(folder: Path):
    written = list(attentive.written_replies())[:3]
    found = {dialogue.id: dialogue for dialogue in sources.read("attentive", folder)}
    people = {dialogue.id: dialogue for dialogue in empathetic_dialogues.read(folder)}
    assert set(found) == {one.dialogue for one in written}
    for one in written:
        dialogue = found[one.dialogue]
        assert dialogue.turns[-1].text == one.text
        assert dialogue.turns[-1].speaker == "listener"
        assert [turn.text for turn in dialogue.turns[:-1]] == [
            turn.text for turn in people[one.dialogue].turns[: one.turn]
        ]
        assert dialogue.split == one.split
        labelled = [item for item in examples(dialogue) if item.reply is not None and item.reply.label is not None]
        assert [item.id for item in labelled] == [f"{one.dialogue}#{one.turn}"]


def test_replies_whose_dialogue_is_missing_are_counted(folder: Path):
    report = Report()
    kept: list[Dialogue] = list(sources.read("attentive", folder, report=report))
    total = sum(1 for _ in attentive.written_replies())
    assert (report.dialogues, report.dropped[attentive.NO_CONTEXT]) == (len(kept), total - len(kept))


def test_a_change_of_either_file_is_noticed(folder: Path):
    files = sources.data_files("attentive", folder, "train")
    assert [Path(str(file)).name for file in files] == ["train.csv", "en.jsonl"]


def test_the_replies_are_short_varied_and_labelled():
    written = list(attentive.written_replies())
    assert len(written) > 2_000
    assert len({one.dialogue for one in written}) == len(written)
    assert Counter(one.split for one in written)["valid"] > 0.03 * len(written)
    assert {one.label for one in written} <= {*EMOTIONS, *INTENTS, "neutral"}
    lengths = [len(words(one.text)) for one in written]
    assert 12 < sum(lengths) / len(lengths) < 25
    openings = Counter(" ".join(words(one.text)[:2]).lower() for one in written)
    assert openings.most_common(1)[0][1] < 0.15 * len(written)


def test_they_claim_no_life_of_their_own():
    claim = re.compile(
        r"\bmy (own )?(dog|cat|mom|dad|wife|husband|son|daughter|job|house|friend|sister|brother)\b|\bme too\b", re.I
    )
    assert [one.text for one in attentive.written_replies() if claim.search(one.text)] == []
