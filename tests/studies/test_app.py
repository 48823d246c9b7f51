"""The HTTP app of a study, as raters' pages use it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("sqlalchemy")
pytest.importorskip("fastapi")
from starlette.testclient import TestClient
from study_raters import some_values

from listenwell.studies.app import MAX_BODY, make_app
from listenwell.studies.rating import Ratings
from listenwell.studies.report import report_page
from listenwell.studies.server_lock import ServerLock
from listenwell.studies.spec import Bonus
from listenwell.studies.store import Store, Study

Serve = Callable[..., tuple[TestClient, Study]]


@pytest.fixture
def serve(sqlite_store: Store, make_study: Callable[..., Study]) -> Iterator[Serve]:
    clients: list[TestClient] = []

    def start(**fields: Any) -> tuple[TestClient, Study]:
        study = make_study(sqlite_store, **fields)
        app = make_app(sqlite_store, study, report=lambda: report_page(sqlite_store, study))
        client = TestClient(app, base_url="http://127.0.0.1", follow_redirects=False)
        clients.append(client.__enter__())
        return client, study

    yield start
    for client in clients:
        client.__exit__(None, None, None)


def join(client: TestClient, study: Study, rater: str = "anna") -> str:
    response = client.get(f"/join/{study.join_code}", params={"rater": rater})
    assert response.status_code == 303
    return response.headers["location"].rsplit("/", 1)[1]


def answer_all(client: TestClient, token: str, state: dict[str, Any], ratings: Ratings) -> None:
    for number, item in enumerate(state["task"]["items"]):
        letters = [reply["key"] for reply in item["replies"]]
        body = {"id": uuid.uuid4().hex, "item": item["id"], "seconds": 2.0}
        values = some_values(ratings, letters, number)
        response = client.post(f"/api/{token}/answers", json={"answers": [{**body, "values": values}]})
        assert response.json() == {"stored": [body["id"]]}


def test_a_rater_goes_from_the_open_link_to_a_completion_code(serve: Serve, sqlite_store: Store):
    client, study = serve()
    ratings = Ratings(sqlite_store, study)
    token = join(client, study)
    assert client.get(f"/r/{token}").status_code == 200
    states = []
    for _ in range(3):
        state = client.get(f"/api/{token}").json()
        states.append((state["state"], state["progress"]["done"], bool(state["completion_code"])))
        if state["task"] is None:
            break
        answer_all(client, token, state, ratings)
        assert client.post(f"/api/{token}/task/{state['task']['id']}/done").status_code == 200
    assert states == [("rating", 0, False), ("rating", 3, True), ("done", 6, True)]


def test_the_state_is_what_the_page_expects(serve: Serve):
    client, study = serve(
        kind="likert", scales="strategy-memory", show_reference=True, title="Replies", welcome=["Hello."]
    )
    state = client.get(f"/api/{join(client, study)}").json()
    assert set(state) == {"study", "progress", "state", "task", "completion_code"}
    about = state["study"]
    assert (about["title"], about["kind"], about["language"], about["welcome"]) == (
        "Replies",
        "likert",
        "en",
        ["Hello."],
    )
    assert [scale["key"] for scale in about["scales"]] == ["qual", "div", "emo"]
    assert set(about["scales"][0]["anchors"]) == set("12345")
    item = state["task"]["items"][0]
    assert {reply["key"] for reply in item["replies"]} == {"A", "B"}
    assert item["reference"]
    assert item["context"][-1]["speaker"] == "speaker"
    assert item["emotion_choices"] is None


def test_practice_comes_first_and_tells_what_is_expected(serve: Serve):
    client, study = serve(kind="drag", practice=True, bonus=Bonus(per_task=1))
    token = join(client, study)
    state = client.get(f"/api/{token}").json()
    assert state["state"] == "practice"
    assert state["task"]["practice"] is True
    item = state["task"]["items"][0]
    assert item["expected"]["C"] == ["bad"]
    values = {reply["key"]: "okay" for reply in item["replies"]}
    sent = {"answers": [{"id": "p", "item": item["id"], "values": values, "seconds": 1}]}
    assert client.post(f"/api/{token}/answers", json=sent).status_code == 200
    assert client.post(f"/api/{token}/task/{state['task']['id']}/done").status_code == 200
    assert client.get(f"/api/{token}").json()["state"] == "rating"


@pytest.mark.parametrize("kind", ["likert", "ab", "drag", "emotion"])
def test_no_traffic_names_a_system_or_another_rater_or_their_answers(serve: Serve, sqlite_store: Store, kind: str):
    fields: dict[str, Any] = {"bonus": Bonus(per_task=1)} if kind == "drag" else {}
    systems = ["echo-one", "echo-two", "echo-three"]
    client, study = serve(kind=kind, systems=systems, practice=True, published=["mime/2"], **fields)
    ratings = Ratings(sqlite_store, study)
    seen: list[str] = []
    client.event_hooks = {"response": [lambda response: seen.append(_captured(response))]}
    for rater in ("anna-the-first", "ben-the-second"):
        token = join(client, study, rater)
        seen.append(client.get(f"/r/{token}").text)
        for _ in range(3):
            state = client.get(f"/api/{token}").json()
            if state["task"] is None:
                break
            if state["state"] == "rating":
                answer_all(client, token, state, ratings)
            client.post(f"/api/{token}/task/{state['task']['id']}/done")
    for path in ("/r/none", "/api/none", "/join/none?rater=x", "/report", "/report?key=no", "/static/rate.js"):
        client.get(path)
    traffic = "\n".join(seen).lower()
    assert len(seen) > 10
    for word in (*systems, "mime", "anna-the-first", "ben-the-second", study.name, study.report_key.lower()):
        assert word not in traffic, word
    assert '"human"' not in traffic
    assert '"label"' not in traffic
    assert '"corpus_id"' not in traffic
    if kind != "emotion":
        assert '"emotion":' not in traffic


def _captured(response: Any) -> str:
    response.read()
    return "\n".join([*(f"{name}: {value}" for name, value in response.headers.items()), response.text])


def test_unknown_links_have_a_page_and_the_api_a_message(serve: Serve):
    client, study = serve()
    for path in ("/r/guess", "/join/guess?rater=anna", "/report", "/report?key=guess"):
        response = client.get(path)
        assert response.status_code == 404
        assert "This link does not work" in response.text
    assert client.get(f"/join/{study.join_code}").status_code == 400
    assert client.get("/api/guess").status_code == 404
    assert "no rater" in client.get("/api/guess").json()["detail"]


def test_a_closed_study_says_so_and_keeps_what_is_still_sent(serve: Serve, sqlite_store: Store):
    client, study = serve()
    ratings = Ratings(sqlite_store, study)
    token = join(client, study)
    state = client.get(f"/api/{token}").json()
    sqlite_store.close_study(study)
    late = client.get(f"/join/{study.join_code}", params={"rater": "late"})
    assert (late.status_code, "This study is closed" in late.text) == (410, True)
    assert join(client, study) == token, "who has answers waiting still gets to their page"
    closed = client.get(f"/api/{token}").json()
    assert (closed["state"], closed["task"]) == ("closed", None)
    answer_all(client, token, state, ratings)
    assert client.post(f"/api/{token}/task/{state['task']['id']}/done").status_code == 200
    assert client.get(f"/api/{token}").json()["completion_code"]


def test_who_comes_after_all_places_are_taken_is_told(serve: Serve, sqlite_store: Store):
    client, study = serve(items=3, raters=1)
    first = join(client, study, "anna")
    assert client.get(f"/api/{first}").json()["state"] == "rating"
    late = client.get(f"/api/{join(client, study, 'ben')}").json()
    assert (late["state"], late["task"], late["completion_code"]) == ("used-up", None, None)


def test_a_task_without_all_answers_is_a_conflict(serve: Serve):
    client, study = serve()
    token = join(client, study)
    task = client.get(f"/api/{token}").json()["task"]["id"]
    response = client.post(f"/api/{token}/task/{task}/done")
    assert response.status_code == 409
    assert response.json()["detail"] == "3 of 3 items have no answer yet"


def test_refused_answers_say_why_and_the_good_ones_are_stored(serve: Serve, sqlite_store: Store):
    client, study = serve()
    ratings = Ratings(sqlite_store, study)
    token = join(client, study)
    first, second, _ = client.get(f"/api/{token}").json()["task"]["items"]
    good = {"id": "g", "item": first["id"], "values": some_values(ratings, ["A", "B"]), "seconds": 1}
    bad = {"id": "b", "item": second["id"], "values": {"A": {"empathy": 7}}, "seconds": 1}
    response = client.post(f"/api/{token}/answers", json={"answers": [good, bad]})
    assert response.status_code == 422
    assert response.json()["stored"] == ["g"]
    assert set(response.json()["refused"]) == {"b"}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"answers": []},
        {"answers": [{}]},
        {"answers": [{"id": "", "item": "x", "values": {}, "seconds": 1}]},
        {"answers": [{"id": "a", "item": "x", "values": [], "seconds": 1}]},
        {"answers": [{"id": "a", "item": "x", "values": {}, "seconds": -1}]},
        {"answers": [{"id": "a" * 300, "item": "x", "values": {}, "seconds": 1}]},
    ],
)
def test_bodies_of_another_form_are_refused_with_one_sentence(serve: Serve, body: dict):
    client, study = serve()
    response = client.post(f"/api/{join(client, study)}/answers", json=body)
    assert response.status_code == 422
    assert isinstance(response.json()["detail"], str)


def test_seconds_that_are_no_number_are_refused(serve: Serve):
    client, study = serve()
    text = json.dumps({"answers": [{"id": "a", "item": "x", "values": {}, "seconds": float("nan")}]})
    headers = {"content-type": "application/json"}
    assert client.post(f"/api/{join(client, study)}/answers", content=text, headers=headers).status_code == 422


def test_pages_are_guarded_like_the_chat_page(serve: Serve):
    client, study = serve()
    token = join(client, study)
    headers = client.get(f"/r/{token}").headers
    assert "script-src 'self'" in headers["content-security-policy"]
    assert "unsafe-inline" not in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert client.get(f"/r/{token}", headers={"host": "evil.example"}).status_code == 403
    foreign = {"origin": "http://evil.example"}
    assert client.post(f"/api/{token}/task/x/done", headers=foreign).status_code == 403
    huge = client.post(f"/api/{token}/answers", content=b"x" * (MAX_BODY + 1))
    assert huge.status_code == 400


def test_files_of_the_study_and_of_all_pages_are_served(serve: Serve):
    client, _ = serve()
    for name in ("rate.js", "study.css", "base.css"):
        assert client.get(f"/static/{name}").status_code == 200
    assert client.get("/static/../app.py").status_code in (400, 404)


def test_the_report_needs_its_key_and_brings_its_own_policy(serve: Serve):
    client, study = serve()
    response = client.get("/report", params={"key": study.report_key})
    assert response.status_code == 200
    assert "echo-one" in response.text
    assert "script-src" not in response.headers["content-security-policy"]
    assert "default-src 'none'" in response.headers["content-security-policy"]


def test_a_store_that_is_away_is_a_reason_to_try_again(serve: Serve, sqlite_store: Store):
    from sqlalchemy import text

    client, study = serve()
    token = join(client, study)
    with sqlite_store.write() as connection:
        connection.execute(text("ALTER TABLE answers RENAME TO elsewhere"))
    response = client.get(f"/api/{token}")
    assert response.status_code == 503
    assert response.headers["retry-after"] == "2"
    with sqlite_store.write() as connection:
        connection.execute(text("ALTER TABLE elsewhere RENAME TO answers"))
    assert client.get(f"/api/{token}").status_code == 200


def test_a_server_that_lost_its_place_takes_no_answers(sqlite_store: Store, make_study: Callable[..., Study]):
    study = make_study(sqlite_store)
    lock = ServerLock(sqlite_store, study)
    lock.acquire()
    app = make_app(sqlite_store, study, lock)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert client.get("/r/x").status_code == 404
        lock.is_lost = True
        assert client.get("/r/x").status_code == 503
