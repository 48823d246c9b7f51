"""The voice of the house system: its writer with a tokenizer, an engine and a way of decoding.

What is learned or measured is read by transformers, with adapters; what is written and weighed while somebody waits
goes through the Llama engine, with the adapters merged, where the backbone is of its kind. In half the bits that engine
measures too: the products are its own then, and nothing exact is lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any
from weakref import ref

import numpy as np
import torch
from torch import Tensor

from listenwell.backbones.llama_engine import Cache, CacheRow, LlamaEngine, bf16, fp16, has_fp16
from listenwell.checkpoint import Checkpoint
from listenwell.contract import Batch, State, Steps, chosen
from listenwell.contract import Sequence as Tokens
from listenwell.data.dialogue import Example, Turn
from listenwell.decoding import Hypothesis, Row, Rules, decode, stream
from listenwell.layers.cpu import return_freed_memory
from listenwell.models.chat_text import PLAIN
from listenwell.models.joined_text import REPLY, Text
from listenwell.models.writer import AT_ONCE, Writer
from listenwell.systems.base import Likelihoods, Precision
from listenwell.systems.bot import Bot
from listenwell.systems.house.joint import Joint, Writing
from listenwell.systems.house.options import HouseDecoding
from listenwell.systems.reply import Candidate

READ_AT_ONCE: dict[str, int] = {"tokens": 4_000, "examples": 32}
"""How many tokens and dialogues are read at once."""

HELD = 8_000
"""So many tokens of dialogues that were read are cached until they are answered: 370 MB of SmolLM2's memory."""

MOST_GO_ON = 0.75
"""The share of unfinished rows below which the memory of the others is freed."""

ANOTHER_PLAN = 1 << 44
"""Added to the number that says what is drawn, for each further plan: no item of a corpus is so far away."""


