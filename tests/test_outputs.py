"""No command removes or overwrites what it did not write itself, and it says so before doing any work."""

from __future__ import annotations

import inspect
import io
import json
import os
import sys
from importlib import import_module
from pathlib import Path

import pytest

from listenwell import checkpoint, cli, outputs
from listenwell.checkpoint import Checkpoint
from listenwell.evaluation.partial import PartialResults
from listenwell.outputs import COMPARE, CONTROL, EVALUATE, VARIETY, OutputError


@pytest.fixture
def run(tiny_model, tokenizer, tmp_path, monkeypatch):
    """A run with a trained system, in a folder below the current one."""
    monkeypatch.chdir(tmp_path)
    checkpoint.save(Checkpoint("multi-trs", tiny_model(), tokenizer, meta={"seed": 1}), tmp_path / "run" / "best")
    return "run"


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def refused(*words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(words))
    return str(ended.value.code)


def written(folder: Path, *names: str, **scores: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(json.dumps(scores) if name.endswith(".json") else "text\n")
    return folder


def fill(place: Path) -> None:
    written(place, "scores.json", "replies.jsonl", command="variety", scores=[])


def test_an_evaluation_into_the_folder_of_a_run_leaves_the_run(run, tmp_path):
    before = tree(tmp_path)
    for command in ("evaluate", "variety", "control"):
        said = refused(command, run, "--data", "shipped", "--out", run)
        assert f"run holds what `listenwell {command}` did not write (best)" in said
        assert "--out, such as run-2" in said
    assert tree(tmp_path) == before


def test_every_command_spares_what_others_wrote_and_asks_first(run, tmp_path, monkeypatch):
    # Nothing is loaded: the refusal comes before any work.
    monkeypatch.setattr(checkpoint, "load", None)
    thesis = written(tmp_path / "thesis", "thesis.tex")
    for command in ("evaluate", "variety", "control", "compare"):
        assert "did not write (thesis.tex)" in refused(command, run, "--out", "thesis")
    for words in (["generate", run], ["data", "convert", "shipped"], ["data", "label", "shipped"]):
        assert "already exists and is not overwritten" in refused(*words, "--out", "thesis/thesis.tex")
        assert "is a folder, where a file is expected" in refused(*words, "--out", "thesis")
    select = ["data", "select", "shipped", "--most-emotional", "3", "--out"]
    assert "already exists" in refused(*select, "thesis/thesis.tex")
    assert refused("train", "tiny", "--out", "thesis").startswith("listenwell train: thesis holds what")
    (thesis / "figure.png").write_bytes(b"somebody's")
    assert "already exists" in refused("embeddings", run, "--out", "thesis/figure.png")
    assert "already exists" in refused("data", "stats", "shipped", "--plot", "thesis/figure.png")
    assert "ends in .png, .pdf, .svg" in refused("embeddings", run, "--out", "thesis/figure")
    assert sorted(path.name for path in thesis.iterdir()) == ["figure.png", "thesis.tex"]


def test_a_file_where_a_folder_is_expected_stays_a_file(run, tmp_path):
    (tmp_path / "notes").write_text("mine")
    for command in ("evaluate", "variety", "compare", "train"):
        words = ["tiny"] if command == "train" else [run]
        assert "notes is a file, where a folder is expected" in refused(command, *words, "--out", "notes/")
    assert (tmp_path / "notes").read_text() == "mine"


def test_a_recipe_that_lies_in_the_folder_of_the_run_is_not_written_over(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recipe = written(tmp_path / "mine") / "recipe.yaml"
    recipe.write_text("# my own\nname: mine\nmodel: {name: trs}\ndata: {source: shipped}\nstages: [{name: all}]\n")
    before = recipe.read_text()
    assert "did not write (recipe.yaml)" in refused("train", "mine/recipe.yaml", "--out", "mine")
    assert recipe.read_text() == before


def test_what_the_same_command_wrote_is_replaced(tmp_path):
    out = tmp_path / "out"
    for _ in range(2):
        outputs.write_folder(out, fill, VARIETY)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    with pytest.raises(OutputError, match="did not write"):
        outputs.check_folder(out, CONTROL)
    (out / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"did not write \(notes\.txt\)"):
        outputs.write_folder(out, fill, VARIETY)
    assert (out / "notes.txt").read_text() == "mine"


def test_an_empty_folder_is_used(tmp_path):
    (tmp_path / "out").mkdir()
    outputs.check_folder(tmp_path / "out", VARIETY)
    outputs.write_folder(tmp_path / "out", fill, VARIETY)
    assert outputs.command_of(tmp_path / "out" / "scores.json") == "variety"


def test_what_earlier_versions_wrote_is_known_by_its_files(tmp_path):
    about = {"system": "x", "about": {}, "scores": []}
    outputs.check_folder(written(tmp_path / "a", "scores.json", "items.json", "replies.jsonl", **about), EVALUATE)
    outputs.check_folder(written(tmp_path / "b", "scores.json", "heard.jsonl", "confusion.png", **about), EVALUATE)
    outputs.check_folder(written(tmp_path / "c", *STUDY, scores=[{"name": "different"}]), VARIETY)
    outputs.check_folder(written(tmp_path / "d", *STUDY, scores=[{"name": "control-mean"}]), CONTROL)
    table = {"title": "", "columns": [], "systems": [], "published": []}
    outputs.check_folder(written(tmp_path / "e", "compare.md", "compare.html", "compare.json", **table), COMPARE)
    for folder, owner in (("c", CONTROL), ("d", VARIETY), ("c", EVALUATE), ("a", VARIETY), ("a", COMPARE)):
        with pytest.raises(OutputError, match="did not write"):
            outputs.check_folder(tmp_path / folder, owner)
    with pytest.raises(OutputError, match="did not write"):
        outputs.check_folder(written(tmp_path / "mine", "scores.json", grades=[1, 2]), EVALUATE)


STUDY = ("scores.json", "replies.jsonl")


def test_a_link_stays_a_link_and_what_it_points_to_is_written(tmp_path):
    real, link = tmp_path / "disk" / "real", tmp_path / "link"
    real.mkdir(parents=True)
    link.symlink_to(real, target_is_directory=True)
    outputs.write_folder(link, fill, VARIETY)
    assert link.is_symlink()
    assert (real / "scores.json").is_file()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OutputError, match="loop"):
        outputs.check_folder(tmp_path / "loop", VARIETY)


def test_what_an_interrupted_run_left_goes_and_what_somebody_put_there_stays(tmp_path):
    written(tmp_path / ".out.writing", "scores.json")
    written(tmp_path / ".out.old", "scores.json", "mine.txt")
    written(tmp_path / "out", *STUDY, command="variety")
    outputs.write_folder(tmp_path / "out", fill, VARIETY)
    assert len(list(tmp_path.rglob("mine.txt"))) == 1
    assert not (tmp_path / ".out.writing").exists()
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(STUDY)


def test_a_checkpoint_that_is_written_anew_keeps_what_lies_beside_its_files(run, tmp_path):
    best = tmp_path / "run" / "best"
    written(best / "evaluation" / "test", "scores.json")
    (best / "notes.txt").write_text("mine")
    ckpt = checkpoint.load(best)
    checkpoint.save(ckpt, best)
    checkpoint.set_decoding(best, checkpoint.Decoding(max_length=7))
    checkpoint.save(ckpt, best, previous=best.with_name("previous"))
    assert (best / "notes.txt").read_text() == "mine"
    assert (best / "evaluation" / "test" / "scores.json").is_file()
    assert sorted(path.name for path in best.parent.iterdir()) == ["best", "previous"]


def test_replies_are_not_kept_where_somebody_has_files(tmp_path):
    written(tmp_path / ".out.begun", "mine.txt")
    with pytest.raises(OutputError, match="holds what no evaluation wrote"):
        PartialResults(tmp_path / ".out.begun", "this")
    assert (tmp_path / ".out.begun" / "mine.txt").is_file()


def test_a_place_that_cannot_be_written_to_is_found_before_the_work(run, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "load", None)

    def read_only(**options: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(outputs.tempfile, "mkdtemp", read_only)
    for command in ("evaluate", "variety", "compare", "generate", "embeddings"):
        said = refused(command, run, "--out", "locked/new.png")
        assert f"cannot write in {tmp_path} (Permission denied); name another place with --out" in said
        assert "Errno" not in said
    assert "cannot write in" in refused("train", "tiny", "--out", "locked/new")
    assert "cannot write in" in refused("calibrate", run)
    assert not (tmp_path / "locked").exists()


def test_a_folder_cannot_lie_in_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match="file is a file, not a folder"):
        outputs.check_folder(tmp_path / "file" / "out", EVALUATE)


def test_a_device_is_no_place_for_a_file():
    with pytest.raises(OutputError, match="is not a regular file"):
        outputs.check_file(Path(os.devnull))


def test_the_folder_that_one_is_in_is_not_taken_away(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match="the folder that you are in"):
        outputs.check_folder(Path(), EVALUATE)


@pytest.mark.parametrize("ending", [".png", ".pdf", ".svg"])
def test_a_picture_is_drawn_again_by_the_command_that_drew_it(ending, tmp_path):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    path = tmp_path / f"picture{ending}"
    outputs.save_picture(figure, path, "embeddings", dpi=50)
    outputs.check_picture(path, "embeddings")
    with pytest.raises(OutputError, match="already exists"):
        outputs.check_picture(path, "data", "--plot")


def numbers() -> list[tuple[str, str]]:
    """Every numeric option of every command."""
    actual = []
    for name, (place, _) in cli.COMMANDS.items():
        module, function = place.split(":")
        parameters = inspect.signature(getattr(import_module(module), function)).parameters.values()
        actual += [(name, p.name) for p in parameters if p.annotation.split(" |")[0] in ("int", "float")]
    return actual


@pytest.mark.parametrize(("command", "option"), numbers())
def test_a_number_below_zero_is_refused(command, option, run, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    known = {"data": ["stats", "shipped"], "train": ["tiny"], "chat": [], "study": ["create", "new"]}
    words = known.get(command, [run])
    if "data" in inspect.signature(getattr(import_module(f"listenwell.commands.{command}"), command)).parameters:
        words = [*words, "--data", "shipped"]
    said = refused(command, *words, f"--{option.replace('_', '-')}", "-3")
    assert "-3" in said
    assert option.replace("_", "-") in said
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "run" / "evaluation").exists()
