import pytest
import torch
from torch.nn import functional as F

from listenwell.layers.loss import CHUNK, packed_cross_entropy


def problem(positions, width=6, vocabulary=11, dtype=torch.float64):
    torch.manual_seed(positions)
    hidden = torch.randn(positions, width, dtype=dtype, requires_grad=True)
    table = torch.randn(vocabulary, width, dtype=dtype, requires_grad=True)
    bias = torch.randn(vocabulary, dtype=dtype, requires_grad=True)
    return hidden, table, bias, torch.randint(0, vocabulary, (positions,))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("positions", [1, CHUNK - 1, CHUNK, 2 * CHUNK + 37])
def test_loss_and_gradients_are_torchs(positions, smoothing):
    hidden, table, bias, targets = problem(positions)
    loss, nll = packed_cross_entropy(hidden, table, bias, targets, smoothing)
    actual = torch.autograd.grad(3 * loss, (hidden, table, bias))
    logits = hidden @ table.T + bias
    expected = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    wanted = torch.autograd.grad(3 * expected, (hidden, table, bias))
    assert torch.allclose(loss, expected)
    assert torch.allclose(nll, F.cross_entropy(logits, targets, reduction="none"))
    for one, other in zip(actual, wanted, strict=True):
        assert torch.allclose(one, other)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_weights_count_positions_differently(smoothing):
    hidden, table, bias, targets = problem(CHUNK + 37)
    weights = torch.randn(CHUNK + 37, dtype=torch.float64)
    loss, nll = packed_cross_entropy(hidden, table, bias, targets, smoothing, weights)
    actual = torch.autograd.grad(loss, (hidden, table, bias))
    each = F.cross_entropy(hidden @ table.T + bias, targets, reduction="none", label_smoothing=smoothing)
    wanted = torch.autograd.grad((each * weights).sum(), (hidden, table, bias))
    assert torch.allclose(loss, (each * weights).sum())
    assert torch.equal(nll, packed_cross_entropy(hidden, table, bias, targets)[1])
    for one, other in zip(actual, wanted, strict=True):
        assert torch.allclose(one, other)


def test_the_gradient_is_the_slope_of_the_loss():
    hidden, table, bias, targets = problem(4, width=3, vocabulary=5)

    def loss(*inputs):
        return packed_cross_entropy(*inputs, targets, 0.1)[0]

    assert torch.autograd.gradcheck(loss, (hidden, table, bias))


def test_single_precision_is_near_double():
    hidden, table, bias, targets = problem(CHUNK + 5, dtype=torch.float32)
    loss, nll = packed_cross_entropy(hidden, table, bias, targets)
    assert loss.dtype == nll.dtype == torch.float32
    assert loss.item() == pytest.approx(nll.double().sum().item(), rel=1e-5)


def test_the_plain_likelihood_has_no_smoothing_and_no_gradient():
    hidden, table, bias, targets = problem(9)
    _, plain = packed_cross_entropy(hidden, table, bias, targets)
    _, smoothed = packed_cross_entropy(hidden, table, bias, targets, 0.3)
    assert torch.equal(plain, smoothed)
    assert not smoothed.requires_grad


def test_what_does_not_learn_gets_no_gradient():
    hidden, table, bias, targets = problem(9)
    table.requires_grad_(False)
    loss, _ = packed_cross_entropy(hidden, table, bias, targets)
    loss.backward()
    assert table.grad is None
    assert hidden.grad is not None


def test_without_gradients_the_loss_is_the_same():
    hidden, table, bias, targets = problem(CHUNK + 9)
    with torch.inference_mode():
        loss, _ = packed_cross_entropy(hidden, table, bias, targets, 0.1)
    assert torch.equal(loss, packed_cross_entropy(hidden, table, bias, targets, 0.1)[0])


def test_no_positions_lose_nothing():
    hidden, table, bias, targets = problem(0)
    loss, nll = packed_cross_entropy(hidden, table, bias, targets)
    loss.backward()
    assert (loss.item(), len(nll)) == (0.0, 0)
    assert not table.grad.any()


def test_a_table_that_stands_still_and_has_no_bias_gives_the_same_gradient_to_what_is_below():
    torch.manual_seed(0)
    hidden, table = torch.randn(7, 5, requires_grad=True), torch.randn(11, 5)
    targets = torch.randint(0, 11, (7,))
    loss, nll = packed_cross_entropy(hidden, table, None, targets)
    loss.backward()
    again = hidden.detach().clone().requires_grad_()
    expected = torch.nn.functional.cross_entropy(again @ table.T, targets, reduction="sum")
    expected.backward()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(nll.sum(), expected.detach())
    torch.testing.assert_close(hidden.grad, again.grad)
