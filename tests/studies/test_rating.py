"""What raters do: slots, leases, answers, tie-breaks."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from sqlalchemy import func, select, text
from study_raters import do_task, some_values

from listenwell.studies.kinds import LEFT, RIGHT, TIE
from listenwell.studies.rating import Given, Ratings, RefusedError, UnknownLinkError
from listenwell.studies.schema import answers, assignments
from listenwell.studies.spec import Bonus
from listenwell.studies.store import Store, Study


def stored(store: Store) -> int:
    with store.read() as connection:
        return connection.execute(select(func.count()).select_from(answers)).scalar_one()


def states(store: Store) -> Counter[str]:
    with store.read() as connection:
        return Counter(connection.execute(select(assignments.c.state)).scalars())


def test_64_racing_raters_never_exceed_the_caps(store: Store, make_study: Callable[..., Study]):
    study = make_study(store, items=20, task_size=2, raters=3)  # 10 tasks, 30 slots
    ratings = Ratings(store, study)
    raters = [ratings.join(f"rater-{number}") for number in range(64)]
    start = Barrier(64)

    def race(rater):
        start.wait()
        return ratings.current(rater)

    with ThreadPoolExecutor(64) as pool:
        given = list(pool.map(race, raters))
    got = [one for one in given if one is not None]
    assert len(got) == 30
    assert len({one.slot_id for one in got}) == 30
    assert set(Counter(one.task_id for one in got).values()) == {3}


def test_one_rater_in_many_tabs_gets_one_task(store: Store, make_study: Callable[..., Study]):
    ratings = Ratings(store, make_study(store))
    start = Barrier(16)

    def open_tab(_: int) -> str:
        start.wait()
        return ratings.current(ratings.join("anna")).id

    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(open_tab, range(16)))) == 1
    assert states(store) == {"active": 1}


def test_a_rater_never_gets_a_task_twice_and_is_done_after_all_of_them(store: Store, make_study: Callable[..., Study]):
    ratings = Ratings(store, make_study(store))
    anna = ratings.join("anna")
    assert len({do_task(ratings, anna) for _ in range(2)}) == 2
    assert ratings.current(anna) is None
    progress = ratings.progress(anna)
    assert (progress.done, progress.total, progress.tasks_done, progress.has_more) == (6, 6, 2, False)


def test_at_most_so_many_tasks_for_one_rater(store: Store, make_study: Callable[..., Study]):
    ratings = Ratings(store, make_study(store, items=104, task_size=2, max_tasks=50, raters=4))
    anna = ratings.join("anna")
    assert ratings.progress(anna).total == 100
    for _ in range(50):
        assert do_task(ratings, anna)
    assert ratings.current(anna) is None
    assert ratings.progress(anna).tasks_done == 50
    assert not ratings.progress(anna).has_more


def test_an_abandoned_place_goes_to_somebody_else_after_the_lease(store: Store, make_study: Callable[..., Study]):
    now = [0.0]
    study = make_study(store, items=3, raters=1, lease_minutes=10)
    ratings = Ratings(store, study, clock=lambda: now[0])
    anna, ben = ratings.join("anna"), ratings.join("ben")
    held = ratings.current(anna)
    assert ratings.current(ben) is None
    now[0] = 9 * 60
    ratings.current(anna)  # renews the lease
    now[0] = 15 * 60
    assert ratings.current(ben) is None
    now[0] = 20 * 60
    assert ratings.current(ben).slot_id == held.slot_id
    assert ratings.current(anna) is None


def test_answers_of_somebody_who_comes_back_too_late_are_kept(store: Store, make_study: Callable[..., Study]):
    now = [0.0]
    study = make_study(store, items=3, raters=1, lease_minutes=10)
    ratings = Ratings(store, study, clock=lambda: now[0])
    anna, ben = ratings.join("anna"), ratings.join("ben")
    held = ratings.current(anna)
    now[0] = 3600
    do_task(ratings, ben)
    given = [Given(uuid.uuid4().hex, entry["item"], some_values(ratings, ["A", "B"]), 3.0) for entry in held.layout]
    assert len(ratings.store_answers(anna.token, given)[0]) == 3
    ratings.finish(anna.token, held.task_id)
    assert stored(store) == 6
    assert states(store) == {"done": 1, "extra": 1}


def test_who_comes_back_before_anybody_took_the_place_goes_on_where_they_were(
    store: Store, make_study: Callable[..., Study]
):
    now = [0.0]
    ratings = Ratings(store, make_study(store, lease_minutes=10), clock=lambda: now[0])
    anna, ben = ratings.join("anna"), ratings.join("ben")
    held = ratings.current(anna)
    first = held.layout[0]["item"]
    ratings.store_answers(anna.token, [Given("a1", first, some_values(ratings, ["A", "B"]), 1.0)])
    now[0] = 3600
    ratings.current(ben)  # another rater asks for a task, and the expired lease is noticed
    again = ratings.current(anna)
    assert again.id == held.id
    assert again.answered == (first,)


def test_an_answer_sent_twice_is_stored_once(store: Store, make_study: Callable[..., Study]):
    ratings = Ratings(store, make_study(store))
    anna = ratings.join("anna")
    item = ratings.current(anna).layout[0]["item"]
    answer = Given("client-1", item, some_values(ratings, ["A", "B"]), 4.0)
    for _ in range(3):
        assert ratings.store_answers(anna.token, [answer]) == (["client-1"], {})
    assert stored(store) == 1


def test_one_answer_sent_by_many_threads_is_stored_once(store: Store, make_study: Callable[..., Study]):
    ratings = Ratings(store, make_study(store))
    anna = ratings.join("anna")
    item = ratings.current(anna).layout[0]["item"]
    answer = Given("client-1", item, some_values(ratings, ["A", "B"]), 4.0)
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda _: ratings.store_answers(anna.token, [answer]), range(16)))
    assert all(result == (["client-1"], {}) for result in results)
    assert stored(store) == 1


def test_another_answer_under_a_used_id_is_refused_and_not_lost_silently(
    store: Store, make_study: Callable[..., Study]
):
    ratings = Ratings(store, make_study(store))
    anna = ratings.join("anna")
    item = ratings.current(anna).layout[0]["item"]
    ratings.store_answers(anna.token, [Given("x", item, some_values(ratings, ["A", "B"], 0), 1.0)])
    accepted, refused = ratings.store_answers(anna.token, [Given("x", item, some_values(ratings, ["A", "B"], 1), 1.0)])
    assert accepted == []
    assert "an id of its own" in refused["x"]


def test_two_raters_may_use_the_same_client_id(store: Store, make_study: Callable[..., Study]):
    ratings = Ratings(store, make_study(store))
    for name in ("anna", "ben"):
        rater = ratings.join(name)
        item = ratings.current(rater).layout[0]["item"]
        assert ratings.store_answers(rater.token, [Given("1", item, some_values(ratings, ["A", "B"]), 1.0)])[0] == ["1"]
    assert stored(store) == 2


def test_one_bad_answer_does_not_keep_the_others_back(store: Store, make_study: Callable[..., Study]):
    ratings = Ratings(store, make_study(store))
    anna = ratings.join("anna")
    first, second, _ = (entry["item"] for entry in ratings.current(anna).layout)
    good = Given("good", first, some_values(ratings, ["A", "B"]), 1.0)
    bad = Given("bad", second, {"A": {"empathy": 9}}, 1.0)
    foreign = Given("foreign", "no-such-item", {}, 1.0)
    accepted, refused = ratings.store_answers(anna.token, [good, bad, foreign])
    assert accepted == ["good"]
    assert set(refused) == {"bad", "foreign"}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("likert", {"A": {"empathy": 6, "relevance": 1, "fluency": 1}, "B": {}}),
        ("likert", {"A": {"empathy": 1, "relevance": 1, "fluency": 1}}),
        ("likert", {"A": {"empathy": True, "relevance": 1, "fluency": 1}, "B": {}}),
        ("ab", {"choice": "middle"}),
        ("ab", {"A": "left"}),
        ("drag", {"A": "great", "B": "bad"}),
        ("emotion", {"A": 2, "B": 0}),
        ("emotion", []),
    ],
)
def test_answers_that_are_not_of_the_kind_are_refused(sqlite_store, make_study, kind: str, values: object):
    ratings = Ratings(sqlite_store, make_study(sqlite_store, kind=kind))
    anna = ratings.join("anna")
    item = ratings.current(anna).layout[0]["item"]
    accepted, refused = ratings.store_answers(anna.token, [Given("x", item, values, 1.0)])
    assert accepted == []
    assert refused["x"]


def test_a_task_is_done_only_when_every_item_has_an_answer(store: Store, make_study: Callable[..., Study]):
    ratings = Ratings(store, make_study(store))
    anna = ratings.join("anna")
    task = ratings.current(anna).task_id
    with pytest.raises(RefusedError, match="3 of 3 items have no answer"):
        ratings.finish(anna.token, task)
    do_task(ratings, anna)
    ratings.finish(anna.token, task)  # a second call changes nothing
    assert states(store) == {"done": 1}


def test_unknown_links_and_foreign_tasks_are_refused(store: Store, make_study: Callable[..., Study]):
    ratings = Ratings(store, make_study(store))
    anna, ben = ratings.join("anna"), ratings.join("ben")
    with pytest.raises(UnknownLinkError):
        ratings.store_answers("guessed", [])
    task = ratings.current(anna).task_id
    with pytest.raises(RefusedError, match="not among those"):
        ratings.finish(ben.token, task)


def test_links_are_long_and_the_same_rater_keeps_theirs(store: Store, make_study: Callable[..., Study]):
    ratings = Ratings(store, make_study(store))
    tokens = {ratings.join(f"rater {number}").token for number in range(20)}
    assert len(tokens) == 20
    assert min(map(len, tokens)) >= 32
    assert ratings.join("rater 3").token in tokens
    for wrong in ("", "  ", "x" * 201):
        with pytest.raises(RefusedError):
            ratings.join(wrong)


def test_a_closed_study_gives_no_tasks_and_still_takes_what_was_answered(
    store: Store, make_study: Callable[..., Study]
):
    study = make_study(store)
    ratings = Ratings(store, study)
    anna, ben = ratings.join("anna"), ratings.join("ben")
    held = ratings.current(anna)
    store.close_study(study)
    assert ratings.is_closed()
    assert ratings.current(ben) is None
    waiting = [Given(e["item"], e["item"], some_values(ratings, ["A", "B"]), 1.0) for e in held.layout]
    assert len(ratings.store_answers(anna.token, waiting)[0]) == 3
    ratings.finish(anna.token, held.task_id)
    store.reopen_study(study)
    assert ratings.current(ben) is not None


def test_a_fourth_rater_comes_in_where_three_disagree(store: Store, make_study: Callable[..., Study]):
    study = make_study(store, kind="ab", items=3, task_size=3)
    ratings = Ratings(store, study)
    open_item = store.design(study).items[0].id
    wanted = iter(("echo-one", "echo-two", TIE))

    def vote(system: str) -> Callable[[str, dict[str, str]], dict[str, str]]:
        def values(item: str, shown: dict[str, str]) -> dict[str, str]:
            if item != open_item:
                return {"choice": TIE}
            return {"choice": system if system == TIE else LEFT if shown["A"] == system else RIGHT}

        return values

    names = ("anna", "ben", "cora")
    for name in names:
        do_task(ratings, ratings.join(name), vote(next(wanted)))
    assert all(ratings.current(ratings.join(name)) is None for name in names), "who rated before does not break ties"
    fourth = ratings.current(ratings.join("dora"))
    assert [entry["item"] for entry in fourth.layout] == [open_item]
    do_task(ratings, ratings.join("dora"), vote("echo-two"))
    assert ratings.current(ratings.join("emil")) is None
    store.check_unchanged(study)  # tie-breaks do not change what was frozen


def test_nothing_updates_or_deletes_answers():
    """The store is append-only: no code of the package updates or deletes rows of the table."""
    from pathlib import Path

    import listenwell.studies as package

    for path in Path(package.__file__).parent.glob("*.py"):
        content = path.read_text(encoding="utf-8").replace(" ", "")
        assert "answers.update(" not in content, path
        assert "answers.delete(" not in content, path
        assert "deletefromanswers" not in content.lower(), path


def test_practice_is_stored_apart_from_the_ratings(store: Store, make_study: Callable[..., Study]):
    study = make_study(store, kind="drag", practice=True, bonus=Bonus(per_task=1))
    ratings = Ratings(store, study)
    anna = ratings.join("anna")
    values = dict.fromkeys("ABCD", "good")
    assert ratings.store_answers(anna.token, [Given("p", "practice-1", values, 1.0)])[0] == ["p"]
    ratings.finish(anna.token, "practice")
    assert ratings.rater(anna.token).practised
    assert ratings.progress(anna).done == 0
    with store.read() as connection:
        row = connection.execute(text('SELECT assignment_id, "values" FROM answers')).one()
    assert row[0] is None
    assert json.loads(row[1]) == values
