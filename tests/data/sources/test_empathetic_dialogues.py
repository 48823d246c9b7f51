"""Small files in both layouts, with every peculiarity of the data; and the golden counts of the real files."""

import csv
from dataclasses import replace

import pytest

from listenwell.data.dialogue import Label, Turn
from listenwell.data.sources import empathetic_dialogues as ed
from listenwell.data.sources import find_data, quality
from listenwell.data.sources.report import Report, SourceError
from listenwell.data.sources.statistics import describe

SITUATION = "I passed, at last"


def write_labelled(path, rows):
    """Write rows of (conv_id, index, role, text, label) with the other columns filled in, with real CSV quoting."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(ed.LABELLED.columns)
        for conversation, index, role, text, *label in rows:
            writer.writerow([conversation, index, "joyful", SITUATION, role, text, *(label or ["neutral"]), "joyful"])
    return path


def write_official(path, rows):
    """Write rows of (conv_id, index, worker, text) in Facebook's format: joined by commas, nothing quoted."""
    lines = [",".join(ed.OFFICIAL.columns)]
    for conversation, index, worker, text, *rest in rows:
        fields = [conversation, str(index), "joyful", SITUATION.replace(",", "_comma_"), str(worker), text]
        lines.append(",".join([*fields, *(rest or ["5|5|5_4|4|5", ""])]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def conversation(name, *texts):
    return [(name, n, ("listener", "speaker")[n % 2], text) for n, text in enumerate(texts, start=1)]


def as_official(rows):
    workers = {"speaker": 17, "listener": 4}
    return [(name, n, workers[role], text.replace(",", "_comma_")) for name, n, role, text in rows]


@pytest.fixture(params=["labelled", "official"])
def make(request, tmp_path):
    """Read rows of (conv_id, index, role, text) from a file in one of the layouts."""

    def read(rows, **options):
        report = Report()
        if request.param == "labelled":
            path = write_labelled(tmp_path / "train.csv", rows)
        else:
            path = write_official(tmp_path / "train.csv", as_official(rows))
        return list(ed.read(path, report=report, **options)), report

    return read


def texts(dialogue):
    return [turn.text for turn in dialogue.turns]


def test_a_clean_conversation_comes_whole(make):
    (dialogue,), report = make(conversation("hit:0_conv:1", "I passed, mum!", 'You "did" it!', "Yes."))
    assert dialogue.id == "hit:0_conv:1"
    assert texts(dialogue) == ["I passed, mum!", 'You "did" it!', "Yes."]
    assert [turn.speaker for turn in dialogue.turns] == ["speaker", "listener", "speaker"]
    assert dialogue.emotion == Label("joyful", "gold")
    assert (dialogue.situation, dialogue.source, dialogue.split) == (SITUATION, "empathetic-dialogues", "train")
    assert (report.rows, report.conversations, report.dialogues, report.turns) == (3, 1, 1, 3)
    assert not report.dropped
    assert not report.noted


def test_junk_turns_are_noted_and_kept(make):
    (dialogue,), report = make(conversation("c", "Hello", "5", "What?", ":)", "😊"))
    assert len(dialogue.turns) == 5
    assert report.noted == {quality.JUNK_TURN: 2}
    assert str(report.places[quality.JUNK_TURN][0]) == "train.csv:3 '5'"


def test_clean_cuts_a_conversation_at_its_junk_turn(make):
    rows = conversation("a", "Hello", "Hi", "5", "What?", "6") + conversation("b", "Hello", "5", "What?")
    (dialogue,), report = make(rows, clean=True)
    assert texts(dialogue) == ["Hello", "Hi"]
    assert report.dropped == {quality.JUNK_TURN: 2, ed.CUT: 3, ed.TOO_SHORT: 1}


def test_a_turn_that_repeats_the_one_before_is_noted_and_kept(make):
    (dialogue,), report = make(conversation("c", "hi", "hi", "Well?"))
    assert texts(dialogue) == ["hi", "hi", "Well?"]
    assert report.noted == {quality.REPEATED_TURN: 1}


def test_stray_spaces_are_removed_and_noted(make):
    (dialogue,), report = make(conversation("c", "  I passed.  Really. ", "Good\u00a0for you"))
    assert texts(dialogue) == ["I passed. Really.", "Good for you"]
    assert report.noted == {ed.STRAY_SPACES: 2}


def test_duplicate_dialogues_are_noted_and_only_clean_drops_them(make):
    rows = conversation("a", "Hello", "Hi") + conversation("b", "Hello", "Hi")
    dialogues, report = make(rows)
    assert [dialogue.id for dialogue in dialogues] == ["a", "b"]
    assert report.noted == {quality.DUPLICATE: 1}
    dialogues, report = make(rows, clean=True)
    assert [dialogue.id for dialogue in dialogues] == ["a"]
    assert report.dropped == {quality.DUPLICATE: 1}


def test_garbled_characters_are_noted_and_kept(make):
    (dialogue,), report = make(conversation("c", "Itâ€™s fine", "a lost \ufffd one", "déjà vu, Â\u00a0or not"))
    assert len(dialogue.turns) == 3
    assert report.noted[quality.GARBLED] == 2  # the no-break space is collapsed before it could tell


def test_empty_turns_and_one_turn_conversations_are_dropped(make):
    rows = conversation("a", "Alone") + conversation("b", "Hello", "  ") + conversation("c", "Hello", "Hi")
    dialogues, report = make(rows)
    assert [dialogue.id for dialogue in dialogues] == ["c"]
    assert report.dropped == {quality.ONE_TURN: 1, ed.EMPTY_TURN: 1, ed.TOO_SHORT: 1}
    assert report.conversations == 3


def test_same_role_twice_is_joined_so_that_roles_alternate(make):
    rows = [("c", 1, "speaker", "One."), ("c", 2, "listener", "Two."), ("c", 3, "listener", "Three.")]
    rows += [("c", 4, "speaker", "Four."), ("c", 5, "listener", "Five."), ("c", 6, "listener", "Five.")]
    (dialogue,), report = make(rows)
    assert texts(dialogue) == ["One.", "Two. Three.", "Four.", "Five."]
    assert [turn.speaker for turn in dialogue.turns] == ["speaker", "listener"] * 2
    assert report.noted == {ed.SAME_ROLE: 2, quality.REPEATED_TURN: 1}


def test_turns_out_of_order_are_sorted_and_noted(make):
    rows = conversation("c", "One", "Two", "Three")
    (dialogue,), report = make([rows[1], rows[0], rows[2]])
    assert texts(dialogue) == ["One", "Two", "Three"]
    assert report.noted == {ed.OUT_OF_ORDER: 1}


def test_a_conversation_that_comes_back_is_noted_and_keeps_ids_apart(make):
    rows = conversation("a", "One", "Two") + conversation("b", "Three", "Four") + conversation("a", "Five", "Six")
    dialogues, report = make(rows)
    assert [dialogue.id for dialogue in dialogues] == ["a", "b", "a~2"]
    assert report.noted == {ed.COMES_BACK: 1}


def test_an_unknown_or_changing_emotion_is_noted_and_the_first_kept(tmp_path):
    path = write_labelled(tmp_path / "train.csv", conversation("a", "One", "Two") + conversation("b", "Three", "Four"))
    path.write_text(path.read_text().replace("joyful", "bubbly", 1).replace("b,1,joyful", "b,1,"))
    report = Report()
    first, second = ed.read(path, report=report)
    assert first.emotion == Label("bubbly")
    assert second.emotion is None
    assert report.noted == {quality.UNKNOWN_EMOTION: 1, ed.MIXED_EMOTION: 2, ed.NO_EMOTION: 1}


def test_eri_labels_are_machine_labels_and_a_blank_one_is_none(tmp_path):
    rows = [("c", 1, "speaker", "One", "joyful"), ("c", 2, "listener", "Two", ""), ("c", 3, "speaker", "3rd", "glad")]
    report = Report()
    (dialogue,) = ed.read(write_labelled(tmp_path / "valid.csv", rows), report=report)
    assert dialogue.turns == (
        Turn("speaker", "One", Label("joyful", "machine")),
        Turn("listener", "Two"),
        Turn("speaker", "3rd", Label("glad", "machine")),
    )
    assert report.noted == {ed.NO_LABEL: 1, quality.UNKNOWN_LABEL: 1}


def test_joined_turns_keep_a_label_only_if_both_have_it(tmp_path):
    rows = [("c", 1, "speaker", "a", "sad"), ("c", 2, "speaker", "b", "sad")]
    rows += [("c", 3, "listener", "c", "wishing"), ("c", 4, "listener", "d", "neutral")]
    (dialogue,) = ed.read(write_labelled(tmp_path / "train.csv", rows))
    assert [turn.label for turn in dialogue.turns] == [Label("sad", "machine"), None]


def test_official_quotes_are_plain_characters(tmp_path):
    rows = [("c", 1, 7, '"I said no'), ("c", 2, 8, "What then?"), ("c", 3, 7, 'He "left"')]
    (dialogue,) = ed.read(write_official(tmp_path / "train.csv", rows))
    assert texts(dialogue) == ['"I said no', "What then?", 'He "left"']


def test_official_ninth_field_of_candidates_is_no_error_but_a_bare_comma_is(tmp_path):
    rows = [("c", 1, 7, "One", "5|5|5", "", "No way|Oh_comma_ well"), ("c", 2, 8, "Two", "5|5|5", "", "")]
    rows += [("c", 3, 7, "Well", " that is it", "5|5|5", "")]
    report = Report()
    (dialogue,) = ed.read(write_official(tmp_path / "test.csv", rows), report=report, strict=False)
    assert texts(dialogue) == ["One", "Two"]
    assert report.dropped == {ed.WRONG_COLUMNS: 1}


def test_official_workers_decide_who_is_who_even_if_the_first_row_is_lost(tmp_path):
    (dialogue,) = ed.read(
        write_official(tmp_path / "a.csv", [("c", 2, 8, "Two"), ("c", 3, 7, "Three"), ("c", 4, 8, "4th")])
    )
    assert [turn.speaker for turn in dialogue.turns] == ["listener", "speaker", "listener"]
    assert dialogue.split is None


def test_official_roles_go_by_turn_number_when_one_worker_played_both(tmp_path):
    report = Report()
    path = write_official(tmp_path / "a.csv", [("c", 0, 7, "One"), ("c", 1, 7, "Two")])
    (dialogue,) = ed.read(path, report=report)
    assert [turn.speaker for turn in dialogue.turns] == ["speaker", "listener"]
    assert report.noted == {ed.ODD_WORKERS: 1}


def test_few_wrong_rows_are_counted_and_many_are_an_error(tmp_path):
    good = [row for n in range(60) for row in as_official(conversation(f"c{n}", f"Hello {n}", "Hi"))]
    bad = ("c9", 3, 17, "short", "5|5|5")
    report = Report()
    assert len(list(ed.read(write_official(tmp_path / "train.csv", [*good, bad]), report=report))) == 60
    assert report.dropped == {ed.WRONG_COLUMNS: 1}
    assert report.rows == 121
    path = write_official(tmp_path / "train.csv", [*good, bad, bad])
    with pytest.raises(SourceError) as caught:
        list(ed.read(path))
    assert str(caught.value) == (
        "train.csv line 122: 7 columns, expected 8 (conv_id, utterance_idx, context, prompt, speaker_idx, utterance, "
        "selfeval, tags); 2 of 122 rows are malformed: repair the file, or read it with strict=False to drop them"
    )
    assert len(list(ed.read(path, strict=False))) == 60


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("c,1,joyful,s,speaker,hi,neutral", "train.csv line 2: 7 columns, expected 8 (conv_id,"),
        ("c,one,joyful,s,speaker,hi,neutral,sad", "train.csv line 2: utterance_idx 'one', expected a number"),
        ("c,1,joyful,s,bot,hi,neutral,sad", "train.csv line 2: role 'bot', expected 'speaker' or 'listener'"),
        (",1,joyful,s,speaker,hi,neutral,sad", "train.csv line 2: a blank conv_id, expected a name"),
    ],
)
def test_a_malformed_row_is_named(tmp_path, row, message):
    path = tmp_path / "train.csv"
    path.write_text(f"{','.join(ed.LABELLED.columns)}\n{row}\n")
    with pytest.raises(SourceError) as caught:
        list(ed.read(path))
    assert str(caught.value).startswith(message)


