"""Evaluates a system on a split: generates all replies, computes all scores, and writes both to a folder."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from listenwell.checkpoint import Checkpoint, same_training, write_json
from listenwell.classifiers.label_cache import fingerprint
from listenwell.classifiers.labeller import Labeller
from listenwell.data.dialogue import Dialogue, Example, without_annotations
from listenwell.evaluation.material import EmpathyLoader, collect_material, likeliest_label
from listenwell.evaluation.partial import PartialResults
from listenwell.evaluation.pictures import draw_distributions
from listenwell.evaluation.split_tables import Tables, split_tables, tables_json
from listenwell.metrics import Score, registry
from listenwell.metrics.material import Material, Progress, UnavailableError
from listenwell.metrics.vector_similarity import check_word_vectors
from listenwell.outputs import EVALUATE, write_folder
from listenwell.systems.base import System
from listenwell.systems.capabilities import Capabilities
from listenwell.systems.house.options import HouseDecoding
from listenwell.systems.reply import Reply

CHUNK = 512
"""Number of replies generated, and saved, at a time."""

EMOTION_METRICS = ("accuracy@1", "accuracy@2", "accuracy@5", "macro-f1", "weighted-f1")
LABEL_METRICS = tuple(f"{who}-{part}" for who in ("label", "random-label") for part in ("precision", "recall", "f1"))
REPLY_METRICS = (
    *("bleu-4", "sacrebleu", "average-bleu", "distinct-1", "distinct-2"),
    *("unique", "unique-count", "sorry-to-hear", "bland", "length"),
)


@dataclass
class Evaluation:
    """A system's scores on a split, and the replies they were computed from."""

    system: str
    scores: list[Score]
    items: list[Example]
    replies: list[Reply]
    about: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, Counter[str]] = field(default_factory=dict)
    """How often the system chose each label, and how often a classifier found it in the replies and the references."""
    tables: Tables = field(default_factory=dict)
    """Scores on subsets of the items: by "polarity" or "emotion" of the dialogue, then by group."""

    def __getitem__(self, name: str) -> Score:
        for score in self.scores:
            if score.name == name:
                return score
        raise KeyError(f"no score {name!r}, there are {', '.join(score.name for score in self.scores)}")


def evaluate(
    system: System,
    items: Sequence[Example],
    about: dict[str, Any],
    progress: Progress,
    resamples: int = 1000,
    labeller: Labeller | None = None,
    judge: Labeller | None = None,
    partial_results: PartialResults | None = None,
    metrics: str | Sequence[str] | None = None,
    classifiers: Mapping[str, Labeller] | None = None,
    empathy: EmpathyLoader | None = None,
    vectors: Path | None = None,
) -> Evaluation:
    """Generate replies and score them. The system only gets contexts: no situation, no emotion, no label.

    `labeller` (41 labels), `judge` (polarity) and `classifiers` (other label sets, by name) classify the replies, if
    given; `empathy` loads the empathy classifier, if a metric needs it; `vectors` is a file of word vectors. Results in
    `partial_results` are not computed again.

    `metrics` are names, "all", or None for the default set (docs/metrics.md). Metrics that cannot be computed are
    listed in `about["left out"]`, with the reason.
    """
    items = list(items)
    if not items:
        raise ValueError("there is nothing to evaluate: no reply with a context in the data")
    language = one_language(items)
    wanted = registry.chosen(metrics, Material([""] * len(items), items).languages)  # a wrong name raises at once
    if vectors is not None:
        check_vectors_used(vectors, wanted)
    readers = {"emotion-intent": labeller, "polarity": judge, **(classifiers or {})}
    replies, seconds = generate_replies(
        system, [without_annotations(item) for item in items], progress("replies", len(items)), partial_results
    )
    material = collect_material(
        replies, items, progress, resamples, system, readers, partial_results, empathy, vectors=vectors
    )
    scored = registry.run(wanted, material)
    labels = chosen_labels(replies)
    if labeller is not None and any("classifier emotion-intent" in one.needs for one in wanted):
        labels |= classified_labels(material)
    capabilities = Capabilities.of(system)
    decoding, precision = capabilities.decoding, capabilities.precision
    scores = scored.scores
    if precision:
        scores = [replace(score, signature=score.signature.plus(precision=precision)) for score in scores]
        about = {**about, "precision": precision}
    about = {
        **about,
        "items": len(items),
        "language": language,
        "seconds generating": round(seconds, 1),
        "decoding": decoding.signature() if decoding else None,
        **({"rerank": asdict(decoding.rerank)} if isinstance(decoding, HouseDecoding) and decoding.rerank else {}),
        **({"left out": scored.left_out} if scored.left_out else {}),
    }
    return Evaluation(system.name, scores, items, replies, about, labels, split_tables(scores, items, resamples))


