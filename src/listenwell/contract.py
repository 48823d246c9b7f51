"""What every model promises, so that every decoder, stage and metric works with every model.

    Batch ─ understand() ─▶ State ─ step() ─▶ logits, State         (talk)
    Batch ─ objective() ─▶ {name: Term}                              (learn)
    Batch ─ score() ─▶ −log p(reply | context), one number per row     (measure)

Nothing here knows about files, HTTP or the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, TypeVar

import torch
from torch import Tensor, nn

from listenwell.labels.sets import EMOTION, EMOTION_INTENT, LabelSet
from listenwell.labels.taxonomy import unknown_name

Tree = TypeVar("Tree")

ABSENT = -100
"""The id of a label that a row does not have; cross-entropy ignores it."""


def map_tensors(tree: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """The same tree of dicts, lists, tuples and dataclasses with `function` applied to each tensor."""
    if isinstance(tree, Tensor):
        return function(tree)
    if isinstance(tree, dict):
        return {key: map_tensors(value, function) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(map_tensors(value, function) for value in tree)
    if is_dataclass(tree) and not isinstance(tree, type):
        return replace(tree, **{f.name: map_tensors(getattr(tree, f.name), function) for f in fields(tree)})
    if tree is None or isinstance(tree, int | float | str):
        return tree
    # Passed through, its rows would stay where they are while all others move.
    raise TypeError(f"a state holds tensors, dicts, lists, tuples and dataclasses, found {type(tree).__name__}")


def chosen(tree: Tree, rows: Tensor) -> Tree:
    """Only these rows of each tensor, in this order."""
    return map_tensors(tree, lambda tensor: tensor.index_select(0, rows))


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a model has to know of its tokenizer."""

    size: int
    pad: int = 0
    unk: int = 1
    start: int = 2
    end: int = 3
    ctx: int = 4

    def check_known(self, known: int, backbone: str) -> None:
        """Stops where a backbone, which knows so many tokens, is not the one that the text is cut for."""
        if self.size > known:
            raise ValueError(
                f"the text has {self.size:,} tokens, but the backbone knows {known:,}; "
                f"write text: {{kind: backbone, backbone: {backbone}}}"
            )


@dataclass(slots=True)
class WordPrior:
    """What is known of the words before learning starts."""

    counts: Tensor
    """(vocabulary,) how often each word is a target in the training data."""
    vectors: Tensor | None = None
    """(vocabulary, any width) pretrained vectors, where `known`."""
    known: Tensor | None = None
    emotional: Tensor | None = None
    """(vocabulary,) True for the words that a lexicon associates with an emotion."""


LENGTH_STEP = 8
"""Lengths of a batch that are a multiple of this are few: a CPU makes code for each shape of a product in bf16,
and attention between lengths of every number has thousands of shapes. They take gigabytes."""


