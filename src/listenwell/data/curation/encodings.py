"""Detects the encoding of a subtitle file and decodes it.

A byte order mark decides first, then UTF-16 without a mark, where many bytes are zero, then UTF-8 with few errors.
Everything else is a legacy encoding: each East Asian one is tried, and the one whose text has the most of the common
characters of its language wins; otherwise it is a single-byte encoding, chosen by charset-normalizer.
"""

from __future__ import annotations

import codecs
import re

from listenwell.data.curation.cues import SubtitleError

MAX_BROKEN = 0.01
"""Maximum share of unreadable characters; with more, a file counts as undecodable."""

SAMPLE = 65_536
"""Number of bytes used to recognize a legacy encoding."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins with the mark of UTF-16, so it comes first
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# The most common characters of each, about half of all text. A wrong codec yields rare characters instead.
_COMMON = {
    "gb18030": "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里"
    "用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实"
    "，。？！、",
    "big5": "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡"
    "用道行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想實"
    "，。？！、",
    "cp932": "のにはをたがでてとしれさいるもなかったあうこそんだよっまえらどすりくけきちせめおわみつねろじばアイス"
    "ンルトッリクラーシ。、",
    "cp949": "이다는에의을가고하은지도한나그사를로니게아서어들있해자기수요내대보라무만일정시야우당거말인안스",
}
_MIN_COMMON = 0.25
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ufffd]")


def decode(data: bytes, file: str = "subtitle") -> tuple[str, str]:
    """Decode bytes; returns the text and the name of the codec.

    Raises:
        SubtitleError: there is nothing to decode, or the bytes are not text.
    """
    if not data.strip(b"\x00 \t\r\n"):
        raise SubtitleError(file, "empty file", f"{len(data)} bytes")
    codec, skip = _codec(data)
    text = data[skip:].decode(codec, "replace")
    broken = len(_CONTROL.findall(text))
    if broken > MAX_BROKEN * len(text):
        share = f"{broken} of {len(text)} characters unreadable as {codec}"
        raise SubtitleError(file, "cannot be decoded: no text in any known encoding", share)
    return text, codec


def _codec(data: bytes) -> tuple[str, int]:
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return codec, len(mark)
    if wide := _wide(data):
        return wide, 0
    if _is_utf8(data):
        return "utf-8", 0
    return _legacy(data), 0


def _wide(data: bytes) -> str | None:
    """Detects UTF-16 without a mark: Latin letters, digits and line ends have a zero as their other byte."""
    sample = data[:4096]
    zeros = sample.count(0)
    if zeros < len(sample) // 8:
        return None
    return "utf-16-le" if sample[1::2].count(0) > sample[0::2].count(0) else "utf-16-be"


def _is_utf8(data: bytes) -> bool:
    """Whether the bytes are UTF-8; a few broken bytes in a long text, left by a careless editor, are tolerated."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        beyond_ascii = sum(1 for char in text if char > "\x7f")
        return text.count("\ufffd") < 0.05 * beyond_ascii
    return True


def _legacy(data: bytes) -> str:
    sample = data[:SAMPLE]
    scores = {codec: _share_of_common(sample, codec, common) for codec, common in _COMMON.items()}
    best = max(scores, key=lambda codec: scores[codec])
    if scores[best] >= _MIN_COMMON:
        return best
    return _single_byte(sample)


def _share_of_common(sample: bytes, codec: str, common: str) -> float:
    """The share of common characters among the non-ASCII ones; a broken character counts against it."""
    beyond_ascii = [char for char in sample.decode(codec, "replace") if char > "\x7f"]
    if not beyond_ascii:
        return 0.0
    expected = set(common)
    return sum(char in expected for char in beyond_ascii) / len(beyond_ascii)


def _single_byte(sample: bytes) -> str:
    from charset_normalizer import from_bytes

    # Only lines with non-ASCII bytes are informative.
    lines = [line for line in sample.splitlines() if any(byte > 0x7F for byte in line)]
    matches = from_bytes(
        b"\n".join(lines)[:8192],
        cp_isolation=["cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "koi8_r", "iso8859_2"],
        steps=3,
    )
    best = matches.best()
    # Western and Central European letters look equally plausible to it: on a tie, the more common encoding wins.
    draw = best is not None and any(each.encoding == "cp1252" and each.chaos <= best.chaos for each in matches)
    return "cp1252" if best is None or draw else best.encoding
