"""The files of deploy/ and the page on serving refer only to things that exist."""

from __future__ import annotations

import inspect
import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from listenwell.commands.serve import serve
from listenwell.serving.settings import Limits

ROOT = Path(__file__).parents[2]
FILES = ["deploy/listenwell.service", "deploy/Containerfile", "deploy/nginx.conf", "docs/serving.md"]
ELSEWHERE = {"--no-deps", "--no-cache-dir", "--extra-index-url", "--from", "--system", "--uid", "--no-create-home",
             "--interval", "--timeout", "--start-period", "--rm", "--now", "--precision", "--clients", "--mode",
             "--requests", "--alone", "--help", "--limits.help", "--build-arg"}  # fmt: skip
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


def test_the_container_installs_what_setup_does_runs_as_nobody_special_and_says_whether_it_lives():
    text = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8")
    carriers = re.search(r"^CARRIERS := (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert carriers is not None
    assert all(f" {package} " in text for package in carriers[1].split())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = re.search(r"'\.\[(.+)\]'", text)
    assert extras is not None
    assert set(extras[1].split(",")) <= project["optional-dependencies"].keys()
    copied = [path for words in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE) for path in words.split()[:-1]]
    for path in (project["readme"], *project["license-files"], "constraints.txt", "pyproject.toml"):
        assert any(Path(path).is_relative_to(one) for one in copied), path
    runs = text.rpartition("FROM ")[2]
    (user,) = re.findall(r"^USER (\d+)$", runs, re.MULTILINE)
    assert f"--uid {user} " in runs
    assert int(user) > 0
    assert re.search(r"^HEALTHCHECK .*\\\n +CMD .*/health", runs, re.MULTILINE)
    assert runs.index("USER ") < runs.index("ENTRYPOINT ")
