import errno
import math
import os
import resource
from dataclasses import replace
from statistics import mean

import pytest
import torch
from safetensors.torch import load_file

from listenwell import checkpoint
from listenwell.configuration import ConfigError
from listenwell.data.sources import jsonl, shipped
from listenwell.models.trs import Trs
from listenwell.training import run, trainer
from listenwell.training.display import read_journal
from listenwell.training.optimizers import OptimizerSet
from listenwell.training.recipe import Optimizer
from listenwell.training.resume import read_run_state
from listenwell.training.schedule import rate
from listenwell.training.trainer import Trainer, TrainingError


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    """Log every second update."""
    monkeypatch.setattr(trainer, "LOG_EVERY", 2)


def fit(recipe, folder, **options):
    return run.train(recipe, folder, quiet=True, **options)


def journal(folder, kind):
    return [record for record in read_journal(folder / "log.jsonl") if record["kind"] == kind]


def weights(folder):
    return load_file(folder / "model.safetensors")


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def spy(monkeypatch, look):
    """Call look(trainer, move, before, after) around every update, with copies of all parameters."""
    update = Trainer._update

    def watched(self, stage, move, feed, progress, means):
        before = {name: parameter.detach().clone() for name, parameter in self.model.named_parameters()}
        size = update(self, stage, move, feed, progress, means)
        look(self, move, before, dict(self.model.named_parameters()))
        return size

    monkeypatch.setattr(Trainer, "_update", watched)


# Learning


def test_a_tiny_model_learns_from_the_shipped_corpus(tiny_recipe, tiny_stage, tmp_path):
    stage = tiny_stage(examples=1120, validate_every=0.2, streams={"train": {"examples": 16}})
    recipe = tiny_recipe(data={"source": "shipped"}, stages=[stage])
    best = fit(recipe, tmp_path / "run")
    valid = [record["reply"] for record in journal(tmp_path / "run", "valid")]
    learned = [record["reply"] for record in journal(tmp_path / "run", "train")]
    assert len(valid) >= 3
    assert valid[-1] < valid[0] - 0.05  # it starts at unigrams, and so few steps do not get further
    assert mean(learned[-10:]) < mean(learned[:10]) - 0.1
    whole = checkpoint.load(best)
    assert whole.meta["data"]["source"] == "shipped"
    assert whole.meta["data"]["examples"] > 1400
    assert whole.meta["examples"] >= 1120
    assert whole.meta["validation"]["reply"] == min(valid)
    assert whole.meta["recipe"]["name"] == "tiny"
    assert whole.meta["seed"] == 1
    assert read_run_state(tmp_path / "run" / "last").finished


def test_the_same_recipe_gives_the_same_weights_and_another_seed_others(tiny_recipe, tmp_path):
    one, again, other = (
        weights(fit(tiny_recipe(seed=seed), tmp_path / name)) for name, seed in [("a", 1), ("b", 1), ("c", 2)]
    )
    assert same(one, again)
    assert not same(one, other)


def test_a_run_keeps_its_recipe_beside_it(tiny_recipe, tmp_path):
    from listenwell.training import load_recipe

    fit(tiny_recipe(), tmp_path / "run")
    assert load_recipe(str(tmp_path / "run" / "recipe.yaml")) == tiny_recipe()


def test_every_log_line_says_where_it_stands(tiny_recipe, tmp_path):
    fit(tiny_recipe(), tmp_path / "run")
    records = journal(tmp_path / "run", "train")
    assert [record["update"] for record in records] == list(range(2, 2 * len(records) + 1, 2))
    assert all({"stage", "examples", "speed", "reply", "emotion", "rate-main"} <= set(record) for record in records)


def test_the_rate_of_every_update_is_the_schedules(tiny_recipe, tiny_stage, tmp_path, monkeypatch):
    options = {"rate": 4e-3, "warmup": 5, "schedule": "linear", "floor": 0.1}
    actual = []
    spy(
        monkeypatch,
        lambda self, *_: actual.append((self.state.seen, self.optimizer_set.rates()["rate-main"])),
    )
    fit(tiny_recipe(stages=[tiny_stage(optimizers={"main": options})]), tmp_path / "run")
    assert len(actual) > 10
    for step, (seen, used) in enumerate(actual):
        assert used == pytest.approx(rate(Optimizer(**options), step, seen / 96))


