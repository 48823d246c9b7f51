"""A run that is stopped, in whatever way, and resumed ends exactly like an uninterrupted one."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from dataclasses import asdict, replace

import pytest
import torch
import yaml

from listenwell import checkpoint, outputs
from listenwell.checkpoint import CheckpointError
from listenwell.configuration import ConfigError
from listenwell.decoding import Decoding
from listenwell.training import load_recipe, run, trainer
from listenwell.training.display import read_journal
from listenwell.training.resume import RunState, read_run_state, read_state, write_state
from listenwell.training.trainer import Interrupted, Trainer, TrainingError

FIRST, UPDATES = 5, 23
"""Of the run below: five updates of the first stage, then six rounds of three."""
LOG_EVERY = 4


class Stopped(BaseException):
    """Simulates a power cut: nothing catches it."""


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    monkeypatch.setattr(trainer, "LOG_EVERY", LOG_EVERY)


@pytest.fixture(scope="module")
def recipe(tiny_recipe, tiny_stage):
    """Everything that a run can have at once: two stages, two streams, alternating optimizers, dropout."""
    talk = tiny_stage(name="talk", examples=40, validate_every=0.2, keep="last")
    talk["streams"] = {"everybody": {"examples": 8, "replies_by": ["speaker", "listener"]}}
    talk["moves"] = [{"stream": "everybody"}]
    listen = tiny_stage(
        name="listen",
        examples=24,
        validate_every=0.2,
        streams={"few": {"examples": 5}, "many": {"examples": 8, "replies_by": ["speaker"]}},
        moves=[
            {"stream": "few", "optimizer": "main", "options": {"smoothing": 0.1}},
            {"stream": "many", "optimizer": "feel", "times": 2, "weights": {"reply": 0.0}},
        ],
        optimizers={
            "main": {"rate": 5e-3, "warmup": 2, "learns": ["words.*", "decoder.*", "encoder.*", "speakers.*"]},
            "feel": {"rate": 2e-3, "warmup": 2, "learns": ["emotion.*"]},
        },
    )
    return tiny_recipe(stages=[talk, listen])


@pytest.fixture(scope="module")
def unbroken(recipe, tmp_path_factory):
    """The folder of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(trainer, "LOG_EVERY", LOG_EVERY)
        run.train(recipe, folder, quiet=True)
    assert read_run_state(folder / "last").update == UPDATES
    return folder


def records(folder):
    """The journal without times."""
    timed = ("seconds", "speed")
    return [{k: v for k, v in record.items() if k not in timed} for record in read_journal(folder / "log.jsonl")]


def assert_same_end(folder, unbroken):
    assert records(folder) == records(unbroken)
    for name in ("best/model.safetensors", "last/model.safetensors", "last/training.safetensors"):
        assert (folder / name).read_bytes() == (unbroken / name).read_bytes(), name
    places = [json.loads((place / "last" / "training.json").read_text()) for place in (folder, unbroken)]
    for place in places:
        del place["seconds"]
    assert places[0] == places[1]


def at_update(monkeypatch, number, act):
    """Call act() once, when update `number` begins."""
    update, done = Trainer._update, []

    def watched(self, *arguments):
        if self.state.update == number and not done:
            done.append(number)
            act()
        return update(self, *arguments)

    monkeypatch.setattr(Trainer, "_update", watched)


def stop():
    raise Stopped


def stop_then_go_on(recipe, folder, monkeypatch, number, save_every):
    with monkeypatch.context() as patched:
        at_update(patched, number, stop)
        with pytest.raises(Stopped):
            run.train(recipe, folder, quiet=True, save_every=save_every)
    run.train(recipe, folder, resume=True, quiet=True)


def test_the_unbroken_run_logs_every_step_once(unbroken):
    actual = [(record["kind"], record["update"]) for record in records(unbroken)]
    assert len(set(actual)) == len(actual)
    # Every four updates; if a round of three steps passes the number, at the end of the round.
    assert [update for kind, update in actual if kind == "train"] == [4, 8, 14, 17, 20]


