"""A recipe: data + text + model + stages + decoding. One YAML file per table row; see recipe_files.py.

A stage repeats rounds of moves. A move draws a batch from a stream, computes one of the model's objectives on it and
steps one optimizer. Plain training is a single move; a generator and a discriminator are two alternating moves; paired
and unpaired data are two moves on two streams; pre-training and fine-tuning are two stages.
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
"""Marks a field that has no effect on the trained weights."""


@dataclass
class DataConfig:
    """Where dialogues come from."""

    source: str = "shipped"
    """The name of a source (see `listenwell data`), or a path to a .jsonl file."""
    path: str | None = None
    """The file or folder, if it is not in LISTENWELL_DATA."""
    split: str = "train"
    """Which split to learn from."""
    replies_by: list[Role] = field(default_factory=lambda: ["listener"])
    """The roles whose turns are used as replies."""
    sides: list[Side] = field(default_factory=lambda: ["context", "reply"])
    """What an example must have; unpaired data has only a context or only a reply. "situation" must be the only side
    and takes the place of the context; "opening", the speaker's first turn, must too and takes that of the reply."""
    clean: bool = False
    """Cut dialogues at junk turns and drop duplicates."""
    emoticons: bool = True
    """False removes [哈哈] and the like from the texts. Where labels were derived from emoticons, a model would
    otherwise learn nothing else."""
    label_names: dict[str, str] = field(default_factory=dict)
    """New names for labels of the source, such as {happy: happiness}, to combine two corpora with similar labels."""
    part: str | None = None
    """Read only this part of a source that has parts, such as edos's mturk."""
    labels: str = "emotion-intent"
    """The name of the label set for labels: the 41, polarity (to which the labels of any corpus are mapped), the set of
    a corpus, such as smp, or one of the recipe's own `label_sets`."""
    label_of: LabelPlace = "reply"
    """Which label is the target: that of the reply, of the context's last turn, or of the dialogue."""
    emotions: str = ""
    """The name of the label set for emotions; the model's own by default."""
    emotion_of: LabelPlace = "dialogue"
    """Which label is the target emotion: that of the dialogue, of the context's last turn, or of the reply."""
    chances_by: str = ""
    """Name or folder of a trained text classifier: batches then include its probability for each label of the reply."""
    labelled: bool = False
    """Only examples that have a label at the place `label_of` names."""
    leave_out: list[str] = field(default_factory=list)
    """Ids of dialogues to skip."""
    written_by: str = field(default="", metadata={NOT_SHAPING: True})
    """The command that creates the source, for users who do not have it yet."""

    def __post_init__(self) -> None:
        for alone in ("situation", "opening"):
            if alone in self.sides and len(self.sides) > 1:
                article = "an" if alone == "opening" else "a"
                raise ConfigError(f"{article} {alone} has no other side; write sides: [{alone}]")


@dataclass
class Stream(DataConfig):
    """The data of a move, in batches of similar length."""

    source: str = ""
    """The name of a source or a path to a .jsonl file; the recipe's own corpus by default."""
    examples: int = 16
    """Maximum number of examples per batch; 0 for no limit."""
    tokens: int = 0
    """Maximum number of tokens per batch, padding included; 0 for no limit."""
    rare_as_unknown: float = 0.5
    """Probability of replacing a word that was seen only once by the unknown token, in inputs and targets, so that the
    model learns how likely an unknown word is (in effect, the Good-Turing estimate)."""

    forget_words: float = 0.0
    """Probability of replacing any word of the context by the unknown token, so that no single word gives away the
    answer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.examples <= 0 and self.tokens <= 0:
            raise ConfigError("a stream needs a limit to its batches: examples or tokens above 0")


@dataclass
class Validation(Stream):
    """Data to validate on."""

    split: str = "valid"
    """Which split to validate on."""


@dataclass
class Optimizer:
    """An optimizer and its learning-rate schedule."""

    kind: Literal["adam", "adamw"] = "adamw"
    """Adam, or AdamW with decoupled weight decay."""
    rate: float = 8e-4
    """Peak learning rate."""
    schedule: Literal["constant", "linear", "noam"] = "linear"
    """constant; linear: decays to `floor` at the end of the budget; noam: rises, then decays with the inverse square
    root of the step."""
    warmup: int = 200
    """Number of linear warmup steps."""
    floor: float = 0.02
    """Final learning rate of the linear schedule, as a fraction of `rate`."""
    betas: tuple[float, float] = (0.9, 0.98)
    """Adam's betas."""
    decay: float = 0.01
    """Weight decay on matrices."""
    eps: float = 1e-8
    """Added to the root of Adam's second moment."""
    clip: float = 1.0
    """Maximum gradient norm; 0 for no clipping."""
    learns: list[str] = field(default_factory=lambda: ["*"])
    """Name patterns of the parameters to update; all others are left unchanged."""
    factors: dict[str, float] = field(default_factory=dict)
    """Learning-rate factors for parameters whose name matches a pattern, such as {"backbone.*": 0.1}."""