def test_only_matrices_decay(tiny_recipe, tiny_stage, tmp_path, monkeypatch):
    groups = []
    spy(monkeypatch, lambda self, *_: groups.append(self.optimizer_set.optimizers["main"].param_groups))
    stage = tiny_stage(examples=8, optimizers={"main": {"decay": 0.3, "kind": "adamw"}})
    fit(tiny_recipe(stages=[stage]), tmp_path / "run")
    decays = {parameter.ndim: group["weight_decay"] for group in groups[0] for parameter in group["params"]}
    assert decays == {1: 0.0, 2: 0.3}


def test_a_weight_of_nought_takes_a_loss_out(tiny_recipe, tiny_stage, tmp_path):
    optimizers = {"main": {"rate": 5e-3, "warmup": 1, "decay": 0.0}}
    stage = tiny_stage(examples=24, optimizers=optimizers, moves=[{"weights": {"emotion": 0.0}}], keep="last")
    start = weights(fit(tiny_recipe(stages=[tiny_stage(examples=0, epochs=0)]), tmp_path / "start"))
    without_it = weights(fit(tiny_recipe(stages=[stage]), tmp_path / "run"))
    assert torch.equal(without_it["emotion.weight"], start["emotion.weight"])
    assert not torch.equal(without_it["words.table"], start["words.table"])


def test_options_reach_the_objective(tiny_recipe, tiny_stage, tmp_path, monkeypatch):
    seen = []
    likelihood = Trs.likelihood

    def noted(self, batch, moment, smoothing=0.0):
        seen.append((smoothing, moment.step, moment.progress))
        return likelihood(self, batch, moment, smoothing)

    monkeypatch.setattr(Trs, "likelihood", noted)
    fit(tiny_recipe(stages=[tiny_stage(examples=24, moves=[{"options": {"smoothing": 0.1}}])]), tmp_path / "run")
    assert {smoothing for smoothing, _, _ in seen} == {0.1}
    assert [step for _, step, _ in seen][:3] == [0, 1, 2]
    assert seen[0][2] == 0.0 < seen[1][2] < seen[2][2] < 1.0


def test_the_model_hears_of_every_epoch_before_it_begins(tiny_recipe, tiny_stage, tmp_path, monkeypatch):
    epochs = []
    monkeypatch.setattr(
        Trs,
        "on_epoch_start",
        lambda self, stage, epoch, batches: (
            epochs.append((stage, epoch, sum(len(b) for b in batches()), self.training)) or ()
        ),
    )
    fit(tiny_recipe(stages=[tiny_stage(epochs=2, examples=0)]), tmp_path / "run")
    assert [(stage, epoch) for stage, epoch, _, _ in epochs] == [("joint", 0), ("joint", 1)]
    assert len({size for _, _, size, _ in epochs}) == 1
    assert not any(training for *_, training in epochs)


def test_what_a_model_sets_anew_learns_afresh(tiny_model):
    model = tiny_model()
    optimizer_set = OptimizerSet(model, {"main": Optimizer()})
    optimizer_set.activate("main")
    sum(parameter.sum() for parameter in model.parameters()).backward()
    optimizer_set.step("main", 0, 0.0)
    before = len(optimizer_set.optimizers["main"].state)
    optimizer_set.forget(["emotion.*"])
    assert len(optimizer_set.optimizers["main"].state) == before - 2
    assert model.emotion.weight not in optimizer_set.optimizers["main"].state


def test_a_factor_scales_the_rate_of_the_parameters_it_names(tiny_model):
    model = tiny_model()
    optimizer_set = OptimizerSet(
        model, {"main": Optimizer(rate=1e-2, warmup=1, schedule="constant", factors={"words.*": 0.1})}
    )
    optimizer_set.activate("main")
    sum(parameter.sum() for parameter in model.parameters()).backward()
    optimizer_set.step("main", 0, 0.0)
    rates = {id(p): group["lr"] for group in optimizer_set.optimizers["main"].param_groups for p in group["params"]}
    assert rates[id(model.words.table)] == pytest.approx(1e-3)
    assert rates[id(model.emotion.weight)] == pytest.approx(1e-2)
    with pytest.raises(ConfigError, match=r"a rate factor is given for wrods\.\*, but no trained parameter"):
        OptimizerSet(model, {"main": Optimizer(factors={"wrods.*": 0.1})})


