from collections import Counter
from math import log

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_models import END, START, Markov, Recurrent, logprobs_after

from listenwell.decoding import Decoding, decode
from listenwell.decoding.sampling import HEAD, distribution, draw, front, invert, uniforms

MANY = 4000


def sample(model, contexts, items=None, **options):
    options = Decoding(method="sample", **{"max_length": 10, **options})
    return decode(model, model.understand(contexts), options, start=START, end=END, banned=[START], items=items)


def tokens_of(replies):
    return [[reply.tokens for reply in row] for row in replies]


def first_tokens(probabilities: list[float], **options) -> dict[int, float]:
    """How often each token comes first in many samples from a model with these probabilities."""
    table = torch.tensor(probabilities).log().expand(len(probabilities), -1)
    settings = Decoding(method="sample", max_length=1, min_length=0, candidates=MANY, **options)
    [row] = decode(Markov(table), Markov(table).understand(), settings, start=START, end=END)
    counts = Counter(reply.tokens[0] if reply.tokens else END for reply in row)
    return {token: count / MANY for token, count in counts.items()}


def by_hand(probabilities: list[float], temperature=1.0, top_k=0, top_p=1.0) -> dict[int, float]:
    """The same from the definition, token by token."""
    powers = {token: p ** (1 / temperature) for token, p in enumerate(probabilities)}
    ranked = sorted(powers, key=lambda token: (-powers[token], token))[: top_k or None]
    whole = sum(powers[token] for token in ranked)
    kept, mass = [], 0.0
    for token in ranked:
        if mass >= top_p:
            break
        kept.append(token)
        mass += powers[token] / whole
    return {token: powers[token] / sum(powers[k] for k in kept) for token in kept}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"top_p": 0.59},
        {"top_p": 0.61},
        {"top_p": 0.05},
        {"top_k": 3},
        {"temperature": 0.5},
        {"temperature": 3.0},
        {"temperature": 2.0, "top_k": 4, "top_p": 0.7},
    ],
    ids=str,
)
def test_samples_follow_the_distribution_computed_by_hand(options):
    probabilities = [0.05, 0.2, 0.08, 0.4, 0.17, 0.1]
    expected, actual = by_hand(probabilities, **options), first_tokens(probabilities, **options)
    assert set(actual) == set(expected)
    for token, share in expected.items():
        # Four standard deviations; the seed is fixed, so this cannot fail by chance later.
        assert actual[token] == pytest.approx(share, abs=4 * (0.25 / MANY) ** 0.5)


def test_each_step_is_drawn_anew():
    # Two words, each equally likely after the other: all four pairs are too.
    table = torch.tensor([-30.0, -30.0, 0.0, 0.0]).expand(4, -1)
    options = Decoding(method="sample", max_length=2, candidates=MANY)
    [row] = decode(Markov(table), Markov(table).understand(), options, start=START, end=END)
    counts = Counter(tuple(reply.tokens) for reply in row)
    for pair in [(2, 2), (2, 3), (3, 2), (3, 3)]:
        assert counts[pair] / MANY == pytest.approx(0.25, abs=4 * (0.25 / MANY) ** 0.5)


@given(
    st.lists(st.integers(1, 6), min_size=5, max_size=9),
    st.sampled_from([0, 1, 2, 4]),
    st.sampled_from([0.1, 0.45, 0.8, 0.97, 1.0]),
    st.sampled_from([0.3, 1.0, 2.0]),
)
@settings(max_examples=80, deadline=None)
def test_the_filters_keep_what_their_definitions_keep_with_equal_tokens_too(weights, top_k, top_p, temperature):
    probabilities = [weight / sum(weights) for weight in weights]
    options = Decoding(method="sample", top_k=top_k, top_p=top_p, temperature=temperature)
    actual = distribution(torch.tensor([probabilities], dtype=torch.float64).log(), options)[0]
    expected = by_hand(probabilities, temperature, top_k, top_p)
    actual = (actual / actual.sum()).tolist()
    kept = [token for token, p in enumerate(actual) if p > 0]
    # If the mass hits the limit up to rounding, one token more or less is right.
    assert abs(len(kept) - len(expected)) <= 1
    if len(kept) == len(expected):
        assert {token: pytest.approx(actual[token], abs=1e-6) for token in kept} == expected


def test_top_p_looks_beyond_the_head_of_a_large_flat_vocabulary():
    flat = torch.full((2, 5000), log(1 / 5000), dtype=torch.float64)
    flat[1, 7] = 20.0
    kept = (distribution(flat.log_softmax(dim=1), Decoding(method="sample", top_p=0.5)) > 0).sum(dim=1)
    assert kept.tolist() == [pytest.approx(2500, abs=1), 1]


@pytest.mark.parametrize("options", [{"top_k": 1}, {"top_p": 1e-9}, {"temperature": 1e-30}], ids=str)
def test_at_their_limits_the_filters_are_greedy(options):
    model = Recurrent(5, vocabulary=9)
    greedy = decode(
        model, model.understand(list(range(8))), Decoding(max_length=10), start=START, end=END, banned=[START]
    )
    assert tokens_of(sample(model, list(range(8)), **options)) == tokens_of(greedy)


def test_of_equally_likely_tokens_top_k_keeps_the_first():
    probabilities = distribution(torch.full((1, 6), log(1 / 6)), Decoding(method="sample", top_k=2))
    assert probabilities[0].tolist() == pytest.approx([0.5, 0.5, 0, 0, 0, 0])


