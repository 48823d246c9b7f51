"""The files of deploy/ and the page on serving name only what is there."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

from listenwell.commands.serve import serve
from listenwell.serving.settings import Limits

ROOT = Path(__file__).parents[2]
FILES = ["deploy/listenwell.service", "deploy/Containerfile", "deploy/nginx.conf", "docs/serving.md"]
ELSEWHERE = {"--no-deps", "--no-cache-dir", "--extra-index-url", "--from", "--system", "--uid", "--no-create-home",
             "--interval", "--timeout", "--start-period", "--rm", "--now", "--precision", "--clients", "--mode",
             "--requests", "--help", "--limits.help"}  # fmt: skip
"""Flags of other programs and commands."""


@pytest.mark.parametrize("name", FILES)
def test_every_flag_is_one_of_the_command(name: str):
    flags = set(re.findall(r"(?<![\w-])--[a-z][a-z._-]+", (ROOT / name).read_text(encoding="utf-8"))) - ELSEWHERE
    known = {f"--{parameter.replace('_', '-')}" for parameter in inspect.signature(serve).parameters}
    known |= {f"--limits.{field.name}" for field in fields(Limits)}
    assert flags <= known


def test_the_container_copies_only_what_is_there():
    text = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8")
    copied = [words.split()[:-1] for words in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE)]
    for path in (path for paths in copied for path in paths):
        assert (ROOT / path).exists(), path
    for weights in re.findall(r"\./(weights/\w+)", text):
        assert (ROOT / weights / "pyproject.toml").is_file()
