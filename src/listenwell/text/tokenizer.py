"""One interface over Hugging Face `tokenizers`: word-level and byte-level BPE, trained on a corpus.

Both lower-case nothing they need not: the word-level kind folds case (its papers do), BPE keeps it.
The file form is `tokenizer.json`, as every Hugging Face tool reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from tokenizers import AddedToken, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Backend

from listenwell.models.contract import Vocabulary
from listenwell.text.words import NORMAL_FORM, SPLIT, detokenize, words

PAD, UNK, START, END, CTX = SPECIALS = ("<pad>", "<unk>", "<s>", "</s>", "<ctx>")


@dataclass
class TextConfig:
    """How text becomes tokens."""

    kind: Literal["word", "bpe"] = "word"
    """word: one token a lower-cased word, every word of the training data; bpe: byte-level pieces."""
    size: int = 16_000
    """For bpe: how many pieces to learn."""
    least: int = 1
    """For word: leave out words seen fewer times than this."""


class Tokenizer:
    """Text to ids and back. The five special tokens have the ids 0 to 4 in every kind."""

    def __init__(self, backend: Backend, kind: str, rare_from: int | None = None) -> None:
        self.backend = backend
        # What a person types is text: "</s>" in it must not become the end token.
        self.backend.encode_special_tokens = True
        self.kind = kind
        self.rare_from = len(self) if rare_from is None else rare_from
        """Word ids from here on were seen once in training: the vocabulary is sorted by falling count."""
        self.pad, self.unk, self.start, self.end, self.ctx = (self._special(token) for token in SPECIALS)

    def _special(self, token: str) -> int:
        index = self.backend.token_to_id(token)
        if index is None:
            raise ValueError(f"this tokenizer has no {token} token; was it trained by listenwell?")
        return index

    def __len__(self) -> int:
        return self.backend.get_vocab_size()

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(len(self), self.pad, self.unk, self.start, self.end, self.ctx)

    @property
    def banned(self) -> tuple[int, ...]:
        """The ids that no reply contains."""
        return (self.pad, self.unk, self.start, self.ctx)

    def encode(self, text: str) -> list[int]:
        return self.backend.encode(text, add_special_tokens=False).ids

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self.backend.encode_batch(list(texts), add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        """Readable text: words joined as people write them."""
        if self.kind == "word":
            return detokenize([self.token(index) for index in ids if index not in self.banned and index != self.end])
        return self.backend.decode(list(ids), skip_special_tokens=True).strip()

    def token(self, index: int) -> str:
        return self.backend.id_to_token(index) or UNK

    def save(self, path: Path) -> None:
        path.write_text(self.backend.to_str(), encoding="utf-8")

    @classmethod
    def load(cls, path: Path, kind: str, rare_from: int | None = None) -> Tokenizer:
        try:
            backend = Backend.from_file(str(path))
        except Exception as problem:  # the backend raises bare Exception
            raise ValueError(f"{path}: not a tokenizer.json ({problem})") from problem
        return cls(backend, kind, rare_from)


def word_backend() -> Backend:
    """Splits as the Penn Treebank does ("do", "n't"), so that the words match pretrained vectors' better."""
    backend = Backend(models.WordLevel({UNK: 0}, unk_token=UNK))
    backend.normalizer = NORMAL_FORM
    backend.pre_tokenizer = SPLIT
    return backend


def train_tokenizer(texts: Iterable[str], config: TextConfig) -> Tokenizer:
    """A tokenizer of the kind asked for, from the training texts alone."""
    texts = iter(texts)
    first = next(texts, None)
    if first is None:
        raise ValueError("there are no words to learn a vocabulary from: the training data is empty")
    texts = chain([first], texts)
    if config.kind == "word":
        return _train_words(texts, config.least)
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
    vocabulary = {word: index for index, word in enumerate((*SPECIALS, *(word for word, _ in ranked)))}
    backend.model = models.WordLevel(vocabulary, unk_token=UNK)
    backend.add_special_tokens([AddedToken(token, special=True) for token in SPECIALS])
    return Tokenizer(backend, "word", rare_from=len(SPECIALS) + sum(n > 1 for _, n in ranked))
