"""DualVAE: prior and posterior, two decoders over one latent, likelihood averaged over samples."""

import math

import pytest
import torch

from listenwell.contract import Controls, Moment
from listenwell.data.batching import collate
from listenwell.models.dual_vae import SAMPLES


@pytest.fixture
def model(tiny_model):
    return tiny_model("dual-vae", latent=6)


@pytest.fixture
def batch(encoded, tokenizer):
    """Six replies of different lengths."""
    return collate(encoded, range(6), tokenizer.pad)


@torch.no_grad()
def test_the_posterior_sees_the_reply_and_the_prior_does_not(model, batch):
    reading = model.read(batch)
    posterior = model.infer(batch, reading.summary)
    batch.reply.tokens[0, 0] = (batch.reply.tokens[0, 0] + 1) % 50 + 5
    assert torch.equal(model.read(batch).prior.mean, reading.prior.mean)
    assert not torch.equal(model.infer(batch, reading.summary).mean[0], posterior.mean[0])


@torch.no_grad()
def test_the_autoencoder_knows_nothing_but_the_latent(model, batch):
    before = model.likelihood(batch, Moment())
    latent = model.read(batch).prior.mean
    batch.context.tokens[:, 1:] = batch.context.tokens[:, 1:].roll(1, dims=0)
    other = model.read(batch).prior.mean
    assert not torch.equal(latent, other)
    # With the latent of the first context restored, the autoencoded text is the same.
    model.prior.forward = lambda _: type(model.infer(batch, other[:, :1].expand(-1, 16)))(latent, latent * 0)
    after = model.likelihood(batch, Moment())
    assert torch.allclose(before["autoencoded"].total, after["autoencoded"].total, rtol=1e-5)
    assert not torch.allclose(before["reply"].total, after["reply"].total, rtol=1e-5)


@torch.no_grad()
def test_the_kl_is_that_of_posterior_and_prior_and_rises(model, batch):
    reading = model.read(batch)
    q, p = model.infer(batch, reading.summary), reading.prior
    slow = 0.0
    for row in range(6):
        for mean, log, own, own_log in zip(
            q.mean[row], q.log_variance[row], p.mean[row], p.log_variance[row], strict=True
        ):
            slow += 0.5 * (
                math.exp(log - own_log) + (mean - own) ** 2 / math.exp(own_log) - 1 - float(log) + float(own_log)
            )
    term = model.likelihood(batch, Moment(progress=0.05), anneal=0.1)["kl"]
    assert float(term.plain) == pytest.approx(float(slow), rel=1e-4)
    assert float(term.total) == pytest.approx(float(slow) / 2, rel=1e-4)


@torch.no_grad()
def test_the_likelihood_is_averaged_over_draws_in_probability(model, batch):
    generator = torch.Generator().manual_seed(3)
    nll = model.score(batch, generator)
    reading, noise = model.read(batch), model._noise(batch, SAMPLES, generator)
    each = [(-model._nll(batch, reading, noise[:, draw]).double()).exp() for draw in range(SAMPLES)]
    assert torch.allclose(nll.double(), -(sum(each) / SAMPLES).log(), rtol=1e-4)


@torch.no_grad()
def test_a_step_at_a_time_is_the_whole_at_once(model, batch):
    state = model.understand(batch, Controls(latent="mean"))
    hidden, _ = model._taught(batch, model.decoder, state.fixed)
    at_once = torch.nn.functional.linear(hidden, model.words.choices, model.words.bias)
    log_probs, last = [], torch.full_like(batch.reply.tokens[:, 0], model.vocabulary.start)
    for position in range(batch.reply.tokens.shape[1]):
        logits, state = model.step(last, state)
        log_probs.append(logits)
        last = batch.reply.tokens[:, position]
    assert torch.allclose(at_once, torch.stack(log_probs, dim=1)[batch.reply.mask], atol=1e-4)
