"""Batched replies for independent users, as a server needs them.

A system's `write_together(jobs)` is an iterator; each item is one decoding step for all jobs. Between two steps, the
texts so far may be read and jobs may be dropped. A reply does not depend on what else is in the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch

from listenwell.contract import Batch, Controls, Model, Steps
from listenwell.data.dialogue import Example, Turn
from listenwell.decoding import Decoding, Hypothesis, Row, write_rows
from listenwell.decoding.beam import search_steps
from listenwell.decoding.decode import rows_of
from listenwell.decoding.rules import Rules
from listenwell.systems.capabilities import Capabilities
from listenwell.systems.reply import Reply

if TYPE_CHECKING:
    from listenwell.contract import State
    from listenwell.systems.bot import Bot

ANOTHER = 1 << 44
"""Added to the sampling number for each further reply to the same conversation."""

MANY = 16
"""With many jobs in a batch, a growing text is decoded only every 1 + jobs // MANY steps: nobody reads that fast."""

Done = Callable[[int, list[Hypothesis]], None]
"""Called with the index of a finished job and its hypotheses, best first."""


@dataclass(eq=False, slots=True)
class Job:
    """One requested reply and its state."""

    context: tuple[Turn, ...]
    """The turns to reply to, from `as_context`."""
    controls: Controls | None
    decoding: Decoding
    """The system's own, with the requested changes."""
    number: int
    """Determines sampling together with the seed: `draw_number` of the context."""
    grows: bool = True
    """Whether the text is read while it is being written."""
    stops: tuple[str, ...] = ()
    """Stop strings: the reply need not continue once it contains one of these."""
    text: str = ""
    """The text so far. Its last word may still change."""
    reply: Reply | None = None
    """Set when the reply is complete."""
    finished: bool = True
    """False if the reply was cut at the maximum length."""
    dropped: bool = False
    """Set by the caller to cancel the job."""
    steps: int = 0
    """Number of decoding steps computed for it."""

    def stops_at(self, text: str) -> bool:
        return any(stop in text for stop in self.stops)


def together(writers: Iterable[Iterator[None]]) -> Iterator[None]:
    """Runs several writers in turn, one step of each at a time."""
    going = list(writers)
    while going:
        for writer in list(going):
            try:
                next(writer)
            except StopIteration:
                going.remove(writer)
        if going:
            yield


def write_bot(bot: Bot, jobs: Sequence[Job]) -> Iterator[None]:
    """Runs jobs on a trained model. Jobs with compatible options share a batch."""
    alike: dict[object, list[Job]] = {}
    by_seed = draws_latents(bot)
    for job in jobs:
        alike.setdefault(_kind(job, by_seed), []).append(job)
    yield from together(writer for some in alike.values() for writer in _writers(bot, some))


def _kind(job: Job, by_seed: bool) -> object:
    """Returns what all jobs of a batch share: controls, search options and, if latents depend on it, the seed."""
    options = job.decoding
    searched = replace(options, seed=0) if is_search(options) else None
    return job.controls, searched, options.seed if by_seed else None


class _Watched(torch.Generator):
    """A generator that records whether it was used."""

    was_used = False

    def initial_seed(self) -> int:
        self.was_used = True
        return super().initial_seed()


_DRAWS: WeakKeyDictionary[Model, bool] = WeakKeyDictionary()


def draws_latents(bot: Bot) -> bool:
    """Whether the model samples before it writes, so that each seed needs its own batch. Tested once per model."""
    if bot.model not in _DRAWS:
        items = bot._with_turn_labels([Example("", (Turn("speaker", "I am here."),))])
        (batch,) = bot._batches(items)
        generator = _Watched()
        before = generator.manual_seed(0).get_state()
        with bot._computing():
            bot.model.understand(replace(batch, rows=(0,)), generator=generator)
        _DRAWS[bot.model] = generator.was_used or not torch.equal(before, generator.get_state())
    return _DRAWS[bot.model]


def is_search(options: Decoding) -> bool:
    """Whether tokens are known only at the end, as in beam search. A single beam is greedy."""
    return options.method == "beam" and options.beams > 1


def _writers(bot: Bot, jobs: Sequence[Job]) -> Iterator[Iterator[None]]:
    items = bot._with_turn_labels([Example("", job.context) for job in jobs])
    for batch in bot._batches(items, tokens=6_000, examples=64):
        some = [jobs[row] for row in batch.rows]
        contexts = [items[row].context for row in batch.rows]
        yield _write_batch(bot, batch, some, contexts)


