"""Whether a system cheers at bad news or repeats itself, over whole conversations: python bench/talk.py [SYSTEM]

The speaker's turns of conversations.yaml are said one after the other, and the system's own replies stand between them.
Printed are the conversations, to be read, how many replies are glad of a turn that its writer meant to be bad, and how
many have a sentence that was said before. The words are those that the vetoes look for: of the house system the counts
say whether the vetoes work, and reading alone says whether the replies are any good.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import yaml

from listenwell.loading import load
from listenwell.systems.house.vetoes import Sentence, cheers, repeats, split_sentences

CONVERSATIONS = Path(__file__).with_name("conversations.yaml")


def faults(mood: str, reply: str, earlier: list[str]) -> list[str]:
    """What is wrong with a reply to a turn of this mood."""
    sentences = [Sentence(text, "", 1.0) for text in split_sentences(reply)]  # by words, whatever a classifier says
    names = ["cheers"] if mood == "bad" and any(map(cheers, sentences)) else []
    return [*names, *(["repeats"] if repeats(reply, earlier) else [])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", nargs="?", default="house", help="a system: its name, or a run of it")
    bot = load(parser.parse_args().system)
    counts: Counter[str] = Counter()
    for conversation in yaml.safe_load(CONVERSATIONS.read_text(encoding="utf-8")):
        print(f"\n{conversation['name']}")
        said: list[str] = []
        for mood, text in conversation["turns"]:
            reply = bot.reply([*said, text]).text
            names = faults(mood, reply, said[1::2])
            print(f"  {text}  [{mood}]\n      {reply}" + (f"  [{', '.join(names)}]" if names else ""))
            counts.update([mood, "replies", *names])
            said += [text, reply]
    print(f"\ncheers at bad news: {counts['cheers']} of {counts['bad']}; repeats: {counts['repeats']} of", end=" ")
    print(counts["replies"])


if __name__ == "__main__":
    main()
