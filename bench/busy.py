"""How much longer a reply takes while another program uses the cores: python bench/busy.py [SYSTEM]

The same contexts are answered twice, on the machine as it is and next to a program with two threads that multiply
matrices without a pause. The output has both medians and their ratio. The goal is at most 2.5: with fair shares, two
programs on the same cores each take twice as long. The first number is only meaningful on an idle machine, so the load
is printed too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import listenwell  # before torch: it sets how threads wait
from listenwell.layers.cpu import WAITING_BY_USER

import torch  # isort: skip

GOAL = 2.5

TEXTS = (
    "I lost my job today",
    "My dog died last night and I feel so alone",
    "I got the job!",
    "My neighbours play loud music every night",
    "Tomorrow is my first exam and I have not slept",
)

WORK = "import torch; torch.set_num_threads({threads}); a = torch.rand(700, 700); print(flush=True)\nwhile True: a @ a"


@contextmanager
def busy_program(threads: int) -> Iterator[None]:
    """Run another program in the background; it has started computing when the context is entered."""
    with subprocess.Popen([sys.executable, "-c", WORK.format(threads=threads)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        try:
            yield
        finally:
            other.kill()


def seconds_per_reply(bot: listenwell.Bot, texts: Sequence[str]) -> list[float]:
    taken = []
    for text in texts:
        begun = time.perf_counter()
        bot.reply([text])
        taken.append(time.perf_counter() - begun)
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", nargs="?", default="house", help="a system by name, or the folder of a run")
    parser.add_argument("--rounds", type=int, default=3, help="how often every text is answered")
    parser.add_argument("--threads", type=int, default=2, help="of the other program")
    chosen = parser.parse_args()
    bot = listenwell.load(chosen.system, care=False)
    texts = TEXTS * chosen.rounds
    seconds_per_reply(bot, TEXTS[:1])  # warm-up: setup at the first reply is not counted
    load = os.getloadavg()[0]
    idle = statistics.median(seconds_per_reply(bot, texts))
    with busy_program(chosen.threads):
        busy = statistics.median(seconds_per_reply(bot, texts))
    settings = " ".join(f"{name}={os.environ[name]}" for name in WAITING_BY_USER if name in os.environ)
    print(f"{chosen.system}, {torch.get_num_threads()} threads, {settings}; load before {load:.1f}")
    print(f"alone  {idle:6.2f} s per reply, median of {len(texts)}")
    print(f"busy   {busy:6.2f} s per reply, beside a program of {chosen.threads} threads")
    print(f"ratio  {busy / idle:6.2f} (goal: at most {GOAL})")
    return 0 if busy / idle <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
