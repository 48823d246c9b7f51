"""From a recipe to token ids: reads the corpora, learns the vocabulary, encodes, counts words, reads word vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from listenwell.classifiers.label_cache import Begin, Labels, label_all
from listenwell.classifiers.label_chances import reply_chances
from listenwell.classifiers.labeller import Labeller
from listenwell.configuration import ConfigError
from listenwell.contract import Batch, LabelSets, Model, WordPrior
from listenwell.data import sources
from listenwell.data.batching import Encoded, Targets, collate, encode, epoch_batches
from listenwell.data.dialogue import Dialogue, Example, examples
from listenwell.data.relabel import renamed, without_emoticons
from listenwell.labels.sets import EMOTION, EMOTION_INTENT, LabelSet, label_set, own_label_sets
from listenwell.labels.taxonomy import with_near_name
from listenwell.text import Tokenizer, train_tokenizer
from listenwell.text.lexicon import emotional_characters, emotional_words
from listenwell.text.vectors import vector_lines
from listenwell.training.recipe import DataConfig, Recipe, Stage, Stream


class NoExamplesError(ConfigError):
    """A corpus has no examples of the requested kind."""


def read_dialogues(data: DataConfig, split: str, report: sources.Report | None = None) -> Iterator[Dialogue]:
    options = {**({"clean": True} if data.clean else {}), **_part(data)}
    dialogues = sources.read(data.source, data.path, split, labels=data.labels, report=report, **options)
    if not data.emoticons:
        dialogues = without_emoticons(dialogues)
    if data.label_names:
        dialogues = (renamed(dialogue, data.label_names) for dialogue in dialogues)
    return (dialogue for dialogue in dialogues if dialogue.id not in data.leave_out) if data.leave_out else dialogues


def _part(data: DataConfig) -> dict[str, str]:
    return {} if data.part is None else {"part": data.part}


def read_examples(data: DataConfig, split: str, report: sources.Report | None = None) -> Iterator[Example]:
    for dialogue in read_dialogues(data, split, report):
        for item in examples(dialogue, data.replies_by, data.sides):
            if not data.labelled or item.label_of(data.label_of) is not None:
                yield item


def learn_tokenizer(recipe: Recipe) -> Tokenizer:
    """Trains the tokenizer on every turn of the training split, or of the training splits that `vocabulary` names; on
    nothing else."""
    if recipe.vocabulary:
        dialogues = sources.read(recipe.vocabulary, split="train")
    else:
        dialogues = read_dialogues(recipe.data, recipe.data.split)
    return train_tokenizer((turn.text for dialogue in dialogues for turn in dialogue.turns), recipe.text)


def training_hash(recipe: Recipe) -> str:
    """A hash of the training files' bytes: only the same data gives the same weights."""
    data = recipe.data
    return sources.data_hash(sources.data_files(data.source, data.path, data.split, **_part(data)))


def input_files(recipe: Recipe) -> dict[str, Path | Traversable]:
    """Every file that the run reads: all streams, validation data, vocabulary, vectors and lexicon.

    The keys say what each file is, not where it is, since a corpus may be in another folder when the run is resumed.
    Missing files are left out: reading them raises an error anyway, and a resumed run no longer needs the vectors.
    """
    files: dict[str, Path | Traversable] = {}
    for data in _inputs(recipe):
        with suppress(OSError, ValueError):
            for file in sources.data_files(data.source, data.path, data.split, **_part(data)):
                _add(files, f"{Path(data.source).name} {data.split}: {file.name}", file)
    for what, name, find in (("vectors", recipe.vectors, find_vectors), ("lexicon", recipe.lexicon, find_lexicon)):
        if name is not None:
            with suppress(OSError):
                _add(files, f"{what}: {Path(name).name}", find(name))
    return files


def check_sources(recipe: Recipe) -> None:
    """Checks that files written by other commands exist, for the last stages too."""
    for data in _inputs(recipe):
        if data.written_by:
            try:
                sources.data_files(data.source, data.path, data.split)
            except FileNotFoundError as problem:
                raise ConfigError(
                    f"recipe {recipe.name}: {data.source} is not there; write it with `{data.written_by}`, "
                    "or name the file where it lies with --set"
                ) from problem