@pytest.mark.parametrize("number", [0, 3, 4, 5, 6, 14, 22])
def test_a_hard_stop_at_any_update_changes_nothing(recipe, unbroken, tmp_path, monkeypatch, number):
    stop_then_go_on(recipe, tmp_path / "run", monkeypatch, number, save_every=0.0)
    assert_same_end(tmp_path / "run", unbroken)


@pytest.mark.parametrize("number", [2, 8, 17])
def test_nor_where_the_last_checkpoint_lies_further_back(recipe, unbroken, tmp_path, monkeypatch, number):
    stop_then_go_on(recipe, tmp_path / "run", monkeypatch, number, save_every=1000.0)
    assert_same_end(tmp_path / "run", unbroken)


def test_a_run_that_is_stopped_again_and_again_gets_there_too(recipe, unbroken, tmp_path, monkeypatch):
    for number in range(1, UPDATES, 4):
        with monkeypatch.context() as patched:
            at_update(patched, number, stop)
            with pytest.raises(Stopped):
                run.train(recipe, tmp_path / "run", resume=True, quiet=True, save_every=0.0)
    run.train(recipe, tmp_path / "run", resume=True, quiet=True)
    assert_same_end(tmp_path / "run", unbroken)


def at_rename(patched, number):
    """Stop the process right before this rename."""
    rename, done = os.rename, []

    def stopping(source, target):
        if len(done) == number:
            raise Stopped
        done.append(target)
        rename(source, target)

    patched.setattr(outputs.os, "rename", stopping)


@pytest.mark.parametrize("number", [0, 2, 3, 6, 11])
def test_a_stop_between_any_two_renames_of_a_checkpoint_changes_nothing(
    recipe, unbroken, tmp_path, monkeypatch, number
):
    with monkeypatch.context() as patched:
        at_rename(patched, number)
        with pytest.raises(Stopped):
            run.train(recipe, tmp_path / "run", quiet=True, save_every=1000.0)
    run.train(recipe, tmp_path / "run", resume=True, quiet=True)
    assert_same_end(tmp_path / "run", unbroken)
    left = {path.name for path in (tmp_path / "run").iterdir() if path.is_dir()}
    assert left == {"best", "last", "previous", "tensorboard"}


# Ctrl-C


