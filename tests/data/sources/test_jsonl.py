import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from listenwell.data.dialogue import Dialogue, Label, Turn
from listenwell.data.sources import jsonl, quality
from listenwell.data.sources.report import Report, SourceError

GOOD = '{"id": "d1", "turns": [{"speaker": "speaker", "text": "I passed!"}, {"speaker": "listener", "text": "Oh!"}]}'

# Records reject blank texts, and "" stands for a missing situation or split.
words = st.text(min_size=1, max_size=12).filter(str.strip)
labels = st.none() | st.builds(
    Label, words, st.sampled_from(["gold", "machine"]), st.none() | st.floats(0, 1, allow_nan=False)
)
turns = st.builds(Turn, st.sampled_from(["speaker", "listener"]), words, labels)
dialogues = st.builds(
    Dialogue,
    id=words,
    turns=st.lists(turns, min_size=1, max_size=4).map(tuple),
    emotion=labels,
    situation=st.none() | words,
    source=st.just("") | words,
    language=st.sampled_from(["en", "zh"]),
    split=st.sampled_from([None, "train", "valid", "test"]),
)


def file_of(folder, *lines, name="my.jsonl"):
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def record(**fields):
    return json.dumps(json.loads(GOOD) | fields)


@settings(max_examples=25, deadline=None)
@given(written=st.lists(dialogues, max_size=4), ending=st.sampled_from(jsonl.ENDINGS))
def test_what_is_written_is_read_again(tmp_path_factory, written, ending):
    path = tmp_path_factory.mktemp("roundtrip") / f"some{ending}"
    assert jsonl.write(written, path) == len(written)
    assert list(jsonl.read(path)) == written


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{not json", "my.jsonl line 2: Expecting property name enclosed in double quotes at column 2 in '{not json"),
        ('{"id": "x", "turns": [{"speaker": "spea', 'my.jsonl line 2: cut off at column 40 in \'{"id"'),
        ('{"id": "x", "turns": [', 'my.jsonl line 2: cut off at column 23 in \'{"id"'),
        ("[1]", "my.jsonl line 2: a dialogue is a JSON object, found list, expected a dialogue such as"),
        ('{"id": "x"}', "my.jsonl line 2: a dialogue has a non-empty list 'turns', expected"),
        (
            record(turns=[{"speaker": "me", "text": "x"}]),
            "my.jsonl line 2: a turn's speaker is 'speaker' or 'listener'",
        ),
        (record(turns=[{"speaker": "speaker", "text": " "}]), "my.jsonl line 2: a turn's text is a non-empty string"),
        (record(situation=5), "my.jsonl line 2: situation is 5, expected a string"),
        ("[" * 100_000, "my.jsonl line 2: endless nesting in"),
    ],
)
def test_a_malformed_line_is_named_after_the_good_one_was_given(tmp_path, line, message):
    reading = jsonl.read(file_of(tmp_path, GOOD, line))
    assert next(reading).id == "d1"
    with pytest.raises(SourceError) as caught:
        next(reading)
    assert str(caught.value).startswith(message)


def test_wrong_bytes_are_named(tmp_path):
    path = file_of(tmp_path, GOOD)
    path.write_bytes(path.read_bytes() + GOOD.encode().replace(b"passed", b"pass\xe9d"))
    with pytest.raises(SourceError, match=r"my\.jsonl line 2: the byte 0xe9 at position \d+, expected UTF-8; save"):
        list(jsonl.read(path))


def test_broken_gzip_is_named(tmp_path):
    path = tmp_path / "my.jsonl.gz"
    path.write_bytes(gzip.compress((GOOD + "\n").encode() * 50)[:-12])
    with pytest.raises(SourceError, match=r"my\.jsonl\.gz line \d+: broken gzip data"):
        list(jsonl.read(path))
    path.write_text(GOOD)
    with pytest.raises(SourceError, match=r"line 1: broken gzip data \(Not a gzipped file"):
        list(jsonl.read(path))


def test_a_byte_order_mark_blank_lines_and_nulls_do_not_matter(tmp_path):
    path = file_of(tmp_path, "\ufeff" + record(situation=None, source=None, emotion=None), "", "  ")
    (dialogue,) = jsonl.read(path)
    assert (dialogue.id, dialogue.situation, dialogue.source) == ("d1", None, "")


