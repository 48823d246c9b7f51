import pytest
import torch

from listenwell.layers.dropout import Dropout, dropout


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.9])
def test_the_share_dropped_is_the_rate_and_the_mean_stays(rate):
    torch.manual_seed(0)
    x = torch.ones(400, 500)
    actual = dropout(x, rate, training=True)
    rounded = round(rate * 256) / 256
    assert (actual == 0).double().mean().item() == pytest.approx(rounded, abs=0.005)
    assert actual.double().mean().item() == pytest.approx(1.0, abs=0.02)
    assert abs(rounded - rate) <= 1 / 512


def test_what_is_kept_is_scaled_by_exactly_what_is_dropped():
    torch.manual_seed(0)
    x = torch.randn(33, 7)
    actual = dropout(x, 0.25, training=True)
    kept = actual != 0
    assert torch.equal(actual[kept], x[kept] * (256 / 192))


def test_the_gradient_goes_where_the_value_went():
    x = torch.ones(1000, requires_grad=True)
    actual = dropout(x, 0.5, training=True)
    actual.sum().backward()
    assert torch.equal(x.grad, actual.detach())


def test_every_element_is_drawn_by_itself():
    torch.manual_seed(0)
    dropped = torch.stack([dropout(torch.ones(16), 0.5, training=True) == 0 for _ in range(2000)]).double()
    assert torch.allclose(dropped.mean(0), torch.tensor(0.5, dtype=torch.float64), atol=0.05)
    together = torch.corrcoef(dropped.T) - torch.eye(16)
    assert together.abs().max() < 0.1


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9])
def test_any_number_of_elements_will_do(size):
    assert dropout(torch.ones(size), 0.5, training=True).shape == (size,)
    assert dropout(torch.ones(3, size).T, 0.5, training=True).shape == (size, 3)


def test_it_is_off_outside_training_and_at_rate_nought():
    x = torch.randn(50)
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0, training=True) is x
    layer = Dropout(0.5)
    assert layer.eval()(x) is x
    assert not torch.equal(layer.train()(x), x)


def test_the_same_seed_drops_the_same():
    def draw():
        torch.manual_seed(5)
        return dropout(torch.ones(100), 0.3, training=True)

    first = draw()
    assert torch.equal(draw(), first)
    assert not torch.equal(dropout(torch.ones(100), 0.3, training=True), first)


def test_the_highest_rate_still_keeps_something():
    torch.manual_seed(0)
    actual = dropout(torch.ones(100_000), 0.9999, training=True)
    assert actual.isfinite().all()
    assert actual.mean().item() == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("rate", [-0.1, 1.0, 2.0])
def test_a_rate_that_is_none_is_told(rate):
    with pytest.raises(ValueError, match="a dropout rate is at least 0 and below 1, found"):
        Dropout(rate)