def _add(files: dict[str, Path | Traversable], name: str, file: Path | Traversable) -> None:
    if file not in files.values():
        alike = sum(key.split(" #")[0] == name for key in files)
        files[f"{name} #{alike + 1}" if alike else name] = file


def _inputs(recipe: Recipe) -> Iterator[DataConfig]:
    yield recipe.data
    if recipe.vocabulary and not recipe.start:
        yield DataConfig(source=recipe.vocabulary)
    for stage in recipe.stages:
        for stream in stage.streams.values():
            yield with_corpus(recipe, stream)
        valid = stage.valid or Stream(**{**vars(recipe.data), "split": "valid"})
        yield with_corpus(recipe, valid)


def file_hashes(files: Mapping[str, Path | Traversable]) -> dict[str, str]:
    return {name: sources.data_hash(file) for name, file in files.items()}


def encode_split(
    recipe: Recipe,
    data: DataConfig,
    split: str,
    tokenizer: Tokenizer,
    *,
    cut_replies: bool,
    labeller: Labels | None = None,
    sets: LabelSets | None = None,
    emotions: Counter[str] | None = None,
    begin: Begin | None = None,
) -> Encoded:
    """Encodes the examples of a split; labels are ids in the label sets named by the data, else by the model (`sets`).

    All emotions that occur, known or not, are counted in `emotions`; `begin` reports the progress of long work.
    """
    items: Iterable[Example] = read_examples(data, split)
    if emotions is not None:
        items = _counted(items, data, emotions)
    if labeller is not None:
        items = label_all(items, labeller, (sets or LabelSets()).label or EMOTION_INTENT)
    if data.chances_by:
        items = list(items)
    encoded = encode(items, tokenizer, recipe.encoding, cut_replies, targets(recipe, data, sets))
    if not len(encoded):
        raise NoExamplesError(f"{data.source}, split {split}: there is no example with {' and '.join(data.sides)}")
    if data.chances_by:
        assert isinstance(items, list)
        encoded.label_chances = reply_chances(items, Labeller.load(data.chances_by), begin)
    return encoded


def targets(recipe: Recipe, data: DataConfig, sets: LabelSets | None = None) -> Targets:
    """The label and emotion targets of a stream. `sets` are the label sets of the objective that draws from it."""
    with own_label_sets(recipe.own_label_sets()):
        emotions = label_set(data.emotions) if data.emotions else (sets or LabelSets()).emotion or EMOTION
        return Targets(label_set(data.labels), data.label_of, emotions, data.emotion_of)


def _counted(items: Iterable[Example], data: DataConfig, emotions: Counter[str]) -> Iterator[Example]:
    for item in items:
        if (emotion := item.label_of(data.emotion_of)) is not None:
            emotions[emotion.name] += 1
        yield item


def unknown_emotions(emotions: Counter[str], known: LabelSet) -> str | None:
    """A warning about emotions that the model does not know, the most frequent first; None if it knows them all."""
    unknown = Counter({name: number for name, number in emotions.items() if name not in known})
    if not unknown:
        return None
    most = [f"{number:,} of {with_near_name(name, known)}" for name, number in unknown.most_common(5)]
    listed = ", ".join([*most, *(["…"] if len(unknown) > len(most) else [])])
    return f"{unknown.total():,} examples have an emotion that is not one of the {len(known)} and is ignored: {listed}"


def word_prior(recipe: Recipe, tokenizer: Tokenizer, encoded: Encoded) -> WordPrior:
    targets = np.concatenate([side.tokens for side in encoded.replies if side is not None])
    counts = torch.from_numpy(np.bincount(targets, minlength=len(tokenizer)))
    prior = WordPrior(counts)
    if recipe.vectors is not None:
        prior.vectors, prior.known = read_vectors(find_vectors(recipe.vectors), tokenizer)
    if recipe.lexicon is not None:
        prior.emotional = read_lexicon(find_lexicon(recipe.lexicon), tokenizer)
    return prior