@pytest.mark.parametrize(("number", "sent"), [(0, signal.SIGINT), (6, signal.SIGTERM), (22, signal.SIGINT)])
def test_ctrl_c_saves_what_was_learned_and_the_run_goes_on_from_there(
    recipe, unbroken, tmp_path, monkeypatch, number, sent
):
    folder, handler = tmp_path / "run", signal.getsignal(sent)
    with monkeypatch.context() as patched:
        at_update(patched, number, lambda: signal.raise_signal(sent))
        with pytest.raises(Interrupted):
            run.train(recipe, folder, quiet=True)
    assert signal.getsignal(sent) is handler
    round_ends = number + 1 if number < FIRST else FIRST + 3 * ((number - FIRST) // 3 + 1)
    assert read_run_state(folder / "last").update == round_ends
    run.train(recipe, folder, resume=True, quiet=True)
    assert_same_end(folder, unbroken)


def test_a_second_ctrl_c_stops_at_once_and_leaves_the_last_checkpoint(recipe, unbroken, tmp_path, monkeypatch):
    folder = tmp_path / "run"

    def twice():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores Ctrl-C
    try:
        with monkeypatch.context() as patched:
            at_update(patched, 8, twice)
            with pytest.raises(KeyboardInterrupt):
                run.train(recipe, folder, quiet=True)
    finally:
        signal.signal(signal.SIGINT, before)
    assert read_run_state(folder / "last").update <= 8
    run.train(recipe, folder, resume=True, quiet=True)
    assert_same_end(folder, unbroken)


def test_ctrl_c_on_a_full_disk_says_that_nothing_was_saved(recipe, tmp_path, monkeypatch):
    def full(*arguments, **options):
        raise OSError("No space left on device")

    at_update(monkeypatch, 0, lambda: signal.raise_signal(signal.SIGINT))
    monkeypatch.setattr(checkpoint, "save", full)
    with pytest.raises(TrainingError, match=r"checkpoint not written \(No space left on device\)"):
        run.train(recipe, tmp_path / "run", quiet=True)


# Separate processes

CHILD = """
import os, signal, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from listenwell import checkpoint
from listenwell.training import load_recipe, run, trainer
run.draw = lambda folder: None
trainer.LOG_EVERY = {log_every}
{breaking}
try:
    run.train(load_recipe(sys.argv[1]), Path(sys.argv[2]), save_every=0.0, quiet=True)
except trainer.Interrupted:
    print("interrupted", flush=True)
"""

KILLED_WHILE_RENAMING = """
rename, done = os.rename, []
def killing(source, target):
    done.append(source)
    if len(done) == 12:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(source, target)
os.rename = killing
"""

WAITS_FOR_A_SIGNAL = """
update = trainer.Trainer._update
def waiting(self, *arguments):
    if self.state.update == 4:
        print("ready", flush=True)
        sys.stdin.readline()
    return update(self, *arguments)
trainer.Trainer._update = waiting
"""


def child(recipe, folder, tmp_path, breaking):
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(recipe.to_dict()))
    script = textwrap.dedent(CHILD).format(log_every=LOG_EVERY, breaking=textwrap.dedent(breaking))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", script, str(path), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_a_process_killed_in_the_midst_of_writing_loses_nothing(recipe, unbroken, tmp_path):
    folder = tmp_path / "run"
    with child(recipe, folder, tmp_path, KILLED_WHILE_RENAMING) as process:
        assert process.wait(timeout=120) == -signal.SIGKILL
    assert not (folder / "last").exists() or read_run_state(folder / "last").update < UPDATES
    run.train(recipe, folder, resume=True, quiet=True)
    assert_same_end(folder, unbroken)


def test_a_process_that_gets_ctrl_c_saves_and_goes_on_in_another(recipe, unbroken, tmp_path):
    folder = tmp_path / "run"
    with child(recipe, folder, tmp_path, WAITS_FOR_A_SIGNAL) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        # It continues when it reads a line, and by then the signal has arrived.
        said, _ = process.communicate("go on\n", timeout=120)
        assert (said, process.returncode) == ("interrupted\n", 0)
    assert read_run_state(folder / "last").update == 5
    run.train(recipe, folder, resume=True, quiet=True)
    assert_same_end(folder, unbroken)


# What can be resumed


@pytest.fixture
def stopped(recipe, tmp_path, monkeypatch):
    """A run stopped after the second round of its second stage, with a checkpoint of each."""
    folder = tmp_path / "run"
    with monkeypatch.context() as patched:
        at_update(patched, 11, stop)
        with pytest.raises(Stopped):
            run.train(recipe, folder, quiet=True, save_every=0.0)
    assert [read_run_state(folder / name).update for name in ("previous", "last")] == [8, 11]
    return folder


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    "name", ["model.safetensors", "training.safetensors", "training.json", "config.json", "tokenizer.json"]
)
def test_a_last_checkpoint_that_cannot_be_read_gives_way_to_the_one_before(recipe, unbroken, stopped, capsys, name):
    cut(stopped / "last" / name)
    run.train(recipe, stopped, resume=True, quiet=True)
    said = capsys.readouterr().err
    assert "warning: " in said
    assert str(stopped / "last" / name) in said.replace("\n", "")
    assert "trying the checkpoint before it" in said
    assert_same_end(stopped, unbroken)


