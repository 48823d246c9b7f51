"""Guidance, against the same sum computed from the start of the reply."""

import pytest
import torch
from toy_models import END, START, Recurrent, everything, logprobs_after

from listenwell.decoding import Decoding, Guided, decode, paired

ASKED, OTHERWISE = [3, 8, 8], [5, 1, 8]


def guided_logprobs(model, requested, otherwise, tokens, strength):
    likely = logprobs_after(model, requested, tokens)
    return ((1 + strength) * likely - strength * logprobs_after(model, otherwise, tokens)).log_softmax(dim=0)


def begun(model):
    return paired(model.understand(ASKED), model.understand(OTHERWISE))


@pytest.mark.parametrize("strength", [0.0, 0.5, 2.0])
def test_a_step_goes_away_from_what_the_reply_would_otherwise_be(strength):
    model = Recurrent(4)
    guided, state = Guided(model, strength), begun(model)
    for tokens in ((), (2,), (2, 4), (2, 4, 3)):
        fed = (START, *tokens)[-1]
        logits, state = guided.step(torch.full((3,), fed), state)
        for row, (requested, otherwise) in enumerate(zip(ASKED, OTHERWISE, strict=True)):
            expected = guided_logprobs(model, requested, otherwise, tokens, strength)
            torch.testing.assert_close(logits[row].log_softmax(dim=0), expected)


def test_what_would_be_said_anyway_is_left_as_it_is():
    model = Recurrent(4)
    options = Decoding(method="beam", beams=3, max_length=6)
    *_, alike = decode(Guided(model, 3.0), begun(model), options, start=START, end=END, banned=[START])
    [plain] = decode(model, model.understand([8]), options, start=START, end=END, banned=[START])
    assert [reply.tokens for reply in alike] == [reply.tokens for reply in plain]


@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_finds_the_best_guided_reply_of_all(seed):
    class FromTheBeginning:
        """The interface that `everything` needs: the distribution of the next token, here with guidance."""

        vocabulary = 4

        def understand(self, contexts):
            return paired(
                model.understand([ASKED[c] for c in contexts]), model.understand([OTHERWISE[c] for c in contexts])
            )

        def step(self, tokens, state):
            return Guided(model, 1.5).step(tokens, state)

    model = Recurrent(seed, vocabulary=4)
    options = Decoding(method="beam", beams=40, max_length=4)
    hypotheses = decode(Guided(model, 1.5), begun(model), options, start=START, end=END, banned=[START])
    for row, [best, *_] in enumerate(hypotheses):
        assert tuple(best.tokens) == everything(FromTheBeginning(), row, options)[0][2]


@pytest.mark.parametrize("value", [-1, "much", float("nan"), True])
def test_a_guidance_that_is_none_is_told_so(value):
    with pytest.raises(ValueError, match=r"Decoding.guidance is .*, expected a number from 0 on"):
        Decoding(guidance=value)
