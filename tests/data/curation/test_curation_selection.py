"""The selection of the most emotional dialogues equals that of sorting all of them."""

import numpy as np
import pytest

from listenwell.data.curation.selection import MostEmotional


@pytest.mark.parametrize("number", [1, 7, 250, 999, 1000, 5000])
@pytest.mark.parametrize("digits", [6, 1, 0])
def test_the_choice_is_that_of_a_stable_sort(number: int, digits: int):
    values = np.round(np.random.default_rng(number).random(1000), digits)
    blocks = np.split(values, [0, 10, 400, 400])
    selection = MostEmotional(lambda: blocks, number)
    begins = np.cumsum([0, *map(len, blocks)])
    chosen = np.concatenate([selection.chosen(block, begin) for block, begin in zip(blocks, begins, strict=False)])
    expected = np.zeros(1000, dtype=bool)
    expected[np.argsort(-values, kind="stable")[:number]] = True
    assert np.array_equal(chosen, expected)


def test_none_cannot_be_chosen():
    with pytest.raises(ValueError, match="is 0, expected at least 1"):
        MostEmotional(lambda: [np.zeros(3)], 0)