def check_vectors_used(vectors: Path, metrics: Sequence[registry.Metric]) -> None:
    """Raises an error if the file has no word vectors, or if no metric would read it."""
    check_word_vectors(vectors)
    if not any("word vectors" in one.needs for one in metrics):
        readers = ",".join(name for name, one in registry.known().items() if "word vectors" in one.needs)
        raise ValueError(f"none of these metrics reads the word vectors {vectors}; those that do: --metrics {readers}")


def generate_replies(
    system: System, items: Sequence[Example], done: Callable[[int], None], partial_results: PartialResults | None
) -> tuple[list[Reply], float]:
    """The replies and the seconds they took, in chunks, so that an interruption loses little."""
    replies, seconds = (
        ([], 0.0) if partial_results is None else (list(partial_results.replies), partial_results.seconds)
    )
    if replies:
        done(len(replies))
    while len(replies) < len(items):
        contexts = [
            Dialogue(item.id, item.context, language=item.language)
            for item in items[len(replies) : len(replies) + CHUNK]
        ]
        begun = time.monotonic()
        more = system.replies(contexts, done=done, first=len(replies))
        took = time.monotonic() - begun
        if partial_results is not None:
            partial_results.add(more, took, first=len(replies))
        replies, seconds = [*replies, *more], seconds + took
    return replies, seconds


def one_language(items: Sequence[Example]) -> str:
    """The language of the items. Raises ValueError for several languages: a joint score would be meaningless."""
    languages = Counter(item.language for item in items)
    if len(languages) > 1:
        counts = ", ".join(f"{number:,} in {name}" for name, number in languages.most_common())
        raise ValueError(f"the items are in several languages ({counts}); evaluate each language by itself")
    return next(iter(languages))


def draw_items(items: Sequence[Example], number: int, seed: int = 0) -> list[Example]:
    """Draw `number` items, or all, in their order. The choice depends only on the seed: every system gets the same.

    Taking the first `number` items would not be representative if the corpus is sorted.
    """
    rows = np.random.default_rng(seed).permutation(len(items))[:number]
    return [items[row] for row in sorted(rows)]


def emotion_scores(
    replies: Sequence[Reply], items: Sequence[Example], resamples: int, capabilities: Capabilities | None = None
) -> list[Score]:
    """Emotion scores; none (rather than zero) for a system that predicts no emotions, or data without them."""
    return _scores(EMOTION_METRICS, replies, items, resamples, capabilities)


def label_scores(
    replies: Sequence[Reply], items: Sequence[Example], resamples: int, capabilities: Capabilities | None = None
) -> list[Score]:
    """Compares the chosen label with that of the reference reply; also scores a uniform random guess.

    Empty for a system that does not choose a label, or if the data's labels are from another set.
    """
    return _scores(LABEL_METRICS, replies, items, resamples, capabilities)


def reply_scores(replies: Sequence[Reply], items: Sequence[Example], resamples: int) -> list[Score]:
    """The default scores that need only the texts."""
    return _scores(REPLY_METRICS, replies, items, resamples)


