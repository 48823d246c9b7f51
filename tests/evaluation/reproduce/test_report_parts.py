"""The parts of a report: the paper's definitions next to ours, one table per set of items, polarity, cases."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from test_evaluate import MIXED, SAID, STOCK, FakeSystem, made_items, measured

from listenwell.evaluation import published
from listenwell.evaluation.evaluate import write
from listenwell.evaluation.reproduce import spec as specs
from listenwell.evaluation.reproduce.cases import answer_cases, answered_cases, cases
from listenwell.evaluation.reproduce.plan import options, plan
from listenwell.evaluation.reproduce.polarity import polarity_tables
from listenwell.evaluation.reproduce.report import Extras, as_csv, as_html, as_latex
from listenwell.evaluation.reproduce.results import results
from listenwell.evaluation.reproduce.spec import DatasetSpec, DefinitionSpec, PaperSpec, SystemSpec, TableSpec, paper
from listenwell.evaluation.reproduce.verdict import Measured
from listenwell.systems.reply import Reply

HALF = [emotion if index % 2 else "lonely" for index, (_, _, emotion) in enumerate(SAID)]


@pytest.fixture
def small(monkeypatch):
    """A paper with two systems in one table, decoded greedily, with perplexity per token of its own vocabulary."""
    rows = tuple(
        published.Row("small", "1", "shipped", name, {"ppl": Decimal("9"), "bleu": Decimal("2"), "human_x": Decimal(3)})
        for name in ("Tiny", "Other")
    )
    monkeypatch.setattr(published, "load", lambda: rows)
    one = PaperSpec(
        "A small paper",
        {"shipped": DatasetSpec("shipped")},
        {"Tiny": SystemSpec(recipe="tiny"), "Other": SystemSpec(recipe="trs")},
        {"1": TableSpec("Scores", study="small-ratings", by_polarity=["Tiny"])},
        decoding=["method=greedy", "max_length=7"],
        definitions={"ppl": [DefinitionSpec("perplexity", "per token", "per word")]},
        name="small",
    )
    monkeypatch.setattr(specs, "papers", lambda: {"small": one})
    return one


def keep(scoring, texts, items=None):
    scoring.folder.parent.mkdir(parents=True, exist_ok=True)
    write(measured(FakeSystem(scoring.row, texts, HALF, cost=2.0), items), scoring.folder)


def keep_all(work, items=None):
    for scoring in work.scorings:
        keep(scoring, STOCK if scoring.decoding else MIXED, items)


def test_the_paper_s_way_to_write_and_the_system_s_own_are_scored_apart(small, tmp_path):
    work = plan(small, tmp_path)
    ways = {(one.row, one.decoding) for one in work.scorings}
    paper_way = ("method=greedy", "max_length=7")
    assert ways == {("Tiny", paper_way), ("Tiny", ()), ("Other", paper_way), ("Other", ())}
    assert len({one.folder for one in work.scorings}) == 4
    assert options(paper_way) == {"method": "greedy", "max_length": 7}


def test_the_paper_s_definition_comes_first_and_ours_stands_beside_it_marked(small, tmp_path):
    work = plan(small, tmp_path)
    keep_all(work)
    by_cell = {(one.row, one.metric): one for one in results(small, work)}
    ppl, bleu = by_cell["Tiny", "ppl"], by_cell["Tiny", "bleu"]
    assert (ppl.signature.split("|")[1], ppl.ours_how) == ("per:token", "per word")
    assert ppl.why.startswith("per token. ")
    assert ppl.ours is not None
    assert bleu.ours_how.startswith("own decoding, ")
    assert bleu.ours.value > bleu.measured.value  # MIXED against STOCK
    page, table = as_html(small, [ppl, bleu], {}), as_csv([ppl, bleu])
    assert "own decoding" in page
    assert "ours_how" in table.splitlines()[0]
    assert "& ours &" in as_latex(small, [ppl, bleu])


def test_a_system_without_the_paper_s_score_has_the_usual_one(small, tmp_path):
    other = replace(small, definitions={"ppl": [DefinitionSpec("perplexity-given-label", "given", "summed out")]})
    work = plan(other, tmp_path)
    keep_all(work)
    cell = next(one for one in results(other, work) if one.metric == "ppl")
    assert "per:word" in cell.signature
    assert cell.measured is not None


def test_why_different_is_a_column_of_every_report(small, tmp_path):
    work = plan(small, tmp_path)
    keep_all(work)
    numbers = results(small, work)
    assert any(one.quirks for one in numbers)
    assert "Why different" in as_html(small, numbers, {})
    assert "macro-averaged perplexity" in as_csv(numbers)
    assert "macro-averaged perplexity" in as_latex(small, numbers)


def test_rows_that_were_scored_on_other_items_do_not_stand_in_one_table(small, tmp_path):
    work = plan(small, tmp_path)
    for scoring in work.scorings:
        keep(scoring, STOCK, made_items(4) if scoring.row == "Other" else None)
    with pytest.raises(ValueError, match=r"small, table 1, shipped: .*not scored on the same items.*2 only in Tiny"):
        results(small, work)


def test_ratings_of_a_study_fill_what_only_people_can_give(small, tmp_path):
    rated = {("1", "shipped", "Tiny", "human_x"): Measured(3.1, 2.9, 3.3, "higher")}
    by_row = {one.row: one for one in results(small, plan(small, tmp_path), ratings=rated) if one.metric == "human_x"}
    assert by_row["Tiny"].verdict == "reproduced"
    assert by_row["Tiny"].why == "by the raters of the study small-ratings"
    assert by_row["Other"].why.startswith("needs raters: listenwell study create small-ratings")


def test_scores_by_polarity_stand_beside_what_people_judged_by_it(small, tmp_path):
    work = plan(small, tmp_path)
    keep_all(work)
    tables = polarity_tables(small, work)
    assert [(row.row, row.polarity, row.items) for row in tables["1"]] == [
        ("Tiny", "positive", 2),
        ("Tiny", "negative", 4),
    ]
    page = as_html(small, results(small, work), {}, Extras(polarity=tables))
    assert "by the polarity of the dialogue" in page


# Cases


class Echo:
    languages = ("en",)

    def __init__(self):
        self.asked = []

    def replies(self, talks):
        self.asked += talks
        return [Reply("I see.", emotion="sad") for _ in talks]


def test_the_cases_are_short_quotations_of_papers_that_print_some():
    assert {case.paper for case in cases()} == {"mime", "dual-emp", "meed2", "strategy-memory"}
    for case in cases():
        assert case.context
        assert len(" ".join(case.context)) < 400
        assert case.dialogue.turns[-1].speaker == "speaker"


def test_cases_are_answered_once_by_each_system_and_stand_in_the_report(small, tmp_path, monkeypatch):
    work = plan(small, tmp_path)
    keep_all(work)
    echo = Echo()
    answer_cases("mime", work, tmp_path, lambda scoring: echo)
    assert len(echo.asked) == 2 * len(cases("mime"))
    answer_cases("mime", work, tmp_path, lambda scoring: pytest.fail("answered again"))
    shown = answered_cases("mime", work, tmp_path)
    assert [[answer.row for answer in case.answers] for case in shown] == [["Tiny", "Other"]] * len(shown)
    assert shown[0].answers[0].recognised == "sad"
    page = as_html(small, results(small, work), {}, Extras(cases=shown))
    assert "I see." in page
    assert "<script" not in page


def test_a_system_is_not_asked_in_a_language_that_it_does_not_speak(small, tmp_path):
    work = plan(small, tmp_path)
    keep_all(work)
    echo = Echo()
    answer_cases("strategy-memory", work, tmp_path, lambda scoring: echo)
    assert not echo.asked
    assert not any(case.answers for case in answered_cases("strategy-memory", work, tmp_path))


# The papers


def test_dual_emp_and_bert_joint_are_decoded_as_the_papers_are():
    assert options(paper("dual-emp").decoding) == {"method": "greedy", "max_length": 30, "block_ngrams": 0}
    assert options(paper("bert-joint").decoding) == {"method": "greedy", "min_length": 0, "block_ngrams": 0}


def test_meed2_is_scored_by_its_own_definitions_and_its_os_column_by_machine_labels():
    meed2 = paper("meed2")
    assert meed2.definition("ppl", "ed").score == "perplexity-given-label"
    assert meed2.definition("intent_f1", "ed").score == "likeliest-label-f1"
    assert meed2.definition("intent_f1", "os").score == "machine-likeliest-label-f1"
    assert meed2.systems["Random"].score_name("machine-likeliest-label-f1") == "machine-random-label-f1"
    assert {"machine-random-label-f1", "random-label-f1"} <= set(meed2.scores_needed())
