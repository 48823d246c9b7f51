"""Exports: all ratings as plain files, and the formats of Potato and Label Studio."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

pytest.importorskip("sqlalchemy")
from study_raters import do_task
from test_machine import Random

from listenwell.studies.export import export, fixed_orders, ratings_csv, ratings_jsonl, values_in_order
from listenwell.studies.machine import rate
from listenwell.studies.rating import Ratings
from listenwell.studies.results import Answer, collect
from listenwell.studies.store import Store, Study

Make = Callable[..., Study]
KINDS = ["likert", "ab", "drag", "emotion"]


@pytest.fixture
def rated(sqlite_store: Store, make_study: Make) -> Callable[[str], Any]:
    """Make a study of a kind that two people and a machine have rated."""

    def make(kind: str) -> Any:
        study = make_study(sqlite_store, kind=kind)
        ratings = Ratings(sqlite_store, study)
        for name in ("anna", "=ben"):
            while do_task(ratings, ratings.join(name)):
                pass
        rate(sqlite_store, study, Random())
        return collect(sqlite_store, study)

    return make


@pytest.mark.parametrize("kind", KINDS)
def test_all_ratings_as_csv_and_json_lines(rated: Any, kind: str):
    results = rated(kind)
    lines = list(csv.DictReader(io.StringIO(ratings_csv(results))))
    each = {"likert": 6, "ab": 1, "drag": 2, "emotion": 2}[kind]
    assert len(lines) == 3 * 6 * each
    assert {line["rater"] for line in lines} == {"anna", "'=ben", "judge-one"}
    assert {line["machine"] for line in lines if line["rater"] == "judge-one"} == {"yes"}
    records = [json.loads(line) for line in ratings_jsonl(results).splitlines()]
    assert len(records) == 3 * 6
    assert set(records[0]["replies"]) == {"echo-one", "echo-two"}


@pytest.mark.parametrize("kind", KINDS)
def test_potato_gets_a_task_and_the_annotations(rated: Any, kind: str, tmp_path: Path):
    results = rated(kind)
    folder = tmp_path / "potato"
    for _ in range(2):  # an earlier export may be replaced
        export(results, "potato", folder)
    config = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    assert config["data_files"] == ["items.jsonl"]
    schemes = {scheme["name"] for scheme in config["annotation_schemes"]}
    items = [json.loads(line) for line in (folder / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(items) == 6
    blind = (folder / "items.jsonl").read_text(encoding="utf-8") + (folder / "config.yaml").read_text(encoding="utf-8")
    assert "echo-one" not in blind
    for line in (folder / "annotated_instances.jsonl").read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        assert set(one["label_annotations"]) == schemes
        assert one["instance_id"] in {item["id"] for item in items}
        assert ("annotator_origin" in one) == (one["user_id"] == "judge-one")


@pytest.mark.parametrize("kind", KINDS)
def test_label_studio_gets_a_configuration_tasks_and_machines_as_predictions(rated: Any, kind: str, tmp_path: Path):
    results = rated(kind)
    export(results, "label-studio", tmp_path / "studio")
    tree = ElementTree.fromstring((tmp_path / "studio" / "config.xml").read_text(encoding="utf-8"))
    controls = {element.get("name") for element in tree if element.tag in ("Rating", "Choices")}
    texts = {element.get("name") for element in tree if element.tag == "Text"}
    tasks = json.loads((tmp_path / "studio" / "tasks.json").read_text(encoding="utf-8"))
    assert len(tasks) == 6
    for task in tasks:
        assert len(task["annotations"]) == 2
        assert [one["model_version"] for one in task["predictions"]] == ["judge-one"]
        assert "echo-one" not in json.dumps(task["data"])
        for one in (*task["annotations"], *task["predictions"]):
            assert {entry["from_name"] for entry in one["result"]} == controls
            assert {entry["to_name"] for entry in one["result"]} <= texts
        for element in tree:
            if (value := element.get("value", "")).startswith("$"):
                assert value[1:] in task["data"]


def test_answers_are_turned_to_the_order_of_the_export():
    choice = Answer("i", ("a", "b"), {"choice": "left"}, 1.0, 0.0)
    assert values_in_order(choice, ["b", "a"]) == {"choice": "right"}
    assert values_in_order(choice, ["a", "b"]) == {"choice": "left"}
    tie = Answer("i", ("a", "b"), {"choice": "tie"}, 1.0, 0.0)
    assert values_in_order(tie, ["b", "a"]) == {"choice": "tie"}
    drag = Answer("i", ("a", "b"), {"A": "good", "B": "bad"}, 1.0, 0.0)
    assert values_in_order(drag, ["b", "a"]) == {"A": "bad", "B": "good"}


def test_orders_of_an_export_go_by_the_seed(rated: Any):
    results = rated("ab")
    assert fixed_orders(results) == fixed_orders(results)


def test_exports_overwrite_nothing_of_anybody_elses(rated: Any, tmp_path: Path):
    results = rated("ab")
    (tmp_path / "mine.csv").write_text("precious", encoding="utf-8")
    with pytest.raises(ValueError, match="not overwritten"):
        export(results, "csv", tmp_path / "mine.csv")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "notes.txt").write_text("x", encoding="utf-8")
    with pytest.raises(ValueError, match=r"notes\.txt"):
        export(results, "potato", folder)
    export(results, "jsonl", tmp_path / "new" / "ratings.jsonl")
    assert len((tmp_path / "new" / "ratings.jsonl").read_text(encoding="utf-8").splitlines()) == 18