def test_a_part_that_does_not_learn_does_as_in_use(tiny_model):
    model = tiny_model()
    optimizer_set = OptimizerSet(model, {"decode": Optimizer(learns=["decoder.*"]), "all": Optimizer()})
    optimizer_set.activate("decode")
    assert model.decoder.training
    assert model.decoder.layers[0].dropout.training
    assert not model.encoder.layers[0].dropout.training
    optimizer_set.activate("all")
    assert model.encoder.layers[0].dropout.training


def test_a_held_move_adds_its_gradient_to_the_next_step(tiny_recipe, tiny_stage, tmp_path):
    once = {"rate": 5e-3, "warmup": 1, "decay": 0.0, "clip": 0.0, "schedule": "constant"}
    streams = {"train": {"examples": 8, "rare_as_unknown": 0.0}}
    held = tiny_stage(
        examples=8, keep="last", optimizers={"main": once}, streams=streams,
        moves=[{"hold": True, "weights": {"emotion": 0.0}}, {"weights": {"reply": 0.0}}],
    )  # fmt: skip
    apart = tiny_stage(
        examples=8, keep="last", optimizers={"main": once}, streams=streams,
        moves=[{"weights": {"emotion": 0.0}}, {"weights": {"reply": 0.0}}],
    )  # fmt: skip
    one = weights(fit(tiny_recipe(stages=[held]), tmp_path / "held"))
    two = weights(fit(tiny_recipe(stages=[apart]), tmp_path / "apart"))
    start = weights(fit(tiny_recipe(stages=[tiny_stage(examples=0, epochs=0)]), tmp_path / "start"))
    # Adam's first step moves every parameter with a gradient by the rate, whatever the gradient: with freezing, the
    # decoder moves once, by the first move, and the emotion head once, by the second.
    assert (one["emotion.weight"] - start["emotion.weight"]).abs().max() == pytest.approx(5e-3, rel=1e-2)
    assert (one["words.table"] - start["words.table"]).abs().max() == pytest.approx(5e-3, rel=1e-2)
    assert not torch.equal(one["words.table"], two["words.table"])


SITUATIONS = {
    "moves": [
        {"stream": "train", "hold": True},
        {"objective": "situation", "stream": "situations", "optional": True, "weights": {"situation": 0.5}},
    ],
    "streams": {"train": {"examples": 8}, "situations": {"sides": ["situation"], "examples": 4}},
}


def test_situations_teach_beside_the_replies_in_one_step(tiny_recipe, tiny_stage, tmp_path):
    fit(tiny_recipe(stages=[tiny_stage(**SITUATIONS)]), tmp_path / "run")
    place = read_run_state(tmp_path / "run" / "last")
    assert place.update % 2 == 0
    assert place.total_seen > 96 + 4 * 10
    learned = journal(tmp_path / "run", "train")[-1]
    assert learned["situation"] > 0
    assert 0 <= learned["situation-accuracy"] <= 1
    assert "situation" not in journal(tmp_path / "run", "valid")[-1]


def test_an_optional_move_is_left_out_where_the_data_has_nothing_for_it(tiny_recipe, tiny_stage, tmp_path, capsys):
    corpus = tmp_path / "plain.jsonl"
    kept = [replace(dialogue, situation="") for split in ("train", "valid") for dialogue in shipped.read(split)]
    jsonl.write(kept[::40], corpus)
    data = {"source": str(corpus)}
    run.train(tiny_recipe(data=data, stages=[tiny_stage(**SITUATIONS)]), tmp_path / "without")
    assert "joint: the data has no examples for situations; training without them" in capsys.readouterr().err
    fit(tiny_recipe(data=data), tmp_path / "plain")
    assert same(weights(tmp_path / "without" / "last"), weights(tmp_path / "plain" / "last"))
    needed = {**SITUATIONS, "moves": [{**move, "optional": False} for move in SITUATIONS["moves"]]}
    with pytest.raises(ConfigError, match="there is no example with situation"):
        fit(tiny_recipe(data=data, stages=[tiny_stage(**needed)]), tmp_path / "needed")


