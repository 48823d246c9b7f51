"""Splits cues at dashes and names: "- Hi. - Hello." has two speakers."""

from __future__ import annotations

import re
from itertools import accumulate, pairwise

from listenwell.data.curation.sentences import sentences

_DASH = "-\u2010-\u2015\u2212\uff0d\ufe63"
# One dash before a word, a quote or a bracket. Two are an interruption, and "-=" is decoration.
_LEADING = re.compile(rf"\s*[{_DASH}](?![{_DASH}])\s*(?=[\w\"'“‘「(\[♪#¿¡.…])")
_INNER = re.compile(rf"(?<=[.?!…\"”'’)\]。？！~])\s+[{_DASH}](?![{_DASH}])\s*(?=[\w\"'“‘「(\[♪¿¡.…])")
# In a text that begins with a dash, the next dash needs no period before it, since Chinese subtitles have none.
_INNER_AFTER_DASH = re.compile(rf"\s+[{_DASH}](?![{_DASH}])\s*(?=[\w\"'“‘「(\[♪¿¡.…])")
_NAME = re.compile(r"([A-Z][A-Z.'’\- ]*[A-Z.](?: ?#?\d+)?)\s?:\s+(?=\S)")


def speaker_texts(text: str) -> list[tuple[str, bool, str | None]]:
    """For each speaker of a cue: the text, with lines joined; whether a dash precedes it; and the name before it."""
    speakers: list[tuple[list[str], bool, str | None]] = []
    for line in text.split("\n"):
        for piece, dash in _dashed_pieces(line):
            name = _NAME.match(piece)
            words = piece[name.end() :] if name else piece
            if dash or name or not speakers:
                speakers.append(([words], dash, name[1] if name else None))
            else:
                speakers[-1][0].append(words)
    return [(" ".join(lines), dash, name) for lines, dash, name in speakers]


def spoken_pieces(text: str) -> list[tuple[str, bool, str | None]]:
    """The same, split into sentences."""
    return [
        (sentence, dash and index == 0, name)
        for said, dash, name in speaker_texts(text)
        for index, sentence in enumerate(sentences(said))
    ]


def carry_dashes(text: str, marked: str) -> str:
    """Copy dashes from a translation: adds those of `marked` to `text`, each before the sentence that fits best by
    length.

    Unchanged if `text` has its own dashes, or fewer sentences than `marked` has speakers.
    """
    speakers = speaker_texts(marked)
    if len(speakers) < 2 or not all(dash for _, dash, _ in speakers) or any(dash for _, dash, _ in speaker_texts(text)):
        return text
    pieces = sentences(text.replace("\n", " "))
    if len(pieces) < len(speakers):
        return text
    wanted = _shares([said for said, _, _ in speakers])
    shares = _shares(pieces)
    cuts: list[int] = []
    for number, share in enumerate(wanted):
        # At least one sentence must remain for each following speaker.
        first = cuts[-1] + 1 if cuts else 1
        options = range(first, len(pieces) - (len(wanted) - number) + 1)
        cuts.append(min(options, key=lambda cut: abs(shares[cut - 1] - share)))
    edges = [0, *cuts, len(pieces)]
    return "\n".join("- " + " ".join(pieces[begin:end]) for begin, end in pairwise(edges))


def _shares(texts: list[str]) -> list[float]:
    """The share of the total text before each inner boundary."""
    total = sum(map(len, texts)) or 1
    return [length / total for length in accumulate(map(len, texts[:-1]))]


def _dashed_pieces(line: str) -> list[tuple[str, bool]]:
    lead = _LEADING.match(line)
    inner = _INNER_AFTER_DASH if lead else _INNER
    if lead is None and not any(dash in line for dash in " -–—－"[1:]):
        return [(line, False)]
    pieces = inner.split(line[lead.end() :] if lead else line)
    return [(piece.strip(), index > 0 or lead is not None) for index, piece in enumerate(pieces) if piece.strip()]
