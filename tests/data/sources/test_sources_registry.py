import hashlib
import os
import subprocess
import sys
from importlib import import_module

import pytest

from listenwell.data import sources
from listenwell.data.dialogue import Dialogue
from listenwell.data.sources import jsonl


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """A data root with a small corpus, and a working directory from which none can be found by chance."""
    folder = tmp_path / "root" / "empatheticdialogues"
    folder.mkdir(parents=True)
    header = "conv_id,utterance_idx,context,prompt,role,utterance,eri_label,prompt_eri_label"
    for split in ("train", "test"):
        rows = [f"{split},1,sad,s,speaker,Hello {split},sad,sad", f"{split},2,sad,s,listener,Hi,neutral,sad"]
        (folder / f"{split}.csv").write_text("\n".join([header, *rows]))
    elsewhere = tmp_path / "elsewhere" / "work"
    elsewhere.mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    monkeypatch.delenv("LISTENWELL_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "none"))
    return folder


@pytest.mark.parametrize("name", ["empathetic-dialogues", "empathetic_dialogues", "Empathetic_Dialogues"])
def test_a_source_is_read_by_name_from_where_the_variable_points(corpus, monkeypatch, name):
    monkeypatch.setenv("LISTENWELL_DATA", str(corpus.parent))
    assert [dialogue.id for dialogue in sources.read(name, split="test")] == ["test"]
    monkeypatch.setenv("LISTENWELL_DATA", str(corpus))
    assert sources.find_data(name) == corpus


def test_a_path_given_wins_over_the_variable(corpus, monkeypatch, tmp_path):
    monkeypatch.setenv("LISTENWELL_DATA", str(tmp_path))
    assert sources.find_data("empathetic-dialogues", corpus) == corpus
    report = sources.Report()
    assert len(list(sources.read("empathetic-dialogues", corpus / "train.csv", report=report, clean=True))) == 1
    assert report.dialogues == 1
    with pytest.raises(FileNotFoundError, match="gone is not there"):
        sources.read("empathetic-dialogues", corpus / "gone")


def test_data_are_not_looked_for_beside_the_working_directory(corpus, tmp_path):
    """What is read must not depend on the current directory."""
    shared = tmp_path / "elsewhere" / "shared"
    shared.mkdir()
    (shared / "data").symlink_to(corpus.parent)
    with pytest.raises(FileNotFoundError, match=r"looked for \S+/none/listenwell/empatheticdialogues"):
        sources.find_data("empathetic-dialogues")


def test_data_that_are_nowhere_come_with_the_way_to_get_them(corpus):
    with pytest.raises(FileNotFoundError) as caught:
        sources.read("empathetic-dialogues")
    message = str(caught.value)
    assert "empathetic-dialogues not found; looked for" in message
    assert "Set LISTENWELL_DATA to the folder that holds empatheticdialogues/" in message
    assert "https://" in message


def test_a_variable_that_points_wrong_is_not_passed_over(corpus, monkeypatch, tmp_path):
    (corpus.parent.parent / "elsewhere" / "shared").mkdir()
    (corpus.parent.parent / "elsewhere" / "shared" / "data").symlink_to(corpus.parent)
    monkeypatch.setenv("LISTENWELL_DATA", str(tmp_path / "typo"))
    with pytest.raises(FileNotFoundError, match="typo"):
        sources.find_data("empathetic-dialogues")


def test_a_mistyped_name_gets_the_near_one():
    with pytest.raises(ValueError, match="unknown source 'empathetic_dialoges'; did you mean 'empathetic-dialogues'"):
        sources.read("empathetic_dialoges")
    with pytest.raises(ValueError, match=r"known: empathetic-dialogues, shipped, jsonl.*ends in \.jsonl"):
        sources.read("zzz")


@pytest.mark.parametrize("ending", jsonl.ENDINGS)
def test_a_jsonl_path_is_a_source_by_itself(tmp_path, ending):
    path = tmp_path / f"mine{ending}"
    jsonl.write([Dialogue.from_texts(["Hello", "Hi"])], path)
    assert len(list(sources.read(str(path)))) == 1
    assert len(list(sources.read("jsonl", path))) == 1
    assert sources.data_files(str(path)) == [path]
    with pytest.raises(ValueError, match=r"jsonl has no folder; give the path of a \.jsonl file"):
        sources.read("jsonl")


def test_several_sources_are_read_as_one(corpus, monkeypatch, tmp_path):
    monkeypatch.setenv("LISTENWELL_DATA", str(corpus.parent))
    ids = [dialogue.id for dialogue in sources.read("Empathetic_dialogues+shipped", split="test")]
    assert ids[0] == "Empathetic_dialogues/test"
    assert all(id.startswith("shipped/lw-en-") for id in ids[1:])
    each = [sources.data_files(name, None, "test") for name in ("empathetic-dialogues", "shipped")]
    assert sources.data_files("empathetic-dialogues+shipped", None, "test") == [*each[0], *each[1]]
    assert sources.source_name("Empathetic_dialogues+shipped") == "empathetic-dialogues+shipped"
    with pytest.raises(ValueError, match="unknown source 'shiped'; did you mean 'shipped'"):
        sources.read("shipped+shiped")
    with pytest.raises(ValueError, match="are several sources in different places; leave the path"):
        sources.read("empathetic-dialogues+shipped", corpus)
    path = tmp_path / "mine+yours.jsonl"
    jsonl.write([Dialogue.from_texts(["Hello", "Hi"])], path)
    assert len(list(sources.read(str(path)))) == 1


def test_the_shipped_corpus_needs_no_path():
    assert next(sources.read("shipped", split="train", language="en")).language == "en"
    with pytest.raises(ValueError, match="takes no path"):
        sources.read("shipped", "somewhere")
    with pytest.raises(ValueError, match="read it with its name alone"):
        sources.find_data("shipped")


def test_the_hash_is_the_sha256_of_the_bytes_in_order(corpus):
    files = sources.data_files("empathetic-dialogues", corpus)
    assert [file.name for file in files] == ["train.csv", "test.csv"]
    whole = b"".join(file.read_bytes() for file in files)
    assert sources.data_hash(files) == hashlib.sha256(whole).hexdigest()[:16]
    assert sources.data_hash(files[::-1]) != sources.data_hash(files)
    assert sources.data_hash(str(files[0])) == sources.data_hash(files[0]) == sources.data_hash([files[0]])
    assert len(sources.data_hash(sources.data_files("shipped"))) == 16


def test_importing_the_registry_imports_no_source():
    code = "import sys, listenwell.data.sources as s; print([m for m in s.SOURCES.values() if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "[]"


def test_every_registered_source_can_be_imported():
    for name, module in sources.SOURCES.items():
        assert name == import_module(module).NAME


def test_a_name_may_carry_its_split(corpus, monkeypatch, tmp_path):
    monkeypatch.setenv("LISTENWELL_DATA", str(corpus.parent))
    ids = [dialogue.id for dialogue in sources.read("empathetic-dialogues@test+shipped", split="train")]
    assert ids[0] == "empathetic-dialogues@test/test"
    assert all(id.startswith("shipped/lw-en-") for id in ids[1:])
    assert [file.name for file in sources.data_files("empathetic-dialogues@test", split="train")] == ["test.csv"]
    assert sources.source_name("Empathetic_dialogues@test") == "empathetic-dialogues"
    path = tmp_path / "mine@test.jsonl"
    jsonl.write([Dialogue.from_texts(["Hello", "Hi"])], path)
    assert len(list(sources.read(str(path)))) == 1
