from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Literal

from listenwell.systems.house.options import HouseDecoding


def generate(
    system: str,
    data: str = "-",
    split: str = "test",
    path: Path | None = None,
    out: Path | None = None,
    decoding: HouseDecoding | None = None,
    limit: int = 0,
    intent: str | None = None,
    positivity: float | None = None,
    base_url: str | None = None,
    direction: Literal["forward", "backward"] = "forward",
    language: str | None = None,
) -> None:
    """Write a system's replies as JSON lines, for measuring: the system replies alone, without crisis care.

    Args:
        system: A trained system by name (`listenwell models`), the folder of a run, or openai:NAME, a model behind an
            OpenAI-compatible server.
        data: A source by name, a .jsonl file, or - for standard input: each line is a text to reply to, or a JSON
            list of a dialogue's texts that ends with the speaker's.
        split: Which split of a source.
        path: Path of the source, if it is not in LISTENWELL_DATA.
        out: File to write; standard output if not given.
        decoding: How to write replies; options not given keep the system's own values.
        limit: Reply only to the first N; 0 for all.
        intent: What every reply should do or express, one of the 41 labels, such as consoling or joyful; the system
            chooses if not given.
        positivity: How strongly replies should lift the mood, from 0 to 1, for a system that plans; the system's own
            setting if not given.
        base_url: Where the server of openai:NAME is, such as http://localhost:8000/v1; LISTENWELL_BASE_URL or
            OPENAI_BASE_URL if not given. Its key is read from LISTENWELL_API_KEY or OPENAI_API_KEY.
        direction: backward reads one listener text per line, or the replies of a source, and writes what each might
            be a reply to; needs a system with a backward model (Dual-Emp).
        language: The language to write in, such as en or zh; chooses the system of that name that speaks it.
    """
    from itertools import islice

    from listenwell.commands.display import tracked
    from listenwell.commands.numbers import at_least
    from listenwell.commands.terminal import shows_all
    from listenwell.data import sources
    from listenwell.data.dialogue import Dialogue, examples
    from listenwell.data.sources.jsonl import write_lines
    from listenwell.loading import load
    from listenwell.outputs import check_file
    from listenwell.systems.controls import check_direction, controls_from_request

    at_least(0, limit=limit)
    if out is not None:
        check_file(out)
    bot = load(system, care=False, base_url=base_url, language=language)
    if decoding is not None:
        bot.decoding = decoding.over(bot.decoding)
    check_direction(bot, direction)
    controls = controls_from_request(bot, intent, positivity)
    records: list[dict] = []
    talks: list[Dialogue] = []
    if data == "-":
        for number, line in enumerate(sys.stdin, 1):
            if line.strip():
                talks.append(_talk(line, number, direction))
                records.append({"id": f"line-{number}"})
    else:
        items = (item for dialogue in sources.read(data, path, split) for item in examples(dialogue))
        for item in islice(items, limit or None):
            read, reference = item.context, item.reply
            if direction == "backward" and item.reply is not None:
                read, reference = (item.reply,), item.context[-1]
            talks.append(Dialogue(item.id, read, language=item.language))
            records.append({"id": item.id, "reference": reference.text if reference else None})
    if limit:
        talks, records = talks[:limit], records[:limit]
    with tracked() as progress:
        way: dict[str, Any] = {} if direction == "forward" else {"direction": direction}
        replies = bot.replies(talks, controls, progress("replies", len(talks)), **way)
    whole = (
        {**record, "context": [turn.text for turn in talk.turns], **reply.to_json()}
        for record, talk, reply in zip(records, talks, replies, strict=True)
    )
    if out is None:
        for record in whole:
            print(json.dumps(record, ensure_ascii=not shows_all()))
    else:
        write_lines(whole, out)
        print(f"{len(replies):,} replies written to {out}", file=sys.stderr)


def _talk(line: str, number: int, direction: str):
    from listenwell.data.dialogue import Dialogue

    text = line.strip()
    if not text.startswith("["):
        return Dialogue.from_texts([text], id=f"line-{number}")
    try:
        texts = json.loads(text)
    except ValueError as problem:
        raise ValueError(
            f"standard input line {number}: starts like a JSON list but is not valid JSON ({problem})"
        ) from problem
    if not isinstance(texts, list) or not texts or not all(isinstance(item, str) for item in texts):
        raise ValueError(f"standard input line {number}: expected a JSON list of texts, found {text[:60]!r}")
    if direction == "backward" and len(texts) > 1:
        raise ValueError(
            f"standard input line {number}: {len(texts)} texts, expected one: backward reads a listener text alone and "
            "writes all that came before it"
        )
    return Dialogue.from_texts(texts, id=f"line-{number}")
