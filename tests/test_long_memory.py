"""The dialogues of bench/long_memory.yaml and the counting of bench/long_memory.py. No model is loaded."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from listenwell.systems.reply import Reply

SCRIPT = Path(__file__).resolve().parents[1] / "bench" / "long_memory.py"
FIELDS = {"id", "fact", "told", "turns", "contradicts", "asks_again", "wrong", "fine"}
ORDINARY = (
    "I'm so sorry to hear that.",
    "That sounds really hard.",
    "What did you do then?",
    "How are you feeling about it now?",
    "That must have been a strange moment.",
    "I can only imagine how that felt. Do you want to tell me more?",
    "I hope you can get some rest, and that tomorrow is kinder to you.",
    "Thank you for telling me. It makes sense that you feel that way.",
)
"""Replies that fit anywhere and go against nothing."""


def load_script() -> Any:
    spec = importlib.util.spec_from_file_location("long_memory", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


long_memory = load_script()
DIALOGUES = long_memory.read()
every_dialogue = pytest.mark.parametrize("dialogue", DIALOGUES, ids=[dialogue["id"] for dialogue in DIALOGUES])


def verdict(dialogue: dict[str, Any], reply: str) -> list[str]:
    return long_memory.matched(dialogue["contradicts"] + dialogue["asks_again"], reply)


class Scripted:
    """A system that answers each last turn with a reply set for it, one dialogue at a time."""

    def __init__(self, replies: dict[str, str]) -> None:
        self.answers = replies

    def reply(self, talk: list[str]) -> Reply:
        return Reply(self.answers[talk[-1]])


class Batched(Scripted):
    """The same in batches, whose sizes it records."""

    def __init__(self, replies: dict[str, str]) -> None:
        super().__init__(replies)
        self.sizes: list[int] = []

    def replies(self, talks: list[list[str]]) -> list[Reply]:
        self.sizes.append(len(talks))
        return [self.reply(talk) for talk in talks]


def answering(**replies: str) -> dict[str, str]:
    """Replies by last turn: those given for dialogue ids, and for all others one that fits anything."""
    given = {name.replace("_", "-"): text for name, text in replies.items()}
    return {dialogue["turns"][-1]: given.get(dialogue["id"], ORDINARY[0]) for dialogue in DIALOGUES}


# The dialogues


def test_there_are_forty_dialogues_with_ids_and_last_turns_of_their_own() -> None:
    assert len(DIALOGUES) == 40
    assert len({dialogue["id"] for dialogue in DIALOGUES}) == 40
    assert len({dialogue["turns"][-1] for dialogue in DIALOGUES}) == 40


@every_dialogue
def test_a_dialogue_begins_and_ends_with_the_speaker(dialogue: dict[str, Any]) -> None:
    assert set(dialogue) == FIELDS
    assert 9 <= len(dialogue["turns"]) <= 13
    assert len(dialogue["turns"]) % 2 == 1
    assert all(isinstance(turn, str) and turn.strip() for turn in dialogue["turns"])
    assert len(dialogue["wrong"]) in (2, 3)
    assert len(dialogue["fine"]) == 3


@every_dialogue
def test_the_fact_is_told_once_by_the_speaker_six_or_more_turns_before_the_end(dialogue: dict[str, Any]) -> None:
    places = [place for place, turn in enumerate(dialogue["turns"]) if re.search(dialogue["told"], turn, re.IGNORECASE)]
    assert places
    assert set(places) <= {0, 2}
    assert len(dialogue["turns"]) - 1 - places[-1] >= 6


@every_dialogue
def test_wrong_replies_match_and_fitting_ones_do_not(dialogue: dict[str, Any]) -> None:
    for reply in dialogue["wrong"]:
        assert verdict(dialogue, reply), reply
    for reply in [*dialogue["fine"], *ORDINARY]:
        assert not verdict(dialogue, reply), reply


@every_dialogue
def test_a_repeated_last_turn_contradicts_nothing(dialogue: dict[str, Any]) -> None:
    assert not long_memory.matched(dialogue["contradicts"], dialogue["turns"][-1])


@every_dialogue
def test_both_kinds_of_forgetting_have_expressions(dialogue: dict[str, Any]) -> None:
    for name in long_memory.COUNTED:
        assert dialogue[name]
        assert len(set(dialogue[name])) == len(dialogue[name])
        assert not any(re.search(expression, "") for expression in dialogue[name])  # none that matches everything


# The counting


def test_typographic_apostrophes_line_breaks_and_case_make_no_difference() -> None:
    assert long_memory.matched([r"\bhe's better\b"], "I hope HE’S\nbetter") == ["HE'S better"]


def test_contradictions_and_repeated_questions_are_counted_apart() -> None:
    bot = Scripted(
        answering(
            father_card="I hope he has a great birthday.",
            sam_radio="Who is Sam? Maybe he needs time.",
            lou_badge="What name do you go by?",
        )
    )
    results = long_memory.measure(bot, DIALOGUES)
    contradicting = [result["id"] for result in results if result["contradicts"]]
    asking = [result["id"] for result in results if result["asks_again"]]
    assert (contradicting, asking) == (["father-card", "sam-radio"], ["sam-radio", "lou-badge"])
    table = long_memory.shares(results)
    assert {name: row["count"] for name, row in table.items()} == {"contradicts": 2, "asks_again": 2}
    assert table["contradicts"]["share"] == 0.05


def test_a_system_that_takes_batches_gets_all_dialogues_in_one() -> None:
    bot = Batched(answering())
    results = long_memory.measure(bot, DIALOGUES)
    assert bot.sizes == [40]
    assert [result["reply"] for result in results] == [ORDINARY[0]] * 40


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [(0, 40, 0.0, 0.0876), (4, 40, 0.0396, 0.2305), (20, 40, 0.3520, 0.6480), (40, 40, 0.9124, 1.0)],
)
def test_the_interval_is_wilsons(count: int, total: int, low: float, high: float) -> None:
    assert long_memory.wilson(count, total) == pytest.approx((low, high), abs=5e-4)


def test_the_ends_of_the_interval_are_the_shares_that_the_count_just_allows() -> None:
    for share in long_memory.wilson(7, 40):  # where |count / total - share| is exactly Z standard errors
        assert abs(7 / 40 - share) == pytest.approx(long_memory.Z * (share * (1 - share) / 40) ** 0.5)


def test_the_script_prints_what_matched_and_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bot = Batched(answering(pram="Congratulations! When is the baby due?"))
    asked = []

    def load(name: str, care: bool) -> Batched:
        asked.append((name, care))
        return bot

    monkeypatch.setattr(long_memory, "load", load)
    monkeypatch.setattr(sys, "argv", ["long_memory.py", "stand-in", "--json", str(tmp_path / "kept.json")])
    long_memory.main()
    printed = capsys.readouterr().out
    assert asked == [("stand-in", False)]
    assert "pram: their daughter was stillborn" in printed
    assert "[contradicts: Congrat | " in printed
    assert "1 contradict the fact: 2.5 % (95 %: 0.4 to 12.9)" in printed
    assert "0 ask for it again: 0.0 % (95 %: 0.0 to 8.8)" in printed
    kept = json.loads((tmp_path / "kept.json").read_text("utf-8"))
    assert kept["system"] == "stand-in"
    assert kept["shares"]["contradicts"]["count"] == 1
    assert [dialogue["id"] for dialogue in kept["dialogues"]] == [dialogue["id"] for dialogue in DIALOGUES]


def test_the_help_says_what_is_counted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["long_memory.py", "--help"])
    with pytest.raises(SystemExit):
        long_memory.main()
    assert "Wilson" in capsys.readouterr().out
