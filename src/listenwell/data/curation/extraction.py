"""Extracts cleaned dialogues from one input file, and counts everything that was dropped on the way."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from listenwell.data.curation.bilingual import split_by_script
from listenwell.data.curation.cleaning import cleaning_for
from listenwell.data.curation.counts import Counts
from listenwell.data.curation.cues import CueTurn, Subtitle, SubtitleError
from listenwell.data.curation.held_out import HeldOut
from listenwell.data.curation.inputs import InputFile
from listenwell.data.curation.reading import read_cues
from listenwell.data.curation.records import CuratedDialogue, CuratedTurn
from listenwell.data.curation.same_speaker import same_speaker
from listenwell.data.curation.settings import Settings
from listenwell.data.curation.turns import cut_dialogues, split_dashes, turns_from_cues
from listenwell.data.sources.cleaning.adverts import hide_contact
from listenwell.data.sources.files import json_items
from listenwell.data.sources.report import SourceError
from listenwell.data.sources.splits import split_of_texts

# Of files
UNREADABLE = "cannot be opened"
UNEXPECTED = "could not be parsed"
NO_TEXT = "no text in the language"
# Of cues
OTHER_LANGUAGE = "in another language"
UNUSED = "in no turn"
# Of dialogues
NO_THREAD = "not a list of texts"
HELD_OUT = "stands in the held-out test split"


@dataclass
class Extractor:
    """Extracts dialogues from files, and keeps the counts."""

    settings: Settings
    held_out: HeldOut | None = None
    counts: Counts = field(default_factory=Counts)
    problems: list[dict[str, str]] = field(default_factory=list)
    """Files that could not be used, and why."""
    matches: list[dict[str, Any]] = field(default_factory=list)
    """Dialogues that are in the held-out split, and what they match."""

    def __post_init__(self) -> None:
        self._cleaning = cleaning_for(self.settings.kind, self.settings.language)
        if self.settings.kind == "subtitles":
            # Load the classifier now: a failure must not be reported as a problem of every file.
            same_speaker([], self.settings.language)

    def dialogues(self, file: InputFile) -> Iterator[tuple[CuratedDialogue, int]]:
        """The dialogues of a file, each with the number of cues counted for it."""
        return self._threads(file) if self.settings.kind == "posts" else self._from_subtitles(file)

    # Subtitles

    def _from_subtitles(self, file: InputFile) -> Iterator[tuple[CuratedDialogue, int]]:
        self.counts.read("files")
        try:
            subtitle = read_cues(file.name.removesuffix(".gz"), file.read())
            turns = self._turns(subtitle)
        except SubtitleError as problem:
            return self._refuse(file, problem.reason, problem.detail)
        except (OSError, ValueError, EOFError, zlib.error) as problem:
            return self._refuse(file, UNREADABLE, str(problem))
        except MemoryError:
            raise
        except Exception as problem:
            # One bad file out of half a million must not stop the rest; it is reported by name.
            return self._refuse(file, UNEXPECTED, f"{type(problem).__name__}: {problem}")
        self.counts.read("cues", len(subtitle.cues) + len(subtitle.dropped))
        for left_out in subtitle.dropped:
            self.counts.drop("cues", left_out.reason)
            self._sample("cue", left_out.reason, f"{file.name}#{left_out.cue.number}", left_out.cue.text)
        if not turns:
            self.counts.drop("cues", OTHER_LANGUAGE, len(subtitle.cues))
            return self._refuse(file, f"{NO_TEXT} ({self.settings.language})", f"it has {subtitle.language}")
        self.counts.keep("files")
        return self._dialogues_of_turns(file, subtitle, turns)

    def _turns(self, subtitle: Subtitle) -> list[CueTurn]:
        own = split_by_script(subtitle).get(self.settings.language)
        if not own:
            return []
        parts = split_dashes(own)
        return turns_from_cues(parts, same_speaker(parts, self.settings.language))

    def _dialogues_of_turns(
        self, file: InputFile, subtitle: Subtitle, turns: Sequence[CueTurn]
    ) -> Iterator[tuple[CuratedDialogue, int]]:
        self.counts.read("turns", len(turns))
        fates: dict[int, str] = {}
        cleaned = self._cleaning.clean(turns, self.counts)
        for turn, reason in cleaned.dropped:
            self._drop_turn(turn, reason, file.name)
            fates |= dict.fromkeys(turn.cues, reason)
        stem = file.name.removesuffix(".gz").rpartition(".")[0] or file.name
        split = split_of_texts([stem])
        times: Counter[str] = Counter()
        accepted: list[CuratedDialogue] = []
        for dialogue in (one for segment in cleaned.segments if segment for one in cut_dialogues(segment)):
            place = f"{file.name}#{dialogue[0].cues[0]}-{dialogue[-1].cues[-1]}"
            times[place] += 1  # in rare cases, one cue has two dialogues
            name = place if times[place] == 1 else f"{place}.{times[place]}"
            curated = self._accept(name, file.name, dialogue, split)
            if isinstance(curated, str):
                fates |= {number: curated for turn in dialogue for number in turn.cues}
            else:
                accepted.append(curated)
        return iter(self._count_cues(subtitle, accepted, fates))

    def _count_cues(
        self, subtitle: Subtitle, accepted: Sequence[CuratedDialogue], fates: dict[int, str]
    ) -> list[tuple[CuratedDialogue, int]]:
        """Counts every cue once: for the first dialogue it is in, else under the reason why it was dropped."""
        rest = {cue.number for cue in subtitle.cues}
        counted = []
        for dialogue in accepted:
            own = rest.intersection(number for turn in dialogue.turns for number in turn.cues)
            rest -= own
            counted.append((dialogue, len(own)))
            self.counts.keep("cues", len(own))
        in_language = {cue.number for cue in split_by_script(subtitle)[self.settings.language]} if rest else set()
        for number in rest:
            other = UNUSED if number in in_language else OTHER_LANGUAGE
            self.counts.drop("cues", fates.get(number, other))
        return counted

    # Posts

    def _threads(self, file: InputFile) -> Iterator[tuple[CuratedDialogue, int]]:
        if file.is_first:
            self.counts.read("files")
        threads = 0
        try:
            for line, record in _records(file):
                threads += 1
                self.counts.read("dialogues")
                curated = self._thread(file.name, line, record)
                if curated is not None:
                    yield curated, 0
        except (OSError, EOFError, zlib.error, UnicodeDecodeError, SourceError) as problem:
            self.problems.append({"file": file.name, "reason": UNREADABLE, "detail": str(problem)})
            if file.is_first and not threads:
                self.counts.drop("files", UNREADABLE)
                return
        if file.is_first:
            self.counts.keep("files")

    def _thread(self, file: str, line: int, record: Any) -> CuratedDialogue | None:
        if not isinstance(record, list) or not record or not all(isinstance(text, str) for text in record):
            self.counts.drop("dialogues", NO_THREAD)
            self._sample("dialogue", NO_THREAD, f"{file}:{line}", json.dumps(record, ensure_ascii=False))
            return None
        turns = [CueTurn(file, (number,), None, None, text) for number, text in enumerate(record, start=1)]
        self.counts.read("turns", len(turns))
        cleaned = self._cleaning.clean(turns, self.counts)
        for turn, reason in cleaned.dropped:
            self._drop_turn(turn, reason, f"{file}:{line}")
        # As in weibo-raw, threads are split by their raw texts.
        curated = self._accept(f"{file}:{line}", file, cleaned.segments[0], split_of_texts(record), line, is_read=True)
        return None if isinstance(curated, str) else curated

    # Both

    def _accept(
        self,
        name: str,
        file: str,
        dialogue: Sequence[CueTurn],
        split: str,
        line: int | None = None,
        is_read: bool = False,
    ) -> CuratedDialogue | str:
        """The record of a dialogue, or the reason why it was dropped."""
        if not is_read:
            self.counts.read("dialogues")
        texts = [turn.text for turn in dialogue]
        reason, leak = self._cleaning.problem(dialogue), None
        if reason is None and self.held_out is not None and (leak := self.held_out.find(texts)):
            reason = HELD_OUT
            about = {"turn": leak.turn, "match": leak.match, "similarity": leak.similarity}
            self.matches.append({"id": name, "reason": reason, **about})
        if reason is not None:
            self.counts.drop("dialogues", reason)
            self.counts.drop("turns", reason, len(dialogue))
            match = {} if leak is None else {"match": leak.match}
            self._sample("dialogue", reason, name, " / ".join(texts), **match)
            return reason
        self.counts.keep("dialogues")
        self.counts.keep("turns", len(dialogue))
        return CuratedDialogue(
            name,
            file,
            tuple(CuratedTurn(turn.text, tuple(turn.cues)) for turn in dialogue),
            self.settings.language,
            self.settings.kind,
            split,
            line,
            dialogue[0].start,
            dialogue[-1].end,
        )

    def _drop_turn(self, turn: CueTurn, reason: str, place: str) -> None:
        self.counts.drop("turns", reason)
        self._sample("turn", reason, f"{place}#{turn.cues[0]}", turn.text)

    def _sample(self, unit: str, reason: str, place: str, text: str, **about: Any) -> None:
        self.counts.sample(f"{unit}: {reason}", place, hide_contact(text), **about)

    def _refuse(self, file: InputFile, reason: str, detail: str) -> Iterator[tuple[CuratedDialogue, int]]:
        self.counts.drop("files", reason)
        self.counts.sample(f"file: {reason}", file.name, detail)
        self.problems.append({"file": file.name, "reason": reason, "detail": detail})
        return iter(())


def _records(file: InputFile) -> Iterator[tuple[int, Any]]:
    """The records of a file with line numbers: the items of a JSON array, else one per non-blank line.

    A line that is not valid JSON yields its text, which is not a thread.
    """
    if file.path.removesuffix(".gz").endswith(".json"):
        from pathlib import Path

        yield from json_items(Path(file.path))
        return
    opened = gzip.open(file.path) if file.path.endswith(".gz") else open(file.path, "rb")  # noqa: SIM115
    with opened as stream:
        stream.seek(file.begin)
        line = file.first_line
        while (file.end is None or stream.tell() < file.end) and (raw := stream.readline()):
            text = raw.decode("utf-8-sig" if line == 1 else "utf-8", "replace").strip()
            if text:
                try:
                    record = json.loads(text)
                except (ValueError, RecursionError):
                    record = text
                yield line, record
            line += 1
