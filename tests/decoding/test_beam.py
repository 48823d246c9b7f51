import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from toy_models import END, START, Markov, Recurrent, everything, repeats

from listenwell.decoding import Decoding, decode
from listenwell.decoding.beam import topk_in_blocks

ALL = 400
"""More beams than there are replies of up to four words out of three."""


def beam(model, contexts, **options):
    options = Decoding(method="beam", **{"max_length": 4, **options})
    return decode(model, model.understand(contexts), options, start=START, end=END, banned=[START])


@given(
    seed=st.integers(0, 10_000),
    length=st.integers(1, 4),
    penalty=st.sampled_from([-0.5, 0.0, 0.6, 1.0, 2.0]),
    block=st.sampled_from([0, 0, 1, 2]),
    least=st.integers(0, 2),
)
@settings(max_examples=30, deadline=None)
def test_with_enough_beams_it_finds_what_trying_everything_finds(seed, length, penalty, block, least):
    model, contexts = Recurrent(seed), [0, 1]
    options = {"max_length": length, "length_penalty": penalty, "block_ngrams": block, "min_length": min(least, length)}
    hypotheses = beam(model, contexts, beams=ALL, candidates=4, **options)
    for context, row in zip(contexts, hypotheses, strict=True):
        expected = everything(model, context, Decoding(**options))[:4]
        assert len(row) == len(expected)
        for reply, (score, logprob, tokens, finished) in zip(row, expected, strict=True):
            assert reply.score == pytest.approx(score, abs=1e-4)
            assert reply.logprob == pytest.approx(logprob, abs=1e-4)
            assert (tuple(reply.tokens), reply.finished) == (tokens, finished)


@pytest.mark.parametrize("seed", range(4))
def test_with_4_grams_blocked_it_finds_what_trying_everything_finds(seed):
    # Two words, and enough room for a 4-gram to repeat.
    model, options = Recurrent(seed, vocabulary=4), {"max_length": 6, "min_length": 6, "block_ngrams": 4}
    [hypotheses] = beam(model, [seed], beams=200, candidates=60, **options)
    expected = everything(model, seed, Decoding(**options))
    assert len(expected) < 2**6
    assert [tuple(reply.tokens) for reply in hypotheses] == [tokens for _, _, tokens, _ in expected]
    assert [reply.score for reply in hypotheses] == pytest.approx([score for score, *_ in expected], abs=1e-4)


@given(
    seed=st.integers(0, 10_000),
    penalty=st.sampled_from([-1.0, 0.0, 0.5, 1.0, 3.0]),
    beams=st.integers(2, 6),
    early=st.booleans(),
)
@example(seed=1754, penalty=-1.0, beams=3, early=True)
@settings(max_examples=60, deadline=None)
def test_stopping_changes_nothing_and_with_early_only_what_would_have_to_grow_into_it(seed, penalty, beams, early):
    # The bound against a plain search, one hypothesis at a time, that never stops, or stops only when `early` lets it.
    model, candidates = Recurrent(seed, vocabulary=6), min(beams, 2)
    options = {"beams": beams, "candidates": candidates, "length_penalty": penalty, "max_length": 9, "early": early}
    for context, row in enumerate(beam(model, [0, 1, 2], **options)):
        expected = plain_search(model, context, beams, penalty, 9, candidates if early else ALL)[:candidates]
        assert [tuple(reply.tokens) for reply in row] == [tokens for _, tokens in expected]
        assert [reply.score for reply in row] == pytest.approx([score for score, _ in expected], abs=1e-4)


def plain_search(model, context, beams, penalty, max_length, enough):
    live, complete = [(0.0, (), model.understand([context]))], []
    for step in range(max_length):
        ways = []
        for logprob, tokens, state in live:
            logits, after = model.step(torch.tensor([tokens[-1] if tokens else START]), state)
            for token, cost in enumerate(logits[0].log_softmax(dim=0).tolist()):
                if token != START and (token != END or step >= 1):
                    ways.append((logprob + cost, (*tokens, token), after))
        ways.sort(key=lambda way: way[0], reverse=True)
        complete += [(lp / (step + 1) ** penalty, tokens[:-1]) for lp, tokens, _ in ways[:beams] if tokens[-1] == END]
        live = [way for way in ways if way[1][-1] != END][:beams]
        best = sorted((score for score, _ in complete), reverse=True)[:enough]
        # At the last step nothing is left to stop: truncated hypotheses compete too.
        last = step + 1 == max_length
        if not last and len(best) == enough and live[0][0] / (step + 2) ** penalty <= best[-1]:
            return sorted(complete, reverse=True)
    complete += [(logprob / max_length**penalty, tokens) for logprob, tokens, _ in live]
    return sorted(complete, reverse=True)


@pytest.mark.parametrize("seed", range(6))
def test_one_beam_is_greedy(seed):
    model, contexts = Recurrent(seed, vocabulary=8), list(range(6))
    greedy = decode(model, model.understand(contexts), Decoding(max_length=9), start=START, end=END, banned=[START])
    assert beam(model, contexts, beams=1, max_length=9) == greedy


