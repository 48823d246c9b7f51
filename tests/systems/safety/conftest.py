"""Read many cases in batches: one by one, the classifier would take most of the time of these tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from listenwell.data.dialogue import readable
from listenwell.systems.safety.classifier import english_classifier
from listenwell.systems.safety.detector import CHINESE, rules
from listenwell.systems.safety.once import remembering


@contextmanager
def read_at_once(texts: Iterable[str]) -> Iterator[None]:
    """A context in which the English classifier has already read all these messages, in batches."""
    with remembering():
        classifier = english_classifier(rules("en").normal)
        if classifier is not None:
            classifier.read_ahead(*((CHINESE.sub(" ", readable(text)), False) for text in texts))
        yield


@pytest.fixture(name="read_at_once")
def read_at_once_fixture() -> Callable[[Iterable[str]], AbstractContextManager[None]]:
    return read_at_once
