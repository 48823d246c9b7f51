"""Decoding speed, in one run: python bench/decoding.py [SYSTEM]

Prints greedy replies/s in batches, the median time of a single reply, beam search for comparison, and the ratio of
uncached to key-value-cached decoding time. Without a trained system, a random model of width 300 writes 15 words each
time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace

import torch
from torch import Tensor

from listenwell.checkpoint import Checkpoint
from listenwell.contract import State
from listenwell.data import sources
from listenwell.data.batching import EncodingConfig, collate, encode
from listenwell.data.dialogue import Dialogue, examples
from listenwell.decoding import Decoding, decode
from listenwell.loading import load
from listenwell.models.trs import LISTENER, Trs, TrsConfig
from listenwell.systems.bot import Bot
from listenwell.text import TextConfig, train_tokenizer
from listenwell.weights import shipped


class Uncached:
    """The same model without caches: every step reads the whole reply so far again."""

    def __init__(self, model: Trs) -> None:
        self.model = model

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        so_far = tokens[:, None] if state.moving is None else torch.cat([state.moving, tokens[:, None]], dim=1)
        hidden, _ = self.model.decoder(self.model.embed(so_far, torch.full_like(so_far, LISTENER)), state.fixed)
        return self.model.words.logits(hidden[:, -1]), State(state.beliefs, state.fixed, so_far, state.length + 1)


def contexts(count: int) -> tuple[str, list[Dialogue]]:
    source = "empathetic-dialogues"
    try:
        dialogues = list(sources.read(source, split="test"))
    except FileNotFoundError:
        source, dialogues = "shipped", list(sources.read("shipped"))
    return source, [Dialogue(item.id, item.context) for d in dialogues for item in examples(d)][:count]


def random_bot() -> Bot:
    texts = [turn.text for dialogue in sources.read("shipped") for turn in dialogue.turns]
    tokenizer = train_tokenizer([*texts, *(f"word{n}" for n in range(20_000))], TextConfig())
    model = Trs(TrsConfig(emotion=True), tokenizer.vocabulary)
    return Bot(Checkpoint("random", model, tokenizer, decoding=Decoding(min_length=15, max_length=15)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", nargs="?", default="multi-trs", help="a trained system by name or folder")
    parser.add_argument("--replies", type=int, default=512, help="how many to write in batches")
    chosen = parser.parse_args()
    torch.manual_seed(0)
    known = chosen.system in shipped() or chosen.system != "multi-trs"
    bot = load(chosen.system) if known else random_bot()
    bot.decoding = replace(bot.decoding, method="greedy", candidates=1, block_ngrams=0)
    source, talks = contexts(chosen.replies)
    bot.replies(talks[:8])  # the first call allocates memory and is not counted
    begun = time.perf_counter()
    replies = bot.replies(talks)
    rate = len(replies) / (time.perf_counter() - begun)
    length = statistics.mean(len(reply.text.split()) for reply in replies)
    print(f"{bot.name}, {bot.model.config.width} wide, {source}, {length:.1f} words a reply")  # type: ignore[union-attr]
    print(f"greedy, in batches       {rate:7.1f} replies/s")
    print(f"greedy, one at a time    {1000 * one_at_a_time(bot, talks[:40]):7.1f} ms median")
    beam = bot.with_decoding(method="beam")
    begun = time.perf_counter()
    beam.replies(talks[: len(talks) // 4])
    print(
        f"beam {beam.decoding.beams}, in batches       {len(talks) // 4 / (time.perf_counter() - begun):7.1f} replies/s"
    )
    cached, uncached = rounds(bot, talks[:64])
    print(f"uncached / cached time   {uncached / cached:7.2f}")


def one_at_a_time(bot: Bot, talks: list[Dialogue]) -> float:
    times = []
    for talk in talks:
        begun = time.perf_counter()
        bot.reply(talk)
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def rounds(bot: Bot, talks: list[Dialogue]) -> tuple[float, float]:
    """Seconds to decode the same batch to 40 tokens with and without caches, alternating; the best of three each."""
    data = encode(as_examples(talks), bot.tokenizer, EncodingConfig())
    batch = collate(data, range(len(data)), bot.tokenizer.pad)
    options = Decoding(max_length=40, min_length=40)
    ends = {"start": bot.tokenizer.start, "end": bot.tokenizer.end, "banned": bot.tokenizer.banned}
    best = [float("inf"), float("inf")]
    for _ in range(3):
        for index, model in enumerate((bot.model, Uncached(bot.model))):  # type: ignore[arg-type]
            with torch.inference_mode():
                state = bot.model.understand(batch)
                begun = time.perf_counter()
                decode(model, state, options, **ends)
                best[index] = min(best[index], time.perf_counter() - begun)
    return best[0], best[1]


def as_examples(talks: list[Dialogue]):
    from listenwell.data.dialogue import Example

    return [Example(talk.id, talk.turns) for talk in talks]


if __name__ == "__main__":
    main()
