"""The training loop: stages, rounds of moves, validation, checkpoints. Independent of any model or corpus."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from listenwell import checkpoint
from listenwell.checkpoint import Checkpoint
from listenwell.classifiers.label_cache import LABELLER, cached_labeller
from listenwell.configuration import ConfigError
from listenwell.contract import Batch, Moment, Term
from listenwell.data.batching import Encoded, collate, lengthened, ordered_batches
from listenwell.labels.taxonomy import unknown_name
from listenwell.training.averaging import Average
from listenwell.training.checks import check_stages
from listenwell.training.data import Feed, encode_valid, feeds
from listenwell.training.display import Display, Journal, describe
from listenwell.training.means import RunningMeans
from listenwell.training.optimizers import OptimizerSet, trained_parameters
from listenwell.training.processes import Processes, TrainingError
from listenwell.training.recipe import Move, Recipe, Stage
from listenwell.training.resume import RunState, read_mean, read_state, write_state
from listenwell.training.samples import sample_replies
from listenwell.training.signals import Interrupted, stop_on_signal

SCORE = "score"
"""The criterion that uses the model's own score(), with labels and latents marginalized out, as in evaluation."""

LOG_EVERY = 50  # updates: often enough for a curve, rarely enough to cost nothing
NEAR_THE_END = 0.05  # of a validation interval: this close to the end of a stage, the final validation is enough


def _loss(terms: dict[str, Term], whole: dict[str, Term], move: Move) -> Tensor:
    """The weighted sum of the learned terms, each divided by its count in the whole batch."""
    learned = {name: term for name, term in terms.items() if term.learned}
    parts = [move.weights.get(name, 1.0) * t.total / max(whole[name].count, 1.0) for name, t in learned.items()]
    return torch.stack(parts).sum() if parts else torch.zeros(())


def _equal(one: Tensor, other: Tensor | None) -> bool:
    return other is not None and one.shape == other.shape and bool(torch.equal(one, other))


