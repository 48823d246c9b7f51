"""Provides what metrics need in an evaluation: likelihoods, classifiers, vectors. Each is computed when needed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from listenwell.classifiers.empathy import EmpathyClassifier, Pair
from listenwell.classifiers.label_cache import Labels, fingerprint, is_labelled, labelled_with
from listenwell.classifiers.labeller import Labeller
from listenwell.classifiers.sentence_encoder import sentence_encoder
from listenwell.data.batching import label_id_in
from listenwell.data.dialogue import Example, Label, without_annotations
from listenwell.evaluation.partial import PartialResults
from listenwell.labels.empathy import MECHANISMS
from listenwell.labels.sets import LabelSet
from listenwell.metrics.celebration import first_clause
from listenwell.metrics.material import (
    CLASSIFIER,
    ClassifierOutput,
    Material,
    Progress,
    UnavailableError,
    quiet,
    unavailable,
)
from listenwell.metrics.registry import languages
from listenwell.metrics.vector_similarity import load_word_vectors
from listenwell.systems.base import Likelihoods, System
from listenwell.systems.capabilities import Capabilities
from listenwell.systems.reply import Reply

EmpathyLoader = Callable[[], EmpathyClassifier]
"""Loads an empathy classifier when a metric first needs it; raises `UnavailableError` if there is none."""

NO_LABEL = "the system takes no label to reply with"

SIDES = {"polarity": ("replies", "contexts")}
"""The texts that a classifier reads, by label set; replies and references by default."""

FIRST_CLAUSES = "first clauses' polarity"


def collect_material(
    replies: Sequence[Reply],
    items: Sequence[Example],
    progress: Progress = quiet,
    resamples: int = 1000,
    system: System | None = None,
    readers: Mapping[str, Labeller | None] | None = None,
    partial_results: PartialResults | None = None,
    empathy: EmpathyLoader | None = None,
    capabilities: Capabilities | None = None,
    vectors: Path | None = None,
) -> Material:
    """Collect replies with everything needed to score them; without a system, only what follows from the replies.

    Emotions and labels are from the label sets in `capabilities`, by default those of the system.
    """
    can = capabilities or Capabilities.of(system)
    providers: dict[str, Callable[[], Any]] = {
        "predicted emotions": partial(_predicted_emotions, replies, can.emotions),
        "true emotions": partial(_true_emotions, items, can),
        "chosen labels": partial(_chosen_labels, replies, can.label_set),
        "likeliest labels": partial(_likeliest_labels, replies, can.label_set),
        "reference labels": partial(_reference_labels, items, can.label_set),
    }
    material = Material([reply.text for reply in replies], items, providers, resamples, progress=progress)
    if system is not None:
        providers["likelihoods"] = partial(_likelihoods, system, items, progress, partial_results)
        providers["oracle likelihoods"] = partial(_oracle, system, items, progress)
        providers["labelled likelihoods"] = partial(_labelled, material, can.label_set)
        providers["given-label likelihoods"] = partial(_given_label, system, material, can.label_set, progress)
        providers["sentence vectors"] = partial(_sentence_vectors, material)
        providers["word vectors"] = partial(load_word_vectors, material, vectors)
    providers["machine labels"] = partial(_machine_labels, material, can.label_set)
    for labels, reader in (readers or {}).items():
        providers[f"{CLASSIFIER}{labels}"] = partial(_classified, material, labels, reader)
    providers[FIRST_CLAUSES] = partial(_first_clauses, material, (readers or {}).get("polarity"))
    if empathy is not None:
        providers[f"{CLASSIFIER}empathy"] = partial(_empathy, material, empathy)
    return material


def _predicted_emotions(replies: Sequence[Reply], emotions: LabelSet) -> np.ndarray:
    if not all(reply.emotions for reply in replies):
        raise UnavailableError("the system does not predict an emotion")
    return np.array([[reply.emotions[name] for name in emotions] for reply in replies])


def _true_emotions(items: Sequence[Example], capabilities: Capabilities) -> np.ndarray:
    """Gold emotions as ids in the system's emotion set, from the place that the system was trained to predict."""
    emotions = capabilities.emotions
    gold = np.array([label_id_in(emotions, item.label_of(capabilities.emotion_of)) for item in items])
    if not (gold >= 0).any():
        raise UnavailableError(f"no item of the data has one of the {len(emotions.labels)} emotions")
    return gold


