"""Reads what `listenwell evaluate` wrote, or the scores on the card of a shipped system."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from listenwell.data.sources.jsonl import is_jsonl, json_problem
from listenwell.labels.taxonomy import unknown_name
from listenwell.metrics.score import Score
from listenwell.weights import shipped

USUAL_DATA = "empathetic-dialogues"
"""The corpus that systems that generate replies are evaluated on by default."""

FILES = ("scores.json", "items.json", "replies.jsonl")

ABOUT = ("data", "split", "items", "drawn", "decoding", "commit", "seed", "examples", "seconds", "parameters")
"""The facts shown about a system, if known."""


@dataclass(frozen=True, slots=True)
class StoredEvaluation:
    """A system's scores on a split, with every reply, unless they were read from its card."""

    name: str
    place: Path
    scores: dict[str, Score]
    records: tuple[dict[str, Any], ...] = ()
    """The lines of replies.jsonl; empty for a card."""
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def from_card(self) -> bool:
        return not self.records


def folder_name(
    split: str,
    data: str | None = None,
    part: str | None = None,
    items: int = 0,
    limit: int = 0,
    decoding: str | None = None,
) -> str:
    """The name of an evaluation's folder inside that of a run, made of the split and any other options.

    Different ways to evaluate have different folders: other data, a number of items drawn (`items`) or the first ones
    (`limit`), or a decoding (its signature) that is not the system's own.
    """
    if data is not None and is_jsonl(data):
        data = Path(data).name.split(".", 1)[0]
    some = (str(items) if items else None, f"first{limit}" if limit else None)
    if decoding is not None:
        decoding = re.sub("[(),]+", "-", decoding).strip("-")  # special characters in a shell
    return "-".join(word for word in (data, part, split, *some, decoding) if word)


def _chosen(run: Path, split: str, data: str | None) -> Path:
    """The evaluation of a run to use: on the whole split; if there is none, on the largest sample of it.

    Only evaluations with the system's own decoding are considered; others must be named by their folder.
    """
    whole = run / "evaluation" / folder_name(split, data)
    some = [place for place in whole.parent.glob("*") if re.fullmatch(re.escape(whole.name) + r"-\d+", place.name)]
    if whole.is_dir() or not some:
        return whole
    return max(some, key=lambda place: int(place.name.rpartition("-")[2]))


def read_all(runs: Sequence[str], split: str = "test", data: str | None = None) -> list[StoredEvaluation]:
    """Read the evaluations of runs, of evaluation folders or of shipped systems, each with a unique name."""
    if not runs:
        raise ValueError("nothing to compare: give the folders of one or more evaluated runs")
    evaluations = [read(run, split, data) for run in runs]
    for index, one in enumerate(evaluations):
        if one.place in (other.place for other in evaluations[:index]):
            raise ValueError(f"{runs[index]} is given twice ({one.place})")
    return [replace(one, name=name) for one, name in zip(evaluations, _names(evaluations), strict=True)]


def read(run: str, split: str = "test", data: str | None = None) -> StoredEvaluation:
    """Read one evaluation. `run` is the folder of a run, a folder written by `evaluate --out`, or the name of a
    shipped system.

    `data` selects the evaluation on a corpus other than the system's own. If a run has several evaluations on a split,
    the one on the whole split is read, else the one on the most items.
    """
    path = Path(os.path.abspath(Path(run).expanduser()))
    if (path / FILES[0]).is_file():
        return read_folder(path, f"listenwell evaluate SYSTEM --out {shlex.quote(run)}")
    options = f" --data {shlex.quote(data)}" if data is not None else ""
    command = f"listenwell evaluate {shlex.quote(run)}{options} --split {shlex.quote(split)}"
    if path.is_dir():
        inside = _chosen(path, split, data)
        if inside.is_dir():
            return read_folder(inside, command)
        for place in (path, path / "best"):
            if data is None and (card := read_card(place, path.name, split)) is not None:
                return card
        others = sorted(f"evaluation/{file.parent.name}" for file in path.glob(f"evaluation/*/{FILES[0]}"))
        hint = f"; there is {' and '.join(others)}" if others else ""
        raise ValueError(f"{inside / FILES[0]} is missing; create it with: {command}{hint}")
    known = shipped()
    name = run.replace("_", "-")
    if name not in known:
        hint = "" if os.sep in run or not known else unknown_name("system", run, known) + "; "
        raise ValueError(f"{run}: no such folder; {hint}give the folder of an evaluated run")
    if (card := read_card(known[name], name, split)) is None or data is not None:
        place = known[name] / "meta.json"
        asked_for = f"{data}, {split}" if data is not None else split
        raise ValueError(
            f"{place} has no scores on {asked_for}; make them with: {command} --out FOLDER, and give FOLDER"
        )
    return card


def read_folder(place: Path, command: str) -> StoredEvaluation:
    """Read the evaluation in a folder; if a file is missing, the error names `command` as the way to create it."""
    for name in FILES:
        if not (place / name).is_file():
            raise ValueError(f"{place / name} is missing; create it again with: {command}")
    summary = _json(place / "scores.json")
    records = tuple(_records(place / "replies.jsonl"))
    if not isinstance(summary, dict) or not records:
        raise ValueError(f"{place} holds no evaluation; create it again with: {command}")
    scores = _scores(_json(place / "items.json"), place / "items.json")
    return StoredEvaluation(place.name, place, scores, records, dict(summary.get("about") or {}))