def _write_batch(
    bot: Bot, batch: Batch, jobs: Sequence[Job], contexts: Sequence[tuple[Turn, ...]]
) -> Generator[None, None, None]:
    speaks = bot.with_decoding(seed=jobs[0].decoding.seed)  # the seed for the model's latents
    with speaks._computing():
        numbers = tuple(job.number for job in jobs)
        state, model, start = speaks._writing(replace(batch, rows=numbers), jobs[0].controls)

    def done(place: int, hypotheses: list[Hypothesis]) -> None:
        job = jobs[place]
        job.finished = hypotheses[0].finished
        job.reply = speaks._explain(hypotheses, state, place, contexts[place])
        job.text = job.reply.text

    # The precision context is entered at each step and left at each yield.
    write = _search if is_search(jobs[0].decoding) else _walk
    steps = write(speaks, model, start, jobs, done)
    while True:
        with speaks._computing():
            try:
                next(steps)
            except StopIteration:
                return
        yield


def _rules(bot: Bot) -> Rules:
    own = bot.decoding
    return Rules(bot.tokenizer.end, bot.tokenizer.banned, own.min_length, own.block_ngrams)


def _search(bot: Bot, model: Steps, state: State, jobs: Sequence[Job], done: Done) -> Iterator[None]:
    searched = dict(enumerate(jobs))
    count, device = rows_of(state)
    steps = search_steps(
        model,
        state,
        jobs[0].decoding,
        _rules(bot),
        start=bot.tokenizer.start,
        count=count,
        device=device,
        dropped=lambda row: jobs[row].dropped,
    )
    for decided in steps:
        for job in searched.values():
            job.steps += 1
        for row, hypotheses in decided.items():
            del searched[row]
            if hypotheses and not jobs[row].dropped:
                done(row, hypotheses)
        yield


def _walk(bot: Bot, model: Steps, state: State, jobs: Sequence[Job], done: Done) -> Iterator[None]:
    rows = [[Row(job.decoding, job.number, n) for n in range(job.decoding.candidates)] for job in jobs]
    every = [row for some in rows for row in some]
    if len(every) > len(jobs):
        state = state.select(torch.tensor([place for place, some in enumerate(rows) for _ in some]))
    rest = 1 + len(jobs) // MANY
    for step, _ in enumerate(write_rows(model, state, every, _rules(bot), bot.tokenizer.start)):
        for place, (job, some) in enumerate(zip(jobs, rows, strict=True)):
            if job.reply is not None or some[0].dropped:
                continue
            job.steps += 1
            if job.dropped:
                for row in some:
                    row.dropped = True
            elif not any(row.goes_on for row in some):
                done(place, best_first(some))
            elif len(some) == 1 and (job.stops or (job.grows and (step + place) % rest == 0)):
                job.text = bot.tokenizer.decode(some[0].tokens)
                if job.stops_at(job.text):
                    some[0].finished = True
                    done(place, best_first(some))
        yield


def best_first(rows: Iterable[Row]) -> list[Hypothesis]:
    return sorted((row.hypothesis() for row in rows), key=lambda one: one.score, reverse=True)


def write_plainly(system: Any, jobs: Sequence[Job]) -> Iterator[None]:
    """Runs the jobs of a system that can write only one reply at a time, one after another."""
    for job in jobs:
        if job.dropped:
            continue
        speaks, can = system, Capabilities.of(system)
        if can.can_change_decoding:
            speaks = system.with_decoding(**{f.name: getattr(job.decoding, f.name) for f in fields(job.decoding)})
        if job.grows and can.can_stream:
            yield from _grow(speaks.stream(job.context, job.controls), job)
        else:
            job.reply = speaks.reply(job.context, job.controls)
            job.steps += 1
            yield
        if job.reply is not None:
            job.text = job.reply.text


def _grow(texts: Generator[str, None, Reply], job: Job) -> Iterator[None]:
    with closing(texts):
        while not job.dropped:
            try:
                job.text = next(texts)
            except StopIteration as end:
                job.reply = end.value or Reply(job.text)
                return
            job.steps += 1
            if job.stops_at(job.text):
                job.reply = Reply(job.text)
                return
            yield
