"""Encodes examples as token ids once, then forms batches of similar length.

Example ─ encode() ─▶ Encoded ─ Batches ─▶ Batch
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import torch
from torch.nn import functional as F

from listenwell.contract import ABSENT, Batch, Sequence
from listenwell.data.dialogue import ROLES, Example, Label, LabelPlace, Turn
from listenwell.labels.sets import EMOTION, EMOTION_INTENT, LabelSet
from listenwell.text import Tokenizer
from listenwell.text.chatml import LINE, chat_headers


@dataclass
class EncodingConfig:
    """How an example is truncated and marked up."""

    max_context: int = 150
    """Maximum number of context tokens; the oldest are dropped first."""
    max_reply: int = 150
    """Maximum number of reply tokens in training; evaluation never truncates a reply."""
    separators: bool = False
    """Put <s> and </s> around every utterance of the context (MEED2) instead of one <ctx> in front."""
    max_turns: int = 0
    """Maximum number of context turns, the newest; 0 for all. A single-turn system uses 1."""
    turns: Literal["plain", "chatml"] = "plain"
    """chatml: write every context turn in a chat model's format, with a header for its role; if the context is too
    long, whole turns are dropped, the oldest first."""

    def __post_init__(self) -> None:
        if self.max_context < 2:
            raise ValueError(f"max_context is {self.max_context}, expected at least 2: a token of context behind <ctx>")
        if self.max_reply < 1:
            raise ValueError(f"max_reply is {self.max_reply}, expected at least 1")
        if self.max_turns < 0:
            raise ValueError(f"max_turns is {self.max_turns}, expected 0 (all) or more")


@dataclass(frozen=True, slots=True)
class Targets:
    """The label sets and places that `Batch.label` and `Batch.emotion` are taken from. A label outside its set is
    ABSENT."""

    labels: LabelSet = EMOTION_INTENT
    label_of: LabelPlace = "reply"
    emotions: LabelSet = EMOTION
    emotion_of: LabelPlace = "dialogue"

    def label(self, item: Example) -> int:
        return label_id_in(self.labels, item.label_of(self.label_of))

    def emotion(self, item: Example) -> int:
        return label_id_in(self.emotions, item.label_of(self.emotion_of))

    def of_turn(self, turn: Turn) -> int:
        """The label id for the positions of a turn."""
        return self.unlabelled if turn.label is None else self.labels.ids.get(turn.label.name, self.unlabelled)

    @property
    def unlabelled(self) -> int:
        """The label id for turns without a label, or with one of another set: neutral if the set has it, else
        ABSENT."""
        return ABSENT if self.labels.neutral is None else self.labels.ids[self.labels.neutral]


def label_id_in(labels: LabelSet, label: Label | None) -> int:
    """The id of a label in a set; ABSENT if there is no label, or it is from another set."""
    return ABSENT if label is None else labels.ids.get(label.name, ABSENT)


@dataclass(slots=True)
class Side:
    """One sequence of an example, before padding."""

    tokens: np.ndarray
    roles: np.ndarray
    labels: np.ndarray


@dataclass(slots=True)
class Encoded:
    """The encoded examples of a split."""

    contexts: list[Side | None] = field(default_factory=list)
    replies: list[Side | None] = field(default_factory=list)
    followings: list[Side | None] = field(default_factory=list)
    emotions: list[int] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    padding_label: int = ABSENT
    """The label id of padding positions."""
    languages: Counter[str] = field(default_factory=Counter)
    """The number of examples in each language."""
    label_chances: np.ndarray | None = None
    """(items, labels) a classifier's label probabilities for each reply, if one was used."""

    def __len__(self) -> int:
        return len(self.ids)

    def lengths(self) -> np.ndarray:
        """(items, 2): the number of tokens in context and reply."""
        return np.array(
            [
                (0 if c is None else len(c.tokens), 0 if r is None else len(r.tokens))
                for c, r in zip(self.contexts, self.replies, strict=True)
            ],
            dtype=np.int64,
        ).reshape(len(self), 2)