def read_card(place: Path, name: str, split: str) -> StoredEvaluation | None:
    """The test scores in the metadata of a packed checkpoint; None if it has none."""
    file = place / "meta.json"
    if split != "test" or not file.is_file():
        return None
    meta = _json(file)
    card = meta.get("card") or {}
    if not card.get("test"):
        return None
    about = {key: meta[key] for key in ABOUT if key in meta and key != "data"}  # its data is what it was trained on
    about |= {"split": split, "decoding": card.get("decoding"), **({"drawn": card["drawn"]} if "drawn" in card else {})}
    # Early cards did not name the corpus: for systems that generate replies, it was the default one.
    talks = any("replies" in score["signature"] for score in card["test"])
    about |= {"data": data} if (data := card.get("data", USUAL_DATA if talks else None)) else {}
    return StoredEvaluation(name, place, _scores(card["test"], file), (), about)


def check_same_items(evaluations: Sequence[StoredEvaluation]) -> None:
    """Checks that all systems were scored on the same items in the same order, as tables and paired tests require;
    else the error names the differences."""
    whole = [one for one in evaluations if not one.from_card]
    for other in whole[1:]:
        _check_pair(whole[0], other)
    numbers = {one.name: number for one in evaluations if (number := item_number(one)) is not None}
    drawn = {one.name: one.about.get("drawn") for one in evaluations}
    if len(set(numbers.values())) > 1 or (len(whole) < len(evaluations) and len(set(drawn.values())) > 1):
        listed = ", ".join(f"{name} on {drawn[name] or f'{number:,}'}" for name, number in numbers.items())
        raise ValueError(f"the systems were not scored on the same items: {listed}")


def item_number(one: StoredEvaluation) -> int | None:
    """The number of items that a system was scored on; for a card, it is taken from the signatures."""
    if one.records:
        return len(one.records)
    fields = [dict(score.signature.fields).get("replies") for score in one.scores.values()]
    return next((int(number) for number in fields if number), None)


def _check_pair(one: StoredEvaluation, other: StoredEvaluation) -> None:
    problem = f"{one.name} and {other.name} were not scored on the same items"
    ids, others = [record["id"] for record in one.records], [record["id"] for record in other.records]
    if ids != others:
        sides = ((one, set(ids) - set(others)), (other, set(others) - set(ids)))
        missing = [f"{len(only):,} only in {side.name} ({_some(only)})" for side, only in sides if only]
        counts = f"{len(ids):,} and {len(others):,}"
        raise ValueError(f"{problem}: {counts} items, {'; '.join(missing) or 'in another order'}")
    for mine, theirs in zip(one.records, other.records, strict=True):
        if any(mine.get(key) != theirs.get(key) for key in ("context", "reference", "gold emotion")):
            raise ValueError(f"{problem}: item {mine['id']} has another context, reference or emotion in each")


def _some(ids: set[str]) -> str:
    first = sorted(ids)[:3]
    return ", ".join(first) + (" …" if len(ids) > len(first) else "")


def _names(evaluations: Sequence[StoredEvaluation]) -> list[str]:
    """The last part of each path, with as many parts before it as needed to make it unique."""
    parts = [_place_parts(one) for one in evaluations]
    names = [part[-1] for part in parts]
    longest = max(map(len, parts))
    for length in range(2, longest + 1):
        if len(set(names)) == len(names):
            break
        alike = {name for name in names if names.count(name) > 1}
        names = ["/".join(p[-length:]) if name in alike else name for p, name in zip(parts, names, strict=True)]
    return names


def _place_parts(one: StoredEvaluation) -> tuple[str, ...]:
    """An evaluation inside a run is named after the run, and after the decoding unless it is the run's own; any other
    folder after itself."""
    if one.from_card:
        return (*one.place.parts[1:-1], one.name)
    split, data, part, decoding = (one.about.get(key) for key in ("split", "data", "part", "decoding"))
    usual = f"{one.place.name}-".startswith((f"{split}-", f"{folder_name(split or '', data, part)}-"))
    if not usual or one.place.parent.name != "evaluation":
        return one.place.parts[1:] or (str(one.place),)
    run = one.place.parents[1]
    other = decoding is not None and one.place.name.endswith(f"-{decoding}")
    return (*run.parts[1:-1], f"{run.name}, {decoding}" if other else run.name)


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise ValueError(f"{file} is not valid JSON ({problem})") from problem


def _records(file: Path) -> list[dict[str, Any]]:
    records = []
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line.rstrip())
            except json.JSONDecodeError as problem:
                raise ValueError(
                    f"{file} line {number}: not valid JSON ({json_problem(line.rstrip(), problem)})"
                ) from problem
            if not isinstance(record, dict) or not {"id", "context", "reply"} <= record.keys():
                raise ValueError(f"{file} line {number}: a record has id, context and reply")
            records.append(record)
    return records


def _scores(records: Any, file: Path) -> dict[str, Score]:
    try:
        return {record["name"]: Score.from_json(record) for record in records}
    except (KeyError, TypeError, ValueError) as problem:
        raise ValueError(f"{file}: not a list of scores ({problem})") from problem
