"""Several real processes, started the way `accelerate launch` does, compared with a single process."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest
import torch
import yaml
from accelerate import Accelerator
from accelerate.utils import DistributedType
from safetensors.torch import load_file

from listenwell import checkpoint, cli
from listenwell.configuration import ConfigError
from listenwell.contract import Term
from listenwell.data.batching import collate
from listenwell.models.trs import Trs
from listenwell.training import load_recipe, run, trainer
from listenwell.training.display import read_journal
from listenwell.training.processes import Processes, TrainingError
from listenwell.training.resume import read_run_state
from listenwell.training.signals import stop_on_signal

RECIPE = {
    "name": "shared",
    "model": {"name": "multi-trs", "width": 16, "heads": 2, "feed_forward": 24, "dropout": 0.0},
    "stages": [
        {
            "name": "joint",
            "examples": 55,
            "validate_every": 0.01,  # after every update
            "moves": [{"stream": "train", "weights": {"emotion": 0.5}}],
            "streams": {"train": {"examples": 6, "forget_words": 0.2, "rare_as_unknown": 0.5}},
            # Plain Adam turns rounding errors into steps where a gradient is zero.
            "optimizers": {"main": {"rate": 5e-3, "warmup": 4, "eps": 1e-3}},
        }
    ],
}


@pytest.fixture
def recipe_file(tmp_path, small_corpus):
    def make(**stage):
        recipe = {**RECIPE, "data": {"source": str(small_corpus)}, "stages": [{**RECIPE["stages"][0], **stage}]}
        path = tmp_path / "shared.yaml"
        path.write_text(yaml.safe_dump(recipe))
        return path

    return make


def launch(recipe, folder, *more, wait=True):
    """`accelerate launch --multi_gpu --num_processes 2 -m listenwell train … --device cpu`."""
    command = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"]
    command += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"]
    command += ["-m", "listenwell", "train", str(recipe), "--out", str(folder), "--device", "cpu", *more]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    if not wait:
        return started
    said, _ = started.communicate(timeout=120)
    return started.returncode, said


def validations(folder):
    return [record["reply"] for record in read_journal(folder / "log.jsonl") if record["kind"] == "valid"]


def agree(one, other):
    one, other = (load_file(folder / "model.safetensors") for folder in (one, other))
    return one.keys() == other.keys() and all(torch.allclose(one[name], other[name], atol=1e-5) for name in one)


def train_alone(recipe, folder, **options):
    run.train(load_recipe(str(recipe)), folder, quiet=True, **options)


def test_two_processes_take_the_steps_of_one(recipe_file, tmp_path):
    recipe = recipe_file()
    code, said = launch(recipe, tmp_path / "two")
    assert code == 0, said
    assert said.count("parameters,") == 1, "only one process speaks"
    train_alone(recipe, tmp_path / "one")
    one, two = validations(tmp_path / "one"), validations(tmp_path / "two")
    assert len(one) >= 10
    assert two == pytest.approx(one, abs=1e-5)
    assert one[-1] < one[0] - 0.01  # starting from word frequencies, a dozen updates change little
    assert agree(tmp_path / "one" / "last", tmp_path / "two" / "last")
    assert checkpoint.load(tmp_path / "two" / "best").meta["processes"] == 2


def in_two_processes(folder, function, *given):
    """What two processes write that call a function as if launched: forked from one that has imported what they need.

    The launcher itself and each process that it starts take seconds to import it; above, they do.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["accelerate", "listenwell.cli", "listenwell.commands.train", __name__])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    paths = [folder / f"said-{rank}" for rank in (0, 1)]
    processes = [
        context.Process(target=as_launched, args=(rank, port, path, function, given), daemon=True)
        for rank, path in enumerate(paths)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    said = "".join(path.read_text() for path in paths)
    assert [process.exitcode for process in processes] == [0, 0], said
    return said


def as_launched(rank, port, path, function, given):
    written = os.open(path, os.O_WRONLY | os.O_CREAT)
    os.dup2(written, 1)
    os.dup2(written, 2)
    torch.set_num_threads(1)
    where = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in where.items()}, MASTER_ADDR="127.0.0.1")
    function(*given)


def train_with_buffers(recipe, folder):
    """Every process writes the contents of its model's buffers when it saves."""
    make, save = Trs.__init__, trainer.Trainer._save

    def with_buffers(self, *arguments):
        make(self, *arguments)
        self.register_buffer("seen", torch.zeros(2), persistent=False)
        self.register_buffer("flags", torch.zeros(2, dtype=torch.bool), persistent=False)

    def begin(self, stage, epoch, batches):
        self.seen.fill_(41 + epoch)
        self.flags.fill_(True)
        return ()

    def check(self):
        print("PROCESS", self.processes.index, self.model.seen.tolist(), self.model.flags.tolist(), flush=True)
        save(self)

    Trs.__init__, Trs.on_epoch_start, trainer.Trainer._save = with_buffers, begin, check
    run.train(load_recipe(str(recipe)), folder, quiet=True, device="cpu")


def test_buffers_set_at_the_start_of_an_epoch_reach_every_process(recipe_file, tmp_path):
    said = in_two_processes(tmp_path, train_with_buffers, recipe_file(examples=12), tmp_path / "two")
    for process in (0, 1):
        assert f"PROCESS {process} [41.0, 41.0] [True, True]" in said


