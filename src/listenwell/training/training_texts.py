"""Looks up the texts of training examples by their numbers, if the corpus is available."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from listenwell.training.data import read_examples, with_corpus
from listenwell.training.recipe_files import recipe_from_dict


def training_queries(recipe: Mapping[str, Any] | None, numbers: Collection[int]) -> dict[int, str]:
    """The last turns of the contexts with these numbers in the first stream of the last stage.

    Empty if the recipe is unknown or its corpus is not available.
    """
    if not recipe or not numbers:
        return {}
    texts: dict[int, str] = {}
    try:
        known = recipe_from_dict(dict(recipe))
        stream = with_corpus(known, next(iter(known.stages[-1].streams.values())))
        for number, item in enumerate(read_examples(stream, stream.split)):
            if number in numbers:
                texts[number] = item.context[-1].text
    except (OSError, ValueError):
        return {}
    return texts
