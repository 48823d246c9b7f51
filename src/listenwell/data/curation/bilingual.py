"""Separates the languages of a subtitle file by their scripts.

The lines of a cue are distinguished by their letters: Chinese characters, kana, Hangul, or Latin. A Chinese line stays
Chinese if it has names in Latin letters, but is split if a whole English sentence comes before or after the Chinese.
Latin lines are English if enough of their words are common English ones; in a file that is nearly all Chinese, they are
names and count as Chinese; otherwise they are "und", like other scripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from listenwell.data.curation.cues import Cue, Subtitle
from listenwell.data.curation.dashes import carry_dashes

UNKNOWN = "und"

_KANA = re.compile(r"[\u3041-\u30fa\uff66-\uff9d]")
_HANGUL = re.compile(r"[\uac00-\ud7af\u1100-\u11ff]")
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[A-Za-z\u00c0-\u024f']+")
_LATIN_RUN = re.compile(r"[^\u3000-\u303f\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]+")
_COMMON_WORDS = """
the you i to a and it that of is in what me we this he for my your on have do no don't i'm not was know be
with are all it's but just can here so she they get if go out up about right like oh there want him how
"""
_ENGLISH = frozenset(_COMMON_WORDS.split())
MIN_ENGLISH = 0.2
"""Minimum share of these words for a Latin text to be English. In real English it is nearly a half."""


def split_by_script(subtitle: Subtitle) -> dict[str, list[Cue]]:
    """The cues of each language, in order, with their original cue numbers."""
    sides: dict[str, list[Cue]] = {}
    latin = _latin_language(subtitle.cues)
    for cue in subtitle.cues:
        lines: dict[str, list[str]] = {}
        for language, line in _labelled_lines(cue.text, latin):
            lines.setdefault(language, []).append(line)
        texts = {language: "\n".join(own) for language, own in lines.items()}
        for language, text in texts.items():
            for other in texts.values() if len(texts) > 1 else ():
                # One language may mark two speakers where the other does not.
                text = carry_dashes(text, other)
            sides.setdefault(language, []).append(replace(cue, text=text))
    return sides


def languages_of(cues: Sequence[Cue]) -> str:
    """The languages of at least 5 % of the cues, such as "en+zh"; "und" if none is known."""
    latin = _latin_language(cues)
    counts: dict[str, int] = {}
    for cue in cues:
        for language in {language for language, _ in _labelled_lines(cue.text, latin)} - {UNKNOWN}:
            counts[language] = counts.get(language, 0) + 1
    return "+".join(sorted(name for name, count in counts.items() if 20 * count >= len(cues))) or UNKNOWN


def _labelled_lines(text: str, latin: str) -> Iterable[tuple[str, str]]:
    """Each line with its language. A line without letters has that of the line before it, or else of the next one."""
    language: str | None = None
    waiting: list[str] = []
    for line in text.split("\n"):
        for script, piece in _pieces(line):
            line_language = latin if script == "latin" else script
            language = line_language or language
            if language is None:
                waiting.append(piece)
                continue
            for earlier in waiting:
                yield language, earlier
            waiting = []
            yield language, piece
    for piece in waiting:
        yield UNKNOWN, piece


def _pieces(line: str) -> list[tuple[str | None, str]]:
    script = _script(line)
    if script != "zh" or _LATIN.search(line) is None:
        return [(script, line)]
    # "Where are you? 你在哪里" is in two languages; "我是 George Minkowski" is in one.
    for run in _LATIN_RUN.finditer(line):
        at_an_edge = run.start() == 0 or run.end() == len(line)
        words = [word.lower() for word in _WORD.findall(run[0])]
        if at_an_edge and len(words) >= 3 and sum(word in _ENGLISH for word in words) >= 2:
            rest = line[: run.start()] + line[run.end() :]
            pieces: list[tuple[str | None, str]] = [("latin", run[0].strip()), ("zh", rest.strip())]
            return pieces if run.start() == 0 else pieces[::-1]
    return [(script, line)]


def _script(line: str) -> str | None:
    if line.isascii():
        return "latin" if _LATIN.search(line) else None
    if _KANA.search(line):
        return "ja"
    if _HANGUL.search(line):
        return "ko"
    if _HAN.search(line):
        return "zh"
    if _LATIN.search(line):
        return "latin"
    return UNKNOWN if _LETTER.search(line) else None


def _latin_language(cues: Sequence[Cue]) -> str:
    """The language of a file's Latin lines: English, Chinese (names in a Chinese file), or unknown."""
    words: list[str] = []
    lines = {"latin": 0, "zh": 0}
    for cue in cues:
        for line in cue.text.split("\n"):
            script = _script(line)
            if script is not None and script in lines:
                lines[script] += 1
            if script == "latin":
                words.extend(_WORD.findall(line.replace("’", "'").lower()))
        if len(words) > 2000:
            break
    if words and sum(word in _ENGLISH for word in words) >= MIN_ENGLISH * len(words):
        return "en"
    return "zh" if lines["zh"] > 4 * lines["latin"] else UNKNOWN