@dataclass
class Move:
    """One objective on one stream with one optimizer."""

    objective: str = "likelihood"
    """One of the model's objectives."""
    stream: str = "train"
    """The stream to draw batches from."""
    optimizer: str = "main"
    """The optimizer to step."""
    times: int = 1
    """How many times in a row, each round."""
    hold: bool = False
    """Keep the gradient for the next move of the same optimizer, so that both losses are summed in one step."""
    optional: bool = False
    """Skip this move if the data has no examples for its stream, such as a corpus without situations."""
    weights: dict[str, float] = field(default_factory=dict)
    """Weights of the objective's named losses; 1 by default."""
    options: dict[str, Any] = field(default_factory=dict)
    """Further arguments of the objective, such as smoothing."""

    def __post_init__(self) -> None:
        if self.times < 1:
            raise ConfigError(f"a move is made at least once a round, found times: {self.times}")


@dataclass
class Stage:
    """A named phase of training."""

    name: str = "train"
    """Shown during training, and passed to the model before each epoch."""
    epochs: float = 1.0
    """Budget in passes over the first move's stream."""
    examples: int = 0
    """Budget in examples of the first move's stream instead; 0 to use epochs."""
    moves: list[Move] = field(default_factory=lambda: [Move()])
    """The moves of a round."""
    streams: dict[str, Stream] = field(default_factory=dict)
    """Streams by name. If none is given, there is one named train, with the recipe's data."""
    optimizers: dict[str, Optimizer] = field(default_factory=lambda: {"main": Optimizer()})
    """Optimizers by name."""
    validate_every: float = 1.0
    """Epochs between validations."""
    criterion: str = "reply"
    """The validation loss that selects the best checkpoint and decides when to stop; "score" for the model's own
    score()."""
    measure: str = ""
    """The objective to compute in validation; the first move's by default."""
    valid: Validation | None = None
    """The validation data; the valid split of the recipe's corpus by default."""
    patience: int = 0
    """Stop after this many validations without improvement; 0 to use the whole budget."""
    keep: Literal["best", "last"] = "best"
    """Which checkpoint the stage passes on: the best by the criterion, or the last."""
    average: float = 0.0
    """For `keep: last`: the final fraction of the budget over whose rounds the weights are averaged; the stage passes
    on the mean. 0 for the last weights alone."""

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
        """The stage without the moves whose streams are missing; a move that held its gradient for one of them steps
        by itself."""
        moves = [move for move in self.moves if move.stream in present]
        for index, (move, after) in enumerate(zip(moves, [*moves[1:], None], strict=True)):
            if move.hold and (after is None or after.optimizer != move.optimizer):
                moves[index] = replace(move, hold=False)
        return replace(self, moves=moves, streams={name: s for name, s in self.streams.items() if name in present})


@dataclass
class Recipe:
    """Everything that defines a run. The same recipe, seed and data give the same weights."""

    name: str
    """Also the name of the run's folder."""
    model: dict[str, Any]
    """`name`, and any fields of that model's config."""
    about: str = ""
    """A one-line description."""
    row: str = ""
    """The published row that this reproduces, as paper/table/system."""
    data: DataConfig = field(default_factory=DataConfig)
    """The corpus: the vocabulary comes from its train split, the criterion from its valid split."""
    label_sets: dict[str, Any] = field(default_factory=dict)
    """Your own label sets by name: a list of labels, or `labels` and the `polarity` of each. They are saved with the
    trained model."""
    start: str = ""
    """Weights and vocabulary to start from: a run next to this one, a folder, or the name of a trained system."""
    vocabulary: str = ""
    """The sources whose train splits the tokenizer learns from, joined with +; the recipe's own corpus by default."""
    parts: dict[str, str] = field(default_factory=dict)
    """Trained systems to include in the trained model, by role; each is named in the same way as `start`. The part
    "labeller" labels turns for a model that reads labels; without it, contexts have the labels of the corpus in
    training, and none in use."""
    text: TextConfig = field(default_factory=TextConfig)
    """How text becomes tokens."""
    encoding: EncodingConfig = field(default_factory=EncodingConfig)
    """How examples are truncated and marked up."""
    vectors: str | None = None
    """Pretrained word vectors to start from, as a text file: a path, which may be relative to LISTENWELL_DATA."""
    lexicon: str | None = None
    """A JSON file of words and their emotions, for models that need one: a path, which may be relative to
    LISTENWELL_DATA."""
    stages: list[Stage] = field(default_factory=lambda: [Stage()])
    """Run in order."""
    decoding: Decoding = field(default_factory=Decoding)
    """How the trained system generates replies, also when it is evaluated."""
    seed: int = 1
    """The seed for weights, batches and dropout."""

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
        """A hash of everything that affects training: a run cannot be resumed with a different recipe."""
        shaping = {key: value for key, value in _not_default(self).items() if key not in ("about", "row", "decoding")}
        shaping["model"] = earlier_model(shaping["model"])  # so that a run started under that name can be resumed
        return hashlib.sha256(json.dumps(shaping, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _not_default(value: Any) -> Any:
    """Plain data without default values, so that a field added in a later version does not change old recipes."""
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
