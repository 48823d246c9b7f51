"""Turn, Dialogue, Example: the data types shared by everything that reads or writes conversations.

The file format is JSON lines, one dialogue per line:

    {"id": "d1", "emotion": "joyful", "turns": [
        {"speaker": "speaker", "text": "I passed!"},
        {"speaker": "listener", "text": "You did it!", "label": {"name": "encouraging", "by": "machine"}}]}

A label written as a plain string is gold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Role = Literal["speaker", "listener"]
ROLES: tuple[Role, Role] = ("speaker", "listener")
Side = Literal["context", "reply", "following", "situation", "opening"]
LabelPlace = Literal["dialogue", "context", "reply"]
"""Where a label is taken from: the dialogue (its emotion), the last turn of the context, or the reply."""


@dataclass(frozen=True, slots=True)
class Label:
    """The name of a label, and who assigned it: "gold" for a person, "machine" for a model."""

    name: str
    by: Literal["gold", "machine"] = "gold"
    confidence: float | None = None

    def to_json(self) -> Any:
        if self.by == "gold" and self.confidence is None:
            return self.name
        record: dict[str, Any] = {"name": self.name, "by": self.by}
        if self.confidence is not None:
            record["confidence"] = self.confidence
        return record

    @classmethod
    def from_json(cls, record: Any) -> Label:
        if isinstance(record, str):
            return cls(record)
        if not isinstance(record, Mapping) or not isinstance(record.get("name"), str):
            raise ValueError(f"a label is a string or an object with a name, found {record!r}")
        by = record.get("by", "gold")
        if by not in ("gold", "machine"):
            raise ValueError(f"a label is by 'gold' or 'machine', found {by!r}")
        confidence = record.get("confidence")
        if confidence is not None and not _is_share(confidence):
            raise ValueError(f"a label's confidence is a number from 0 to 1, found {confidence!r}")
        return cls(record["name"], by, confidence)


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def readable(text: str) -> str:
    """Replaces lone surrogates, which a broken pipe or a careless client may send, by question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance. The speaker talks about a feeling; the listener replies."""

    speaker: Role
    text: str
    label: Label | None = None

    def to_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {"speaker": self.speaker, "text": self.text}
        if self.label is not None:
            record["label"] = self.label.to_json()
        return record

    @classmethod
    def from_json(cls, record: Any) -> Turn:
        if not isinstance(record, Mapping):
            raise ValueError(f"a turn is an object with speaker and text, found {record!r}")
        speaker, text = record.get("speaker"), record.get("text")
        if speaker not in ROLES:
            raise ValueError(f"a turn's speaker is 'speaker' or 'listener', found {speaker!r}")
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"a turn's text is a non-empty string, found {text!r}")
        label = record.get("label")
        return cls(speaker, text, None if label is None else Label.from_json(label))


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A sequence of turns, with what is known about the whole: its emotion, its situation, its source."""

    id: str
    turns: tuple[Turn, ...]
    emotion: Label | None = None
    situation: str | None = None
    source: str = ""
    language: str = "en"
    split: str | None = None

    def to_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {"id": self.id}
        if self.emotion is not None:
            record["emotion"] = self.emotion.to_json()
        for name in ("situation", "source", "split"):
            if getattr(self, name):
                record[name] = getattr(self, name)
        if self.language != "en":
            record["language"] = self.language
        record["turns"] = [turn.to_json() for turn in self.turns]
        return record

    @classmethod
    def from_json(cls, record: Any) -> Dialogue:
        if not isinstance(record, Mapping):
            raise ValueError(f"a dialogue is a JSON object, found {type(record).__name__}")
        turns = record.get("turns")
        if not isinstance(turns, list) or not turns:
            raise ValueError("a dialogue has a non-empty list 'turns'")
        id, emotion = record.get("id"), record.get("emotion")
        if id is not None and (isinstance(id, bool) or not isinstance(id, str | int)):
            raise ValueError(f"a dialogue's id is a string, found {id!r}")
        for name in ("situation", "source", "language", "split"):
            if not isinstance(record.get(name), str | None):
                raise ValueError(f"a dialogue's {name} is a string, found {record[name]!r}")
        return cls(
            id="" if id is None else str(id),
            turns=tuple(Turn.from_json(turn) for turn in turns),
            emotion=None if emotion is None else Label.from_json(emotion),
            situation=record.get("situation"),
            source=record.get("source") or "",
            language=record.get("language") or "en",
            split=record.get("split"),
        )

    @classmethod
    def from_texts(cls, texts: Iterable[str], id: str = "chat") -> Dialogue:
        """Build a dialogue from plain texts. Roles alternate, and the last text is the speaker's."""
        if isinstance(texts, str):
            raise ValueError(f"a dialogue is made from a list of texts, found one text: {texts!r}")
        texts = list(texts)
        if not texts:
            raise ValueError("a dialogue needs at least one text")
        roles = [ROLES[(len(texts) - 1 - index) % 2] for index in range(len(texts))]
        return cls(id, tuple(Turn(role, text) for role, text in zip(roles, texts, strict=True)))

    @classmethod
    def from_talk(cls, talk: Talk) -> Dialogue:
        """Build a dialogue from one text, a list of texts, or a list of turns with roles."""
        if isinstance(talk, Dialogue):
            return talk
        if isinstance(talk, str):
            return cls.from_texts([talk])
        if isinstance(talk, bytes | bytearray | Mapping | Turn) or not isinstance(talk, Iterable):
            raise TypeError(f"a conversation is {TALK}; found {_named(talk)}")
        turns = list(talk)
        for number, turn in enumerate(turns, 1):
            if not isinstance(turn, str | Mapping | Turn):
                raise TypeError(f"turn {number} of {len(turns)} is {_named(turn)}, expected {TURN}")
        texts = [turn for turn in turns if isinstance(turn, str)]
        if len(texts) == len(turns):
            return cls.from_texts(texts)
        if texts:
            number = next(number for number, turn in enumerate(turns, 1) if isinstance(turn, str))
            raise TypeError(f"turn {number} of {len(turns)} is a text among turns with roles; give all of them alike")
        return cls("chat", tuple(_with_role(turn, f"turn {n} of {len(turns)}") for n, turn in enumerate(turns, 1)))