def encode(
    items: Iterable[Example],
    tokenizer: Tokenizer,
    config: EncodingConfig,
    cut_replies: bool = False,
    targets: Targets | None = None,
) -> Encoded:
    """Encode examples as token ids. Equal texts are tokenized only once, since contexts of a dialogue share turns.

    `targets` defines the label and the emotion of an example, and the label set of the per-position labels that some
    models read.
    """
    known: dict[str, list[int]] = {}
    targets = targets or Targets()

    def ids(turn: Turn) -> list[int]:
        if turn.text not in known:
            known[turn.text] = tokenizer.encode(turn.text)
        return known[turn.text]

    def context(turns: tuple[Turn, ...]) -> Side:
        turns = turns[-config.max_turns :]
        if headers is None:
            return _context(turns, ids, tokenizer, config, targets)
        return _chat(turns, ids, headers, config, targets)

    headers = _Headers(tokenizer) if config.turns == "chatml" else None
    encoded = Encoded(padding_label=targets.unlabelled)
    longest = config.max_reply if cut_replies else None
    for item in items:
        encoded.ids.append(item.id)
        encoded.languages[item.language] += 1
        encoded.contexts.append(context(item.context) if item.context else None)
        encoded.replies.append(_utterance(item.reply, ids, tokenizer, longest, targets))
        encoded.followings.append(_utterance(item.following, ids, tokenizer, config.max_reply, targets))
        encoded.emotions.append(targets.emotion(item))
        encoded.labels.append(targets.label(item))
    return encoded


def _context(turns: tuple[Turn, ...], ids, tokenizer: Tokenizer, config: EncodingConfig, targets: Targets) -> Side:
    tokens: list[int] = []
    roles: list[int] = []
    labels: list[int] = []
    for turn in turns:
        piece = ids(turn)
        if config.separators:
            piece = [tokenizer.start, *piece, tokenizer.end]
        tokens += piece
        roles += [ROLES.index(turn.speaker)] * len(piece)
        labels += [targets.of_turn(turn)] * len(piece)
    room = config.max_context - (not config.separators)
    tokens, roles, labels = tokens[-room:], roles[-room:], labels[-room:]
    if not config.separators:
        tokens, roles, labels = [tokenizer.ctx, *tokens], [0, *roles], [targets.unlabelled, *labels]
    return Side(np.array(tokens, np.int64), np.array(roles, np.int64), np.array(labels, np.int64))


