"""A system on a split: every reply, every score, and a folder with both."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from listenwell import metrics
from listenwell.checkpoint import Checkpoint, same_training, write_json
from listenwell.classifiers.label_cache import Labels, fingerprint, is_labelled, labelled_as_here
from listenwell.classifiers.labeller import Labeller
from listenwell.classifiers.sentence_encoder import sentence_encoder
from listenwell.data.dialogue import Dialogue, Example, as_heard
from listenwell.evaluation.partial import Kept
from listenwell.evaluation.pictures import draw_distributions
from listenwell.labels.taxonomy import EMOTION_ID, EMOTIONS, LABEL_ID, LABELS
from listenwell.metrics import Score
from listenwell.outputs import EVALUATE, write_folder
from listenwell.systems.bot import Likelihoods, System
from listenwell.systems.reply import Reply
from listenwell.text import words

CHUNK = 512
"""Replies written, and kept, at a time."""

Progress = Callable[[str, int], Callable[[int], None]]
"""Told what begins and how many items it has; returns what to tell as they are done."""


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
    kept: Kept | None = None,
) -> Evaluation:
    """Generates and scores. The system is given contexts alone: no situation, no emotion, no label.

    `labeller`, of the 41 labels, and `judge`, of polarity, read the replies where they are given. What is `kept` is not
    done again.
    """
    items = list(items)
    if not items:
        raise ValueError("there is nothing to evaluate: no reply with a context in the data")
    heard = [as_heard(item) for item in items]
    replies, seconds = written(system, heard, progress("replies", len(items)), kept)
    likelihoods = None if kept is None else kept.likelihoods()
    if likelihoods is None:
        likelihoods = system.likelihoods(heard, done=progress("likelihoods", len(items)))
        if kept is not None and likelihoods is not None:
            kept.keep(likelihoods)
    scores = [] if likelihoods is None else likelihood_scores(likelihoods, resamples)
    scores += oracle_scores(system, items, likelihoods, progress, resamples)
    scores += emotion_scores(replies, items, resamples)
    scores += label_scores(replies, items, resamples)
    scores += reply_scores(replies, items, resamples)
    scores += similarity_scores(replies, items, progress, resamples)
    scores += positivity_scores(replies, items, judge, progress, resamples)
    labels = chosen_labels(replies)
    if labeller is not None:
        found, heard_as = heard_in_replies(replies, items, labeller, progress, resamples)
        scores += found
        labels |= heard_as
    decoding = getattr(system, "decoding", None)
    precision = getattr(system, "precision", "")
    if precision:
        scores = [replace(score, signature=score.signature.plus(precision=precision)) for score in scores]
        about = {**about, "precision": precision}
    about = {
        **about,
        "items": len(items),
        "seconds generating": round(seconds, 1),
        "decoding": decoding.signature() if decoding else None,
        **({"rerank": asdict(decoding.rerank)} if decoding and decoding.rerank else {}),
    }
    return Evaluation(system.name, scores, items, replies, about, labels)


def written(
    system: System, items: Sequence[Example], done: Callable[[int], None], kept: Kept | None
) -> tuple[list[Reply], float]:
    """The replies, and how long they took; some at a time, so that a stop loses little."""
    replies, seconds = ([], 0.0) if kept is None else (list(kept.replies), kept.seconds)
    if replies:
        done(len(replies))
    while len(replies) < len(items):
        contexts = [Dialogue(item.id, item.context) for item in items[len(replies) : len(replies) + CHUNK]]
        begun = time.monotonic()
        more = system.replies(contexts, done=done, first=len(replies))
        took = time.monotonic() - begun
        if kept is not None:
            kept.add(more, took)
        replies, seconds = [*replies, *more], seconds + took
    return replies, seconds


def drawn(items: Sequence[Example], number: int, seed: int = 0) -> list[Example]:
    """So many of the items, or all, in their order, chosen by the seed alone: the same for every system.

    The first so many would be of few kinds where a corpus is sorted.
    """
    rows = np.random.default_rng(seed).permutation(len(items))[:number]
    return [items[row] for row in sorted(rows)]


def likelihood_scores(found: Likelihoods, resamples: int) -> list[Score]:
    options: dict[str, Any] = {"unknown": found.unknown, "unseen_types": found.unseen_types, "resamples": resamples}
    return [
        metrics.perplexity_per_word(found.nll, found.words, **options),
        metrics.perplexity(found.nll, found.tokens, **options),
    ]


def oracle_scores(
    system: System, items: Sequence[Example], likelihoods: Likelihoods | None, progress: Progress, resamples: int
) -> list[Score]:
    """Of a system that replies with a label: its perplexity if the reply's own label were told. Marked: it is not.

    Where not all replies have a label, also the perplexity of those that have one, of `likelihoods` and not told: the
    one to hold the other against.
    """
    measure = getattr(system, "oracle_likelihoods", None)
    ours = labelled_as_here(item.reply for item in items)
    rows = [row for row, item in enumerate(items) if ours and is_labelled(item.reply)]
    if measure is None or not rows:
        return []
    knowing = [replace(as_heard(items[row]), reply=items[row].reply) for row in rows]
    found = measure(knowing, done=progress("likelihoods with the true label", len(rows)))
    if found is None:
        return []
    scores: list[Score] = []
    if likelihoods is not None and len(rows) < len(items):
        same = replace(
            likelihoods,
            **{name: getattr(likelihoods, name)[rows] for name in ("nll", "tokens", "words", "unknown")},
            unseen_types=found.unseen_types,
        )
        scores += _marked(likelihood_scores(same, resamples), "labelled", only="labelled")
    return [*scores, *_marked(likelihood_scores(found, resamples), "oracle", label="true")]


def _marked(scores: Sequence[Score], mark: str, **fields: str) -> list[Score]:
    return [replace(s, name=f"{s.name}-{mark}", signature=s.signature.plus(**fields)) for s in scores]


def emotion_scores(replies: Sequence[Reply], items: Sequence[Example], resamples: int) -> list[Score]:
    """Absent, not zero, for a system that does not listen for emotions or data that does not tell them."""
    gold = _gold_emotions(items)
    if not all(reply.emotions for reply in replies) or not (gold >= 0).any():
        return []
    chances = np.array([[reply.emotions[name] for name in EMOTIONS] for reply in replies])
    accuracies = [metrics.accuracy_at(chances, gold, k, resamples=resamples) for k in (1, 2, 5)]
    averages = [measure(chances, gold, resamples=resamples) for measure in (metrics.macro_f1, metrics.weighted_f1)]
    return [*accuracies, *averages]


def label_scores(replies: Sequence[Reply], items: Sequence[Example], resamples: int) -> list[Score]:
    """Is the label chosen that of the reply in the data? With what a uniform guess among the 41 would score.

    Absent for a system that does not choose, or where the data's labels are not these.
    """
    if not all(reply.label for reply in replies) or not labelled_as_here(item.reply for item in items):
        return []
    gold = np.array([LABEL_ID.get(i.reply.label.name, -100) if i.reply and i.reply.label else -100 for i in items])
    chosen = np.array([LABEL_ID[reply.label or ""] for reply in replies])
    guessed = np.random.default_rng(0).integers(len(LABELS), size=len(items))
    measures = (metrics.weighted_precision, metrics.weighted_recall, metrics.weighted_f1)
    scores = []
    for prefix, ids, by in (("label", chosen, "system"), ("random-label", guessed, "uniform")):
        for measure in measures:
            found = measure(np.eye(len(LABELS))[ids], gold, resamples=resamples)
            name = f"{prefix}-{found.name.removeprefix('weighted-')}"
            scores.append(replace(found, name=name, signature=found.signature.plus(chosen=by)))
    return scores


def reply_scores(replies: Sequence[Reply], items: Sequence[Example], resamples: int) -> list[Score]:
    said = [words(reply.text) for reply in replies]
    references = [words(item.reply.text) if item.reply else [] for item in items]
    raw = _references(items)
    unique = metrics.unique_replies(said)
    bland = metrics.bland(said, resamples=resamples)
    return [
        metrics.bleu(said, references, resamples=resamples),
        metrics.sacre_bleu([reply.text for reply in replies], raw, resamples=resamples),
        metrics.average_bleu(said, references, resamples=resamples),
        metrics.distinct(said, 1),
        metrics.distinct(said, 2),
        unique.share,
        unique.number,
        bland.sorry,
        bland.any,
        metrics.mean_length(said, resamples=resamples),
    ]


def similarity_scores(
    replies: Sequence[Reply], items: Sequence[Example], progress: Progress, resamples: int
) -> list[Score]:
    """Absent where the encoder is not at hand, which is said."""
    try:
        encoder = sentence_encoder()
    except (ImportError, OSError, ValueError) as problem:
        print(f"ses, the similarity of sentence embeddings, is left out: {problem}", file=sys.stderr)
        return []
    texts = [*(reply.text for reply in replies), *_references(items)]
    said, references = np.split(encoder.embed(texts, progress("sentence embeddings", len(texts))), 2)
    return [metrics.sentence_similarity(said, references, encoder=encoder.name, resamples=resamples)]


def positivity_scores(
    replies: Sequence[Reply], items: Sequence[Example], judge: Labeller | None, progress: Progress, resamples: int
) -> list[Score]:
    """How positive the replies are, and how much more than the turns they answer: by a judge, and by VADER."""
    texts = [*(reply.text for reply in replies), *(item.context[-1].text for item in items)]
    found: dict[str, tuple[str, np.ndarray]] = {}
    if judge is not None:
        chances = judge.distribution(texts, progress("positivity", len(texts)))
        found["positivity"] = (" ".join(told(judge).values()), metrics.leaning(chances))
    if find_spec("vaderSentiment") is not None:
        found["vader"] = (metrics.vader_version(), metrics.vader(texts, progress("VADER", len(texts))))
    scores = []
    for name, (by, values) in found.items():
        said, before = np.split(values, 2)
        how: dict[str, Any] = {"by": by, "name": name, "resamples": resamples}
        if name == "positivity":  # a classifier says something of any text
            how["language"] = metrics.readable(texts[: len(replies)])
        scores.append(metrics.positivity(said, **how))
        scores.append(metrics.positivity(said, before=before, **how))
    return scores


def heard_in_replies(
    replies: Sequence[Reply], items: Sequence[Example], labeller: Labeller, progress: Progress, resamples: int
) -> tuple[list[Score], dict[str, Counter[str]]]:
    """Is the emotion of a reply that of the dialogue? And how often each label is found in replies and references.

    What people's own replies would score stands beside it: no reply need be nearer to the dialogue's emotion.
    """
    texts = [*(reply.text for reply in replies), *_references(items)]
    chances = labeller.distribution(texts, progress("labels of replies", len(texts)))
    sides = dict(zip(("replies", "references"), np.split(chances, 2), strict=True))
    counts = {side: Counter(labeller.names[index] for index in part.argmax(axis=1)) for side, part in sides.items()}
    gold = _gold_emotions(items)
    if not (gold >= 0).any():
        return [], counts
    scores = []
    for side, part in zip(("reply", "reference"), sides.values(), strict=True):
        score = metrics.reply_emotion_accuracy(part, gold, resamples=resamples)
        signature = score.signature.plus(of=side, **told(labeller))
        scores.append(replace(score, name=score.name.replace("reply", side), signature=signature))
    return scores, counts


def chosen_labels(replies: Sequence[Reply]) -> dict[str, Counter[str]]:
    """How often each label was chosen to reply with; nothing of a system that does not choose."""
    found = Counter(reply.label for reply in replies if reply.label is not None)
    return {"chosen": found} if found else {}


def check_judge(judge: Checkpoint, system: Checkpoint) -> None:
    """A judge that is a part of the system would praise its own choice."""
    for name, part in all_parts(system):
        if same_training(part.meta, judge.meta) or fingerprint(part) == fingerprint(judge):
            raise ValueError(f"the judge is the {name} that {system.name} itself has; name another with --judge")


def all_parts(system: Checkpoint) -> Iterator[tuple[str, Checkpoint]]:
    """Of whatever depth, by name."""
    for name, part in system.parts.items():
        yield name, part
        yield from all_parts(part)


def told(labeller: Labels) -> dict[str, str]:
    """Which classifier it is, for a signature: two trainings of one recipe are two."""
    made = labeller.checkpoint
    return {"by": made.meta.get("recipe", {}).get("name", made.name), "weights": fingerprint(made)[:8]}


def _gold_emotions(items: Sequence[Example]) -> np.ndarray:
    return np.array([EMOTION_ID.get(item.emotion.name, -100) if item.emotion else -100 for item in items])


def _references(items: Sequence[Example]) -> list[str]:
    return [item.reply.text if item.reply else "" for item in items]


def write(evaluation: Evaluation, folder: Path) -> None:
    """scores.json and replies.jsonl, a record an item: the numbers and what they were computed from.

    And labels.png (MEED2's Figure 5), where there are labels: those that the system chose for its replies, and those
    that a classifier found in the replies and in the references.
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
                if any(candidate.terms for candidate in reply.candidates):  # so that others may be chosen (`rerank`)
                    record["candidates"] = [candidate.to_json() for candidate in reply.candidates]
                lines.write(json.dumps(record, ensure_ascii=False) + "\n")
        summary = {"command": EVALUATE.command, "system": evaluation.system, "about": evaluation.about}
        if evaluation.labels:
            summary["labels"] = {side: dict(found.most_common()) for side, found in evaluation.labels.items()}
            title = f"{evaluation.system} on {evaluation.about.get('data', '')}, {evaluation.about.get('split', '')}"
            draw_distributions(evaluation.labels, f"{title.rstrip(', ')}: labels of replies", place / "labels.png")
        write_json(place / "scores.json", {**summary, "scores": [s.to_json() for s in evaluation.scores]})
        write_json(place / "items.json", [s.to_json(items=True) for s in evaluation.scores])

    write_folder(folder, fill, EVALUATE)
