"""Training and reply speed of each system relative to the multi-task transformer, in one run: python bench/systems.py

Each system is built from its recipe (with fresh weights) and run on the same batches of EmpatheticDialogues, or of the
shipped corpus if that is not available. The systems take turns, so that temporary load on the machine slows all of
them.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from listenwell.contract import Model, Moment, WordPrior
from listenwell.data import sources
from listenwell.data.batching import Batch, EncodingConfig, collate, encode, epoch_batches
from listenwell.data.dialogue import examples
from listenwell.decoding import Decoding, decode
from listenwell.layers.cpu import keep_freed_memory
from listenwell.models import build
from listenwell.text import TextConfig, Tokenizer, train_tokenizer
from listenwell.training import load_recipe

SYSTEMS = ("multi-trs", "trs", "mime", "moel", "empdg")


def fresh(name: str, tokenizer: Tokenizer) -> tuple[Model, dict]:
    """The recipe's model, and the options of its last likelihood move."""
    recipe = load_recipe(name)
    choices = dict(recipe.model)
    model = build(choices.pop("name"), choices, tokenizer.vocabulary)
    size = len(tokenizer)
    model.initialise(WordPrior(torch.ones(size), emotional=torch.rand(size) < 0.1))
    likelihood = [move for stage in recipe.stages for move in stage.moves if move.objective == "likelihood"]
    return model, likelihood[-1].options


def train(model: Model, optimizer: torch.optim.Optimizer, batches: list[Batch], options: dict) -> float:
    """Examples per second."""
    model.train()
    begun, seen = time.perf_counter(), 0
    for batch in batches:
        terms = model.objective("likelihood", batch, Moment(), **options)
        sum(term.mean for term in terms.values() if term.learned).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seen += len(batch)
    return seen / (time.perf_counter() - begun)


@torch.inference_mode()
def reply(model: Model, batches: list[Batch], tokenizer: Tokenizer, length: int) -> float:
    """Median milliseconds of a single greedy reply of `length` tokens."""
    model.eval()
    options, took = Decoding(min_length=length, max_length=length), []
    ends = {"start": tokenizer.start, "end": tokenizer.end, "banned": tokenizer.banned}
    for batch in batches:
        alone = batch.select(torch.zeros(1, dtype=torch.long))
        begun = time.perf_counter()
        decode(model, model.understand(alone), options, **ends)
        took.append(1000 * (time.perf_counter() - begun))
    return statistics.median(took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=16, help="examples in a batch")
    parser.add_argument("--turns", type=int, default=4, help="how often each system takes its turn")
    parser.add_argument("--batches", type=int, default=25, help="batches of a turn")
    chosen = parser.parse_args()
    keep_freed_memory()
    torch.manual_seed(0)
    source = "empathetic-dialogues"
    try:
        dialogues = list(sources.read(source, split="train"))
    except FileNotFoundError:
        source, dialogues = "shipped", list(sources.read("shipped"))
    tokenizer = train_tokenizer((turn.text for d in dialogues for turn in d.turns), TextConfig())
    data = encode((item for d in dialogues for item in examples(d)), tokenizer, EncodingConfig(), cut_replies=True)
    order = epoch_batches(data.lengths(), examples=chosen.batch, tokens=0, seed=0, epoch=0)
    batches = [collate(data, rows, tokenizer.pad) for rows in order[: chosen.turns * chosen.batches]]
    models = {name: fresh(name, tokenizer) for name in SYSTEMS}
    optimizers = {name: torch.optim.AdamW(model.parameters(), 1e-4, fused=True) for name, (model, _) in models.items()}
    speeds: dict[str, list[float]] = {name: [] for name in SYSTEMS}
    waits: dict[str, list[float]] = {name: [] for name in SYSTEMS}
    for turn in range(chosen.turns):
        part = batches[turn * chosen.batches : (turn + 1) * chosen.batches]
        for name, (model, options) in models.items():
            if not turn:
                train(model, optimizers[name], part[:3], options)  # the first steps allocate memory and are not counted
            speeds[name].append(train(model, optimizers[name], part, options))
            waits[name].append(reply(model, part[:10], tokenizer, length=12))
    print(f"{source}, {len(tokenizer):,} words, batch {chosen.batch}, {torch.get_num_threads()} threads")
    print(f"{'system':<12}{'parameters':>12}{'examples/s':>12}{'ratio':>8}{'reply of 12 words':>20}")
    base = statistics.median(speeds[SYSTEMS[0]])
    for name, (model, _) in models.items():
        size = sum(p.numel() for p in model.parameters()) / 1e6
        speed = statistics.median(speeds[name])
        wait = statistics.median(waits[name])
        print(f"{name:<12}{size:>10.1f} M{speed:>12.1f}{speed / base:>8.2f}{wait:>17.1f} ms")


if __name__ == "__main__":
    main()
