from math import inf

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_models import END, START, Markov, repeats

from listenwell.decoding import Decoding, decode
from listenwell.decoding.rules import LEAST, Rules, block_repeats

METHODS = [Decoding(), Decoding(method="sample", candidates=3), Decoding(method="beam", beams=3, candidates=2)]


def with_rules(options: Decoding, **rules) -> Decoding:
    return Decoding(method=options.method, beams=options.beams, candidates=options.candidates, **rules)


@given(st.lists(st.lists(st.integers(0, 3), min_size=7, max_size=7), min_size=1, max_size=4), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_blocked_are_exactly_the_tokens_that_would_repeat_an_ngram(histories, size):
    logprobs = torch.zeros(len(histories), 4)
    # Only histories that contain no repetition themselves: a hypothesis can have no others.
    length = max(n for n in range(8) if not any(repeats(tuple(history[:n]), size) for history in histories))
    block_repeats(logprobs, torch.tensor(histories)[:, :length], size)
    for row, history in zip(logprobs, histories, strict=True):
        expected = [repeats((*history[:length], token), size) for token in range(4)]
        assert (row == -inf).tolist() == expected


@pytest.mark.parametrize("options", METHODS, ids=lambda options: options.method)
def test_banned_tokens_never_come_out_however_likely(options):
    table = torch.zeros(6, 6)
    table[:, [START, 4]] = 50.0
    replies = decode(Markov(table), contexts(3), options, start=START, end=END, banned=[START, 4])
    assert {token for row in replies for reply in row for token in reply.tokens} <= {2, 3, 5}


@pytest.mark.parametrize("options", METHODS, ids=lambda options: options.method)
def test_where_no_token_is_left_the_reply_ends_even_before_its_least_length(options):
    options = with_rules(options, min_length=4, block_ngrams=1)
    # Two words, neither allowed twice: after both nothing is left, although four tokens were requested.
    replies = decode(Markov(torch.zeros(4, 4)), contexts(2), options, start=START, end=END, banned=[START])
    for row in replies:
        for reply in row:
            assert sorted(reply.tokens) == [2, 3]
            assert reply.finished
            assert reply.logprob == pytest.approx(3 * torch.tensor(0.25).log().item())


@pytest.mark.parametrize("options", METHODS, ids=lambda options: options.method)
def test_with_all_tokens_banned_the_reply_is_empty_and_its_score_a_number(options):
    table = torch.zeros(4, 4)
    table[:, END] = -inf  # even the model itself has no token left
    replies = decode(Markov(table), contexts(2), options, start=START, end=END, banned=[START, END, 2, 3])
    for row in replies:
        for reply in row:
            assert reply.tokens == []
            assert reply.finished
            assert reply.score == reply.logprob == LEAST


@pytest.mark.parametrize("options", METHODS, ids=lambda options: options.method)
@pytest.mark.parametrize("least", [0, 1, 3])
def test_no_reply_ends_before_its_least_length(options, least):
    table = torch.zeros(5, 5)
    table[:, END] = 4.0
    options = with_rules(options, min_length=least, max_length=6)
    replies = decode(Markov(table), contexts(4), options, start=START, end=END, banned=[START])
    lengths = [len(reply.tokens) for row in replies for reply in row]
    assert min(lengths) == least


@pytest.mark.parametrize("options", METHODS, ids=lambda options: options.method)
def test_a_reply_that_does_not_end_is_cut_and_says_so(options):
    table = torch.zeros(5, 5)
    table[:, END] = -30.0
    options = with_rules(options, max_length=6)
    for row in decode(Markov(table), contexts(2), options, start=START, end=END, banned=[START]):
        for reply in row:
            assert len(reply.tokens) == 6
            assert not reply.finished
            assert reply.score == pytest.approx(reply.logprob / 6)


@pytest.mark.parametrize("broken", [float("nan"), inf])
def test_a_model_without_a_distribution_is_told_so(broken):
    table = torch.zeros(4, 4)
    table[2, 3] = broken
    table[START, 2] = 9.0
    with pytest.raises(ValueError, match=r"no distribution .* at token 1"):
        decode(Markov(table), contexts(1), Decoding(), start=START, end=END)


def test_an_id_beyond_the_vocabulary_is_told_so():
    with pytest.raises(ValueError, match="the banned token is 9, but step\\(\\) gave logits for 4 tokens"):
        Rules(END, (9,), 0, 0).apply(torch.zeros(1, 4), torch.zeros(1, 0, dtype=torch.long))


def contexts(rows: int):
    return Markov(torch.zeros(1, 1)).understand(rows)
