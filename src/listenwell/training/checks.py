"""Checks that a recipe fits its model and its data, before the first update."""

from __future__ import annotations

import inspect
from typing import Any

from listenwell.checkpoint import Checkpoint
from listenwell.configuration import ConfigError
from listenwell.contract import LabelSets, Model
from listenwell.data.batching import Targets
from listenwell.labels.taxonomy import unknown_name
from listenwell.training.data import targets, with_corpus
from listenwell.training.optimizers import trained_parameters
from listenwell.training.recipe import Recipe, Stage, Stream


def check_stages(recipe: Recipe, ckpt: Checkpoint) -> None:
    """Checks all stages before the first one starts: a mistake shows up now, not hours later."""
    for stage in recipe.stages:
        objectives = [(move.objective, move.options) for move in stage.moves]
        if stage.measure:
            objectives.append((stage.measure, stage.moves[0].options))
        for objective, options in objectives:
            check_objective(ckpt.model, stage, objective, options)
        for optimizer in stage.optimizers.values():
            trained_parameters(ckpt.model, optimizer)
        _check_labels(recipe, ckpt, stage)


def check_objective(model: Model, stage: Stage, name: str, options: dict[str, Any]) -> None:
    objectives = model.objectives
    if name not in objectives:
        raise ConfigError(f"stage {stage.name}: {unknown_name('objective', name, objectives)}")
    method = getattr(model, objectives[name])
    _, _, *known = inspect.signature(method).parameters  # after the batch and the moment
    for option in options:
        if option not in known:
            raise ConfigError(f"stage {stage.name}: {unknown_name('option', option, known)}")


def _check_labels(recipe: Recipe, ckpt: Checkpoint, stage: Stage) -> None:
    """Checks that each stream, and the validation data, has labels of the sets that its objectives read."""
    drawn = [(stage.streams.get(move.stream) or Stream(), move.objective) for move in stage.moves]
    drawn.append((stage.valid or Stream(), stage.measure or stage.moves[0].objective))
    read: dict[int, LabelSets] = {}
    for stream, objective in drawn:
        sets = ckpt.model.label_sets(objective)
        corpus = with_corpus(recipe, stream)
        _check_sets(ckpt.name, stage, corpus, objective, targets(recipe, corpus, sets), sets)
        if read.setdefault(id(stream), sets).emotion != sets.emotion and sets.emotion is not None:
            raise ConfigError(
                f"stage {stage.name}: its objectives read emotions of different sets from one stream; "
                "give each a stream of its own"
            )


def _check_sets(model: str, stage: Stage, stream: Stream, objective: str, given: Targets, sets: LabelSets) -> None:
    for key, given_set, wanted in (
        ("labels", given.labels, sets.label),
        ("emotions", given.emotions, sets.emotion),
    ):
        if wanted is not None and given_set != wanted:
            raise ConfigError(
                f"stage {stage.name}, {stream.source}: its {key} are {given_set.name}, but {objective} of "
                f"{model} knows {key}: {wanted.name}"
            )