def find_vectors(name: str) -> Path:
    return _find(name, "word vectors", "Start without them by --set vectors=null")


def find_lexicon(name: str) -> Path:
    return _find(name, "lexicon", "Name its file by --set lexicon=PATH")


def _find(name: str, what: str, way_out: str) -> Path:
    """Looks for a path as given, then in the data folders."""
    places = [Path(name).expanduser(), *(root / name for root in sources.data_roots())]
    for place in places:
        if place.is_file():
            return place
    looked = ", ".join(map(str, places))
    raise FileNotFoundError(f"{what} not found; looked for {looked}. {way_out}")


def read_lexicon(path: Path, tokenizer: Tokenizer) -> Tensor:
    """A mask (vocabulary,) of the words, or Chinese characters, that a lexicon associates with an emotion."""
    if tokenizer.kind not in ("word", "char"):
        raise ConfigError(
            f"{path}: a lexicon has whole words, but text.kind is {tokenizer.kind}, expected word, or char for Chinese"
        )
    emotional_tokens = emotional_words(path) if tokenizer.kind == "word" else emotional_characters(path)
    vocabulary = tokenizer.backend.get_vocab()
    known = [vocabulary[word] for word in emotional_tokens if word in vocabulary]
    if not known:
        raise ConfigError(f"{path}: none of its emotional words is in the vocabulary")
    emotional = torch.zeros(len(tokenizer), dtype=torch.bool)
    emotional[known] = True
    return emotional


def read_vectors(path: Path, tokenizer: Tokenizer) -> tuple[Tensor, Tensor]:
    """Reads word vectors of any width in GloVe's text format: (vocabulary, width), and a mask of the words found.

    Subwords have no vector unless they are whole words, which get the word's vector whatever their case.
    """
    vocabulary = tokenizer.whole_words()
    rows: dict[int, np.ndarray] = {}
    for number, word, values in vector_lines(path):
        if word in vocabulary:
            try:
                rows |= dict.fromkeys(vocabulary[word], np.array(values, np.float32))
            except ValueError as problem:
                raise ConfigError(f"{path} line {number}: {problem}") from problem
    if not rows:
        raise ConfigError(f"{path}: none of its words is in the vocabulary")
    vectors = torch.zeros(len(tokenizer), len(next(iter(rows.values()))))
    known = torch.zeros(len(tokenizer), dtype=torch.bool)
    for index, row in rows.items():
        vectors[index] = torch.from_numpy(row)
        known[index] = True
    return vectors, known


def combined_seed(*numbers: int) -> int:
    """Derive one seed from several numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


@dataclass
class Feed:
    """An endless iterator over a stream's batches; (epoch, batch) is all it needs to resume anywhere."""

    stream: Stream
    data: Encoded
    tokenizer: Tokenizer
    seed: int
    epoch: int = 0
    batch: int = 0

    def __post_init__(self) -> None:
        self._lengths = self.data.lengths()
        self._order: tuple[int, list[np.ndarray]] = (-1, [])

    def _batches(self) -> list[np.ndarray]:
        if self._order[0] != self.epoch:
            order = epoch_batches(
                self._lengths,
                examples=self.stream.examples,
                tokens=self.stream.tokens,
                seed=self.seed,
                epoch=self.epoch,
            )
            self._order = (self.epoch, order)
        return self._order[1]

    def draw(self) -> Batch:
        rows = self._batches()[self.batch]
        # A generator of its own, so that all processes that share a batch draw the same noise.
        noise = torch.Generator().manual_seed(combined_seed(self.seed, self.epoch, self.batch))
        self.batch += 1
        if self.batch == len(self._batches()):
            self.epoch, self.batch = self.epoch + 1, 0
        batch = collate(self.data, rows, self.tokenizer.pad)
        self._forget_rare(batch, noise)
        if self.stream.forget_words > 0 and batch.context is not None:
            tokens = batch.context.tokens
            chance = torch.rand(tokens.shape, generator=noise)
            words = (tokens > self.tokenizer.ctx) & (tokens != self.tokenizer.end)  # a backbone's end may be any id
            tokens.masked_fill_(words & (chance < self.stream.forget_words), self.tokenizer.unk)
        return batch

    def _forget_rare(self, batch: Batch, noise: torch.Generator) -> None:
        share = self.stream.rare_as_unknown
        if share <= 0 or self.tokenizer.rare_from >= len(self.tokenizer):
            return
        for side in (batch.context, batch.reply, batch.following):
            if side is not None:
                chance = torch.rand(side.tokens.shape, generator=noise)
                side.tokens.masked_fill_(
                    (side.tokens >= self.tokenizer.rare_from) & (chance < share), self.tokenizer.unk
                )


