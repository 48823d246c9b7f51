"""Choosing a system by its language."""

import io
import json
from dataclasses import replace

import pytest

from listenwell import checkpoint, weights
from listenwell.checkpoint import Checkpoint
from listenwell.cli import main
from listenwell.loading import default_system, load
from listenwell.models import build
from listenwell.weights import in_language


@pytest.fixture
def installed(tiny_model, tokenizer, tmp_path, monkeypatch):
    """Two systems with the same name for two languages, and one for English only."""
    known = {}
    for name, spoken in (("kind", ["en"]), ("kind-zh", ["zh"]), ("plain", ["en"])):
        ckpt = Checkpoint("multi-trs", tiny_model(), tokenizer, meta={"languages": spoken})
        checkpoint.save(replace(ckpt), tmp_path / name)
        known[name] = tmp_path / name
    for module in ("listenwell.weights", "listenwell.loading"):
        monkeypatch.setattr(f"{module}.shipped", lambda: known)
    return known


def test_a_language_chooses_the_system_of_that_name_that_speaks_it(installed):
    assert in_language("kind", None) == "kind"
    assert in_language("kind", "en") == "kind"
    assert in_language("kind", "zh") == "kind-zh"
    assert in_language("kind-zh", "zh") == "kind-zh"
    assert load("kind", language="zh", care=False).languages == ("zh",)


def test_a_language_that_a_system_does_not_speak_is_told_with_those_that_do(installed):
    with pytest.raises(ValueError, match="plain speaks en, not zh; these do: kind-zh"):
        in_language("plain", "zh")
    with pytest.raises(ValueError, match="plain speaks en, not fr, and no installed system does"):
        in_language("plain", "fr")


def test_without_a_name_the_first_system_that_speaks_it_is_taken(installed, monkeypatch):
    monkeypatch.setattr("listenwell.loading.missing_for_house", lambda: ["house"])
    monkeypatch.setattr("listenwell.loading.FALLBACK", "plain")
    assert default_system() == "plain"
    assert default_system("zh") == "kind-zh"


def test_generate_takes_a_language(installed, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("I lost my job\n"))
    main(["generate", "kind", "--language", "zh"])
    assert json.loads(capsys.readouterr().out)["id"] == "line-1"
    with pytest.raises(SystemExit, match="plain speaks en, not zh"):
        main(["generate", "plain", "--language", "zh"])
    assert weights.languages(installed["kind-zh"]) == ["zh"]


def test_evaluate_takes_a_language(installed, tmp_path, capsys):
    main(["evaluate", "kind", "--language", "zh", "--data", "grief", "--part", "zh", "--limit", "2", "--json",
          "--metrics", "length,celebratory"])  # fmt: skip
    result = json.loads(capsys.readouterr().out)
    assert result["system"] == "kind-zh"
    assert result["about"]["language"] == "zh"
    assert "no classifier of polarity was given" in result["about"]["left out"]["celebratory"]
    with pytest.raises(SystemExit, match="plain speaks en, not zh"):
        main(["evaluate", "plain", "--language", "zh", "--data", "grief", "--part", "zh"])


def test_the_usual_corpus_and_judge_are_those_of_the_language(installed, tmp_path, tokenizer, monkeypatch, capsys):
    """Without --data and --judge."""
    classifier = build("text-encoder", {"width": 12, "heads": 2, "layers": 1, "feed_forward": 16}, tokenizer.vocabulary)
    judge = Checkpoint("text-encoder", classifier.eval(), tokenizer, meta={"languages": ["zh"]})
    checkpoint.save(judge, tmp_path / "judge-zh")
    installed["judge-zh"] = tmp_path / "judge-zh"
    (tmp_path / "data" / "lccc_base").mkdir(parents=True)
    (tmp_path / "data" / "lccc_base" / "LCCC-base_test.json").write_text('[["你 好", "嗯"]]', encoding="utf-8")
    monkeypatch.setenv("LISTENWELL_DATA", str(tmp_path / "data"))
    main(["evaluate", "kind", "--language", "zh", "--json", "--metrics", "posi,celebratory", "--resamples", "0"])
    result = json.loads(capsys.readouterr().out)
    assert result["about"]["data"] == "lccc"
    assert {score["name"] for score in result["scores"]} == {"posi", "celebratory"}
