"""A few replies to the same validation contexts at each validation: a model whose replies collapse is seen at once."""

from __future__ import annotations

from dataclasses import replace

import torch

from listenwell.checkpoint import Checkpoint
from listenwell.data.batching import Encoded, collate
from listenwell.decoding import decode

SAMPLES = 4


def sample_replies(checkpoint: Checkpoint, data: Encoded, device: torch.device) -> list[dict[str, str]]:
    """What the model says now to the first contexts of the data, greedily; empty for a model that does not talk.

    The model must be in eval mode. The random state is left as it was.
    """
    rows = [row for row, context in enumerate(data.contexts) if context is not None][:SAMPLES]
    if not rows or not checkpoint.model.talks:
        return []
    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    # In use there is no reply and no gold label to look at.
    batch = collate(data, rows, tokenizer.pad).to(device)
    batch = replace(batch, reply=None, following=None, emotion=None, label=None)
    greedy = replace(checkpoint.decoding, method="greedy", candidates=1)
    start, end, banned = tokenizer.start, tokenizer.end, tokenizer.banned
    with torch.inference_mode(), torch.random.fork_rng():
        torch.manual_seed(0)
        state = model.understand(batch, generator=torch.Generator(device).manual_seed(greedy.seed))
        hypotheses = decode(model, state, greedy, items=batch.rows, start=start, end=end, banned=banned)
    contexts = [context.tokens.tolist() for context in data.contexts if context is not None][:SAMPLES]
    return [
        {"context": tokenizer.decode(context), "reply": tokenizer.decode(best.tokens)}
        for context, (best, *_) in zip(contexts, hypotheses, strict=True)
    ]