def test_a_last_checkpoint_that_is_gone_gives_way_too(recipe, unbroken, stopped):
    shutil.rmtree(stopped / "last")
    run.train(recipe, stopped, resume=True, quiet=True)
    assert_same_end(stopped, unbroken)


def test_where_none_can_be_read_both_are_named_and_nothing_is_overwritten(recipe, stopped):
    for name in ("last", "previous"):
        cut(stopped / name / "model.safetensors")
    before = (stopped / "last" / "model.safetensors").read_bytes()
    with pytest.raises(CheckpointError, match=rf"no checkpoint in {stopped} can be read: .*last.*; .*previous.*"):
        run.train(recipe, stopped, resume=True, quiet=True)
    assert (stopped / "last" / "model.safetensors").read_bytes() == before


def test_another_recipe_or_other_data_refuse_to_go_on(recipe, tiny_recipe, stopped, tmp_path, small_corpus):
    other = tmp_path / "other.jsonl"
    other.write_bytes(small_corpus.read_bytes() + small_corpus.read_bytes().splitlines(keepends=True)[0])
    changed = tiny_recipe(stages=recipe.to_dict()["stages"], data={"source": str(other)})
    for wrong in (tiny_recipe(), changed):
        with pytest.raises(ConfigError, match=rf"{stopped} was begun with another recipe or other data"):
            run.train(wrong, stopped, resume=True, quiet=True)
    assert read_run_state(stopped / "last").update == 11


def test_a_run_that_is_at_its_end_stays_as_it_is(recipe, unbroken, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(unbroken, folder)
    assert run.train(recipe, folder, resume=True, quiet=True) == folder / "best"
    assert_same_end(folder, unbroken)


def assert_decodes(folder, decoding):
    for name in ("best", "last"):
        ckpt = checkpoint.load(folder / name)
        assert ckpt.decoding == decoding
        assert ckpt.meta["recipe"]["decoding"] == asdict(decoding)


def test_a_run_at_its_end_takes_the_decoding_that_was_chosen_since(recipe, unbroken, tmp_path, capsys):
    folder = tmp_path / "run"
    shutil.copytree(unbroken, folder)
    chosen = replace(recipe, decoding=Decoding(method="beam", beams=2, min_length=6, max_length=9))
    assert run.train(chosen, folder, resume=True) == folder / "best"
    said = capsys.readouterr().err.replace("\n", "")
    assert "now decodes by beam2+lp1+min6+max9, as its recipe says" in said
    assert "is trained to the end of its recipe" in said
    assert_decodes(folder, chosen.decoding)
    assert load_recipe(str(folder / "recipe.yaml")).decoding == chosen.decoding
    assert_same_end(folder, unbroken)
    assert (folder / "best" / "tokenizer.json").read_bytes() == (unbroken / "best" / "tokenizer.json").read_bytes()
    assert {path.name for path in folder.iterdir()} == {path.name for path in unbroken.iterdir()}
    run.train(chosen, folder, resume=True)
    assert "decodes" not in capsys.readouterr().err, "nothing is new"


def test_a_run_that_goes_on_takes_it_too_and_ends_as_it_would_have(recipe, unbroken, stopped):
    assert (stopped / "best").exists()
    chosen = replace(recipe, decoding=Decoding(min_length=3))
    run.train(chosen, stopped, resume=True, quiet=True)
    assert_decodes(stopped, chosen.decoding)
    assert_same_end(stopped, unbroken)


def test_a_best_that_is_not_written_again_takes_it_too(recipe, stopped, monkeypatch):
    chosen = replace(recipe, decoding=Decoding(min_length=3))
    with monkeypatch.context() as patched:
        at_update(patched, 11, stop)
        with pytest.raises(Stopped):
            run.train(chosen, stopped, resume=True, quiet=True, save_every=1000.0)
    assert checkpoint.load(stopped / "best").decoding == chosen.decoding


@pytest.mark.parametrize("number", range(4))
def test_a_stop_while_the_decoding_is_written_leaves_the_run_whole(recipe, unbroken, tmp_path, monkeypatch, number):
    folder = tmp_path / "run"
    shutil.copytree(unbroken, folder)
    chosen = replace(recipe, decoding=Decoding(min_length=3))
    with monkeypatch.context() as patched:
        at_rename(patched, number)
        with pytest.raises(Stopped):
            run.train(chosen, folder, resume=True, quiet=True)
    run.train(chosen, folder, resume=True, quiet=True)
    assert_decodes(folder, chosen.decoding)
    assert_same_end(folder, unbroken)
    left = {path.name for path in folder.iterdir() if path.is_dir()}
    assert left == {"best", "last", "previous", "tensorboard"}


def test_to_go_on_where_nothing_is_begins(tiny_recipe, tmp_path):
    run.train(tiny_recipe(), tmp_path / "run", resume=True, quiet=True)
    assert read_run_state(tmp_path / "run" / "last").finished


def test_a_run_stopped_before_its_first_checkpoint_begins_anew(recipe, unbroken, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    with monkeypatch.context() as patched:
        at_update(patched, 1, stop)
        with pytest.raises(Stopped):
            run.train(recipe, folder, quiet=True, save_every=1000.0)
    run.train(recipe, folder, quiet=True)  # there is nothing that could be overwritten
    assert_same_end(folder, unbroken)


def test_a_loss_that_was_no_number_can_be_gone_on_from(recipe, unbroken, tmp_path, monkeypatch):
    def broken():
        raise TrainingError("the loss is not a finite number")

    with monkeypatch.context() as patched:
        at_update(patched, 9, broken)
        with pytest.raises(TrainingError):
            run.train(recipe, tmp_path / "run", quiet=True, save_every=0.0)
    run.train(recipe, tmp_path / "run", resume=True, quiet=True)
    assert_same_end(tmp_path / "run", unbroken)


# The state itself


def optimizer_of(*sizes):
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(size)) for size in sizes]
    return torch.optim.AdamW(parameters, lr=0.1, fused=True), parameters


