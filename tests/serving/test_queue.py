"""Many clients at once: a limited queue, 429 beyond it, disconnects that free the work, and no crosstalk."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import httpx2
import pytest
import torch

pytest.importorskip("fastapi")

from serving_helpers import PATIENCE, Echo, body, running, until

from listenwell.checkpoint import Checkpoint
from listenwell.data.batching import EncodingConfig
from listenwell.decoding import Decoding
from listenwell.systems.bot import Bot

PATH = "/v1/chat/completions"
SOAK = 900.0
"""Seconds that a client of a campaign waits: on a busy machine a thousand requests take minutes."""


def opened(gate: threading.Semaphore) -> None:
    """Open the gate for all steps."""
    gate.release(1_000_000)


async def soon(holds: Callable[[], Any]) -> None:
    """Wait for something that another thread is about to do."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.005)


async def post_all(
    url: str, bodies: list[dict], answered: list[httpx2.Response] | None = None
) -> list[httpx2.Response]:
    limits = httpx2.Limits(max_connections=len(bodies))
    async with httpx2.AsyncClient(base_url=url, timeout=SOAK, limits=limits) as client:

        async def post(one: dict) -> httpx2.Response:
            answer = await client.post(PATH, json=one)
            if answered is not None:
                answered.append(answer)
            return answer

        return await asyncio.gather(*map(post, bodies))


@pytest.mark.parametrize("stream", [False, True])
def test_beyond_the_room_exactly_the_rest_is_told_to_come_back(stream):
    gate, room, more = threading.Semaphore(0), 4, 3
    with running(Echo(gate), room=room) as server:
        answered: list[httpx2.Response] = []

        async def ask() -> list[httpx2.Response]:
            bodies = [body(f"message {number}", stream=stream) for number in range(room + more)]
            everybody = asyncio.ensure_future(post_all(server.url, bodies, answered))
            await soon(lambda: len(answered) >= more)  # no other request can be answered before the gate opens
            opened(gate)
            return await everybody

        answers = asyncio.run(ask())
        statuses = sorted(answer.status_code for answer in answers)
        assert statuses == [200] * room + [429] * more
        for answer in answered[:more]:
            assert answer.status_code == 429
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.json()["error"]["code"] == "server_busy"
        assert server.engine().held == 0
        assert server.chat("again").status_code == 200


def test_several_replies_take_several_places():
    gate = threading.Semaphore(0)
    with running(Echo(gate), room=3) as server:
        assert server.chat("hello", n=4).status_code == 429
        opened(gate)
        assert server.chat("hello", n=3).status_code == 200


def test_a_sign_of_a_crisis_is_answered_though_the_queue_is_full():
    gate = threading.Semaphore(0)
    with running(Echo(gate), room=1) as server, ExitStack() as stack:
        waits = stack.enter_context(server.client.stream("POST", PATH, json=body("hello", stream=True)))
        assert server.chat("hello again").status_code == 429
        assert server.chat("I want to die").json()["listenwell"]["care"]["kind"] == "card"
        opened(gate)
        assert "[DONE]" in waits.read().decode()


def first_piece(lines) -> str:
    for line in lines:
        if line.startswith("data: {") and (said := json.loads(line[6:])["choices"][0]["delta"].get("content")):
            return said
    raise AssertionError("the stream ended without a text")


def test_a_client_that_leaves_frees_its_work_within_two_steps():
    gate = threading.Semaphore(0)
    echo = Echo(gate)
    with running(echo, room=2) as server:
        with httpx2.Client(base_url=server.url, timeout=PATIENCE) as client:
            long = body("word " * 60, stream=True, max_tokens=60)
            with client.stream("POST", PATH, json=long) as answer:
                gate.release(4)
                assert first_piece(answer.iter_lines())
        until(lambda: server.count("cancelled", "echo"))
        opened(gate)
        until(lambda: server.engine().held == 0)
        assert server.count("late_steps", "echo") <= 2
        assert server.count("replies", "echo") == 0
        assert server.chat("hello").status_code == 200


@pytest.mark.parametrize("stream", [False, True])
def test_who_leaves_while_waiting_costs_no_step(stream):
    gate = threading.Semaphore(0)
    with running(Echo(gate), room=2) as server, ExitStack() as stack:
        waits = stack.enter_context(server.client.stream("POST", PATH, json=body("hello", stream=True)))
        until(lambda: server.engine().held == 1)

        async def leave() -> None:
            async with httpx2.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
                asking = asyncio.ensure_future(client.post(PATH, json=body("bye", stream=stream)))
                await soon(lambda: server.engine().held >= 2)
                asking.cancel()
                await asyncio.wait([asking])

        asyncio.run(leave())
        until(lambda: server.count("cancelled", "echo") == 1)
        opened(gate)
        assert "[DONE]" in waits.read().decode()
        until(lambda: server.engine().held == 0)
        assert server.count("late_steps", "echo") <= 2


