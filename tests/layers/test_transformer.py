import math

import pytest
import torch

from listenwell.layers.transformer import Decoder, Encoder, sinusoids

LENGTHS = (7, 3, 5, 1)


def padded(lengths=LENGTHS, width=16):
    torch.manual_seed(3)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return torch.randn(len(lengths), max(lengths), width), mask


@pytest.fixture
def encoder():
    torch.manual_seed(1)
    return Encoder(2, 16, 4, 24, 0.3).eval()


@pytest.fixture
def decoder():
    torch.manual_seed(2)
    return Decoder(2, 16, 4, 24, 0.3).eval()


@torch.no_grad()
def test_a_row_is_encoded_as_if_it_had_no_padding(encoder):
    x, mask = padded()
    together = encoder(x, mask)
    for row, length in enumerate(LENGTHS):
        alone = encoder(x[row : row + 1, :length], mask[row : row + 1, :length])
        assert torch.allclose(together[row, :length], alone[0], atol=1e-5)


@torch.no_grad()
def test_every_position_is_encoded_with_every_other(encoder):
    x, mask = padded((5,))
    before = encoder(x, mask)
    x[0, 4] = torch.randn(16)
    assert ((encoder(x, mask) - before).abs().amax(dim=-1) > 1e-4).all()


@torch.no_grad()
def test_step_by_step_with_a_cache_is_the_whole_sequence_at_once(decoder):
    memory, mask = padded()
    fixed = decoder.remember(memory, mask)
    x = torch.randn(len(LENGTHS), 9, 16)
    whole, caches = decoder(x, fixed)
    past = None
    for time in range(9):
        actual, past = decoder(x[:, time : time + 1], fixed, past)
        assert torch.allclose(actual[:, 0], whole[:, time], atol=1e-5)
    for step, at_once in zip(past, caches, strict=True):
        assert torch.allclose(step.keys, at_once.keys, atol=1e-5)
        assert torch.allclose(step.values, at_once.values, atol=1e-5)


@torch.no_grad()
def test_a_later_token_changes_no_earlier_output(decoder):
    memory, mask = padded()
    fixed = decoder.remember(memory, mask)
    x = torch.randn(len(LENGTHS), 6, 16)
    before, _ = decoder(x, fixed)
    for time in range(6):
        other = x.clone()
        other[:, time] = torch.randn(16)
        after, _ = decoder(other, fixed)
        assert torch.equal(after[:, :time], before[:, :time])
        assert not torch.allclose(after[:, time], before[:, time], atol=1e-4)


@torch.no_grad()
def test_the_padding_of_the_memory_is_not_read(decoder):
    memory, mask = padded()
    x = torch.randn(len(LENGTHS), 4, 16)
    before, _ = decoder(x, decoder.remember(memory, mask))
    memory[~mask] = 50.0
    after, _ = decoder(x, decoder.remember(memory, mask))
    assert torch.equal(before, after)
    memory[0, 0] += 1.0
    changed, _ = decoder(x, decoder.remember(memory, mask))
    assert not torch.allclose(changed[0], before[0], atol=1e-4)
    assert torch.equal(changed[1:], before[1:])


@torch.no_grad()
def test_dropout_works_in_training_only(encoder):
    x, mask = padded()
    assert torch.equal(encoder(x, mask), encoder(x, mask))
    encoder.train()
    assert not torch.allclose(encoder(x, mask), encoder(x, mask), atol=1e-3)


@pytest.mark.parametrize("width", [1, 6, 7])
def test_positions_are_vaswanis_waves(width):
    table = sinusoids(11, width)
    assert table.shape == (11, width)
    for position in range(11):
        for column in range(width):
            angle = position / 10_000 ** ((column - column % 2) / width)
            wave = math.cos(angle) if column % 2 else math.sin(angle)
            assert table[position, column].item() == pytest.approx(wave, abs=1e-5)


def test_a_position_does_not_depend_on_how_many_there_are():
    assert torch.equal(sinusoids(20, 8)[:5], sinusoids(5, 8))
