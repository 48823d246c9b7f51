"""Latency of the complete house system: python bench/house.py [SYSTEM]

Times everything from listening and planning to writing and choosing: the first words of `stream()` and a whole
`reply()`, on contexts of EmpatheticDialogues' test split, or of the shipped corpus if that is not available. The output
has the median and the 90th percentile. On a machine with other load, OMP_NUM_THREADS=1 and --busy give comparable
times.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

import torch

from listenwell.commands.experiment import some_items
from listenwell.data.dialogue import Dialogue
from listenwell.loading import load
from listenwell.systems.house.system import House

Clock = Callable[[], float]


def contexts(number: int) -> tuple[str, list[Dialogue]]:
    """`number` contexts, taken evenly from a test split, and the name of its source."""
    for source in ("empathetic-dialogues", "shipped"):
        try:
            items = some_items(source, "test", None, number)
        except FileNotFoundError as missing:
            print(f"{missing}; going on with the shipped corpus")
            continue
        return source, [Dialogue(item.id, item.context) for item in items]
    raise SystemExit("there is no corpus to take contexts from")


def first_words(bot: House, talk: Dialogue, clock: Clock) -> float:
    begun = clock()
    growing = bot.stream(talk)
    next(growing, None)
    taken = clock() - begun
    growing.close()
    return taken


def whole_reply(bot: House, talk: Dialogue, clock: Clock) -> float:
    begun = clock()
    bot.reply(talk)
    return clock() - begun


def summary(name: str, seconds: Sequence[float]) -> str:
    most = statistics.quantiles(seconds, n=10, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]
    return f"{name:22}{statistics.median(seconds):8.2f} s{most:16.2f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", nargs="?", default="house", help="the house system: its name, or a run of it")
    parser.add_argument("--contexts", type=int, default=100, help="how many are answered")
    parser.add_argument("--busy", action="store_true", help="count the processor's time, not the clock's")
    chosen = parser.parse_args()
    clock: Clock = time.process_time if chosen.busy else time.perf_counter
    bot = load(chosen.system, care=False)
    if not isinstance(bot, House):
        raise SystemExit(f"{chosen.system} is not the house system; bench/systems.py times others")
    source, talks = contexts(chosen.contexts)
    for measure in (first_words, whole_reply):  # warm-up: setup at the first reply is not counted
        measure(bot, talks[0], clock)
    streamed = [first_words(bot, talk, clock) for talk in talks]
    replied = [whole_reply(bot, talk, clock) for talk in talks]
    print(f"{chosen.system}, {torch.get_num_threads()} threads, written by {bot.writer.engine}")
    print(f"{len(talks)} contexts of {source}, test; {bot.decoding.signature()}")
    print(f"{'':22}{'median':>10}{'9 of 10 under':>18}")
    print(summary("stream: first words", streamed))
    print(summary("rerank: whole reply", replied))


if __name__ == "__main__":
    main()
