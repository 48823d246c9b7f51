"""Sample replies to the same few contexts at every validation, so that collapsing replies are noticed at once."""

from __future__ import annotations

from dataclasses import replace

import torch

from listenwell.checkpoint import Checkpoint
from listenwell.data.batching import Encoded, collate
from listenwell.decoding import decode

SAMPLES = 4


def sample_replies(checkpoint: Checkpoint, data: Encoded, device: torch.device) -> list[dict[str, str]]:
    """Greedy replies of the model to the first contexts of the data; empty for a model that does not generate text.

    The model must be in eval mode. The random state is left unchanged.
    """
    rows = [row for row, context in enumerate(data.contexts) if context is not None][:SAMPLES]
    if not rows or not checkpoint.model.talks:
        return []
    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    # As in use: no reference reply and no gold labels.
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
