"""A training step and a reply of MIME, ours compared with the way of the public code: python bench/against_public.py

The other side is reimplemented here from a description of that code, without optimizations: width 300, separate input
and output embeddings of 24,000 words, two heads with 40 dimensions in total, feed-forward width 50, one layer each;
unsorted batches of 16, every padded position projected to the vocabulary, a Python loop that splits emotions by
polarity, Adam with default settings, and no cache: each decoding step reads the whole reply so far again.

Ours has the same sizes and batches. Both take turns, batch by batch, in one process; the output has medians and their
ratio. Reply lengths are fixed, so that both write the same number of words.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch import Tensor, nn
from torch.nn import functional as F

from listenwell.checkpoint import Checkpoint
from listenwell.commands.display import table
from listenwell.contract import Batch, Moment, Vocabulary
from listenwell.data import sources
from listenwell.data.batching import Encoded, EncodingConfig, collate, encode, epoch_batches
from listenwell.data.dialogue import Dialogue, examples
from listenwell.decoding import Decoding, decode
from listenwell.labels.taxonomy import EMOTIONS, POSITIVE
from listenwell.layers.cpu import keep_freed_memory
from listenwell.layers.transformer import sinusoids
from listenwell.models.mime import Mime, MimeConfig
from listenwell.systems.bot import Bot
from listenwell.text import TextConfig, Tokenizer, train_tokenizer

WORDS, WIDTH, BATCH = 24_000, 300, 16
DEPTH, HEADS, FILTER = 40, 2, 50


class PlainAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, DEPTH, bias=False) for _ in range(3))
        self.out = nn.Linear(DEPTH, WIDTH, bias=False)

    def forward(self, x: Tensor, memory: Tensor, hidden: Tensor) -> Tensor:
        """`hidden` is True at masked positions."""
        query, key, value = (
            layer(side).view(*side.shape[:2], HEADS, -1).permute(0, 2, 1, 3)
            for layer, side in ((self.query, x), (self.key, memory), (self.value, memory))
        )
        scores = query * (DEPTH // HEADS) ** -0.5 @ key.permute(0, 1, 3, 2)
        weights = torch.softmax(scores.masked_fill(hidden[:, None], -1e18), dim=-1)
        return self.out((weights @ value).permute(0, 2, 1, 3).reshape(*x.shape[:2], DEPTH))


class PlainLayer(nn.Module):
    def __init__(self, reads_memory: bool = False) -> None:
        super().__init__()
        self.attention, self.across = PlainAttention(), PlainAttention() if reads_memory else None
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.up, self.down = nn.Linear(WIDTH, FILTER), nn.Linear(FILTER, WIDTH)

    def forward(self, x: Tensor, hidden: Tensor, memory: Tensor | None = None, unseen: Tensor | None = None) -> Tensor:
        normed = self.norms[0](x)
        x = x + self.attention(normed, normed, hidden)
        if self.across is not None and memory is not None and unseen is not None:
            x = x + self.across(self.norms[1](x), memory, unseen)
        return x + self.down(F.relu(self.up(self.norms[2](x))))


class PlainGroup(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.inner, self.mean, self.spread = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.joined, self.mean_seen, self.spread_seen = (nn.Linear(w, WIDTH) for w in (2 * WIDTH, WIDTH, WIDTH))
        self.weigh = nn.Linear(WIDTH, size)

    def mixed(self, mean: Tensor, spread: Tensor, rows: Tensor) -> Tensor:
        return torch.softmax(self.weigh(mean + torch.randn_like(mean) * torch.exp(0.5 * spread)), dim=-1) @ rows

    def forward(self, summary: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        inner = F.relu(self.inner(summary))
        mean, spread = self.mean(inner), self.spread(inner)
        seen = F.relu(self.joined(torch.cat([summary, self.mixed(mean, spread, rows)], dim=-1)))
        mean_seen, spread_seen = self.mean_seen(seen), self.spread_seen(seen)
        distance = (mean_seen - mean).pow(2) / spread.exp()
        kl = 0.5 * (spread - spread_seen + (spread_seen - spread).exp() + distance - 1)
        return self.mixed(mean_seen, spread_seen, rows), kl.sum(dim=-1).mean()


class PlainMime(nn.Module):
    def __init__(self, pad: int, start: int) -> None:
        super().__init__()
        self.pad, self.start = pad, start
        self.words, self.speakers = nn.Embedding(WORDS, WIDTH, padding_idx=pad), nn.Embedding(3, WIDTH)
        self.encoder, self.decoder = PlainLayer(), PlainLayer(reads_memory=True)
        self.emotions, self.match = nn.Embedding(len(EMOTIONS), WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.positive = [index for index, name in enumerate(EMOTIONS) if name in POSITIVE]
        self.negative = [index for index, name in enumerate(EMOTIONS) if name not in POSITIVE]
        self.groups = nn.ModuleList(PlainGroup(len(ids)) for ids in (self.positive, self.negative))
        self.joins = nn.ModuleList(nn.Linear(2 * WIDTH, WIDTH) for _ in range(2))
        self.readers = nn.ModuleList(PlainLayer() for _ in range(2))  # one per polarity
        self.gate, self.fusion = nn.Linear(2 * WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.choose = nn.Linear(WIDTH, WORDS)

    def embed(self, tokens: Tensor, roles: Tensor) -> Tensor:
        return self.words(tokens) + sinusoids(tokens.shape[1], WIDTH, tokens.device) + self.speakers(roles)

    def read(self, batch: Batch, emotions: list[int] | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The decoder's memory, its mask, the emotion logits, and the KL divergence."""
        assert batch.context is not None
        unseen = batch.context.tokens.eq(self.pad)[:, None]
        context = self.encoder(self.embed(batch.context.tokens, batch.context.roles), unseen)
        summary = context[:, 0]
        scores = self.match(summary) @ self.emotions.weight.T
        chosen = scores.argmax(dim=-1).tolist() if emotions is None else emotions
        sides, kl = [], torch.zeros(())
        for group, ids in zip(self.groups, (self.positive, self.negative), strict=True):
            mixed, cost = group(summary, self.emotions.weight[ids])
            sides.append(mixed)
            kl = kl + cost
        same, other = [], []
        for row, emotion in enumerate(chosen):  # the loop over the batch
            ours, theirs = (0, 1) if emotion in self.positive else (1, 0)
            same.append(sides[ours][row])
            other.append(sides[theirs][row])
        read = []
        for join, reader, rows in zip(self.joins, self.readers, (same, other), strict=True):
            beside = torch.stack(rows)[:, None].expand_as(context)
            read.append(reader(join(torch.cat([context, beside], dim=-1)), unseen))
        both = torch.cat(read, dim=-1)
        return self.fusion(torch.sigmoid(self.gate(both)) * both), unseen, scores, kl

    def log_probs(self, tokens: Tensor, roles: Tensor, memory: Tensor, unseen: Tensor) -> Tensor:
        later = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).triu(1)
        hidden = self.decoder(self.embed(tokens, roles), later.expand(len(tokens), -1, -1), memory, unseen)
        return torch.log_softmax(self.choose(hidden), dim=-1)

    def loss(self, batch: Batch) -> Tensor:
        assert batch.reply is not None
        assert batch.emotion is not None
        memory, unseen, scores, kl = self.read(batch, batch.emotion.tolist())
        tokens = batch.reply.tokens
        before = torch.cat([torch.full_like(tokens[:, :1], self.start), tokens[:, :-1]], dim=1)
        log_probs = self.log_probs(before, batch.reply.roles, memory, unseen)
        reply = F.nll_loss(log_probs.flatten(0, 1), tokens.flatten(), ignore_index=self.pad)
        return reply + F.cross_entropy(scores, batch.emotion) + kl

    @torch.no_grad()
    def greedy(self, batch: Batch, steps: int) -> Tensor:
        memory, unseen, _, _ = self.read(batch)
        written = torch.full((len(batch), 1), self.start)
        for _ in range(steps):
            log_probs = self.log_probs(written, torch.ones_like(written), memory, unseen)
            written = torch.cat([written, log_probs[:, -1].argmax(dim=-1)[:, None]], dim=1)
        return written[:, 1:]

    @torch.no_grad()
    def beam(self, batch: Batch, steps: int, beams: int = 5) -> Tensor:
        """Beam search for a single context."""
        memory, unseen, _, _ = self.read(batch)
        written, totals = torch.full((1, 1), self.start), torch.zeros(1)
        for _ in range(steps):
            size = len(written)
            many, dark = memory.expand(size, -1, -1), unseen.expand(size, -1, -1)
            log_probs = self.log_probs(written, torch.ones_like(written), many, dark)[:, -1]
            best = (totals[:, None] + log_probs).flatten().topk(beams)
            totals, rows = best.values, best.indices // WORDS
            written = torch.cat([written[rows], (best.indices % WORDS)[:, None]], dim=1)
        return written[:1, 1:]


