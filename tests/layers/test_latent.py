import math

import pytest
import torch

from listenwell.layers.latent import Gaussian, GaussianLayer, anneal, categorical_kl, row_noise, straight_through


def test_samples_have_the_moments_of_their_distribution():
    mean, log_variance = torch.tensor([[1.0, -2.0]]), torch.tensor([[0.0, math.log(4.0)]])
    many = Gaussian(mean.expand(40_000, 2), log_variance.expand(40_000, 2))
    drawn = many.sample(torch.Generator().manual_seed(1))
    assert torch.allclose(drawn.mean(0), mean[0], atol=0.05)
    assert torch.allclose(drawn.std(0), torch.tensor([1.0, 2.0]), atol=0.05)


def test_kl_is_the_integral_it_stands_for():
    q = Gaussian(torch.tensor([[0.5]]), torch.tensor([[-0.4]]))
    p = Gaussian(torch.tensor([[-1.0]]), torch.tensor([[0.7]]))
    x = torch.linspace(-15, 15, 200_001, dtype=torch.float64)
    density_q = torch.distributions.Normal(0.5, math.exp(-0.2)).log_prob(x)
    density_p = torch.distributions.Normal(-1.0, math.exp(0.35)).log_prob(x)
    integral = torch.trapezoid(density_q.exp() * (density_q - density_p), x)
    assert q.kl(p).item() == pytest.approx(integral.item(), rel=1e-4)
    assert q.kl(q).item() == 0


def test_gradients_reach_the_parameters_through_a_sample():
    layer = GaussianLayer(4, 3)
    layer(torch.randn(2, 4)).sample().sum().backward()
    assert layer.mean.weight.grad.abs().sum() > 0
    assert layer.log_variance.weight.grad.abs().sum() > 0


def test_categorical_kl_is_summed_by_hand():
    q, p = torch.tensor([[0.7, 0.2, 0.1]]), torch.tensor([[0.1, 0.3, 0.6]])
    slow = sum(a * math.log(a / b) for a, b in zip(q[0].tolist(), p[0].tolist(), strict=True))
    assert categorical_kl(q.log(), p.log()).item() == pytest.approx(slow, rel=1e-5)
    uniform = sum(a * math.log(a * 3) for a in q[0].tolist())
    assert categorical_kl(q.log()).item() == pytest.approx(uniform, rel=1e-5)


def test_straight_through_draws_are_one_hot_with_the_right_frequencies_and_soft_gradients():
    logits = torch.tensor([0.5, 0.3, 0.2]).log().requires_grad_()
    drawn = straight_through(logits.expand(20_000, 3), generator=torch.Generator().manual_seed(2))
    assert set(drawn.detach().round(decimals=4).unique().tolist()) == {0.0, 1.0}
    assert torch.allclose(drawn.mean(0), torch.tensor([0.5, 0.3, 0.2]), atol=0.02)
    (drawn * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert logits.grad.abs().sum() > 0


def test_annealing_rises_to_one():
    assert [anneal(progress, 0.5) for progress in (0.0, 0.25, 0.5, 1.0)] == [0.0, 0.5, 1.0, 1.0]
    assert anneal(0.0, 0.0) == 1.0


def test_noise_is_an_items_own_whatever_the_batch_and_whatever_came_before():
    generator = torch.Generator().manual_seed(5)
    together = row_noise([3, 8, 1], (4, 25), generator)
    assert torch.equal(row_noise([1, 3], (4, 25), generator), together[[2, 0]])
    assert not torch.allclose(row_noise([3, 8, 1], (4, 25), torch.Generator().manual_seed(6)), together)
    many = row_noise(range(2_000), (20,), generator)
    assert many.mean().item() == pytest.approx(0.0, abs=0.02)
    assert many.var().item() == pytest.approx(1.0, abs=0.03)
    assert torch.corrcoef(many.T).fill_diagonal_(0).abs().max() < 0.1


def test_noise_without_a_generator_is_torchs_own():
    torch.manual_seed(1)
    expected = torch.randn(2, 3)
    torch.manual_seed(1)
    assert torch.equal(row_noise([7, 7], (3,), None), expected)