def test_a_stage_may_be_validated_on_other_data_by_another_criterion(tiny_recipe, tiny_stage, tmp_path):
    stage = tiny_stage(examples=16, criterion="score", valid={"source": "shipped", "split": "test"})
    fit(tiny_recipe(stages=[stage]), tmp_path / "run")
    actual = journal(tmp_path / "run", "valid")[-1]
    assert actual["score"] == pytest.approx(actual["reply"], rel=1e-5)


def test_a_criterion_that_the_validation_data_does_not_tell_is_an_error(tiny_recipe, tiny_stage, tmp_path):
    path = tmp_path / "no-emotion.jsonl"
    path.write_text(
        '{"split": "valid", "turns": [{"speaker": "speaker", "text": "hi"}, {"speaker": "listener", "text": "ho"}]}\n',
        encoding="utf-8",
    )
    stage = tiny_stage(examples=16, criterion="emotion", valid={"source": str(path), "split": "valid"})
    with pytest.raises(ConfigError, match="its validation data does not give 'emotion'"):
        fit(tiny_recipe(stages=[stage]), tmp_path / "run")


def test_validation_does_not_change_what_is_learned(tiny_recipe, tiny_stage, tmp_path):
    often = fit(tiny_recipe(stages=[tiny_stage(examples=64, validate_every=0.1, keep="last")]), tmp_path / "often")
    once = fit(tiny_recipe(stages=[tiny_stage(examples=64, keep="last")]), tmp_path / "once")
    one, two = weights(often), weights(once)
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_the_end_is_not_validated_twice(tiny_recipe, tiny_stage, tmp_path):
    stage = tiny_stage(examples=320, streams={"train": {"examples": 4}})
    recipe = tiny_recipe(data={"source": "shipped"}, stages=[stage])
    examples = checkpoint.load(fit(recipe, tmp_path / "run")).meta["data"]["examples"]
    stage |= {"validate_every": 0.49 * 320 / examples}  # the second is due right before the end
    fit(tiny_recipe(data={"source": "shipped"}, stages=[stage]), tmp_path / "again")
    first, second = (record["examples"] for record in journal(tmp_path / "again", "valid"))
    assert 156 < first < 164
    assert second >= 320


# Moves, streams and optimizers


def test_optimizers_that_take_turns_move_their_own_parameters_alone(tiny_recipe, tiny_stage, tmp_path, monkeypatch):
    moved = []

    def look(self, move, before, after):
        moved.append((move.optimizer, {name for name in after if not torch.equal(before[name], after[name])}))

    spy(monkeypatch, look)
    stage = tiny_stage(
        examples=32,
        moves=[{"optimizer": "talk"}, {"optimizer": "feel", "times": 2}],
        optimizers={
            "talk": {"rate": 5e-3, "warmup": 1, "learns": ["words.*", "decoder.*", "encoder.*", "speakers.*"]},
            "feel": {"rate": 5e-3, "warmup": 1, "learns": ["emotion.*"]},
        },
    )
    fit(tiny_recipe(stages=[stage]), tmp_path / "run")
    assert [name for name, _ in moved[:6]] == ["talk", "feel", "feel"] * 2
    for name, parameters in moved:
        if name == "feel":
            assert parameters == {"emotion.weight", "emotion.bias"}
        else:
            assert "emotion.weight" not in parameters
            assert {"words.table", "encoder.norm.weight", "speakers.weight"} <= parameters


