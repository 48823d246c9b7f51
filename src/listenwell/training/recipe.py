"""A recipe: data + text + model + stages + decoding. One YAML file per row of a table; see recipe_files.py.

A stage is a round of moves. A move draws a batch from a stream, asks the model for one of its objectives
on it and steps one optimizer. One move is plain training; a generator's and a discriminator's moves take
turns; paired and unpaired data are two moves on two streams; pre-training and fine-tuning are two stages.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal

from listenwell.configuration import ConfigError
from listenwell.data.batching import EncodingConfig
from listenwell.data.dialogue import LabelPlace, Role, Side
from listenwell.decoding import Decoding
from listenwell.labels.sets import LabelSet, check_new, label_set, own_label_sets, read_label_sets
from listenwell.labels.taxonomy import unknown_name
from listenwell.models import current_model, earlier_model
from listenwell.text import TextConfig

NOT_SHAPING = "not shaping"
"""Marks a field that does not change what is learned."""


@dataclass
class DataConfig:
    """Where dialogues come from."""

    source: str = "shipped"
    """A source by name (see `listenwell data`), or a path to a .jsonl file."""
    path: str | None = None
    """The file or folder, if it is not in LISTENWELL_DATA."""
    split: str = "train"
    """Which split to learn from."""
    replies_by: list[Role] = field(default_factory=lambda: ["listener"])
    """Whose turns are learned as replies."""
    sides: list[Side] = field(default_factory=lambda: ["context", "reply"])
    """What an example must have; unpaired data has only a context or only a reply. A situation comes alone, in the
    place of the context; so does an opening, what the speaker says first, in the place of the reply."""
    clean: bool = False
    """Cut dialogues at junk turns and leave out duplicates."""
    emoticons: bool = True
    """False takes [哈哈] and the like out of the texts: where labels follow them, they would be all that is learned."""
    label_names: dict[str, str] = field(default_factory=dict)
    """Other names for labels of the source, such as {happy: happiness}, to learn from two corpora of like labels."""
    part: str | None = None
    """Only this part, of a source that has parts, such as edos's mturk."""
    labels: str = "emotion-intent"
    """The label set that labels are of, by name: the 41, polarity (onto which those of any corpus are mapped), that of
    a corpus, such as smp, or one of the recipe's own `label_sets`."""
    label_of: LabelPlace = "reply"
    """Whose label is learned: the reply's, that of the context's last turn, or the dialogue's."""
    emotions: str = ""
    """The label set that emotions are of; the one that the model knows if not given."""
    emotion_of: LabelPlace = "dialogue"
    """Whose label is learned as the emotion: the dialogue's, that of the context's last turn, or the reply's."""
    chances_by: str = ""
    """A trained classifier of texts by name or folder: a batch then has the chance it gives each label of the reply."""
    labelled: bool = False
    """Only examples that have a label, where `label_of` says."""
    leave_out: list[str] = field(default_factory=list)
    """The ids of dialogues that are not read."""
    written_by: str = field(default="", metadata={NOT_SHAPING: True})
    """The command that writes the source, for whoever does not have it yet."""

    def __post_init__(self) -> None:
        for alone in ("situation", "opening"):
            if alone in self.sides and len(self.sides) > 1:
                article = "an" if alone == "opening" else "a"
                raise ConfigError(f"{article} {alone} has no other side; write sides: [{alone}]")


@dataclass
class Stream(DataConfig):
    """Data as it flows into a move: batches of like length."""

    source: str = ""
    """A source by name or a path to a .jsonl file; the recipe's own corpus if not given."""
    examples: int = 16
    """Most examples in a batch; 0 for no limit."""
    tokens: int = 0
    """Most padded tokens in a batch; 0 for no limit."""
    rare_as_unknown: float = 0.5
    """How often a word that was seen once is read and learned as the unknown word, so that the model knows
    how likely an unknown word is (Good and Turing's estimate, in effect)."""

    forget_words: float = 0.0
    """How often any word of the context is read as the unknown word, so that no single word gives all away."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.examples <= 0 and self.tokens <= 0:
            raise ConfigError("a stream needs a limit to its batches: examples or tokens above 0")


@dataclass
class Validation(Stream):
    """Data to look at without learning from it."""

    split: str = "valid"
    """Which split to look at."""


@dataclass
class Optimizer:
    """How parameters learn."""

    kind: Literal["adam", "adamw"] = "adamw"
    """Adam, or AdamW with weight decay apart from the gradient."""
    rate: float = 8e-4
    """Highest learning rate."""
    schedule: Literal["constant", "linear", "noam"] = "linear"
    """constant; linear: falls to `floor` at the end of the budget; noam: rises, then falls by the root of steps."""
    warmup: int = 200
    """Steps of linear rise."""
    floor: float = 0.02
    """Where the linear schedule ends, as a share of the rate."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Adam's moments."""
    decay: float = 0.01
    """Weight decay on matrices."""
    eps: float = 1e-8
    """Added to the root of Adam's second moment."""
    clip: float = 1.0
    """Largest norm of the gradient; 0 for no clipping."""
    learns: list[str] = field(default_factory=lambda: ["*"])
    """Patterns of parameter names that this optimizer updates; it leaves all others unchanged."""
    factors: dict[str, float] = field(default_factory=dict)
    """Factors of the rate for parameters named like a pattern, such as {"backbone.*": 0.1}."""