class Trainer:
    """Runs a recipe's stages on a model, starting from the progress in `state`."""

    def __init__(
        self,
        recipe: Recipe,
        ckpt: Checkpoint,
        folder: Path,
        state: RunState,
        display: Display,
        save_every: float = 300.0,
        processes: Processes | None = None,
    ) -> None:
        self.processes = processes or Processes()
        self.recipe, self.ckpt, self.model = recipe, ckpt, ckpt.model
        self.folder, self.state, self.display = folder, state, display
        self.save_every = save_every
        self.journal = Journal(folder, state.update) if self.processes.main else None
        part = ckpt.parts.get(LABELLER)
        self.labeller = None if part is None else cached_labeller(part, display.begin, self.model.label_set)
        self.optimizer_set: OptimizerSet | None = None
        self.average: Average | None = None
        self.valid = Encoded()
        self.ready: dict[str, Encoded] = {}
        self._stop = False
        self._saved = time.monotonic()

    def run(self, resume_from: Path | None) -> None:
        try:
            check_stages(self.recipe, self.ckpt)
            self._called = self.processes.wrap(self.model)
            with self.display, stop_on_signal(self._ask_to_stop):
                while self.state.stage < len(self.recipe.stages):
                    self._stage(self.recipe.stages[self.state.stage], resume_from)
                    resume_from = None
                self.state.finished = True
                self._save()
        finally:
            if self.journal is not None:
                self.journal.close()

    def _ask_to_stop(self) -> None:
        self._stop = True

    # One stage

    def _stage(self, stage: Stage, resume_from: Path | None) -> None:
        streams = feeds(
            self.recipe, stage, self.ckpt.tokenizer, self.ready, self.labeller, self.model, self.display.begin
        )
        self._note_languages(streams)
        stage = self._possible(stage, streams)
        self.valid = encode_valid(
            self.recipe, stage, self.ckpt.tokenizer, self.ready, self.labeller, self.model, self.display.begin
        )
        first = streams[stage.moves[0].stream]
        self.optimizer_set = OptimizerSet(self.model, stage.optimizers)
        if resume_from is not None:
            read_state(resume_from, self.optimizer_set.optimizers, self.processes.index)
        self.average = self._average(stage, resume_from) if stage.average else None
        for name, (epoch, batch) in self.state.cursors.items():
            streams[name].epoch, streams[name].batch = epoch, batch
        budget = stage.examples or round(stage.epochs * len(first.data))
        self.display.stage(f"{self.recipe.name}: {stage.name}", budget, self.state.seen)
        self._rounds(stage, streams, first, budget)
        if stage.keep == "last" or self.state.best is None or not (self.folder / "best").exists():
            self._save_best({}, needed=self.state.stage == len(self.recipe.stages) - 1)
        else:
            self.processes.wait()
            checkpoint.load_weights(self.model, self.folder / "best" / "model.safetensors")
        self.state.stage, self.state.rounds, self.state.seen = self.state.stage + 1, 0, 0
        self.state.epochs_begun = self.state.validations = self.state.stale = 0
        self.state.best, self.state.cursors, self.state.sums = None, {}, {}
        self.state.averaged, self.average = 0, None
        self.optimizer_set = None  # the next stage has its own, and must not resume with these
        self._save()

    def _note_languages(self, streams: dict[str, Feed]) -> None:
        """Records the languages of the training data, as those that the system can be expected to speak."""
        languages = [name for feed in streams.values() for name in feed.data.languages]
        self.ckpt.meta["languages"] = list(dict.fromkeys([*self.ckpt.meta.get("languages", ()), *languages]))

    def _average(self, stage: Stage, resume_from: Path | None) -> Average:
        """The running average of all parameters trained in the stage, restored from a checkpoint if there is one."""
        names = {name for optimizer in stage.optimizers.values() for name in trained_parameters(self.model, optimizer)}
        mean = {} if resume_from is None else read_mean(resume_from)
        return Average(self.model, names, mean, self.state.averaged)

    def _possible(self, stage: Stage, streams: dict[str, Feed]) -> Stage:
        """The stage, reduced to the moves that there is data for."""
        left_out = sorted({move.stream for move in stage.moves} - set(streams))
        if left_out:
            self.display.say(f"{stage.name}: the data has no examples for {', '.join(left_out)}; training without them")
        return stage.with_streams(streams) if left_out else stage

    def _rounds(self, stage: Stage, streams: dict[str, Feed], first: Feed, budget: int) -> None:
        self.model.train()
        means, state = RunningMeans(self.state.sums), self.state
        every = stage.validate_every * len(first.data)
        clock, seen_then = time.monotonic(), state.seen
        while state.seen < budget and not (stage.patience and state.stale >= stage.patience):
            before = state.update
            if first.epoch >= state.epochs_begun:
                state.epochs_begun = first.epoch + 1
                self._begin_epoch(stage, first)
            for index, move in enumerate(stage.moves):
                for _ in range(move.times):
                    size = self._update(stage, move, streams[move.stream], state.seen / budget, means)
                    state.total_seen += size
                    if index == 0:
                        state.seen += size
            state.rounds += 1
            state.cursors = {name: [feed.epoch, feed.batch] for name, feed in streams.items()}
            ends = state.seen >= budget
            if self.average is not None and state.seen > (1 - stage.average) * budget:
                self.average.add()
                state.averaged = self.average.count
                if ends:
                    self.average.put()
            if state.update // LOG_EVERY > before // LOG_EVERY:
                speed = (state.seen - seen_then) / max(time.monotonic() - clock, 1e-9)
                self._log(stage, means.take(), speed, budget)
            state.sums = means.sums
            far = budget - state.seen > NEAR_THE_END * every
            if ends or (far and state.seen >= (state.validations + 1) * every):
                # The speed covers training only; the time spent on validation goes into `seconds` alone.
                state.seconds += time.monotonic() - clock
                begun = time.monotonic()
                self._validate(stage)
                state.seconds += time.monotonic() - begun
                self._save()
                clock, seen_then = time.monotonic(), state.seen
            due = self.processes.main and time.monotonic() - self._saved > self.save_every
            self._stop, due = self.processes.any(self._stop, due)
            if self._stop or due:
                state.seconds += time.monotonic() - clock
                self._save()
                clock, seen_then = time.monotonic(), state.seen
            if self._stop:
                raise Interrupted

    def _update(self, stage: Stage, move: Move, feed: Feed, progress: float, means: RunningMeans) -> int:
        """Makes one move on one batch, and steps the optimizer unless the move holds its gradient."""
        assert self.optimizer_set is not None
        batch = feed.draw()
        share, counts = self.processes.share(batch)
        self.optimizer_set.activate(move.optimizer)
        moment = Moment(self.state.update, progress)
        with self.processes.autocast():
            terms = self._called(move.objective, self._placed(share, feed.data), moment, **move.options)
        self._check_terms(stage, move, terms)
        if not counts:
            terms = {name: Term(0 * term.total, 0, learned=term.learned) for name, term in terms.items()}
        whole = self.processes.sum_terms(terms)
        if not torch.isfinite(_loss(whole, whole, move)):
            raise TrainingError(self._not_finite(stage, whole, feed, batch, "loss"))
        # Gradients are averaged over the processes, but the loss is already divided by the count over all of them.
        self.processes.backward(self.processes.count * _loss(terms, whole, move))
        if not move.hold:
            norm = self.optimizer_set.step(move.optimizer, self.state.rounds, progress)
            if not torch.isfinite(norm):
                raise TrainingError(self._not_finite(stage, whole, feed, batch, "gradient"))
        self.state.update += 1
        means.add(whole)
        return len(batch)

    def _check_terms(self, stage: Stage, move: Move, terms: dict[str, Term]) -> None:
        if move is stage.moves[0] and not stage.measure and stage.criterion != SCORE:
            known = [name for name, term in terms.items() if term.learned]
            if stage.criterion not in known:
                raise ConfigError(f"stage {stage.name}: {unknown_name('criterion', stage.criterion, [*known, SCORE])}")
        for name in move.weights:
            if name not in terms:
                raise ConfigError(f"stage {stage.name}: a weight of an {unknown_name('loss', name, terms)}")

    def _not_finite(self, stage: Stage, terms: dict[str, Term], feed: Feed, batch: Batch, what: str) -> str:
        ids = ", ".join(feed.data.ids[row] for row in batch.rows)
        parts = ", ".join(f"{name} {float(term.mean.detach()):g}" for name, term in terms.items())
        return (
            f"stage {stage.name}, update {self.state.update}: the {what} is not a finite number ({parts}). "
            f"The batch: {ids}. The last checkpoint is untouched; a lower rate or stronger clipping may help, "
            f"such as --set stages.{self.state.stage}.optimizers.main.rate=3e-4"
        )

    # Validation and checkpoints

    def _whole(self, data: Encoded, part: slice = slice(None)) -> Iterator[Batch]:
        for rows in ordered_batches(data.lengths())[part]:
            yield self._placed(collate(data, rows, self.ckpt.tokenizer.pad), data)

    def _placed(self, batch: Batch, data: Encoded) -> Batch:
        """The batch on the model's device, padded to the preferred length."""
        pad, step = self.ckpt.tokenizer.pad, self.processes.length_step
        return lengthened(batch, step, pad, data.padding_label).to(self.processes.device)

    def _begin_epoch(self, stage: Stage, first: Feed) -> None:
        """Lets the model set parameters and buffers from the data; the optimizer state of those parameters is reset."""
        assert self.optimizer_set is not None
        self.model.eval()
        renewed: list[str] = []
        buffers = {name: value.clone() for name, value in self.model.named_buffers()}
        if self.processes.main:
            with torch.no_grad():
                renewed = list(self.model.on_epoch_start(stage.name, first.epoch, lambda: self._whole(first.data)))
        changed = [name for name, value in self.model.named_buffers() if not _equal(value, buffers.get(name))]
        renewed, changed = self.processes.from_main((renewed, changed))
        if renewed:
            self.processes.broadcast_tensors(dict(self.model.named_parameters()))
        if changed:
            present = dict(self.model.named_buffers())
            self.processes.broadcast_tensors({name: present[name] for name in changed})
        self.model.train()
        self.optimizer_set.reset_active()
        self.optimizer_set.forget(renewed)

    def _validate(self, stage: Stage) -> None:
        assert self.optimizer_set is not None
        move, means, state = stage.moves[0], RunningMeans(), self.state
        moment = Moment(state.update, 1.0)
        self.model.eval()
        # Validation must not affect training: it uses its own random state, always the same.
        with torch.inference_mode(), torch.random.fork_rng(), self.processes.autocast():
            torch.manual_seed(0)
            for batch in self._whole(self.valid, slice(self.processes.index, None, self.processes.count)):
                means.add(self.model(stage.measure or move.objective, batch, moment, **move.options))
                if stage.criterion == SCORE and batch.reply is not None:
                    means.add({SCORE: Term(self.model.score(batch).sum(), int(batch.reply.mask.sum()))})
        means.merge(self.processes.gather(means.sums))
        samples = self._samples()
        self.model.train()
        self.optimizer_set.reset_active()
        if means.sums.get(stage.criterion, [0.0, 0.0])[1] == 0:
            raise ConfigError(
                f"stage {stage.name}: its validation data does not give {stage.criterion!r}; "
                "name other data with valid:, or another criterion:"
            )
        losses = means.take()
        state.validations += 1
        value = losses[stage.criterion]
        better = math.isfinite(value) and (state.best is None or value < state.best)
        state.stale = 0 if better else state.stale + 1
        record = {"stage": stage.name, "examples": state.total_seen, "seconds": state.seconds, **losses}
        self._write("valid", record)
        if samples:
            self._write("replies", {"stage": stage.name, "examples": state.total_seen, "replies": samples})
        mark = " · best so far" if better else ""
        self.display.say(f"{stage.name}: {state.seen:,} examples: validation {describe(losses)}{mark}")
        # A checkpoint that could not be written does not count as the best, so that a later one can still replace the
        # one on disk.
        if better and (stage.keep == "last" or self._save_best(losses)):
            state.best = value

    def _samples(self) -> list[dict[str, str]]:
        if self.journal is None:
            return []
        with self.processes.autocast():
            return sample_replies(self.ckpt, self.valid, self.processes.device)

    def _log(self, stage: Stage, means: dict[str, float], speed: float, budget: int) -> None:
        self.display.update(self.state.seen, budget, means, speed)
        record: dict[str, Any] = {"stage": stage.name, "examples": self.state.total_seen, "speed": speed, **means}
        record |= self.optimizer_set.rates() if self.optimizer_set else {}
        self._write("train", record)

    def _write(self, kind: str, record: dict[str, Any]) -> None:
        if self.journal is not None:
            self.journal.write(kind, self.state.update, record)

    def _meta(self, losses: dict[str, float]) -> dict[str, Any]:
        progress = {"examples": self.state.total_seen, "seconds": round(self.state.seconds, 1), "validation": losses}
        return {**self.ckpt.meta, **progress}

    def _save_best(self, losses: dict[str, float], needed: bool = False) -> bool:
        whole = Checkpoint(**{**vars(self.ckpt), "meta": self._meta(losses)})
        return self._keep(lambda: checkpoint.save(whole, self.folder / "best"), needed)

    def _save(self) -> None:
        """Writes the checkpoint to resume from; the previous one is kept next to it."""

        random = self.processes.gather(torch.get_rng_state())

        def write(folder: Path) -> None:
            optimizers = self.optimizer_set.optimizers if self.optimizer_set else {}
            write_state(folder, self.state, optimizers, random, self.average.mean if self.average else None)

        self._keep(
            lambda: checkpoint.save(self.ckpt, self.folder / "last", extra=write, previous=self.folder / "previous"),
            needed=self._stop or self.state.finished,
        )
        self._saved = time.monotonic()

    def _keep(self, save: Callable[[], None], needed: bool) -> bool:
        """Returns whether the checkpoint was written. A full disk must not end a run after hours of training, so the
        last good checkpoint stays."""
        written = True
        try:
            if self.processes.main:
                save()
        except OSError as problem:
            if needed:
                raise TrainingError(f"checkpoint not written ({problem}); the one before it is whole") from problem
            self.display.warn(f"checkpoint not written ({problem}); the one before it is whole; training continues")
            written = False
        return self.processes.from_main(written)
