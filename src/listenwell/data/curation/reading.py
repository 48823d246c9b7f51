"""Reads a subtitle file of any format in any encoding.

The format is detected from the content, not from the file name; files compressed with gzip, as published by OPUS, are
decompressed first.
"""

from __future__ import annotations

import zlib
from pathlib import Path

from listenwell.data.curation.bilingual import languages_of
from listenwell.data.curation.cues import Cue, Dropped, Subtitle, SubtitleError
from listenwell.data.curation.encodings import decode
from listenwell.data.curation.formats import ass, opus, srt, vtt
from listenwell.data.curation.formats.parsed import RawCue

MAX_BYTES = 64 * 2**20
"""Far beyond any subtitle file: larger files, compressed or not, are not read."""


def read_cues(path: Path | str, data: bytes | None = None) -> Subtitle:
    """Read the cues of a file (from `data`, if given), in order of time.

    Raises:
        SubtitleError: the file is missing, empty, too large, in no readable encoding, or contains no cues.
    """
    file = str(path)
    data = _unpacked(_bytes(Path(path), file) if data is None else data, file)
    if opus.looks_like(data):
        form, codec, raw_cues = "opus", "xml", _opus(data, file)
    else:
        text, codec = decode(data, file)
        form, raw_cues = _parse(text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff"), file)
    cues, dropped = _numbered(raw_cues, file)
    if not cues:
        raise SubtitleError(file, "no cues with text", f"{form}, {len(raw_cues)} cues in all")
    return Subtitle(file, form, codec, languages_of(cues), cues, dropped)


def _bytes(path: Path, file: str) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SubtitleError(file, "too large for a subtitle file", f"{path.stat().st_size:,} bytes")
        return path.read_bytes()
    except OSError as error:
        raise SubtitleError(file, "cannot be read", error.strerror or str(error)) from error


def _unpacked(data: bytes, file: str) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data
    # One byte more than allowed is enough to detect that the file is too large.
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        content = unpacker.decompress(data, MAX_BYTES + 1)
    except zlib.error as error:
        raise SubtitleError(file, "damaged gzip file", str(error)) from error
    if len(content) > MAX_BYTES:
        raise SubtitleError(file, "too large for a subtitle file", f"unpacks to more than {MAX_BYTES:,} bytes")
    if not unpacker.eof:
        raise SubtitleError(file, "damaged gzip file", "it ends too early")
    return content


def _opus(data: bytes, file: str) -> list[RawCue]:
    try:
        return opus.parse(data)
    except opus.BrokenXmlError as error:
        raise SubtitleError(file, "not a readable OPUS file", str(error)) from error


def _parse(text: str, file: str) -> tuple[str, list[RawCue]]:
    for form in (vtt, ass, srt):
        if form.looks_like(text):
            return form.__name__.rpartition(".")[2], form.parse(text)
    raise SubtitleError(file, "no subtitles: neither SRT, VTT, ASS nor OPUS XML", f"it begins with {text[:40]!r}")


def _numbered(raw_cues: list[RawCue], file: str) -> tuple[list[Cue], list[Dropped]]:
    """Cues with their position in the file, sorted by time, and those that are not speech."""
    cues: list[Cue] = []
    dropped: list[Dropped] = []
    for number, raw in enumerate(raw_cues, start=1):
        start, end = raw.start, raw.end
        if start is not None and end is not None and end < start:
            end = None
        cue = Cue(file, number, start, end, raw.text, speaker=raw.speaker)
        reason = raw.drop or (None if raw.text else "no text")
        if reason is None:
            cues.append(cue)
        else:
            dropped.append(Dropped(reason, cue))
    return _by_time(cues), dropped


def _by_time(cues: list[Cue]) -> list[Cue]:
    """Sorts cues by start time; a cue without one stays after the cue it followed in the file."""
    keys = []
    latest = 0.0
    for cue in cues:
        latest = cue.start if cue.start is not None else latest
        keys.append((latest, cue.number))
    return [cue for _, cue in sorted(zip(keys, cues, strict=True), key=lambda pair: pair[0])]