def test_the_loss_of_a_worker_is_told_and_the_run_goes_on_from_its_checkpoint(recipe_file, tmp_path):
    recipe = recipe_file(examples=300)
    started = launch(recipe, tmp_path / "two", "--save_every", "0", wait=False)
    until(lambda: (tmp_path / "two" / "previous").exists(), started)
    worker(started, rank=1).kill()
    said, _ = started.communicate(timeout=120)
    assert started.returncode != 0
    assert "another of the 2 processes does not answer" in said, said
    assert "launch again with --resume" in said
    assert 0 < read_run_state(tmp_path / "two" / "last").update < 50, "it was cut off in the middle"
    words = ["train", str(recipe), "--out", str(tmp_path / "two"), "--device", "cpu", "--resume"]
    said = in_two_processes(tmp_path, cli.main, words)
    assert "resuming from" in said
    train_alone(recipe, tmp_path / "one")
    assert validations(tmp_path / "two") == pytest.approx(validations(tmp_path / "one"), abs=1e-4)


def until(happened, started, seconds=120):
    begun = time.monotonic()
    while not happened():
        assert started.poll() is None, started.communicate()[0]
        assert time.monotonic() - begun < seconds
        time.sleep(0.05)


def worker(started, rank):
    for process in psutil.Process(started.pid).children(recursive=True):
        if process.environ().get("RANK") == str(rank):
            return process
    raise AssertionError(f"no process has rank {rank}")


# A single process in the role of one of many


@pytest.fixture
def among(monkeypatch):
    """Act as the process with this index out of this many, for sharing batches."""

    def make(index, count):
        alone = Processes(device="cpu")
        monkeypatch.setattr(Processes, "count", count)
        monkeypatch.setattr(Processes, "index", index)
        return alone

    return make


def test_every_row_of_a_batch_goes_to_one_process(among, encoded, tokenizer):
    batch = collate(encoded, range(5), tokenizer.pad)
    shares = [among(index, 3).share(batch) for index in range(3)]
    assert all(counts for _, counts in shares)
    assert sorted(row for share, _ in shares for row in share.rows) == [0, 1, 2, 3, 4]
    share = shares[1][0]
    assert share.rows == (1, 4)
    assert torch.equal(share.context.tokens, batch.context.tokens[[1, 4]])
    assert torch.equal(share.emotion, batch.emotion[[1, 4]])


def test_a_process_without_rows_of_its_own_takes_part_without_counting(among, encoded, tokenizer):
    share, counts = among(2, 3).share(collate(encoded, range(2), tokenizer.pad))
    assert len(share) == 1
    assert not counts


def test_alone_nothing_is_summed_or_waited_for():
    alone = Processes(device="cpu")
    terms = {"reply": Term(torch.tensor(3.0), 2)}
    assert (alone.count, alone.index, alone.main) == (1, 0, True)
    assert alone.sum_terms(terms) is terms
    assert alone.any(True, False) == [True, False]
    assert alone.gather("a") == ["a"]
    assert alone.from_main("a") == "a"


def test_only_trouble_between_processes_is_called_the_loss_of_one(among):
    crowd = among(0, 2)
    with pytest.raises(TrainingError, match="another of the 2 processes does not answer"), crowd._detect_lost_process():
        raise RuntimeError("[gloo/transport/tcp/pair.cc:538] Connection closed by peer [127.0.0.1]:4021")
    with pytest.raises(RuntimeError, match="shapes") as actual, crowd._detect_lost_process():
        raise RuntimeError("shapes cannot be multiplied")
    assert not isinstance(actual.value, TrainingError)


def test_a_process_that_lost_another_says_so_before_its_launcher_ends_it(among):
    crowd = among(0, 2)
    before = signal.getsignal(signal.SIGTERM)
    try:
        with (
            pytest.raises(TrainingError, match="does not answer"),
            stop_on_signal(lambda: None),
            crowd._detect_lost_process(),
        ):
            raise RuntimeError("Connection closed by peer")
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_precision_comes_from_the_launcher_unless_it_is_given(monkeypatch):
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    assert Processes(device="cpu").precision == "bf16"
    assert Processes("float32", device="cpu").precision == "float32"
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "fp16")
    with pytest.raises(ConfigError, match="configured for fp16, expected bf16 or no"):
        Processes(device="cpu")


def test_another_way_of_sharing_a_model_is_refused(monkeypatch):
    monkeypatch.setattr(Accelerator, "distributed_type", DistributedType.FSDP)
    with pytest.raises(ConfigError, match="configured for FSDP, expected MULTI_CPU or MULTI_GPU"):
        Processes(device="cpu")


def test_half_precision_learns_much_the_same(recipe_file, tmp_path):
    recipe = recipe_file()
    train_alone(recipe, tmp_path / "half", precision="bf16")
    train_alone(recipe, tmp_path / "full")
    half, full = validations(tmp_path / "half"), validations(tmp_path / "full")
    assert half == pytest.approx(full, rel=0.01)
    assert half != full
    weights = load_file(tmp_path / "half" / "best" / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
    assert checkpoint.load(tmp_path / "half" / "best").meta["precision"] == "bf16"
