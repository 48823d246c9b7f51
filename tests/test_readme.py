"""The commands in the README and in pages it links to, verbatim except for smaller models and budgets."""

import csv
import io
import re
import shlex
import sys
from itertools import islice
from pathlib import Path

import pytest

from listenwell import cli
from listenwell.data.sources import jsonl, shipped

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/install.md", "docs/training.md")

COLUMNS = ("conv_id", "utterance_idx", "context", "prompt", "speaker_idx", "utterance", "selfeval", "tags")

SMALL = [
    *("model.width=16", "model.heads=2", "model.feed_forward=24"),
    *("stages.0.examples=16", "stages.0.validate_every=9"),
    *("decoding.method=greedy", "decoding.max_length=6"),
]
SECOND = ["stages.1.examples=16", "stages.1.validate_every=9"]
"""For recipes of two stages."""


def commands():
    """Every line of the shell blocks, without comments; the text of an echo pipe becomes the input."""
    text = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
    for block in re.findall(r"```sh\n(.*?)```", text, re.S):
        for line in block.splitlines():
            typed, _, command = line.rpartition(" | ")
            words = shlex.split(command, comments=True)
            if words:
                yield words, shlex.split(typed)[1] if typed else ""


@pytest.fixture
def corpora(tmp_path):
    """A LISTENWELL_DATA folder: a few dialogues in the official layout, and word vectors."""
    folder = tmp_path / "corpora"
    for split in ("train", "valid", "test"):
        path = folder / "empatheticdialogues" / f"{split}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as stream:
            rows = csv.writer(stream)
            rows.writerow(COLUMNS)
            for number, dialogue in enumerate(list(shipped.read(split))[:128:8]):
                for index, turn in enumerate(dialogue.turns):
                    who, text = 10 + (turn.speaker == "listener"), turn.text.replace(",", "_comma_")
                    first = (f"hit:{number}_conv:{number}", index + 1, dialogue.emotion.name, "a prompt")
                    rows.writerow((*first, who, text, "5|5|5_5|5|5", ""))
    vectors = folder / "glove" / "glove100d_trunc.txt"
    vectors.parent.mkdir()
    vectors.write_text("".join(f"{word} {' '.join(['0.1'] * 100)}\n" for word in ("i", "you", "the")))
    return folder


def test_the_readme_s_commands_run_in_its_order(corpora, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LISTENWELL_DATA", str(corpora))
    jsonl.write([*islice(shipped.read("train"), 128), *islice(shipped.read("valid"), 32)], tmp_path / "my.jsonl")
    done = []
    for words, typed in commands():
        if words[0] in ("make", "export", "source"):
            if "chat" in words and typed:
                words = ["listenwell", "chat"]
            else:
                continue
        assert words[0] == "listenwell", f"a page has a command that nobody runs: {' '.join(words)}"
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed or "I lost my job today\n"))
        if words[1] == "compare":  # the README says what can be compared; the other run is like the first
            listenwell("train", "trs", *small("trs"))
            listenwell("evaluate", "runs/trs")
        listenwell(*words[1:], *(small(words[2]) if words[1] == "train" else []))
        done.append(words[1])
    said = capsys.readouterr().out
    assert {"chat", "train", "evaluate", "compare", "reproduce", "doctor", "data"} <= set(done)
    assert "perplexity" in said
    assert (tmp_path / "runs" / "mine" / "best").is_dir()
    assert list((tmp_path / "results").iterdir())


def small(recipe):
    changes = SMALL if recipe == "tiny" else [*SMALL, *SECOND]
    return [word for change in changes for word in ("--set", change)]


def listenwell(*words):
    try:
        cli.main(list(words))
    except SystemExit as ended:
        if ended.code and words[0] != "doctor":  # whose exit code shows what this machine lacks
            raise AssertionError(f"listenwell {' '.join(words)}: {ended.code}") from ended
