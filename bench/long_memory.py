"""Whether a system forgets what a person said long before: python bench/long_memory.py SYSTEM [--json FILE]

Each dialogue of long_memory.yaml states a fact in one of the speaker's first two turns: who died, who is ill, what is
over, who the person is. Its last turn, six to twelve turns later, touches on the fact without naming it. The system
writes only the reply to that turn; the listener's earlier turns are in the file and the same for every system.

It counts replies that contradict the fact, such as hoping that a dead person is well, and replies that ask for what was
already said, and prints each share with its 95 % Wilson interval. They are found with regular expressions specific to
the dialogue, which cover common wordings but not all: a reply without a match may still have forgotten the fact. The
system runs without care, since a fixed care text remembers nothing.
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
"""The keys of a dialogue's expressions, and how their shares are printed."""
Z = 1.959964
"""95 % of a normal distribution lies within this many standard deviations."""


def read(path: Path = DIALOGUES) -> list[dict[str, Any]]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def matched(expressions: Sequence[str], reply: str) -> list[str]:
    """The first match of each expression in a reply, for those that match."""
    plain = " ".join(reply.replace("’", "'").split())
    found = (re.search(expression, plain, re.IGNORECASE) for expression in expressions)
    return [match.group() for match in found if match]


def last_replies(system: Any, talks: list[list[str]]) -> list[str]:
    """The system's reply to the last turn of each dialogue, in one batch if it supports batches."""
    replies = system.replies(talks) if hasattr(system, "replies") else [system.reply(talk) for talk in talks]
    return [reply.text for reply in replies]


def measure(system: Any, dialogues: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each dialogue: its fact, its last turn, the reply, and the matches in it."""
    replies = last_replies(system, [dialogue["turns"] for dialogue in dialogues])
    return [
        {"id": dialogue["id"], "fact": dialogue["fact"], "last": dialogue["turns"][-1], "reply": reply}
        | {name: matched(dialogue[name], reply) for name in COUNTED}
        for dialogue, reply in zip(dialogues, replies, strict=True)
    ]


def wilson(count: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson, 1927), also valid for few dialogues and for shares near 0 or 1."""
    share, spread = count / total, Z**2 / total
    middle, reach = share + spread / 2, sqrt(spread * (share * (1 - share) + spread / 4))
    return max(0.0, (middle - reach) / (1 + spread)), min(1.0, (middle + reach) / (1 + spread))


def shares(results: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The shares of replies that contradict the fact or ask again; a reply that does both counts for both."""
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
