"""Trains a recipe in one call, or resumes an interrupted run as if it had never stopped."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

import torch
import yaml
from rich.console import Console
from torch import Tensor

from listenwell import __version__, checkpoint, outputs
from listenwell.checkpoint import Checkpoint, CheckpointError
from listenwell.classifiers.label_cache import fingerprint as weights_hash
from listenwell.configuration import ConfigError
from listenwell.contract import LabelSets, Model
from listenwell.data.batching import Encoded
from listenwell.models import build
from listenwell.training.curves import draw
from listenwell.training.data import (
    check_sources,
    combined_seed,
    encode_split,
    file_hashes,
    input_files,
    learn_tokenizer,
    targets,
    training_hash,
    unknown_emotions,
    word_prior,
)
from listenwell.training.display import Display
from listenwell.training.processes import Precision, Processes
from listenwell.training.recipe import Recipe
from listenwell.training.recipe_files import recipe_names
from listenwell.training.resume import RunState, read_run_state, read_training
from listenwell.training.trainer import Trainer
from listenwell.weights import find

RECIPE_FILE = "recipe.yaml"
WRITTEN_BY = "# Written by listenwell train: the recipe of this run, as it was trained."
RUN_FILES = frozenset(
    {RECIPE_FILE, "log.jsonl", "log.writing", "tensorboard", "curves.png", ".last.writing", ".best.writing"}
)
"""What a run may have written to its folder before its first checkpoint."""


def train(
    recipe: Recipe,
    folder: Path,
    *,
    resume: bool = False,
    quiet: bool = False,
    save_every: float = 300.0,
    precision: Precision | None = None,
    device: Literal["auto", "cpu"] = "auto",
) -> Path:
    """Train into `folder` and return the path of the trained system's checkpoint, `folder/best`.

    A resumed run adopts the recipe's decoding, even if it is already finished; everything else must be unchanged. Under
    `accelerate launch`, all processes call this in the same way, and `folder` must be visible to all of them.
    """
    processes = Processes(precision, device)
    display = Display(Console(stderr=True), quiet or not processes.main)
    _check_folder(recipe, folder, resume)
    check_sources(recipe)
    data_hash, files = training_hash(recipe), input_files(recipe)
    hashes = file_hashes(files)
    fingerprint = f"{recipe.fingerprint()}-{data_hash}"
    if processes.main:
        for name in ("last", "best"):
            outputs.settle(folder / name)
    processes.wait()
    newest = _newest(folder, display) if resume else None
    if newest is None:
        trained = _fresh(recipe, folder, {"hash": data_hash, "files": hashes}, display, processes)
        state, source = RunState(fingerprint, files=hashes), None
        if processes.main:
            folder.mkdir(parents=True, exist_ok=True)
            _write_recipe(recipe, folder)
    else:
        trained, state, source = newest
        _check_unchanged(folder, state, fingerprint, hashes, files)
        processes.wait()  # until all have read the files that may be rewritten
        _take_decoding(recipe, trained, folder, state, display, processes)
        if state.finished:
            display.say(f"{folder} is trained to the end of its recipe.")
            processes.end()
            return folder / "best"
        display.say(f"resuming from {source}: {state.total_seen:,} examples seen")
    if processes.index:  # the same weights everywhere, but not the same dropout
        torch.manual_seed(combined_seed(recipe.seed, processes.index, state.update))
    Trainer(recipe, trained, folder, state, display, save_every, processes).run(source)
    if processes.main:
        draw(folder)
    minutes = state.seconds / 60
    display.say(f"trained on {state.total_seen:,} examples in {minutes:.1f} minutes: {folder / 'best'}")
    processes.end()
    return folder / "best"


def _check_unchanged(
    folder: Path, state: RunState, fingerprint: str, hashes: dict[str, str], files: Mapping[str, object]
) -> None:
    """Raises ConfigError if the run cannot be resumed with this recipe and these files. Runs of earlier versions only
    recorded the hash of the training split, as part of the fingerprint."""
    changed = [name for name, known in state.files.items() if hashes.get(name, known) != known]
    if changed:
        names = "; ".join(f"{name} ({files[name]})" for name in changed)
        raise ConfigError(
            f"{folder} was begun with other data: {names}: changed since. Put the earlier file back to resume, "
            "or start a new run in another folder with --out"
        )
    if state.fingerprint != fingerprint:
        raise ConfigError(f"{folder} was begun with another recipe or other data; name another folder with --out")


def _check_folder(recipe: Recipe, folder: Path, resume: bool) -> None:
    """Checks that the run may write there: a new run needs a folder without other files, a resumed one its own."""
    begun = any((folder / name).exists() for name in ("last", "previous", "best", ".last.old", ".best.old"))
    if begun and not resume:
        raise ConfigError(f"{folder} already holds a run: continue it with --resume, or name another folder with --out")
    if begun:
        outputs.check_parent(folder / "best", "copy the run to a place where it can be changed")
    else:
        owner = outputs.Owner("train", RUN_FILES, lambda place: _wrote_recipe(recipe, place))
        outputs.check_folder(folder, owner)


def _wrote_recipe(recipe: Recipe, folder: Path) -> bool:
    """Whether a folder without a checkpoint belongs to a run that was stopped early."""
    try:
        text = (folder / RECIPE_FILE).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
    return text.startswith(WRITTEN_BY) or text == _recipe_text(recipe)  # earlier versions did not write the header


def _newest(folder: Path, display: Display) -> tuple[Checkpoint, RunState, Path] | None:
    """The newest readable checkpoint; None if none was ever written."""
    problems = []
    for name in ("last", "previous"):
        saved = folder / name
        if not saved.exists():
            continue
        try:
            read_training(saved)
            return checkpoint.load(saved), read_run_state(saved), saved
        except (CheckpointError, ConfigError, ValueError) as problem:
            problems.append(str(problem))
            display.warn(f"{problem}; trying the checkpoint before it")
    if problems:
        raise CheckpointError(f"no checkpoint in {folder} can be read: {'; '.join(problems)}")
    return None


def _take_decoding(
    recipe: Recipe, trained: Checkpoint, folder: Path, state: RunState, display: Display, processes: Processes
) -> None:
    """Applies the recipe's current decoding to the run. No weight depends on it, so it is often chosen last.

    A resumed run rewrites its other checkpoints itself.
    """
    before, trained.decoding = trained.decoding, recipe.decoding
    if "recipe" in trained.meta:
        trained.meta["recipe"]["decoding"] = asdict(recipe.decoding)
    if not processes.main:
        return
    changed = before != recipe.decoding
    for name in ("best", "last") if state.finished else ("best",):
        if (folder / name).exists():
            changed |= checkpoint.set_decoding(folder / name, recipe.decoding)
    if changed:
        _write_recipe(recipe, folder)
        display.say(f"{folder} now decodes by {recipe.decoding.signature()}, as its recipe says")


def _write_recipe(recipe: Recipe, folder: Path) -> None:
    (folder / RECIPE_FILE).write_text(f"{WRITTEN_BY}\n{_recipe_text(recipe)}", encoding="utf-8")


def _recipe_text(recipe: Recipe) -> str:
    return yaml.safe_dump(recipe.to_dict(), sort_keys=False)


def _fresh(recipe: Recipe, folder: Path, data: dict[str, Any], display: Display, processes: Processes) -> Checkpoint:
    """A new model. Its weights depend only on the seed, the training data and the start checkpoint."""
    start = _start(recipe, folder)
    parts = {} if start is None else dict(start.parts)
    for part, name in recipe.parts.items():
        parts[part] = _trained(f"parts.{part}", name, recipe, folder)
        if processes.main and not parts[part].model.talks and "calibration" not in parts[part].meta:
            place = folder.parent / name
            command = f"listenwell calibrate {place if place.is_dir() else find(name)}"
            display.warn(f"parts.{part}: {name} is not calibrated, and this run keeps it as it is; first: {command}")
    tokenizer = learn_tokenizer(recipe) if start is None else start.tokenizer
    emotions: Counter[str] = Counter()
    encoded = encode_split(recipe, recipe.data, recipe.data.split, tokenizer, cut_replies=True, emotions=emotions)
    torch.manual_seed(recipe.seed)
    choices: dict[str, Any] = dict(recipe.model)
    name = choices.pop("name", None)
    if not isinstance(name, str):
        raise ConfigError(f"recipe {recipe.name}: model needs a name")
    name = name.replace("_", "-")
    model = build(name, choices, tokenizer.vocabulary, recipe.own_label_sets())
    known = targets(recipe, recipe.data, LabelSets(emotion=model.emotions)).emotions
    if warning := unknown_emotions(emotions, known):
        display.warn(warning)
    if start is None:
        model.initialise(word_prior(recipe, tokenizer, encoded))
    else:
        _take_weights(model, start, recipe)
    size = sum(parameter.numel() for parameter in model.parameters())
    display.say(f"{name}: {size / 1e6:.1f}M parameters, {len(tokenizer):,} tokens, {len(encoded):,} examples")
    meta = {
        "recipe": recipe.to_dict(),
        "seed": recipe.seed,
        "data": {
            "source": recipe.data.source,
            **({} if recipe.data.part is None else {"part": recipe.data.part}),
            **data,
            "examples": len(encoded),
        },
        "languages": _languages(encoded, start),
        "parameters": size,
        "listenwell": __version__,
        "commit": _commit(),
        "begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "threads": torch.get_num_threads(),
        "processes": processes.count,
        "precision": processes.precision,
        "torch": torch.__version__,
        **({} if start is None else {"start": _provenance(recipe.start, start)}),
    }
    return Checkpoint(name, model, tokenizer, recipe.encoding, recipe.decoding, meta, parts)


def _languages(encoded: Encoded, start: Checkpoint | None) -> list[str]:
    """The languages of the data and of the start checkpoint; the trainer adds those of other streams."""
    earlier = () if start is None else start.meta.get("languages", ("en",))
    return list(dict.fromkeys([*(name for name, _ in encoded.languages.most_common()), *earlier]))


def _trained(key: str, name: str, recipe: Recipe, folder: Path) -> Checkpoint:
    """Loads the system named in the recipe under `key`: a run of that name next to this one, else by name or path."""
    beside = folder.parent / name
    try:
        return checkpoint.load(find(beside if beside.is_dir() else name))
    except ValueError as problem:
        hint = f"; is it trained yet? listenwell train {name}" if name in recipe_names() else ""
        raise ConfigError(f"recipe {recipe.name}, {key}: {problem}{hint}") from problem


def _start(recipe: Recipe, folder: Path) -> Checkpoint | None:
    """The checkpoint to start from, if any. Its vocabulary must match what the recipe asks for."""
    if not recipe.start:
        return None
    start = _trained("start", recipe.start, recipe, folder)
    kind, size = recipe.text.kind, recipe.text.size
    if start.tokenizer.kind != kind or (kind == "bpe" and len(start.tokenizer) > size):
        theirs = f"{len(start.tokenizer):,} tokens of kind {start.tokenizer.kind}"
        ours = f"text.kind {kind}" + (f" and text.size {size:,}" if kind == "bpe" else "")
        raise ConfigError(f"recipe {recipe.name}: {recipe.start} has {theirs}, which is not what {ours} asks for")
    return start


def _provenance(name: str, start: Checkpoint) -> dict[str, Any]:
    """What to record about the start checkpoint: the terms of its training data also apply to these weights."""
    return {"name": name, "hash": weights_hash(start), "data": checkpoint.learned_from(start.meta)}


def _take_weights(model: Model, start: Checkpoint, recipe: Recipe) -> None:
    model.borrow()
    own, weights = model.state_dict(), start.model.state_dict()
    for name in own.keys() | weights.keys():
        if any(fnmatch(name, pattern) for pattern in model.renewable) and not _fits(own.get(name), weights.get(name)):
            weights.pop(name, None)
            weights |= {name: own[name]} if name in own else {}
    try:
        model.load_state_dict(weights)
    except RuntimeError as problem:
        raise ConfigError(
            f"recipe {recipe.name}: the weights of {recipe.start}, a {start.name}, do not fit this model: {problem}"
        ) from problem


def _fits(one: Tensor | None, other: Tensor | None) -> bool:
    return one is not None and other is not None and one.shape == other.shape


def _commit() -> str | None:
    """The commit of the checkout this package runs from, with a + if it has changes; None for an installed package."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return described.stdout.strip()
