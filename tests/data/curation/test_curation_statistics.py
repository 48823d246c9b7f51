"""MEED2's Tables 1 and 2 and Figure 2 for a curated corpus."""

from __future__ import annotations

import json

import pytest
from made_subtitles import write_subtitles, write_threads
from standin_labels import WordLabelling

from listenwell import cli
from listenwell.data.curation.engines.local import LocalEngine
from listenwell.data.curation.inputs import Inputs
from listenwell.data.curation.pipeline import Curation, curate
from listenwell.data.curation.records import CuratedDialogue, CuratedTurn
from listenwell.data.curation.statistics import PUBLISHED, count_tokens, describe


def dialogue(name: str, *texts: str, selected: bool = False, label: str | None = None) -> CuratedDialogue:
    turns = tuple(CuratedTurn(text, (number,), label) for number, text in enumerate(texts, 1))
    return CuratedDialogue(name, "f.srt", turns, "en", "subtitles", "train", selected=selected)


def test_the_rows_are_those_of_the_paper():
    found = describe([dialogue("a", "Hi, you.", "Hello there!"), dialogue("b", "Why?", "No.", "So.", "Yes, sir.")])
    assert list(found) == ["all"]
    assert found["all"].rows() == {
        "dialogues": 2,
        "turns": 6,
        "tokens": 17,
        "turns per dialogue": 3.0,
        "tokens per turn": 2.83,
        "tokens per dialogue": 8.5,
    }
    assert list(PUBLISHED["all"]) == list(PUBLISHED["emotional"]) == list(found["all"].rows())


def test_the_published_averages_follow_from_the_totals():
    for table in PUBLISHED.values():
        assert table["turns"] / table["dialogues"] == pytest.approx(table["turns per dialogue"], abs=0.01)
        assert table["tokens"] / table["turns"] == pytest.approx(table["tokens per turn"], abs=0.01)
        assert table["tokens"] / table["dialogues"] == pytest.approx(table["tokens per dialogue"], abs=0.01)


def test_the_emotional_ones_are_counted_apart_with_the_labels_of_their_last_utterances():
    found = describe(
        [dialogue("a", "x", "y", selected=True, label="sad"), dialogue("b", "x", "y", label="angry")],
    )
    assert found["emotional"].dialogues == 1
    assert found["emotional"].last_labels == {"sad": 1}
    assert found["all"].last_labels == {"sad": 1, "angry": 1}


def test_chinese_is_counted_by_characters():
    assert count_tokens("你好 吗？", "zh") == 4
    assert count_tokens("I don't know.", "en") == 5


@pytest.fixture
def corpus(tmp_path):
    source = write_subtitles(tmp_path / "subs", files=4)
    out = tmp_path / "out"
    curate(Curation(Inputs.named("subtitles", [source]), out, "en", None, WordLabelling(), 5), LocalEngine(1))
    return out


def test_one_command_prints_the_tables_and_draws_the_figure(corpus, capsys):
    cli.main(["curate", "stats", str(corpus)])
    said = capsys.readouterr().out
    assert "MEED2's Table 1" in said
    assert "MEED2's Table 2" in said
    assert "4,010,009" in said
    assert "MEED2's Figure 2" in said
    assert (corpus / "labels.png").read_bytes().startswith(b"\x89PNG")
    cli.main(["curate", "stats", str(corpus), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["all"]["dialogues"] == 20
    assert found["emotional"]["dialogues"] == sum(found["emotional"]["last labels"].values()) == 5


def test_a_folder_with_statistics_is_still_the_commands_own(corpus, capsys):
    cli.main(["curate", "stats", str(corpus)])
    cli.main(["curate", "check", str(corpus)])
    assert "20 dialogues, hash" in capsys.readouterr().out


def test_the_command_curates_posts_and_shows_what_became_of_them(tmp_path, capsys):
    threads = write_threads(tmp_path / "w.jsonl", [["今天怎么样[哈哈]", "还不错呢"], ["单独一条"]])
    cli.main(["curate", "posts", str(threads), "--out", str(tmp_path / "out"), "--workers", "1"])
    said = capsys.readouterr().out
    assert "dropped: fewer than two turns" in said
    assert "[emoticons]" in said
    assert "1 dialogues with 2 turns" in said
    cli.main(["data", "stats", str(tmp_path / "out")])
    assert "dialogues" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("curate movies x --out o", "unknown verb 'movies'"),
        ("curate subtitles --out o", "curate subtitles needs the files and folders to read"),
        ("curate subtitles .", "needs --out DIR"),
        ("curate posts . --out o --most-emotional 5", "--most-emotional needs --labeller"),
        ("curate posts nowhere --out o", "nowhere: no such file or folder"),
        ("curate stats .", "no finished curated corpus"),
        ("curate subtitles . --out o --workers 0", "--workers is 0, expected 1 or more"),
    ],
)
def test_a_slip_is_told_in_one_line(words, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        cli.main(words.split())
    assert expected in str(ended.value.code)
    assert not (tmp_path / "o").exists()