def _chosen_labels(replies: Sequence[Reply], labels: LabelSet) -> np.ndarray:
    """(items, labels), 1 for the chosen label."""
    if not all(reply.label in labels for reply in replies):
        raise UnavailableError("the system does not choose a label to reply with")
    return np.eye(len(labels))[[labels.ids[reply.label or ""] for reply in replies]]


def likeliest_label(reply: Reply) -> str | None:
    """The label that the system found likeliest; it may choose another one if its choice is tuned to a score."""
    return next(iter(reply.reasons.get("likeliest", {})), None)


def _likeliest_labels(replies: Sequence[Reply], labels: LabelSet) -> np.ndarray:
    """(items, labels), 1 for the likeliest label."""
    names = [likeliest_label(reply) for reply in replies]
    if not all(name in labels for name in names):
        raise UnavailableError("the system does not say which label it finds likeliest")
    return np.eye(len(labels))[[labels.ids[name or ""] for name in names]]


def _machine_labels(material: Material, labels: LabelSet) -> np.ndarray:
    read = material.get(f"{CLASSIFIER}emotion-intent")
    if not all(name in labels for name in read.names):
        raise UnavailableError("the classifier gives labels that the system does not know")
    return np.array([labels.ids[read.names[row]] for row in read["references"].argmax(axis=1)])


def _reference_labels(items: Sequence[Example], labels: LabelSet) -> np.ndarray:
    if not labelled_with(labels, (item.reply for item in items)):
        raise UnavailableError(f"the replies in the data have no labels, or others than the {len(labels)}")
    return np.array([label_id_in(labels, item.label_of("reply")) for item in items])


def _likelihoods(
    system: System, items: Sequence[Example], progress: Progress, partial_results: PartialResults | None
) -> Likelihoods:
    likelihoods = None if partial_results is None else partial_results.likelihoods()
    if likelihoods is not None:
        return likelihoods
    inputs = [without_annotations(item) for item in items]
    likelihoods = system.likelihoods(inputs, done=progress("likelihoods", len(items)))
    if likelihoods is None:
        raise UnavailableError("the system gives no likelihoods")
    if partial_results is not None:
        partial_results.save_likelihoods(likelihoods)
    return likelihoods


def _labelled_rows(items: Sequence[Example], labels: LabelSet) -> list[int]:
    if not labelled_with(labels, (item.reply for item in items)):
        return []
    return [row for row, item in enumerate(items) if is_labelled(item.reply, labels)]


def _oracle(system: System, items: Sequence[Example], progress: Progress) -> Likelihoods:
    """For a system that replies with a label: its likelihoods given the gold label of each reply."""
    measure = _knowing_measure(system)
    labels = Capabilities.of(system).label_set
    rows = _labelled_rows(items, labels)
    if not rows:
        raise UnavailableError(f"the replies in the data have no labels, or others than the {len(labels)}")
    return measure([items[row] for row in rows], progress("likelihoods with the true label", len(rows)))


def _knowing_measure(system: System) -> Callable[[Sequence[Example], Any], Likelihoods]:
    """A function that computes likelihoods given each reply's label; no other annotation of the item is used."""
    measure = getattr(system, "oracle_likelihoods", None)
    if measure is None:
        raise UnavailableError(NO_LABEL)

    def knowing(items: Sequence[Example], done: Any) -> Likelihoods:
        given = [replace(without_annotations(item), reply=item.reply) for item in items]
        likelihoods = measure(given, done=done)
        return unavailable(NO_LABEL) if likelihoods is None else likelihoods

    return knowing


def _given_label(system: System, material: Material, known: LabelSet, progress: Progress) -> Likelihoods:
    """As in MEED2's paper: the label of every reply is given, from a classifier if the data has none."""
    measure = _knowing_measure(system)
    items = list(material.items)
    if lacking := set(range(len(items))).difference(_labelled_rows(items, known)):
        labels = material.get("machine labels")
        for row in lacking:
            reply = items[row].reply
            assert reply is not None
            items[row] = replace(items[row], reply=replace(reply, label=Label(known.labels[labels[row]], "machine")))
    return measure(items, progress("likelihoods with a label given", len(items)))


