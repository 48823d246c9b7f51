"""From cues to turns to dialogues."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.data.curation.cues import Cue, CueTurn
from listenwell.data.curation.sentences import sentences
from listenwell.data.curation.turns import cut_dialogues, split_dashes, turns_from_cues


def cue(number: int, text: str, start: float | None = None, end: float | None = None) -> Cue:
    return Cue("f.srt", number, start, end, text)


def pieces(text: str) -> list[tuple[str, bool]]:
    return [(part.text, part.dash) for part in split_dashes([cue(1, text)])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Not yet. I heard it hurts. Does it?", ["Not yet.", "I heard it hurts.", "Does it?"]),
        ("Mr. Smith is here. J. F. Kay, too.", ["Mr. Smith is here.", "J. F. Kay, too."]),
        ("Well... no. Well... No!", ["Well... no.", "Well...", "No!"]),
        ("Look.I can't", ["Look.", "I can't"]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("It's 3.5 million. OK", ["It's 3.5 million.", "OK"]),
        ("你好。我是谁？不知道", ["你好。", "我是谁？", "不知道"]),
        ("...", ["..."]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@given(st.text(alphabet="aB .?!…\"'-。？我", max_size=40))
def test_sentences_lose_nothing(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- Hi. - Hello.", [("Hi.", True), ("Hello.", True)]),
        ("-Hi\n-Hello", [("Hi", True), ("Hello", True)]),
        ("Hi.\n- Hello.", [("Hi.", False), ("Hello.", True)]),
        ("– Hi. It's me. – Who?", [("Hi.", True), ("It's me.", False), ("Who?", True)]),
        ("-是吗  -是的", [("是吗", True), ("是的", True)]),
        ("--and then he left", [("--and then he left", False)]),
        ("A well-known twenty-one", [("A well-known twenty-one", False)]),
        ("-=Some Team=-", [("-=Some Team=-", False)]),
        ("One line\nand another", [("One line and another", False)]),
    ],
)
def test_dashes_mark_speakers(text: str, expected: list[tuple[str, bool]]) -> None:
    assert pieces(text) == expected


def test_names_in_capitals_are_speakers() -> None:
    parts = split_dashes([cue(1, "ANN: Who is it?\nMAN #2: Me. Open up.")])
    assert [(part.speaker, part.text) for part in parts] == [
        ("ANN", "Who is it?"),
        ("MAN #2", "Me."),
        ("MAN #2", "Open up."),
    ]


def test_parts_share_the_time_of_their_cue_and_keep_its_number() -> None:
    parts = split_dashes([cue(5, "- Aaaaaa. - Bb.", 10.0, 20.0)])
    assert [(part.number, part.part) for part in parts] == [(5, 0), (5, 1)]
    assert (parts[0].start, parts[-1].end) == (10.0, 20.0)
    assert parts[0].end == parts[1].start == pytest.approx(10 + 10 * 7 / 10)


def test_parts_of_an_untimed_cue_are_untimed() -> None:
    assert [(part.start, part.end) for part in split_dashes([cue(1, "Hi. Ho.", 1.0)])] == [(1.0, None), (None, None)]


def test_scores_above_zero_join() -> None:
    cues = [cue(1, "I was", 0, 1), cue(2, "at home.", 1, 2), cue(3, "Really?", 2, 3)]
    assert turns_from_cues(cues, np.array([0.4, -0.2])) == [
        CueTurn("f.srt", (1, 2), 0, 2, "I was at home."),
        CueTurn("f.srt", (3,), 2, 3, "Really?"),
    ]


def test_a_long_gap_ends_a_turn_whoever_speaks() -> None:
    cues = [cue(1, "Wait.", 0, 1), cue(2, "Wait!", 6.1, 7)]
    assert len(turns_from_cues(cues, np.array([9.0]))) == 2
    assert len(turns_from_cues([cues[0], cue(2, "Wait!", 6.0, 7)], np.array([9.0]))) == 1


def test_a_cue_number_stands_once_in_a_turn() -> None:
    cues = split_dashes([cue(4, "Hi. It's me.", 0, 2)])
    assert turns_from_cues(cues, np.array([1.0]))[0].cues == (4,)


def test_scores_must_fit() -> None:
    with pytest.raises(ValueError, match="2 cues need 1 scores"):
        turns_from_cues([cue(1, "a"), cue(2, "b")], np.zeros(2))
    assert turns_from_cues([], np.zeros(0)) == []


def test_more_than_five_seconds_cut_a_dialogue_and_a_missing_time_joins() -> None:
    turns = [
        CueTurn("f", (1,), 0.0, 1.0, "a"),
        CueTurn("f", (2,), 6.0, 7.0, "b"),
        CueTurn("f", (3,), 12.1, None, "c"),
        CueTurn("f", (4,), 90.0, 91.0, "d"),
        CueTurn("f", (5,), None, 99.0, "e"),
    ]
    assert [[turn.text for turn in dialogue] for dialogue in cut_dialogues(turns)] == [["a", "b"], ["c", "d", "e"]]
    assert cut_dialogues([]) == []


@given(st.lists(st.tuples(st.text(min_size=1, max_size=12), st.floats(-2, 2)), max_size=8))
def test_every_cue_ends_up_in_one_turn(rows: list[tuple[str, float]]) -> None:
    cues = [cue(index + 1, text, float(index), index + 0.5) for index, (text, _) in enumerate(rows)]
    turns = turns_from_cues(cues, np.array([score for _, score in rows[1:]]))
    assert [number for turn in turns for number in turn.cues] == [each.number for each in cues]