def _scores(
    names: Sequence[str],
    replies: Sequence[Reply],
    items: Sequence[Example],
    resamples: int,
    capabilities: Capabilities | None = None,
) -> list[Score]:
    material = collect_material(replies, items, resamples=resamples, capabilities=capabilities)
    return registry.run(registry.chosen(names), material).scores


def chosen_labels(replies: Sequence[Reply]) -> dict[str, Counter[str]]:
    """How often the system chose each label to reply with; empty for a system that does not choose."""
    counts = Counter(reply.label for reply in replies if reply.label is not None)
    return {"chosen": counts} if counts else {}


def classified_labels(material: Material) -> dict[str, Counter[str]]:
    """How often a classifier assigns each label to the replies and to the references."""
    try:
        read = material.get("classifier emotion-intent")
    except UnavailableError:
        return {}
    return {side: Counter(read.names[row] for row in part.argmax(axis=1)) for side, part in read.sides.items()}


def check_judge(judge: Checkpoint, system: Checkpoint) -> None:
    """Raises ValueError if the judge is a part of the system, since it would favor its own choices."""
    if (name := part_of(judge, system)) is not None:
        raise ValueError(f"the judge is the {name} that {system.name} itself has; name another with --judge")


def part_of(judge: Checkpoint, system: Checkpoint) -> str | None:
    """The name of the system's part that is the same model as the judge; None if there is none."""
    same = (
        name
        for name, part in all_parts(system)
        if same_training(part.meta, judge.meta) or fingerprint(part) == fingerprint(judge)
    )
    return next(same, None)


def all_parts(system: Checkpoint) -> Iterator[tuple[str, Checkpoint]]:
    """All parts with their names, recursively."""
    for name, part in system.parts.items():
        yield name, part
        yield from all_parts(part)


def write(evaluation: Evaluation, folder: Path) -> None:
    """Write scores.json, items.json (the scores with per-item values) and replies.jsonl (one record per item).

    If the data has emotions, also tables.json, with the scores split by the dialogue's polarity and emotion. If there
    are labels, also labels.png (MEED2's Figure 5): the labels that the system chose for its replies, and those that a
    classifier found in the replies and in the references.
    """

    def fill(place: Path) -> None:
        with (place / "replies.jsonl").open("w", encoding="utf-8") as lines:
            for item, reply in zip(evaluation.items, evaluation.replies, strict=True):
                record: dict[str, Any] = {
                    "id": item.id,
                    "context": [turn.text for turn in item.context],
                    "reference": item.reply.text if item.reply else None,
                    "gold emotion": item.emotion.name if item.emotion else None,
                    "gold label": item.reply.label.name if item.reply and item.reply.label else None,
                    "reply": reply.text,
                    "emotion": reply.emotion,
                    "label": reply.label,
                }
                if (likeliest := likeliest_label(reply)) is not None:
                    record["likeliest label"] = likeliest
                if any(candidate.terms for candidate in reply.candidates):  # so that `rerank` can choose again
                    record["candidates"] = [candidate.to_json() for candidate in reply.candidates]
                lines.write(json.dumps(record, ensure_ascii=False) + "\n")
        summary = {"command": EVALUATE.command, "system": evaluation.system, "about": evaluation.about}
        if evaluation.labels:
            summary["labels"] = {side: dict(counts.most_common()) for side, counts in evaluation.labels.items()}
            title = f"{evaluation.system} on {evaluation.about.get('data', '')}, {evaluation.about.get('split', '')}"
            draw_distributions(evaluation.labels, f"{title.rstrip(', ')}: labels of replies", place / "labels.png")
        write_json(place / "scores.json", {**summary, "scores": [s.to_json() for s in evaluation.scores]})
        if evaluation.tables:
            write_json(place / "tables.json", tables_json(evaluation.tables))
        write_json(place / "items.json", [s.to_json(items=True) for s in evaluation.scores])

    write_folder(folder, fill, EVALUATE)
