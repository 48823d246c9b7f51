"""The language of a study: pages, questions and anchors are in the language of its data."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")

from listenwell.data.dialogue import Dialogue, Turn
from listenwell.data.sources import jsonl
from listenwell.studies.chinese import WORDINGS, in_chinese
from listenwell.studies.kinds import SCALE_SETS
from listenwell.studies.payload import Payloads
from listenwell.studies.rating import Ratings
from listenwell.studies.spec import read_recipe
from listenwell.studies.store import Store, Study

Make = Callable[..., Study]
HAN = re.compile(r"[\u4e00-\u9fff]")


@pytest.mark.parametrize("name", SCALE_SETS)
def test_every_scale_has_a_chinese_question_and_an_anchor_for_every_english_one(name: str):
    assert set(WORDINGS[name]) == {scale.key for scale in SCALE_SETS[name]}
    for scale, shown in zip(SCALE_SETS[name], in_chinese(name), strict=True):
        assert set(shown) == set(scale.to_json())
        assert (shown["key"], shown["min"], shown["max"]) == (scale.key, scale.min, scale.max)
        assert set(shown["anchors"]) == set(scale.anchors)
        assert all(HAN.search(text) for text in (shown["name"], shown["question"], *shown["anchors"].values()))


def about(store: Store, study: Study) -> dict[str, Any]:
    return Payloads(Ratings(store, study), store.design(study)).about()


@pytest.fixture
def chinese(tmp_path: Path) -> str:
    file = tmp_path / "chinese.jsonl"
    turns = (Turn("speaker", "我今天很难过。"), Turn("listener", "怎么了？"))
    jsonl.write([Dialogue(str(n), turns, language="zh", split="test") for n in range(8)], file)
    return str(file)


def test_a_study_of_chinese_data_asks_in_chinese(sqlite_store: Store, make_study: Make, chinese: str):
    for fields in ({}, {"scales": "strategy-memory"}, {"scales": "epitome"}, {"kind": "emotion"}):
        study = make_study(sqlite_store, data=chinese, split="test", items=4, **fields)
        shown = about(sqlite_store, study)
        assert (study.spec.language, shown["language"]) == ("zh", "zh")
        assert all(HAN.search(scale["question"]) for scale in shown["scales"])
        assert HAN.search(shown["title"])
    asked = make_study(sqlite_store, data=chinese, split="test", items=4, language="en")
    assert not HAN.search(about(sqlite_store, asked)["scales"][0]["question"]), "what a recipe says counts"


def test_a_study_of_english_data_asks_in_english(sqlite_store: Store, make_study: Make):
    study = make_study(sqlite_store)
    assert (study.spec.language, about(sqlite_store, study)["language"]) == ("en", "en")
    assert about(sqlite_store, study)["scales"][0]["question"].startswith("How much emotional understanding")


def test_the_recipe_of_strategy_memory_is_chinese():
    assert read_recipe("strategy-memory").spoken == "zh"
    assert read_recipe("epitome").scale_set == "epitome"
