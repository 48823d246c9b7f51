"""The `listenwell study` command."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")
from study_raters import do_task

from listenwell.cli import main
from listenwell.studies.rating import Ratings
from listenwell.studies.server_lock import ServerLock
from listenwell.studies.store import Store, default_url

CREATE = ["study", "create", "first", "--kind", "likert", "--systems", "human", "--data", "shipped", "--items", "4"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LISTENWELL_STORE", raising=False)


def fails(*words: str) -> str:
    with pytest.raises(SystemExit) as caught:
        main(list(words))
    return str(caught.value)


def test_from_nothing_to_a_report(capsys: pytest.CaptureFixture[str]):
    main(CREATE)
    said = capsys.readouterr().out
    assert "4 items in 1 tasks for 3 raters each, 3 places" in said
    assert "Sample size" in said
    assert "listenwell study serve first" in said
    main(["study", "links", "first", "--people", "anna,ben", "--json"])
    links = json.loads(capsys.readouterr().out)
    assert set(links) == {"anna", "ben"}
    with Store(default_url("first")) as store:
        ratings = Ratings(store, store.study("first"))
        assert links["anna"].endswith(ratings.join("anna").token)
        do_task(ratings, ratings.join("anna"))
    main(["study", "status", "first", "--json"])
    assert json.loads(capsys.readouterr().out)["tasks done"] == "1 of 3"
    main(["study", "report", "first", "--out", "report"])
    assert "All raters: 1 people" in capsys.readouterr().out
    assert Path("report/report.html").is_file()
    main(["study", "report", "first", "--json"])
    assert json.loads(capsys.readouterr().out)["study"] == "first"
    main(["study", "pay", "first"])
    assert next(csv.DictReader(io.StringIO(capsys.readouterr().out)))["rater"] == "anna"
    main(["study", "export", "first", "--format", "label-studio", "--out", "studio"])
    assert Path("studio/tasks.json").is_file()


def test_studies_and_ready_ones_are_listed(capsys: pytest.CaptureFixture[str]):
    main(["study"])
    said = capsys.readouterr().out
    assert "There are no studies here yet" in said
    assert "mime-ratings" in said
    main(CREATE)
    capsys.readouterr()
    main(["study", "list", "--json"])
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["name"], row["state"], row["answers"]) == ("first", "open", 0)


def test_a_study_closes_and_opens_again(capsys: pytest.CaptureFixture[str]):
    main(CREATE)
    main(["study", "close", "first"])
    with Store(default_url("first")) as store:
        assert store.study("first").closed_at is not None
    main(["study", "reopen", "first"])
    with Store(default_url("first")) as store:
        assert store.study("first").closed_at is None
    assert "what raters still send" in capsys.readouterr().out


def test_the_environment_may_name_the_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("LISTENWELL_STORE", f"sqlite:///{tmp_path / 'shared.sqlite'}")
    main(CREATE)
    main(["study", "create", "second", *CREATE[3:]])
    with Store(f"sqlite:///{tmp_path / 'shared.sqlite'}") as store:
        assert [study.name for study in store.studies()] == ["first", "second"]
    assert not Path("studies").exists()


def test_a_recipe_and_changes_of_it():
    main(
        [
            "study",
            "create",
            "small",
            "--recipe",
            "mime-ratings",
            "--systems",
            "human",
            "--data",
            "shipped",
            "--items",
            "6",
        ]
    )
    with Store(default_url("small")) as store:
        spec = store.study("small").spec
    assert (spec.items, spec.systems, spec.published, spec.raters) == (6, ["human"], ["mime/2"], 3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["study", "create", "x"], "needs --kind and --systems"),
        (["study", "creat", "x"], "did you mean 'create'"),
        (["study", "serve"], "needs a NAME"),
        (["study", "create", "../x", "--kind", "likert", "--systems", "human"], "a study's name is letters"),
        (["study", "create", "x", "--kind", "likret", "--systems", "human"], "likert"),
        (["study", "create", "x", "--recipe", "mime-rating"], "did you mean 'mime-ratings'"),
        (["study", "links", "x"], "--people"),
        (["study", "rate", "x"], "--judge"),
        (["study", "export", "x", "--format", "potato"], "--out FOLDER"),
    ],
)
def test_what_is_typed_wrong_is_told(words: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_unknown_systems_data_and_studies_leave_nothing_behind():
    assert "nobody" in fails("study", "create", "x", "--kind", "likert", "--systems", "nobody", "--data", "shipped")
    assert "unknown source" in fails(
        "study", "create", "x", "--kind", "likert", "--systems", "human", "--data", "nowhere"
    )
    too_many = fails(*CREATE[:-1], "100000")
    assert re.search(r"shipped, split test: 100,000 items are asked for", too_many)
    assert not Path("studies").exists()
    assert "there is no study here" in fails("study", "report", "none")
    main(CREATE)
    assert "already" in fails(*CREATE)
    assert "did you mean 'first'" in fails("study", "report", "frist", "--store", default_url("first"))


def test_a_study_is_not_served_twice_or_after_its_texts_were_changed():
    from sqlalchemy import text

    main(CREATE)
    with Store(default_url("first")) as store:
        lock = ServerLock(store, store.study("first"))
        lock.acquire()
        assert "already being served" in fails("study", "serve", "first", "--port", "0")
        lock.release()
        with store.write() as connection:
            connection.execute(text("UPDATE items SET reference = 'another'"))
    assert "were changed" in fails("study", "serve", "first", "--port", "0")


def test_a_port_that_is_taken_is_told():
    import socket

    main(CREATE)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert "choose another with --port" in fails("study", "serve", "first", "--port", port)


def test_help_reads_well(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["study", "--help"])
    said = capsys.readouterr().out
    assert "--allowed-host" in said
    assert "Let people rate replies" in said
