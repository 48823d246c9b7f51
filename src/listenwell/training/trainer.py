"""The loop: stages, rounds of moves, validation, checkpoints. Knows no model and no corpus by name."""

from __future__ import annotations

import inspect
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn

from listenwell import checkpoint
from listenwell.batching import Encoded, collate, ordered_batches
from listenwell.checkpoint import Checkpoint
from listenwell.configuration import ConfigError
from listenwell.models.contract import Batch, Moment, Term
from listenwell.taxonomy import unknown_name
from listenwell.training.data import Feed, feeds
from listenwell.training.display import Display, Journal, describe
from listenwell.training.recipe import Move, Optimizer, Recipe, Stage
from listenwell.training.resuming import Place, read_state, write_state
from listenwell.training.schedule import rate

LOG_EVERY = 50  # updates: often enough to see a curve, rare enough to cost nothing


class TrainingError(RuntimeError):
    """Training cannot go on; the message says where it stood and what it saw."""


class Interrupted(Exception):  # noqa: N818  not an error: a wish that was met
    """A person asked to stop; everything is saved."""


@dataclass
class Means:
    """Running sums of the named terms since they were last read."""

    sums: dict[str, list[float]] = field(default_factory=dict)

    def add(self, terms: dict[str, Term]) -> None:
        for name, term in terms.items():
            entry = self.sums.setdefault(name, [0.0, 0.0])
            entry[0] += float((term.total if term.plain is None else term.plain).detach())
            entry[1] += term.count

    def take(self) -> dict[str, float]:
        means = {name: total / max(count, 1.0) for name, (total, count) in self.sums.items()}
        self.sums = {}
        return means


