"""Padded batches and packed texts."""

import torch

from listenwell.layers.packing import Places

MASK = torch.tensor([[True, True, True], [True, False, False], [False, True, True]])


def test_what_is_packed_is_real_and_comes_back_to_its_place():
    places, batch = Places(MASK), torch.randn(3, 3, 2, 4)
    assert places.padded
    assert places.count == 6
    packed = places.pack(batch)
    assert torch.equal(
        packed, torch.stack([batch[0, 0], batch[0, 1], batch[0, 2], batch[1, 0], batch[2, 1], batch[2, 2]])
    )
    assert torch.equal(places.spread(packed), batch * MASK[:, :, None, None])


def test_without_padding_nothing_is_copied():
    places, batch = Places(MASK[:1]), torch.randn(1, 3, 4)
    assert not places.padded
    assert places.spread(places.pack(batch)).data_ptr() == batch.data_ptr()