class _Headers:
    """The tokens before and after a turn in ChatML."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        ids = chat_headers(tokenizer, ())
        self.before = {role: ids[role] for role in ROLES}
        self.behind = [tokenizer.end, *ids[LINE]]


def _chat(turns: tuple[Turn, ...], ids, headers: _Headers, config: EncodingConfig, targets: Targets) -> Side:
    """The newest turns that fit, each whole; if the last turn alone is too long, its end."""
    kept_turns: list[tuple[Turn, list[int]]] = []
    room = config.max_context
    for turn in reversed(turns):
        text, around = ids(turn), len(headers.before[turn.speaker]) + len(headers.behind)
        if around + len(text) > room:
            if kept_turns:
                break
            text = text[-max(room - around, 1) :]
        room -= around + len(text)
        kept_turns.insert(0, (turn, [*headers.before[turn.speaker], *text, *headers.behind]))
    columns = [
        np.concatenate([np.full(len(piece), value(turn), np.int64) for turn, piece in kept_turns])
        for value in (lambda turn: ROLES.index(turn.speaker), targets.of_turn)
    ]
    return Side(np.concatenate([np.array(piece, np.int64) for _, piece in kept_turns]), *columns)


def _utterance(turn: Turn | None, ids, tokenizer: Tokenizer, most: int | None, targets: Targets) -> Side | None:
    """The tokens of a turn followed by the end token, which a truncated turn loses."""
    if turn is None:
        return None
    tokens = np.array([*ids(turn), tokenizer.end][:most], np.int64)
    return Side(tokens, np.full_like(tokens, ROLES.index(turn.speaker)), np.full_like(tokens, targets.of_turn(turn)))


def _pad(sides: list[Side | None], pad: int, padding_label: int) -> Sequence | None:
    present = [side for side in sides if side is not None]
    if not present:
        return None
    longest = max(len(side.tokens) for side in present)
    tokens = np.full((len(sides), longest), pad, np.int64)
    roles = np.zeros_like(tokens)
    labels = np.full_like(tokens, padding_label)
    mask = np.zeros(tokens.shape, bool)
    for row, side in enumerate(sides):
        if side is not None:
            length = len(side.tokens)
            tokens[row, :length] = side.tokens
            roles[row, :length] = side.roles
            labels[row, :length] = side.labels
            mask[row, :length] = True
    return Sequence(*(torch.from_numpy(array) for array in (tokens, mask, roles, labels)))


def collate(data: Encoded, rows: Iterable[int], pad: int) -> Batch:
    """Collate these rows of the data into one batch."""
    rows = tuple(int(row) for row in rows)
    return Batch(
        context=_pad([data.contexts[row] for row in rows], pad, data.padding_label),
        reply=_pad([data.replies[row] for row in rows], pad, data.padding_label),
        following=_pad([data.followings[row] for row in rows], pad, data.padding_label),
        emotion=torch.tensor([data.emotions[row] for row in rows]),
        label=torch.tensor([data.labels[row] for row in rows]),
        label_chances=None if data.label_chances is None else torch.from_numpy(data.label_chances[list(rows)]).float(),
        rows=rows,
    )


def lengthened(batch: Batch, multiple: int, pad: int, padding_label: int) -> Batch:
    """The same batch, with the length of every side padded to a multiple of `multiple`."""

    def longer(side: Sequence | None) -> Sequence | None:
        more = 0 if side is None else -side.tokens.shape[1] % multiple
        if side is None or not more:
            return side
        labels = None if side.labels is None else F.pad(side.labels, (0, more), value=padding_label)
        return Sequence(
            F.pad(side.tokens, (0, more), value=pad), F.pad(side.mask, (0, more)), F.pad(side.roles, (0, more)), labels
        )

    return replace(batch, context=longer(batch.context), reply=longer(batch.reply), following=longer(batch.following))


def cut(order: np.ndarray, lengths: np.ndarray, examples: int, tokens: int) -> Iterator[np.ndarray]:
    """Split `order` into consecutive batches of at most `examples` items and `tokens` padded tokens (0: no limit)."""
    begin, longest = 0, np.zeros(2, np.int64)
    for position, row in enumerate(order):
        wider = np.maximum(longest, lengths[row])
        size = position - begin + 1
        if position > begin and ((examples and size > examples) or (tokens and wider.sum() * size > tokens)):
            yield order[begin:position]
            begin, wider = position, lengths[row]
        longest = wider
    if begin < len(order):
        yield order[begin:]


def epoch_batches(
    lengths: np.ndarray, *, examples: int, tokens: int, seed: int, epoch: int, pool: int = 512
) -> list[np.ndarray]:
    """The batches of one epoch, in order. They depend only on seed and epoch, so that a run can resume at any batch.

    Items are shuffled, divided into pools of about `pool` batches, sorted by length within each pool and cut into
    batches, which are shuffled again: batches have similar lengths, yet differ from epoch to epoch.
    """
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(lengths))
    per_batch = examples or max(1, int(tokens / max(lengths.sum(axis=1).mean(), 1)))
    batches: list[np.ndarray] = []
    for begin in range(0, len(order), pool * per_batch):
        chosen = order[begin : begin + pool * per_batch]
        # By context length in steps of eight tokens, then by reply length.
        ranked = chosen[np.lexsort((lengths[chosen, 1], lengths[chosen, 0] // 8))]
        batches.extend(cut(ranked, lengths, examples, tokens))
    return [batches[index] for index in random.permutation(len(batches))]


def ordered_batches(lengths: np.ndarray, *, examples: int = 0, tokens: int = 6_000) -> list[np.ndarray]:
    """Batches of all items, sorted by length, for scoring and generation."""
    return list(cut(np.lexsort((lengths[:, 1], lengths[:, 0])), lengths, examples, tokens))
