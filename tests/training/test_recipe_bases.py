"""Recipes based on other recipes."""

import json
from pathlib import Path

import pytest

from listenwell.configuration import ConfigError
from listenwell.training import load_recipe, recipe_names
from listenwell.training.recipe_files import resolved

BEFORE = json.loads((Path(__file__).parent / "fingerprints.json").read_text())
"""Of the shipped recipes when each was written out in full: runs begun then must still resume."""


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        (tmp_path / f"{name}.yaml").write_text(text)
        return str(tmp_path / f"{name}.yaml")

    return write


@pytest.mark.parametrize("name", BEFORE)
def test_a_shipped_recipe_has_the_fingerprint_that_earlier_runs_were_begun_with(name):
    assert load_recipe(name).fingerprint() == BEFORE[name]


def test_an_old_model_name_in_a_recipe_is_the_same_recipe(write):
    old, new = (write(name, f"name: x\nmodel: {model}\n") for name, model in MODELS.items())
    assert load_recipe(old) == load_recipe(new)
    assert load_recipe(old).model == {"name": "mime", "mimicry": False, "width": 12}
    assert load_recipe(old).fingerprint() == load_recipe(new).fingerprint()


MODELS = {"old": "{name: mime-no-mimicry, width: 12}", "new": "{name: mime, width: 12, mimicry: false}"}


def test_mappings_merge_and_everything_else_replaces(write):
    path = write("mine", "base: mime\nname: mine\nmodel: {dropout: 0.4}\ndecoding: {beams: 2}\nstages: [{epochs: 2}]\n")
    mine, base = load_recipe(path), load_recipe("mime")
    assert mine.model == {**base.model, "dropout": 0.4}
    assert (mine.decoding.beams, mine.decoding.block_ngrams) == (2, base.decoding.block_ngrams)
    assert [stage.epochs for stage in mine.stages] == [2]
    assert (mine.data, mine.vectors) == (base.data, base.vectors)


def test_a_key_with_dots_sets_one_value_inside_a_list(write):
    text = "base: mime\nname: mine\nstages.0.examples: 80000\nstages.1.moves.0.weights: {emotion: 1}\n"
    mine, base = load_recipe(write("mine", text)), load_recipe("mime")
    assert [stage.examples for stage in mine.stages] == [80000, base.stages[1].examples]
    assert mine.stages[1].moves[0].weights == {"emotion": 1}, "set as a whole, not merged"
    assert mine.stages[0].moves == base.stages[0].moves


def test_name_line_and_row_are_not_inherited(write):
    assert load_recipe("mime").row
    mine = load_recipe(write("mine", "base: mime\nname: mine\n"))
    assert (mine.name, mine.about, mine.row) == ("mine", "", "")
    with pytest.raises(ConfigError, match="the key 'name' is missing"):
        load_recipe(write("nameless", "base: mime\n"))


def test_the_choices_of_another_model_are_not_inherited(write):
    mine = load_recipe(write("mine", "base: mime\nname: mine\nmodel: {name: trs, width: 12}\n"))
    assert mine.model == {"name": "trs", "width": 12}


def test_changes_of_the_command_line_come_last(write):
    path = write("mine", "base: tiny\nname: mine\nstages.0.epochs: 7\nseed: 3\n")
    mine = load_recipe(path, ["stages.0.epochs=9"])
    assert (mine.stages[0].epochs, mine.seed) == (9, 3)


def test_a_base_may_have_a_base_and_lie_beside_the_recipe(write):
    write("first", "base: tiny\nname: first\nseed: 3\nmodel: {width: 64}\n")
    mine = load_recipe(write("second", "base: first.yaml\nname: second\nmodel: {heads: 2}\n"))
    assert (mine.seed, mine.model["width"], mine.model["heads"]) == (3, 64, 2)


def test_a_base_is_never_changed_by_what_is_based_on_it():
    before = resolved("mime")
    resolved("mime-no-stochasticity")
    assert resolved("mime") == before
    assert "base" not in resolved("mime-no-stochasticity")


def test_a_recipe_based_on_itself_is_refused_with_the_way_it_goes(write):
    one = write("one", "base: two.yaml\nname: one\n")
    write("two", "base: one.yaml\nname: two\n")
    with pytest.raises(ConfigError, match=r"based on itself: \S+one.yaml → \S+two.yaml → \S+one.yaml"):
        load_recipe(one)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base: mimee\nname: x\n", r"mine.yaml: base: unknown recipe 'mimee'; did you mean 'mime'"),
        ("base: no.yaml\nname: x\n", r"mine.yaml: base: \S+no.yaml: no such recipe file"),
        ("base: [mime]\nname: x\n", r"mine.yaml: base is \['mime'\], expected the name of a recipe"),
        ("base: mime\nname: x\nstages.7.epochs: 1\n", r"mine.yaml: stages.7.epochs: '7' is not one of the 2 items"),
        ("base: mime\nname: x\nstages.0.epoch: 1\n", r"stages.0: unknown key 'epoch'; did you mean 'epochs'"),
    ],
)
def test_a_base_that_cannot_be_used_names_the_recipe_and_the_key(write, text, message):
    with pytest.raises(ConfigError, match=message):
        load_recipe(write("mine", text))


def test_every_ablation_has_a_recipe():
    ablations = {"mime-no-stochasticity", "mime-no-mimicry", "mime-no-grouping", "mime-reply-seen", "moel-top-k"}
    assert ablations | {"meed2-plain-cpu", "bilstm-joint-cpu", "sing-emp-cpu"} <= set(recipe_names())
