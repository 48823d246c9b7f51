"""From answers to tables: what a report counts, filters, tests and writes."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sqlalchemy")
from study_raters import do_task

from listenwell.studies import heds
from listenwell.studies.datasheet import NOT_STATED, datasheet, datasheet_json, datasheet_markdown
from listenwell.studies.kinds import LEFT, RIGHT, TIE
from listenwell.studies.pay import pay_csv, pay_list
from listenwell.studies.quality import bonus_points, filter_records
from listenwell.studies.rating import Ratings
from listenwell.studies.report import make_report, render, to_json, write_report
from listenwell.studies.results import collect, judgements
from listenwell.studies.spec import Bonus, Filters, Pay
from listenwell.studies.store import Store, Study
from listenwell.studies.tables import Cell, Row, Table, safe_cell, to_csv, to_latex

Make = Callable[..., Study]


def table(report: Any, key: str, section: int = 0) -> Table:
    return next(one for one in report.sections[section].tables if one.key == key)


def row(one: Table, name: str) -> Row:
    return next(row for row in one.rows if row.name == name)


def rate_all(ratings: Ratings, names: list[str], values: Callable[[str, dict[str, str]], Any]) -> None:
    for name in names:
        rater = ratings.join(name)
        while do_task(ratings, rater, values):
            pass


def likert(scores: dict[str, int]) -> Callable[[str, dict[str, str]], Any]:
    """The same scores on every scale, by system, whatever its letter."""
    keys = ("empathy", "relevance", "fluency")
    return lambda item, shown: {letter: dict.fromkeys(keys, scores[system]) for letter, system in shown.items()}


def test_letters_become_systems_whatever_the_order_was(sqlite_store: Store, make_study: Make):
    study = make_study(sqlite_store)
    rate_all(Ratings(sqlite_store, study), ["anna", "ben", "cora"], likert({"echo-one": 4, "echo-two": 2}))
    report = make_report(sqlite_store, study)
    means = table(report, "means")
    assert [cell.value for cell in row(means, "echo-one").cells] == [4, 4, 4]
    assert [cell.value for cell in row(means, "echo-two").cells] == [2, 2, 2]


def test_means_and_tests_are_those_of_a_slow_recomputation(sqlite_store: Store, make_study: Make):
    from scipy import stats

    study = make_study(sqlite_store, items=12)
    ratings = Ratings(sqlite_store, study)
    generator = np.random.default_rng(3)
    given: dict[tuple[str, str], list[int]] = {}

    def values(item: str, shown: dict[str, str]) -> Any:
        said = {}
        for letter, system in shown.items():
            score = int(generator.integers(1, 5)) + (system == "echo-one")
            given.setdefault((item, system), []).append(score)
            said[letter] = {"empathy": score, "relevance": 3, "fluency": 3}
        return said

    rate_all(ratings, ["anna", "ben", "cora"], values)
    means = {key: float(np.mean(scores)) for key, scores in given.items()}
    one = [means[item.id, "echo-one"] for item in sqlite_store.design(study).items]
    two = [means[item.id, "echo-two"] for item in sqlite_store.design(study).items]
    report = make_report(sqlite_store, study)
    cell = row(table(report, "means"), "echo-one").cells[0]
    low, high = stats.t.interval(0.95, 11, np.mean(one), stats.sem(one))
    assert (cell.value, cell.low, cell.high) == pytest.approx((np.mean(one), low, high), abs=1e-9)
    tests = table(report, "tests").rows[0]
    assert tests.cells[0].value == pytest.approx(np.mean(one) - np.mean(two), abs=1e-9)
    assert tests.cells[1].value == pytest.approx(stats.ttest_rel(one, two).pvalue, abs=1e-9)


def test_by_polarity_and_the_papers_tables_stand_beside(sqlite_store: Store, make_study: Make):
    study = make_study(sqlite_store, items=32, published=["mime/2"])
    rate_all(Ratings(sqlite_store, study), ["anna"], likert({"echo-one": 4, "echo-two": 3}))
    report = make_report(sqlite_store, study)
    published = {
        row.name: [cell.text for cell in row.cells] for row in table(report, "means").rows if row.kind == "published"
    }
    assert published["mime: MIME"] == ["3.87", "3.60", "4.28"]
    polar = table(report, "polarity")
    assert polar.columns[:2] == ("Empathy, positive", "Empathy, negative")
    assert [cell.text for cell in row(polar, "mime: MIME").cells][:2] == ["4.00", "3.80"]
    assert row(polar, "echo-one").cells[0].value == 4


def test_the_last_answer_to_an_item_counts(sqlite_store: Store, make_study: Make):
    study = make_study(sqlite_store, items=3)
    ratings = Ratings(sqlite_store, study)
    anna = ratings.join("anna")
    do_task(ratings, anna, likert({"echo-one": 1, "echo-two": 1}), finish=False)
    do_task(ratings, anna, likert({"echo-one": 5, "echo-two": 5}))
    report = make_report(sqlite_store, study)
    assert row(table(report, "means"), "echo-one").cells[0].value == 5


def test_no_place_counts_twice_and_partial_work_counts_only_where_nobody_finished(
    sqlite_store: Store, make_study: Make
):
    now = [0.0]
    study = make_study(sqlite_store, items=3, raters=1, lease_minutes=1)
    ratings = Ratings(sqlite_store, study, clock=lambda: now[0])
    anna, ben = ratings.join("anna"), ratings.join("ben")
    do_task(ratings, anna, likert({"echo-one": 1, "echo-two": 1}), finish=False)
    assert row(table(make_report(sqlite_store, study), "means"), "echo-one").cells[0].value == 1
    now[0] = 3600
    do_task(ratings, ben, likert({"echo-one": 5, "echo-two": 5}))
    results = collect(sqlite_store, study)
    assert [record.rater for record in results.counted()] == ["ben"]
    assert row(table(make_report(sqlite_store, study), "means"), "echo-one").cells[0].value == 5


def vote(choices: dict[str, str]) -> Callable[[str, dict[str, str]], Any]:
    """The preferred system for each item, or tie or both-bad."""

    def values(item: str, shown: dict[str, str]) -> Any:
        wanted = choices[item]
        side = {shown["A"]: LEFT, shown["B"]: RIGHT}
        return {"choice": side.get(wanted, wanted)}

    return values


def test_an_ab_study_counts_the_majoritys_verdicts(sqlite_store: Store, make_study: Make):
    study = make_study(sqlite_store, kind="ab", items=6, task_size=6, published=["mime/3"])
    ratings = Ratings(sqlite_store, study)
    ids = [item.id for item in sqlite_store.design(study).items]
    one, two = "echo-one", "echo-two"
    said = [  # by rater and item; the last item is decided by a fourth
        [one, one, two, TIE, "both-bad", one],
        [one, one, two, TIE, "both-bad", two],
        [one, two, two, one, TIE, TIE],
    ]
    for name, choices in zip(("anna", "ben", "cora"), said, strict=True):
        do_task(ratings, ratings.join(name), vote(dict(zip(ids, choices, strict=True))))
    before = row(table(make_report(sqlite_store, study), "ab"), "echo-one vs echo-two")
    assert before.cells[4].value == 1, "one item is undecided"
    do_task(ratings, ratings.join("dora"), vote({ids[5]: two}))
    report = make_report(sqlite_store, study)
    cells = row(table(report, "ab"), "echo-one vs echo-two").cells
    assert [cell.value for cell in cells[:6]] == pytest.approx([100 * n / 6 for n in (2, 2, 1, 1)] + [0, 6])
    assert any(line.name == "mime: MIME vs MoEL" for line in table(report, "ab").rows)
    strengths = table(report, "davidson")
    assert row(strengths, "echo-one").cells[0].value == pytest.approx(0, abs=1e-9)
    kappa = table(report, "agreement").rows[0].cells[0].value
    assert -1 <= kappa <= 1


BONUS = {"kind": "drag", "items": 10, "task_size": 10, "raters": 4, "bonus": Bonus(per_task=3)}


def drag(human: str, others: str) -> Callable[[str, dict[str, str]], Any]:
    return lambda item, shown: {letter: human if system == "human" else others for letter, system in shown.items()}


def mixed(human: str) -> Callable[[str, dict[str, str]], Any]:
    areas = {"echo-one": "good", "echo-two": "bad", "human": human}
    return lambda item, shown: {letter: areas[system] for letter, system in shown.items()}


@pytest.mark.parametrize(
    ("human", "minutes", "kept"),
    [("good", 3, True), ("okay", 3, True), ("bad", 3, False), ("bad", 6, True), ("good", 6, True)],
)
def test_a_task_under_five_minutes_needs_two_bonus_points(
    sqlite_store: Store, make_study: Make, human: str, minutes: int, kept: bool
):
    now = [0.0]
    study = make_study(sqlite_store, **BONUS, filters=Filters(min_minutes=5, min_bonus=2))
    ratings = Ratings(sqlite_store, study, clock=lambda: now[0])
    anna = ratings.join("anna")
    ratings.current(anna)
    now[0] = 60.0 * minutes
    do_task(ratings, anna, mixed(human))
    results = collect(sqlite_store, study)
    (record,) = results.counted()
    assert bonus_points(record, results) == (3 if human in ("good", "okay") else 0)
    filtered = filter_records(results, results.counted())
    assert len(filtered.kept) == int(kept)
    assert len(filtered.discarded) == int(not kept)


def test_two_of_three_bonus_points_are_enough_and_one_is_not(sqlite_store: Store, make_study: Make):
    study = make_study(sqlite_store, **BONUS, filters=Filters(min_minutes=5, min_bonus=2))
    ratings = Ratings(sqlite_store, study)
    checks = [item.id for item in sqlite_store.design(study).items if item.bonus]
    for name, passed in (("anna", 2), ("ben", 1)):
        good = set(checks[:passed])
        do_task(
            ratings,
            ratings.join(name),
            lambda item, shown, good=good: mixed("good" if item in good else "bad")(item, shown),
        )
    filtered = filter_records(collect(sqlite_store, study), collect(sqlite_store, study).counted())
    assert [record.rater for record in filtered.kept] == ["anna"]
    assert "with 1 bonus points" in filtered.discarded[0].reason


def test_scores_may_need_two_bonus_points_of_every_task(sqlite_store: Store, make_study: Make):
    now = [0.0]
    study = make_study(sqlite_store, **BONUS, filters=Filters(min_minutes=5, min_bonus=2, needs_bonus=True))
    ratings = Ratings(sqlite_store, study, clock=lambda: now[0])
    anna = ratings.join("anna")
    ratings.current(anna)
    now[0] = 3600
    do_task(ratings, anna, mixed("bad"))
    results = collect(sqlite_store, study)
    assert "fewer than 2" in filter_records(results, results.counted()).discarded[0].reason


def test_raters_who_always_say_the_same_are_left_out_and_both_tables_are_there(sqlite_store: Store, make_study: Make):
    study = make_study(sqlite_store, items=12)
    ratings = Ratings(sqlite_store, study)
    rate_all(ratings, ["lazy"], likert({"echo-one": 3, "echo-two": 3}))
    rate_all(ratings, ["anna", "ben"], likert({"echo-one": 5, "echo-two": 1}))
    report = make_report(sqlite_store, study)
    assert [section.title for section in report.sections] == ["All raters", "After the filters"]
    assert row(table(report, "means", 0), "echo-one").cells[0].value == pytest.approx(13 / 3)
    assert row(table(report, "means", 1), "echo-one").cells[0].value == 5
    assert [(one.rater, one.task) for one in report.discarded] == [("lazy", None)]


def test_drag_shares_leave_the_human_reply_of_checks_out(sqlite_store: Store, make_study: Make):
    study = make_study(sqlite_store, **BONUS, published=["meed2/5"])
    rate_all(Ratings(sqlite_store, study), ["anna", "ben"], mixed("good"))
    report = make_report(sqlite_store, study)
    drag_table = table(report, "drag")
    assert [cell.value for cell in row(drag_table, "echo-one").cells] == [100, 0, 0, 20]
    assert [cell.value for cell in row(drag_table, "echo-two").cells] == [0, 0, 100, 20]
    assert not any(line.name == "human" for line in drag_table.rows)
    assert [cell.text for cell in row(drag_table, "meed2: MEED2 (OS->ED), ed").cells[:3]] == ["48.90", "30.33", "20.77"]
    expected = Counter(
        sqlite_store.design(study).replies[item.id, "echo-one"].label for item in sqlite_store.design(study).items
    )
    assert report.labels == {"echo-one": {label: 2 * times for label, times in expected.items()}}


def test_an_emotion_study_has_accuracies_in_percent(sqlite_store: Store, make_study: Make):
    study = make_study(sqlite_store, kind="emotion", published=["bert-joint/2"])
    right = {"echo-one": 1, "echo-two": 0}
    rate_all(
        Ratings(sqlite_store, study), ["anna"], lambda item, shown: {letter: right[s] for letter, s in shown.items()}
    )
    means = table(make_report(sqlite_store, study), "means")
    assert [row(means, name).cells[0].value for name in ("echo-one", "echo-two")] == [100, 0]
    assert row(means, "bert-joint: BERT (JT)").cells[0].text == "69"


def test_a_report_of_nothing_is_a_report(sqlite_store: Store, make_study: Make):
    for kind in ("likert", "ab", "drag", "emotion"):
        report = make_report(sqlite_store, make_study(sqlite_store, kind=kind))
        page, _ = render(report)
        assert "nothing yet" in page or "–" in page
        json.dumps(to_json(report))


EVIL = "<script>alert(1)</script>"


def test_nothing_from_outside_becomes_markup_or_a_formula(sqlite_store: Store, make_study: Make, tmp_path: Path):
    study = make_study(sqlite_store, title=EVIL, about=EVIL)
    ratings = Ratings(sqlite_store, study)
    rate_all(ratings, [EVIL, "=cmd|' /C calc'!A0", "+1+2"], likert({"echo-one": 3, "echo-two": 3}))
    report = make_report(sqlite_store, study)
    page, policy = render(report)
    assert EVIL not in page
    assert "script-src" not in policy
    lines = list(csv.reader(io.StringIO(pay_csv(report.results))))
    assert sorted(line[0][0] for line in lines[1:]) == ["'", "'", "<"]
    assert "\\textbackslash{}" in to_latex(Table("k", "a\\b & 5 % of $x_1$", "h", ("c",), ()))


@pytest.mark.parametrize(
    ("text", "safe"),
    [("=1+1", "'=1+1"), ("@x", "'@x"), ("-3.5", "-3.5"), ("+x", "'+x"), ("-x", "'-x"), ("plain", "plain"), ("", "")],
)
def test_cells_that_look_like_formulas_are_quoted_and_numbers_are_not(text: str, safe: str):
    assert safe_cell(text) == safe


def test_csv_has_every_number_with_its_interval():
    one = Table("k", "T", "system", ("a",), (Row("=x", (Cell(1.5, 1.0, 2.0),), "machine"),))
    assert to_csv([one]).splitlines() == ["table,row,kind,column,value,low,high", "T,'=x,machine,a,1.5,1.0,2.0"]


def test_latex_marks_machines_and_published_rows():
    rows = (Row("a", (Cell(1.0),)), Row("b_c", (Cell(2.0),), "machine"), Row("d", (Cell(None),), "published"))
    text = to_latex(Table("k", "100 %", "system", ("x",), rows))
    assert "100 \\%" in text
    assert "b\\_c (machine)" in text
    assert "d (published)" in text
    assert text.count("\\midrule") == 3


def test_all_files_are_written_and_rewritten_and_nothing_else_is_touched(
    sqlite_store: Store, make_study: Make, tmp_path: Path
):
    study = make_study(sqlite_store, **BONUS)
    rate_all(Ratings(sqlite_store, study), ["anna"], mixed("good"))
    folder = tmp_path / "report"
    for _ in range(2):
        write_report(make_report(sqlite_store, study), folder)
    names = {"report.html", "report.csv", "report.tex", "report.json", "heds.json", "heds.md", "labels.png"}
    assert {path.name for path in folder.iterdir()} == names
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "data:image/png;base64," in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x", encoding="utf-8")
    with pytest.raises(ValueError, match=r"thesis\.txt"):
        write_report(make_report(sqlite_store, study), tmp_path / "mine")


@pytest.mark.parametrize("kind", ["likert", "ab", "drag", "emotion"])
def test_the_datasheet_answers_every_question(sqlite_store: Store, make_study: Make, kind: str):
    said = {"5.1": "The ethics committee of Anytown", "1.3.1.1": "A. Researcher"}
    study = make_study(sqlite_store, kind=kind, datasheet=said, pay=Pay(per_task=1.5))
    results = collect(sqlite_store, study)
    entries = datasheet(results, make_report(sqlite_store, study).tables())
    assert [entry.number for entry in entries if not entry.criterion] == [
        question.number for question in heds.QUESTIONS if not question.per_criterion
    ]
    criteria = {entry.criterion for entry in entries if entry.criterion}
    assert len(criteria) == (3 if kind == "likert" else 1)
    assert all(entry.shown for entry in entries)
    by_number = {entry.number: entry for entry in entries}
    assert by_number["5.1"].shown == "The ethics committee of Anytown"
    assert by_number["3.1.2"].choices == (2,)
    assert by_number["3.2.2.2"].choices == (1,)
    open_ = {entry.number for entry in entries if NOT_STATED in entry.text}
    assert open_ <= {
        "1.3.1.2", "1.3.1.3", "1.3.2.1", "1.3.2.2", "1.3.2.3", "3.2.2.1", "3.2.2.3", "3.2.2.4", "3.2.3", "3.2.5",
        "4.3.1.2", "1.1.1", "3.3.1", "3.3.6", "5.3", "5.4",
    }  # fmt: skip
    record = datasheet_json(entries)
    assert record["heds-ethics-review_body"]["data"] == {"": "The ethics committee of Anytown"}
    assert record["heds-sample_evaluators_design-sample-system_output_selection-2"]["data"] == {"": True}
    assert set(record["heds-criteria-criterion"]["control"]) == criteria
    text = datasheet_markdown(entries, study.title)
    assert all(f"**{question.number}" in text for question in heds.QUESTIONS)


def test_everybody_is_paid_also_who_dropped_out_or_was_filtered(sqlite_store: Store, make_study: Make):
    now = [0.0]
    study = make_study(sqlite_store, **{**BONUS, "items": 20}, pay=Pay(per_task=0.4, bonus=0.1), lease_minutes=10)
    ratings = Ratings(sqlite_store, study, clock=lambda: now[0])
    rate_all(ratings, ["anna"], mixed("good"))  # two tasks, all checks passed
    do_task(ratings, ratings.join("ben"), mixed("bad"))  # one task, no check passed
    from listenwell.studies.layout import letters
    from listenwell.studies.rating import Given

    cora = ratings.join("cora")
    half = ratings.current(cora).layout[:5]
    given = [Given(e["item"], e["item"], dict.fromkeys(letters(e["systems"]), "okay"), 6.0) for e in half]
    ratings.store_answers(cora.token, given)
    ratings.join("dora")  # joined, and did nothing
    now[0] = 7200
    ratings.current(ratings.join("emil"))
    lines = {line.rater: line for line in pay_list(collect(sqlite_store, study))}
    assert {rater: line.amount for rater, line in lines.items()} == {
        "anna": 1.0,
        "ben": 0.4,
        "cora": 0.2,
        "dora": 0.0,
        "emil": 0.0,
    }
    assert (lines["cora"].tasks, lines["cora"].left, lines["cora"].answers) == (0, 1, 5)
    assert len({line.completion_code for line in lines.values()}) == 5


def test_judgements_say_who_judged_what(sqlite_store: Store, make_study: Make):
    study = make_study(sqlite_store, items=3)
    rate_all(Ratings(sqlite_store, study), ["anna"], likert({"echo-one": 2, "echo-two": 4}))
    results = collect(sqlite_store, study)
    found = judgements(results.counted(), results)
    assert len(found) == 3 * 2 * 3
    assert {(one.rater, one.system, one.value) for one in found} == {("anna", "echo-one", 2), ("anna", "echo-two", 4)}
