"""Texts that a model samples to train on."""

import torch

from listenwell.data.batching import collate
from listenwell.decoding import Decoding
from listenwell.models.policy import write, write_drawn_and_greedy


@torch.no_grad()
def test_what_is_drawn_and_greedy_together_is_what_each_is_alone(tiny_model, encoded, tokenizer):
    model = tiny_model("trs").double()  # with a flat distribution, the last bits of a float change the words
    batch = collate(encoded, range(5), tokenizer.pad)
    state = model.understand(batch)
    together = write_drawn_and_greedy(model, state, tokenizer.vocabulary, 1, batch.rows, seed=3, longest=12)
    for actual, way in zip(
        together, (Decoding(method="sample", max_length=12, seed=3), Decoding(max_length=12)), strict=True
    ):
        alone = write(model, state, way, tokenizer.vocabulary, 1, batch.rows)
        assert torch.equal(actual.tokens, alone.tokens)
        assert torch.equal(actual.mask, alone.mask)
