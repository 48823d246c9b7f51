"""A quirk that needs a model: MIME's public code uses the gold emotion to choose the mimicking side when it computes
perplexity. The effect is measured here, separately from all scores, and only read by `quirks.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from listenwell.checkpoint import write_json
from listenwell.contract import Batch
from listenwell.data.dialogue import Example
from listenwell.evaluation.reproduce.quirks import GOLD, gold_emotion_file
from listenwell.loading import load
from listenwell.metrics.likelihood import of_likelihoods
from listenwell.models.mime import Mime
from listenwell.systems.bot import Bot


@contextmanager
def knowing_the_emotion(model: Mime, batch: Batch) -> Iterator[None]:
    """In this context, the model takes the speaker's polarity from the gold emotions of the batch."""

    def is_positive(believed: Tensor, gold: Tensor | None = None) -> Tensor:
        assert batch.emotion is not None
        draws = len(believed) // len(batch.emotion)  # each context is repeated once per latent sample
        return Mime.is_positive(model, believed, batch.emotion.repeat_interleave(draws))

    model.is_positive = is_positive  # type: ignore[method-assign]
    try:
        yield
    finally:
        del model.is_positive


def perplexity_knowing_emotion(bot: Bot, items: Sequence[Example]) -> float:
    """The perplexity per word, given the gold emotion."""
    model = bot.model
    if not isinstance(model, Mime):
        raise ValueError(f"{bot.name} does not choose its way by the emotion: only MIME's rows have this quirk")
    generator = torch.Generator().manual_seed(0)  # the same draws as in the score itself

    def score(batch: Batch) -> Tensor:
        with knowing_the_emotion(model, batch):
            return model.score(batch, generator)

    return of_likelihoods("word", bot._likelihoods(items, score, None), resamples=0).value


def measure(system: str, items: Sequence[Example], evaluation: Path) -> None:
    """Measure the quirk and write the result next to the evaluation that it explains."""
    bot = load(system, care=False)
    if not isinstance(bot, Bot):
        raise ValueError(f"{system} has no model of its own to give the emotion to")
    value = perplexity_knowing_emotion(bot, items)
    write_json(gold_emotion_file(evaluation), {"quirk": GOLD, "no score": True, "perplexity-word": value})
