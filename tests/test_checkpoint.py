import errno
import json
import os
import re
import resource
from contextlib import contextmanager

import pytest
import torch
from safetensors.torch import load_file

from listenwell import checkpoint, outputs
from listenwell.checkpoint import Checkpoint, CheckpointError
from listenwell.data.batching import EncodingConfig, collate
from listenwell.decoding import Decoding


@pytest.fixture
def whole(tiny_model, tokenizer):
    return Checkpoint(
        "multi-trs",
        tiny_model(),
        tokenizer,
        EncodingConfig(max_context=77),
        Decoding(method="beam", beams=3),
        meta={"seed": 3, "validation": {"reply": 4.5}},
    )


@pytest.fixture
def saved(whole, tmp_path):
    folder = tmp_path / "best"
    checkpoint.save(whole, folder)
    return folder


def files(folder):
    """Every file under a folder with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@torch.no_grad()
def scores(loaded, encoded, tokenizer):
    return loaded.model.score(collate(encoded, range(6), tokenizer.pad))


def test_what_is_loaded_scores_bit_for_bit_as_what_was_saved(whole, saved, encoded, tokenizer):
    again = checkpoint.load(saved)
    assert torch.equal(scores(again, encoded, again.tokenizer), scores(whole, encoded, tokenizer))
    assert not again.model.training
    for name in ("name", "encoding", "decoding", "meta"):
        assert getattr(again, name) == getattr(whole, name), name
    assert again.model.config == whole.model.config
    assert again.tokenizer.encode("I don't know.") == tokenizer.encode("I don't know.")
    assert again.tokenizer.rare_from == tokenizer.rare_from


def test_every_size_is_written_down_so_that_a_later_default_changes_no_earlier_model(saved, whole):
    written = json.loads((saved / "config.json").read_text())["model"]
    assert written == {"name": "multi-trs", **vars(whole.model.config)}


def test_a_checkpoint_is_four_plain_files_and_no_pickle(saved):
    assert set(files(saved)) == {"model.safetensors", "config.json", "tokenizer.json", "meta.json"}
    for name, content in files(saved).items():
        if name.endswith(".json"):
            json.loads(content)
        else:
            load_file(saved / name)
        # Protocol 2 and later start like this; protocols 0 and 1 would have to be JSON or safetensors at the same time.
        assert not content.startswith(b"\x80")


def test_no_code_of_a_checkpoint_is_ever_run(saved):
    """torch.load is never called, so no untrusted pickle is executed."""
    import pickle

    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(saved / "it-ran"),)

    (saved / "model.safetensors").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(CheckpointError, match=r"model\.safetensors: cannot be read as safetensors"):
        checkpoint.load(saved)
    assert not (saved / "it-ran").exists()


def test_8_bits_take_about_a_quarter_and_score_within_one_per_cent(tiny_model, tokenizer, encoded, tmp_path):
    whole = Checkpoint("multi-trs", tiny_model(width=64), tokenizer)
    checkpoint.save(whole, tmp_path / "exact")
    checkpoint.save(whole, tmp_path / "small", eight_bit=True)
    exact, small = tmp_path / "exact", tmp_path / "small"
    size, least = ((folder / "model.safetensors").stat().st_size for folder in (exact, small))
    assert least / size < 0.3
    expected, near = (scores(checkpoint.load(folder), encoded, tokenizer) for folder in (exact, small))
    assert torch.allclose(expected, near, rtol=0.01)
    assert not torch.equal(expected, near)


def test_8_bits_round_to_the_nearest_of_255_steps_a_row():
    weights = {
        "a": torch.tensor([[1.0, -2.54, 0.0], [0.0, 0.0, 0.0]]),
        "b": torch.tensor([0.123]),
        "n": torch.ones(2).long(),
    }
    actual = checkpoint.from_eight_bit(checkpoint.to_eight_bit(weights))
    assert set(actual) == set(weights)
    assert torch.allclose(actual["a"], weights["a"], atol=2.54 / 254 + 1e-6)
    assert torch.equal(actual["b"], weights["b"])
    assert torch.equal(actual["n"], weights["n"])


# Parts


def test_parts_are_whole_checkpoints_inside_and_may_have_parts(whole, tiny_model, tokenizer, encoded, tmp_path):
    inner = Checkpoint("multi-trs", tiny_model(width=8), tokenizer, meta={"seed": 5})
    outer = Checkpoint("trs", tiny_model("trs"), tokenizer, parts={"inner": inner})
    whole.parts = {"outer": outer, "other": inner}
    checkpoint.save(whole, tmp_path / "best")
    again = checkpoint.load(tmp_path / "best")
    assert set(again.parts) == {"outer", "other"}
    assert again.parts["outer"].parts["inner"].meta == {"seed": 5}
    for actual in (again.parts["other"], again.parts["outer"].parts["inner"]):
        assert torch.equal(scores(actual, encoded, tokenizer), scores(inner, encoded, tokenizer))
    alone = checkpoint.load(tmp_path / "best" / "parts" / "outer" / "parts" / "inner")
    assert torch.equal(scores(alone, encoded, tokenizer), scores(inner, encoded, tokenizer))
    whole.parts = {}
    checkpoint.save(whole, tmp_path / "best")
    assert not (tmp_path / "best" / "parts").exists()


def test_in_8_bits_the_parts_are_too(whole, tiny_model, tokenizer, tmp_path):
    whole.parts = {"part": Checkpoint("trs", tiny_model("trs"), tokenizer)}
    checkpoint.save(whole, tmp_path / "small", eight_bit=True)
    weights = load_file(tmp_path / "small" / "parts" / "part" / "model.safetensors")
    assert weights["words.table"].dtype == torch.int8


def test_a_broken_part_is_named(whole, tiny_model, tokenizer, tmp_path):
    whole.parts = {"part": Checkpoint("trs", tiny_model("trs"), tokenizer)}
    checkpoint.save(whole, tmp_path / "best")
    (tmp_path / "best" / "parts" / "part" / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"parts/part/config\.json: cannot be read as JSON"):
        checkpoint.load(tmp_path / "best")


def test_a_part_may_lie_beside_as_a_system_of_its_own(whole, tiny_model, tokenizer, encoded, tmp_path):
    part = Checkpoint("trs", tiny_model("trs"), tokenizer)
    checkpoint.save(part, tmp_path / "plain")

    def refer(place):
        (place / "parts").mkdir()
        checkpoint.write_json(place / "parts" / "other.json", {"beside": "plain"})

    checkpoint.save(whole, tmp_path / "best", extra=refer)
    actual = checkpoint.load(tmp_path / "best").parts["other"]
    assert torch.equal(scores(actual, encoded, tokenizer), scores(part, encoded, tokenizer))
    (tmp_path / "plain").rename(tmp_path / "gone")
    with pytest.raises(CheckpointError, match="plain: no checkpoint there"):
        checkpoint.load(tmp_path / "best")
    checkpoint.write_json(tmp_path / "best" / "parts" / "other.json", {"besides": "plain"})
    with pytest.raises(CheckpointError, match=r"other\.json: the key 'beside' is missing"):
        checkpoint.load(tmp_path / "best")


def test_what_a_model_borrows_is_not_kept_and_is_taken_again(whole, saved, encoded, tokenizer, tmp_path, monkeypatch):
    lent = {"words.table": whole.model.state_dict()["words.table"].clone()}
    monkeypatch.setattr(type(whole.model), "borrowed", lambda self: frozenset(lent))
    monkeypatch.setattr(type(whole.model), "borrow", lambda self: self.load_state_dict(lent, strict=False) and None)
    checkpoint.save(whole, tmp_path / "light")
    kept, all_of = (load_file(folder / "model.safetensors") for folder in (tmp_path / "light", saved))
    assert set(all_of) - set(kept) == set(lent)
    again = checkpoint.load(tmp_path / "light")
    assert torch.equal(scores(again, encoded, tokenizer), scores(whole, encoded, tokenizer))


# All or nothing


def full_disk(folder):
    (folder / "half").write_text("written")
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_failure_while_writing_leaves_the_old_folder_as_it_was(whole, saved):
    before = files(saved.parent)
    whole.meta["seed"] = 4
    with pytest.raises(OSError, match="No space left on device"):
        checkpoint.save(whole, saved, extra=full_disk)
    assert files(saved.parent) == before


def test_a_failure_at_the_first_writing_leaves_no_half_folder(whole, tmp_path):
    for failure in (OSError, KeyboardInterrupt):

        def fail(folder, failure=failure):
            raise failure

        with pytest.raises(failure):
            checkpoint.save(whole, tmp_path / "runs" / "best", extra=fail)
        assert list(tmp_path.rglob("*")) in ([], [tmp_path / "runs"])


@contextmanager
def no_file_larger_than(size):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_the_system_refuses_to_write_is_an_oserror_and_leaves_all_as_it_was(whole, saved):
    """safetensors raises its own error for this, which is not an OSError; the limit simulates a full disk."""
    before = files(saved.parent)
    with no_file_larger_than(4096), pytest.raises(OSError, match=r"model\.safetensors: .*File too large"):
        checkpoint.save(whole, saved)
    assert files(saved.parent) == before


def test_extra_files_are_part_of_the_whole_and_the_old_folder_can_be_kept(whole, saved):
    previous = saved.with_name("previous")
    old = files(saved)
    whole.meta["seed"] = 4
    checkpoint.save(
        whole, saved, extra=lambda folder: checkpoint.write_json(folder / "training.json", [1]), previous=previous
    )
    assert files(previous) == old
    assert json.loads((saved / "training.json").read_text()) == [1]
    assert {path.name for path in saved.parent.iterdir()} == {"best", "previous"}
    checkpoint.save(whole, saved, previous=previous)
    assert "training.json" in files(previous)
    assert checkpoint.load(saved).meta["seed"] == 4


def test_nothing_but_the_folder_is_left_when_all_went_well(whole, saved):
    checkpoint.save(whole, saved)
    assert [path.name for path in saved.parent.iterdir()] == ["best"]


class Stopped(BaseException):
    """Simulates a power cut: nothing else runs in the process."""


@pytest.mark.parametrize("renames", [0, 1, 2])
def test_whenever_a_writing_stops_there_is_one_whole_checkpoint_after_settling(whole, saved, monkeypatch, renames):
    old = files(saved)
    rename, done = os.rename, []

    def stop(source, target):
        if len(done) == renames:
            raise Stopped
        done.append(source)
        rename(source, target)

    whole.meta["seed"] = 4
    with monkeypatch.context() as patched:
        patched.setattr(outputs.os, "rename", stop)
        if renames < 2:
            with pytest.raises(Stopped):
                checkpoint.save(whole, saved)
        else:
            checkpoint.save(whole, saved)
    outputs.settle(saved)
    assert checkpoint.load(saved).meta["seed"] == (3 if renames < 2 else 4)
    assert renames == 2 or files(saved) == old
    checkpoint.save(whole, saved)  # leftovers are in nobody's way
    assert checkpoint.load(saved).meta["seed"] == 4
    assert [path.name for path in saved.parent.iterdir()] == ["best"]


def test_settling_where_all_is_well_changes_nothing(saved, tmp_path):
    before = files(tmp_path)
    outputs.settle(saved)
    outputs.settle(tmp_path / "never")
    assert files(tmp_path) == before


# What cannot be read


def change(path, function):
    record = json.loads(path.read_text())
    function(record)
    path.write_text(json.dumps(record))


@pytest.mark.parametrize("size", [0, 7, 100, 5000])
def test_cut_weights_are_named(saved, size):
    path = saved / "model.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(CheckpointError, match=r"best/model\.safetensors: cannot be read as safetensors"):
        checkpoint.load(saved)


@pytest.mark.parametrize("name", ["config.json", "meta.json"])
@pytest.mark.parametrize("content", [b"", b'{"model": {"na', b"\xff\xfe", b"[1]", b"null"])
def test_broken_json_is_named(saved, name, content):
    (saved / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"best/{name}: "):
        checkpoint.load(saved)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(saved, name):
    (saved / name).unlink()
    with pytest.raises(CheckpointError, match=rf"best/{name}: "):
        checkpoint.load(saved)


def test_a_folder_without_a_checkpoint_is_told(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(CheckpointError, match=rf"{folder}: no checkpoint there \(config\.json is missing\)"):
            checkpoint.load(folder)


@pytest.mark.parametrize("key", ["model", "text", "encoding", "decoding", "model.name", "text.kind"])
def test_a_missing_key_is_named(saved, key):
    *parents, last = key.split(".")

    def remove(record):
        for parent in parents:
            record = record[parent]
        del record[last]

    change(saved / "config.json", remove)
    with pytest.raises(CheckpointError, match=rf"best/config\.json: the key '{last}' is missing"):
        checkpoint.load(saved)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model": {"name": "multi-tsr"}}, "unknown model 'multi-tsr'; did you mean 'multi-trs'"),
        ({"model": {"name": "trs", "widht": 3}}, "unknown key 'widht'"),
        ({"model": {"name": 3}}, ""),
        ({"model": "trs"}, ""),
        ({"text": "word"}, ""),
        ({"encoding": {"max_contxt": 3}}, "encoding: unknown key 'max_contxt'"),
        ({"encoding": {"max_context": 1}}, "encoding: max_context is 1, expected at least 2"),
        ({"decoding": {"method": "bream"}}, "decoding: "),
        ({"decoding": []}, ""),
    ],
)
def test_a_config_that_makes_no_sense_is_named(saved, values, message):
    change(saved / "config.json", lambda record: record.update(values))
    with pytest.raises(CheckpointError, match=rf"best/config\.json: .*{message}"):
        checkpoint.load(saved)


def test_a_broken_tokenizer_is_named(saved):
    (saved / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"best/tokenizer\.json: not a tokenizer\.json"):
        checkpoint.load(saved)


def problem_of(folder):
    with pytest.raises(CheckpointError) as problem:
        checkpoint.load(folder)
    said = str(problem.value)
    assert said.count("\n") == 0
    assert not any(word in said for word in ("size mismatch", "state_dict", "Errno"))
    return said


def test_weights_of_another_size_are_told(saved):
    change(saved / "config.json", lambda record: record["model"].update(width=32))
    assert "best/model.safetensors: its weights do not fit the model in config.json: " in problem_of(saved)
    assert re.search(
        r"\S+ is [\d ×]+, expected [\d ×]+ \(and \d+ more\); are the files of one checkpoint\?", problem_of(saved)
    )


@pytest.mark.parametrize(("layers", "expected"), [(1, "is not of it"), (3, "is missing")])
def test_weights_of_another_depth_are_told(saved, layers, expected):
    change(saved / "config.json", lambda record: record["model"].update(encoder_layers=layers))
    assert re.search(rf"do not fit the model in config\.json: \S+ {expected} \(and \d+ more\)", problem_of(saved))


def test_a_tokenizer_of_another_vocabulary_is_told(saved, tokenizer):
    from listenwell.text import TextConfig, train_tokenizer

    other = train_tokenizer(["a few other words"], TextConfig())
    other.save(saved / "tokenizer.json")
    said = problem_of(saved)
    assert "its weights do not fit tokenizer.json: " in said
    assert f"is for {len(tokenizer):,} tokens, and the tokenizer has {len(other):,}" in said


def test_a_tokenizer_of_another_kind_is_named(saved, tiny_backbone):
    (saved / "tokenizer.json").write_bytes((tiny_backbone / "tokenizer.json").read_bytes())
    assert "best/tokenizer.json: this tokenizer has no <pad> token" in problem_of(saved)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_missing_and_a_cut_file_are_told_apart(saved, name):
    path = saved / name
    path.write_bytes(path.read_bytes()[:100])
    assert re.search(rf"best/{name}: .*cut short or damaged", problem_of(saved))
    path.unlink()
    assert f"best/{name}: is missing" in problem_of(saved)


def test_a_config_of_a_newer_version_says_so(saved):
    change(saved / "config.json", lambda record: record.update(format=2))
    assert "config.json: its format is 2, expected at most 1: it was written by a newer listenwell" in problem_of(saved)
    change(saved / "config.json", lambda record: record.update(format=1))
    change(saved / "config.json", lambda record: record["decoding"].update(mirostat=1))
    assert re.search(r"config\.json: decoding: unknown key 'mirostat'.*newer listenwell", problem_of(saved))


def test_a_config_from_before_formats_were_numbered_is_read(saved):
    change(saved / "config.json", lambda record: record.pop("format"))
    assert checkpoint.load(saved).name == "multi-trs"
