"""Training speed of the house system's writer in full and in half precision, in one run: python bench/adapters.py

Trains the recipe's model on the same batches of EmpatheticDialogues, or of the shipped corpus if that is not available.
The two take turns, so that temporary load on the machine slows both.
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import islice

import torch

from listenwell.contract import Model, Moment, WordPrior
from listenwell.data import sources
from listenwell.data.batching import Batch, collate, encode, epoch_batches
from listenwell.data.dialogue import examples
from listenwell.layers.cpu import keep_freed_memory
from listenwell.models import build
from listenwell.text import backbone_tokenizer
from listenwell.training import load_recipe

PRECISIONS = {"float32": False, "bf16": True}


def train(model: Model, batches: list[Batch], bf16: bool, options: dict) -> tuple[float, float]:
    """Examples per second, and the loss per word, which should hardly differ between precisions."""
    begun, seen, total, words = time.perf_counter(), 0, 0.0, 0.0
    for batch in batches:
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            term = model.objective("likelihood", batch, Moment(), **options)["reply"]
        term.mean.backward()
        model.zero_grad(set_to_none=True)
        seen, total, words = seen + len(batch), total + float(term.total.detach()), words + term.count
    return seen / (time.perf_counter() - begun), total / words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3, help="how often each precision takes its turn")
    parser.add_argument("--batches", type=int, default=6, help="batches of a turn")
    chosen = parser.parse_args()
    keep_freed_memory()
    torch.manual_seed(0)
    recipe = load_recipe("house")
    tokenizer = backbone_tokenizer(recipe.text.backbone)
    source = "empathetic-dialogues"
    try:
        dialogues = list(islice(sources.read(source, split="train"), 2000))
    except FileNotFoundError:
        source, dialogues = "shipped", list(sources.read("shipped"))
    data = encode((item for d in dialogues for item in examples(d)), tokenizer, recipe.encoding, cut_replies=True)
    stage = recipe.stages[0]
    size = stage.streams[stage.moves[0].stream].examples
    order = epoch_batches(data.lengths(), examples=size, tokens=0, seed=0, epoch=0)
    batches = [collate(data, rows, tokenizer.pad) for rows in order[: chosen.turns * chosen.batches]]
    choices = dict(recipe.model)
    model = build(choices.pop("name"), choices, tokenizer.vocabulary)
    model.initialise(WordPrior(torch.ones(len(tokenizer))))
    model.train()
    speeds: dict[str, list[float]] = {name: [] for name in PRECISIONS}
    losses: dict[str, list[float]] = {name: [] for name in PRECISIONS}
    for turn in range(chosen.turns):
        part = batches[turn * chosen.batches : (turn + 1) * chosen.batches]
        for name, bf16 in PRECISIONS.items():
            if not turn:
                train(model, part[:1], bf16, stage.moves[0].options)  # warm-up step: not counted
            speed, loss = train(model, part, bf16, stage.moves[0].options)
            speeds[name].append(speed)
            losses[name].append(loss)
    print(f"{source}, batches of {size}, {torch.get_num_threads()} threads")
    base = statistics.median(speeds["float32"])
    for name, rates in speeds.items():
        speed = statistics.median(rates)
        print(f"{name:<10}{speed:>8.2f} examples/s{speed / base:>8.2f}   loss {statistics.mean(losses[name]):.4f}")


if __name__ == "__main__":
    main()
