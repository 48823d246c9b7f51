"""How fast BERT (JT) and the rows beside it train, and what its decoder gains: python bench/joint.py

Each recipe's model with fresh weights, in its last stage (or its first, --stage 0): what stands still there stands
still here. All take turns on the same examples of EmpatheticDialogues, or of the shipped corpus where that is not
there. `stepwise` is bert-joint-cpu taught a step at a time, with torch's own gradients and a choice among all words at
padded positions too. Counted by the time of the processor, so that other work beside it tells less; with one thread
(OMP_NUM_THREADS=1) that is what an idle core would take.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from listenwell import sources
from listenwell.batching import Batch, collate, encode, epoch_batches
from listenwell.dialogue import Dialogue, examples
from listenwell.layers.machine import keep_freed_memory
from listenwell.models import build
from listenwell.models.contract import Model, Moment, WordPrior
from listenwell.text import train_tokenizer, words
from listenwell.training import load_recipe
from listenwell.training.optimizers import Learners

ROWS = ("multi-trs", "bert-joint-cpu", "bilstm-joint-cpu", "bilstm-attn-joint-cpu", "emo-prepend-cpu")


def loss(model: Model, batch: Batch) -> Tensor:
    terms = model.objective("likelihood", batch, Moment())
    return torch.stack([term.mean for term in terms.values() if term.learned]).sum()


def stepwise(model: Model, batch: Batch) -> Tensor:
    """The same loss, plainly."""
    assert batch.reply is not None
    assert batch.emotion is not None
    state, logits = model.understand(batch), []
    for token in batch.reply.shifted(model.vocabulary.start).T:
        found, state = model.step(token, state)
        logits.append(found)
    targets = batch.reply.tokens.masked_fill(~batch.reply.mask, -100)
    replies = F.cross_entropy(torch.stack(logits, dim=1).flatten(0, 1), targets.flatten(), ignore_index=-100)
    return replies + F.nll_loss(state.beliefs["emotion"], batch.emotion)


class Row:
    """A recipe's model in one of its stages, and its batches."""

    def __init__(self, name: str, stage: int, dialogues: list[Dialogue], places: list[np.ndarray]) -> None:
        recipe = load_recipe(name)
        self.tokenizer = train_tokenizer((turn.text for d in dialogues for turn in d.turns), recipe.text)
        choices = dict(recipe.model)
        self.model = build(choices.pop("name"), choices, self.tokenizer.vocabulary)
        self.model.initialise(WordPrior(torch.ones(len(self.tokenizer))))
        self.learners = Learners(self.model.train(), recipe.stages[stage].optimizers)
        self.learners.let_learn("main")
        items = [item for dialogue in dialogues for item in examples(dialogue)]
        data = [
            encode([items[place] for place in some], self.tokenizer, recipe.encoding, cut_replies=True)
            for some in places
        ]
        self.batches = [collate(encoded, range(len(encoded)), self.tokenizer.pad) for encoded in data]

    def train(self, begin: int, end: int, objective: Callable[[Model, Batch], Tensor]) -> float:
        """Examples a second."""
        begun, seen = time.process_time(), 0
        for batch in self.batches[begin:end]:
            objective(self.model, batch).backward()
            self.learners.step("main", 1, 0.0)
            seen += len(batch)
        return seen / (time.process_time() - begun)


def choose(dialogues: list[Dialogue], examples_each: int, count: int) -> list[np.ndarray]:
    """Some batches of an epoch as training makes them, by words: the same examples for all rows."""
    items = (item for dialogue in dialogues for item in examples(dialogue))
    lengths = [
        (sum(len(words(turn.text)) for turn in item.context), len(words(item.reply.text if item.reply else "")))
        for item in items
    ]
    return epoch_batches(np.array(lengths), examples=examples_each, tokens=0, seed=0, epoch=0)[:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=32, help="examples in a batch")
    parser.add_argument("--turns", type=int, default=3, help="how often each row takes its turn")
    parser.add_argument("--batches", type=int, default=4, help="batches of a turn")
    parser.add_argument("--stage", type=int, default=-1, help="which of a recipe's stages")
    chosen = parser.parse_args()
    keep_freed_memory()
    torch.manual_seed(0)
    try:
        dialogues = list(sources.read("empathetic-dialogues", split="train"))
    except FileNotFoundError:
        dialogues = list(sources.read("shipped"))
    places = choose(dialogues, chosen.batch, chosen.turns * chosen.batches)
    rows = {name: (Row(name, chosen.stage, dialogues, places), loss) for name in ROWS}
    rows["stepwise"] = (Row("bert-joint-cpu", chosen.stage, dialogues, places), stepwise)
    speeds: dict[str, list[float]] = {name: [] for name in rows}
    for turn in range(chosen.turns):
        for name, (row, objective) in rows.items():
            begin = turn * chosen.batches
            row.train(begin, begin + 1, objective)  # takes memory, and is not counted
            speeds[name].append(row.train(begin, begin + chosen.batches, objective))
    base = statistics.median(speeds[ROWS[0]])
    print(f"batch {chosen.batch}, {torch.get_num_threads()} threads, stage {chosen.stage}")
    print(f"{'row':<24}{'parameters':>12}{'examples/s':>12}{'ratio':>8}")
    for name, (row, _) in rows.items():
        size, speed = sum(p.numel() for p in row.model.parameters()) / 1e6, statistics.median(speeds[name])
        print(f"{name:<24}{size:>10.1f} M{speed:>12.1f}{speed / base:>8.2f}")


if __name__ == "__main__":
    main()
