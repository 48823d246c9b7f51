"""One interface over Hugging Face `tokenizers`: words, characters or byte-level BPE, or a backbone's own tokenizer.

Only the word-level kind lower-cases (as in its papers); the others keep case.
The file format is Hugging Face's `tokenizer.json`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from tokenizers import AddedToken, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Backend

from listenwell.contract import Vocabulary
from listenwell.text.characters import CHARACTERS, characters, join_tokens
from listenwell.text.words import NORMAL_FORM, SPLIT, detokenize, words

PAD, UNK, START, END, CTX = SPECIALS = ("<pad>", "<unk>", "<s>", "</s>", "<ctx>")

ZERO = "Ā"
"""The byte-level BPE token for byte 0, which no text contains: the start and context token where none is defined."""

BACKBONES = (
    ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[CLS]"),  # BERT and its relatives
    ("<pad>", "<unk>", "<s>", "</s>", "<s>"),  # RoBERTa, Llama
    ("<|endoftext|>", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|im_start|>"),  # chat models in ChatML
    ("<unk>", "<unk>", "<s>", "</s>", "<s>"),  # Llama 2, Mistral
    ("<pad>", "<unk>", "<bos>", "<eos>", "<bos>"),  # Gemma
    ("<|end_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|eot_id|>", "<|start_header_id|>"),  # Llama 3
    ("<|endoftext|>", "<|endoftext|>", ZERO, "<|endoftext|>", ZERO),  # GPT-2, Pythia, Phi: one special token only
)
"""Names of the tokens for padding, unknown words, start, end and context in pretrained model families."""

BLANK = "Ġ"
"""How byte-level BPE writes the space before a word."""

_APART = re.compile(r"(?<=\w) ' (?=(?:t|s|m|d|re|ve|ll)\b)")
"""The apostrophe of "don ' t": BERT's word pieces do not record that it was between letters."""


@dataclass
class TextConfig:
    """How text becomes tokens."""

    kind: Literal["word", "char", "bpe", "backbone"] = "word"
    """word: one token per lower-cased word, for every word of the training data; char: one token per Chinese character,
    Latin word, number or punctuation mark, only the most common; bpe: byte-level BPE; backbone: the tokenizer of a
    pretrained model."""
    backbone: str = ""
    """For backbone: the pretrained model, a folder or a name such as minilm."""
    size: int = 16_000
    """For bpe: the vocabulary size."""
    least: int = 1
    """For word: leave out words seen fewer times than this."""
    most: int = 12_000
    """For char: at most this many tokens besides the special ones."""
    coverage: float = 0.999
    """For char: the most common tokens that together cover this share of the characters; the rest is unknown."""


