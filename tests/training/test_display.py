import io
import json

import pytest
from rich.console import Console

from listenwell.training.display import Display, Journal, describe, read_journal


def written(folder, updates, after=0):
    journal = Journal(folder, after)
    for update in updates:
        journal.write("train", update, {"reply": 1.0 / update, "stage": "joint"})
    journal.close()
    return folder / "log.jsonl"


def test_a_journal_is_a_record_a_line(tmp_path):
    path = written(tmp_path, [1, 2])
    assert read_journal(path) == [
        {"kind": "train", "update": 1, "reply": 1.0, "stage": "joint"},
        {"kind": "train", "update": 2, "reply": 0.5, "stage": "joint"},
    ]


def test_what_was_logged_beyond_the_place_to_go_on_from_is_dropped(tmp_path):
    written(tmp_path, [1, 2, 3, 4])
    path = written(tmp_path, [3, 4, 5], after=2)
    assert [record["update"] for record in read_journal(path)] == [1, 2, 3, 4, 5]


def test_a_new_run_starts_a_new_journal(tmp_path):
    written(tmp_path, [1, 2, 3])
    assert [record["update"] for record in read_journal(written(tmp_path, [1]))] == [1]


@pytest.mark.parametrize("cut", ['{"kind": "tra', '{"kind": "train"}', "", "\x00\x00"])
def test_a_line_that_a_hard_stop_cut_is_dropped(tmp_path, cut):
    path = written(tmp_path, [1, 2])
    path.write_text(path.read_text() + cut)
    assert [record["update"] for record in read_journal(written(tmp_path, [3], after=2))] == [1, 2, 3]


def test_a_record_is_on_disk_as_soon_as_it_is_written(tmp_path):
    journal = Journal(tmp_path, 0)
    journal.write("valid", 7, {"reply": 2.0})
    assert json.loads((tmp_path / "log.jsonl").read_text())["update"] == 7
    journal.close()


def shown(quiet=False):
    return Display(Console(file=io.StringIO(), width=200), quiet)


def test_what_is_said_is_said_as_it_is():
    display = shown()
    display.say("going on from runs/[old]/[/x]")
    assert display.console.file.getvalue() == "going on from runs/[old]/[/x]\n"


def test_quiet_says_nothing_but_warnings():
    display = shown(quiet=True)
    display.say("hello")
    display.warn("the disk [Errno 28] is full [/]")
    assert display.console.file.getvalue() == "warning: the disk [Errno 28] is full [/]\n"


def test_losses_are_described_as_people_think_of_them():
    means = {"reply": 3.0, "emotion": 2.5, "emotion-accuracy": 0.125}
    assert describe(means) == "perplexity 20.1 · emotion 2.500 · emotion-accuracy 12.5 %"
    assert describe({"reply": 1e9}).startswith("perplexity 5184705528587072045056")


def test_elsewhere_than_in_a_terminal_a_line_comes_now_and_then(monkeypatch):
    display = shown()
    clock = iter(range(0, 1000, 12))
    monkeypatch.setattr("listenwell.training.display.time.monotonic", lambda: next(clock))
    display._said = 0
    with display:
        display.stage("tiny: joint", 100, 0)
        for seen in range(1, 9):
            display.update(seen, 100, {"reply": 0.0}, 10.0)
    lines = display.console.file.getvalue().splitlines()
    assert 1 <= len(lines) < 8
    assert "of 100 examples · perplexity 1.0 · 10 examples/s" in lines[0]
