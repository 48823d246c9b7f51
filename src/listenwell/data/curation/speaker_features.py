"""Features of the same-speaker classifier, after Lison & Meena (2016).

Every property of a sentence is a small integer (see `Features`). A template combines some properties of the sentence
before the decision (a), the one after it (b), their neighbors (p, n), or the pair, into one code; the model has a
weight for each code. So scoring a file takes a few dozen numpy look-ups, whatever its length.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from listenwell.data.curation.cues import Cue
from listenwell.data.curation.word_classes import CLASSES, KINDS, NUMBERS, PRONOUNS

_WORD = {"en": re.compile(r"'?[a-z]+(?:'[a-z]+)*|\d+"), "zh": re.compile(r"[\u3400-\u9fff]|[a-z]+|\d+")}
_END = re.compile(r"(\.\.+|…|-|—|[.?!,:;。？！，：；]|)[\"'”’)\]」』）♪]*\s*$")
_ENDS = {"": 0, ".": 1, "。": 1, "?": 2, "？": 2, "!": 3, "！": 3, "…": 4, "-": 5, "—": 5, ",": 6, "，": 6}
_COLON = 7
_NAME_LAST = re.compile(r",\s?([A-Za-z]+)[.?!]*$")
_NAME_FIRST = re.compile(r"([A-Za-z]+)[,!?.]")
_LENGTHS = np.array([1, 2, 3, 4, 6, 8, 11, 15])
_SLOW_LENGTHS = np.array([1, 2, 4, 7, 11])
QUANTILES = 8

# The number of values of each property: of a sentence …
SIZES = {"end": 8, "begin": 7, "length": 9, "size": 6, "place": 8, "name_last": 2, "name_first": 2}
# … and of a pair. A pair within a cue has no pause and gets the last value; unknown times get the one before it.
PAIR_SIZES = {"pause": QUANTILES + 2, "same_cue": 2, "shared": 4, "repeats": 3, "same_name": 2}
FILE_SIZES = {"style": 12}


@dataclass(frozen=True, slots=True)
class Features:
    """Properties of each sentence (length n) and of each pair (length n - 1), and the number of values of each."""

    units: dict[str, np.ndarray]
    pairs: dict[str, np.ndarray]
    sizes: dict[str, int]


TEMPLATES: tuple[str, ...] = tuple(
    """
    pause|same_cue|pause a.end|pause a.end b.begin|pause b.length|pause a.length|pause b.first
    a.end|b.begin|a.end b.begin|a.end b.begin same_cue|style a.end b.begin|style a.end same_cue|style
    b.first|b.first b.second|a.last|a.last a.last2|a.first|a.first a.second|b.last|b.last b.last2
    a.end b.first|a.end b.first b.second|a.end a.first|a.end a.first a.second|a.last b.first|a.first b.first
    a.end b.first same_cue|a.end a.first b.kind|a.end a.kind b.first
    a.kind b.kind|a.end a.kind b.kind|a.end a.kind a.kind2 b.kind b.kind2
    b.end|a.end b.end|a.end b.end b.size|a.end b.end a.size|a.end b.end b.kind
    a.length|b.length|a.length b.length|a.end b.length|a.end a.length|b.end b.length|b.first b.length|a.first a.length
    a.place b.place|a.place b.place a.end|a.place b.place b.begin|a.place b.place same_cue b.size
    a.pronouns|b.pronouns|a.pronouns b.pronouns|a.end a.person b.person|a.end b.end a.person b.person
    shared a.end b.end|repeats a.end b.end|shared b.size|same_name
    a.name_last a.end|b.name_first a.end|b.name_last|a.name_first
    p.end a.end b.end|p.end a.begin a.end b.begin|p.first|p.kind a.kind b.kind|p.end a.first
    p.size a.size b.size|p.person a.person b.person|p.first b.first|p.place a.place b.place|p.pause pause
    p.same_cue same_cue a.end
    n.begin|b.end n.begin|a.end b.begin b.end n.begin|n.first|b.end n.first|a.kind b.kind n.kind|n.size
    a.end b.end n.end
    a.size b.size n.size|a.person b.person n.person|a.place b.place n.place|n.pause pause|n.same_cue same_cue b.end
    """.replace("\n", "|").split("|")
)
TEMPLATES = tuple(dict.fromkeys(" ".join(template.split()) for template in TEMPLATES if template.strip()))


def features(cues: Sequence[Cue], language: str) -> Features:
    """All properties of the sentences of a file, in order."""
    units = _units(cues, language)
    pairs = _pairs(cues, units)
    style = _style(units)
    pairs["style"] = np.full(max(len(cues) - 1, 0), style)
    words = len(NUMBERS[language]) + 2
    kinds = len(CLASSES[language]) + 2
    sizes = {**SIZES, **PAIR_SIZES, **FILE_SIZES, "kind": kinds, "kind2": kinds, "pronouns": 64, "person": 4}
    sizes.update(dict.fromkeys(("first", "second", "last", "last2"), words))
    return Features({name: value for name, value in units.items() if name in sizes}, pairs, sizes)


def codes(pair_features: Features, template: str) -> tuple[np.ndarray, int]:
    """One code per pair for a template, and the number of possible codes."""
    count = len(next(iter(pair_features.pairs.values())))
    total = np.zeros(count, dtype=np.int64)
    size = 1
    for name in template.split():
        values, values_size = _column(pair_features, name, count)
        total = total * values_size + values
        size *= values_size
    return total, size


def _column(pair_features: Features, name: str, count: int) -> tuple[np.ndarray, int]:
    where, _, prop = name.rpartition(".")
    size = pair_features.sizes[prop] + 1  # one more for positions outside the file
    if prop in pair_features.pairs:
        column = pair_features.pairs[prop]
        if not where:
            return column, size
        outside = np.full(1, size - 1)
        return (np.r_[outside, column[:-1]] if where == "p" else np.r_[column[1:], outside]), size
    column = pair_features.units[prop]
    outside = np.full(1, size - 1)
    shifted = {"a": column[:-1], "b": column[1:], "p": np.r_[outside, column[:-2]], "n": np.r_[column[2:], outside]}
    return shifted[where][:count], size


def _units(cues: Sequence[Cue], language: str) -> dict[str, np.ndarray]:
    numbers, kinds, pattern = NUMBERS[language], KINDS[language], _WORD[language]
    classes = CLASSES[language]
    bits = {classes.index(name) + 2: 1 << bit for bit, name in enumerate(PRONOUNS) if name in classes}
    rows = []
    sets = []
    names = []
    for cue in cues:
        text = cue.text.replace("’", "'")
        words = pattern.findall(text.lower())
        kind = [kinds.get(word, 1) for word in words]
        pronouns = 0
        for value in kind:
            pronouns |= bits.get(value, 0)
        ids = [numbers.get(word, 1) for word in words]
        edges = [*[*ids[:2], 0, 0][:2], *[*ids[:-3:-1], 0, 0][:2], *[*kind[:2], 0, 0][:2]]
        last_name, first_name = _names(text, numbers)
        named = (last_name is not None, first_name is not None)
        rows.append((*edges, pronouns, pronouns & 3, len(words), _end(text), _begin(text), *named))
        sets.append(frozenset(words))
        names.append({name for name in (last_name, first_name) if name})
    columns = ("first", "second", "last", "last2", "kind", "kind2", "pronouns", "person", "words", "end", "begin")
    table = np.array(rows, dtype=np.int64).reshape(-1, len(columns) + 2)
    units = {name: table[:, index] for index, name in enumerate((*columns, "name_last", "name_first"))}
    units["length"] = np.searchsorted(_LENGTHS, units["words"], side="right")
    units["size"] = np.searchsorted(_SLOW_LENGTHS, units["words"], side="right")
    units["place"] = _places(cues)
    units["sets"] = np.array([*sets, None], dtype=object)[:-1]
    units["names"] = np.array([*names, None], dtype=object)[:-1]
    return units


def _end(text: str) -> int:
    match = _END.search(text[-40:])
    mark = match[1] if match else ""
    return _ENDS["…"] if mark.startswith("..") else _ENDS.get(mark, _COLON)


def _begin(text: str) -> int:
    """The first character: upper case, lower case, dots, dash, quote or bracket, another letter, or anything else."""
    char = text.lstrip()[:1]
    if "A" <= char <= "Z":
        return 0
    if "a" <= char <= "z":
        return 1
    return {"": 6, ".": 2, "…": 2, "-": 3, "—": 3}.get(char, 4 if char in "\"'“‘([♪" else 5 if char.isalpha() else 6)


def _names(text: str, known: dict[str, int]) -> tuple[str | None, str | None]:
    """A word set off by punctuation at the end or the beginning that is in no word list: usually the addressee's
    name."""
    last, first = _NAME_LAST.search(text[-40:]), _NAME_FIRST.match(text)
    ends = last[1].lower() if last else None
    begins = first[1].lower() if first else None
    return (None if ends in known else ends), (None if begins in known else begins)


def _places(cues: Sequence[Cue]) -> np.ndarray:
    """The position in the cue (alone, first, middle, last), each with or without a dash."""
    places = []
    for index, cue in enumerate(cues):
        before = index > 0 and cues[index - 1].number == cue.number
        after = index + 1 < len(cues) and cues[index + 1].number == cue.number
        places.append((3 if before and not after else 2 if before else 1 if after else 0) * 2 + cue.dash)
    return np.array(places, dtype=np.int64)


def _pairs(cues: Sequence[Cue], units: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    count = max(len(cues) - 1, 0)
    number = np.array([cue.number for cue in cues], dtype=np.int64)
    start = np.array([np.nan if cue.start is None else cue.start for cue in cues])
    size = np.array([len(cue.text) for cue in cues], dtype=float)
    same = number[1:] == number[:-1]
    # Files differ in when a cue disappears: at once, or when the next one appears. Start times are more reliable: the
    # time between two starts, minus the time needed for the text, is a pause.
    pause = np.where(same, np.nan, start[1:] - start[:-1] - 0.06 * size[:-1])
    pairs = {"pause": _quantiles(pause), "same_cue": same.astype(np.int64)}
    pairs["pause"][same] = QUANTILES + 1
    shared = np.zeros(count, dtype=np.int64)
    repeats = np.zeros(count, dtype=np.int64)
    same_name = np.zeros(count, dtype=np.int64)
    sets, names = units["sets"], units["names"]
    for index in range(count):
        first, second = sets[index], sets[index + 1]
        common = len(first & second)
        shared[index] = min(common, 3)
        if common and common == len(second):
            repeats[index] = 2 if common == len(first) else 1
        if names[index] and not names[index].isdisjoint(names[index + 1]):
            same_name[index] = 1
    return {**pairs, "shared": shared, "repeats": repeats, "same_name": same_name}


def _quantiles(values: np.ndarray) -> np.ndarray:
    """The quantile of each value within the file, since files are timed by different rules."""
    quantiles = np.full(len(values), QUANTILES, dtype=np.int64)
    known = ~np.isnan(values)
    ordered = np.sort(values[known])
    if len(ordered):
        ranks = np.searchsorted(ordered, values[known], "left") + np.searchsorted(ordered, values[known], "right")
        quantiles[known] = np.minimum(ranks / 2 / len(ordered) * QUANTILES, QUANTILES - 1).astype(np.int64)
    return quantiles


def _style(units: dict[str, np.ndarray]) -> int:
    """The punctuation style of a file: how often a final mark is missing, and whether it uses dashes and dots."""
    if not len(units["end"]):
        return 0
    bare = int(np.searchsorted([0.1, 0.3], np.mean(units["end"] == 0)))
    dashes = int(np.mean(units["place"] % 2) > 0.02)
    dots = int(np.mean(units["end"] == _ENDS["…"]) > 0.05)
    return (bare * 2 + dashes) * 2 + dots
