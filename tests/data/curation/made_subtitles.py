"""Subtitle files and threads generated for tests: dialogues separated by pauses, numbered so that all are different."""

from __future__ import annotations

import json
import random
from pathlib import Path

PLACES = ("harbour", "kitchen", "garden", "station", "library", "bakery", "museum", "hospital", "theatre", "market")
PEOPLE = ("sister", "brother", "teacher", "neighbour", "doctor", "cousin", "manager", "uncle", "grandmother", "friend")
FEELINGS = ("angry", "happy", "lonely", "proud", "afraid", "surprised", "grateful", "jealous", "hopeful", "ashamed")
THINGS = ("letter", "bicycle", "violin", "suitcase", "ticket", "photograph", "lamp", "camera", "blanket", "ring")


def lines(rng: random.Random) -> list[str]:
    """One exchange of four lines."""
    place, other, person, feeling = (rng.choice(words) for words in (PLACES, PLACES, PEOPLE, FEELINGS))
    thing, number = rng.choice(THINGS), rng.randrange(10_000)
    return [
        f"Did you see my {person} at the {place} number {number}?",
        f"Yes, and your {person} was very {feeling} about the {thing}.",
        f"I was so {rng.choice(FEELINGS)} when the {thing} was lost near the {other}.",
        f"Don't worry, {rng.choice(PEOPLE)} {number} will bring the {rng.choice(THINGS)} back to the {place}.",
    ]


def clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02},{round(seconds % 1 * 1000):03}"


def srt(dialogues: list[list[str]], pause: float = 10.0) -> str:
    """Each line as a cue of two seconds with the speaker's name, and a pause after every dialogue."""
    cues, time = [], 1.0
    for dialogue in dialogues:
        for number, text in enumerate(dialogue):
            name = ("ANNA", "BERT")[number % 2]
            cues.append(f"{len(cues) + 1}\n{clock(time)} --> {clock(time + 2)}\n{name}: {text}\n")
            time += 2.2
        time += pause
    return "\n".join(cues)


def write_subtitles(folder: Path, files: int, dialogues: int = 5, seed: int = 1) -> Path:
    """A folder of SRT files, some in subfolders, with a duplicate, an empty and an undecodable file."""
    rng = random.Random(seed)
    for number in range(files):
        film = folder / f"film-{number % 3}"
        film.mkdir(parents=True, exist_ok=True)
        content = [lines(rng) for _ in range(dialogues)]
        (film / f"file-{number:04}.srt").write_text(srt(content), encoding="utf-8")
    first = sorted(folder.rglob("*.srt"))[0]
    (folder / "film-0" / "zz-copy.srt").write_bytes(first.read_bytes())
    (folder / "empty.srt").write_bytes(b"")
    (folder / "notes.txt").write_text("not a subtitle file")
    return folder


def write_threads(path: Path, threads: list[list[str]]) -> Path:
    path.write_text("\n".join(json.dumps(thread, ensure_ascii=False) for thread in threads) + "\n", encoding="utf-8")
    return path
