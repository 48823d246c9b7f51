"""NLPCC 2014's evaluation of emotions in Weibo posts: XML, a post a <weibo> of <sentence>s, seven emotions or none.

It has three parts. *classification*: only the 6,000 test posts are available. *expression*: posts that all have an
emotion, 1,000 for training and 2,000 for testing. *sample*: the same 1,000 with slightly different annotations, so it
is only read on request. A post is a dialogue of one turn, its sentences joined, labelled with its first emotion; a
second emotion is noted. The labels of single sentences are only used to check whether they contradict the post's.

The files are untrusted XML: a document type, and with it any entity declaration, is rejected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from listenwell.data.dialogue import Dialogue, Label
from listenwell.data.sources import quality
from listenwell.data.sources.dialogue_builder import Builder, Conversation, Utterance, read_files
from listenwell.data.sources.files import DataFile, Piece, choose
from listenwell.data.sources.report import Report, SourceError
from listenwell.labels.sets import NLPCC

NAME = "nlpcc2014"
FOLDER = "nlpcc2014_weibo"
HOW_TO_GET = (
    "the evaluation's pages are http://tcci.ccf.org.cn/conference/2014/pages/page04_sam.html and …/page04_ans.html"
)

# Noted
SECOND = "a second emotion, only the first kept"
CONTRADICTED = "emotion of a post contradicts its sentences"
NO_LABEL = "post without label"

PIECES = (
    Piece("test", ("EmotionClassificationTest.xml",), "classification"),
    Piece("train", ("Train_EmotionExpression.xml",), "expression"),
    Piece("test", ("ExpressionTest.xml",), "expression"),
    Piece("train", ("NLPCC2014_sample.xml",), "sample"),
)
NONE = "none"
BLOCK = 1 << 16
_WAY_OUT = "repair the file, or download it again"


@dataclass
class Weibo:
    """A post as it is in the file."""

    line: int
    id: str
    emotion: str
    second: str
    sentences: list[str] = field(default_factory=list)
    emotions: list[tuple[str, str]] = field(default_factory=list)
    """The first and second emotion of each sentence, "none" if it shows none."""
    opinionated: bool = False
    """Whether any of its sentences is marked as showing an emotion."""


def files(path: str | Path, split: str | None = None, *, part: str | None = None) -> list[DataFile]:
    """The files of a split and part; those of classification and expression by default."""
    pieces = [piece for piece in PIECES if part is not None or piece.part != "sample" or Path(path).is_file()]
    return choose(path, pieces, split, part, how_to_get=HOW_TO_GET)


def read(
    path: str | Path,
    split: str | None = None,
    *,
    report: Report | None = None,
    clean: bool = False,
    part: str | None = None,
) -> Iterator[Dialogue]:
    """The posts of a file, or of a split and part of a folder, as dialogues of one turn.

    `clean`: posts that are junk or duplicates are dropped.
    """
    builder = Builder(NAME, report or Report(), clean, language="zh", single_turn=True)
    return read_files(files(path, split, part=part), builder, _conversations)


def _conversations(data_file: DataFile, builder: Builder) -> Iterator[Conversation]:
    for weibo in weibos(data_file.path):
        yield conversation_of(weibo, data_file, builder)


def conversation_of(weibo: Weibo, data_file: DataFile, builder: Builder) -> Conversation:
    """A post as a conversation of one turn, its sentences joined."""
    label = label_of(weibo, builder.report, data_file)
    utterances = [Utterance("speaker", joined_sentences(weibo.sentences), weibo.line, label)]
    return Conversation(builder.name(f"{data_file.stem}-{weibo.id}", data_file, weibo.line), utterances, weibo.line)


def label_of(weibo: Weibo, report: Report, data_file: DataFile) -> Label | None:
    """The label of a post; problems with it are noted."""
    excerpt = "".join(weibo.sentences)
    if not weibo.emotion:
        report.note(NO_LABEL, data_file.file, weibo.line, excerpt)
        return None
    if weibo.emotion not in NLPCC:
        report.note(quality.UNKNOWN_LABEL, data_file.file, weibo.line, weibo.emotion)
    if weibo.second not in ("", NONE, weibo.emotion):
        report.note(SECOND, data_file.file, weibo.line, f"{weibo.emotion}, {weibo.second}")
    if (weibo.emotion != NONE) != weibo.opinionated:
        report.note(CONTRADICTED, data_file.file, weibo.line, f"{weibo.emotion}: {excerpt}")
    return Label(weibo.emotion)


def joined_sentences(sentences: list[str]) -> str:
    """The sentences as one text, with spaces only before Latin letters or digits that follow ASCII text."""
    text = ""
    for sentence in filter(None, sentences):
        latin = bool(text) and text[-1].isascii() and sentence[0].isascii() and sentence[0].isalnum()
        text += f" {sentence}" if latin else sentence
    return text


def weibos(path: Path) -> Iterator[Weibo]:
    """The posts of one file, one at a time."""
    reader = _Reader(path.name)
    with path.open("rb") as stream:
        while not reader.ended:
            try:
                reader.feed(stream.read(BLOCK))
            except SourceError:
                yield from reader.taken()  # posts that were complete before the error
                raise
            yield from reader.taken()


class _Reader:
    """Collects posts from parser events."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.ended = False
        self._done: list[Weibo] = []
        self._weibo: Weibo | None = None
        self._text: list[str] | None = None
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters

    def feed(self, block: bytes) -> None:
        self.ended = not block
        try:
            self._parser.Parse(block, self.ended)
        except expat.ExpatError as error:
            actual = f"{expat.ErrorString(error.code)} at column {error.offset + 1}"
            raise SourceError.at(self._file, error.lineno, actual, "well-formed XML", _WAY_OUT) from error

    def taken(self) -> list[Weibo]:
        done, self._done = self._done, []
        return done

    def _doctype(self, *_: object) -> None:
        # It may declare nested entities that exhaust memory ("billion laughs").
        raise self._error("a document type", "XML without one", "remove <!DOCTYPE …> and what it declares")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "weibo":
            if self._weibo is not None:
                raise self._error("<weibo> inside a <weibo>", "</weibo> before it")
            if not attributes.get("id", "").strip():
                raise self._error("a <weibo> without id", 'one such as <weibo id="1" emotion-type1="like">')
            first, second = (attributes.get(f"emotion-type{n}", "").strip().lower() for n in (1, 2))
            first = first or attributes.get("emotion-type", "").strip().lower()  # as in NLPCC 2013
            self._weibo = Weibo(self._parser.CurrentLineNumber, attributes["id"].strip(), first, second)
        elif tag == "sentence":
            if self._weibo is None:
                raise self._error("a <sentence> outside a <weibo>", "<weibo …> before it")
            flag = attributes.get("opinionated", attributes.get("emotion_tag", ""))  # the second as in NLPCC 2013
            self._weibo.opinionated |= flag.strip().upper() == "Y"
            first, second = (attributes.get(f"emotion-{n}-type", "").strip().lower() or NONE for n in (1, 2))
            self._weibo.emotions.append((first, second))
            self._text = []

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)
        elif text.strip():
            raise self._error(f"the text {text.strip()[:30]!r} outside a <sentence>", "texts in sentences")

    def _end(self, tag: str) -> None:
        if tag == "sentence" and self._weibo is not None and self._text is not None:
            self._weibo.sentences.append("".join(self._text))
            self._text = None
        elif tag == "weibo" and self._weibo is not None:
            self._done.append(self._weibo)
            self._weibo = None

    def _error(self, actual: str, expected: str, way_out: str = _WAY_OUT) -> SourceError:
        return SourceError.at(self._file, self._parser.CurrentLineNumber, actual, expected, way_out)