def test_moves_draw_from_their_own_streams_and_the_first_counts(tiny_recipe, tiny_stage, tmp_path, monkeypatch):
    drawn, turns = {"few": 0, "many": 0}, []
    update = Trainer._update

    def counted(self, stage, move, feed, progress, means):
        size = update(self, stage, move, feed, progress, means)
        drawn[move.stream] += size
        turns.append(move.stream)
        assert size <= {"few": 4, "many": 8}[move.stream]
        return size

    monkeypatch.setattr(Trainer, "_update", counted)
    stage = tiny_stage(
        examples=20,
        moves=[{"stream": "few"}, {"stream": "many", "times": 2}],
        streams={"few": {"examples": 4}, "many": {"examples": 8, "replies_by": ["speaker"]}},
    )
    fit(tiny_recipe(stages=[stage]), tmp_path / "run")
    assert turns == ["few", "many", "many"] * (len(turns) // 3)
    assert 20 <= drawn["few"] < 24
    assert drawn["many"] > 2 * drawn["few"]
    at_the_end = journal(tmp_path / "run", "valid")[-1]
    assert (at_the_end["examples"], at_the_end["update"]) == (sum(drawn.values()), len(turns))


def test_a_log_is_written_though_rounds_step_over_the_number(tiny_recipe, tiny_stage, tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "LOG_EVERY", 5)
    fit(tiny_recipe(stages=[tiny_stage(examples=40, moves=[{"times": 3}])]), tmp_path / "run")
    assert [record["update"] for record in journal(tmp_path / "run", "train")] == [6]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"criterion": "replly"}, "stage joint: unknown criterion 'replly'; did you mean 'reply'"),
        ({"moves": [{"objective": "likelyhood"}]}, "stage joint: unknown objective 'likelyhood'; did you mean"),
        ({"measure": "likelyhood"}, "stage joint: unknown objective 'likelyhood'; did you mean"),
        (
            {"moves": [{"options": {"smothing": 0.1}}]},
            "stage joint: unknown option 'smothing'; did you mean 'smoothing'",
        ),
        (
            {"moves": [{"weights": {"emotoin": 2.0}}]},
            "stage joint: a weight of an unknown loss 'emotoin'; did you mean",
        ),
        ({"optimizers": {"main": {"learns": ["wrods.*"]}}}, "no parameter of the model matches wrods"),
    ],
)
def test_a_stage_that_asks_for_what_is_not_there_is_told_at_once(tiny_recipe, tiny_stage, tmp_path, fields, message):
    with pytest.raises(ConfigError, match=message):
        fit(tiny_recipe(stages=[tiny_stage(**fields)]), tmp_path / "run")
    assert not (tmp_path / "run" / "last").exists()


def test_a_later_stage_that_cannot_be_done_is_told_before_the_first(tiny_recipe, tiny_stage, tmp_path):
    wrong = tiny_stage(name="second", moves=[{"objective": "adversary"}])
    with pytest.raises(ConfigError, match="stage second: unknown objective 'adversary'"):
        fit(tiny_recipe(stages=[tiny_stage(), wrong]), tmp_path / "run")
    assert not (tmp_path / "run" / "last").exists()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"name": "mutli-trs"}, "unknown model 'mutli-trs'; did you mean 'multi-trs'"),
        ({"width": 8}, "recipe tiny: model needs a name"),
        ({"name": None}, "recipe tiny: model needs a name"),
        ({"name": "trs", "widht": 8}, "model trs: unknown key 'widht'"),
    ],
)
def test_a_model_that_is_none_is_told(tiny_recipe, tmp_path, model, message):
    with pytest.raises(ValueError, match=message):
        fit(tiny_recipe(model=model), tmp_path / "run")


# When to stop, and what to keep


def test_patience_ends_a_stage_that_gets_no_better(tiny_recipe, tiny_stage, tmp_path):
    still = {"main": {"rate": 0.0, "decay": 0.0}}
    stage = tiny_stage(examples=0, epochs=50, validate_every=0.25, patience=3, optimizers=still)
    fit(tiny_recipe(stages=[stage]), tmp_path / "run")
    assert len(journal(tmp_path / "run", "valid")) == 4  # the first is the best, three are no better


def record_validations(monkeypatch, losses):
    """Make the criterion return `losses` at successive validations; returns the weights seen there."""
    seen, validate = [], Trainer._validate
    values = iter(losses)

    def watched(self, stage):
        seen.append({name: value.clone() for name, value in self.model.state_dict().items()})
        loss, likelihood = next(values), self.model.likelihood

        def scripted(batch, moment, **options):
            terms = likelihood(batch, moment, **options)
            terms["reply"].plain = torch.tensor(loss * terms["reply"].count)
            return terms

        self.model.likelihood = scripted
        validate(self, stage)
        del self.model.likelihood

    monkeypatch.setattr(Trainer, "_validate", watched)
    return seen


