"""Words and the emotions that people associate with them: the NRC word-emotion lexicon (Mohammad and Turney, 2013).

The file format is a JSON object that maps each word to a list of names:

    {"abandon": ["fear", "negative", "sadness"], "ability": ["positive"]}

And the Chinese lexicons DUTIR (Xu et al., 2008) and HowNet, in one file that maps each class to its words:

    {"dutir/乐": ["笑容", "欣喜"], "dutir/哀": ["伤心"], "hownet/pos": ["真诚"], "hownet/neg": ["鲁莽"]}
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from listenwell.configuration import ConfigError
from listenwell.labels.taxonomy import unknown_name
from listenwell.text.words import words

FEELINGS = frozenset({"anger", "anticipation", "disgust", "fear", "joy", "sadness", "surprise", "trust"})
POLARITIES = frozenset({"negative", "positive"})

CHINESE_FEELINGS = tuple(f"dutir/{name}" for name in "乐哀怒惧惊")
"""DUTIR's classes of feelings. Its other two, 好 and 恶, are evaluations rather than feelings."""
CHINESE_POSITIVE = ("dutir/乐", "dutir/好", "hownet/pos")
CHINESE_NEGATIVE = ("dutir/哀", "dutir/怒", "dutir/惧", "dutir/恶", "hownet/neg")
CHINESE_DENIALS = "hownet/deny"
SHORT = 2
"""Maximum length of the words used to rate a character: idioms of four have mostly neutral characters."""
FELT_SHARE = 1 / 3
"""A character is emotional if at least this share of the short words that contain it are words of feeling."""


class _Pairs(list[tuple[str, Any]]):
    """The pairs of a JSON object as in the file: a word may occur twice."""


def emotional_words(path: Path) -> frozenset[str]:
    """The words associated with at least one of the eight emotions; a polarity alone does not count.

    They are normalised like the word-level tokenizer's words. Words that it splits are left out.
    """
    text = _text(path)
    chosen = set()
    for entry, names in _entries(path, text):
        spelled = words(entry)
        if FEELINGS.intersection(_checked(path, text, entry, names)) and len(spelled) == 1:
            chosen.add(spelled[0])
    if not chosen:
        raise ConfigError(f"{path}: none of its words has an emotion, expected some with {_listed(FEELINGS)}")
    return frozenset(chosen)


def chinese_classes(path: Path) -> dict[str, frozenset[str]]:
    """The words of each class of a Chinese lexicon: DUTIR's feelings, and HowNet's positive and negative words."""
    text = _text(path)
    classes: dict[str, frozenset[str]] = {}
    for name, entries in _entries(path, text):
        if not isinstance(entries, list) or not all(isinstance(word, str) for word in entries):
            raise ConfigError(
                f"{path} line {_line(text, name)}: {name!r} has {_kind(entries)}, expected a list of words"
            )
        classes[name] = frozenset(word for entry in entries if (word := entry.strip()))
    needed = {*CHINESE_FEELINGS, *CHINESE_POSITIVE, *CHINESE_NEGATIVE}
    if missing := sorted(needed - classes.keys()):
        raise ConfigError(f"{path}: no class {', '.join(missing)}, expected the words of DUTIR and HowNet by class")
    return classes


def emotional_characters(path: Path) -> frozenset[str]:
    """The characters that are frequent in words of feeling, for text that is read character by character."""
    classes = chinese_classes(path)
    felt = frozenset[str]().union(*(classes[name] for name in CHINESE_FEELINGS))
    every = felt.union(*(classes[name] for name in (*CHINESE_POSITIVE, *CHINESE_NEGATIVE)))
    counts, total = (Counter(c for word in some if len(word) <= SHORT for c in set(word)) for some in (felt, every))
    return frozenset(character for character, count in counts.items() if count >= FELT_SHARE * total[character])


def _text(path: Path) -> str:
    raw = path.read_bytes()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise ConfigError(f"{path} line {line}: the byte 0x{raw[problem.start]:02x}, expected UTF-8") from problem


def _entries(path: Path, text: str) -> _Pairs:
    try:
        entries = json.loads(text, object_pairs_hook=_Pairs)
    except json.JSONDecodeError as problem:
        near = text[problem.pos : problem.pos + 20].split("\n")[0]
        actual = f"{problem.msg} at {near!r}" if near else "the end of the file"
        raise ConfigError(f"{path} line {problem.lineno}: {actual}, expected a JSON object of words") from problem
    if not isinstance(entries, _Pairs):
        raise ConfigError(f"{path} line 1: {_kind(entries)}, expected an object: words with lists of emotions")
    return entries


def _checked(path: Path, text: str, entry: str, names: Any) -> list[str]:
    """The names of an entry, after validation."""
    if isinstance(names, _Pairs) or not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        problem = f"{entry!r} has {_kind(names)}, expected a list of names such as {_listed(FEELINGS)}"
    elif unknown := [name for name in names if name not in FEELINGS | POLARITIES]:
        problem = f"{entry!r} has an {unknown_name('emotion', unknown[0], sorted(FEELINGS | POLARITIES))}"
    else:
        return names
    raise ConfigError(f"{path} line {_line(text, entry)}: {problem}")


def _line(text: str, entry: str) -> int:
    """The line where an entry first occurs."""
    spellings = "|".join(re.escape(json.dumps(entry, ensure_ascii=ascii_only)) for ascii_only in (False, True))
    place = re.search(rf"(?:{spellings})\s*:", text)
    return text.count("\n", 0, place.start()) + 1 if place else 1


def _kind(value: Any) -> str:
    if isinstance(value, _Pairs):
        return "an object"
    return "a list of other things" if isinstance(value, list) else json.dumps(value, ensure_ascii=False)


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))
