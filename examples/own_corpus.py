"""Train a small model on your own dialogues and score it: python examples/own_corpus.py FILE.jsonl RUN [CHANGE ...]

CHANGE is a change to the recipe, such as stages.0.epochs=2.
"""

import sys
from pathlib import Path

from listenwell import cli
from listenwell.training import load_recipe
from listenwell.training.run import train

corpus, run, *changes = sys.argv[1:]
train(load_recipe("tiny", [f"data.source={corpus}", *changes]), Path(run), quiet=True)
cli.main(["evaluate", run, "--data", corpus])