class Tokenizer:
    """Text to ids and back. The five special tokens have the ids 0 to 4, except in a backbone's tokenizer."""

    def __init__(self, backend: Backend, kind: str, rare_from: int | None = None) -> None:
        self.backend = backend
        # User input is plain text: "</s>" in it must not become the end token.
        self.backend.encode_special_tokens = True
        self.kind = kind
        self.uncased = backend.normalizer is not None and backend.normalizer.normalize_str("A").islower()
        """Whether it lower-cases its input, so that its output has no capitals."""
        self.rare_from = len(self) if rare_from is None else rare_from
        """Word ids from here on were seen once in training: the vocabulary is sorted by descending count."""
        self.pad, self.unk, self.start, self.end, self.ctx = self._specials()
        special = {i for i, token in backend.get_added_tokens_decoder().items() if token.special}
        self.banned = tuple(sorted({self.pad, self.unk, self.start, self.ctx, *special} - {self.end}))
        """The ids that no reply contains: every special token but the end."""

    def _specials(self) -> tuple[int, ...]:
        families = BACKBONES if self.kind == "backbone" else (SPECIALS,)
        for names in families:
            ids = [index for name in names if (index := self.backend.token_to_id(name)) is not None]
            if len(ids) == len(names):
                return tuple(ids)
        if self.kind == "backbone":
            wanted = "; ".join(" ".join(dict.fromkeys(names)) for names in BACKBONES)
            raise ValueError(f"this tokenizer has the special tokens of no family that is known here: {wanted}")
        missing = next(name for name in SPECIALS if self.backend.token_to_id(name) is None)
        raise ValueError(f"this tokenizer has no {missing} token; was it trained by listenwell?")

    def __len__(self) -> int:
        return self.backend.get_vocab_size()

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(len(self), self.pad, self.unk, self.start, self.end, self.ctx)

    def encode(self, text: str) -> list[int]:
        return self.backend.encode(text, add_special_tokens=False).ids

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self.backend.encode_batch(list(texts), add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        """Readable text: words joined as people write them."""
        if self.kind in ("word", "char"):
            shown = {*ids} - {*self.banned, self.end}
            join = detokenize if self.kind == "word" else join_tokens
            return join([self.token(index) for index in ids if index in shown])
        text = self.backend.decode(list(ids), skip_special_tokens=True).strip()
        if self.kind != "backbone":
            return text
        text = _APART.sub("'", text)
        # Word pieces keep neither capitals nor spacing ("well - known"); the words, which scores count, stay the same.
        return detokenize(words(text)) if self.uncased else text

    def unknown(self, text: str) -> list[str]:
        """The words or characters of a text without a token of their own; none for subwords, which spell everything."""
        if self.kind not in ("word", "char"):
            return []
        units = words(text) if self.kind == "word" else characters(text)
        return [unit for unit in units if self.backend.token_to_id(unit) is None]

    def whole_words(self) -> dict[str, list[int]]:
        """The ids that are a whole word or mark, keyed by the lower-cased word."""
        words: dict[str, list[int]] = {}
        for piece, index in self.backend.get_vocab().items():
            if piece.startswith(BLANK) and len(piece) > 1:
                words.setdefault(piece[1:].lower(), []).append(index)
            elif self.kind != "bpe" or not any(map(str.isalnum, piece)):  # otherwise it continues a word: "ing"
                words.setdefault(piece, []).append(index)
        return words

    def token(self, index: int) -> str:
        return self.backend.id_to_token(index) or UNK

    def save(self, path: Path) -> None:
        path.write_text(self.backend.to_str(), encoding="utf-8")

    @classmethod
    def load(cls, path: Path, kind: str, rare_from: int | None = None) -> Tokenizer:
        if not path.is_file():
            raise ValueError(f"{path}: is missing")
        try:
            backend = Backend.from_file(str(path))
        except Exception as problem:  # the backend raises bare Exception
            raise ValueError(f"{path}: not a tokenizer.json, or cut short or damaged ({problem})") from problem
        try:
            return cls(backend, kind, rare_from)
        except ValueError as problem:
            raise ValueError(f"{path}: {problem}") from problem


def word_backend() -> Backend:
    """Splits like the Penn Treebank ("do", "n't"), so that more words match pretrained vectors."""
    backend = Backend(models.WordLevel({UNK: 0}, unk_token=UNK))
    backend.normalizer = NORMAL_FORM
    backend.pre_tokenizer = SPLIT
    return backend


def character_backend() -> Backend:
    """Splits Chinese into characters and leaves Latin words and numbers whole."""
    backend = Backend(models.WordLevel({UNK: 0}, unk_token=UNK))
    backend.pre_tokenizer = CHARACTERS
    return backend


def backbone_tokenizer(name: str) -> Tokenizer:
    """The tokenizer of a pretrained model."""
    from listenwell.backbones import BackboneError, find_backbone

    if not name:
        raise ValueError("text.kind is backbone, but text.backbone does not say whose: a folder, or a name like minilm")
    path = find_backbone(name) / "tokenizer.json"
    if not path.is_file():
        raise BackboneError(f"{path}: the backbone has no tokenizer of this form")
    tokenizer = Tokenizer.load(path, "backbone")
    # Truncation and padding were settings of its training, not of the tokenization itself.
    tokenizer.backend.no_truncation()
    tokenizer.backend.no_padding()
    return tokenizer


def train_tokenizer(texts: Iterable[str], config: TextConfig) -> Tokenizer:
    """A tokenizer of the given kind, trained on the training texts only; a backbone's own needs no training."""
    if config.kind == "backbone":
        return backbone_tokenizer(config.backbone)
    texts = iter(texts)
    first = next(texts, None)
    if first is None:
        raise ValueError("there are no words to learn a vocabulary from: the training data is empty")
    texts = chain([first], texts)
    if config.kind == "word":
        return _train_words(texts, config.least)
    if config.kind == "char":
        return _train_characters(texts, config)
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=config.size,
        special_tokens=[AddedToken(token, special=True) for token in SPECIALS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    return Tokenizer(backend, "bpe")


def _train_words(texts: Iterable[str], least: int) -> Tokenizer:
    backend = word_backend()
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(words(text))
    # Sorted by count, then by word: the same data gives the same ids, and the rare words come last.
    ranked = sorted(((word, n) for word, n in counts.items() if n >= least), key=lambda pair: (-pair[1], pair[0]))
    if not ranked:
        raise ValueError(f"there are no words to learn a vocabulary from: none of {len(counts)} is there {least} times")
    return _word_level(backend, "word", ranked)


def _train_characters(texts: Iterable[str], config: TextConfig) -> Tokenizer:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(characters(text))
    if not counts:
        raise ValueError("there are no characters to learn a vocabulary from: the training texts are blank")
    wanted = config.coverage * sum(len(token) * n for token, n in counts.items())
    frequent: list[tuple[str, int]] = []
    covered = 0
    for token, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        if covered >= wanted or len(frequent) == config.most:
            break
        frequent.append((token, n))
        covered += len(token) * n
    return _word_level(character_backend(), "char", frequent)


def _word_level(backend: Backend, kind: str, ranked: Sequence[tuple[str, int]]) -> Tokenizer:
    """A tokenizer whose ids are the special tokens, then `ranked`: tokens with their counts, most common first."""
    vocabulary = {word: index for index, word in enumerate((*SPECIALS, *(word for word, _ in ranked)))}
    backend.model = models.WordLevel(vocabulary, unk_token=UNK)
    backend.add_special_tokens([AddedToken(token, special=True) for token in SPECIALS])
    return Tokenizer(backend, kind, rare_from=len(SPECIALS) + sum(n > 1 for _, n in ranked))
