"""Rows decoded together with different options each give what decode() gives for them alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from toy_models import END, START, Recurrent

from listenwell.decoding import Decoding, Row, decode, write_rows
from listenwell.decoding.beam import search_steps
from listenwell.decoding.rules import Rules

RULES = Rules(END, (START,), 1, 0)
WAYS = [
    Decoding(method="greedy", max_length=9),
    Decoding(method="sample", max_length=7, seed=3),
    Decoding(method="sample", max_length=12, temperature=0.6, top_k=3, seed=5),
    Decoding(method="sample", max_length=5, top_p=0.8),
    Decoding(method="greedy", max_length=2),
]


def alone(model: Recurrent, context: int, options: Decoding, item: int):
    return decode(model, model.understand([context]), options, start=START, end=END, banned=(START,), items=[item])[0]


def test_each_row_is_what_it_would_be_alone():
    model = Recurrent(seed=1)
    rows = [Row(options, item=10 + place) for place, options in enumerate(WAYS * 3)]
    contexts = list(range(len(rows)))
    for _ in write_rows(model, model.understand(contexts), rows, RULES, START):
        pass
    for context, row in zip(contexts, rows, strict=True):
        (expected,) = alone(model, context, row.options, row.item)
        assert row.tokens == expected.tokens
        assert row.finished == expected.finished
        assert row.hypothesis().score == pytest.approx(expected.score, rel=1e-5)


def test_candidates_of_one_item_are_those_of_decode():
    model = Recurrent(seed=2)
    options = Decoding(method="sample", max_length=8, candidates=3, seed=1)
    rows = [Row(options, 4, candidate) for candidate in range(3)]
    state = model.understand([6]).repeat(3)
    for _ in write_rows(model, state, rows, RULES, START):
        pass
    actual = sorted((row.hypothesis() for row in rows), key=lambda one: one.score, reverse=True)
    assert [one.tokens for one in actual] == [one.tokens for one in alone(model, 6, options, 4)]


def test_a_dropped_row_costs_no_further_step_and_changes_no_other():
    model = Recurrent(seed=3)
    options = Decoding(method="greedy", max_length=6, min_length=6)
    rules = replace(RULES, min_length=6)
    rows = [Row(options, item) for item in range(3)]
    for step, _ in enumerate(write_rows(model, model.understand([0, 1, 2]), rows, rules, START)):
        if step == 1:
            rows[1].dropped = True
    assert model.rows_seen == [3, 3, 2, 2, 2, 2]
    assert len(rows[1].tokens) == 2
    for context in (0, 2):
        assert rows[context].tokens == alone(model, context, options, context)[0].tokens


def test_a_dropped_row_leaves_a_beam_search():
    model = Recurrent(seed=4)
    options = Decoding(method="beam", beams=2, max_length=6, min_length=6)
    rules = replace(RULES, min_length=6)
    dropped: set[int] = set()
    decided = {}
    steps = search_steps(
        model, model.understand([0, 1]), options, rules, start=START, count=2, device=torch.device("cpu"),
        dropped=dropped.__contains__,
    )  # fmt: skip
    for number, actual in enumerate(steps):
        decided |= actual
        if number == 1:
            dropped.add(0)
    assert model.rows_seen == [2, 4, 4, 2, 2, 2]
    assert decided[0] == []
    assert [one.tokens for one in decided[1]] == [one.tokens for one in alone(model, 1, options, 1)]


def test_what_cannot_be_rows_is_told():
    model = Recurrent(seed=1)
    with pytest.raises(ValueError, match="method is 'beam'"):
        next(write_rows(model, model.understand([0]), [Row(Decoding(method="beam"), 0)], RULES, START))
    with pytest.raises(ValueError, match="2 rows to write, but the state has 1"):
        next(write_rows(model, model.understand([0]), [Row(WAYS[0], 0)] * 2, RULES, START))
