"""The plot of a run's learning curves."""

from listenwell.training import curves, run
from listenwell.training.display import read_journal


def test_a_run_ends_with_its_learning_curves(tiny_recipe, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(run, "draw", lambda folder: drawn.append(curves.draw(folder)))
    run.train(tiny_recipe(), tmp_path / "run", quiet=True)
    assert drawn == [tmp_path / "run" / "curves.png"]
    assert drawn[0].read_bytes().startswith(b"\x89PNG")


def test_without_a_record_there_is_nothing_to_draw(tmp_path):
    (tmp_path / "log.jsonl").touch()
    assert read_journal(tmp_path / "log.jsonl") == []
    assert curves.draw(tmp_path) is None
    assert not (tmp_path / "curves.png").exists()