@pytest.mark.parametrize("penalty", [0.0, 1.0, 2.0])
def test_a_batch_equals_its_rows_one_by_one(penalty):
    model, contexts = Recurrent(8, vocabulary=9), list(range(12))
    options = {"beams": 4, "candidates": 3, "max_length": 12, "length_penalty": penalty, "block_ngrams": 2}
    for context, row in zip(contexts, beam(model, contexts, **options), strict=True):
        [alone] = beam(model, [context], **options)
        assert [reply.tokens for reply in row] == [reply.tokens for reply in alone]


def test_more_beams_than_greedy_find_the_better_reply():
    # The more likely first word leads to three equally likely second ones, the other one surely to the end.
    table = torch.full((5, 5), -9.0)
    table[START, 2], table[START, 3] = 1.0, 0.9
    table[2, 2:5] = 0.0
    table[3, END] = 9.0
    table[4, END] = 9.0
    model = Markov(table)
    [[greedy]] = decode(model, model.understand(), Decoding(), start=START, end=END, banned=[START])
    [[best]] = decode(model, model.understand(), Decoding(method="beam"), start=START, end=END, banned=[START])
    assert greedy.tokens[0] == 2
    assert best.tokens == [3]
    assert best.score > greedy.score


def test_settled_rows_leave_the_batch():
    # Row 0 is certain to end immediately; row 1 is undecided and continues to the limit.
    class TwoWays(Markov):
        def step(self, tokens, state):
            logits, state = super().step(tokens, state)
            return logits.index_add(1, torch.tensor([END]), state.fixed), state

    model = TwoWays(torch.zeros(5, 5))
    state = model.understand(2)
    state.fixed[0] = 40.0
    options = Decoding(method="beam", beams=3, min_length=0, max_length=6)
    replies = decode(model, state, options, start=START, end=END, banned=[START])
    assert replies[0][0].tokens == []
    # Both rows start with one hypothesis each; the one that stays has three from then on.
    assert model.rows_seen == [2, 3, 3, 3, 3, 3]


def test_the_model_never_sees_a_forbidden_token_even_in_empty_beams():
    model = Recurrent(1)
    beam(model, [0, 1], beams=50, candidates=1)
    assert model.tokens_seen == {START, 2, 3, 4}


@pytest.mark.parametrize("beams", [3, 8])
def test_candidates_are_distinct_and_as_many_as_asked_for(beams):
    model = Recurrent(11, vocabulary=9)
    for row in beam(model, list(range(6)), beams=beams, candidates=3, max_length=8):
        assert len(row) == len({tuple(reply.tokens) for reply in row}) == 3
        assert [reply.score for reply in row] == sorted((reply.score for reply in row), reverse=True)


def test_where_there_are_fewer_replies_than_candidates_all_of_them_come():
    [row] = beam(Recurrent(0), [0], beams=10, candidates=10, max_length=1)
    assert sorted(reply.tokens for reply in row) == [[2], [3], [4]]


@given(seed=st.integers(0, 10_000), size=st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_no_ngram_comes_twice_in_one_hypothesis(seed, size):
    replies = beam(Recurrent(seed), [0, 1], beams=4, candidates=4, max_length=12, min_length=6, block_ngrams=size)
    assert not any(repeats(tuple(reply.tokens), size) for row in replies for reply in row)


def test_a_larger_length_penalty_gives_longer_replies():
    model, lengths = Markov(torch.zeros(5, 5)), []
    for penalty in (0.0, 2.0):
        options = Decoding(method="beam", length_penalty=penalty, max_length=7)
        [[reply]] = decode(model, model.understand(), options, start=START, end=END, banned=[START])
        lengths.append(len(reply.tokens))
    assert lengths == [1, 7]


def test_stopping_early_takes_fewer_steps_and_misses_what_is_only_good_when_long():
    # After the second word it continues with certainty, so its mean grows with its length.
    table = torch.full((4, 4), -9.0)
    table[START, END], table[START, 3] = 0.5, 0.0
    table[3, 3] = 9.0
    tokens, steps = {}, {}
    for early in (False, True):
        model = Markov(table)
        options = Decoding(method="beam", beams=2, min_length=0, max_length=12, early=early)
        [[reply]] = decode(model, model.understand(), options, start=START, end=END, banned=[START])
        tokens[early], steps[early] = reply.tokens, len(model.rows_seen)
    assert tokens == {False: [3] * 12, True: []}
    assert steps[True] < steps[False] == 12


@pytest.mark.parametrize("length", [64 * 40, 64 * 40 + 7, 5_000, 63, 12])
def test_the_largest_of_long_rows_are_those_that_sorting_finds(length):
    values = torch.randn(7, length, generator=torch.Generator().manual_seed(length))
    values[1, :] = -torch.inf
    values[2, 5:] = -torch.inf
    values[3, -3:] += 10
    best, places = topk_in_blocks(values, 10)
    assert torch.equal(best, values.sort(dim=1, descending=True).values[:, :10])
    assert torch.equal(values.gather(1, places), best)
    assert all(len(set(row)) == 10 for row in places.tolist())
    for row in range(len(values)):  # nor does a row depend on the others in its batch
        alone, where = topk_in_blocks(values[row : row + 1], 10)
        assert torch.equal(alone[0], best[row])
        assert torch.equal(where[0], places[row])