def test_lines_swallowed_by_a_stray_quote_are_all_counted(tmp_path):
    path = write_labelled(tmp_path / "train.csv", conversation("a", "One", "Two"))
    with path.open("a") as stream:
        stream.write('b,1,joyful,s,speaker,"oops,neutral,sad\n' + "b,2,joyful,s,listener,x,neutral,sad\n" * 3)
    report = Report()
    assert len(list(ed.read(path, report=report, strict=False))) == 1
    assert report.dropped == {ed.WRONG_COLUMNS: 4}
    assert report.rows == 6


def test_a_quote_that_never_ends_is_an_error_that_names_its_line(tmp_path):
    path = write_labelled(tmp_path / "train.csv", conversation("a", "One", "Two"))
    with path.open("a") as stream:
        stream.write('b,1,joyful,s,speaker,"oops,neutral,sad\n' + "x" * 200_000)
    with pytest.raises(SourceError, match=r"^train\.csv line 4: .*expected CSV with balanced quotes; repair"):
        list(ed.read(path, strict=False))


def test_a_line_break_inside_a_quoted_text_is_noted(tmp_path):
    report = Report()
    (dialogue,) = ed.read(write_labelled(tmp_path / "train.csv", conversation("a", "One\nmore", "Two")), report=report)
    assert texts(dialogue) == ["One more", "Two"]
    assert report.noted == {ed.LINE_BREAK: 1, ed.STRAY_SPACES: 1}


