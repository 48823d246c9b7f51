import json
import pickle

from listenwell.data.sources.report import MAX_PLACES, Place, Report, SourceError


def report_of(*excerpts, file="train.csv"):
    report = Report(rows=len(excerpts))
    for line, excerpt in enumerate(excerpts, start=2):
        report.drop("empty turn", file, line, excerpt)
    return report


def test_an_error_names_file_line_found_expected_and_the_way_out():
    error = SourceError.at("train.csv", 8123, "9 columns", "8 (conv_id, …)", "repair the row")
    assert str(error) == "train.csv line 8123: 9 columns, expected 8 (conv_id, …); repair the row"
    assert isinstance(error, ValueError)


def test_an_error_survives_the_way_back_from_a_worker_process():
    error = SourceError.at("train.csv", 1, "a", "b")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_all_are_counted_but_only_the_first_places_are_remembered():
    report = report_of(*"abcdefgh")
    assert report.dropped["empty turn"] == 8
    assert report.places["empty turn"] == [Place("train.csv", 2 + n, "abc"[n]) for n in range(MAX_PLACES)]


def test_reports_add_up_and_leave_their_parts_alone():
    first, second = report_of("a", "b"), report_of("c", "d", file="valid.csv")
    second.note("stray spaces", "valid.csv", 9)
    both = first + second
    assert (both.rows, both.dropped["empty turn"], both.noted["stray spaces"]) == (4, 4, 1)
    assert [place.file for place in both.places["empty turn"]] == ["train.csv", "train.csv", "valid.csv"]
    assert first.dropped["empty turn"] == 2
    assert sum([first, second], Report()) == both


def test_the_table_tells_totals_then_dropped_then_noted_by_count():
    report = Report(rows=5, conversations=2)
    report.keep(turns=3)
    report.note("stray spaces", "a.csv", 2, "x ")
    report.drop("empty turn", "a.csv", 3)
    report.drop("wrong column count", "a.csv", 4, count=2)
    rows = report.table()
    assert [row.number for row in rows[:4]] == [5, 2, 1, 3]
    assert [(row.fate, row.reason, row.number) for row in rows[4:]] == [
        ("dropped", "wrong column count", 2),
        ("dropped", "empty turn", 1),
        ("noted", "stray spaces", 1),
    ]
    assert rows[-1].first_seen == "a.csv:2 'x '"


def test_a_long_excerpt_is_cut_and_the_report_is_json():
    report = report_of("word " * 100)
    record = json.loads(json.dumps(report.to_json()))
    assert len(record["places"]["empty turn"][0]["excerpt"]) == 60
    assert record["dropped"] == {"empty turn": 1}
