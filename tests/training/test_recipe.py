from functools import cache
from pathlib import Path

import pytest
import yaml

from listenwell.configuration import ConfigError
from listenwell.contract import Vocabulary
from listenwell.data import sources
from listenwell.models import build
from listenwell.training import load_recipe, recipe_names
from listenwell.training.checks import check_objective
from listenwell.training.optimizers import trained_parameters
from listenwell.training.recipe import Stage, Stream, _not_default

PLAIN = "name: mine\nmodel: {name: trs}\n"


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        return str(path)

    return write


@cache
def shipped(name):
    """A recipe of the package, validated once, since that takes a tenth of a second."""
    return load_recipe(name)


@pytest.mark.parametrize("name", recipe_names())
def test_every_shipped_recipe_loads_and_its_model_and_moves_fit(name):
    recipe = shipped(name)
    assert recipe.name == name
    assert recipe.about
    assert recipe.data.written_by or sources.source_name(recipe.data.source)
    choices = dict(recipe.model)
    model = build(choices.pop("name"), choices, Vocabulary(11))
    for stage in recipe.stages:
        assert stage.examples or stage.epochs > 0
        for optimizer in stage.optimizers.values():
            assert trained_parameters(model, optimizer)
        for move in stage.moves:
            check_objective(model, stage, move.objective, move.options)
        for stream in stage.streams.values():
            assert not stream.source or stream.written_by or sources.source_name(stream.source)


def test_the_recipes_of_the_readme_are_there():
    assert {"tiny", "trs", "multi-trs"} <= set(recipe_names())


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_written_out_whole_is_the_same_recipe(name, written):
    recipe = shipped(name)
    again = load_recipe(written(yaml.safe_dump(recipe.to_dict(), sort_keys=False)))
    assert again == recipe
    assert again.fingerprint() == recipe.fingerprint()


@pytest.mark.parametrize("part", ["no-stochasticity", "no-mimicry", "no-grouping", "reply-seen"])
def test_an_ablation_of_mime_is_trained_as_mime_is(part):
    def bare(name):
        actual = load_recipe(name).to_dict()
        for own in ("name", "about", "row"):
            actual.pop(own, None)
        for choice in ("stochasticity", "mimicry", "grouping", "reply_seen"):
            actual["model"].pop(choice, None)
        for stage in actual["stages"]:
            for move in stage["moves"]:
                move["weights"].pop("kl", None)
                move["options"].pop("free", None)
        return actual

    assert bare(f"mime-{part}") == bare("mime")


def test_an_underscore_will_do_for_a_hyphen():
    assert load_recipe("multi_trs") == load_recipe("multi-trs")


def test_a_file_of_ones_own_is_read(written):
    assert load_recipe(written(PLAIN)).stages == [Stage()]


