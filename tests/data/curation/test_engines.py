"""One pipeline, two engines: the same jobs give the same results."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import pytest
from made_subtitles import write_subtitles
from standin_labels import WordLabelling

from listenwell.data.curation.engines import Job, make_engine
from listenwell.data.curation.engines.local import LocalEngine
from listenwell.data.curation.inputs import Inputs
from listenwell.data.curation.manifest import verify
from listenwell.data.curation.pipeline import Curation, curate


def squared(job: Job) -> dict[str, int]:
    return {"index": job["number"], "square": job["number"] ** 2, "process": os.getpid()}


def killed(job: Job) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def failing(job: Job) -> None:
    raise ValueError(f"job {job['number']} is broken")


def waits_for_ever_but_for_the_first(job: Job) -> int:
    if job["number"]:
        signal.pause()
    return job["number"]


def jobs(number: int = 20) -> list[Job]:
    return [{"number": index} for index in range(number)]


def test_an_engine_that_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"unknown engine 'spark'.*local, ray"):
        make_engine("spark")


def test_one_worker_is_this_process_and_two_are_others():
    assert {result["process"] for result in LocalEngine(1).run(squared, jobs())} == {os.getpid()}
    engine = LocalEngine(2)
    results = list(engine.run(squared, iter(jobs())))
    engine.close()
    assert sorted(result["square"] for result in results) == [number**2 for number in range(20)]
    assert os.getpid() not in {result["process"] for result in results}
    assert not multiprocessing.active_children()


def test_jobs_are_taken_as_there_is_room_for_them():
    taken = []

    def some():
        for job in jobs(50):
            taken.append(job)
            yield job

    engine = LocalEngine(2)
    results = engine.run(squared, some())
    next(results)
    assert len(taken) < 12
    assert len(list(results)) == 49
    engine.close()


def test_a_worker_that_is_killed_and_a_task_that_fails_are_told():
    engine = LocalEngine(2)
    with pytest.raises(RuntimeError, match=r"a worker process was stopped from outside.*the same command"):
        list(engine.run(killed, jobs(3)))
    engine.close()
    engine = LocalEngine(2)
    with pytest.raises(ValueError, match=r"job \d is broken"):
        list(engine.run(failing, jobs(3)))
    engine.close()


def test_a_run_that_is_given_up_does_not_wait_for_its_workers():
    engine = LocalEngine(2)
    results = engine.run(waits_for_ever_but_for_the_first, jobs(5))
    assert next(results) == 0
    results.close()
    engine.close()
    assert not multiprocessing.active_children()


@pytest.fixture(scope="module")
def ray_engine():
    pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        # Ray's workers import this file's functions by its name.
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        engine = make_engine("ray", 2)
        yield engine
        engine.close()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
def test_ray_gives_the_same_records(ray_engine, tmp_path: Path):
    source = write_subtitles(tmp_path / "subs", files=40)

    def run(name: str, engine) -> str:
        inputs = Inputs.named("subtitles", [source])
        content = curate(Curation(inputs, tmp_path / name, "en", None, WordLabelling(), most_emotional=20), engine)
        assert verify(tmp_path / name) == content["records"]["hash"]
        assert content["engine"] == engine.name
        return content["records"]["hash"]

    assert run("ray", ray_engine) == run("local", LocalEngine(1))


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_task_that_fails_on_ray_is_told(ray_engine):
    with pytest.raises(RuntimeError, match=r"a task failed on Ray: ValueError: job \d is broken"):
        list(ray_engine.run(failing, jobs(2)))


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
def test_ray_runs_every_job_once_in_waves(ray_engine, monkeypatch):
    monkeypatch.setattr("listenwell.data.curation.engines.ray_engine.WAVE", 8)
    results = list(ray_engine.run(squared, iter(jobs())))
    assert sorted(result["index"] for result in results) == list(range(20))