def _labelled(material: Material, labels: LabelSet) -> Likelihoods:
    """Likelihoods of the references that have a label, without giving it, for comparison with the oracle's."""
    # The oracle's likelihoods cost nothing extra: every evaluation that needs these needs those too.
    oracle = material.get("oracle likelihoods")
    rows = _labelled_rows(material.items, labels)
    if len(rows) == len(material.items):
        raise UnavailableError("all references have a label: the score of all is the one to compare with")
    likelihoods = material.get("likelihoods")
    parts = {name: getattr(likelihoods, name)[rows] for name in ("nll", "tokens", "words", "unknown")}
    return replace(likelihoods, **parts, unseen_types=oracle.unseen_types)


def _sentence_vectors(material: Material) -> tuple[str, np.ndarray, np.ndarray]:
    """The name of the encoder, and the vectors of replies and references."""
    try:
        encoder = sentence_encoder()
    except (ImportError, OSError, ValueError) as problem:
        print(f"ses, the similarity of sentence embeddings, is left out: {problem}", file=sys.stderr)
        raise UnavailableError(str(problem)) from problem
    texts = [*material.replies, *material.get("references")]
    replies, references = np.split(encoder.embed(texts, material.progress("sentence embeddings", len(texts))), 2)
    return encoder.name, replies, references


def _able(material: Material, labels: str, reader: Labeller | None) -> Labeller:
    """The classifier; raises UnavailableError if there is none, or if it does not support the items' languages."""
    if reader is None:
        raise UnavailableError(f"no classifier of {labels} was given")
    read = reader.checkpoint.languages
    if others := [language for language in material.languages if language not in read]:
        raise UnavailableError(f"{reader.name} reads {languages(read)}, the items are in {languages(others)}")
    return reader


def _first_clauses(material: Material, judge: Labeller | None) -> ClassifierOutput:
    """The output of a polarity classifier for the first clauses of replies, and of references if there are any."""
    reader = _able(material, "polarity", judge)
    sides = {"replies": [first_clause(text) for text in material.replies]}
    if all(item.reply for item in material.items):
        sides["references"] = [first_clause(text) for text in material.get("references")]
    texts = [text for side in sides.values() for text in side]
    chances = np.split(reader.distribution(texts, material.progress("first clauses", len(texts))), len(sides))
    return ClassifierOutput(labeller_fields(reader), reader.names, dict(zip(sides, chances, strict=True)))


def _classified(material: Material, labels: str, reader: Labeller | None) -> ClassifierOutput:
    """The output of a classifier for the replies and the other side in SIDES, computed in one pass."""
    reader = _able(material, labels, reader)
    sides = SIDES.get(labels, ("replies", "references"))
    texts = [material.replies if side == "replies" else material.get(side) for side in sides]
    every = [text for side in texts for text in side]
    shown = {"polarity": "positivity", "emotion-intent": "labels of replies"}.get(labels, f"{labels} of replies")
    chances = reader.distribution(every, material.progress(shown, len(every)))
    return ClassifierOutput(
        labeller_fields(reader), reader.names, dict(zip(sides, np.split(chances, len(sides)), strict=True))
    )


def _empathy(material: Material, load: EmpathyLoader) -> ClassifierOutput:
    """The expected empathy levels of the replies to the turns they answer, and of the references if there are any."""
    reader = load()
    posts: list[str] = material.get("contexts")
    sides: dict[str, Sequence[str]] = {"replies": material.replies}
    if any(item.reply for item in material.items):
        sides["references"] = material.get("references")
    pairs: list[Pair] = [pair for texts in sides.values() for pair in zip(posts, texts, strict=True)]
    levels = np.split(reader.expected(pairs, material.progress("empathy", len(pairs))), len(sides))
    return ClassifierOutput(labeller_fields(reader), MECHANISMS, dict(zip(sides, levels, strict=True)))


def labeller_fields(labeller: Labels | EmpathyClassifier) -> dict[str, str]:
    """Signature fields that identify a classifier; two training runs of one recipe differ."""
    ckpt = labeller.checkpoint
    return {"by": ckpt.meta.get("recipe", {}).get("name", ckpt.name), "weights": fingerprint(ckpt)[:8]}
