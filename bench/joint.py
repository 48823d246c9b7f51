"""Training speed of BERT (JT) and the other rows of its table, and the gain from its decoder: python bench/joint.py

Trains each recipe's model with fresh weights, in its last stage (or its first, --stage 0), with the same parameters
frozen as there. All take turns on the same examples of EmpatheticDialogues, or of the shipped corpus if that is not
available. `stepwise` is bert-joint-cpu trained one decoding step at a time, with torch's own gradients and logits over
the vocabulary at padded positions too. The second table has its decoder alone, forward and backward, from the encoded
context and the words of the reply, because the pretrained encoder, which is the same for both, would hide the gain.

Times are wall-clock times: run it on an idle machine.
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

from listenwell.contract import Model, Moment, WordPrior
from listenwell.data import sources
from listenwell.data.batching import Batch, collate, encode, epoch_batches
from listenwell.data.dialogue import Dialogue, examples
from listenwell.layers.cpu import keep_freed_memory
from listenwell.layers.loss import packed_cross_entropy
from listenwell.models import build
from listenwell.models.bert_joint import BertJoint
from listenwell.text import train_tokenizer, words
from listenwell.training import load_recipe
from listenwell.training.optimizers import OptimizerSet

ROWS = ("multi-trs", "bert-joint-cpu", "bilstm-joint-cpu", "bilstm-attn-joint-cpu", "emo-prepend-cpu")


def loss(model: Model, batch: Batch) -> Tensor:
    terms = model.objective("likelihood", batch, Moment())
    return torch.stack([term.mean for term in terms.values() if term.learned]).sum()


def stepwise(model: Model, batch: Batch) -> Tensor:
    """The same loss, implemented naively."""
    assert batch.reply is not None
    assert batch.emotion is not None
    state, logits = model.understand(batch), []
    for token in batch.reply.shifted(model.vocabulary.start).T:
        step_logits, state = model.step(token, state)
        logits.append(step_logits)
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
        self.optimizer_set = OptimizerSet(self.model.train(), recipe.stages[stage].optimizers)
        self.optimizer_set.activate("main")
        items = [item for dialogue in dialogues for item in examples(dialogue)]
        data = [
            encode([items[place] for place in some], self.tokenizer, recipe.encoding, cut_replies=True)
            for some in places
        ]
        self.batches = [collate(encoded, range(len(encoded)), self.tokenizer.pad) for encoded in data]

    def train(self, begin: int, end: int, objective: Callable[[Model, Batch], Tensor]) -> float:
        """Examples per second."""
        begun, seen = time.perf_counter(), 0
        for batch in self.batches[begin:end]:
            objective(self.model, batch).backward()
            self.optimizer_set.step("main", 1, 0.0)
            seen += len(batch)
        return seen / (time.perf_counter() - begun)


class Decoder:
    """The decoder of a row's model on the row's batches. Its inputs are computed once and not timed."""

    def __init__(self, row: Row) -> None:
        assert isinstance(row.model, BertJoint)
        self.model, self.batches = row.model, row.batches
        with torch.no_grad():
            self.encoded = [self._hear(batch) for batch in row.batches]

    def _hear(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """The embedded words of the reply, the memory, and the initial state."""
        assert batch.reply is not None
        words = self.model.embed(batch.reply.shifted(self.model.vocabulary.start), batch.reply.roles)
        return words, *self.model.read(batch, self.model.feel(batch))

    def fused(self, place: int, choice: bool) -> Tensor:
        context, reply = self.batches[place].context, self.batches[place].reply
        assert context is not None
        assert reply is not None
        words, memory, start = self._given(place)
        said = self.model.decoder(words, memory, context.mask, start)
        if not choice:
            return said.square().mean()
        table, targets = self.model.words, reply.tokens[reply.mask]
        loss, _ = packed_cross_entropy(table.query(said[reply.mask]), table.choices, table.bias, targets)
        return loss / len(targets)

    def stepwise(self, place: int, choice: bool) -> Tensor:
        """The same, implemented naively."""
        context, reply = self.batches[place].context, self.batches[place].reply
        assert context is not None
        assert reply is not None
        words, memory, start = self._given(place)
        decoder, each = self.model.decoder, []
        keys, at = decoder.attention(memory), decoder.start(start)
        for word in words.unbind(dim=1):
            at = decoder.step(word, memory, keys, context.mask, at)
            each.append(at.fed)
        said = torch.stack(each, dim=1)
        if not choice:
            return said.square().mean()
        targets = reply.tokens.masked_fill(~reply.mask, -100)
        return F.cross_entropy(self.model.words.logits(said).flatten(0, 1), targets.flatten(), ignore_index=-100)

    def _given(self, place: int) -> tuple[Tensor, ...]:
        return tuple(tensor.detach().requires_grad_() for tensor in self.encoded[place])

    def train(self, begin: int, end: int, way: Callable[[int, bool], Tensor], choice: bool) -> float:
        """Examples per second; no weights are updated."""
        begun, seen = time.perf_counter(), 0
        for place in range(begin, end):
            way(place, choice).backward()
            self.model.zero_grad(set_to_none=True)
            seen += len(self.batches[place])
        return seen / (time.perf_counter() - begun)


def choose(dialogues: list[Dialogue], examples_each: int, count: int) -> list[np.ndarray]:
    """Some batches of an epoch as training makes them, by length in words: the same examples for all rows."""
    items = (item for dialogue in dialogues for item in examples(dialogue))
    lengths = [
        (sum(len(words(turn.text)) for turn in item.context), len(words(item.reply.text if item.reply else "")))
        for item in items
    ]
    return epoch_batches(np.array(lengths), examples=examples_each, tokens=0, seed=0, epoch=0)[:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=16, help="examples in a batch")
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
    decoder = Decoder(rows["bert-joint-cpu"][0])
    ways = [(name, choice) for choice in (False, True) for name in ("stepwise", "fused")]
    alone: dict[tuple[str, bool], list[float]] = {way: [] for way in ways}
    for turn in range(chosen.turns):
        begin = turn * chosen.batches
        for name, (row, objective) in rows.items():
            row.train(begin, begin + 1, objective)  # allocates memory and is not counted
            speeds[name].append(row.train(begin, begin + chosen.batches, objective))
        for name, choice in ways:
            way = getattr(decoder, name)
            decoder.train(begin, begin + 1, way, choice)
            alone[name, choice].append(decoder.train(begin, begin + chosen.batches, way, choice))
    base = statistics.median(speeds[ROWS[0]])
    print(f"batch {chosen.batch}, {torch.get_num_threads()} threads, stage {chosen.stage}")
    print(f"{'row':<24}{'parameters':>12}{'examples/s':>12}{'ratio':>8}")
    for name, (row, _) in rows.items():
        size, speed = sum(p.numel() for p in row.model.parameters()) / 1e6, statistics.median(speeds[name])
        print(f"{name:<24}{size:>10.1f} M{speed:>12.1f}{speed / base:>8.2f}")
    print(f"\n{'the decoder alone':<36}{'examples/s':>12}{'ratio':>8}")
    for name, choice in ways:
        speed, slow = (statistics.median(alone[one, choice]) for one in (name, "stepwise"))
        print(f"{name + (' and the choice of words' if choice else ''):<36}{speed:>12.1f}{speed / slow:>8.2f}")


if __name__ == "__main__":
    main()