def test_who_leaves_before_care_has_looked_is_not_written_for(monkeypatch):
    held = threading.Event()
    with running(Echo()) as server:
        wrapper = server.app.state.served["echo"].wrapper
        monkeypatch.setattr(type(wrapper), "care", lambda *asked: held.wait(PATIENCE) and None)

        async def leave() -> None:
            async with httpx2.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
                asking = asyncio.ensure_future(client.post(PATH, json=body("bye")))
                await soon(lambda: server.server.server_state.tasks)
                asking.cancel()
                await asyncio.wait([asking])

        asyncio.run(leave())
        until(lambda: server.count("requests", PATH, "499") == 1)
        held.set()
        assert server.engine().held == 0
        assert server.count("replies", "echo") == 0


def tiny_bot(tiny_model, tokenizer, **decoding) -> Bot:
    bot = Bot(Checkpoint("echo", tiny_model(), tokenizer, EncodingConfig(), Decoding(**{"max_length": 24, **decoding})))
    bot.name = "echo"
    return bot


@pytest.mark.parametrize("decoding", [{"method": "greedy"}, {"method": "beam", "beams": 3}])
def test_real_decoding_stops_within_two_steps_of_a_leave(tiny_model, tokenizer, decoding, monkeypatch):
    gate = threading.Semaphore(0)
    bot = tiny_bot(tiny_model, tokenizer, min_length=24, **decoding)
    step = bot.model.step

    def gated(tokens, state):
        gate.acquire()
        return step(tokens, state)

    monkeypatch.setattr(bot.model, "step", gated)
    with running(bot) as server:

        async def leave() -> None:
            async with httpx2.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
                asking = asyncio.ensure_future(client.post(PATH, json=body("hello")))
                staying = asyncio.ensure_future(client.post(PATH, json=body("it rained")))
                await soon(lambda: server.engine().held >= 2)
                gate.release(6)
                await soon(lambda: not gate._value)
                asking.cancel()
                await asyncio.wait([asking])
                await soon(lambda: server.count("cancelled", "echo"))
                opened(gate)
                assert (await staying).status_code == 200

        asyncio.run(leave())
        until(lambda: server.engine().held == 0)
        assert 0 <= server.count("late_steps", "echo") <= 2


def test_a_request_that_breaks_the_system_breaks_no_other():
    gate = threading.Semaphore(0)
    echo = Echo(gate)
    echo.broken = "poison"
    with running(echo) as server:

        async def ask() -> list[httpx2.Response]:
            bodies = [body("fine"), body("drink poison now"), body("well")]
            everybody = asyncio.ensure_future(post_all(server.url, bodies))
            await soon(lambda: server.engine().held >= 3)
            opened(gate)
            return await everybody

        fine, broken, well = asyncio.run(ask())
        assert (fine.status_code, well.status_code) == (200, 200)
        assert broken.status_code == 500
        assert broken.json()["error"]["code"] == "reply_failed"
        assert "poison" not in broken.text
        with server.client.stream("POST", PATH, json=body("poison", stream=True)) as answer:
            lines = [line for line in answer.iter_lines() if line]
        assert "[DONE]" not in lines[-1]
        assert json.loads(lines[-1].removeprefix("data: "))["error"]["code"] == "reply_failed"


def test_a_worker_thread_that_dies_is_replaced_and_its_clients_are_told(monkeypatch, caplog):
    with running(Echo()) as server:
        engine = server.engine()
        publish = engine._publish
        died = []

        def die_once(group, ended):
            if not died:
                died.append(True)
                raise MemoryError("secret words of somebody")
            publish(group, ended)

        monkeypatch.setattr(engine, "_publish", die_once)
        assert server.chat("hello").status_code == 500
        assert server.chat("hello").status_code == 200
        assert server.count("restarts", "echo") == 1
        assert engine.held == 0
    assert "MemoryError" in caplog.text
    assert "secret" not in caplog.text


def test_whoever_writes_computes_with_the_threads_of_the_settings(monkeypatch):
    with running(Echo(), threads=2) as server:
        engine, before = server.engine(), torch.get_num_threads()
        publish, threads = engine._publish, []

        def noting(group, ended):
            threads.append(torch.get_num_threads())
            publish(group, ended)

        monkeypatch.setattr(engine, "_publish", noting)
        assert server.chat("hello").status_code == 200
        assert set(threads) == {2}
        assert torch.get_num_threads() == before


