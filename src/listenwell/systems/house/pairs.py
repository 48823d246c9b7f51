"""Replies with two moves, made from two candidates: first a statement, then a question.

People who listen well often do both: they show that they have understood and ask a follow-up question. Most replies in
the writer's training data do only one thing, so the writer does one thing per plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from listenwell.systems.house.vetoes import split_sentences
from listenwell.systems.reply import Candidate
from listenwell.text.words import words

LONGEST_STATEMENT, LONGEST_PAIR = 22, 32
"""Maximum lengths in words: longer replies tend to drift."""


def make_pairs(candidates: Sequence[Candidate], count: int) -> list[Candidate]:
    """Returns at most `count` pairs, likeliest first. Every statement is paired once before any is used again."""
    statements = [one for one in candidates if _is_statement(one)]
    questions = [one for one in candidates if _is_question(one)]
    offered = (
        (statement, questions[(place + turn) % len(questions)])
        for turn in range(len(questions))
        for place, statement in enumerate(statements)
    )
    return list(islice((_joined(*pair) for pair in offered if _fit(*pair)), count))


def _is_statement(one: Candidate) -> bool:
    text = one.text.strip()
    return "?" not in text and 2 <= len(words(text)) <= LONGEST_STATEMENT and len(split_sentences(text)) <= 2


def _is_question(one: Candidate) -> bool:
    return one.text.strip().endswith("?") and len(split_sentences(one.text)) == 1


def _fit(statement: Candidate, question: Candidate) -> bool:
    return len(words(statement.text)) + len(words(question.text)) <= LONGEST_PAIR


def _joined(statement: Candidate, question: Candidate) -> Candidate:
    """Joins a statement and a question. The score is the mean over the words of both, as if each were written alone."""
    first = statement.text.strip()
    text = f"{first if first[-1] in '.!…' else first + '.'} {question.text.strip()}"
    sizes = len(words(statement.text)), len(words(question.text))
    score = (sizes[0] * statement.score + sizes[1] * question.score) / sum(sizes)
    return Candidate(text, score, moves=(*statement.moves, *question.moves))
