"""OPUS XML, the format of OpenSubtitles: sentences (<s>), possibly split into words (<w>), with the times of the cues.

<time id="T12S" value="00:01:02,500"/> opens cue 12, T12E closes it. Sentences and cues may overlap: the cues are
restored, since the timing between cues is informative. A sentence outside any pair of times is a cue without times.
"""

from __future__ import annotations

import re
from typing import Any
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from listenwell.data.curation.formats.parsed import RawCue, plain, seconds
from listenwell.data.sources.detokenize import detokenise, join_characters

_EDGE = re.compile(r"T?\d+([SE])", re.IGNORECASE)
# "do n't", "gon na", "got ta": words that were split by the tokenizer.
_SPLIT_WORD = re.compile(r"(?<=\w) (?=n['’]t\b)|(?<=\b[gG]on) (?=na\b)|(?<=\b[wW]an) (?=na\b)|(?<=\b[gG]ot) (?=ta\b)")
_EAST_ASIAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


class BrokenXmlError(ValueError):
    """The XML is not well-formed, or has declarations that subtitle files do not need but attacks do."""


def looks_like(data: bytes) -> bool:
    start = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n")
    return start.startswith((b"<?xml", b"<document")) or b"<\0?\0x\0m\0l\0" in data[:16]


def parse(data: bytes) -> list[RawCue]:
    """The cues of a document, decoded with the encoding it declares.

    Raises:
        BrokenXmlError: the XML is not well-formed, or has a document type or entities, which are never expanded.
    """
    parser = DefusedXMLParser(target=_Cues(), forbid_dtd=True)
    try:
        parser.feed(data)
        cues: Any = parser.close()  # what the target returns
    except ParseError as error:
        raise BrokenXmlError(f"XML is not well-formed: {error}") from error
    except DefusedXmlException as error:
        raise BrokenXmlError("XML with a document type or entities is refused: remove the <!DOCTYPE …>") from error
    except (LookupError, ValueError) as error:  # such as an encoding that does not exist
        raise BrokenXmlError(f"XML cannot be read: {error}") from error
    return cues


class _Cues:
    """Parser target that collects the text between two times."""

    def __init__(self) -> None:
        self.cues: list[RawCue] = []
        self.pieces: list[str] = []
        self.buffer: list[str] = []
        self.has_words = False
        self.in_sentence = False
        self.is_open = False
        self.opened: float | None = None

    def start(self, tag: str, attributes: dict[str, Any]) -> None:
        self._flush()
        if tag == "s":
            self.in_sentence = True
            if not self.is_open:
                self._finish(None)
        elif tag == "w":
            self.has_words = True
        elif tag == "time" and (edge := _EDGE.fullmatch(str(attributes.get("id", "")))):
            moment = seconds(str(attributes.get("value", "")))
            if edge[1].upper() == "S":
                self._finish(None)
                self.is_open, self.opened = True, moment
            else:
                self._finish(moment)
                self.is_open, self.opened = False, None

    def data(self, text: str) -> None:
        if self.in_sentence:
            self.buffer.append(text)

    def end(self, tag: str) -> None:
        self._flush()
        if tag == "s":
            self.in_sentence = False

    def close(self) -> list[RawCue]:
        self._finish(None)
        return self.cues

    def _flush(self) -> None:
        if text := " ".join("".join(self.buffer).split()):
            self.pieces.append(text)
        self.buffer = []

    def _finish(self, end: float | None) -> None:
        self._flush()
        if self.pieces or self.is_open:
            text = " ".join(self.pieces)
            if self.has_words:
                text = join_characters(text) if _EAST_ASIAN.search(text) else detokenise(_SPLIT_WORD.sub("", text))
            self.cues.append(RawCue(self.opened, end, plain(text)))
        self.pieces, self.is_open, self.opened = [], False, None
