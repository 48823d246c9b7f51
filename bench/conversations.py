"""Whole conversations with a system, next to another's: python bench/conversations.py [SYSTEM] [--beside FILE]

The speaker's turns of conversations.yaml are given one after the other, with the system's own replies in between.
`--out FILE` saves the conversations as JSON lines; `--beside FILE` prints those of an earlier version or of another
system next to them. It counts replies that are cheerful about a turn written as bad news, that repeat a sentence said
before, that ask about what was just said, and that claim to have a life. The patterns are those of the vetoes: for the
house system, the counts show whether the vetoes work. Whether the replies are any good takes reading them.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import yaml

from listenwell.loading import load
from listenwell.systems.house.honesty import claims_a_life
from listenwell.systems.house.vetoes import Sentence, asks_again, cheers, repeats, split_sentences

CONVERSATIONS = Path(__file__).with_name("conversations.yaml")
COUNTED = ("cheers", "repeats", "asks again", "claims a life")


def faults(mood: str, reply: str, said: list[str]) -> list[str]:
    """The faults of a reply to a turn of this mood. `said` is the conversation so far, ending with that turn."""
    sentences = [Sentence(text, "", 1.0) for text in split_sentences(reply)]  # by words, without a classifier
    checks = (
        mood == "bad" and any(map(cheers, sentences)),
        repeats(reply, said[1::2]),
        asks_again(reply, said[0::2][-3:]),
        any(claims_a_life(sentence.text) for sentence in sentences),
    )
    return [name for name, applies in zip(COUNTED, checks, strict=True) if applies]


def converse(bot, turns: list[list[str]]) -> list[str]:
    """The system's replies, one per speaker turn."""
    said: list[str] = []
    for _, text in turns:
        said += [text, bot.reply([*said, text]).text]
    return said[1::2]


def show(conversation: dict, replies: list[str], beside: list[str] | None, counts: Counter[str]) -> None:
    print(f"\n{conversation['name']}")
    said: list[str] = []
    for place, ((mood, text), reply) in enumerate(zip(conversation["turns"], replies, strict=True)):
        said.append(text)
        names = faults(mood, reply, said)
        print(f"  {text}  [{mood}]\n      {reply}" + (f"  [{', '.join(names)}]" if names else ""))
        if beside is not None:
            print(f"    | {beside[place]}")
        counts.update([mood, "replies", *names])
        said.append(reply)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", nargs="?", default="house", help="a system: its name, or a run of it")
    parser.add_argument("--first", type=int, default=20, help="how many of the conversations")
    parser.add_argument("--out", type=Path, help="file to keep the conversations in")
    parser.add_argument("--beside", type=Path, help="file of an earlier version's conversations")
    chosen = parser.parse_args()
    bot, counts = load(chosen.system), Counter[str]()
    beside = {} if chosen.beside is None else dict(map(json.loads, chosen.beside.read_text("utf-8").splitlines()))
    kept = []
    for conversation in yaml.safe_load(CONVERSATIONS.read_text(encoding="utf-8"))[: chosen.first]:
        replies = converse(bot, conversation["turns"])
        show(conversation, replies, beside.get(conversation["name"]), counts)
        kept.append(json.dumps([conversation["name"], replies], ensure_ascii=False))
    if chosen.out is not None:
        chosen.out.write_text("\n".join(kept) + "\n", encoding="utf-8")
    print(f"\nof {counts['replies']} replies, {counts['bad']} of them to bad news: ", end="")
    print(", ".join(f"{name} {counts[name]}" for name in COUNTED))


if __name__ == "__main__":
    main()
