"""Score two systems on the same dialogues and compare them: python examples/compare.py SYSTEM SYSTEM [ITEMS]

Differences come with a paired test, since both systems reply to the same contexts.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from listenwell import cli

first, second, *items = sys.argv[1:]
some = ["--data", "shipped", "--items", items[0] if items else "100", "--metrics", "bleu-4,distinct-1,perplexity-word"]
with TemporaryDirectory() as folder:
    places = [str(Path(folder) / name) for name in ("first", "second")]
    for system, place in zip((first, second), places, strict=True):
        cli.main(["evaluate", system, *some, "--out", place])
    cli.main(["compare", *places])
