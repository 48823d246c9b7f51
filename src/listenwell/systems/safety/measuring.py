"""How often Care detects a sign, and how often it is wrong about ordinary talk.

python -m listenwell.systems.safety.measuring FILE.jsonl …   rates on written cases; --show lists those that went wrong
python -m listenwell.systems.safety.measuring --talk         alarms on ordinary dialogues (found by LISTENWELL_DATA)

A case is {"text": …} or {"turns": [{"speaker": "speaker" or "listener", "text": …}, …]} with "language" and with "sign"
(or "expect"): direct, indirect, or null (or "none"). A sign counts as detected if Care answers at all. Dialogues are
read as Care sees them, turn by turn: each message of the speaker with everything before it.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from listenwell.data import sources
from listenwell.data.dialogue import Dialogue, Turn
from listenwell.systems.safety.conversation import sign_in
from listenwell.systems.safety.detector import Sign

GRIEF = re.compile(r"\b(died|passed|lost|funeral|put (her|him) (down|to sleep))\b", re.IGNORECASE)
GRIEVING = ("sad", "devastated", "lonely")


def turns_of(case: dict[str, Any]) -> list[Turn]:
    """Returns the conversation of a case; a single message is one turn."""
    if "text" in case:
        return [Turn("speaker", case["text"])]
    return [Turn(turn["speaker"], turn["text"]) for turn in case["turns"]]


def expected(case: dict[str, Any]) -> str:
    return case.get("expect", case.get("sign")) or "none"


def measure_cases(paths: Sequence[Path], show: bool) -> None:
    """Prints the rates over all files, overall and by language."""
    all_of: Counter[tuple[str, str]] = Counter()
    heard: Counter[tuple[str, str]] = Counter()
    for case in (json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()):
        turns, wanted = turns_of(case), expected(case)
        sign, _ = sign_in(turns)
        for language in ("all", case["language"]):
            all_of[wanted, language] += 1
            heard[wanted, language] += sign is not None
        if show and (sign is None) == (wanted != "none"):
            print(f"{wanted}: {_told(turns, sign)}")
    for (wanted, language), count in sorted(all_of.items()):
        hits = heard[wanted, language]
        print(f"{wanted:<9} {language:<4} {hits:>5} of {count:<5} {100 * hits / count:5.1f} %")


def _told(turns: Sequence[Turn], sign: Sign | None) -> str:
    said = " / ".join(turn.text for turn in turns if turn.speaker == "speaker")
    return f"{said}   [{'nothing heard' if sign is None else f'{sign}; {sign.why}'}]"


def messages_in(dialogues: Iterable[Dialogue]) -> Iterator[list[Turn]]:
    """Yields each message of the speaker with everything before it."""
    for dialogue in dialogues:
        for place, turn in enumerate(dialogue.turns):
            if turn.speaker == "speaker":
                yield list(dialogue.turns[: place + 1])


def measure_talk(name: str, dialogues: Iterable[Dialogue], most: int) -> None:
    """Prints every alarm in the first `most` messages, and their number."""
    count = alarms = 0
    for turns in islice(messages_in(dialogues), most):
        count += 1
        sign, _ = sign_in(turns)
        if sign is not None:
            alarms += 1
            print(f"  {_told(turns, sign)}")
    print(f"{name}: {alarms} alarms in {count} messages ({100 * alarms / max(1, count):.2f} %)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="written cases")
    parser.add_argument("--show", action="store_true", help="list the cases that went wrong")
    parser.add_argument("--talk", action="store_true", help="measure alarms on ordinary dialogues")
    chosen = parser.parse_args()
    if chosen.files:
        measure_cases(chosen.files, chosen.show)
    if chosen.talk:
        valid = list(sources.read("empathetic-dialogues", split="valid"))
        grief = [
            dialogue
            for dialogue in valid
            if dialogue.emotion is not None
            and dialogue.emotion.name in GRIEVING
            and any(GRIEF.search(turn.text) for turn in dialogue.turns)
        ]
        measure_talk("EmpatheticDialogues, valid", valid, 2000)
        measure_talk("EmpatheticDialogues, valid, told of a loss", grief, 2000)
        measure_talk("XDailyDialog, valid, English", sources.read("xdailydialog", split="valid", language="en"), 1000)
        measure_talk("LCCC, valid", sources.read("lccc", split="valid"), 10000)


if __name__ == "__main__":
    main()
