"""`listenwell reproduce`: every published number has a verdict or a reason, and a second run recomputes nothing."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from pathlib import Path

import pytest

from listenwell.cli import main
from listenwell.evaluation import published
from listenwell.evaluation.reproduce import spec as specs
from listenwell.evaluation.reproduce.plan import plan
from listenwell.evaluation.reproduce.report import as_csv, as_html, as_latex, counts
from listenwell.evaluation.reproduce.results import Result, check_signatures, results
from listenwell.evaluation.reproduce.spec import (
    DatasetSpec,
    FigureSpec,
    PaperSpec,
    SystemSpec,
    TableSpec,
    paper,
    papers,
)
from listenwell.evaluation.reproduce.verdict import Measured, judge
from listenwell.metrics.score import Score, Signature
from listenwell.training import recipe_names

PAPERS = ("bert-joint", "dual-emp", "meed2", "mime", "strategy-memory")


@pytest.mark.parametrize("name", PAPERS)
def test_every_published_number_has_a_row_a_verdict_and_where_nothing_is_measured_a_reason(name, tmp_path):
    one = paper(name)
    assert {row.table for row in published.rows(name)} == set(one.tables)
    numbers = results(one, plan(one, tmp_path))
    assert len(numbers) == sum(len(row.values) for row in published.rows(name))
    assert all(result.why for result in numbers)
    assert {result.verdict for result in numbers} <= {"not possible here", "not yet measured"}


@pytest.mark.parametrize("name", PAPERS)
def test_every_recipe_that_a_paper_names_exists_and_every_row_has_a_system_or_a_reason(name):
    one, known = paper(name), set(recipe_names())
    for row, system in one.systems.items():
        named = [*system.after, *([system.recipe] if system.recipe else [])]
        assert set(named) <= known, row
        assert system.reason or system.recipe or system.system or system.scored_with in one.systems, row
    for row in published.rows(name):
        assert row.dataset in one.datasets
        assert one.system_of(row)


def test_every_study_that_a_table_names_exists():
    known = {file.stem for file in (Path(specs.__file__).parents[2] / "recipes" / "studies").glob("*.yaml")}
    for one in papers().values():
        assert {name for table in one.tables.values() for name in table.studies()} <= known


def test_the_papers_are_those_with_published_numbers():
    assert set(papers()) == set(PAPERS) == {row.paper for row in published.load()}
    with pytest.raises(ValueError, match="unknown paper 'mimes'; did you mean 'mime'"):
        paper("mimes")


@pytest.mark.parametrize(
    ("stated", "value", "low", "high", "better", "verdict"),
    [
        ("2.98", 2.10, 1.90, 2.30, "higher", "worse"),
        ("2.98", 2.90, 2.85, 2.95, "higher", "reproduced"),  # within 5 %
        ("2.98", 2.50, 2.00, 3.00, "higher", "reproduced"),  # within the interval
        ("31.01", 41.5, 40.0, 43.0, "lower", "worse"),
        ("31.01", 20.0, 19.0, 21.0, "lower", "better"),
        ("31.01", 31.9, None, None, "lower", "reproduced"),
    ],
)
def test_the_verdict_follows_the_rule(stated, value, low, high, better, verdict):
    assert judge(Decimal(stated), Measured(value, low, high, better)) == verdict


def test_several_seeds_are_their_mean_and_the_range_of_their_intervals():
    signature = Signature.of("bleu", n=4)
    scores = [Score("bleu-4", 2.0, 1.8, 2.2, signature=signature), Score("bleu-4", 3.0, 2.9, 3.1, signature=signature)]
    assert Measured.of(scores) == Measured(2.5, 1.8, 3.1, "higher", 2)
    bare = [Score("x", 1.0, signature=signature), Score("x", 2.0, signature=signature)]
    assert Measured.of(bare) == Measured(1.5, 1.0, 2.0, "higher", 2)


def result(row="A", signature="bleu|n:4", **changes):
    known = {"measured": Measured(1.0, 0.9, 1.1, "higher"), "verdict": "reproduced", "why": "=1+1", **changes}
    return Result("mime", "2", "ed", row, "bleu", Decimal("1.0"), signature=signature, **known)


def test_rows_that_were_not_computed_alike_do_not_stand_in_one_column():
    check_signatures([result("A"), result("B")])
    with pytest.raises(ValueError, match="bleu of A and of B were not computed alike"):
        check_signatures([result("A"), result("B", signature="bleu|n:4|tok:13a")])


def test_reports_hold_every_number_and_escape_what_others_would_run():
    one = paper("mime")
    numbers = [result("A & <b>"), result("B", measured=None, verdict="not possible here")]
    page = as_html(one, numbers, {"budget": "cpu"})
    assert "A &amp; &lt;b&gt;" in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    rows = list(csv.DictReader(io.StringIO(as_csv(numbers))))
    assert rows[0]["why"] == "'=1+1"
    assert rows[1]["measured"] == ""
    assert r"A \& <b>" in as_latex(one, numbers)
    assert counts(numbers) == {"reproduced": 1, "not possible here": 1}


# End to end, on the shipped corpus


@pytest.fixture
def small_paper(monkeypatch):
    row = published.Row("small", "1", "shipped", "Tiny", {"bleu": Decimal("2.0"), "human_empathy": Decimal("3.0")})
    other = published.Row("small", "1", "shipped", "Giant", {"bleu": Decimal("9.0")})
    monkeypatch.setattr(published, "load", lambda: (row, other))
    one = PaperSpec(
        "A small paper",
        {"shipped": DatasetSpec("shipped")},
        {"Tiny": SystemSpec(recipe="tiny"), "Giant": SystemSpec(reason="needs a giant")},
        {"1": TableSpec("Scores", study="small-ratings")},
        {"2": FigureSpec("Accuracy by emotion", "by-emotion", ["Tiny"])},
        name="small",
    )
    monkeypatch.setattr(specs, "papers", lambda: {"small": one})
    return one


def test_it_trains_and_scores_what_is_missing_and_computes_nothing_twice(small_paper, tmp_path, capsys, monkeypatch):
    arguments = ["reproduce", "small", "--budget", "small", "--out", str(tmp_path)]
    main([*arguments, "--list"])
    assert "to do" in capsys.readouterr().out
    main(arguments)
    shown = capsys.readouterr()
    assert "[1/2] train tiny" in shown.err
    assert "[2/2] score Tiny" in shown.err
    record = json.loads((tmp_path / "small" / "report.json").read_text())
    by_row = {(one["row"], one["metric"]): one for one in record["results"]}
    assert by_row["Tiny", "bleu"]["measured"] >= 0
    assert by_row["Tiny", "human_empathy"]["why"] == (
        "needs raters: listenwell study create small-ratings --recipe small-ratings"
    )
    assert by_row["Giant", "bleu"]["verdict"] == "not possible here"
    assert "data:image/png;base64," in (tmp_path / "small" / "report.html").read_text()
    for name in ("report.html", "report.csv", "report.tex", "figure-2.png"):
        assert (tmp_path / "small" / name).stat().st_size < 5_000_000
    for command in ("train:train", "evaluate:evaluate"):
        module, function = command.split(":")
        monkeypatch.setattr(f"listenwell.commands.{module}.{function}", lambda *_, **__: pytest.fail("computed again"))
    main(arguments)
    assert capsys.readouterr().err == ""


def test_a_run_that_was_cut_off_is_not_taken_for_a_finished_one(small_paper, tmp_path):
    (step,) = plan(small_paper, tmp_path, "small").trainings
    (step.folder / "best").mkdir(parents=True)
    (step.folder / "best" / "config.json").write_text("{}")
    assert step.done
    step.mark.touch()
    assert not step.done


def test_bad_requests_are_told_with_the_choices(small_paper):
    with pytest.raises(SystemExit, match="unknown table of small '7'"):
        main(["reproduce", "small", "--table", "7"])
    with pytest.raises(SystemExit, match="no recipe of the paper's size for tiny; use --budget cpu"):
        main(["reproduce", "small", "--budget", "paper"])


def test_reports_that_it_did_not_write_are_left_alone(small_paper, tmp_path):
    mine = tmp_path / "small" / "report.html"
    mine.parent.mkdir()
    mine.write_text("my thesis")
    with pytest.raises(SystemExit, match=r"report\.html was not written by listenwell reproduce; name another folder"):
        main(["reproduce", "small", "--report-only", "--out", str(tmp_path)])
    assert mine.read_text() == "my thesis"
