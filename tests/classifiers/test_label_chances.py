"""A classifier's predictions for all replies of a corpus, computed once."""

import numpy as np
import pytest

from listenwell.classifiers.label_chances import reply_chances
from listenwell.classifiers.labeller import Labeller
from listenwell.data.dialogue import Example, Turn

ITEMS = [
    Example("a", (Turn("speaker", "I passed!"),), Turn("listener", "You did it!")),
    Example("b", (Turn("speaker", "It broke."),)),
    Example("c", (Turn("speaker", "It broke."),), Turn("listener", "Oh no.")),
]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("LISTENWELL_CACHE", str(tmp_path))
    return tmp_path / "chances"


@pytest.fixture
def labeller(tiny_classifier):
    return Labeller(tiny_classifier())


def test_every_reply_has_the_classifiers_chances_and_what_is_no_reply_has_none(labeller):
    chances = reply_chances(ITEMS, labeller)
    np.testing.assert_allclose(chances[[0, 2]], labeller.distribution(["You did it!", "Oh no."]), atol=1e-3)
    assert not chances[1].any()


def test_the_same_texts_are_read_once(labeller, cache, monkeypatch):
    first = reply_chances(ITEMS, labeller)
    monkeypatch.setattr(labeller, "distribution", lambda *_: pytest.fail("read again"))
    np.testing.assert_array_equal(reply_chances(ITEMS, labeller), first)
    assert len(list(cache.iterdir())) == 1


def test_other_texts_and_a_broken_file_are_read_anew(labeller, cache):
    first = reply_chances(ITEMS, labeller)
    assert not np.array_equal(reply_chances([ITEMS[0], ITEMS[1], ITEMS[0]], labeller), first)
    for file in cache.iterdir():
        file.write_bytes(b"cut in two")
    np.testing.assert_array_equal(reply_chances(ITEMS, labeller), first)


def test_progress_is_shown_only_where_there_is_work(labeller):
    begun = []
    begin = lambda name, total: begun.append((name, total)) or (lambda done: None)  # noqa: E731
    reply_chances(ITEMS, labeller, begin)
    reply_chances(ITEMS, labeller, begin)
    reply_chances(ITEMS[1:2], labeller, begin)
    assert begun == [("reading what replies express", 2)]
