from itertools import pairwise

import pytest
import torch
from toy_models import END, START, Markov, Recurrent, logprobs_after

from listenwell.contract import State
from listenwell.decoding import Decoding, decode, stream


def chain(*path: int, vocabulary: int = 6) -> torch.Tensor:
    """Logits that make each token of the path the most likely after the one before it."""
    table = torch.zeros(vocabulary, vocabulary)
    for before, after in pairwise(path):
        table[before, after] = 3.0
    return table


def test_greedy_takes_the_likeliest_token_each_time():
    [[reply]] = decode(
        Markov(chain(START, 4, 2, 5, END)), State(fixed=torch.zeros(1, 1)), Decoding(), start=START, end=END
    )
    assert reply.tokens == [4, 2, 5]
    assert reply.finished


@pytest.mark.parametrize("seed", range(8))
def test_greedy_equals_argmax_by_hand(seed):
    model, options = Recurrent(seed, vocabulary=7), Decoding(max_length=8)
    for context, [reply] in enumerate(
        decode(model, model.understand(list(range(5))), options, start=START, end=END, banned=[START])
    ):
        tokens, logprob, finished = (), 0.0, False
        while len(tokens) < 8 and not finished:
            logprobs = logprobs_after(model, context, tokens)
            allowed = [token for token in range(7) if token != START and (token != END or tokens)]
            best = max(allowed, key=lambda token: logprobs[token].item())
            logprob += logprobs[best].item()
            finished = best == END
            tokens = tokens if finished else (*tokens, best)
        assert (tuple(reply.tokens), reply.finished) == (tokens, finished)
        assert reply.logprob == pytest.approx(logprob, abs=1e-4)
        assert reply.score == pytest.approx(logprob / (len(tokens) + finished), abs=1e-4)


def test_rows_that_have_ended_leave_the_batch():
    # A row's context determines its first token; from there 2 ends immediately, 3 goes through 2, 4 goes through 3.
    model = Markov(chain(4, 3, 2, END))
    first = torch.zeros(4, 6)
    for row, token in enumerate([2, 4, 2, 3]):
        first[row, token] = 9.0

    class FirstByContext:
        def step(self, tokens, state):
            logits, _ = model.step(tokens, State(fixed=torch.zeros(len(tokens), 1)))
            return logits + (state.fixed if state.length == 0 else 0), State(fixed=state.fixed, length=state.length + 1)

    replies = decode(FirstByContext(), State(fixed=first), Decoding(), start=START, end=END)
    assert [reply.tokens for [reply] in replies] == [[2], [4, 3, 2], [2], [3, 2]]
    assert model.rows_seen == [4, 4, 2, 1]


@pytest.mark.parametrize("block", [0, 1, 2])
def test_a_batch_equals_its_rows_one_by_one(block):
    model, options = Recurrent(3, vocabulary=9), Decoding(max_length=12, block_ngrams=block)
    together = decode(model, model.understand(list(range(16))), options, start=START, end=END, banned=[START])
    for context, row in enumerate(together):
        [alone] = decode(model, model.understand([context]), options, start=START, end=END, banned=[START])
        assert [reply.tokens for reply in row] == [reply.tokens for reply in alone]


def test_no_rows_give_no_replies():
    model = Recurrent(0)
    for options in (Decoding(), Decoding(method="sample"), Decoding(method="beam")):
        assert decode(model, model.understand([]), options, start=START, end=END) == []
    assert model.rows_seen == []


def test_a_state_without_tensors_is_told_so():
    with pytest.raises(ValueError, match="the state holds no tensor"):
        decode(Recurrent(0), State(fixed={"note": "empty"}), Decoding(), start=START, end=END)


def test_items_must_name_every_row():
    model = Recurrent(0)
    with pytest.raises(ValueError, match="items names 2 rows, but the state has 3"):
        decode(model, model.understand([0, 1, 2]), Decoding(), start=START, end=END, items=[7, 8])


@pytest.mark.parametrize("method", ["greedy", "sample"])
@pytest.mark.parametrize("seed", range(6))
def test_a_stream_equals_the_whole_reply(method, seed):
    model, options = Recurrent(seed, vocabulary=8), Decoding(method=method, max_length=9, seed=seed, block_ngrams=2)
    [[reply]] = decode(model, model.understand([seed]), options, start=START, end=END, banned=[START], items=[5])
    tokens = stream(model, model.understand([seed]), options, start=START, end=END, banned=[START], item=5)
    assert list(tokens) == reply.tokens


def test_a_stream_gives_each_token_before_the_next_is_computed():
    model = Markov(chain(START, 4, 2, 5, END))
    tokens = stream(model, model.understand(), Decoding(), start=START, end=END)
    assert (next(tokens), len(model.rows_seen)) == (4, 1)
    assert (next(tokens), len(model.rows_seen)) == (2, 2)


def test_a_stream_does_not_leak_inference_mode_to_its_reader():
    model = Markov(chain(START, 4, 2, END))
    for _ in stream(model, model.understand(), Decoding(), start=START, end=END):
        assert not torch.is_inference_mode_enabled()
    assert not torch.is_inference_mode_enabled()


def test_every_step_runs_in_inference_mode():
    class Strict(Recurrent):
        def step(self, tokens, state):
            assert torch.is_inference_mode_enabled()
            return super().step(tokens, state)

    model = Strict(0)
    model.embedding.requires_grad_()
    for options in (Decoding(), Decoding(method="sample"), Decoding(method="beam")):
        decode(model, model.understand([0, 1]), options, start=START, end=END)
    list(stream(model, model.understand([0]), Decoding(), start=START, end=END))
    assert len(model.rows_seen) > 4


@pytest.mark.parametrize(
    ("options", "rows", "message"),
    [
        (Decoding(method="beam"), 1, "Decoding.method is 'beam', expected greedy or sample"),
        (Decoding(method="sample", candidates=2), 1, "Decoding.candidates is 2, expected 1"),
        (Decoding(), 2, "the state has 2 rows, expected 1"),
    ],
)
def test_what_cannot_be_streamed_is_refused_at_the_call(options, rows, message):
    model = Recurrent(0)
    with pytest.raises(ValueError, match=message):
        stream(model, model.understand([0] * rows), options, start=START, end=END)