def converse(url: str, conversations: int, turns: int) -> list[list[str]]:
    """Hold conversations that each use their own word in every message; returns the replies by conversation."""

    async def one(client: httpx2.AsyncClient, number: int) -> list[str]:
        messages, replies = [], []
        for turn in range(turns):
            messages.append(
                {"role": "user", "content": f"my dog is called canary{number}x, and this was our walk number {turn}"}
            )
            asked = {"model": "echo", "messages": messages[-20:], "stream": turn % 2 == 1}
            answer = await client.post(PATH, json=asked)
            assert answer.status_code == 200, answer.text
            assert '"error"' not in answer.text, answer.text  # a stream that fails has already sent status 200
            assert '"care":null' in answer.text, answer.text  # nor did care reply instead of the system
            replies.append(answer.text)
            messages.append({"role": "assistant", "content": f"canary{number}x it is"})
        return replies

    async def everybody() -> list[list[str]]:
        limits = httpx2.Limits(max_connections=conversations)
        async with httpx2.AsyncClient(base_url=url, timeout=SOAK, limits=limits) as client:
            return await asyncio.gather(*(one(client, number) for number in range(conversations)))

    return asyncio.run(everybody())


def crossed(replies: list[list[str]]) -> list[tuple[int, int]]:
    """Pairs of conversations where the word of one is in the other's replies."""
    texts = ["".join(some) for some in replies]
    return [
        (mine, other)
        for mine in range(len(texts))
        for other, text in enumerate(texts)
        if mine != other and f"canary{mine}x" in text
    ]


def lacking(replies: list[list[str]]) -> list[str]:
    """Replies that lack the word of their own conversation."""
    return [text for number, some in enumerate(replies) for text in some if f"canary{number}x" not in text]


def test_no_conversation_crosses_into_another():
    echo = Echo()
    with running(echo) as server:
        replies = converse(server.url, 12, 4)
        assert crossed(replies) == []
        assert lacking(replies) == []


@pytest.mark.soak
def test_no_conversation_crosses_into_another_in_a_large_campaign():
    with running(Echo()) as server:
        replies = converse(server.url, 64, 20)
        assert crossed(replies) == []
        assert lacking(replies) == []


@pytest.mark.parametrize("mode", ["sample", "beam"])
def test_seeded_replies_of_a_batch_are_those_of_one(tiny_model, tokenizer, mode):
    bot = tiny_bot(tiny_model, tokenizer, method=mode, beams=3)
    with running(bot) as server:
        bodies = [
            body(f"I lost my {thing} today", seed=number) for number, thing in enumerate(["job", "dog", "keys"] * 5)
        ]
        together = asyncio.run(post_all(server.url, bodies))
        said = [answer.json()["choices"][0]["message"]["content"] for answer in together]
        alone = [bot.reply(one["messages"][0]["content"], seed=one["seed"]).text for one in bodies]
        assert said == alone
        assert server.metrics.registry.get_sample_value("listenwell_batch_size_count", {"model": "echo"}) < 15


def test_a_burst_is_answered_and_leaves_nothing():
    with running(Echo(), room=64) as server:
        answers = asyncio.run(post_all(server.url, [body(f"message {number}") for number in range(100)]))
        assert {answer.status_code for answer in answers} <= {200, 429}
        assert sum(answer.status_code == 200 for answer in answers) >= 64
        assert server.engine().held == 0
        assert not server.engine().waiting


def resident() -> int:
    """Resident memory of this process in bytes."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.soak
def test_a_burst_of_a_thousand_crashes_nothing_and_keeps_no_memory():
    with running(Echo(), room=256) as server:
        bodies = [body(f"message {number}") for number in range(1_000)]
        asyncio.run(post_all(server.url, bodies))
        before = resident()
        for _ in range(3):
            answers = asyncio.run(post_all(server.url, bodies))
            assert {answer.status_code for answer in answers} <= {200, 429}
        grown = (resident() - before) / 2**20
        print(f"\n3 bursts of 1,000: {grown:.1f} MB more than after the first")
        assert grown < 20
        assert server.engine().held == 0


@pytest.mark.soak
def test_ten_thousand_streams_grow_by_less_than_a_megabyte_a_thousand():
    with running(Echo(), room=256) as server:

        def streams(count: int) -> None:
            bodies = [body(f"message {number}", stream=True) for number in range(100)]
            for _ in range(count // 100):
                answers = asyncio.run(post_all(server.url, bodies))
                assert all("[DONE]" in answer.text for answer in answers)

        streams(2_000)
        before = resident()
        streams(10_000)
        grown = (resident() - before) / 2**20 / 10
        print(f"\n10,000 streams: {grown:.3f} MB a thousand")
        assert grown < 1
