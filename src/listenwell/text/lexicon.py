"""Words and the emotions that people associate with them: the NRC word-emotion lexicon (Mohammad and Turney, 2013).

The file form is one JSON object, each word with a list of names:

    {"abandon": ["fear", "negative", "sadness"], "ability": ["positive"]}
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from listenwell.configuration import ConfigError
from listenwell.labels.taxonomy import unknown_name
from listenwell.text.words import words

FEELINGS = frozenset({"anger", "anticipation", "disgust", "fear", "joy", "sadness", "surprise", "trust"})
POLARITIES = frozenset({"negative", "positive"})


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as it stands in the file: a word may occur twice."""


def emotional_words(path: Path) -> frozenset[str]:
    """The words associated with at least one of the eight emotions; a polarity alone is none.

    They are spelled as the word-level tokenizer spells them. Words that it splits are left out.
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
    """The names of an entry, if that is what they are."""
    if isinstance(names, _Pairs) or not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        problem = f"{entry!r} has {_kind(names)}, expected a list of names such as {_listed(FEELINGS)}"
    elif unknown := [name for name in names if name not in FEELINGS | POLARITIES]:
        problem = f"{entry!r} has an {unknown_name('emotion', unknown[0], sorted(FEELINGS | POLARITIES))}"
    else:
        return names
    raise ConfigError(f"{path} line {_line(text, entry)}: {problem}")


def _line(text: str, entry: str) -> int:
    """The line where an entry stands first."""
    spellings = "|".join(re.escape(json.dumps(entry, ensure_ascii=ascii_only)) for ascii_only in (False, True))
    place = re.search(rf"(?:{spellings})\s*:", text)
    return text.count("\n", 0, place.start()) + 1 if place else 1


def _kind(value: Any) -> str:
    if isinstance(value, _Pairs):
        return "an object"
    return "a list of other things" if isinstance(value, list) else json.dumps(value, ensure_ascii=False)


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))
