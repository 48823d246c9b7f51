"""Memory use of the house system: python bench/memory.py [SYSTEM] [--before STEADY PEAK]

Prints resident memory after loading the libraries, after loading the system, after its first reply and after some more,
with the peak so far, in megabytes; and the memory of the system itself, without the libraries. `--before` takes the
steady and peak numbers of an earlier run and prints the ratios to them. Linux only: it reads /proc.
"""

from __future__ import annotations

import argparse
from pathlib import Path

TURNS = ("I lost my job today", "My sister is getting married!", "I cannot sleep, and I do not know why.")


def resident() -> tuple[int, int]:
    """Current and peak resident memory in megabytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    said = dict(line.split(":", 1) for line in lines if ":" in line)
    now, most = (int(said[key].split()[0]) // 1024 for key in ("VmRSS", "VmHWM"))
    return now, most


def tell(stage: str) -> tuple[int, int]:
    now, most = resident()
    print(f"{stage:24}{now:8,} MB{most:8,} MB at most")
    return now, most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", nargs="?", default="house", help="a system: its name, or a run of it")
    parser.add_argument("--before", nargs=2, type=int, metavar=("STEADY", "PEAK"), help="megabytes of an earlier run")
    chosen = parser.parse_args()
    tell("Python")
    import peft  # noqa: F401
    from transformers import LlamaForCausalLM  # noqa: F401

    from listenwell.loading import load

    libraries, _ = tell("libraries")
    bot = load(chosen.system)
    tell("system loaded")
    bot.reply(TURNS[0])
    tell("first reply")
    for turn in TURNS * 4:
        bot.reply(turn)
    steady, peak = tell("twelve more")
    print(f"the system itself: {steady - libraries:,} MB")
    if chosen.before:
        print(f"to before: steady {steady / chosen.before[0]:.2f}, peak {peak / chosen.before[1]:.2f}")


if __name__ == "__main__":
    main()