@pytest.mark.parametrize("write", [write_labelled, lambda path, rows: write_official(path, as_official(rows))])
def test_undecodable_bytes_are_replaced_and_noted_once_a_row(tmp_path, write):
    path = write(tmp_path / "train.csv", conversation("a", "The cafe", "Two", "Three"))
    path.write_bytes(path.read_bytes().replace(b"cafe", b"caf\xe9"))
    report = Report()
    (dialogue,) = ed.read(path, report=report)
    assert texts(dialogue)[0] == "The caf\ufffd"
    assert report.noted == {ed.BAD_ENCODING: 1, quality.GARBLED: 1}


def test_a_byte_order_mark_blank_lines_and_windows_line_ends_do_not_matter(tmp_path):
    path = write_official(tmp_path / "train.csv", as_official(conversation("a", "One", "Two")))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n") + b"\r\n\r\n")
    report = Report()
    (dialogue,) = ed.read(path, report=report)
    assert texts(dialogue) == ["One", "Two"]
    assert report.rows == 2


@pytest.mark.parametrize(("header", "described"), [("a,b,c\n", "the header 'a, b, c'"), ("", "no header")])
def test_an_unknown_header_is_named(tmp_path, header, described):
    path = tmp_path / "train.csv"
    path.write_text(header)
    with pytest.raises(SourceError) as caught:
        list(ed.read(path))
    assert str(caught.value).startswith(f"train.csv line 1: {described}, expected conv_id, utterance_idx")


