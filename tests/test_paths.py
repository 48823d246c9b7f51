"""If the home folder is read-only or missing, files go to a temporary folder of the user, with one message."""

from __future__ import annotations

import os
import pwd
import stat
import tempfile
import warnings
from pathlib import Path

import pytest

from listenwell import notices, paths
from listenwell.backbones import unpack
from listenwell.classifiers.label_cache import cached_labeller
from listenwell.commands import history
from listenwell.data import sources
from listenwell.notices import CacheWarning


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch, tmp_path: Path):
    """A process that has not printed or tried anything, with its own temporary folder."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(notices, "_shown", set())
    for name in ("LISTENWELL_CACHE", "XDG_CACHE_HOME", "XDG_STATE_HOME", "LISTENWELL_HISTORY"):
        monkeypatch.delenv(name, raising=False)
    for function in (paths._was_writable, paths.temporary_folder):
        function.cache_clear()
    yield
    for function in (paths._was_writable, paths.temporary_folder):
        function.cache_clear()


@pytest.fixture
def no_home(monkeypatch, tmp_path: Path) -> Path:
    """A home in which nothing can be created, even by root: it is a file."""
    home = tmp_path / "home"
    home.write_text("")
    monkeypatch.setenv("HOME", str(home))
    return home


def test_a_home_that_can_be_written_to_is_used(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("HOME", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert paths.writable_cache() == paths.cache_folder() == tmp_path / ".cache" / "listenwell"


def test_a_home_that_cannot_is_replaced_by_a_private_folder_and_said_once(no_home: Path, tmp_path: Path):
    with pytest.warns(CacheWarning, match=rf"{no_home}\S* cannot be written to; using \S+ for the cache"):
        folder = paths.writable_cache()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert paths.writable_cache() == folder
    assert folder.is_relative_to(tmp_path / "tmp")
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


def test_a_folder_that_was_named_outright_is_not_replaced(monkeypatch, no_home: Path):
    monkeypatch.setenv("LISTENWELL_CACHE", str(no_home / "cache"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert paths.writable_cache() == no_home / "cache"


def test_who_has_no_home_at_all_has_a_cache(monkeypatch, tmp_path: Path):
    monkeypatch.delenv("HOME", raising=False)

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.warns(CacheWarning):
        assert paths.writable_cache().is_relative_to(tmp_path / "tmp")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_home_is_one_that_cannot_be_written_to(monkeypatch, tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    monkeypatch.setenv("HOME", str(home))
    with pytest.warns(CacheWarning):
        assert paths.writable_cache().is_relative_to(tmp_path / "tmp")


def test_a_folder_that_somebody_else_could_write_to_is_not_trusted(tmp_path: Path):
    own = tmp_path / "tmp" / f"listenwell-{os.getuid()}"
    own.mkdir()
    own.chmod(0o777)
    assert paths.temporary_folder() != own
    assert paths.is_private(paths.temporary_folder())


def test_a_link_is_not_trusted(tmp_path: Path):
    own = tmp_path / "tmp" / f"listenwell-{os.getuid()}"
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    own.symlink_to(tmp_path / "elsewhere")
    assert paths.temporary_folder() != own


def test_every_process_of_the_user_finds_the_same_folder():
    first = paths.temporary_folder()
    paths.temporary_folder.cache_clear()
    assert paths.temporary_folder() == first


@pytest.mark.filterwarnings("ignore::listenwell.notices.CacheWarning")
def test_chat_history_falls_back(no_home: Path, tmp_path: Path):
    kept = history.history_file()
    assert kept is not None
    assert kept.is_relative_to(tmp_path / "tmp")
    history.History(kept).add("hello")
    assert kept.read_text() == "hello\n"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


@pytest.mark.filterwarnings("ignore::listenwell.notices.CacheWarning")
def test_the_cache_of_labels_falls_back(no_home: Path, tiny_classifier, tmp_path: Path):
    labeller = cached_labeller(tiny_classifier())
    labeller.label(["I lost my job today"])
    assert labeller.path is not None
    assert labeller.path.is_relative_to(tmp_path / "tmp")
    assert labeller.path.is_file()


@pytest.mark.filterwarnings("ignore::listenwell.notices.CacheWarning")
def test_a_language_model_is_unpacked_into_the_fallback(no_home: Path, monkeypatch, tmp_path: Path):
    packed = tmp_path / "model.gguf"
    packed.write_bytes(b"packed")

    def write(_: Path, folder: Path) -> None:
        (folder / "config.json").write_text("{}")
        (folder / unpack.SIZES).write_text('{"config.json": 2}')

    monkeypatch.setattr(unpack, "unpack", write)
    folder = unpack.unpacked(packed, "some/model")
    assert folder.is_relative_to(tmp_path / "tmp")
    monkeypatch.setattr(unpack, "unpack", lambda *_: pytest.fail("it was unpacked before"))
    assert unpack.unpacked(packed, "some/model") == folder


def test_corpora_are_in_the_user_s_data_folder_unless_a_variable_names_another(monkeypatch, tmp_path: Path):
    monkeypatch.delenv("LISTENWELL_DATA", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sources.data_roots() == [tmp_path / ".local" / "share" / "listenwell"]
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert sources.data_roots() == [tmp_path / "data" / "listenwell"]
    monkeypatch.setenv("LISTENWELL_DATA", "~/corpora")
    assert sources.data_roots() == [tmp_path / "corpora"]
