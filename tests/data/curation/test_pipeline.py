"""Raw files in, a corpus out: every record can be traced to its file, all drops are counted, nothing is fatal."""

import gzip
import json
import os
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from made_subtitles import lines, srt, write_subtitles
from standin_labels import WordLabelling

from listenwell.data import sources
from listenwell.data.curation import chunks, manifest, pipeline
from listenwell.data.curation.engines.local import LocalEngine
from listenwell.data.curation.inputs import Inputs
from listenwell.data.curation.pipeline import Curation, curate
from listenwell.data.sources import SourceError, jsonl
from listenwell.outputs import OutputError


def run(source: Path, out: Path, workers: int = 1, **options):
    engine = LocalEngine(workers)
    try:
        return curate(Curation(Inputs.named("subtitles", [source]), out, "en", **options), engine)
    finally:
        engine.close()


def read(out: Path):
    return list(manifest.read_curated(out))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A corpus curated from generated files, with labels; and its input."""
    root = tmp_path_factory.mktemp("curation")
    subtitles = write_subtitles(root / "subs", files=20)
    (subtitles / "film-1" / "broken.xml").write_bytes(b"<document><s id='1'>")
    content = run(subtitles, root / "out", labelling=WordLabelling(), most_emotional=10, shard_size=30)
    return root / "out", content, subtitles


def test_every_record_leads_back_to_its_file_and_cues(made):
    out, _, subtitles = made
    dialogues = read(out)
    assert dialogues
    for dialogue in dialogues:
        written = (subtitles.parent / dialogue.file).read_text(encoding="utf-8").split("\n\n")
        for turn in dialogue.turns:
            cues = " ".join(written[number - 1].split("\n", 2)[2].strip() for number in turn.cues)
            assert turn.text in cues
        assert dialogue.id == f"{dialogue.file}#{dialogue.turns[0].cues[0]}-{dialogue.turns[-1].cues[-1]}"


def test_what_goes_in_comes_out_or_is_counted_with_its_reason(made):
    _, content, _ = made
    for count in content["counts"].values():
        assert count["in"] == count["out"] + sum(count["dropped"].values())
    assert content["counts"]["files"]["in"] == 23
    assert sum(content["counts"]["files"]["dropped"].values()) == 2  # the empty one and the broken one
    assert content["counts"]["dialogues"]["dropped"] == {"duplicate": 5}  # of the copied file
    assert content["counts"]["dialogues"]["out"] == content["records"]["dialogues"] == 100


def test_files_that_cannot_be_read_are_reported_and_samples_kept(made):
    out, _, _ = made
    problems = [json.loads(line) for line in (out / "problems.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {problem["file"] for problem in problems} == {"subs/empty.srt", "subs/film-1/broken.xml"}
    assert all(problem["reason"] for problem in problems)
    samples = [json.loads(line) for line in (out / "dropped-samples.jsonl").read_text(encoding="utf-8").splitlines()]
    assert "dialogue: duplicate" in {sample["reason"] for sample in samples}


def test_duplicates_name_the_record_that_stays(made):
    out, _, _ = made
    matches = pq.read_table(out / "matches.parquet").to_pylist()
    assert len(matches) == 5
    kept = {dialogue.id for dialogue in read(out)}
    for match in matches:
        assert match["id"].startswith("subs/film-0/zz-copy.srt#")
        assert match["match"] in kept
        assert match["similarity"] == 1.0


def test_the_shards_have_the_size_asked_for_and_the_manifest_their_hash(made):
    out, content, _ = made
    assert [shard["dialogues"] for shard in content["shards"]] == [30, 30, 30, 10]
    assert sorted(path.name for path in (out / "dialogues").iterdir()) == [f"part-0000{n}.parquet" for n in range(4)]
    assert manifest.verify(out) == content["records"]["hash"]
    assert not (out / "work").exists()


def test_labels_emotionality_and_the_most_emotional(made):
    out, content, _ = made
    dialogues = read(out)
    chosen = [dialogue for dialogue in dialogues if dialogue.selected]
    assert len(chosen) == content["records"]["selected"] == 10
    least = min(dialogue.emotionality for dialogue in chosen)
    assert all(dialogue.emotionality <= least for dialogue in dialogues if not dialogue.selected)
    assert all(turn.label and turn.confidence is not None for dialogue in dialogues for turn in dialogue.turns)


def test_a_changed_record_is_noticed(made, tmp_path):
    out, _, _ = made
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "manifest.json").write_bytes((out / "manifest.json").read_bytes())
    (copy / "dialogues").mkdir()
    for shard in (out / "dialogues").iterdir():
        table = pq.read_table(shard)
        pq.write_table(table.slice(0, table.num_rows - 1), copy / "dialogues" / shard.name)
    with pytest.raises(SourceError, match="the manifest says"):
        manifest.verify(copy)


def test_the_corpus_is_a_source_by_its_path(made, monkeypatch):
    out, _, _ = made
    dialogues = list(sources.read(str(out)))
    assert len(dialogues) == 100
    assert [turn.speaker for turn in dialogues[0].turns] == ["speaker", "listener", "speaker", "listener"]
    assert dialogues[0].turns[0].label.by == "machine"
    assert dialogues == list(sources.read(f"curated:{out}")) == list(sources.read("curated", out))
    assert len(list(sources.read(str(out), part="emotional"))) == 10
    by_split = [len(list(sources.read(str(out), split=split))) for split in ("train", "valid", "test")]
    assert sum(by_split) == 100
    assert by_split[0] > 50
    assert len({(dialogue.id.partition("#")[0], dialogue.split) for dialogue in dialogues}) == 20
    assert len(sources.data_files(str(out))) == 4


def test_an_unfinished_folder_is_no_source(tmp_path):
    (tmp_path / "out" / "work").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="run the same curation again"):
        sources.read("curated", tmp_path / "out")


def test_workers_shards_and_the_place_of_the_input_change_nothing(made, tmp_path):
    _, content, subtitles = made
    options = {"labelling": WordLabelling(), "most_emotional": 10}
    two = run(subtitles, tmp_path / "two", workers=2, shard_size=7, **options)
    assert two["records"]["hash"] == content["records"]["hash"]
    os.makedirs(tmp_path / "elsewhere")
    os.rename(subtitles, moved := tmp_path / "elsewhere" / "subs")
    try:
        assert run(moved, tmp_path / "three", **options)["records"]["hash"] == content["records"]["hash"]
    finally:
        os.rename(moved, subtitles)


def test_the_order_of_the_inputs_changes_nothing(tmp_path):
    subtitles = write_subtitles(tmp_path / "subs", files=6)
    folders = [subtitles / f"film-{number}" for number in range(3)]
    hashes = set()
    for number, given in enumerate((folders, folders[::-1])):
        curation = Curation(Inputs.named("subtitles", given), tmp_path / f"out-{number}", "en")
        hashes.add(curate(curation, LocalEngine(1))["records"]["hash"])
    assert len(hashes) == 1


def test_what_stands_in_the_held_out_split_is_left_out_and_the_match_named(tmp_path):
    rng = random.Random(4)
    kept, leaked, near = lines(rng), lines(rng), lines(rng)
    held_out = tmp_path / "held.jsonl"
    turns = [{"speaker": "speaker", "text": leaked[1].upper()}, {"speaker": "listener", "text": "Oh."}]
    words = near[3].split()
    almost = [{"speaker": "speaker", "text": " ".join([*words, "today"])}]
    records = [{"id": "ed1", "split": "test", "turns": turns}, {"id": "ed2", "split": "test", "turns": almost}]
    held_out.write_text("".join(json.dumps(record) + "\n" for record in records))
    (tmp_path / "subs").mkdir()
    (tmp_path / "subs" / "a.srt").write_text(srt([kept, leaked, near]))
    content = run(tmp_path / "subs", tmp_path / "out", held_out=str(held_out))
    assert content["counts"]["dialogues"] == {"in": 3, "out": 1, "dropped": {"stands in the held-out test split": 2}}
    assert content["held_out"]["texts"] == 3
    first, second = pq.read_table(tmp_path / "out" / "matches.parquet").to_pylist()
    assert (first["match"], first["turn"], first["similarity"]) == ("ed1#0", 1, 1.0)
    assert (second["match"], second["turn"]) == ("ed2#0", 3)
    assert 0.8 <= second["similarity"] < 1


def test_packed_files_are_read_and_broken_ones_reported(tmp_path):
    folder = tmp_path / "subs"
    folder.mkdir()
    text = srt([lines(random.Random(1))]).encode()
    (folder / "good.srt.gz").write_bytes(gzip.compress(text))
    (folder / "cut.srt.gz").write_bytes(gzip.compress(text)[:-20])
    (folder / "none.srt.gz").write_bytes(b"no gzip at all")
    content = run(folder, tmp_path / "out")
    assert content["counts"]["files"]["out"] == 1
    assert content["counts"]["files"]["dropped"] == {"cannot be opened": 2}
    assert content["records"]["dialogues"] == 1


def test_the_same_command_again_does_nothing_and_another_does_it_anew(tmp_path, monkeypatch):
    subtitles = write_subtitles(tmp_path / "subs", files=3)
    first = run(subtitles, tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "extract_chunk", None)
        assert run(subtitles, tmp_path / "out") == first
    (subtitles / "film-1" / "new.srt").write_text(srt([lines(random.Random(99))]))
    second = run(subtitles, tmp_path / "out", shard_size=4)
    assert second["records"]["dialogues"] == first["records"]["dialogues"] + 1
    assert len(list((tmp_path / "out" / "dialogues").iterdir())) == 4


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    subtitles = write_subtitles(tmp_path / "subs", files=1)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"did not write \(thesis.txt\)"):
        run(subtitles, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_two_runs_do_not_write_one_folder(tmp_path):
    subtitles = write_subtitles(tmp_path / "subs", files=1)
    work = tmp_path / "out" / "work"
    work.mkdir(parents=True)
    (work / "run.json").write_text('{"command": "curate"}')
    with (
        pipeline._alone(work, tmp_path / "out"),
        pytest.raises(OutputError, match="is being written by another run"),
    ):
        run(subtitles, tmp_path / "out")


def test_nothing_to_read_is_said(tmp_path):
    (tmp_path / "subs").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no subtitles in .*subs"):
        run(tmp_path / "subs", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_that_breaks_a_parser_is_reported_by_name(tmp_path, monkeypatch):
    subtitles = write_subtitles(tmp_path / "subs", files=2)

    def broken(path, data=None):
        raise KeyError("surprise")

    monkeypatch.setattr("listenwell.data.curation.extraction.read_cues", broken)
    content = run(subtitles, tmp_path / "out")
    assert content["counts"]["files"]["dropped"] == {"could not be parsed": 4}
    assert "KeyError: 'surprise'" in (tmp_path / "out" / "problems.jsonl").read_text()


def test_a_corpus_with_nothing_left_can_still_be_read(tmp_path):
    folder = tmp_path / "subs"
    folder.mkdir()
    (folder / "one.srt").write_text(srt([["Hi."]]))
    content = run(folder, tmp_path / "out")
    assert content["records"]["dialogues"] == 0
    assert list(sources.read(str(tmp_path / "out"))) == []


def test_converting_the_corpus_keeps_it(made, tmp_path):
    out, _, _ = made
    jsonl.write(sources.read(str(out)), tmp_path / "all.jsonl")
    assert list(jsonl.read(tmp_path / "all.jsonl")) == list(sources.read(str(out)))


def test_other_settings_do_not_use_what_others_made(tmp_path, monkeypatch):
    subtitles = write_subtitles(tmp_path / "subs", files=1)
    keys = set()

    def remembered(job):
        result = chunks.extract_chunk(job)
        keys.add(result["key"])
        return result

    monkeypatch.setattr(pipeline, "extract_chunk", remembered)
    for language in ("en", "fr"):
        curate(Curation(Inputs.named("subtitles", [subtitles]), tmp_path / language, language), LocalEngine(1))
    assert len(keys) == 2


@pytest.mark.data
def test_real_subtitles_of_one_season_become_dialogues(tmp_path):
    root = next((root for root in sources.data_roots() if (root / "subtitles" / "friends").is_dir()), None)
    if root is None:
        pytest.skip("the real subtitles are not on this machine")
    season = sorted((root / "subtitles" / "friends").glob("Friends.S01*"))
    inputs = Inputs.named("subtitles", season)
    content = curate(Curation(inputs, tmp_path / "out", "en"), LocalEngine(1))
    assert content["counts"]["files"]["in"] == len(season) > 20
    assert not content["counts"]["files"]["dropped"]
    assert content["records"]["dialogues"] > 300
    assert manifest.verify(tmp_path / "out") == content["records"]["hash"]


def test_without_pyarrow_the_way_out_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("listenwell.data.curation.records.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'listenwell\[curate\]'"):
        run(write_subtitles(tmp_path / "subs", files=1), tmp_path / "out")
