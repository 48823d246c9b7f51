"""Human ratings as the numbers of the published table that a study reproduces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")
from study_raters import do_task

from listenwell.studies.kinds import LEFT, RIGHT
from listenwell.studies.paper_ratings import for_rows, oriented, paper_numbers
from listenwell.studies.rating import Ratings
from listenwell.studies.report import make_report
from listenwell.studies.store import Store, Study

NAMES = {"echo-one": "MIME", "echo-two": "MoEL"}


def rated(store: Store, study: Study, value: Callable[[str, dict[str, str]], Any]) -> Any:
    ratings = Ratings(store, study)
    for name in ("anna", "ben", "cora"):
        rater = ratings.join(name)
        while do_task(ratings, rater, value):
            pass
    return paper_numbers(make_report(store, study))


def test_ratings_stand_in_the_paper_s_rows_and_under_its_metrics(sqlite_store: Store, make_study: Callable[..., Study]):
    study = make_study(sqlite_store, scales="mime", published=["mime/2"], published_names=NAMES)
    scores, keys = {"echo-one": 4, "echo-two": 2}, ("empathy", "relevance", "fluency")
    numbers = rated(
        sqlite_store,
        study,
        lambda item, shown: {letter: dict.fromkeys(keys, scores[system]) for letter, system in shown.items()},
    )
    places = [("ed", "MIME", "human_empathy"), ("ed", "MoEL", "human_fluency"), ("ed", "Multi-TR", "human_empathy")]
    found = for_rows(numbers, places)
    assert {place: one.value for place, one in found.items()} == {places[0]: 4.0, places[1]: 2.0}
    assert numbers[None, "MIME", "empathy_pos"].value == 4.0  # Table 4's, by polarity


def test_a_study_without_ratings_has_no_numbers(sqlite_store: Store, make_study: Callable[..., Study]):
    study = make_study(sqlite_store, scales="mime", published=["mime/2"], published_names=NAMES)
    assert paper_numbers(make_report(sqlite_store, study)) == {}


def test_a_loss_and_a_bad_reply_are_better_the_fewer_there_are(sqlite_store: Store, make_study: Callable[..., Study]):
    study = make_study(sqlite_store, kind="ab", published=["mime/3"], published_names=NAMES)
    numbers = rated(
        sqlite_store,
        study,
        lambda item, shown: {"choice": LEFT if next(iter(shown.values())) == "echo-one" else RIGHT},
    )
    found = for_rows(numbers, [("ed", "MIME vs MoEL", "ab_win"), ("ed", "MIME vs MoEL", "ab_loss")])
    assert found["ed", "MIME vs MoEL", "ab_win"].value == 100
    assert found["ed", "MIME vs MoEL", "ab_loss"].better == "lower"
    assert oriented("human_bad", found["ed", "MIME vs MoEL", "ab_win"]).better == "lower"