def test_half_a_surrogate_pair_becomes_a_replacement_character(tmp_path):
    report = Report()
    (dialogue,) = jsonl.read(file_of(tmp_path, GOOD.replace("Oh!", "Oh \\ud83d")), report=report)
    dialogue.turns[1].text.encode("utf-8")
    assert report.noted == {quality.GARBLED: 1}
    (whole,) = jsonl.read(file_of(tmp_path, GOOD.replace("Oh!", "Oh \\ud83d\\ude00")))
    assert whole.turns[1].text == "Oh 😀"


def test_dirt_is_noted_and_no_text_changed(tmp_path):
    spoken = [{"speaker": "speaker", "text": " 5 "}, {"speaker": "listener", "text": " 5 ", "label": "smug"}]
    path = file_of(
        tmp_path,
        json.dumps({"turns": spoken, "emotion": "bubbly"}),
        json.dumps({"id": "a", "turns": spoken}),
        json.dumps({"id": "a", "turns": [{"speaker": "speaker", "text": "Alone"}]}),
    )
    report = Report()
    first, *_ = jsonl.read(path, report=report)
    assert first.id == "my-1"
    assert first.turns[0].text == " 5 "
    assert report.noted == {
        quality.JUNK_TURN: 4,
        quality.REPEATED_TURN: 2,
        quality.UNKNOWN_LABEL: 2,
        quality.UNKNOWN_EMOTION: 1,
        quality.DUPLICATE: 1,
        quality.ONE_TURN: 1,
        jsonl.NO_ID: 1,
        jsonl.SAME_ID: 1,
    }
    assert (report.rows, report.dialogues, report.turns) == (3, 3, 5)


def test_a_split_is_told_by_the_record_or_else_by_the_file(tmp_path):
    mixed = file_of(tmp_path, record(id="a", split="train"), record(id="b", split="dev"))
    assert [dialogue.id for dialogue in jsonl.read(mixed, "valid")] == ["b"]
    file_of(tmp_path, record(id="c"), name="valid.jsonl")
    file_of(tmp_path, record(id="d"), name="test.jsonl")
    assert [(d.id, d.split) for d in jsonl.read(tmp_path, "valid")] == [("b", "dev"), ("c", "valid")]
    assert len(list(jsonl.read(tmp_path))) == 4


def test_a_split_that_nothing_tells_is_an_error_not_a_guess(tmp_path):
    with pytest.raises(
        SourceError, match=r"my\.jsonl line 1: no split where 'train' was requested, .*name the file train"
    ):
        list(jsonl.read(file_of(tmp_path, GOOD), "train"))
    with pytest.raises(SourceError, match="line 1: unknown split 'trian'; did you mean 'train'"):
        list(jsonl.read(file_of(tmp_path, record(split="trian")), "train"))


def test_a_missing_file_or_an_empty_folder_is_told_at_the_call(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        jsonl.read(tmp_path / "none.jsonl")
    with pytest.raises(FileNotFoundError, match=r"no \.jsonl or \.jsonl\.gz file"):
        jsonl.read(tmp_path)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = file_of(tmp_path, GOOD)

    def failing():
        yield Dialogue.from_texts(["Hello"])
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        jsonl.write(failing(), path)
    assert path.read_text() == GOOD + "\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_can_be_rewritten_from_its_own_reading(tmp_path):
    path = file_of(tmp_path, GOOD)
    assert jsonl.write(jsonl.read(path), path) == 1
    assert next(jsonl.read(path)).id == "d1"


def test_equal_dialogues_make_equal_compressed_bytes(tmp_path):
    for name in ("a.jsonl.gz", "deep/b.jsonl.gz"):
        jsonl.write([Dialogue.from_texts(["Hello", "Hi"])], tmp_path / name)
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "deep/b.jsonl.gz").read_bytes()


def test_emotions_and_labels_are_known_in_any_case_and_an_unknown_one_is_noted_with_the_near_name(tmp_path):
    labelled = {"speaker": "speaker", "text": "I passed!", "label": " Joyful"}
    lines = [record(emotion="Proud", turns=[labelled]), record(emotion="joyfull"), record(emotion="Xyz")]
    report = Report()
    first, second, third = jsonl.read(file_of(tmp_path, *lines), report=report)
    assert (first.emotion.name, first.turns[0].label.name) == ("proud", "joyful")
    assert (second.emotion.name, third.emotion.name) == ("joyfull", "Xyz")
    assert report.noted[quality.UNKNOWN_EMOTION] == 2
    assert [place.excerpt for place in report.places[quality.UNKNOWN_EMOTION]] == ["joyfull (joyful?)", "Xyz"]