@dataclass(slots=True)
class Sequence:
    """Padded token ids with what is known of each position. All are (batch, time)."""

    tokens: Tensor
    mask: Tensor
    """True at real positions."""
    roles: Tensor
    """Who speaks: the index into dialogue.ROLES."""
    labels: Tensor | None = None
    """The label id of the utterance that a position belongs to, where a model wants it."""

    def shifted(self, start: int) -> Tensor:
        """The decoder's input: `start`, then all tokens but the last."""
        return torch.cat([torch.full_like(self.tokens[:, :1], start), self.tokens[:, :-1]], dim=1)

    def first(self, positions: int) -> Sequence:
        """The first positions alone."""
        return map_tensors(self, lambda tensor: tensor[:, :positions])

    def as_source(self, ctx: int, end: int) -> Sequence:
        """A reply as a context is read: `ctx` in front, its end left out."""
        mask = self.mask & (self.tokens != end)
        return Sequence(
            torch.cat([torch.full_like(self.tokens[:, :1], ctx), self.tokens], dim=1),
            torch.cat([torch.ones_like(mask[:, :1]), mask], dim=1),
            torch.cat([self.roles[:, :1], self.roles], dim=1),
        )

    def as_target(self, ctx: int, mark: int, end: int, pad: int) -> Sequence:
        """A context as a reply is written: no `ctx`, `mark` wherever another speaker takes over, `end` behind it all.

        A mark and the end belong to the turn that they close.
        """
        real = self.mask & (self.tokens != ctx)
        lengths = real.sum(dim=1)
        changes = torch.zeros_like(real)
        changes[:, 1:] = real[:, 1:] & real[:, :-1] & (self.roles[:, 1:] != self.roles[:, :-1])
        # Each token moves right by the marks before it, and left by what is left out in front.
        places = (real.cumsum(dim=1) - 1 + changes.cumsum(dim=1)).clamp_min(0)
        ends = lengths + changes.sum(dim=1)
        longest = -(-(int(ends.max()) + 1) // LENGTH_STEP) * LENGTH_STEP
        rows = torch.arange(len(real), device=real.device)
        tokens = torch.full((len(real), longest), mark, dtype=self.tokens.dtype, device=real.device)
        roles = torch.zeros_like(tokens)
        row_of = rows[:, None].expand_as(real)
        tokens[row_of[real], places[real]] = self.tokens[real]
        roles[row_of[real], places[real]] = self.roles[real]
        # The mark stands right before the first token of the new turn, and has the role of the turn before it.
        before = changes.roll(-1, dims=1)
        roles[row_of[changes], places[changes] - 1] = self.roles[before]
        tokens[rows, ends] = end
        roles[rows, ends] = roles[rows, (ends - 1).clamp_min(0)]
        mask = torch.arange(longest, device=real.device) <= ends[:, None]
        return Sequence(tokens.masked_fill(~mask, pad), mask, roles)


@dataclass(slots=True)
class Batch:
    """Examples as tensors. A side is None where the data has only the other one."""

    context: Sequence | None = None
    reply: Sequence | None = None
    following: Sequence | None = None
    emotion: Tensor | None = None
    """(batch,) an emotion's id, or ABSENT: the dialogue's, unless the stream says otherwise. Gold: for losses and
    scores, never for understand()."""
    label: Tensor | None = None
    """(batch,) a label's id, or ABSENT: the reply's, unless the stream says otherwise. Gold too."""
    label_chances: Tensor | None = None
    """(batch, labels) what a classifier makes of the reply's text, where the stream names one. To learn from only."""
    rows: tuple[int, ...] = ()
    """Which items of the data set these are."""

    def __len__(self) -> int:
        side = self.context if self.context is not None else self.reply
        return 0 if side is None else len(side.tokens)

    def select(self, rows: Tensor) -> Batch:
        """Only these rows, in this order."""
        chosen = map_tensors(replace(self, rows=()), lambda tensor: tensor.index_select(0, rows))
        return replace(chosen, rows=tuple(self.rows[int(row)] for row in rows) if self.rows else ())

    def to(self, device: torch.device | str) -> Batch:
        return map_tensors(self, lambda tensor: tensor.to(device))


@dataclass(frozen=True, slots=True)
class Controls:
    """What a user may ask of a reply. A model that knows no such control ignores it."""

    emotion: str | None = None
    label: str | None = None
    positivity: float | None = None
    situation: str | None = None
    """What the user says in advance. The system reads it as the speaker's first words."""
    latent: Literal["prior", "posterior", "mean"] = "prior"
    latent_value: int | None = None
    """Which value of a discrete latent to reply under; None leaves the choice to the model."""


@dataclass(slots=True)
class State:
    """What a model made of a batch, and where its decoder stands. Every tensor has the batch first."""

    beliefs: dict[str, Tensor] = field(default_factory=dict)
    """What the model believes, for explanations and metrics, as log-probabilities: "emotion" (batch, the
    model's `emotions`) of the speaker, "label" (batch, its `label_set`) of the response it chooses. What a model adds
    of its own it documents itself."""
    fixed: Any = None
    """What the decoder attends to: does not change while decoding."""
    moving: Any = None
    """What each step extends: key-value caches, recurrent states."""
    length: int = 0
    """Tokens decoded so far, the same for all rows."""

    def select(self, rows: Tensor) -> State:
        """Only these rows, in this order: for beams that swap and rows that are finished."""
        return map_tensors(self, lambda tensor: tensor.index_select(0, rows))

    def repeat(self, times: int) -> State:
        """Each row `times` times, next to each other: for beams and candidates."""
        return map_tensors(self, lambda tensor: tensor.repeat_interleave(times, dim=0))


@dataclass(slots=True)
class Term:
    """One named part of a loss as a sum and what it counts, so that parts add up across processes."""

    total: Tensor
    """What is minimised."""
    count: float
    plain: Tensor | None = None
    """What is shown instead of the total, where they differ: the likelihood without label smoothing."""
    learned: bool = True
    """False for what is only shown, such as an accuracy."""

    @property
    def mean(self) -> Tensor:
        return self.total / max(self.count, 1.0)

    @property
    def shown(self) -> float:
        return float(self.total if self.plain is None else self.plain) / max(self.count, 1.0)


@dataclass(frozen=True, slots=True)
class Moment:
    """When in its stage a batch comes: what annealing and schedules inside an objective look at."""

    step: int = 0
    """Updates of the whole run so far."""
    progress: float = 0.0
    """0 at the start of the stage, 1 at the end of its budget."""

    def draw(self, batch: Batch, share: float) -> Tensor:
        """Which rows (batch,) something is done to that is done to a share of them. Drawn by the rows and the moment
        alone: a resumed run repeats it."""
        first = batch.rows[0] if batch.rows else 0
        noise = torch.Generator().manual_seed(1_000_003 * self.step + first)
        side = batch.context if batch.context is not None else batch.reply
        is_drawn = torch.rand(len(batch), generator=noise) < share
        return is_drawn if side is None else is_drawn.to(side.tokens.device)


class Steps(Protocol):
    """All that decoding asks of a model."""

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]: ...


