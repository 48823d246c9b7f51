"""Hardware utilization of a training step, in one run: python bench/training.py

Prints the machine's peak matrix-multiply rate, examples/s of a model of MIME's size (18M parameters, 24,000 words) with
the packed loss head and with the plain one (all padded positions projected, logits kept), and the share of the peak
that each reaches, counting only real positions.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from torch.nn import functional as F

from listenwell.contract import Moment, Vocabulary
from listenwell.data import sources
from listenwell.data.batching import Batch, EncodingConfig, collate, encode, epoch_batches
from listenwell.data.dialogue import examples
from listenwell.layers.cpu import keep_freed_memory
from listenwell.models.trs import Trs, TrsConfig
from listenwell.text import TextConfig, train_tokenizer

WORDS = 24_000


def peak(seconds: float = 1.0) -> float:
    """The best rate over several shapes, in GFLOPS."""
    best = 0.0
    for m, k, n in ((2048, 2048, 2048), (1024, 300, 1200), (512, 300, 24_000)):
        a, b = torch.randn(m, k), torch.randn(k, n)
        a @ b
        begun, runs = time.perf_counter(), 0
        while time.perf_counter() - begun < seconds:
            a @ b
            runs += 1
        best = max(best, 2 * m * k * n * runs / (time.perf_counter() - begun) / 1e9)
    return best


def flops(model: Trs, lengths: np.ndarray) -> float:
    """FLOPs of all matrix products in the forward and backward pass, on real positions only."""
    config = model.config
    width, inner, table = config.width, config.feed_forward, config.word_width or config.width
    context, reply = lengths[:, 0].sum(), lengths[:, 1].sum()
    encoder = config.encoder_layers * (4 * width**2 + 2 * width * inner)
    decoder = config.decoder_layers * (6 * width**2 + 2 * width * inner)
    memory = config.decoder_layers * 2 * width**2
    squares = (lengths[:, 0] ** 2).sum() * config.encoder_layers + (lengths[:, 1] ** 2).sum() * config.decoder_layers
    squares += (lengths[:, 0] * lengths[:, 1]).sum() * config.decoder_layers
    attention = 2 * width * squares
    return 6.0 * (context * (encoder + memory) + reply * (decoder + table * WORDS) + attention)


def plain_loss(model: Trs, batch: Batch) -> torch.Tensor:
    """The loss without the packed head."""
    state = model.understand(batch)
    hidden, _ = model.decoder(model.embed(batch.reply.shifted(model.vocabulary.start), batch.reply.roles), state.fixed)
    targets = batch.reply.tokens.masked_fill(~batch.reply.mask, -100)
    return F.cross_entropy(model.words.logits(hidden).flatten(0, 1), targets.flatten(), ignore_index=-100)


def packed_loss(model: Trs, batch: Batch) -> torch.Tensor:
    return model.objective("likelihood", batch, Moment())["reply"].mean


def measure(model: Trs, batches: list[Batch], loss, seconds: float) -> tuple[float, int, int]:
    """Seconds taken, number of batches, number of examples."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    done, seen, begun = 0, 0, time.perf_counter()
    for number, batch in enumerate(batches):
        if number == 3:  # the first steps allocate memory and are not counted
            done, seen, begun = 0, 0, time.perf_counter()
        loss(model, batch).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        done, seen = done + 1, seen + len(batch)
        if number > 3 and time.perf_counter() - begun > seconds:
            break
    return time.perf_counter() - begun, done, seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=32, help="examples in a batch")
    parser.add_argument("--seconds", type=float, default=20, help="to measure each way of training")
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
    lengths = data.lengths()
    batches = [
        collate(data, rows, tokenizer.pad)
        for rows in epoch_batches(lengths, examples=chosen.batch, tokens=0, seed=0, epoch=0)[:200]
    ]
    config = TrsConfig(encoder_layers=2, decoder_layers=1, tied=False)
    model = Trs(config, Vocabulary(WORDS))
    best = peak()
    speeds, rates = {}, {}
    for name, loss in (("packed head", packed_loss), ("plain head", plain_loss)):
        took, done, seen = measure(model, batches, loss, chosen.seconds)
        rows = [row for batch in batches[3 : 3 + done] for row in batch.rows]
        rates[name] = flops(model, lengths[rows]) / took / 1e9
        speeds[name] = seen / took
        best = max(best, peak())  # measured again, so that a moment of other load does not lower the peak in our favor
    print(f"matrix-multiply peak         {best:6.0f} GFLOPS on {torch.get_num_threads()} threads")
    size = sum(p.numel() for p in model.parameters()) / 1e6
    print(f"model                        {size:6.1f} M parameters, {WORDS:,} words, batch {chosen.batch}, {source}")
    for name, rate in rates.items():
        print(f"{name:<28} {speeds[name]:6.1f} examples/s, {rate:5.0f} GFLOPS: {100 * rate / best:.0f} % of peak")
    print(f"packed / plain               {speeds['packed head'] / speeds['plain head']:6.2f}")


if __name__ == "__main__":
    main()
