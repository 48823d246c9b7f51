"""Whether a system forgets what a person said long before: python bench/long_memory.py SYSTEM [--json FILE]

Each dialogue of long_memory.yaml tells a fact in one of the speaker's first two turns: who died, who is ill, what is
over, who the person is. Its last turn, six to twelve turns later, touches on the fact without naming it. Only the reply
to that turn is the system's own; the listener's earlier turns are written in the file and the same for every system.

Counted are replies that contradict the fact, such as a hope that the dead are well, and replies that ask for what was
told, each share with its 95 % Wilson interval. They are found by expressions that are the dialogue's own and know
common wordings, not all: a reply that nothing matches may still have forgotten the fact. The system replies bare, with
no care before it, since a fixed text of care remembers nothing.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import yaml

from listenwell.loading import load

DIALOGUES = Path(__file__).with_name("long_memory.yaml")
COUNTED = {"contradicts": "contradict the fact", "asks_again": "ask for it again"}
"""What the expressions of a dialogue are filed under, and how the shares are printed."""
Z = 1.959964
"""Of the normal distribution, 95 % lies within so many deviations."""


def read(path: Path = DIALOGUES) -> list[dict[str, Any]]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def matched(expressions: Sequence[str], reply: str) -> list[str]:
    """The words of a reply that each expression finds first, if it finds any."""
    plain = " ".join(reply.replace("’", "'").split())
    found = (re.search(expression, plain, re.IGNORECASE) for expression in expressions)
    return [match.group() for match in found if match]


def last_replies(system: Any, talks: list[list[str]]) -> list[str]:
    """What the system says to the last turn of each: all in one batch, if it takes batches."""
    replies = system.replies(talks) if hasattr(system, "replies") else [system.reply(talk) for talk in talks]
    return [reply.text for reply in replies]


def measure(system: Any, dialogues: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each dialogue its fact, its last turn, the reply, and the words of it that were matched."""
    replies = last_replies(system, [dialogue["turns"] for dialogue in dialogues])
    return [
        {"id": dialogue["id"], "fact": dialogue["fact"], "last": dialogue["turns"][-1], "reply": reply}
        | {name: matched(dialogue[name], reply) for name in COUNTED}
        for dialogue, reply in zip(dialogues, replies, strict=True)
    ]


def wilson(count: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson, 1927), which also holds for few dialogues and for shares near 0 or 1."""
    share, spread = count / total, Z**2 / total
    middle, reach = share + spread / 2, sqrt(spread * (share * (1 - share) + spread / 4))
    return max(0.0, (middle - reach) / (1 + spread)), min(1.0, (middle + reach) / (1 + spread))


def shares(results: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """How many of the replies contradict or ask again; one that does both counts for both."""
    table = {}
    for name in COUNTED:
        count = sum(bool(result[name]) for result in results)
        low, high = wilson(count, len(results))
        table[name] = {"count": count, "of": len(results), "share": count / len(results), "low": low, "high": high}
    return table


def show(result: dict[str, Any]) -> None:
    print(f"\n{result['id']}: {result['fact']}\n  {result['last']}\n      {result['reply']}")
    for name in COUNTED:
        if result[name]:
            print(f"      [{name.replace('_', ' ')}: {' | '.join(result[name])}]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", metavar="SYSTEM", help="a system: its name, a run of it, or openai:NAME")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file to keep the replies and the shares in")
    chosen = parser.parse_args()
    results = measure(load(chosen.system, care=False), read())
    for result in results:
        show(result)
    table = shares(results)
    print(f"\nof {len(results)} replies")
    for name, row in table.items():
        interval = f"{100 * row['low']:.1f} to {100 * row['high']:.1f}"
        print(f"  {row['count']:2} {COUNTED[name]}: {100 * row['share']:.1f} % (95 %: {interval})")
    if chosen.json is not None:
        kept = {"system": chosen.system, "shares": table, "dialogues": results}
        chosen.json.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
