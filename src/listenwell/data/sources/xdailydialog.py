"""XDailyDialog (Liu et al., 2023): dialogues of DailyDialog in English and Chinese, line by line the same.

    train_En.txt, train_Zh.txt, train_emotion.txt, train_action.txt     parallel lines, as in DailyDialog
    dev_human_en.txt, dev_human_zh.txt, test_human_…                    text, topic, acts, emotions; tab-separated

A dialogue has the same id in both languages, so that the two can be paired. Two problems are handled: lines whose
numbers of turns and labels differ are dropped; and dialogues of dev and test that are also in train are dropped, since
a model would be evaluated on its training data. They are compared by the letters of their English text, because
spelling, spacing and some digits differ in train.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from listenwell.data.dialogue import Dialogue, Label
from listenwell.data.sources.dailydialog import NUMBERED, AlignedTurns, Kind, parse_labels, turns_of
from listenwell.data.sources.dialogue_builder import Builder
from listenwell.data.sources.files import DataFile, aligned, lines, listing
from listenwell.data.sources.report import Report, SourceError
from listenwell.data.sources.splits import SPLITS, split_name
from listenwell.labels.taxonomy import unknown_name

NAME = "xdailydialog"
FOLDER = "xdailydialog"
HOW_TO_GET = "it is published at https://github.com/liuzeming01/XDailyDialog"

LANGUAGES = ("en", "zh")
Language = Literal["en", "zh"]
_FILES = {"train": "train_{Language}.txt", "valid": "dev_human_{language}.txt", "test": "test_human_{language}.txt"}
_TRAIN_LABELS = {"emotion": "train_emotion.txt", "act": "train_action.txt"}
_COLUMN = {"act": 2, "emotion": 3}

# Dropped
IN_TRAIN = "also in the training split"

_NOT_LETTERS = re.compile(r"[^a-z]+")


def files(
    path: str | Path, split: str | None = None, *, language: Language = "en", label: Kind = "emotion"
) -> list[DataFile]:
    """The files to read, each with the split that needs it; dev and test also need train's English text."""
    folder = Path(path)
    if label not in NUMBERED:
        raise ValueError(unknown_name("kind of label", label, NUMBERED))
    if language not in LANGUAGES:
        raise ValueError(unknown_name("language", language, LANGUAGES))
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder (its files are read together); {HOW_TO_GET}")
    wanted = SPLITS if split is None else (split_name(split),)
    chosen = [DataFile(file, name) for name in wanted for file in _files(folder, name, language, label)]
    for data_file in chosen:
        if not data_file.path.is_file():
            raise FileNotFoundError(f"{folder}: {data_file.file} is not there, found {listing(folder)}; {HOW_TO_GET}")
    return chosen


def _files(folder: Path, split: str, language: str, label: str) -> list[Path]:
    """The text in the language first, then the other files that are needed."""
    texts = [folder / _FILES[split].format(language=name, Language=name.title()) for name in (language, "en")]
    rest = [_TRAIN_LABELS[label]] if split == "train" else [_FILES["train"].format(Language="En")]
    return list(dict.fromkeys([*texts, *(folder / name for name in rest)]))


def read(
    path: str | Path,
    split: str | None = None,
    *,
    report: Report | None = None,
    strict: bool = True,
    clean: bool = False,
    language: Language = "en",
    label: Kind = "emotion",
    detokenised: bool = True,
) -> Iterator[Dialogue]:
    """The dialogues of a split (or all splits) of the folder in one of the two languages.

    `strict`, `clean`, `label` and `detokenised` are as in DailyDialog; the latter does not apply to Chinese.
    """
    chosen = files(path, split, language=language, label=label)
    builder = Builder(NAME, Report() if report is None else report, clean, language)
    return _read(chosen, builder, label, strict, detokenised and language == "en")


def _read(chosen: list[DataFile], builder: Builder, label: str, strict: bool, detokenised: bool) -> Iterator[Dialogue]:
    train: set[bytes] = set()
    for split in dict.fromkeys(data_file.split for data_file in chosen):
        paths = [data_file.path for data_file in chosen if data_file.split == split]
        data_file = DataFile(paths[0], split)
        turns = AlignedTurns(builder, data_file, strict)
        if split == "train":
            labelled = _labelled(paths, label)
        else:
            *paths, english = paths
            train = train or {_letters(line) for _, line in lines(english)}
            labelled = _columns(paths, label)
        for number, text, english_text, labels in labelled:
            if train and split != "train" and _letters(english_text) in train:
                builder.refuse(IN_TRAIN, data_file, number, text)
                continue
            dialogue = turns.dialogue(number, turns_of(text, detokenised), labels)
            if dialogue is not None:
                yield dialogue
        turns.check()


def _labelled(paths: list[Path], label: str) -> Iterator[tuple[int, str, str, list[Label]]]:
    """Line number, text, English text and labels, from the training files."""
    for number, texts in aligned(*paths):
        labels = parse_labels(texts[-1], NUMBERED[label], paths[-1].name, number)
        yield number, texts[0], texts[-2], labels


def _columns(paths: list[Path], label: str) -> Iterator[tuple[int, str, str, list[Label]]]:
    """The same from the files for validation and test, which have everything in columns."""
    for number, texts in aligned(*paths):
        rows = [text.split("\t") for text in texts]
        for row, path in zip(rows, paths, strict=True):
            if len(row) != 4:
                expected = "4 between tabs (text, topic, acts, emotions)"
                way_out = "correct the line, or download the file again"
                raise SourceError.at(path.name, number, f"{len(row)} columns", expected, way_out)
        labels = parse_labels(rows[0][_COLUMN[label]], NUMBERED[label], paths[0].name, number)
        yield number, rows[0][0], rows[-1][0], labels


def _letters(text: str) -> bytes:
    letters = _NOT_LETTERS.sub("", text.replace("__eou__", "").lower())
    return hashlib.blake2b(letters.encode(), digest_size=16).digest()