def learn(optimizer, parameters):
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    optimizer.step()


def test_optimizers_and_random_numbers_come_back(tmp_path):
    optimizer, parameters = optimizer_of(3, 4)
    learn(optimizer, parameters)
    torch.manual_seed(11)
    place = RunState("f", update=3, sums={"reply": [1.1, 2.0]})
    write_state(tmp_path, place, {"a/b": optimizer, "idle": optimizer_of(2)[0]}, [torch.get_rng_state()])
    numbers = torch.rand(5)
    learn(optimizer, parameters)
    other, others = optimizer_of(3, 4)
    read_state(tmp_path, {"a/b": other, "idle": optimizer_of(2)[0]})
    assert torch.equal(torch.rand(5), numbers)
    assert other.state[others[0]]["step"].item() == 1
    assert read_run_state(tmp_path) == RunState("f", update=3, sums={"reply": [1.1, 2.0]})
    assert {path.name for path in tmp_path.iterdir()} == {"training.safetensors", "training.json"}


def test_a_state_of_other_optimizers_is_told(tmp_path):
    optimizer, parameters = optimizer_of(3)
    learn(optimizer, parameters)
    write_state(tmp_path, RunState("f"), {"main": optimizer}, [torch.get_rng_state()])
    with pytest.raises(CheckpointError, match=r"training\.safetensors: an optimizer 'main' that the recipe does not"):
        read_state(tmp_path, {"other": optimizer})


def test_a_place_of_another_version_is_told(tmp_path):
    (tmp_path / "training.json").write_text('{"fingerprint": "f", "epoch": 3}')
    with pytest.raises(CheckpointError, match=r"training\.json: not written by this version .*epoch"):
        read_run_state(tmp_path)
