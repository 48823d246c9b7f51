"""Real clients, the openai SDK and the llm tool, against a real server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from serving_helpers import KEY, PATIENCE, Echo, key_file, running

openai = pytest.importorskip("openai")

MESSAGES = [{"role": "user", "content": "it rained on my birthday"}]
SAID = "You said: it rained on my birthday"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    with running(Echo(), api_key_file=key_file(folder), room=8, burst=1000) as one:
        yield one


@pytest.fixture
def sdk(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0, timeout=PATIENCE) as client:
        yield client


def test_the_sdk_gets_a_reply_with_usage_and_what_is_beyond_the_protocol(sdk):
    answer = sdk.chat.completions.create(
        model="echo", messages=MESSAGES, temperature=0.7, top_p=0.9, seed=1, max_tokens=40, n=2, stop=["\n"],
        extra_body={"listenwell": {"explain": True}},
    )  # fmt: skip
    assert [choice.message.content for choice in answer.choices] == [SAID, SAID]
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.model_extra["listenwell"]["emotion"]["name"] == "sad"


def test_the_sdk_streams(sdk):
    options = {"include_usage": True}
    chunks = list(sdk.chat.completions.create(model="echo", messages=MESSAGES, stream=True, stream_options=options))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == SAID
    assert chunks[-1].usage.completion_tokens > 0
    with sdk.chat.completions.stream(model="echo", messages=MESSAGES) as stream:
        for _ in stream:
            pass
        assert stream.get_final_completion().choices[0].message.content == SAID


def test_the_sdk_lists_models(sdk):
    assert [model.id for model in sdk.models.list()] == ["echo"]
    assert sdk.models.retrieve("echo").id == "echo"


def test_the_sdk_knows_the_errors_by_their_kind(sdk, server, monkeypatch):
    with pytest.raises(openai.NotFoundError) as unknown:
        sdk.chat.completions.create(model="ecco", messages=MESSAGES)
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as refused:
        sdk.chat.completions.create(model="echo", messages=MESSAGES, presence_penalty=1)
    assert refused.value.param == "presence_penalty"
    monkeypatch.setattr(server.engine(), "room", 0)
    with pytest.raises(openai.RateLimitError) as busy:
        sdk.chat.completions.create(model="echo", messages=MESSAGES)
    assert busy.value.code == "server_busy"
    wrong = openai.OpenAI(base_url=f"{server.url}/v1", api_key="nobody's key at all", max_retries=0)
    with pytest.raises(openai.AuthenticationError), wrong:
        wrong.models.list()


def test_the_asynchronous_sdk_talks_with_many_at_once(server):
    async def talk() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY, timeout=PATIENCE) as client:
            asked = (client.chat.completions.create(model="echo", messages=MESSAGES) for _ in range(6))
            return [answer.choices[0].message.content for answer in await asyncio.gather(*asked)]

    assert asyncio.run(talk()) == [SAID] * 6


def llm(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI", "LLM"))}
    return subprocess.run(
        [sys.executable, "-m", "llm", *words],
        env={**environment, "LLM_USER_PATH": str(folder), "LLM_LOAD_PLUGINS": ""},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )


def test_the_llm_tool_talks_streamed_and_whole(server, tmp_path):
    pytest.importorskip("llm")
    (tmp_path / "extra-openai-models.yaml").write_text(
        f"- model_id: mine\n  model_name: echo\n  api_base: {server.url}/v1\n  api_key_name: mine\n", encoding="utf-8"
    )
    (tmp_path / "keys.json").write_text(json.dumps({"mine": KEY}), encoding="utf-8")
    for words in (["it rained"], ["--no-stream", "-o", "seed", "3", "it rained"]):
        done = llm(tmp_path, "-m", "mine", "--no-log", *words)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "You said: it rained"