def test_the_same_seed_gives_the_same_samples_and_another_seed_others():
    model = Recurrent(1, vocabulary=9)
    one, same, other = (tokens_of(sample(model, [1, 2, 3], candidates=4, seed=seed)) for seed in (7, 7, 8))
    assert one == same
    assert one != other


def test_samples_of_one_context_differ_among_candidates_and_rows():
    model = Recurrent(1, vocabulary=9)
    first, second = tokens_of(sample(model, [4, 4], candidates=8, temperature=2.0))
    assert len({tuple(tokens) for tokens in first}) > 4
    assert first != second


def test_the_global_generator_is_neither_used_nor_touched():
    model = Recurrent(1)
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    one = tokens_of(sample(model, [1, 2]))
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(2)
    assert tokens_of(sample(model, [1, 2])) == one


def test_a_row_does_not_depend_on_its_batch_mates():
    model, contexts = Recurrent(2, vocabulary=9), [3, 1, 4, 1, 5, 9, 2, 6]
    together = tokens_of(sample(model, contexts, candidates=3, block_ngrams=2))
    for cut in (1, 3):
        pieces = [
            row
            for begin in range(0, 8, cut)
            for row in tokens_of(
                sample(
                    model,
                    contexts[begin : begin + cut],
                    candidates=3,
                    block_ngrams=2,
                    items=range(begin, min(begin + cut, 8)),
                )
            )
        ]
        assert pieces == together


def test_fewer_candidates_are_the_first_of_more():
    model = Recurrent(2, vocabulary=9)
    [few], [more] = (tokens_of(sample(model, [3], candidates=n)) for n in (2, 6))
    assert all(tokens in more for tokens in few)


def test_samples_come_best_first_with_the_models_own_logprob():
    model = Recurrent(6, vocabulary=7)
    for context, row in enumerate(sample(model, [0, 1, 2], candidates=6, temperature=2.5, length_penalty=0.5)):
        assert [reply.score for reply in row] == sorted((reply.score for reply in row), reverse=True)
        for reply in row:
            path = (*reply.tokens, *([END] if reply.finished else []))
            costs = [logprobs_after(model, context, path[:i])[token].item() for i, token in enumerate(path)]
            assert reply.logprob == pytest.approx(sum(costs), abs=1e-4)
            assert reply.score == pytest.approx(reply.logprob / len(path) ** 0.5)


def test_ended_samples_leave_the_batch():
    model = Recurrent(4, vocabulary=5)
    replies = sample(model, [0, 1, 2, 3], candidates=5)
    steps = [min(len(reply.tokens) + 1, 10) for row in replies for reply in row]
    assert model.rows_seen == [sum(n > step for n in steps) for step in range(max(steps))]


def test_an_impossible_token_is_not_drawn_at_either_edge():
    probabilities = torch.tensor([[0.0, 0.3, 0.0, 0.7, 0.0]] * 3)
    edges = torch.tensor([0.0, 0.3, 1.0], dtype=torch.float64)
    assert set(invert(probabilities, edges).tolist()) <= {1, 3}


def test_uniform_numbers_are_of_their_seed_item_and_candidate_alone():
    numbers = uniforms(0, [10, 11], 2, 5)
    assert torch.equal(numbers[3:], uniforms(0, [11], 2, 5)[1:])
    assert len(set(numbers.flatten().tolist())) == 20
    assert not torch.equal(uniforms(1, [10], 1, 5), uniforms(0, [11], 1, 5))
    assert numbers.min() >= 0
    assert numbers.max() < 1


# Few of many words


@pytest.mark.parametrize("options", [{"top_p": 0.9}, {"top_k": 40}, {"top_k": 9, "top_p": 0.5}], ids=str)
@pytest.mark.parametrize("temperature", [0.01, 0.7, 1.0])
def test_of_many_words_the_few_that_are_possible_are_drawn_as_from_all(options, temperature):
    settings = Decoding(method="sample", temperature=temperature, **options)
    noise = torch.Generator().manual_seed(3)
    logprobs = (4 * torch.randn(50, 10 * HEAD, generator=noise)).log_softmax(dim=1)
    logprobs[7, 5:] = -torch.inf
    ids, chances, remainder = front(logprobs, settings)
    assert remainder.all()
    whole = distribution(logprobs, settings)
    assert [sorted(row.nonzero().squeeze(1).tolist()) for row in whole] == [
        row[chance > 0].tolist() for row, chance in zip(ids, chances, strict=True)
    ]
    uniform = torch.rand(50, generator=noise, dtype=torch.float64)
    assert torch.equal(draw(logprobs, uniform, settings), invert(whole, uniform))


def test_where_the_likeliest_do_not_tell_what_is_possible_all_words_are_looked_at():
    flat = torch.full((2, 4 * HEAD), 0.25 / HEAD).log()
    steep = torch.linspace(0, -60, 4 * HEAD).log_softmax(dim=0).expand(2, -1)
    nucleus, most = Decoding(method="sample", top_p=0.9), Decoding(method="sample", top_k=3)
    assert front(steep, Decoding(method="sample")) is None  # nothing is left out
    assert front(steep, Decoding(method="sample", top_k=HEAD)) is None
    both = torch.cat([flat, steep])
    for options in (nucleus, most):  # flat rows have more candidates, or there are ties at the cutoff
        assert front(both, options)[2].tolist() == [False, False, True, True]
        uniform = torch.tensor([0.1, 0.9, 0.1, 0.9], dtype=torch.float64)
        assert torch.equal(draw(both, uniform, options), invert(distribution(both, options), uniform))
    assert draw(flat, torch.tensor([0.1, 0.9], dtype=torch.float64), most).tolist() == [0, 2]