@dataclass
class Move:
    """One objective on one stream by one optimizer."""

    objective: str = "likelihood"
    """One of the model's objectives."""
    stream: str = "train"
    """Which stream its batches come from."""
    optimizer: str = "main"
    """Which optimizer steps."""
    times: int = 1
    """How often in a row, each round."""
    hold: bool = False
    """Leave the gradient for the next move of the same optimizer: their losses add up in one step."""
    optional: bool = False
    """Leave this move out where the data has nothing for its stream, as a corpus without situations has not."""
    weights: dict[str, float] = field(default_factory=dict)
    """Factors of the objective's named losses; 1 where none is given."""
    options: dict[str, Any] = field(default_factory=dict)
    """What else the objective takes, such as smoothing."""

    def __post_init__(self) -> None:
        if self.times < 1:
            raise ConfigError(f"a move is made at least once a round, found times: {self.times}")


@dataclass
class Stage:
    """A named part of training."""

    name: str = "train"
    """Shown while it runs, and passed to the model before each epoch."""
    epochs: float = 1.0
    """Budget in passes over the first stream."""
    examples: int = 0
    """Budget in examples of the first stream instead; 0 to use epochs."""
    moves: list[Move] = field(default_factory=lambda: [Move()])
    """What a round is made of."""
    streams: dict[str, Stream] = field(default_factory=dict)
    """Streams by name. One called train, with the recipe's data, is there if none is given."""
    optimizers: dict[str, Optimizer] = field(default_factory=lambda: {"main": Optimizer()})
    """Optimizers by name."""
    validate_every: float = 1.0
    """Epochs between validations."""
    criterion: str = "reply"
    """The loss that says which checkpoint is best, and when to stop; score for the model's own score()."""
    measure: str = ""
    """The objective that validation computes; the first move's if not given."""
    valid: Validation | None = None
    """What to validate on; the valid split of the recipe's corpus if not given."""
    patience: int = 0
    """Stop after so many validations without a better one; 0 to use the whole budget."""
    keep: Literal["best", "last"] = "best"
    """What the stage hands on: its best checkpoint by the criterion, or its last."""
    average: float = 0.0
    """For `keep: last`: the share of the budget, at its end, over whose rounds the weights are averaged; what is handed
    on is their mean. 0 for the last weights alone."""

    def __post_init__(self) -> None:
        for move in self.moves:
            if move.stream not in (self.streams or ("train",)):
                raise ConfigError(
                    f"stage {self.name}: {unknown_name('stream', move.stream, self.streams or ['train'])}"
                )
            if move.optimizer not in self.optimizers:
                raise ConfigError(f"stage {self.name}: {unknown_name('optimizer', move.optimizer, self.optimizers)}")
        if not self.moves:
            raise ConfigError(f"stage {self.name} has no moves")
        for budget in ("epochs", "examples", "patience"):
            if not getattr(self, budget) >= 0:
                raise ConfigError(f"stage {self.name}: {budget} is {getattr(self, budget)}, expected 0 or more")
        if not self.validate_every > 0:
            raise ConfigError(f"stage {self.name}: validate_every is {self.validate_every}, expected more than 0")
        if not 0 <= self.average <= 1:
            raise ConfigError(f"stage {self.name}: average is a share from 0 to 1, found {self.average}")
        if self.average and (self.keep != "last" or self.patience):
            raise ConfigError(f"stage {self.name}: an average needs keep: last and no patience, for a known end")
        for move, after in zip(self.moves, [*self.moves[1:], None], strict=True):
            # The step of another optimizer, or a checkpoint at the end of the round, would lose the gradient.
            if move.hold and (after is None or after.optimizer != move.optimizer):
                raise ConfigError(
                    f"stage {self.name}: a move that holds needs one of the same optimizer right after it"
                )

    def with_streams(self, present: Collection[str]) -> Stage:
        """The stage without the moves whose streams are not there; what was held for them is stepped with."""
        moves = [move for move in self.moves if move.stream in present]
        for index, (move, after) in enumerate(zip(moves, [*moves[1:], None], strict=True)):
            if move.hold and (after is None or after.optimizer != move.optimizer):
                moves[index] = replace(move, hold=False)
        return replace(self, moves=moves, streams={name: s for name, s in self.streams.items() if name in present})


