"""The voice of the house system: its writer with a tokenizer, an engine and a way of decoding.

What is learned or measured is read by transformers, with adapters; what is written and weighed while somebody waits
goes through the Llama engine, with the adapters merged, where the backbone is of its kind. In half the bits that engine
measures too: the products are its own then, and nothing exact is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from listenwell.backbones.llama_engine import Cache, LlamaEngine, bf16, fp16, has_fp16
from listenwell.checkpoint import Checkpoint
from listenwell.contract import Batch, State, Steps, chosen
from listenwell.contract import Sequence as Tokens
from listenwell.data.dialogue import Example, Turn
from listenwell.decoding import Hypothesis, decode, stream
from listenwell.layers.cpu import return_freed_memory
from listenwell.models.chat_text import PLAIN
from listenwell.models.joined_text import REPLY, Text
from listenwell.models.writer import AT_ONCE, Writer
from listenwell.systems.base import Likelihoods, Precision
from listenwell.systems.bot import Bot
from listenwell.systems.house.options import HouseDecoding
from listenwell.systems.reply import Candidate

TOGETHER: dict[str, int] = {"tokens": 4_000, "examples": 32}
"""How much is read at once to predict and to write: the same for both, so that one reading serves both."""

HELD = 8_000
"""So many tokens of dialogues that were read are cached until they are answered: 370 MB of SmolLM2's memory."""

MOST_GO_ON = 0.75
"""The share of unfinished rows below which the memory of the others is freed."""

ANOTHER_PLAN = 1 << 44
"""Added to the number that says what is drawn, for each further plan: no item of a corpus is so far away."""


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


@dataclass(frozen=True, slots=True)
class Begun:
    """Dialogues that were read to predict what is felt: whoever answers them next need not read them again."""

    engine: LlamaEngine
    tokens: Tensor
    cache: Cache

    def is_of(self, engine: LlamaEngine, tokens: Tensor) -> bool:
        return self.engine is engine and torch.equal(self.tokens, tokens)


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
        self._begun: dict[tuple[int, ...], Begun] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Without the engine, which is made of functions and made again at the first reply."""
        return {**super().__getstate__(), "_engines": {}, "_begun": {}}

    def feel(self, items: Sequence[Example], to_answer: bool = False) -> np.ndarray:
        """log p(emotion | context) of each item, (items, emotions): what the writer itself hears.

        With `to_answer`, readings are kept until it next writes.
        """
        self._begun = {}
        log_probs, held = np.zeros((len(items), len(self.emotions))), 0
        for batch in self._batches(items, **self.together):
            held += 0 if batch.context is None else batch.context.tokens.numel()
            with torch.inference_mode():
                log_probs[list(batch.rows)] = self._feel(batch, to_answer and held <= HELD).double().numpy()
        return log_probs

    def _feel(self, batch: Batch, keep: bool) -> Tensor:
        engine = self._get_engine()
        if engine is None:
            with self._computing():
                return self.model.feel(batch)
        text = Text.joined(self.model.context(batch))
        cache, hidden = engine.understand(text.tokens, text.mask, room=0)
        if keep:
            self._begun[batch.rows] = Begun(engine, text.tokens, cache)
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
        begun, self._begun = self._begun, {}  # gone with this call, whatever comes of it
        candidates: dict[int, list[Candidate]] = {}
        for batch in self._batches(items, **self.together):
            some = plans[list(batch.rows)]
            with self._writing_by():
                steps, state = self._begin(batch, some, begun.pop(batch.rows, None))
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

    @property
    def together(self) -> dict[str, int]:
        """How much is read at once, to predict and to write: less where many plans are written for."""
        return {**TOGETHER, "examples": max(1, TOGETHER["examples"] // self.decoding.plans)}

    def say(self, item: Example, plan: Tensor, number: int) -> Iterator[str]:
        """One reply as it grows, each time the whole text so far. The number says what is drawn."""
        (batch,) = self._batches([item])
        begun, self._begun = self._begun, {}
        with torch.inference_mode():
            steps, state = self._begin(batch, plan[:, None], begun.pop(batch.rows, None))
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
        context, header = Text.joined(self.model.context(batch)), self.model.header(plans.flatten())
        room = self.decoding.max_length + 1
        known = begun is not None and begun.is_of(engine, context.tokens)
        if known or plans.shape[1] > 1:
            read = begun.cache if known and begun else engine.understand(context.tokens, context.mask, room=0)[0]
            text, first = self.model.opening(Text.joined(header))
            rows = torch.arange(len(batch)).repeat_interleave(plans.shape[1])
            cache = engine.with_room(read, rows, text.tokens.shape[1] + room)
            engine.go_on(text.tokens, text.mask, cache)
        else:
            text, first = self.model.opening(Text.joined(context, header))
            cache, _ = engine.understand(text.tokens, text.mask, room)
        steps = EngineSteps(engine, cache, first)
        return steps, steps.begin()

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
