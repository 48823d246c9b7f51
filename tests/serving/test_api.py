"""The API from a client's side: complete and streamed replies, errors that name the field."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("fastapi")

from serving_helpers import Echo, Running, body, running

from listenwell.serving.schema import NEUTRAL
from listenwell.systems.safety import is_care


@pytest.fixture(scope="module")
def server():
    with running(Echo(), limits=small_limits()) as one:
        yield one


def small_limits():
    from listenwell.serving.settings import Limits

    return Limits(body_bytes=20_000, message_characters=500, total_characters=2_000, turns=6, n=3)


def events(server: Running, text: str, **more) -> list[dict]:
    with server.client.stream("POST", "/v1/chat/completions", json=body(text, stream=True, **more)) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in answer.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def said(records: list[dict], index: int = 0) -> str:
    choices = [choice for record in records for choice in record["choices"] if choice["index"] == index]
    return "".join(choice["delta"].get("content", "") for choice in choices)


# Replies


def test_a_reply_has_the_form_of_the_protocol(server):
    answer = server.chat("it rained on my birthday")
    record = answer.json()
    assert answer.status_code == 200
    assert record["object"] == "chat.completion"
    assert record["model"] == "echo"
    (choice,) = record["choices"]
    assert choice["message"] == {"role": "assistant", "content": "You said: it rained on my birthday", "refusal": None}
    assert choice["finish_reason"] == "stop"
    usage = record["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["prompt_tokens"] == 5
    assert record["listenwell"] == {"care": None}


def test_a_stream_is_the_same_reply_in_pieces(server):
    records = events(server, "it rained on my birthday")
    assert said(records) == "You said: it rained on my birthday"
    assert len(records) >= 3
    assert {record["object"] for record in records} == {"chat.completion.chunk"}
    assert len({record["id"] for record in records}) == 1
    assert records[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert records[-1]["choices"][0]["finish_reason"] == "stop"
    assert records[-1]["listenwell"]["care"] is None


def test_an_explanation_comes_when_asked_for_with_the_last_record(server):
    whole = server.chat("it rained", listenwell={"explain": True}).json()["listenwell"]
    assert whole["emotion"] == {"name": "sad", "probability": 0.75}
    assert whole["emotions"] == {"sad": 0.75, "lonely": 0.25}
    assert whole.keys() == {"emotion", "emotions", "label", "candidates", "reasons", "care"}
    assert events(server, "it rained", listenwell={"explain": True})[-1]["listenwell"] == whole


def test_usage_of_a_stream_is_told_when_asked_for(server):
    *_, last = events(server, "it rained", stream_options={"include_usage": True})
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 5
    assert "listenwell" in last


def test_several_replies_may_be_asked_for(server):
    choices = server.chat("it rained", n=3).json()["choices"]
    assert [choice["index"] for choice in choices] == [0, 1, 2]
    records = events(server, "it rained", n=2)
    assert said(records, 0) == said(records, 1) == "You said: it rained"


@pytest.mark.parametrize("stop", ["rained", ["rained"], ["never", "rained on"]])
def test_a_stop_sequence_cuts_the_reply_before_it(server, stop):
    answer = server.chat("it rained on me", stop=stop).json()["choices"][0]
    assert answer["message"]["content"].strip() == "You said: it"
    assert answer["finish_reason"] == "stop"
    assert said(events(server, "it rained on me", stop=stop)).strip() == "You said: it"


def test_a_stop_sequence_that_only_begins_is_held_back_and_then_said(server):
    assert said(events(server, "it rained on me", stop="on us")) == "You said: it rained on me"


def test_a_reply_that_is_cut_says_so(server):
    choice = server.chat("one two three four", max_tokens=4).json()["choices"][0]
    assert choice == {**choice, "finish_reason": "length"}
    assert choice["message"]["content"] == "You said: one two"
    assert server.chat("one two", max_completion_tokens=100_000).json()["choices"][0]["finish_reason"] == "stop"


def test_content_may_be_parts_and_what_a_client_was_given_may_be_sent_back(server):
    parts = [{"type": "text", "text": "it "}, {"type": "text", "text": "rained"}]
    given = {"role": "assistant", "content": "And?", "refusal": None, "tool_calls": [], "annotations": []}
    messages = [{"role": "user", "content": "hm"}, given, {"role": "user", "content": parts}]
    answer = server.client.post("/v1/chat/completions", json={"messages": messages})
    assert answer.json()["choices"][0]["message"]["content"] == "You said: it rained"


def test_fields_that_ask_for_nothing_are_let_through(server):
    asked = {name: values[0] for name, values in NEUTRAL.items() if values} | {"logit_bias": None, "user": "somebody"}
    assert server.chat("it rained", **asked).status_code == 200


def test_the_models_say_what_they_can_be_asked_for(server):
    (model,) = server.client.get("/v1/models").json()["data"]
    assert model["id"] == "echo"
    assert model["object"] == "model"
    assert model["listenwell"] == {
        "languages": ["en", "zh"], "takes_intent": False, "intents": [], "takes_positivity": False, "about": "",
    }  # fmt: skip
    assert server.client.get("/v1/models/echo").json() == model


# Care


def test_care_answers_before_the_system_in_both_forms(server):
    record = server.chat("I want to die", n=2, listenwell={"explain": True}).json()
    assert all(is_care(choice["message"]["content"]) for choice in record["choices"])
    care = record["listenwell"]["care"]
    assert care["kind"] == "card"
    assert care["sign"] == "self-harm"
    assert all(line["name"] and line["contact"] for line in care["resources"])
    records = events(server, "I want to die")
    assert is_care(said(records))
    assert records[-1]["listenwell"]["care"] == care


def test_a_language_that_the_system_does_not_speak_is_said(server):
    care = server.chat("Je suis très triste aujourd'hui, mon chien est mort hier.").json()["listenwell"]["care"]
    assert care["kind"] == "language"


def test_a_situation_is_read_by_care_too(server):
    wishes = {"situation": "I want to die"}
    assert server.chat("hello", listenwell=wishes).json()["listenwell"]["care"]["kind"] == "card"


def test_resources_are_told_by_region_and_language(server):
    here = server.client.get("/v1/resources").json()
    assert here["resources"]
    british = server.client.get("/v1/resources?region=gb").json()
    assert british["emergency"] == "999"
    assert british["resources"][0]["name"] == "Samaritans"
    chinese = server.client.get("/v1/resources?region=cn&language=zh").json()
    assert "12356" in chinese["resources"][0]["contact"]
    wrong = server.client.get("/v1/resources?region=atlantis")
    assert wrong.status_code == 400
    assert wrong.json()["error"]["param"] == "region"


# Understanding


def test_understanding_tells_what_was_heard(server):
    answer = server.client.post("/v1/understand", json={"messages": [{"role": "user", "content": "it rained"}]}).json()
    assert answer["model"] == "echo"
    assert answer["emotion"] is None
    assert [turn["text"] for turn in answer["turns"]] == ["it rained"]
    assert answer["plan"] is None


def test_health_needs_nothing_and_metrics_are_numbers(server):
    assert server.client.get("/health").json()["status"] == "ok"
    page = server.client.get("/metrics").text
    assert 'listenwell_replies_total{model="echo"}' in page
    assert "rained" not in page


# Refusals


def refused(server: Running, given, status: int = 400) -> dict:
    if isinstance(given, str):
        answer = server.client.post("/v1/chat/completions", content=given, headers={"content-type": "application/json"})
    else:
        answer = server.client.post("/v1/chat/completions", json=given)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    return error


MESSAGE = {"role": "user", "content": "it rained"}


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ("{nonsense", "body"),
        ("[]", "body"),
        ("", "body"),
        ("[" * 5000, "body"),
        ('{"messages": [], "seed": ' + "9" * 5000 + "}", "body"),
        ({}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"messages": [MESSAGE], "temperature": "warm"}, "temperature"),
        ({"messages": [MESSAGE], "temperature": 3}, "temperature"),
        ({"messages": [MESSAGE], "temperature": True}, "temperature"),
        ('{"messages": [{"role": "user", "content": "x"}], "temperature": NaN}', "temperature"),
        ({"messages": [MESSAGE], "top_p": 0}, "top_p"),
        ({"messages": [MESSAGE], "n": 0}, "n"),
        ({"messages": [MESSAGE], "n": 4}, "n"),
        ({"messages": [MESSAGE], "max_tokens": 0}, "max_tokens"),
        ({"messages": [MESSAGE], "seed": 2**70}, "seed"),
        ({"messages": [MESSAGE], "seed": 0.5}, "seed"),
        ({"messages": [MESSAGE], "stop": ["a"] * 5}, "stop"),
        ({"messages": [MESSAGE], "stop": ""}, "stop"),
        ({"messages": [MESSAGE], "stop": "x" * 65}, "stop"),
        ({"messages": [MESSAGE], "tools": [{"type": "function"}]}, "tools"),
        ({"messages": [MESSAGE], "logprobs": True}, "logprobs"),
        ({"messages": [MESSAGE], "presence_penalty": 0.5}, "presence_penalty"),
        ({"messages": [MESSAGE], "response_format": {"type": "json_object"}}, "response_format"),
        ({"messages": [MESSAGE], "tempurature": 1}, "tempurature"),
        ({"messages": [MESSAGE], "listenwell": {"intentt": "x"}}, "listenwell.intentt"),
        ({"messages": [MESSAGE], "listenwell": {"intent": "consoling"}}, "listenwell.intent"),
        ({"messages": [MESSAGE], "listenwell": {"positivity": 2}}, "listenwell.positivity"),
        ({"messages": [MESSAGE], "listenwell": {"positivity": 0.5}}, "listenwell.positivity"),
        ({"messages": [MESSAGE], "listenwell": {"situation": "x" * 501}}, "listenwell.situation"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "system", "content": "x"}, MESSAGE]}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": " \n "}]}, "messages[0].content"),
        ({"messages": [MESSAGE, {"role": "assistant", "content": "And?"}]}, "messages[1].role"),
        ({"messages": [{"role": "user", "content": "x" * 501}]}, "messages[0].content"),
        ({"messages": [MESSAGE] * 7}, "messages"),
        ({"messages": [{"role": "user", "content": "x" * 500}] * 5}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, "messages[0].content"),
        ({"messages": [{**MESSAGE, "tool_calls": [{}]}]}, "tool_calls"),
        ({"messages": [MESSAGE], "padding": "x" * 30_000}, "body"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(server, given, param):
    error = refused(server, given)
    assert error["type"] == "invalid_request_error"
    assert (error["param"] or "").startswith(param)
    assert param.split("[")[0] in error["message"]


def test_a_refusal_repeats_nothing_of_a_message(server):
    secret = "pomegranate"
    for given in (
        {"messages": [{"role": "user", "content": [secret]}]},
        {"messages": [{"role": secret, "content": "x"}]},
        {"messages": [{"role": "user", "content": "x"}], "temperature": secret},
    ):
        assert secret not in refused(server, given)["message"]


def test_half_a_character_is_read_as_a_question_mark(server):
    given = '{"messages": [{"role": "user", "content": "it rained \\ud800"}]}'
    answer = server.client.post("/v1/chat/completions", content=given, headers={"content-type": "application/json"})
    assert answer.json()["choices"][0]["message"]["content"] == "You said: it rained ?"


def test_an_unknown_model_is_told_the_near_name(server):
    error = refused(server, {"model": "ecco", "messages": [MESSAGE]}, status=404)
    assert error["code"] == "model_not_found"
    assert "did you mean 'echo'?" in error["message"]
    strange = refused(server, '{"model": "\\u0000<b>", "messages": [{"role": "user", "content": "x"}]}', status=404)
    assert strange["param"] == "model"


def test_unknown_paths_and_methods_have_the_same_form(server):
    for path, status in (("/v2", 404), ("/v1/chat/completions", 405), ("/v1/models/x", 404), ("/static/none.js", 404)):
        answer = server.client.get(path)
        assert answer.status_code == status
        assert answer.json()["error"]["message"]