Step = Callable[[Batch], Any]


def plain_step(model: PlainMime) -> Step:
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)

    def step(batch: Batch) -> None:
        optimizer.zero_grad()
        model.loss(batch).backward()
        optimizer.step()

    return step


def our_step(model: Mime, half: bool) -> Step:
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)

    def step(batch: Batch) -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            terms = model.objective("likelihood", batch, Moment())
        torch.stack([term.mean for term in terms.values() if term.learned]).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def our_reply(model: Mime, tokenizer: Tokenizer, **options: Any) -> Step:
    decoding = Decoding(**options)
    ends = {"start": tokenizer.start, "end": tokenizer.end, "banned": tokenizer.banned}

    def reply(batch: Batch) -> Any:
        with torch.inference_mode():
            return decode(model, model.understand(batch), decoding, **ends)

    return reply


def medians(ways: dict[str, Callable[[Any], Any]], inputs: list[Any], warm: int = 2) -> dict[str, float]:
    """Median milliseconds of each way. They take turns at every input, so that a slow moment affects all of them."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number, given in enumerate([*inputs[:warm], *inputs]):
        for name, do in ways.items():
            begun = time.perf_counter()
            do(given)
            if number >= warm:  # the first runs allocate memory
                times[name].append(1000 * (time.perf_counter() - begun))
    return {name: median(taken) for name, taken in times.items()}


def corpus() -> tuple[str, list[Dialogue]]:
    for source in ("empathetic-dialogues", "shipped"):
        try:
            return source, list(sources.read(source, split="train"))
        except FileNotFoundError:
            continue
    raise SystemExit("there is no corpus to read")


def in_order_and_sorted(data: Encoded, pad: int, count: int) -> dict[str, list[Batch]]:
    order = np.random.default_rng(0).permutation(len(data))[: BATCH * count].reshape(-1, BATCH)
    alike = epoch_batches(data.lengths(), examples=BATCH, tokens=0, seed=0, epoch=0)
    full = [rows for rows in alike if len(rows) == BATCH][:count]
    return {
        "batches as they come": [collate(data, rows, pad) for rows in order],
        "batches of like length": [collate(data, rows, pad) for rows in full],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=30, help="to learn from, of each kind")
    parser.add_argument("--contexts", type=int, default=12, help="to reply to, one at a time")
    chosen = parser.parse_args()
    keep_freed_memory()
    torch.manual_seed(0)
    source, dialogues = corpus()
    tokenizer = train_tokenizer((turn.text for d in dialogues for turn in d.turns), TextConfig())
    items = [item for d in dialogues for item in examples(d)]
    data = encode(items, tokenizer, EncodingConfig(), cut_replies=True)
    plain = PlainMime(tokenizer.pad, tokenizer.start)
    config = MimeConfig(width=WIDTH, heads=HEADS, attention_width=DEPTH, feed_forward=FILTER, tied=False)
    ours = Mime(config, Vocabulary(WORDS))
    rows = []
    steps = {
        "plain": plain_step(plain),
        "ours, float32": our_step(ours, half=False),
        "ours, bf16": our_step(ours, half=True),
    }
    for kind, batches in in_order_and_sorted(data, tokenizer.pad, chosen.batches).items():
        rows += compared(f"a training step, {kind}", medians(steps, batches))
    plain.eval()
    ours.eval()
    lone = [collate(data, [row], tokenizer.pad) for row in range(0, 40 * chosen.contexts, 40)]
    for count in (13, 50):
        fixed = {"min_length": count, "max_length": count}
        ways = {"plain": lambda batch, n=count: plain.greedy(batch, n), "ours": our_reply(ours, tokenizer, **fixed)}
        rows += compared(f"a greedy reply of {count} words", medians(ways, lone))
        beams = our_reply(ours, tokenizer, method="beam", beams=5, **fixed)
        ways = {"plain": lambda batch, n=count: plain.beam(batch, n), "ours": beams}
        rows += compared(f"beam 5, {count} words", medians(ways, lone))
    rows += whole_reply(ours, tokenizer, items, lone, chosen.contexts)
    columns = ("what", "way", "ms", "times as fast")
    title = f"{source}, {WORDS:,} words, {WIDTH} wide, batch {BATCH}, {torch.get_num_threads()} threads"
    Console().print(table(title, columns, rows, right=columns[2:]))


def compared(what: str, taken: dict[str, float]) -> list[tuple[str, ...]]:
    first = next(iter(taken.values()))
    return [
        (what if not index else "", name, f"{ms:.1f}", f"{first / ms:.2f}")
        for index, (name, ms) in enumerate(taken.items())
    ]


def whole_reply(
    model: Mime, tokenizer: Tokenizer, items: list[Any], lone: list[Batch], count: int
) -> list[tuple[str, ...]]:
    """`Bot.reply` from text to text, compared with encoding and decoding alone."""
    options: dict[str, Any] = {"min_length": 13, "max_length": 13}
    bot = Bot(Checkpoint("random", model, tokenizer, decoding=Decoding(**options)))
    talks = [Dialogue(str(row), items[row].context) for row in range(0, 40 * count, 40)]
    alone = our_reply(model, tokenizer, **options)
    pairs = list(zip(talks, lone, strict=True))
    taken = medians({"Bot.reply": lambda pair: bot.reply(pair[0]), "its decoding": lambda pair: alone(pair[1])}, pairs)
    return compared("the whole of a reply of 13 words", taken)


if __name__ == "__main__":
    main()
