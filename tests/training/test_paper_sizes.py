"""The recipes at the papers' sizes: they match the papers, and each can take a training step."""

from __future__ import annotations

import pytest

from listenwell.contract import Vocabulary
from listenwell.evaluation.reproduce.plan import plan
from listenwell.evaluation.reproduce.results import results
from listenwell.evaluation.reproduce.spec import paper
from listenwell.models import build
from listenwell.training import load_recipe, run
from listenwell.training.optimizers import OptimizerSet
from listenwell.training.resume import read_run_state

RECIPES = ("mime-paper", "meed2-os-paper", "meed2-paper")
FEW = ("examples=1", "streams.train.examples=2")
"""One round of two replies a batch, in every stage."""


def model_of(recipe, words):
    choices = dict(recipe.model)
    return build(choices.pop("name"), choices, Vocabulary(words))


def test_mime_has_the_sizes_of_the_paper_and_its_public_code():
    recipe = load_recipe("mime-paper")
    model, (stage,) = model_of(recipe, 100), recipe.stages
    attention = model.encoder.layers[0].attention
    assert (attention.heads, tuple(attention.query.weight.shape)) == (2, (40, 300))
    assert (recipe.model["feed_forward"], recipe.model["dropout"]) == (50, 0)
    assert len(model.encoder.layers) == len(model.decoder.layers) == 1
    main = stage.optimizers["main"]
    assert (main.kind, main.rate, main.schedule, main.decay) == ("adam", 1e-4, "constant", 0)
    assert (stage.patience, stage.streams["train"].examples, recipe.decoding.beams) == (2, 16, 5)
    assert model.words.table.shape == model.words.choices.shape == (100, 300)
    assert model.words.table is not model.words.choices


@pytest.mark.parametrize("name", ["meed2-os-paper", "meed2-paper"])
def test_meed2_averages_512_replies_for_each_of_its_updates(name):
    recipe = load_recipe(name)
    for stage in recipe.stages:
        assert sum(move.times * stage.streams[move.stream].examples for move in stage.moves) == 512
        assert sum(move.times * weight for move in stage.moves for weight in move.weights.values()) == 1
        assert [move.hold for move in stage.moves] == [True, False]
        main = stage.optimizers["main"]
        assert (main.kind, main.rate, main.schedule) == ("adam", 5e-5, "constant")


def test_passes_are_the_paper_s_though_one_batch_of_sixteen_is_not_counted():
    counted = 15 / 16
    for name, passes in {"meed2-os-paper": 50, "meed2-paper": 10}.items():
        assert {stage.epochs for stage in load_recipe(name).stages} == {passes * counted}


@pytest.mark.parametrize("name", RECIPES)
def test_each_passes_the_trainer_s_checks_and_takes_a_step_in_every_stage(name, small_corpus, tmp_path, monkeypatch):
    steps = []
    step = OptimizerSet.step
    monkeypatch.setattr(OptimizerSet, "step", lambda *given: steps.append(given[1]) or step(*given))
    recipe = load_recipe(
        name,
        [
            f"data.source={small_corpus}",
            *("vocabulary=''", "start=''", "parts={}", "vectors=null", "data.leave_out=[]", "text.size=300"),
            *(f"stages.{number}.{change}" for number in range(len(load_recipe(name).stages)) for change in FEW),
        ],
    )
    run.train(recipe, tmp_path / "run", quiet=True)
    assert read_run_state(tmp_path / "run" / "last").finished
    assert len(steps) == len(recipe.stages)


def test_the_budget_paper_trains_them_and_says_of_other_rows_that_they_have_no_such_recipe(tmp_path):
    work = plan(paper("meed2"), tmp_path, "paper")
    assert [one.recipe for one in work.trainings] == ["meed2-os-paper", "meed2-paper"]
    assert {one.row for one in work.scorings} == {"MEED2 (OS)", "MEED2 (OS->ED)"}
    reasons = {one.row: one.why for one in results(paper("meed2"), work, ["3"])}
    assert reasons["Raw (ED)"] == ("there is no recipe of the paper's size for meed2-plain-raw-cpu; use --budget cpu")
    assert reasons["MEED2 (OS->ED)"] == "listenwell reproduce meed2 --table 3"


@pytest.mark.parametrize(("name", "recipe"), [("mime", "mime-paper"), ("bert-joint", "bert-joint")])
def test_a_paper_with_one_row_of_its_size_trains_that_row(name, recipe, tmp_path):
    assert [one.recipe for one in plan(paper(name), tmp_path, "paper").trainings] == [recipe]
