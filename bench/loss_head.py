"""The loss head over the vocabulary, packed against plain: python bench/loss_head.py [--words 18983] [--positions 560]

Plain is the usual way: a linear layer, then cross-entropy, which keep the logits of the whole batch and their gradient.
Packed is `listenwell.layers.loss`. Both run forward and backward, alternating in one process, in float32 and as in
training with bf16 (plain under autocast, whose cross-entropy is in float32). The output has the median times and their
ratio.
"""

from __future__ import annotations

import argparse
import time
from statistics import median

import torch
from rich.console import Console
from torch.nn import functional as F

from listenwell.commands.display import table
from listenwell.layers.loss import packed_cross_entropy


def plain(hidden, words, bias, targets):
    return F.cross_entropy(F.linear(hidden, words, bias).float(), targets, reduction="sum")


def packed(hidden, words, bias, targets):
    return packed_cross_entropy(hidden, words, bias, targets)[0]


def timed(head, inputs, targets, half: bool) -> float:
    for tensor in inputs:
        tensor.grad = None
    begun = time.perf_counter()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
        loss = head(*inputs, targets)
    loss.backward()
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=18_983, help="size of the vocabulary")
    parser.add_argument("--width", type=int, default=100, help="of the word table")
    parser.add_argument("--positions", type=int, nargs="+", default=[224, 560, 2240], help="real tokens of a batch")
    parser.add_argument("--rounds", type=int, default=9)
    chosen = parser.parse_args()
    torch.manual_seed(0)
    rows = []
    for positions in chosen.positions:
        hidden = torch.randn(positions, chosen.width).requires_grad_()
        words = (0.1 * torch.randn(chosen.words, chosen.width)).requires_grad_()
        bias = torch.zeros(chosen.words).requires_grad_()
        targets = torch.randint(0, chosen.words, (positions,))
        for half in (False, True):
            times: dict = {plain: [], packed: []}
            for round_ in range(chosen.rounds + 1):
                for head, found in times.items():
                    seconds = timed(head, (hidden, words, bias), targets, half)
                    found += [seconds] if round_ else []  # the first runs allocate memory
            one, other = (1000 * median(times[head]) for head in (plain, packed))
            name = "bf16" if half else "float32"
            rows.append((f"{positions:,}", name, f"{one:.0f}", f"{other:.0f}", f"{one / other:.2f}"))
    columns = ("positions", "precision", "plain (ms)", "packed (ms)", "times as fast")
    Console().print(
        table(f"{chosen.words:,} words, {torch.get_num_threads()} threads", columns, rows, right=columns[2:])
    )


if __name__ == "__main__":
    main()
