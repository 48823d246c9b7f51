"""Evaluated systems in one table: only comparable scores, no invented ones, and a test for every difference."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_evaluate import STOCK, FakeSystem, made_items, measured, parrot, written

from listenwell import cli
from listenwell.data.dialogue import Example
from listenwell.evaluation import html_report as pages
from listenwell.evaluation.compare import Comparison, compare, holm
from listenwell.evaluation.markdown import markdown
from listenwell.evaluation.store import read, read_all
from listenwell.metrics import paired_bootstrap, paired_t_test


def column(comparison: Comparison, name: str):
    return next(column for column in comparison.columns if column.name == name)


def cells(comparison: Comparison, name: str):
    return [comparison.cell(one, column(comparison, name)) for one in comparison.systems]


# The table


def test_columns_are_the_union_each_in_its_place(comparison: Comparison):
    names = [column.name for column in comparison.columns]
    assert names[:3] == ["perplexity-word", "perplexity", "accuracy@1"]
    assert names.index("macro-f1") < names.index("weighted-f1") < names.index("bleu-4") < names.index("length")
    assert len(set(names)) == len(names)


def test_what_a_system_lacks_is_absent_and_not_zero(comparison: Comparison):
    assert cells(comparison, "accuracy@1")[0] is None
    assert cells(comparison, "perplexity-word")[2] is None
    plain, _, endpoint = comparison.to_json()["systems"]
    assert "accuracy@1" not in plain["scores"]
    assert "perplexity-word" not in endpoint["scores"]
    line = next(line for line in markdown(comparison).splitlines() if line.startswith("| plain |"))
    assert line.split("|")[4].strip() == "–"


def test_the_best_is_the_lowest_where_lower_is_better(comparison: Comparison):
    assert [cell and cell.best for cell in cells(comparison, "perplexity-word")] == [False, True, None]
    assert [cell and cell.best for cell in cells(comparison, "accuracy@1")] == [None, False, True]
    assert [cell.best for cell in cells(comparison, "sorry-to-hear")] == [False, False, True]


def test_nothing_is_best_where_all_are_equal_or_where_more_is_not_better(runs: list[str]):
    assert not any(cell.best for name in ("length",) for cell in cells(compare(read_all(runs)), name))
    alone = compare(read_all(runs[:1]))
    assert not any(cell.best for name in ("bleu-4", "distinct-1") for cell in cells(alone, name))


def test_chosen_scores_stand_in_the_order_asked_for(runs: list[str]):
    names = [column.name for column in compare(read_all(runs), scores=["bleu-4", "accuracy@1"]).columns]
    assert names == ["bleu-4", "accuracy@1"]
    with pytest.raises(ValueError, match="did you mean 'bleu-4'"):
        compare(read_all(runs), scores=["blue-4"])


def test_values_computed_in_different_ways_are_told_and_not_judged(runs: list[str]):
    file = Path(runs[1]) / "evaluation" / "test" / "items.json"
    file.write_text(file.read_text(encoding="utf-8").replace("case:lc|tok:word", "case:lc|tok:13a"), encoding="utf-8")
    comparison = compare(read_all(runs))
    (remark,) = (one for one in comparison.remarks if one.startswith("bleu-4 was computed in different ways"))
    assert "tok:13a" in remark
    assert not any(cell.best or cell.verdict for cell in cells(comparison, "bleu-4"))
    assert ("hears", "bleu-4") not in comparison.tests
    assert ("hears", "bland") in comparison.tests


def test_systems_that_compute_in_different_precisions_compare_and_it_is_told(runs: list[str]):
    place = Path(runs[1]) / "evaluation" / "test"
    for file in (place / "items.json", place / "scores.json"):
        file.write_text(file.read_text(encoding="utf-8").replace("|v:", "|precision:bf16|v:"), encoding="utf-8")
    scores = json.loads((place / "scores.json").read_text(encoding="utf-8"))
    scores["about"]["precision"] = "bf16"
    (place / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    comparison = compare(read_all(runs))
    assert not any("not computed alike" in remark for remark in comparison.remarks)
    assert ("hears", "bleu-4") in comparison.tests
    heads, rows = comparison.facts()
    assert [row[heads.index("precision")] for row in rows] == ["–", "bf16", "–"]


# Significance


def test_every_system_is_tested_against_the_baseline_as_the_metrics_do(runs: list[str]):
    systems = read_all(runs)
    comparison = compare(systems)
    assert comparison.baseline == "plain"
    for name in ("bleu-4", "bland", "length"):
        first, second = systems[1].scores[name], systems[0].scores[name]
        assert comparison.tests["hears", name].bootstrap == paired_bootstrap(first, second)
        assert comparison.tests["hears", name].t == paired_t_test(first, second)


def test_scores_without_items_have_no_test(comparison: Comparison):
    assert not any(name.startswith(("distinct", "unique")) for _, name in comparison.tests)
    assert not any(name == "accuracy@1" for _, name in comparison.tests), "the baseline hears no emotion"


def test_holm_is_over_the_systems_of_a_column(comparison: Comparison):
    raw = [comparison.tests[name, "bland"].bootstrap.p for name in ("hears", "endpoint")]
    assert [comparison.tests[name, "bland"].bootstrap_holm for name in ("hears", "endpoint")] == holm(raw)


def test_holm_multiplies_the_smallest_most_and_never_turns_the_order():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


def test_the_mark_says_better_where_lower_is_better_and_lower(tmp_path: Path):
    items = [Example(f"{item.id}-{n}", item.context, item.reply) for n in range(8) for item in made_items()]
    one = written(tmp_path, FakeSystem("high", STOCK * 8, cost=3.0), items)
    other = written(tmp_path, FakeSystem("low", STOCK * 8, cost=2.0), items)
    comparison = compare(read_all([str(one), str(other)]))
    assert [cell.verdict for cell in cells(comparison, "perplexity-word")] == [None, "better"]
    back = compare(read_all([str(one), str(other)]), baseline="low")
    assert [cell.verdict for cell in cells(back, "perplexity-word")] == ["worse", None]


def test_an_unknown_baseline_suggests_the_near_one(runs: list[str]):
    with pytest.raises(ValueError, match="unknown baseline 'plian'; did you mean 'plain'"):
        compare(read_all(runs), baseline="plian")


# What is compared


def test_systems_scored_on_other_items_are_refused_by_name(tmp_path: Path, runs: list[str]):
    fewer = written(tmp_path, parrot("fewer"), made_items(4))
    with pytest.raises(ValueError, match=r"plain and fewer .* 6 and 4 items, 2 only in plain \(d4#1, d5#1\)"):
        compare(read_all([runs[0], str(fewer)]))
    turned = written(tmp_path, parrot("turned"), made_items()[::-1])
    with pytest.raises(ValueError, match=r"plain and turned .* in another order"):
        compare(read_all([runs[0], str(turned)]))


def test_the_same_ids_with_other_texts_are_not_the_same_items(tmp_path: Path, runs: list[str]):
    items = made_items()
    items[2] = Example(items[2].id, items[3].context, items[2].reply, emotion=items[2].emotion)
    other = written(tmp_path, parrot("other"), items)
    with pytest.raises(ValueError, match="item d2#1 has another context"):
        compare(read_all([runs[0], str(other)]))


@pytest.mark.parametrize("name", ["items.json", "replies.jsonl"])
def test_a_missing_file_is_named_with_the_command_that_makes_it(runs: list[str], name: str):
    place = Path(runs[0]) / "evaluation" / "test"
    (place / name).unlink()
    with pytest.raises(ValueError, match=f"test/{name} is missing; .*: listenwell evaluate .*plain --split test"):
        read(runs[0])
    with pytest.raises(ValueError, match=f"test/{name} is missing; .*: listenwell evaluate SYSTEM --out .*test"):
        read(str(place))


def test_a_run_that_was_not_evaluated_says_what_to_run(runs: list[str], tmp_path: Path):
    with pytest.raises(ValueError, match=r"valid/scores.json is missing; .* --split valid; there is evaluation/test"):
        read(runs[0], "valid")
    with pytest.raises(ValueError, match="nowhere: no such folder; give the folder of an evaluated run"):
        read(str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="is given twice"):
        read_all([runs[0], runs[0]])


def test_a_broken_file_is_named_with_its_line(runs: list[str]):
    file = Path(runs[0]) / "evaluation" / "test" / "replies.jsonl"
    file.write_text(file.read_text(encoding="utf-8") + "{oops\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"replies\.jsonl line 7: not valid JSON"):
        read(runs[0])


def test_an_evaluation_s_own_folder_stands_for_its_run(runs: list[str]):
    (one,) = read_all([str(Path(runs[0]) / "evaluation" / "test")])
    assert one.name == "plain"
    assert one.place == Path(runs[0]) / "evaluation" / "test"


def test_runs_of_one_name_are_told_apart_by_what_stands_before(tmp_path: Path, runs: list[str]):
    shutil.copytree(runs[0], tmp_path / "again" / "plain")
    names = [one.name for one in read_all([runs[0], str(tmp_path / "again" / "plain"), runs[1]])]
    assert names == [f"{tmp_path.name}/plain", "again/plain", "hears"]


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A trained system that can be found by name, with scores on its card."""
    place = tmp_path / "cache" / "trained"
    place.mkdir(parents=True)
    scores = [score.to_json() for score in measured(parrot(cost=1.0)).scores]
    (place / "config.json").write_text("{}", encoding="utf-8")
    meta = {"seed": 3, "data": {"source": "x"}, "card": {"test": scores, "decoding": "greedy+max40"}}
    (place / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    monkeypatch.setenv("LISTENWELL_CACHE", str(tmp_path / "cache"))
    return "trained"


def test_a_shipped_system_has_the_scores_of_its_card_and_no_tests(runs: list[str], card: str):
    comparison = compare(read_all([card, *runs]))
    assert comparison.baseline == "plain", "a card has no items to test on"
    assert cells(comparison, "accuracy@1")[0].value == "100.0"
    assert not any(name == "trained" for name, _ in comparison.tests)
    assert any("on the card" in remark and "trained" in remark for remark in comparison.remarks)
    assert pages.sample_data(comparison, 10)["systems"] == ["plain", "hears", "endpoint"]
    with pytest.raises(ValueError, match="the baseline trained has no per-item values"):
        compare(read_all([card, *runs]), baseline="trained")


def test_a_card_scored_on_another_number_of_items_is_refused(tmp_path: Path, card: str):
    fewer = written(tmp_path, parrot("fewer"), made_items(4))
    with pytest.raises(ValueError, match="not scored on the same items: trained on 6, fewer on 4"):
        compare(read_all([card, str(fewer)]))


def test_a_shipped_system_without_scores_says_what_to_run(card: str):
    with pytest.raises(ValueError, match=r"has no scores on valid; .*listenwell evaluate trained .*--out FOLDER"):
        read(card, "valid")
    with pytest.raises(ValueError, match="did you mean 'trained'"):
        read("traind")


def test_cards_alone_make_a_table(card: str):
    comparison = compare(read_all([card]))
    assert comparison.baseline is None
    assert "<table" in pages.page(comparison)


# Published numbers


def test_published_rows_fill_only_the_columns_they_have(comparison: Comparison):
    mime, dual = (next(row for row in comparison.published if row.paper == paper) for paper in ("mime", "dual-emp"))
    assert comparison.published_cell(mime, column(comparison, "bleu-4")).value == "2.92"
    assert comparison.published_cell(mime, column(comparison, "perplexity-word")) is None
    shown = comparison.published_cell(dual, column(comparison, "perplexity-word"))
    assert comparison.footnotes[shown.note - 1] == "perplexity"
    assert not shown.best


def test_what_a_paper_has_and_we_do_not_is_named_and_so_is_other_data(comparison: Comparison):
    assert any("mime/2" in remark and "human_empathy" in remark for remark in comparison.remarks)
    assert comparison.remarks[0] == "Published on ed, measured on made: these cannot be compared."


def test_a_table_without_any_of_our_scores_says_so(runs: list[str]):
    comparison = compare(read_all(runs), papers=["mime/3"])
    assert not comparison.published
    assert any("no row of it stands here" in remark for remark in comparison.remarks)


# Markdown


def test_markdown_is_a_table_with_as_many_cells_in_every_row(comparison: Comparison):
    table = markdown(comparison).split("\n\n")[1].splitlines()
    assert {line.replace("\\|", "").count("|") for line in table} == {len(comparison.columns) + 2}
    assert "*MIME (mime, table 2, ed)*" in markdown(comparison)
    assert "2.98<sup>" in markdown(comparison)


def test_a_name_cannot_break_the_markdown(tmp_path: Path):
    run = written(tmp_path, parrot("a|b*<b>"))
    line = markdown(compare(read_all([str(run)]))).split("\n\n")[1].splitlines()[2]
    assert line.startswith(r"| a\|b\*\<b\> | ")


# The command


def test_the_command_takes_many_runs_and_writes_three_files(runs, tmp_path: Path, capsys):
    out = tmp_path / "results"
    out.mkdir()
    for _ in range(2):  # into an empty folder, and over its own earlier output
        cli.main(["compare", *runs, "--published", "mime/2", "--published", "dual-emp/1", "--out", str(out)])
    said = capsys.readouterr()
    assert all(name in said.out for name in ("plain", "hears", "endpoint", "Dual-Emp-Paired", "Against plain"))
    assert sorted(file.name for file in out.iterdir()) == ["compare.html", "compare.json", "compare.md"]
    assert json.loads((out / "compare.json").read_text(encoding="utf-8"))["baseline"] == "plain"


def test_the_baseline_may_be_named_by_its_folder_and_json_is_json(runs: list[str], capsys):
    cli.main(["compare", *runs, "--baseline", runs[1], "--scores", "bleu-4", "--format", "json"])
    said = json.loads(capsys.readouterr().out)
    assert said["baseline"] == "hears"
    assert set(said["systems"][0]["scores"]) == {"bleu-4"}
    assert said["systems"][0]["scores"]["bleu-4"]["against baseline"]["bootstrap"]["p"] <= 1


def test_a_name_with_brackets_is_printed_as_it_is(tmp_path: Path, capsys):
    cli.main(["compare", str(written(tmp_path, parrot("x[red]y")))])
    assert "x[red]y" in capsys.readouterr().out


def test_comparing_brings_up_no_tensors():
    code = "import sys; from listenwell.evaluation import html_report, markdown, store; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_scores_on_cards_are_headed_by_their_corpus(capsys):
    cli.main(["compare", "multi-trs", "mime", "--scores", "bleu-4"])
    assert capsys.readouterr().out.startswith("empathetic-dialogues, test split, 5,257 items")


def test_a_record_that_is_cut_off_is_told_with_its_column(runs):
    replies = next(Path(runs[0]).rglob("replies.jsonl"))
    replies.write_text(replies.read_text().splitlines()[0] + '\n{"id": "2", "rep\n')
    with pytest.raises(ValueError, match=r"replies\.jsonl line 2: not valid JSON \(cut off at column 17\)"):
        read_all(runs)


def test_a_picture_shows_all_systems_by_two_scores(runs: list[str], tmp_path: Path, capsys):
    picture = tmp_path / "against.png"
    cli.main(["compare", *runs, "--picture", str(picture), "--axes", "bleu-4,distinct-2"])
    assert picture.stat().st_size > 5000
    assert f"drawn to {picture}" in capsys.readouterr().err
    cli.main(["compare", *runs, "--picture", str(picture), "--axes", "bleu-4,distinct-1"])  # its own output is redrawn
    with pytest.raises(SystemExit, match="--axes takes two scores with a comma between them"):
        cli.main(["compare", *runs, "--picture", str(picture), "--axes", "posi"])
    with pytest.raises(SystemExit, match="no system has both scores, bleu-4 and posi"):
        cli.main(["compare", *runs, "--picture", str(picture), "--axes", "bleu-4,posi"])
