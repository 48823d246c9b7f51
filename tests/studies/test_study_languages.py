"""The language of a study: pages, questions and anchors in that of its data; appendix C word by word."""

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
from listenwell.studies.kinds import SCALE_SETS, STRATEGY_MEMORY_SCALES
from listenwell.studies.payload import Payloads
from listenwell.studies.rating import Ratings
from listenwell.studies.spec import read_recipe
from listenwell.studies.store import Store, Study

Make = Callable[..., Study]
HAN = re.compile(r"[\u4e00-\u9fff]")

APPENDIX_C = """
A response coherent to the conversational contexts and appropriate to the current topic without typos should be
marked as 5 points. A valid response that only satisfies the user’s query should be marked as 3 points. An
irrelevant response should be scored as 1. An incomplete response that the annotators cannot get the speaker’s
meaning should also be assigned as 1. Points 2 and 4 are for decision dilemmas. 5 points stand for an output
response with at least two clauses from different topics, where the topic may be transferred from the current
conversation to another scenario (For example, the query is “How’s the weather?”; and response “It’s fine today,
let’s play basketball” transfers the weather topic to sports. Such a case should be scored as 5 points). A normal
response of a single clause or a single topic should be marked as 3 points. 1 point is for the universal reply
(i.e., “I do think so!”) or the response containing no more than three unique words (i.e., “That is OK”) should be
assigned to point 1. An output response that satisfies the two aspects (empathetic and emotionally positive) should
be assigned as a full mark (5 points). A response that satisfies only one aspect should be scored as 3 points. A
response that cannot satisfy any one aspect should be scored as 1 point. For example, when the input query is “Kobe
Bryant had a plane crash. We lost him, so sad”. 5 points are for the response of “Sorry to hear that crash. He’s a
legend and will be my idol forever. Hope his family and fans can recover soon”. 3 points are for the response of
“Yes, we lost him. I’m extremely heartbroken these days”. 2 points are for the response of “Come on, cheer up. We
still love NBA”.
"""
"""Strategy memory's, with two quotation marks mended."""


def test_the_anchors_of_strategy_memory_are_the_papers_sentences():
    anchors = " ".join(text for scale in STRATEGY_MEMORY_SCALES for text in scale.anchors.values())
    for sentence in re.split(r"(?<=\.) (?=[A-Z0-9])", " ".join(APPENDIX_C.split())):
        assert sentence in anchors


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
