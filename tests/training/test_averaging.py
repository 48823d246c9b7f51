"""Weight averaging over the last part of a stage: against a slow computation, and in an interrupted run."""

import pytest
import torch

from listenwell import checkpoint
from listenwell.configuration import ConfigError
from listenwell.training import run
from listenwell.training.display import read_journal
from listenwell.training.recipe import Stage
from listenwell.training.resume import read_mean, read_run_state
from listenwell.training.trainer import Trainer


class Stopped(BaseException):
    """Simulates a power cut: nothing catches it."""


@pytest.fixture(scope="module")
def recipe(tiny_recipe, tiny_stage):
    """A dozen rounds, the last of which are averaged; then a stage without averaging."""

    def make(second=True, **fields):
        last = tiny_stage(name="last", examples=8, keep="last", optimizers={"main": {"rate": 0.0, "decay": 0.0}})
        first = tiny_stage(keep="last", **{"average": 0.4, "optimizers": {"main": {"learns": ["decoder.*"]}}, **fields})
        return tiny_recipe(stages=[first, last] if second else [first])

    return make


@pytest.fixture(scope="module")
def unbroken(recipe, tmp_path_factory):
    """The weights that an uninterrupted run has trained."""
    return run.train(recipe(), tmp_path_factory.mktemp("unbroken") / "run", quiet=True)


def weights(folder):
    return checkpoint.load(folder).model.state_dict()


def watched(monkeypatch, number=None):
    """Record the examples and the weights at every update; stop everything at update `number`."""
    update, noted = Trainer._update, []

    def watch(self, *arguments):
        if self.state.update == number:
            raise Stopped
        done = update(self, *arguments)
        now = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        noted.append((self.state.seen + done, now))
        return done

    monkeypatch.setattr(Trainer, "_update", watch)
    return noted


def test_a_stage_hands_on_the_mean_of_what_it_had_at_its_end(recipe, tmp_path, monkeypatch):
    noted = watched(monkeypatch)
    trained = weights(run.train(recipe(second=False), tmp_path / "run", quiet=True))
    averaged = [now for seen, now in noted if seen > 0.6 * 96]
    assert 1 < len(averaged) < len(noted)
    for name, last in noted[-1][1].items():
        mean = torch.stack([now[name].double() for now in averaged]).mean(dim=0)
        torch.testing.assert_close(trained[name].double(), mean, atol=1e-7, rtol=1e-5)
        assert torch.equal(trained[name], last) != name.startswith("decoder")


def test_what_is_validated_last_is_the_mean(recipe, tmp_path, monkeypatch):
    plain = run.train(recipe(second=False, average=0.0), tmp_path / "plain", quiet=True)
    mean = run.train(recipe(second=False), tmp_path / "mean", quiet=True)
    losses = [
        [record["reply"] for record in read_journal(folder.parent / "log.jsonl") if record["kind"] == "valid"]
        for folder in (plain, mean)
    ]
    assert losses[0][:-1] == losses[1][:-1]
    assert losses[0][-1] != losses[1][-1]


@pytest.mark.parametrize("number", [3, 9, 12, 13])
def test_a_run_that_stops_has_the_same_mean_in_the_end(recipe, unbroken, tmp_path, monkeypatch, number):
    with monkeypatch.context() as patched:
        noted = watched(patched, number)
        with pytest.raises(Stopped):
            run.train(recipe(), tmp_path / "broken", quiet=True, save_every=0.0)
    last = tmp_path / "broken" / "last"
    begun = read_run_state(last).stage == 0  # after the stage, nothing of its average is left
    averaged = sum(seen > 0.6 * 96 for seen, _ in noted) if begun else 0
    assert (averaged > 0) == (number in (9, 12))
    assert read_run_state(last).averaged == averaged
    assert bool(read_mean(last)) == bool(averaged)
    broken = run.train(recipe(), tmp_path / "broken", quiet=True, resume=True)
    assert all(torch.equal(value, weights(broken)[name]) for name, value in weights(unbroken).items())


def test_an_average_needs_an_end_that_is_known():
    with pytest.raises(ConfigError, match="average needs keep: last and no patience"):
        Stage(average=0.2)
    with pytest.raises(ConfigError, match="average needs keep: last and no patience"):
        Stage(average=0.2, keep="last", patience=2)
    with pytest.raises(ConfigError, match=r"average is a share from 0 to 1, found 1\.5"):
        Stage(average=1.5, keep="last")
