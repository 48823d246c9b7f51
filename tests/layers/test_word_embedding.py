import math

import pytest
import torch

from listenwell.layers.embedding import QUIET, WordEmbedding
from listenwell.layers.transformer import sinusoids


def cosines(vectors):
    unit = vectors / vectors.norm(dim=1, keepdim=True)
    return unit @ unit.T


@pytest.fixture
def vectors():
    torch.manual_seed(4)
    return torch.randn(20, 8) * torch.rand(20, 1) * 5


@torch.no_grad()
@pytest.mark.parametrize("table_width", [8, 12])
def test_vectors_enter_a_table_as_wide_or_wider_with_their_angles(vectors, table_width):
    words = WordEmbedding(20, 16, table_width)
    known = torch.arange(20) < 15
    before = words.table.clone()
    words.start_from(vectors, known)
    assert torch.allclose(cosines(words.table[known]), cosines(vectors[known]), atol=1e-5)
    assert torch.equal(words.table[~known], before[~known])
    lengths = words.table[known].norm(dim=1)
    assert lengths.mean().item() == pytest.approx(1.0, abs=1e-5)
    assert torch.allclose(lengths / lengths[0], vectors[known].norm(dim=1) / vectors[0].norm(), atol=1e-5)


@torch.no_grad()
def test_vectors_as_wide_as_the_table_are_not_turned(vectors):
    words = WordEmbedding(20, 16, 8)
    words.start_from(vectors, torch.ones(20, dtype=torch.bool))
    assert torch.allclose(words.table, vectors / vectors.norm(dim=1).mean(), atol=1e-6)


@torch.no_grad()
def test_wider_vectors_enter_a_narrower_table_with_about_their_angles():
    torch.manual_seed(4)
    middle = torch.randn(5, 64)
    vectors = middle.repeat_interleave(8, dim=0) + 0.6 * torch.randn(40, 64)  # five groups of similar words
    words = WordEmbedding(40, 32)
    words.start_from(vectors, torch.ones(40, dtype=torch.bool))
    pairs = torch.triu(torch.ones(40, 40), diagonal=1).bool()
    both = torch.stack([cosines(words.table)[pairs], cosines(vectors)[pairs]])
    assert torch.corrcoef(both)[0, 1] > 0.9


@torch.no_grad()
@pytest.mark.parametrize("table_width", [0, 6])
def test_words_are_read_and_chosen_by_one_table(table_width):
    words = WordEmbedding(10, 16, table_width)
    hidden = torch.randn(3, 16)
    width = table_width or 16
    assert words.table.shape == (10, width)
    table = words.table
    read, query = (table @ words.widen.weight.T, hidden @ words.narrow.weight.T) if table_width else (table, hidden)
    tokens = torch.tensor([[1, 2], [9, 0]])
    assert torch.allclose(words(tokens), read[tokens] * math.sqrt(width), atol=1e-5)
    assert torch.allclose(words.logits(hidden), query @ table.T + words.bias, atol=1e-5)
    assert torch.allclose(words.query(hidden), query, atol=1e-6)
    assert words.choices is words.table


@torch.no_grad()
def test_untied_words_are_chosen_by_a_table_of_their_own(vectors):
    words = WordEmbedding(20, 16, 8, tied=False)
    assert not torch.equal(words.choices, words.table)
    words.start_from(vectors, torch.ones(20, dtype=torch.bool))
    assert torch.equal(words.choices, words.table)
    words.table += 1.0
    hidden = torch.randn(3, 16)
    assert torch.allclose(words.logits(hidden), words.query(hidden) @ words.choices.T + words.bias, atol=1e-5)
    assert not torch.equal(words.choices, words.table)


@torch.no_grad()
def test_a_narrow_table_is_widened_without_bending():
    words = WordEmbedding(10, 16, 6)
    read = words(torch.arange(10)[None])[0]
    assert torch.allclose(cosines(read), cosines(words.table), atol=1e-5)


class Silenced:
    """A decoder as the output layer sees it."""

    def __init__(self, width):
        self.output_weight = torch.ones(width)
        self.silent = False

    def start_silent(self):
        self.silent = True


@torch.no_grad()
@pytest.mark.parametrize("table_width", [8, 3])
def test_the_bias_starts_as_the_frequencies(table_width):
    words = WordEmbedding(4, 8, table_width)
    counts = torch.tensor([0, 1, 10, 100])
    words.start_at_unigrams(counts, Silenced(8))
    smoothed = counts + 0.5
    assert torch.allclose(words.bias.exp(), smoothed / smoothed.sum(), atol=1e-6)
    assert torch.allclose(words.bias.softmax(0), words.bias.exp(), atol=1e-6)


@torch.no_grad()
@pytest.mark.parametrize("table_width", [64, 16])
def test_the_word_just_read_is_not_chosen_at_the_start(table_width):
    words, decoder = WordEmbedding(50, 64, table_width), Silenced(64)
    words.start_at_unigrams(torch.ones(50), decoder)
    assert decoder.silent == (table_width != 64)
    read = words(torch.arange(50))
    assert read.any()
    assert torch.allclose(words.logits(read * decoder.output_weight), words.bias.expand(50, 50), atol=1e-4)


@torch.no_grad()
def test_nor_does_the_choice_see_positions():
    words = WordEmbedding(50, 96, 32)
    words.start_at_unigrams(torch.ones(50), Silenced(96))
    places = sinusoids(40, 96)
    assert words.query(places).norm() < 0.1 * places.norm()


@torch.no_grad()
def test_a_choice_without_room_beside_the_words_starts_quietly():
    words, decoder = WordEmbedding(50, 64, 48), Silenced(64)
    before = words.narrow.weight.clone()
    words.start_at_unigrams(torch.ones(50), decoder)
    assert torch.allclose(words.narrow.weight, QUIET * before)
    assert not decoder.silent


@torch.no_grad()
def test_an_untied_choice_starts_at_zero():
    words = WordEmbedding(4, 8, tied=False)
    words.start_at_unigrams(torch.ones(4), Silenced(8))
    assert torch.equal(words.logits(torch.randn(5, 8)), words.bias.expand(5, 4))
