"""Bot: a System made of a trained model, its tokenizer and its decoding."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Self, Unpack

import numpy as np
import torch
from torch import Tensor

from listenwell.checkpoint import Checkpoint, HasCheckpoint
from listenwell.classifiers.label_cache import LABELLER, CachedLabeller, Labels, label_contexts, load_labeller
from listenwell.contract import Batch, Controls, Direction, Model, State, Steps
from listenwell.data.batching import EncodingConfig, Targets, collate, encode, ordered_batches
from listenwell.data.dialogue import Example, LabelPlace, Talk, Turn
from listenwell.decoding import Decoding, Guided, Hypothesis, changed, decode, paired, stream
from listenwell.labels.sets import LabelSet
from listenwell.systems.base import LatentScores, Likelihoods, Precision, as_answer, as_context, draw_number, read_each
from listenwell.systems.controls import ReplyOptions, for_this_call
from listenwell.systems.reply import Candidate, Reply
from listenwell.systems.together import Job, write_bot
from listenwell.text import Tokenizer, words


def _item(talk: Talk, controls: Controls | None, direction: Direction) -> Example:
    """Returns the input for a direction: a context (forward), or a reply to one (backward)."""
    if direction == "backward":
        return Example("", reply=as_answer(talk))
    return Example("", as_context(talk, controls))


def _number(item: Example) -> int:
    return draw_number(item.context or [turn for turn in [item.reply] if turn is not None])


class Bot(HasCheckpoint):
    """A trained model as a system that replies to dialogues.

    >>> listenwell.load("multi-trs").reply(["I lost my job today"]).text
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.name = checkpoint.name
        self.checkpoint = checkpoint
        self.model: Model = checkpoint.model.eval()
        self.tokenizer: Tokenizer = checkpoint.tokenizer
        self.encoding: EncodingConfig = checkpoint.encoding
        self.decoding: Decoding = checkpoint.decoding
        part = checkpoint.parts.get(LABELLER)
        # The same turns are labelled repeatedly: at the next turn of a conversation, by replies, by likelihoods.
        self.labeller: Labels | None = (
            None if part is None else CachedLabeller(load_labeller(part, self.model.label_set))
        )
        """Labels turns, if the model reads turn labels."""
        self.precision: Precision = ""

    @contextmanager
    def _computing(self) -> Iterator[None]:
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "bf16"):
            yield

    @property
    def takes_label(self) -> bool:
        """Whether `Controls.label` controls how it replies."""
        return self.model.takes_label

    @property
    def directions(self) -> tuple[Direction, ...]:
        """What it can write: the reply to a context and, with "backward", the context that a reply answers."""
        return self.model.directions

    @property
    def emotions(self) -> LabelSet:
        """The emotions it distinguishes."""
        return self.model.emotions

    @property
    def emotion_of(self) -> LabelPlace:
        """Where the training data annotates the emotion: on the dialogue or on a turn."""
        return self.checkpoint.meta.get("recipe", {}).get("data", {}).get("emotion_of", "dialogue")

    @property
    def label_set(self) -> LabelSet:
        """The labels a reply may have."""
        return self.model.label_set

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages it was trained on."""
        return self.checkpoint.languages

    def with_decoding(self, **changes: object) -> Self:
        """Returns a copy with other decoding options. The model is shared."""
        other = copy(self)
        other.decoding = changed(self.decoding, changes)
        return other

    def reply(self, talk: Talk, controls: Controls | None = None, **named: Unpack[ReplyOptions]) -> Reply:
        """Returns the reply to a conversation. With `direction="backward"`, returns what a listener text may answer."""
        bot, controls = for_this_call(self, controls, named)
        direction = named.get("direction", "forward")
        item = _item(talk, controls, direction)
        return bot._replies([item], controls, [_number(item)], direction=direction)[0]

    def replies(
        self,
        talks: Sequence[Talk],
        controls: Controls | None = None,
        done: Callable[[int], None] | None = None,
        first: int = 0,
        **named: Unpack[ReplyOptions],
    ) -> list[Reply]:
        bot, controls = for_this_call(self, controls, named)
        direction = named.get("direction", "forward")
        items = read_each(talks, lambda talk: _item(talk, controls, direction))
        return bot._replies(items, controls, range(first, first + len(items)), done, direction)

    def _replies(
        self,
        items: Sequence[Example],
        controls: Controls | None,
        numbers: Sequence[int],
        done: Callable[[int], None] | None = None,
        direction: Direction = "forward",
    ) -> list[Reply]:
        """`numbers` determine, with the seed, what is sampled for each item."""
        replies: dict[int, Reply] = {}
        items = self._with_turn_labels(items)
        for batch in self._batches(items, tokens=6_000, examples=64):
            drawn = tuple(numbers[row] for row in batch.rows)
            with self._computing():
                state, steps, start = self._writing(replace(batch, rows=drawn), controls, direction)
                hypotheses = decode(steps, start, self.decoding, items=drawn, **self._ends())
            for position, row in enumerate(batch.rows):
                replies[row] = self._explain(hypotheses[position], state, position, items[row].context)
            if done is not None:
                done(len(batch))
        return [replies[index] for index in range(len(items))]

    def stream(
        self, talk: Talk, controls: Controls | None = None, **named: Unpack[ReplyOptions]
    ) -> Generator[str, None, Reply]:
        """Streams the reply: each item is the whole text so far, since later tokens can join earlier words.

        The generator's return value is the complete Reply, without candidates because no alternatives were considered.
        """
        bot, controls = for_this_call(self, controls, named)
        direction = named.get("direction", "forward")
        return bot._stream(_item(talk, controls, direction), controls, direction)

    def _stream(
        self, item: Example, controls: Controls | None, direction: Direction = "forward"
    ) -> Generator[str, None, Reply]:
        (item,) = self._with_turn_labels([item])
        (batch,) = self._batches([item])
        number = _number(item)
        options = self.decoding.streamed()
        with torch.inference_mode():
            state, steps, start = self._writing(replace(batch, rows=(number,)), controls, direction)
        tokens: list[int] = []
        for token in stream(steps, start, options, item=number, **self._ends()):
            tokens.append(token)
            yield self.tokenizer.decode(tokens)
        written = Hypothesis(tokens, score=0.0, logprob=0.0, finished=len(tokens) < options.max_length)
        return replace(self._explain([written], state, 0, item.context), candidates=())

    def recognise(self, talk: Talk) -> Reply:
        """Returns what it recognises in a conversation, above all the emotion, as a Reply without text."""
        (item,) = self._with_turn_labels([_item(talk, None, "forward")])
        (batch,) = self._batches([item])
        with self._computing():
            state = self._understand(replace(batch, rows=(_number(item),)), None)
        explained = self._explain([Hypothesis([], score=0.0, logprob=0.0, finished=True)], state, 0, item.context)
        return replace(explained, candidates=())

    hear = recognise
    """The former name of `recognise`."""

    def write_together(self, jobs: Sequence[Job]) -> Iterator[None]:
        """Writes replies for several people at once, one decoding step at a time; see listenwell.systems.together."""
        return write_bot(self, jobs)

    def likelihoods(self, items: Sequence[Example], done: Callable[[int], None] | None = None) -> Likelihoods | None:
        generator = torch.Generator().manual_seed(0)
        return self._likelihoods(items, lambda batch: self.model.score(batch, generator), done)

    def oracle_likelihoods(
        self, items: Sequence[Example], done: Callable[[int], None] | None = None
    ) -> Likelihoods | None:
        """Returns the likelihoods of the replies given their gold labels; None if the model has no labels."""
        return self._likelihoods(items, self.model.oracle_score, done) if self.model.has_oracle_score else None

    def latent_scores(self, items: Sequence[Example], done: Callable[[int], None] | None = None) -> LatentScores | None:
        """Returns the scores of each reply under each value of the latent; None without a discrete latent."""
        if not self.model.latent_values:
            return None
        shape = (len(items), self.model.latent_values)
        scores = LatentScores(np.zeros(shape), np.zeros(shape), np.zeros(len(items)))
        for batch in self._batches(self._with_turn_labels(items), tokens=12_000):
            assert batch.reply is not None
            with self._computing():
                log_q, nll = self.model.score_by_latent(batch)
            rows = list(batch.rows)
            scores.log_q[rows], scores.nll[rows] = log_q.float().numpy(), nll.float().numpy()
            scores.tokens[rows] = batch.reply.mask.sum(1).numpy()
            if done is not None:
                done(len(batch))
        return scores

    def _likelihoods(
        self, items: Sequence[Example], score: Callable[[Batch], Tensor], done: Callable[[int], None] | None
    ) -> Likelihoods:
        nll, tokens = np.zeros(len(items)), np.zeros(len(items))
        for batch in self._batches(self._with_turn_labels(items), tokens=12_000):
            assert batch.reply is not None
            with self._computing():
                nll[list(batch.rows)] = score(batch).numpy()
            tokens[list(batch.rows)] = batch.reply.mask.sum(1).numpy()
            if done is not None:
                done(len(batch))
        spoken = [item.reply.text for item in items if item.reply is not None]
        unknown = [self.tokenizer.unknown(text) for text in spoken]
        return Likelihoods(
            nll=nll,
            tokens=tokens,
            words=np.array([len(words(text)) for text in spoken]),
            unknown=np.array([len(lacking) for lacking in unknown]),
            unseen_types=len({word for lacking in unknown for word in lacking}),
        )

    def _with_turn_labels(self, items: Sequence[Example]) -> Sequence[Example]:
        """Labels the turns of the contexts, if the model reads turn labels."""
        return items if self.labeller is None else label_contexts(items, self.labeller)

    def _batches(self, items: Sequence[Example], tokens: int = 6_000, examples: int = 0) -> Iterator[Batch]:
        targets = Targets(self.label_set, emotions=self.emotions, emotion_of=self.emotion_of)
        data = encode(items, self.tokenizer, self.encoding, targets=targets)
        for rows in ordered_batches(data.lengths(), examples=examples, tokens=tokens):
            yield collate(data, rows, self.tokenizer.pad)

    def _writing(
        self, batch: Batch, controls: Controls | None, direction: Direction = "forward"
    ) -> tuple[State, Steps, State]:
        """Returns the model's state for a batch, the model that writes the replies, and the state it starts from."""
        state = self._understand(batch, controls, direction)
        if not self.decoding.guidance or not self.takes_label or controls is None or controls.label is None:
            return state, self.model, state
        otherwise = self._understand(batch, replace(controls, label=None), direction)
        return state, Guided(self.model, self.decoding.guidance), paired(state, otherwise)

    def _understand(self, batch: Batch, controls: Controls | None, direction: Direction = "forward") -> State:
        generator = torch.Generator().manual_seed(self.decoding.seed)
        return self.model.understand(batch, controls, direction, generator=generator)

    def _ends(self) -> dict:
        return {"start": self.tokenizer.start, "end": self.tokenizer.end, "banned": self.tokenizer.banned}

    def _explain(self, hypotheses: list[Hypothesis], state: State, row: int, context: Sequence[Turn]) -> Reply:
        candidates = tuple(Candidate(self.tokenizer.decode(h.tokens), h.score) for h in hypotheses)
        emotions: dict[str, float] = {}
        if "emotion" in state.beliefs:
            chances = state.beliefs["emotion"][row].exp().tolist()
            emotions = dict(sorted(zip(self.emotions, chances, strict=True), key=lambda pair: -pair[1]))
        label = int(state.beliefs["label"][row].argmax()) if "label" in state.beliefs else None
        reasons = self.model.reasons(state, row)
        last_label = None
        if self.labeller is not None and context:
            names = [turn.label.name if turn.label else None for turn in context]
            reasons = {"heard": names, **reasons}
            last_label = names[-1] if names[-1] in self.emotions else None  # an intent is not an emotion
        return Reply(
            text=candidates[0].text,
            emotion=next(iter(emotions), last_label),
            emotions=emotions,
            label=None if label is None else self.label_set.labels[label],
            reasons=reasons,
            candidates=candidates,
            system=self.name,
        )
