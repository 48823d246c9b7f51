"""The house system for several people at once, one decoding step at a time.

Each reply is the one that `reply` or, for a single candidate, `stream` gives to that person alone.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from listenwell.backbones.llama_engine import CacheRow
from listenwell.contract import Controls, State, Steps
from listenwell.decoding import Row, write_rows
from listenwell.systems.house.joint import Joint, Writing
from listenwell.systems.house.options import HouseDecoding
from listenwell.systems.house.pairs import make_pairs
from listenwell.systems.house.planned import (
    AGAIN,
    Planned,
    as_item,
    in_order,
    other_plans,
    plain_candidates,
    plan_ids,
)
from listenwell.systems.house.planner import Plan, Planner
from listenwell.systems.house.system import House
from listenwell.systems.house.vetoes import split_sentences
from listenwell.systems.house.writer import Begun, HouseWriter, Ids, number_for, written_at_once
from listenwell.systems.reply import Candidate
from listenwell.systems.together import Job, best_first, together


def write_house(house: House, jobs: Sequence[Job]) -> Iterator[None]:
    """Runs the jobs that want the best of several candidates, and those that stream a single one, each as a group."""
    ranked: dict[object, list[Job]] = {}
    growing: list[Job] = []
    for job in jobs:
        options = HouseDecoding.extend(job.decoding)
        if options.candidates == 1 and not options.rerank:
            growing.append(job)
        else:
            ranked.setdefault(options.rerank, []).append(job)
    writers = [_ranked(house, some) for some in ranked.values()]
    yield from together([*writers, *([_Stream(house, growing).steps()] if growing else [])])


def _plan_each(house: House, jobs: Sequence[Job]) -> list[Planned]:
    """Recognises and plans for each job, under its own controls. The writer caches what it read."""
    planner = Planner(house.decoding.lean)
    planned = house.plan([job.context for job in jobs], to_answer=True)
    return [
        one if job.controls is None else replace(one, plan=_plan_again(planner, one, job.controls))
        for job, one in zip(jobs, planned, strict=True)
    ]


def _plan_again(planner: Planner, one: Planned, controls: Controls) -> Plan:
    return planner.plan(one.prediction, one.context, one.labels, controls, one.now)


def write_rows_of(
    writer: HouseWriter, plans: Tensor, planned: Sequence[Planned], rows: Sequence[Sequence[Row]]
) -> Iterator[Iterator[None]]:
    """Yields, for each batch of dialogues, an iterator that fills in its rows one step at a time.

    The rows of a dialogue are divided equally among its plans (items, k).
    """
    begun, writer._begun = writer._begun, None
    items = [as_item(row, one, writer.decoding.turns) for row, one in enumerate(planned)]
    count = plans.shape[1]
    for batch in writer._batches(items, **written_at_once(count)):
        with writer._writing_by():
            steps, state = writer._begin(batch, plans[list(batch.rows)], begun)
        yield _write_batch(writer, steps, state, [part for row in batch.rows for part in _parts(rows[row], count)])


def _parts(rows: Sequence[Row], count: int) -> list[Sequence[Row]]:
    """Splits the rows of a dialogue by plan."""
    size = len(rows) // count
    return [rows[first : first + size] for first in range(0, len(rows), size)]


def _write_batch(writer: HouseWriter, steps: Steps, state: State, rows: Sequence[Sequence[Row]]) -> Iterator[None]:
    every = [row for some in rows for row in some]
    if len(every) > len(rows):
        state = state.select(torch.tensor([place for place, some in enumerate(rows) for _ in some]))
    writing = write_rows(steps, state, every, writer.rules, writer.tokenizer.start)
    while True:
        with writer._writing_by():  # entered at each step and left at each yield
            try:
                next(writing)
            except StopIteration:
                return
        yield


# The best of several


def _ranked(house: House, jobs: Sequence[Job]) -> Iterator[None]:
    jobs, planned = _answer_small_talk(house, jobs, _plan_each(house, jobs))
    if not jobs:
        return
    written = yield from _candidates(house, jobs, planned, [job.number for job in jobs])
    left = [row for row, job in enumerate(jobs) if not job.dropped]
    if not left:
        return
    jobs, planned, written = [jobs[r] for r in left], [planned[r] for r in left], [written[r] for r in left]
    speaks = house.with_decoding(rerank=HouseDecoding.extend(jobs[0].decoding).rerank)
    ranked = speaks.rerank(planned, written)
    answers = list(zip(planned, ranked, strict=True))
    tries = [
        (row, other)
        for row, candidates in enumerate(ranked)
        if all(one.vetoed for one in candidates)
        for other in other_plans(planned[row])
    ]
    if tries:
        others = [other for _, other in tries]
        again = [jobs[row] for row, _ in tries]
        numbers = [jobs[row].number + AGAIN for row, _ in tries]
        more = yield from _candidates(house, again, others, numbers)
        answers = _with_others(answers, tries, speaks.rerank(others, more))
    for job, (one, candidates) in zip(jobs, answers, strict=True):
        job.reply = house._explain(one, candidates)
        job.text = job.reply.text
    yield


def _answer_small_talk(
    house: House, jobs: Sequence[Job], planned: Sequence[Planned]
) -> tuple[list[Job], list[Planned]]:
    """Answers small talk immediately; returns the jobs that remain to be written."""
    left = []
    for job, one in zip(jobs, planned, strict=True):
        if one.small_talk is None:
            left.append((job, one))
        else:
            job.reply = house.answer_small_talk(one)
            job.text, job.finished = job.reply.text, True
    return [job for job, _ in left], [one for _, one in left]


def _candidates(
    house: House, jobs: Sequence[Job], planned: Sequence[Planned], numbers: Sequence[int]
) -> Generator[None, None, list[list[Candidate]]]:
    writer: HouseWriter = house.writer  # type: ignore[assignment]
    count = writer.decoding.plans
    plans = plan_ids(planned, count)
    rows = [
        [
            Row(job.decoding, number_for(number, place), n)
            for place in range(count)
            for n in range(job.decoding.candidates)
        ]
        for job, number in zip(jobs, numbers, strict=True)
    ]
    # One batch after another: the cache of many candidates is large.
    for batch in write_rows_of(writer, plans, planned, rows):
        for _ in batch:
            for job, some in zip(jobs, rows, strict=True):
                _count(job, some)
            yield
    for job, some in zip(jobs, rows, strict=True):
        job.finished = any(row.finished for row in some)
    written = [
        writer.as_candidates([best_first(part) for part in _parts(some, count)], labels)
        for some, labels in zip(rows, plans.tolist(), strict=True)
    ]
    return [[*candidates, *make_pairs(candidates, writer.decoding.pairs)] for candidates in written]


def _with_others(
    answers: list[tuple[Planned, list[Candidate]]],
    tries: Sequence[tuple[int, Planned]],
    written: Sequence[list[Candidate]],
) -> list[tuple[Planned, list[Candidate]]]:
    """Adds what was written under other plans to the first answers, and a plain sentence where all is vetoed."""
    for (row, other), more in zip(tries, written, strict=True):
        one, before = answers[row]
        joined = in_order([*before, *more])
        answers[row] = (other if joined[0] in more else one), joined
    return [(one, [*plain_candidates(one, candidates), *candidates]) for one, candidates in answers]


# One, as it grows


@dataclass(eq=False, slots=True)
class _Growing:
    """A reply under one of its plans. Nothing is shown until its first sentence is complete and not vetoed."""

    job: Job
    one: Planned
    """The dialogue with its original plan."""
    tries: list[Planned]
    attempt: int = 0
    vetoed: list[Candidate] = field(default_factory=list)
    row: Row | None = None
    text: str = ""
    reading: tuple[Ids, CacheRow] | None = None
    """The cached prefix, if it is restarted."""
    begun: bool = False
    """Whether its first sentence may be shown."""

    @property
    def tried(self) -> Planned:
        return self.tries[self.attempt]

    @property
    def ended(self) -> bool:
        return self.row is not None and not self.row.goes_on


@dataclass(slots=True)
class _Batch:
    """Replies that began together and are not done, and the tokens that were read for each row."""

    growing: list[_Growing]
    writing: Writing
    read: dict[int, Ids]


class _Stream:
    """Replies of one candidate each. If the first sentence is vetoed, it is dropped and another plan is tried."""

    def __init__(self, house: House, jobs: Sequence[Job]) -> None:
        self.house = house
        self.writer: HouseWriter = house.writer  # type: ignore[assignment]
        self.jobs = jobs

    def steps(self) -> Iterator[None]:
        jobs, planned = _answer_small_talk(self.house, self.jobs, _plan_each(self.house, self.jobs))
        begin = [_Growing(job, one, [one, *other_plans(one)]) for job, one in zip(jobs, planned, strict=True)]
        joint = self.writer.joint
        active: list[_Batch] = []
        try:
            while begin or active:
                active += self._write(joint, begin)
                begin = []
                # One step serves all who write at the same time: the first in turn makes it, the others only read it.
                if not any(some.writing.is_ahead for some in active):
                    joint.advance()
                for some in [some for some in active if some.writing.is_ahead]:
                    some.writing.is_ahead = False
                    begin += self._look(joint, some)
                    if not some.growing:
                        joint.end(some.writing)
                        active.remove(some)
                yield
        finally:
            for some in active:
                joint.end(some.writing)

    def _write(self, joint: Joint, begin: Sequence[_Growing]) -> Iterator[_Batch]:
        if not begin:
            return
        for one in begin:
            one.row = Row(one.job.decoding, one.job.number + one.attempt * AGAIN)
            one.text = ""
        planned = [one.tried for one in begin]
        items = [as_item(row, one, self.writer.decoding.turns) for row, one in enumerate(planned)]
        plans, begun = plan_ids(planned), self._readings(joint, begin)
        for batch in self.writer._batches(items, **written_at_once(1)):
            growing = [begin[row] for row in batch.rows]
            rows = [one.row for one in growing if one.row is not None]
            writing, read = self.writer.begin_jointly(joint, batch, plans[list(batch.rows)], rows, begun)
            yield _Batch(growing, writing, {id(row): ids for row, ids in zip(rows, read, strict=True)})

    def _readings(self, joint: Joint, begin: Sequence[_Growing]) -> Begun | None:
        """Returns what was read for the prediction, or for replies that are restarted."""
        begun, self.writer._begun = self.writer._begun, None
        again = dict(one.reading for one in begin if one.reading is not None)
        for one in begin:
            one.reading = None
        return Begun(joint.slots.engine, again) if again and joint.slots is not None else begun

    def _look(self, joint: Joint, batch: _Batch) -> list[_Growing]:
        """Shows new text; returns the replies that restart under another plan."""
        some = batch.growing
        to_check = []
        for one in list(some):
            row = one.row
            assert row is not None
            _count(one.job, [row])
            if row.dropped:
                some.remove(one)
                continue
            one.text = self.writer.tokenizer.decode(row.tokens)
            if one.begun:
                self._show(some, one)
            elif one.ended or len(split_sentences(one.text)) > 1:
                to_check.append(one)
        again = self._check(some, to_check)
        for one in again:
            assert one.row is not None
            ids = batch.read[id(one.row)]
            if (reading := joint.reading(batch.writing, one.row, len(ids))) is not None:
                one.reading = ids, reading
        return again

    def _check(self, some: list[_Growing], to_check: Sequence[_Growing]) -> list[_Growing]:
        first = [_first_sentence(one.text) for one in to_check]
        pairs = [(one.tried, Candidate(sentence, 0.0)) for one, sentence in zip(to_check, first, strict=True)]
        again = []
        for one, candidate in zip(to_check, self.house.veto(pairs) if pairs else (), strict=True):
            if not candidate.vetoed:
                one.begun = True
                self._show(some, one)
                continue
            one.vetoed.append(candidate)
            some.remove(one)
            assert one.row is not None
            one.row.dropped = True
            if one.attempt + 1 < len(one.tries):
                one.attempt += 1
                again.append(one)
            else:
                said = [*plain_candidates(one.one, one.vetoed), *one.vetoed]
                self._done(one, one.one, said)
        return again

    def _show(self, some: list[_Growing], one: _Growing) -> None:
        assert one.row is not None
        one.job.text = one.text
        if one.ended or one.job.stops_at(one.text):
            one.job.finished = one.row.finished or not one.ended
            one.row.dropped = True
            some.remove(one)
            self._done(one, one.tried, [Candidate(one.text, 0.0), *one.vetoed])

    def _done(self, one: _Growing, plan: Planned, said: Sequence[Candidate]) -> None:
        one.job.reply = replace(self.house._explain(plan, said), candidates=())
        one.job.text = one.job.reply.text


def _first_sentence(text: str) -> str:
    sentences = split_sentences(text)
    return sentences[0] if len(sentences) > 1 else text


def _count(job: Job, rows: Sequence[Row]) -> None:
    """Counts a step that was computed for a job; if the job was dropped, its rows are dropped as well."""
    if rows[0].dropped:
        return
    if any(row.goes_on for row in rows) or job.dropped:
        job.steps += 1
    if job.dropped:
        for row in rows:
            row.dropped = True