Direction = Literal["forward", "backward"]
"""What is written: the reply to a context, or the context that a reply answers."""


@dataclass(frozen=True, slots=True)
class LabelSets:
    """The sets that the ids of a batch are of; None for what an objective does not read."""

    label: LabelSet | None = EMOTION_INTENT
    """Of `Batch.label`."""
    emotion: LabelSet | None = EMOTION
    """Of `Batch.emotion`."""


Calibration = Literal["", "text", "dialogue", "emotion", "choice", "empathy"]


class Model(nn.Module):
    """The base of every model: one file per paper, its config dataclass on top."""

    Config: ClassVar[type]
    """The dataclass of its sizes and choices; a model is made by `Model(Config(...), vocabulary)`."""

    config: Any
    """What it was made with: saved whole in a checkpoint, so that a later default changes no earlier model."""

    objectives: ClassVar[Mapping[str, str]] = {"likelihood": "likelihood"}
    """The names a recipe's stage may ask for, and the methods that compute them."""

    talks: bool = True
    """Whether it replies. A classifier does not; what it does instead is in its own methods."""

    takes_label: bool = False
    """Whether `Controls.label` says how it replies."""

    renewable: ClassVar[tuple[str, ...]] = ()
    """Patterns of weights that need not fit where a run starts from another: these are initialised again there."""

    same_text: ClassVar[tuple[str, ...]] = ()
    """The parts that must have the model's own tokenizer, since it hands them its tokens."""

    directions: tuple[Direction, ...] = ("forward",)
    """What it can write. A backward model is given a batch with replies alone, and writes what they answer."""

    has_oracle_score: bool = False
    """Whether `oracle_score` gives the likelihood of a reply under its true label."""

    latent_values: int = 0
    """How many values its discrete latent has, for `score_by_latent` and `Controls.latent_value`; 0 if it has none."""

    labels_texts: bool = False
    """Whether `label_log_probs` gives the probabilities of a text's labels."""

    calibration: Calibration = ""
    """What `listenwell calibrate` fits: how sure it is of a text's label, of what it hears in a dialogue (the emotion,
    and the reply's label), of the emotion alone, of a reply's levels of empathy; or how the reply's label is chosen."""

    label_set: LabelSet = EMOTION_INTENT
    """The set of `Batch.label`, and of the label that it chooses for a reply."""

    emotions: LabelSet = EMOTION
    """The set of `Batch.emotion`, and of the emotion that it believes the speaker to have."""

    @classmethod
    def complete(cls, config: Any) -> Any:
        """The config with all that the constructor needs, such as the sizes in a backbone's files. The constructor
        itself reads no files: `models.build` calls this first."""
        return config

    @property
    def pretrained(self) -> str | None:
        """The pretrained model that it starts from, if any: a name or a folder."""
        return None

    def label_sets(self, objective: str) -> LabelSets:
        """The sets that one objective reads; a model whose objectives read different ones says which."""
        return LabelSets(self.label_set, self.emotions)

    def known_label_sets(self) -> set[LabelSet]:
        """All of them: a checkpoint carries those that are not built in."""
        both = [(sets.label, sets.emotion) for sets in map(self.label_sets, self.objectives)]
        return {one for pair in both for one in pair if one is not None} | {self.label_set, self.emotions}

    def understand(
        self,
        batch: Batch,
        controls: Controls | None = None,
        direction: Direction = "forward",
        generator: torch.Generator | None = None,
    ) -> State:
        """Encodes once. A backward model reads the reply and decodes the context."""
        raise TypeError(f"{type(self).__name__} does not understand")

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """The next token's logits (batch, vocabulary) after `tokens` (batch,), and the state beyond them."""
        raise TypeError(f"{type(self).__name__} does not decode")

    def score(self, batch: Batch, generator: torch.Generator | None = None) -> Tensor:
        """−log p(reply | context) of each row (batch,): the end token counted, labels and latents summed out."""
        raise TypeError(f"{type(self).__name__} gives no likelihood")

    def oracle_score(self, batch: Batch) -> Tensor:
        """−log p(reply | context, label) of each row with the *true* label, for figures that are marked."""
        raise TypeError(f"{type(self).__name__} gives no likelihood under a label")

    def score_by_latent(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """log q(z | context) and −log p(reply | context, z) for every value z of a discrete latent, (batch, values)."""
        raise TypeError(f"{type(self).__name__} has no discrete latent")

    def label_log_probs(self, batch: Batch) -> Tensor:
        """log p(label | text), (batch, labels)."""
        raise TypeError(f"{type(self).__name__} does not label texts")

    def objective(self, name: str, batch: Batch, moment: Moment, **options: Any) -> dict[str, Term]:
        """The named losses of one objective on one batch; `options` are the stage's."""
        if name not in self.objectives:
            raise ValueError(unknown_name("objective", name, self.objectives))
        return getattr(self, self.objectives[name])(batch, moment, **options)

    def initialise(self, prior: WordPrior) -> None:
        """Starts from what is known of the words; a model without word embeddings has nothing to do."""

    def borrowed(self) -> frozenset[str]:
        """The names of weights that are a backbone's own, unchanged: a checkpoint leaves them out."""
        return frozenset()

    def borrow(self) -> None:
        """Takes the borrowed weights from where the backbone is. Called when a checkpoint is read."""

    def attach(self, parts: Mapping[str, Any]) -> None:
        """Hands the model the trained parts of its checkpoint, by name, such as a labeller: each has a `model` and a
        `tokenizer`. Called after the model is built or loaded, with no parts too; calling it again must change nothing.

        A part is not the model's own: it is neither learned nor saved with its weights, so do not register it as a
        submodule (keep it in a tuple or a dict). Nothing is read from files here.
        """

    def forward(self, name: str, batch: Batch, moment: Moment, **options: Any) -> dict[str, Term]:
        """An objective, called as a module is: what wraps a model for many processes hooks in here."""
        return self.objective(name, batch, moment, **options)

    def reasons(self, state: State, row: int) -> dict[str, Any]:
        """What else explains the reply to a row, by name, as plain values."""
        return {}

    def on_epoch_start(self, stage: str, epoch: int, batches: Callable[[], Iterable[Batch]]) -> Iterable[str]:
        """Called before every epoch of a stage, the first too, with a way to go through its data once more.

        Returns patterns of the parameters it reset, if any: their optimizers drop their state for them.
        """
        return ()
