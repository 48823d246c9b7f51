"""Throughput with many clients compared with one, over HTTP: python bench/serving.py [multi-trs house] [--mode whole]

Starts a server for each system. First one client sends requests, waiting for each reply before the next request; then
many clients do the same in parallel. The output has replies per second, their ratio, the time to the first text and to
the whole reply (median and 95th percentile), the CPU time per reply, the number of cores used by other programs, the
share of replies from care, and the server's memory. If other programs used more than a tenth of a core, or more in one
of the two runs, the ratio means little; the CPU time per reply is still valid.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx2
import psutil
import yaml
from rich.console import Console

from listenwell.commands.display import table

PATH = "/v1/chat/completions"
CONVERSATIONS = Path(__file__).with_name("conversations.yaml")
PATIENCE = 600.0


@dataclass(frozen=True, slots=True)
class Timed:
    """One reply: seconds to its first text and to its end."""

    first: float
    whole: float
    cared: bool


def messages() -> list[list[dict[str, str]]]:
    """Conversations with one, two, … user messages and a fixed reply between them."""
    conversations = []
    for conversation in yaml.safe_load(CONVERSATIONS.read_text(encoding="utf-8")):
        said: list[dict[str, str]] = []
        for _, text in conversation["turns"][:4]:
            said = [*said, {"role": "user", "content": text}]
            conversations.append(said)
            said = [*said, {"role": "assistant", "content": "Tell me more about it."}]
    return conversations


@contextmanager
def server(model: str, workers: int) -> Iterator[tuple[str, psutil.Process]]:
    words = [sys.executable, "-m", "listenwell.cli", "serve", model, "--port", "0", "--workers", str(workers)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            url = next(match[1] for line in process.stderr if (match := re.search(r"for (http://\S+)/ ", line)))
            httpx2.get(f"{url}/health", timeout=PATIENCE)
            yield url, psutil.Process(process.pid)
        finally:
            process.terminate()


async def ask(client: httpx2.AsyncClient, model: str, said: list[dict[str, str]], seed: int, streams: bool) -> Timed:
    body: dict[str, Any] = {"model": model, "messages": said, "seed": seed, "stream": streams}
    begun = time.perf_counter()
    if not streams:
        answer = await client.post(PATH, json=body)
        taken = time.perf_counter() - begun
        return Timed(taken, taken, answer.raise_for_status().json()["listenwell"]["care"] is not None)
    first, cared = 0.0, False
    async with client.stream("POST", PATH, json=body) as answer:
        answer.raise_for_status()
        async for line in answer.aiter_lines():
            if not line.startswith("data: {"):
                continue
            record = json.loads(line[6:])
            if not first and any(choice["delta"].get("content") for choice in record["choices"]):
                first = time.perf_counter() - begun
            cared = cared or bool(record.get("listenwell", {}).get("care"))
    return Timed(first, time.perf_counter() - begun, cared)


async def run(url: str, model: str, clients: int, requests: int, streams: bool) -> tuple[float, list[Timed]]:
    """Replies per second, and the timing of each reply."""
    waiting = iter(list(enumerate(islice(cycle(messages()), requests))))
    timed: list[Timed] = []
    limits = httpx2.Limits(max_connections=clients)
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE, limits=limits) as client:

        async def one() -> None:
            for number, said in waiting:
                timed.append(await ask(client, model, said, number, streams))

        begun = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(clients)))
        return len(timed) / (time.perf_counter() - begun), timed


def family(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def processor_seconds(process: psutil.Process) -> float:
    """CPU seconds used by the server so far; on a busy machine this is more telling than wall time."""
    return sum(times.user + times.system for times in (one.cpu_times() for one in family(process)))


def machine_seconds() -> float:
    """CPU seconds used by all programs so far."""
    times = psutil.cpu_times()
    return times.user + times.system + times.nice


def percentiles(values: Sequence[float]) -> str:
    return f"{median(values):.2f} / {quantiles(values, n=20)[-1]:.2f}"


def measure(model: str, options: argparse.Namespace) -> list[tuple[str, ...]]:
    rows = []
    streams = options.mode == "stream"
    with server(model, options.workers) as (url, process):
        asyncio.run(run(url, model, 1, 4, streams))  # warm-up: setup at the first requests is not measured
        alone = 0.0
        for clients in (1, options.clients):
            count = options.alone if clients == 1 else options.requests
            before, own, whole, begun = processor_seconds(process), time.process_time(), machine_seconds(), time.time()
            rate, timed = asyncio.run(run(url, model, clients, count, streams))
            alone = alone or rate
            used = processor_seconds(process) - before
            others = machine_seconds() - whole - used - (time.process_time() - own)
            spent = 1000 * used / len(timed)
            memory = sum(one.memory_info().rss for one in family(process)) / 2**20
            row = [model, options.mode, str(clients), f"{rate:.2f}", f"{rate / alone:.1f}"]
            row += [percentiles([one.first for one in timed]), percentiles([one.whole for one in timed])]
            row += [f"{spent:.0f} ms", f"{max(0.0, others) / (time.time() - begun):.1f}"]
            row += [f"{100 * sum(one.cared for one in timed) / len(timed):.0f} %", f"{memory:,.0f} MB"]
            rows.append(tuple(row))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["multi-trs", "house"])
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=256, help="asked by all clients together")
    parser.add_argument("--alone", type=int, default=24, help="asked by the one client")
    parser.add_argument("--mode", choices=["stream", "whole"], default="stream", help="whole: the best of several")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    console = Console(width=None if Console().is_terminal else 140)
    threads = os.environ.get("OMP_NUM_THREADS", "unset")
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, OMP_NUM_THREADS={threads}")
    rows = [row for model in options.models for row in measure(model, options)]
    columns = (
        "system",
        "mode",
        "clients",
        "replies/s",
        "times",
        "first text (s)",
        "whole (s)",
        "processor",
        "others",
        "care",
        "memory",
    )
    console.print(table("median / 95th percentile", columns, rows))


if __name__ == "__main__":
    main()