@pytest.mark.parametrize(("keep", "index"), [("best", 1), ("last", 3)])
def test_a_stage_keeps_its_best_or_its_last(tiny_recipe, tiny_stage, tmp_path, monkeypatch, keep, index):
    seen = record_validations(monkeypatch, [5.0, 2.0, 3.0, 2.5])
    stage = tiny_stage(keep=keep, examples=96, validate_every=24 / 50)
    best = fit(tiny_recipe(stages=[stage]), tmp_path / "run")
    assert len(seen) == 4
    assert same(weights(best), seen[index])
    assert same(weights(tmp_path / "run" / "last"), seen[index])
    assert [record["reply"] for record in journal(tmp_path / "run", "valid")] == pytest.approx([5.0, 2.0, 3.0, 2.5])


def test_a_later_stage_starts_from_what_the_one_before_kept_and_is_judged_afresh(
    tiny_recipe, tiny_stage, tmp_path, monkeypatch
):
    starts = []
    stages = Trainer._rounds

    def rounds(self, *arguments):
        starts.append({name: value.clone() for name, value in self.model.state_dict().items()})
        stages(self, *arguments)

    monkeypatch.setattr(Trainer, "_rounds", rounds)
    seen = record_validations(monkeypatch, [2.0, 3.0, 9.0, 8.0])
    first, second = (tiny_stage(name=name, examples=48, validate_every=24 / 50) for name in ("one", "two"))
    best = fit(tiny_recipe(stages=[first, second]), tmp_path / "run")
    assert same(starts[1], seen[0])
    assert same(weights(best), seen[3])


def test_a_validation_that_is_no_number_is_never_the_best(tiny_recipe, tiny_stage, tmp_path, monkeypatch):
    seen = record_validations(monkeypatch, [math.nan, 3.0, math.nan, 4.0])
    best = fit(tiny_recipe(stages=[tiny_stage(validate_every=24 / 50)]), tmp_path / "run")
    assert same(weights(best), seen[1])


# What goes wrong


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_no_number_stops_and_names_its_batch(tiny_recipe, tmp_path, monkeypatch, bad):
    update, batches = Trainer._update, []
    likelihood = Trs.likelihood

    def broken(self, batch, moment, smoothing=0.0):
        terms = likelihood(self, batch, moment, smoothing)
        if self.training and moment.step == 8:
            batches.append(batch.rows)
            terms["reply"].total = terms["reply"].total * bad
        return terms

    monkeypatch.setattr(Trs, "likelihood", broken)
    ids = []

    def noted(self, stage, move, feed, progress, means):
        ids[:] = feed.data.ids
        return update(self, stage, move, feed, progress, means)

    monkeypatch.setattr(Trainer, "_update", noted)
    with pytest.raises(TrainingError) as caught:
        fit(tiny_recipe(), tmp_path / "run")
    message = str(caught.value)
    assert message.startswith(f"stage joint, update 8: the loss is not a finite number (reply {bad:g}, emotion ")
    assert ", ".join(ids[row] for row in batches[0]) in message
    assert "The last checkpoint is untouched" in message
    last = checkpoint.load(tmp_path / "run" / "last")
    assert all(parameter.isfinite().all() for parameter in last.model.parameters())
    assert read_run_state(tmp_path / "run" / "last").update == 7


def test_a_gradient_that_is_no_number_moves_nothing(tiny_recipe, tmp_path, monkeypatch):
    likelihood = Trs.likelihood

    def broken(self, batch, moment, smoothing=0.0):
        terms = likelihood(self, batch, moment, smoothing)
        if self.training and moment.step == 8:
            self.speakers.weight.register_hook(lambda slope: slope * math.inf)
        return terms

    monkeypatch.setattr(Trs, "likelihood", broken)
    with pytest.raises(TrainingError, match="update 8: the gradient is not a finite number"):
        fit(tiny_recipe(), tmp_path / "run")
    assert all(weight.isfinite().all() for weight in weights(tmp_path / "run" / "last").values())


