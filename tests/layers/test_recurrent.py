import pytest
import torch

from listenwell.layers.dropout import dropout
from listenwell.layers.recurrent import AttentiveDecoder, Recurrence, RecurrentEncoder


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


@pytest.fixture
def taught():
    """A decoder with its words, memory, mask and state: rows of three memory lengths, one a single position."""
    torch.manual_seed(2)
    decoder = AttentiveDecoder(6, 8, 10, dropout=0.3).double()
    x, memory, state = (torch.randn(*shape, dtype=torch.double) for shape in ((3, 5, 6), (3, 4, 10), (3, 8)))
    mask = torch.tensor([[True] * 4, [True, True, False, False], [True, False, False, False]])
    return decoder, x.requires_grad_(), memory.requires_grad_(), mask, state.requires_grad_()


def step_by_step(decoder, x, memory, mask, state):
    at, keys = decoder.start(state), decoder.attention(memory)
    said = []
    for time in range(x.shape[1]):
        at = decoder.step(x[:, time], memory, keys, mask, at)
        said.append(at.fed)
    return torch.stack(said, dim=1)


def test_teacher_forcing_equals_step_by_step_and_so_do_its_gradients(taught):
    decoder, x, memory, mask, state = taught
    decoder.eval()
    fast, slow = decoder(x, memory, mask, state), step_by_step(decoder, x, memory, mask, state)
    assert torch.allclose(fast, slow)
    learned = {"x": x, "memory": memory, "state": state, **dict(decoder.named_parameters())}
    weights = torch.randn_like(slow)
    ours, theirs = (torch.autograd.grad((said * weights).sum(), list(learned.values())) for said in (fast, slow))
    for name, mine, torchs in zip(learned, ours, theirs, strict=True):
        assert torchs.abs().sum() > 0, name
        assert torch.allclose(mine, torchs), name


def test_what_is_fed_back_has_gone_through_dropout(taught):
    decoder, x, memory, mask, state = taught
    torch.manual_seed(4)
    said = decoder.train()(x, memory, mask, state)
    torch.manual_seed(4)
    noise = dropout(torch.ones(5, 3, 8, dtype=torch.double), 0.3, training=True)
    assert (noise == 0).any()
    decoder.eval()
    at, keys = decoder.start(state), decoder.attention(memory)
    for time in range(5):
        at = decoder.step(x[:, time], memory, keys, mask, at)
        at = Recurrence(at.hidden, at.fed * noise[time])
        assert torch.allclose(said[:, time], at.fed)
    weights = torch.randn_like(said)
    torch.manual_seed(4)
    again = decoder.train()(x, memory, mask, state)
    (actual,) = torch.autograd.grad((again * weights).sum(), [state])
    shift = 1e-6 * torch.randn_like(state)
    torch.manual_seed(4)
    moved = decoder(x, memory, mask, state + shift)
    assert ((moved - again) * weights).sum().item() == pytest.approx((actual * shift).sum().item(), rel=1e-4)


def test_attention_is_luongs_by_hand():
    torch.manual_seed(3)
    decoder = AttentiveDecoder(6, 8, 10).eval()
    x, memory, state = torch.randn(1, 6), torch.randn(1, 3, 10), torch.randn(1, 8)
    mask = torch.tensor([[True, True, False]])
    actual = decoder.step(x, memory, decoder.attention(memory), mask, decoder.start(state))
    hidden = decoder.cell(torch.cat([x, torch.zeros(1, 8)], dim=1), state)
    scores = torch.stack([hidden[0] @ (decoder.attention.weight @ memory[0, t]) for t in range(2)])
    weights = scores.softmax(0)
    context = weights[0] * memory[0, 0] + weights[1] * memory[0, 1]
    expected = torch.tanh(decoder.mix.weight @ torch.cat([context, hidden[0]]))
    assert torch.allclose(actual.fed[0], expected, atol=1e-6)
    assert torch.allclose(actual.hidden, hidden)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_recurrences_stay_in_full_precision_where_the_rest_is_not(cell):
    torch.manual_seed(5)
    encoder, decoder = RecurrentEncoder(5, 8, cell=cell), AttentiveDecoder(6, 8, 8)
    x, reply, mask = torch.randn(2, 4, 5), torch.randn(2, 3, 6), torch.ones(2, 4, dtype=torch.bool)
    plain, last = encoder(x, mask)
    said = decoder(reply, plain, mask, last)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(encoder(x, mask)[0], plain)
        assert torch.equal(decoder(reply, plain, mask, last), said)
        assert decoder(reply.bfloat16(), plain, mask, last).dtype == torch.float32


def test_an_odd_width_cannot_go_both_ways():
    with pytest.raises(ValueError, match="does not divide"):
        RecurrentEncoder(5, 7)