class Trainer:
    """Carries out a recipe's stages on a model, from wherever `place` says the run stands."""

    def __init__(
        self,
        recipe: Recipe,
        made: Checkpoint,
        valid: Encoded,
        folder: Path,
        place: Place,
        display: Display,
        save_every: float = 300.0,
    ) -> None:
        self.recipe, self.made, self.model = recipe, made, made.model
        self.valid, self.folder, self.place, self.display = valid, folder, place, display
        self.save_every = save_every
        self.journal = Journal(folder, place.update)
        self.optimizers: dict[str, torch.optim.Optimizer] = {}
        self.ready: dict[str, Encoded] = {}
        self._stop = False
        self._saved = time.monotonic()
        self._learning: str | None = None

    def run(self, resume_from: Path | None) -> None:
        try:
            self._check()
            with self.display, stop_on_signal(self._ask_to_stop):
                while self.place.stage < len(self.recipe.stages):
                    self._stage(self.recipe.stages[self.place.stage], resume_from)
                    resume_from = None
                self.place.finished = True
                self._save()
        finally:
            self.journal.close()

    def _ask_to_stop(self) -> None:
        self._stop = True

    def _check(self) -> None:
        """What a recipe asks of its model, for all stages before the first: a mistake shows now, not in hours."""
        for stage in self.recipe.stages:
            for move in stage.moves:
                if move.objective not in self.model.objectives:
                    message = unknown_name("objective", move.objective, self.model.objectives)
                    raise ConfigError(f"stage {stage.name}: {message}")
                method = getattr(self.model, self.model.objectives[move.objective])
                _, _, *known = inspect.signature(method).parameters  # behind the batch and the moment
                for option in move.options:
                    if option not in known:
                        raise ConfigError(f"stage {stage.name}: {unknown_name('option', option, known)}")
            for options in stage.optimizers.values():
                self._learned(options)

    # One stage

    def _stage(self, stage: Stage, resume_from: Path | None) -> None:
        streams = feeds(self.recipe, stage, self.made.tokenizer, self.ready)
        first = streams[stage.moves[0].stream]
        self.optimizers = {name: self._optimizer(options) for name, options in stage.optimizers.items()}
        self._learning = None
        if resume_from is not None:
            read_state(resume_from, self.optimizers)
        for name, (epoch, batch) in self.place.cursors.items():
            streams[name].epoch, streams[name].batch = epoch, batch
        budget = stage.examples or round(stage.epochs * len(first.data))
        self.display.stage(f"{self.recipe.name}: {stage.name}", budget, self.place.seen)
        self._rounds(stage, streams, first, budget)
        if stage.keep == "last" or self.place.best is None or not (self.folder / "best").exists():
            self._save_best({}, needed=self.place.stage == len(self.recipe.stages) - 1)
        else:
            checkpoint.load_weights(self.model, self.folder / "best" / "model.safetensors")
        self.place.stage, self.place.rounds, self.place.seen = self.place.stage + 1, 0, 0
        self.place.epochs_ended = self.place.validations = self.place.stale = 0
        self.place.best, self.place.cursors, self.place.sums = None, {}, {}
        self.optimizers = {}  # the next stage has its own: these would be taken for them by who goes on from here
        self._save()

    def _rounds(self, stage: Stage, streams: dict[str, Feed], first: Feed, budget: int) -> None:
        self.model.train()
        means, place = Means(self.place.sums), self.place
        every = stage.validate_every * len(first.data)
        clock, seen_then = time.monotonic(), place.seen
        while place.seen < budget and not (stage.patience and place.stale >= stage.patience):
            before = place.update
            for move in stage.moves:
                for _ in range(move.times):
                    size = self._update(stage, move, streams[move.stream], place.seen / budget, means)
                    if streams[move.stream] is first:
                        place.seen += size
                        place.total_seen += size
            place.rounds += 1
            place.cursors = {name: [feed.epoch, feed.batch] for name, feed in streams.items()}
            ends = place.seen >= budget
            if place.update // LOG_EVERY > before // LOG_EVERY:
                speed = (place.seen - seen_then) / max(time.monotonic() - clock, 1e-9)
                self._log(stage, means.take(), speed, budget)
            place.sums = means.sums
            if first.epoch > place.epochs_ended:
                place.epochs_ended = first.epoch
                self.model.on_epoch_end(stage.name, lambda: self._whole(first.data), last=ends)
            if ends or place.seen >= (place.validations + 1) * every:
                # Time and speed count training; what validation takes is counted in seconds only.
                place.seconds += time.monotonic() - clock
                begun = time.monotonic()
                self._validate(stage)
                place.seconds += time.monotonic() - begun
                self._save()
                clock, seen_then = time.monotonic(), place.seen
            elif self._stop or time.monotonic() - self._saved > self.save_every:
                place.seconds += time.monotonic() - clock
                self._save()
                clock, seen_then = time.monotonic(), place.seen
            if self._stop:
                raise Interrupted

    def _update(self, stage: Stage, move: Move, feed: Feed, progress: float, means: Means) -> int:
        """One batch, one step of one optimizer."""
        batch = feed.draw()
        options = stage.optimizers[move.optimizer]
        self._let_learn(move.optimizer, options)
        terms = self.model.objective(move.objective, batch, Moment(self.place.rounds, progress), **move.options)
        self._check_terms(stage, move, terms)
        loss = sum(
            (move.weights.get(name, 1.0) * term.mean for name, term in terms.items() if term.learned),
            torch.zeros(()),
        )
        if not torch.isfinite(loss):
            raise TrainingError(self._not_finite(stage, terms, feed, batch, "loss"))
        loss.backward()
        optimizer = self.optimizers[move.optimizer]
        if options.clip:
            learned = [p for group in optimizer.param_groups for p in group["params"]]
            if not torch.isfinite(nn.utils.clip_grad_norm_(learned, options.clip)):
                raise TrainingError(self._not_finite(stage, terms, feed, batch, "gradient"))
        for group in optimizer.param_groups:
            group["lr"] = rate(options, self.place.rounds, progress)
        optimizer.step()
        self.model.zero_grad(set_to_none=True)
        self.place.update += 1
        means.add(terms)
        return len(batch)

    def _check_terms(self, stage: Stage, move: Move, terms: dict[str, Term]) -> None:
        if move is stage.moves[0] and stage.criterion not in terms:
            raise ConfigError(f"stage {stage.name}: {unknown_name('criterion', stage.criterion, terms)}")
        for name in move.weights:
            if name not in terms:
                raise ConfigError(f"stage {stage.name}: a weight of an {unknown_name('loss', name, terms)}")

    def _not_finite(self, stage: Stage, terms: dict[str, Term], feed: Feed, batch: Batch, what: str) -> str:
        ids = ", ".join(feed.data.ids[row] for row in batch.rows)
        parts = ", ".join(f"{name} {float(term.mean.detach()):g}" for name, term in terms.items())
        return (
            f"stage {stage.name}, update {self.place.update}: the {what} is not a finite number ({parts}). "
            f"The batch: {ids}. The last checkpoint is untouched; a lower rate or stronger clipping may help, "
            f"such as --set stages.{self.place.stage}.optimizers.main.rate=3e-4"
        )

    # Optimizers

    def _learned(self, options: Optimizer) -> dict[str, nn.Parameter]:
        chosen = {
            name: parameter
            for name, parameter in self.model.named_parameters()
            if any(fnmatch(name, pattern) for pattern in options.learns)
        }
        if not chosen:
            raise ConfigError(f"no parameter of {self.made.name} is named like {', '.join(options.learns)}")
        return chosen

    def _optimizer(self, options: Optimizer) -> torch.optim.Optimizer:
        learned = list(self._learned(options).values())
        groups = [
            {"params": [p for p in learned if p.ndim > 1], "weight_decay": options.decay},
            {"params": [p for p in learned if p.ndim <= 1], "weight_decay": 0.0},
        ]
        kind = torch.optim.AdamW if options.kind == "adamw" else torch.optim.Adam
        return kind([group for group in groups if group["params"]], lr=options.rate, betas=options.betas, fused=True)

    def _let_learn(self, name: str, options: Optimizer) -> None:
        """Only what this optimizer moves collects gradients; they still flow through the rest."""
        if self._learning == name:
            return
        learned = self._learned(options)
        for key, parameter in self.model.named_parameters():
            parameter.requires_grad_(key in learned)
        self._learning = name

    # Looking and keeping

    def _whole(self, data: Encoded) -> Iterator[Batch]:
        for rows in ordered_batches(data.lengths()):
            yield collate(data, rows, self.made.tokenizer.pad)

    def _validate(self, stage: Stage) -> None:
        move, means, place = stage.moves[0], Means(), self.place
        self.model.eval()
        with torch.inference_mode():
            for batch in self._whole(self.valid):
                means.add(self.model.objective(move.objective, batch, Moment(place.rounds, 1.0), **move.options))
        self.model.train()
        found = means.take()
        place.validations += 1
        value = found[stage.criterion]
        better = math.isfinite(value) and (place.best is None or value < place.best)
        place.stale = 0 if better else place.stale + 1
        record = {"stage": stage.name, "examples": place.total_seen, "seconds": place.seconds, **found}
        self.journal.write("valid", place.update, record)
        mark = " · best so far" if better else ""
        self.display.say(f"{stage.name}: {place.seen:,} examples: validation {describe(found)}{mark}")
        # What could not be written is not the best: a later one that is better than the one kept must take its place.
        if better and (stage.keep == "last" or self._save_best(found)):
            place.best = value

    def _log(self, stage: Stage, means: dict[str, float], speed: float, budget: int) -> None:
        self.display.update(self.place.seen, budget, means, speed)
        record: dict[str, Any] = {"stage": stage.name, "examples": self.place.total_seen, "speed": speed, **means}
        for name, optimizer in self.optimizers.items():
            record[f"rate-{name}"] = optimizer.param_groups[0]["lr"]
        self.journal.write("train", self.place.update, record)

    def _meta(self, found: dict[str, float]) -> dict[str, Any]:
        progress = {"examples": self.place.total_seen, "seconds": round(self.place.seconds, 1), "validation": found}
        return {**self.made.meta, **progress}

    def _save_best(self, found: dict[str, float], needed: bool = False) -> bool:
        whole = Checkpoint(**{**vars(self.made), "meta": self._meta(found)})
        return self._keep(lambda: checkpoint.save(whole, self.folder / "best"), needed)

    def _save(self) -> None:
        """The checkpoint that a run goes on from; the one before it stays beside it."""

        def write(place: Path) -> None:
            write_state(place, self.place, self.optimizers)

        self._keep(
            lambda: checkpoint.save(self.made, self.folder / "last", extra=write, previous=self.folder / "previous"),
            needed=self._stop or self.place.finished,
        )
        self._saved = time.monotonic()

    def _keep(self, save: Callable[[], None], needed: bool) -> bool:
        """Whether it was kept. A full disk must not end a run with hours behind it: the last good one stays."""
        try:
            save()
        except OSError as problem:
            if needed:
                raise TrainingError(f"checkpoint not written ({problem}); the one before it is whole") from problem
            self.display.warn(f"checkpoint not written ({problem}); the one before it is whole, going on")
            return False
        return True


@contextmanager
def stop_on_signal(ask: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) asks to stop after this update; the second one stops at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def heard(number: int, frame: FrameType | None) -> None:
        ask()
        signal.signal(number, before[signal.Signals(number)])

    before = {number: signal.signal(number, heard) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