def test_changes_are_made_by_their_path():
    changes = ["stages.0.epochs=2.5", "seed=7", "model.width=32", "decoding.method=greedy", "data.source=my.jsonl"]
    changes += ["stages.0.optimizers.main.rate=0.01", "stages.0.optimizers.main.betas=[0.8, 0.9]", "vectors=null"]
    recipe = load_recipe("tiny", changes)
    assert (recipe.stages[0].epochs, recipe.seed, recipe.model["width"]) == (2.5, 7, 32)
    assert (recipe.decoding.method, recipe.data.source, recipe.vectors) == ("greedy", "my.jsonl", None)
    optimizer = recipe.stages[0].optimizers["main"]
    assert (optimizer.rate, optimizer.betas) == (0.01, (0.8, 0.9))
    assert recipe.stages[0].name == load_recipe("tiny").stages[0].name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("seed", "a change reads key.key=value, found 'seed'"),
        ("seeed=3", "recipe tiny: unknown key 'seeed'; did you mean 'seed'"),
        ("seed=many", "recipe tiny: seed is 'many', expected an integer"),
        ("seed=", "recipe tiny: seed has no value"),
        ("seed=[1", r"--set seed=\[1: '\[1' is not a YAML value"),
        ("stages.3.epochs=2", "--set stages.3.epochs=2: '3' is not one of the 1 items there"),
        ("stages.first.epochs=2", "--set stages.first.epochs=2: 'first' is not one of the 1 items there"),
        ("stages.5=2", "--set stages.5=2: '5' is not one of the 1 items there"),
        ("name.first=x", "--set name.first=x: 'name' holds a single value"),
        ("stages.0.epochz=2", "recipe tiny: stages.0: unknown key 'epochz'; did you mean 'epochs'"),
        ("encoding.max_contxt=2", "recipe tiny: encoding: unknown key 'max_contxt'; did you mean 'max_context'"),
        ("encoding.max_context=1", "recipe tiny: max_context is 1, expected at least 2"),
        (
            "decoding.method=bream",
            "recipe tiny: decoding.method is 'bream', expected one of greedy, sample, beam; did you mean 'beam'",
        ),
        ("decoding.beams=0", "recipe tiny: Decoding.beams is 0, expected an integer of at least 1"),
        ("text.kind=letters", "recipe tiny: text.kind is 'letters', expected one of word"),
        ("stages.0.keep=all", "recipe tiny: stages.0.keep is 'all', expected one of best, last"),
    ],
)
def test_a_change_that_cannot_be_made_names_its_place(change, message):
    with pytest.raises(ConfigError, match=f"(?s)^{message}"):
        load_recipe("tiny", [change])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("modle: {name: trs}\nname: x\n", r"recipe \S+mine.yaml: unknown key 'modle'; did you mean 'model'"),
        ("name: x\n", r"recipe \S+mine.yaml: the key 'model' is missing"),
        ("name: [x]\nmodel: {name: trs}\n", r"recipe \S+mine.yaml: name is \['x'\], expected a text"),
        ("model: trs\nname: x\n", r"recipe \S+mine.yaml: model is 'trs', expected keys with values"),
        (PLAIN + "stages: [{epochs: soon}]\n", r"recipe \S+mine.yaml: stages.0.epochs is 'soon', expected a number"),
        (
            PLAIN + "stages: [{moves: [{optimizer: man}]}]\n",
            "stage train: unknown optimizer 'man'; did you mean 'main'",
        ),
        (
            PLAIN + "stages: [{moves: [{stream: trian}], streams: {train: {examples: 3}}}]\n",
            "stage train: unknown stream 'trian'; did you mean 'train'",
        ),
        (PLAIN + "stages: [{moves: []}]\n", "stage train has no moves"),
        (
            PLAIN + "stages: [{moves: [{hold: true}]}]\n",
            "stage train: a move that holds needs one of the same optimizer",
        ),
        (
            PLAIN + "stages: [{moves: [{hold: true}, {optimizer: b}], optimizers: {main: {rate: 1}, b: {rate: 1}}}]\n",
            "stage train: a move that holds needs one of the same optimizer right after it",
        ),
        (PLAIN + "stages: [{moves: [{times: 0}]}]\n", "a move is made at least once a round, found times: 0"),
        (PLAIN + "stages: [{streams: {train: {examples: 0}}}]\n", "a stream needs a limit to its batches"),
        (
            PLAIN + "stages: [{optimizers: {main: {rate: fast}}}]\n",
            "stages.0.optimizers.main.rate is 'fast', expected a number",
        ),
        (
            PLAIN + "stages: [{streams: {train: {sides: [situation, reply]}}}]\n",
            r"a situation has no other side; write sides: \[situation\]",
        ),
        (
            PLAIN + "stages: [{streams: {train: {sides: [context, opening]}}}]\n",
            r"an opening has no other side; write sides: \[opening\]",
        ),
        ("- a\n- b\n", r"\S+mine.yaml: a recipe is a mapping, found list"),
        ("", r"\S+mine.yaml: a recipe is a mapping, found NoneType"),
        ("name: [\n", r"\S+mine.yaml line 2: not valid YAML"),
    ],
)
def test_a_recipe_that_makes_no_sense_names_the_place(written, text, message):
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        load_recipe(written(text))


def test_an_unknown_recipe_is_told_the_near_one(tmp_path):
    with pytest.raises(ConfigError, match="unknown recipe 'tinny'; did you mean 'tiny'"):
        load_recipe("tinny")
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: no such recipe file"):
        load_recipe(str(tmp_path / "nowhere.yaml"))


def test_a_stream_without_any_limit_is_refused():
    assert Stream(examples=0, tokens=10).tokens == 10
    with pytest.raises(ConfigError, match="examples or tokens above 0"):
        Stream(examples=0, tokens=0)


def test_a_stage_is_validated_on_the_validation_split_unless_another_is_named(written):
    stages = load_recipe(written(PLAIN + "stages: [{valid: {source: shipped}}, {valid: {split: test}}]\n")).stages
    assert [(stage.valid.source, stage.valid.split) for stage in stages] == [("shipped", "valid"), ("", "test")]


def test_the_fingerprint_changes_with_what_shapes_the_weights_and_with_nothing_else():
    first = load_recipe("tiny").fingerprint()
    for change in ("seed=2", "model.width=64", "stages.0.epochs=3", "data.source=x", "text.least=2", "vectors=x"):
        assert load_recipe("tiny", [change]).fingerprint() != first, change
    for change in ("about=other", "row=x/y/z", "decoding.beams=4"):
        assert load_recipe("tiny", [change]).fingerprint() == first, change


def test_recipes_lie_inside_the_package():
    import listenwell

    folder = Path(listenwell.__file__).parent / "recipes"
    assert {path.stem for path in folder.glob("*.yaml")} == set(recipe_names())


def test_a_fingerprint_tells_what_was_not_default_and_not_the_defaults(tiny_recipe):
    recipe = tiny_recipe()
    assert recipe.fingerprint() == tiny_recipe(seed=1, about="another line").fingerprint()
    assert recipe.fingerprint() != tiny_recipe(seed=2).fingerprint()
    before = recipe.fingerprint()
    recipe.stages[0].optimizers["main"].rate = 1e-9
    assert recipe.fingerprint() != before
    assert "floor" not in str(_not_default(recipe))


@pytest.mark.parametrize(
    "change",
    ["stages.0.epochs=-1", "stages.0.examples=-5", "stages.0.validate_every=0", "stages.0.patience=-1", "seed=-1"],
)
def test_a_budget_below_zero_is_refused(change):
    name, _, number = change.rpartition("=")
    with pytest.raises(ConfigError, match=f"{name.rpartition('.')[2]} is {number}"):
        load_recipe("tiny", [change])