@dataclass
class Recipe:
    """All that a run is made of. The same recipe, seed and data give the same weights."""

    name: str
    """Also the run's folder."""
    model: dict[str, Any]
    """`name`, and any fields of that model's config."""
    about: str = ""
    """One line for people."""
    row: str = ""
    """Which published row this stands for, as paper/table/system."""
    data: DataConfig = field(default_factory=DataConfig)
    """The corpus: its train split gives the vocabulary, its valid split the criterion."""
    label_sets: dict[str, Any] = field(default_factory=dict)
    """Label sets of your own by name: a list of labels, or `labels` and the `polarity` of each. They travel with the
    trained model."""
    start: str = ""
    """Weights and vocabulary to start from: a run beside this one, a folder, or a trained system by name."""
    vocabulary: str = ""
    """The sources whose train splits the tokenizer learns from, with + between; the recipe's own if not given."""
    parts: dict[str, str] = field(default_factory=dict)
    """Trained systems, named as `start` is, that become parts of what is trained, by what they are to it. The labeller
    labels the turns for a model that reads labels; without one, contexts have the labels of the corpus, and in use
    none."""
    text: TextConfig = field(default_factory=TextConfig)
    """How text becomes tokens."""
    encoding: EncodingConfig = field(default_factory=EncodingConfig)
    """How examples are cut and marked."""
    vectors: str | None = None
    """Pretrained word vectors to start from, as text: a path, also one within LISTENWELL_DATA."""
    lexicon: str | None = None
    """Words and their emotions, as JSON, for a model that asks for them: a path, also one within LISTENWELL_DATA."""
    stages: list[Stage] = field(default_factory=lambda: [Stage()])
    """Carried out in order."""
    decoding: Decoding = field(default_factory=Decoding)
    """How the trained system speaks, and how it is scored."""
    seed: int = 1
    """Of weights, batches and dropout."""

    def __post_init__(self) -> None:
        self.model = current_model(self.model)
        if self.seed < 0:
            raise ConfigError(f"recipe {self.name}: seed is {self.seed}, expected 0 or more")
        try:
            self._check_label_sets()
        except ValueError as problem:
            raise ConfigError(f"recipe {self.name}: {problem}") from problem

    def _check_label_sets(self) -> None:
        sets = self.own_label_sets()
        check_new(sets)
        streams = [stream for stage in self.stages for stream in (*stage.streams.values(), stage.valid) if stream]
        with own_label_sets(sets):
            for data in (self.data, *streams):
                for name in filter(None, (data.labels, data.emotions)):
                    label_set(name)

    def own_label_sets(self) -> dict[str, LabelSet]:
        """The label sets that the recipe defines."""
        return read_label_sets(self.label_sets)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def fingerprint(self) -> str:
        """Changes when anything does that shapes the training: resuming under another recipe is refused."""
        shaping = {key: value for key, value in _not_default(self).items() if key not in ("about", "row", "decoding")}
        shaping["model"] = earlier_model(shaping["model"])  # a run that was begun under that name can be resumed
        return hashlib.sha256(json.dumps(shaping, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _not_default(value: Any) -> Any:
    """Plain data without what is as it is by default: a field that a later version adds changes no recipe."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            f.name: _not_default(getattr(value, f.name))
            for f in fields(value)
            if getattr(value, f.name) != _default(f) and NOT_SHAPING not in f.metadata
        }
    if isinstance(value, dict):
        return {key: _not_default(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_not_default(item) for item in value]
    return value


def _default(f: Field[Any]) -> Any:
    return f.default_factory() if f.default_factory is not MISSING else f.default