def written_at_once(plans: int) -> dict[str, int]:
    """How many are written at once: fewer dialogues where each is answered by many plans."""
    return {**READ_AT_ONCE, "examples": max(1, READ_AT_ONCE["examples"] // plans)}


def number_for(number: int, place: int) -> int:
    """What is drawn for an item under one of its plans."""
    return number + place * ANOTHER_PLAN


class EngineSteps:
    """The engine under the step() contract.

    There is one memory, which every step moves on: a state only says which of its rows go on, and in which order. While
    most of them do, those that have ended are read along: to copy what all others remember would take longer.
    """

    def __init__(self, engine: LlamaEngine, cache: Cache, first: Tensor) -> None:
        self.engine, self.cache, self.first = engine, cache, first

    def begin(self) -> State:
        return State(moving=torch.arange(len(self.first)))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        rows: Tensor = state.moving
        if state.length == 0:
            tokens = self.first[rows]  # the header has a token left where other models have the start token
        held = len(self.cache.positions)
        in_order = bool((rows[1:] > rows[:-1]).all())
        near_end = int(self.cache.positions.max()) + 1 >= self.engine.longest  # of one that has ended, maybe
        if len(rows) < MOST_GO_ON * held or not in_order or near_end:
            self.cache, held, rows = self.cache.select(rows), len(rows), torch.arange(len(rows))
        if len(rows) == held:
            logits = self.engine.step(tokens, self.cache)
        else:
            read = tokens.new_zeros(held)
            read[rows] = tokens
            logits = self.engine.step(read, self.cache)[rows]
        return logits, State(state.beliefs, None, rows, state.length + 1)


Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Begun:
    """Dialogues that were read to predict what is felt, by their tokens: whoever answers them next need not read them
    again, whatever else is in the batch."""

    engine: LlamaEngine
    rows: dict[Ids, CacheRow]

    def rows_of(self, engine: LlamaEngine, text: Text) -> list[CacheRow | None]:
        """Of each text its reading, if there is one by this engine."""
        return [self.rows.get(ids) if self.engine is engine else None for ids in _ids(text)]


def _ids(text: Text) -> list[Ids]:
    """The tokens of each row, without padding."""
    rows = zip(text.tokens.tolist(), text.mask.sum(dim=1).tolist(), strict=True)
    return [tuple(tokens[:length]) for tokens, length in rows]


def _read_rest(engine: LlamaEngine, text: Text, known: Sequence[CacheRow | None]) -> list[CacheRow]:
    """The readings of all rows of a text: of those that were not read before, now."""
    lacking = [row for row, one in enumerate(known) if one is None]
    if not lacking:
        return [one for one in known if one is not None]
    mask = text.mask[lacking]
    longest = int(mask.sum(dim=1).max())
    cache, _ = engine.understand(text.tokens[lacking, :longest], mask[:, :longest], room=0)
    places = iter(range(len(lacking)))
    return [(cache, next(places)) if one is None else one for one in known]


class HouseWriter(Bot):
    """A writer that is given a plan for every reply."""

    model: Writer
    decoding: HouseDecoding
    has_likelihoods = True
    system_name = "house"
    about: Mapping[str, str] = {}

    def __init__(self, ckpt: Checkpoint) -> None:
        if not isinstance(ckpt.model, Writer):
            raise ValueError(f"{ckpt.name} does not write by a plan; house-writer does")
        super().__init__(replace(ckpt, parts={}, decoding=HouseDecoding.extend(ckpt.decoding)))
        self._engines: dict[Precision, LlamaEngine | None] = {}
        """The engine of the precision last used; None in it where the backbone is of another kind. A copy that speaks
        another way shares it."""
        self._begun: Begun | None = None
        self._joints: dict[tuple[int, Precision], ref[Joint]] = {}
        """What is being written, by thread and precision: there as long as somebody writes."""

    def __getstate__(self) -> dict[str, Any]:
        """Without the engine, which is made of functions and made again at the first reply."""
        return {**super().__getstate__(), "_engines": {}, "_begun": None, "_joints": {}}

    def feel(self, items: Sequence[Example], to_answer: bool = False) -> np.ndarray:
        """log p(emotion | context) of each item, (items, emotions): what the writer itself hears.

        With `to_answer`, readings are kept until it next writes: of those dialogues that it then reads whole.
        """
        engine = self._get_engine()
        self._begun = Begun(engine, {}) if to_answer and engine is not None else None
        log_probs = np.zeros((len(items), len(self.emotions)))
        turns = self.decoding.turns
        whole = [row for row, item in enumerate(items) if not turns or len(item.context) <= turns]
        cut = [row for row, item in enumerate(items) if turns and len(item.context) > turns]
        held = 0
        for rows, is_read_again in ((whole, True), (cut, False)):
            for batch in self._batches([items[row] for row in rows], **READ_AT_ONCE):
                held += 0 if batch.context is None else batch.context.tokens.numel()
                with torch.inference_mode():
                    felt = self._feel(batch, self._begun if is_read_again and held <= HELD else None)
                log_probs[[rows[place] for place in batch.rows]] = felt.double().numpy()
        return log_probs

    def _feel(self, batch: Batch, begun: Begun | None) -> Tensor:
        engine = self._get_engine()
        if engine is None:
            with self._computing():
                return self.model.feel(batch)
        text = Text.joined(self.model.context(batch))
        cache, hidden = engine.understand(text.tokens, text.mask, room=0)
        if begun is not None:
            begun.rows.update((ids, (cache, row)) for row, ids in enumerate(_ids(text)))
        return self.model.believe(hidden, text.mask)

    def write(
        self,
        items: Sequence[Example],
        plans: Tensor,
        numbers: Sequence[int],
        done: Callable[[int], None] | None = None,
    ) -> list[list[Candidate]]:
        """Candidates for the context of each item by each of its plans (items, k): the likeliest first, no text twice.

        One that was cut where it had no end is a candidate only where none came to an end. `numbers` say what is drawn
        for each item; for another plan of an item, something else is.
        """
        begun, self._begun = self._begun, None  # gone with this call, whatever comes of it
        candidates: dict[int, list[Candidate]] = {}
        for batch in self._batches(items, **written_at_once(plans.shape[1])):
            some = plans[list(batch.rows)]
            with self._writing_by():
                steps, state = self._begin(batch, some, begun)
                drawn = [number_for(numbers[row], place) for row in batch.rows for place in range(plans.shape[1])]
                written = decode(steps, state, self.decoding, items=drawn, **self._ends())
            groups = [written[first : first + plans.shape[1]] for first in range(0, len(written), plans.shape[1])]
            for row, group, labels in zip(batch.rows, groups, some.tolist(), strict=True):
                candidates[row] = self.as_candidates(group, labels)
            if done is not None:
                done(len(batch))
        return [candidates[row] for row in range(len(items))]

    def as_candidates(self, groups: Sequence[Sequence[Hypothesis]], labels: Sequence[int]) -> list[Candidate]:
        """What was written for one item, a group for each of its plans: the likeliest first, no text twice.

        One that was cut counts only where none came to an end.
        """
        written = [(one, label) for group, label in zip(groups, labels, strict=True) for one in group]
        texts: dict[str, Candidate] = {}
        ended = [pair for pair in written if pair[0].finished]
        for one, label in sorted(ended or written, key=lambda pair: -pair[0].score):
            text = self.tokenizer.decode(one.tokens)
            moves = () if label == PLAIN else (self.label_set.labels[label],)
            texts.setdefault(text, Candidate(text, one.score, moves=moves))
        return list(texts.values())

    def say(self, item: Example, plan: Tensor, number: int) -> Iterator[str]:
        """One reply as it grows, each time the whole text so far. The number says what is drawn."""
        (batch,) = self._batches([item])
        begun, self._begun = self._begun, None
        with torch.inference_mode():
            steps, state = self._begin(batch, plan[:, None], begun)
        tokens: list[int] = []
        for token in stream(steps, state, self.decoding.streamed(), item=number, **self._ends()):
            tokens.append(token)
            yield self.tokenizer.decode(tokens)

    def likelihoods_by(
        self, items: Sequence[Example], chances: Tensor, done: Callable[[int], None] | None = None
    ) -> Likelihoods:
        """Of the replies, the plan summed out by a planner's log-chances of all labels (items, labels)."""
        engine = self._measuring()

        def score(batch: Batch) -> Tensor:
            expected = chances[list(batch.rows)].float()
            if engine is None:
                return self.model.score(batch, chances=expected)
            return self.model.summed_out(expected, lambda rows, plans: self._score_planned(engine, batch, rows, plans))

        return self._likelihoods(items, score, done)

    def oracle_likelihoods(
        self, items: Sequence[Example], done: Callable[[int], None] | None = None
    ) -> Likelihoods | None:
        engine = self._measuring()

        def score(batch: Batch) -> Tensor:
            if engine is None:
                return self.model.oracle_score(batch)
            return self._score_planned(engine, batch, torch.arange(len(batch)), self.model.gold(batch))

        return self._likelihoods(items, score, done)

    def _measuring(self) -> LlamaEngine | None:
        """The engine where it is to measure too: in full precision the adapters are not merged for that."""
        return self._get_engine() if self.precision else None

    def _score_planned(self, engine: LlamaEngine, batch: Batch, rows: Tensor, plans: Tensor) -> Tensor:
        """−log p(reply | context, plan) of rows of the batch, each with a plan of its own. Contexts are read once."""
        assert batch.reply is not None
        context = Text.joined(self.model.context(batch))
        scores = torch.zeros(len(rows))
        with torch.autocast("cpu", enabled=False):  # the engine has its precision in its weights
            cache, _ = engine.understand(context.tokens, context.mask, room=0)
            for some in batch.reply.mask.sum(dim=1)[rows].argsort().split(AT_ONCE):
                reply = Text.of(chosen(batch.reply, rows[some]), REPLY)
                text = Text.joined(self.model.header(plans[some]), reply)
                scores[some] = engine.score(cache, text.tokens, text.mask, rows[some], text.use == REPLY)
        return scores

    def consensus(self, turns: Sequence[str], replies: Sequence[str]) -> np.ndarray:
        """Mean log-probability of a token of each turn, its end too, given the reply alone."""
        pairs = zip(turns, replies, strict=True)
        items = [
            Example(str(row), (Turn("speaker", turn),), Turn("listener", reply))
            for row, (turn, reply) in enumerate(pairs)
        ]
        scores = np.zeros(len(items))
        for batch in self._batches(items, tokens=4_000):
            assert batch.context is not None
            assert batch.reply is not None
            with torch.inference_mode():
                last = self.model.last_turn(batch.context)
                nll = self._backward(batch.reply, last)
            scores[list(batch.rows)] = (-nll / last.mask.sum(dim=1)).numpy()
        return scores

    def _backward(self, replies: Tokens, turns: Tokens) -> Tensor:
        """−log p(turn | reply) of each row."""
        engine = self._get_engine()
        if engine is None:
            with self._computing():
                return self.model.backward_scores(replies, turns)
        text = self.model.answered(replies)
        cache, _ = engine.prefill(text.tokens, text.mask, room=0)
        return engine.score(cache, turns.tokens, turns.mask)

    def _begin(self, batch: Batch, plans: Tensor, begun: Begun | None) -> tuple[Steps, State]:
        """A row for each plan (batch, k) of each dialogue, next to each other. Each dialogue is read once."""
        if self.decoding.guidance:
            raise ValueError(
                f"decoding.guidance is {self.decoding.guidance:g}, expected 0: every plan is written into the prompt"
            )
        engine = self._get_engine()
        if engine is None:
            return self.model, self.model.plan(batch, plans)
        cache, first = self._open(engine, batch, plans, begun)
        steps = EngineSteps(engine, cache, first)
        return steps, steps.begin()

    def _open(self, engine: LlamaEngine, batch: Batch, plans: Tensor, begun: Begun | None) -> tuple[Cache, Tensor]:
        """What the engine remembers of each dialogue and of the header of each plan, but for its last token."""
        context, header = Text.joined(self.model.context(batch)), self.model.header(plans.flatten(), own=True)
        room = self.decoding.max_length + 1
        known = [None] * len(batch) if begun is None else begun.rows_of(engine, context)
        if plans.shape[1] > 1 or any(row is not None for row in known):
            text, first = self.model.opening(Text.joined(header))
            rows = [row for row in _read_rest(engine, context, known) for _ in range(plans.shape[1])]
            cache = engine.joined(rows, text.tokens.shape[1] + room)
            engine.go_on(text.tokens, text.mask, cache)
        else:
            text, first = self.model.opening(Text.joined(context, header))
            cache, _ = engine.understand(text.tokens, text.mask, room)
        return cache, first

    @property
    def joint(self) -> Joint:
        """Where this thread writes what grows."""
        key = threading.get_ident(), self.precision
        known = self._joints.get(key)
        if known is None or (joint := known()) is None:
            joint = Joint(self.model, self._get_engine(), self._writing_by)
            joints = self._joints  # not self: what is written must not keep the writer
            joints[key] = ref(joint, lambda gone: joints.pop(key, None) if joints.get(key) is gone else None)
        return joint

    def begin_jointly(
        self, joint: Joint, batch: Batch, plans: Tensor, rows: list[Row], begun: Begun | None
    ) -> tuple[Writing, list[Ids]]:
        """One row for each dialogue of a batch, under a plan (batch, 1); and the tokens that were read of each."""
        start, rules = self.tokenizer.start, self.rules
        with self._writing_by():
            context = _ids(Text.joined(self.model.context(batch)))
            if joint.slots is None:
                return joint.begin(self._begin(batch, plans, None)[1], rows, rules, start), context
            cache, first = self._open(joint.slots.engine, batch, plans, begun)
            return joint.begin_in_slots(cache, first, rows, rules, start), context

    @property
    def rules(self) -> Rules:
        """What may come next."""
        own = self.decoding
        return Rules(self.tokenizer.end, self.tokenizer.banned, own.min_length, own.block_ngrams)

    def _writing_by(self) -> AbstractContextManager[None]:
        """The engine has its precision in its weights; without one it is the layers'."""
        return self._computing() if self._get_engine() is None else torch.inference_mode()

    @property
    def engine(self) -> str:
        """What writes, in words."""
        if self._get_engine() is None:
            return "transformers"
        weights = "bfloat16" if self.precision == "bf16" else "float16" if has_fp16() else "float32"
        return f"the Llama engine, weights in {weights}"

    def _get_engine(self) -> LlamaEngine | None:
        """The engine, made at the first reply in a precision; None where the backbone is of another kind."""
        if self.precision not in self._engines:
            self._engines.clear()  # each is as large as the model: that of another precision goes before this one comes
            self._engines[self.precision] = self._new_engine()
            return_freed_memory()
        return self._engines[self.precision]

    def _new_engine(self) -> LlamaEngine | None:
        words = self.model.vocabulary.size  # a backbone may have more rows
        product = bf16 if self.precision == "bf16" else fp16
        try:
            return LlamaEngine(self.model.config.architecture, self.model.merged(), product, words)
        except ValueError:
            return None