Talk = Dialogue | Iterable[str | Mapping[str, Any] | Turn] | str
"""Valid input to reply to: a dialogue; a list of turns, as plain texts (the last one is the speaker's) or with roles;
or a single text."""

TURN = 'a text, or {"role": "user" or "assistant", "content": "…"}'
TALK = f"a text, a list of turns, or a Dialogue, where each turn is {TURN}"

SPEAKERS: dict[str, Role] = {"user": "speaker", "assistant": "listener", "speaker": "speaker", "listener": "listener"}
"""Accepted names of roles: those of chat models, and our own."""


def _with_role(turn: Any, place: str) -> Turn:
    """A turn from a record such as {"role": "user", "content": "…"} or {"speaker": "listener", "text": "…"}."""
    if isinstance(turn, Turn):
        return turn
    role, text = turn.get("role", turn.get("speaker")), turn.get("content", turn.get("text"))
    if role in ("system", "developer"):
        raise ValueError(
            f"{place} has the role {role!r}, which no system here is given: what happened before goes in situation=…, "
            "what a reply should do in intent=…"
        )
    if role not in SPEAKERS:
        raise ValueError(f"{place} has the role {role!r}, expected one of {', '.join(SPEAKERS)}")
    if not isinstance(text, str):
        raise TypeError(f"{place}: its content is {_named(text)}, expected a text")
    return Turn(SPEAKERS[role], text)


def _named(value: Any) -> str:
    """Describes a value in an error message: its type, and its repr if that is short."""
    shown = repr(value)
    return type(value).__name__ + (f" ({shown})" if value is not None and len(shown) <= 40 else "")


@dataclass(frozen=True, slots=True)
class Example:
    """One training or test example. A side may be missing: unpaired data has only one."""

    id: str
    context: tuple[Turn, ...] = ()
    reply: Turn | None = None
    following: Turn | None = None
    emotion: Label | None = None
    situation: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    language: str = "en"

    def label_of(self, place: LabelPlace) -> Label | None:
        """The label at this place; None if there is none."""
        if place == "dialogue":
            return self.emotion
        turn = self.reply if place == "reply" else self.context[-1] if self.context else None
        return None if turn is None else turn.label


def without_annotations(item: Example) -> Example:
    """The example as a system sees it in use: texts only, without emotion, labels or situation."""
    context = tuple(replace(turn, label=None) for turn in item.context)
    reply = None if item.reply is None else replace(item.reply, label=None)
    return Example(item.id, context, reply, language=item.language)


def examples(
    dialogue: Dialogue, replies_by: Iterable[Role] = ("listener",), sides: Iterable[Side] = ("context", "reply")
) -> Iterator[Example]:
    """Yield the examples of a dialogue that have all the requested sides.

    - context and reply: one for every turn by one of `replies_by` that has a turn before it, with the turn that
      follows, if any;
    - context only: one for every turn of the speaker, to be answered;
    - reply only: one for every turn by one of `replies_by`, whatever comes before it;
    - situation only: one per dialogue, with the situation as the speaker's turn: the listener never saw it, but a model
      can learn from it how an emotion is expressed;
    - opening only: one per dialogue that the speaker begins, with the first turn in place of the reply, since it says
      the most about the dialogue's emotion.
    """
    needed, speakers = set(sides), set(replies_by)
    if needed == {"situation"}:
        if dialogue.situation:
            yield Example(
                f"{dialogue.id}#situation",
                (Turn("speaker", dialogue.situation),),
                emotion=dialogue.emotion,
                situation=dialogue.situation,
                language=dialogue.language,
            )
        return
    turns = dialogue.turns
    if needed == {"opening"}:
        if turns[0].speaker == "speaker":
            yield _example(dialogue, 0, (), turns[0], None)
        return
    for index, turn in enumerate(turns):
        if "reply" not in needed:
            if turn.speaker == "speaker":
                yield _example(dialogue, index, turns[: index + 1], None, None)
            continue
        after = turns[index + 1] if index + 1 < len(turns) else None
        incomplete = ("context" in needed and not index) or ("following" in needed and after is None)
        if turn.speaker in speakers and not incomplete:
            yield _example(dialogue, index, turns[:index] if "context" in needed else (), turn, after)


def _example(
    dialogue: Dialogue, index: int, context: tuple[Turn, ...], reply: Turn | None, following: Turn | None
) -> Example:
    return Example(
        f"{dialogue.id}#{index}",
        context,
        reply,
        following,
        dialogue.emotion,
        dialogue.situation,
        language=dialogue.language,
    )