def test_the_reader_streams_and_meets_a_damaged_end_only_there(tmp_path):
    path = write_labelled(tmp_path / "train.csv", conversation("a", "One", "Two") + conversation("b", "Three", "Four"))
    with path.open("a") as stream:
        stream.write("b,3,joyful\n")
    dialogues = ed.read(path)
    assert next(dialogues).id == "a"
    with pytest.raises(SourceError, match="line 6: 3 columns"):
        next(dialogues)


def test_a_folder_gives_all_splits_or_the_one_asked_for(tmp_path):
    folder = tmp_path / "empatheticdialogues"
    folder.mkdir()
    for split in ("test", "train", "valid"):
        write_labelled(folder / f"{split}.csv", conversation(split, "One", split))
    assert [(d.id, d.split) for d in ed.read(folder)] == [(s, s) for s in ("train", "valid", "test")]
    assert [d.split for d in ed.read(folder, "validation")] == ["valid"]
    assert len(list(ed.read(tmp_path))) == 3  # the folder where the archive was unpacked
    with pytest.raises(ValueError, match="unknown split 'tset'; did you mean 'test'"):
        ed.read(folder, "tset")
    (folder / "test.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"test\.csv is not there, found train\.csv, valid\.csv; the published"):
        ed.read(folder, "test")


def test_a_wrong_path_is_told_at_the_call(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        ed.read(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"none of train\.csv, valid\.csv, test\.csv is there, found nothing"):
        ed.read(tmp_path)


# The real files must give the published item counts.


@pytest.fixture(scope="module")
def real():
    try:
        return find_data("empathetic-dialogues")
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")


@pytest.mark.data
@pytest.mark.parametrize(
    ("split", "conversations", "rows", "replies", "one_turn", "junk"),
    [
        ("train", 19_533, 84_169, 40_254, 2, 82),
        ("valid", 2_769, 12_074, 5_736, 1, 8),
        ("test", 2_546, 10_969, 5_257, 0, 15),
    ],
)
def test_the_real_files_give_the_published_counts(real, split, conversations, rows, replies, one_turn, junk):
    report = Report()
    statistics = describe(ed.read(real, split, report=report), report)
    assert (report.conversations, report.rows, statistics.replies) == (conversations, rows, replies)
    assert (report.dialogues, report.turns) == (conversations - one_turn, rows - one_turn)
    assert report.dropped == ({quality.ONE_TURN: one_turn} if one_turn else {})
    assert report.noted[quality.JUNK_TURN] == junk
    assert report.noted[ed.NO_LABEL] == (4 if split == "train" else 0)
    assert set(report.noted) <= {quality.JUNK_TURN, quality.REPEATED_TURN, ed.STRAY_SPACES, ed.NO_LABEL}
    assert len(statistics.emotions) == 32
    assert statistics.duplicates == 0


@pytest.mark.data
def test_both_layouts_of_the_real_test_split_give_the_same_dialogues(real, tmp_path):
    with (real / "test.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    official = [",".join(ed.OFFICIAL.columns)]
    for row in rows:
        shared = [row[name].replace(",", "_comma_") for name in ("conv_id", "utterance_idx", "context", "prompt")]
        worker = "31" if row["role"] == "speaker" else "8"
        official.append(",".join([*shared, worker, row["utterance"].replace(",", "_comma_"), "5|5|5_5|5|5", ""]))
    (tmp_path / "test.csv").write_text("\n".join(official), encoding="utf-8")
    unlabelled = [
        replace(dialogue, turns=tuple(replace(turn, label=None) for turn in dialogue.turns))
        for dialogue in ed.read(real, "test")
    ]
    assert list(ed.read(tmp_path, "test")) == unlabelled
