import pytest
import torch

from listenwell.layers.recurrent import AttentiveDecoder, RecurrentEncoder


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_padding_changes_nothing(cell):
    torch.manual_seed(1)
    encoder = RecurrentEncoder(5, 8, cell=cell)
    x = torch.randn(1, 4, 5)
    padded = torch.cat([x, torch.randn(1, 3, 5)], dim=1)
    mask = torch.tensor([[True] * 4 + [False] * 3])
    outputs, last = encoder(x, torch.ones(1, 4, dtype=torch.bool))
    again, last_again = encoder(padded, mask)
    assert torch.allclose(outputs, again[:, :4], atol=1e-6)
    assert torch.allclose(last, last_again, atol=1e-6)
    assert torch.equal(again[:, 4:], torch.zeros(1, 3, 8))


def test_one_way_ends_with_its_last_output():
    torch.manual_seed(1)
    encoder = RecurrentEncoder(5, 8, both_ways=False)
    outputs, last = encoder(torch.randn(2, 4, 5), torch.ones(2, 4, dtype=torch.bool))
    assert torch.allclose(outputs[:, -1], last)


def test_teacher_forcing_equals_step_by_step():
    torch.manual_seed(2)
    decoder = AttentiveDecoder(6, 8, 10).eval()
    x, memory, state = torch.randn(3, 5, 6), torch.randn(3, 4, 10), torch.randn(3, 8)
    mask = torch.tensor([[True] * 4, [True, True, False, False], [True, False, False, False]])
    at, keys = decoder.start(state), decoder.attention(memory)
    slow = []
    for time in range(5):
        at = decoder.step(x[:, time], memory, keys, mask, at)
        slow.append(at.fed)
    assert torch.allclose(decoder(x, memory, mask, state), torch.stack(slow, dim=1), atol=1e-6)


def test_attention_is_luongs_by_hand():
    torch.manual_seed(3)
    decoder = AttentiveDecoder(6, 8, 10).eval()
    x, memory, state = torch.randn(1, 6), torch.randn(1, 3, 10), torch.randn(1, 8)
    mask = torch.tensor([[True, True, False]])
    found = decoder.step(x, memory, decoder.attention(memory), mask, decoder.start(state))
    hidden = decoder.cell(torch.cat([x, torch.zeros(1, 8)], dim=1), state)
    scores = torch.stack([hidden[0] @ (decoder.attention.weight @ memory[0, t]) for t in range(2)])
    weights = scores.softmax(0)
    context = weights[0] * memory[0, 0] + weights[1] * memory[0, 1]
    expected = torch.tanh(decoder.mix.weight @ torch.cat([context, hidden[0]]))
    assert torch.allclose(found.fed[0], expected, atol=1e-6)
    assert torch.allclose(found.hidden, hidden)


def test_an_odd_width_cannot_go_both_ways():
    with pytest.raises(ValueError, match="does not divide"):
        RecurrentEncoder(5, 7)