def feeds(
    recipe: Recipe,
    stage: Stage,
    tokenizer: Tokenizer,
    ready: dict[str, Encoded],
    labeller: Labels | None = None,
    model: Model | None = None,
    begin: Begin | None = None,
) -> dict[str, Feed]:
    """The stage's streams, without those that have no examples and are only used by optional moves.

    `ready` caches encoded data across stages; `labeller` labels the turns, if the recipe has one; `model` tells which
    label sets its objectives read.
    """
    streams = stage.streams or {"train": Stream(**vars(recipe.data))}
    needed = {move.stream for move in stage.moves if not move.optional}
    present = {}
    for index, (name, stream) in enumerate(streams.items()):
        try:
            sets = sets_read(model, [move.objective for move in stage.moves if move.stream == name])
            data = _encoded(recipe, stream, tokenizer, ready, True, labeller, sets, begin)
        except NoExamplesError:
            if name in needed:
                raise
            continue
        present[name] = Feed(stream, data, tokenizer, recipe.seed * 1009 + index)
    return present


def sets_read(model: Model | None, objectives: Sequence[str]) -> LabelSets:
    """The label sets that the objectives of one stream read; `check_stages` has checked that they agree."""
    return model.label_sets(objectives[0]) if model is not None and objectives else LabelSets()


def encode_valid(
    recipe: Recipe,
    stage: Stage,
    tokenizer: Tokenizer,
    ready: dict[str, Encoded],
    labeller: Labels | None = None,
    model: Model | None = None,
    begin: Begin | None = None,
) -> Encoded:
    """The stage's validation data; by default the valid split of the recipe's corpus, with replies not truncated."""
    stream = stage.valid or Stream(**{**vars(recipe.data), "split": "valid"})
    sets = sets_read(model, [stage.measure or stage.moves[0].objective])
    return _encoded(recipe, stream, tokenizer, ready, False, labeller, sets, begin)


def with_corpus(recipe: Recipe, stream: Stream) -> Stream:
    """The stream, with the recipe's own corpus filled in if it names none."""
    if stream.source:
        return stream
    own = recipe.data
    labels: dict[str, Any] = {
        name: _stream_or_recipe(stream, own, name)
        for name in ("labels", "label_of", "emotions", "emotion_of", "chances_by")
    }
    return replace(
        stream,
        source=own.source,
        path=own.path,
        clean=stream.clean or own.clean,
        emoticons=stream.emoticons and own.emoticons,
        label_names={**own.label_names, **stream.label_names},
        part=own.part,
        labelled=stream.labelled or own.labelled,
        leave_out=own.leave_out,
        **labels,
    )


def _stream_or_recipe(stream: Stream, own: DataConfig, name: str) -> Any:
    """The stream's own setting if it differs from the default, else that of the recipe's corpus."""
    value = getattr(stream, name)
    return getattr(own, name) if value == getattr(DataConfig, name) else value


def _encoded(
    recipe: Recipe,
    stream: Stream,
    tokenizer: Tokenizer,
    ready: dict[str, Encoded],
    cut: bool,
    labeller: Labels | None,
    sets: LabelSets,
    begin: Begin | None = None,
) -> Encoded:
    stream = with_corpus(recipe, stream)
    key = "|".join(str(getattr(stream, f.name)) for f in fields(DataConfig)) + f"|{cut}|{sets.emotion}|{sets.label}"
    if key not in ready:
        ready[key] = encode_split(
            recipe, stream, stream.split, tokenizer, cut_replies=cut, labeller=labeller, sets=sets, begin=begin
        )
    return ready[key]
