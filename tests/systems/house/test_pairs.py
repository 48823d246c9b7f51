"""Replies with two moves."""

from listenwell.systems.house.pairs import make_pairs
from listenwell.systems.reply import Candidate


def candidate(text, score=-1.0, move="acknowledging"):
    return Candidate(text, score, moves=(move,))


SORRY = candidate("I am so sorry", -1.0, "sympathizing")
LOVED = candidate("She was loved.", -2.0)
NAME = candidate("What was her name?", -3.0, "questioning")
AGE = candidate("How old was she?", -1.0, "questioning")


def test_a_statement_comes_before_a_question_with_what_both_were_written_for():
    (pair,) = make_pairs([SORRY, NAME], 3)
    assert pair.text == "I am so sorry. What was her name?"
    assert pair.moves == ("sympathizing", "questioning")
    assert pair.score == (4 * -1.0 + 5 * -3.0) / 9  # punctuation counts as a word


def test_every_statement_is_used_before_one_is_used_again():
    texts = [pair.text for pair in make_pairs([SORRY, LOVED, NAME, AGE], 3)]
    assert texts == [
        "I am so sorry. What was her name?",
        "She was loved. How old was she?",
        "I am so sorry. How old was she?",
    ]


def test_what_asks_already_or_is_long_or_has_no_question_makes_no_pair():
    both = candidate("Oh no. What happened?")
    long = candidate("It " + "really " * 25 + "hurts.")
    assert make_pairs([both, long, NAME], 3) == []
    assert make_pairs([SORRY, LOVED], 3) == []
    assert make_pairs([SORRY, NAME], 0) == []