def test_a_folder_with_a_run_in_it_is_not_overwritten(tiny_recipe, tmp_path):
    folder = tmp_path / "run"
    fit(tiny_recipe(), folder)
    before = {path: path.read_bytes() for path in folder.rglob("*.safetensors")}
    for left in ("last", "previous", "best"):
        with pytest.raises(
            ConfigError, match=rf"{folder} already holds a run: continue it with --resume, or name another"
        ):
            fit(tiny_recipe(seed=9), folder)
        assert {path: path.read_bytes() for path in before if path.exists()}.items() <= before.items()
        os.rename(folder / left, tmp_path / left)
    fit(tiny_recipe(seed=9), folder)


def test_a_full_disk_is_warned_of_and_the_run_goes_on(tiny_recipe, tmp_path, monkeypatch, capsys):
    expected = weights(fit(tiny_recipe(), tmp_path / "whole"))
    save, calls = checkpoint.save, []

    def full(*arguments, **options):
        calls.append(arguments)
        if 2 <= len(calls) <= 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        save(*arguments, **options)

    monkeypatch.setattr(checkpoint, "save", full)
    trained = weights(fit(tiny_recipe(), tmp_path / "run"))
    said = capsys.readouterr().err
    assert said.count("warning: checkpoint not written ([Errno 28] No space left on device)") == 3
    assert "the one before it is whole; training continues" in said
    assert same(trained, expected)


def test_a_best_that_was_not_written_is_not_the_one_to_beat(tiny_recipe, tiny_stage, tmp_path, monkeypatch):
    seen = record_validations(monkeypatch, [5.0, 2.0, 3.0, 4.0])
    save = checkpoint.save

    def full(whole, folder, **options):
        if folder.name == "best" and len(seen) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        save(whole, folder, **options)

    monkeypatch.setattr(checkpoint, "save", full)
    best = fit(tiny_recipe(stages=[tiny_stage(validate_every=24 / 50)]), tmp_path / "run")
    assert same(weights(best), seen[2])


def test_the_first_best_of_a_stage_that_was_not_written_does_not_bring_back_the_stage_before(
    tiny_recipe, tiny_stage, tmp_path, monkeypatch
):
    seen = record_validations(monkeypatch, [5.0, 4.0])
    save = checkpoint.save

    def full(whole, folder, **options):
        if folder.name == "best" and len(seen) == 2 and "validation" in whole.meta and whole.meta["validation"]:
            raise OSError(errno.ENOSPC, "No space left on device")
        save(whole, folder, **options)

    monkeypatch.setattr(checkpoint, "save", full)
    stages = [tiny_stage(name=name, examples=24, validate_every=9) for name in ("one", "two")]
    best = fit(tiny_recipe(stages=stages), tmp_path / "run")
    assert same(weights(best), seen[1])


@pytest.mark.parametrize("keep", ["best", "last"])
def test_a_disk_that_stays_full_to_the_end_is_an_error(tiny_recipe, tiny_stage, tmp_path, monkeypatch, keep):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint, "save", full)
    with pytest.raises(TrainingError, match=r"checkpoint not written .*No space left on device"):
        fit(tiny_recipe(stages=[tiny_stage(keep=keep)]), tmp_path / "run")


def test_a_file_that_the_system_will_not_write_is_a_full_disk_too(tiny_recipe, tmp_path, monkeypatch, capsys):
    save, calls = checkpoint.save, []
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limited(*arguments, **options):
        calls.append(arguments)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192 if len(calls) == 3 else soft, hard))
        try:
            save(*arguments, **options)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    monkeypatch.setattr(checkpoint, "save", limited)
    best = fit(tiny_recipe(), tmp_path / "run")
    assert "warning: checkpoint not written" in capsys.readouterr().err
    checkpoint.load(best)
    assert sorted(path.name for path in (tmp_path / "run").iterdir() if path.is_dir()) == [
        "best", "last", "previous", "tensorboard",
    ]  # fmt: skip
