"""Ablation of the reranking terms: chooses again among saved candidates.

Generating candidates takes hours, reranking them a moment. An evaluation stores candidates with their terms; here they
are reranked with other weights, and the resulting replies are scored.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from listenwell import metrics
from listenwell.classifiers.labeller import Labeller
from listenwell.classifiers.sentence_encoder import SentenceEncoder
from listenwell.data.dialogue import Dialogue, Example, Turn
from listenwell.evaluation.evaluate import Progress, reply_scores
from listenwell.evaluation.store import StoredEvaluation
from listenwell.metrics import Score
from listenwell.systems.house.options import Rerank
from listenwell.systems.reply import Candidate, Reply

TERMS = tuple(asdict(Rerank()))


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to choose among the candidates, with its scores."""

    name: str
    weights: Rerank | None
    """None for a random candidate."""
    scores: dict[str, Score]
    changed: float
    """The share of replies that differ from those of the first variant, in percent."""


def stored_candidates(evaluation: StoredEvaluation) -> list[list[Candidate]]:
    """The candidates of every item, with their terms."""
    candidates = [[Candidate.from_json(one) for one in record.get("candidates", ())] for record in evaluation.records]
    if not candidates or not all(candidates):
        raise ValueError(
            f"{evaluation.place}: replies.jsonl has no candidates to choose among; only a system that weighs several "
            "keeps them (listenwell evaluate runs/house, with a weight in decoding.rerank)"
        )
    return candidates


def known_terms(candidates: Sequence[Sequence[Candidate]]) -> tuple[str, ...]:
    """The terms that every candidate has, in the order of `Rerank`."""
    # The plain fallback sentence, used if all candidates were vetoed, has none.
    weighed = [one.terms for several in candidates for one in several if one.terms]
    return tuple(name for name in TERMS if weighed and all(name in terms for terms in weighed))


def weights_of(evaluation: StoredEvaluation) -> Rerank:
    """The weights that the evaluation used."""
    return Rerank(**evaluation.about.get("rerank", {}))


def ways(weights: Rerank, terms: Sequence[str]) -> list[tuple[str, Rerank | None]]:
    """The variants to compare: all terms, without each one, each one alone, and none (a random candidate)."""
    if missing := [name for name in TERMS if getattr(weights, name) and name not in terms]:
        raise ValueError(
            f"the candidates were not weighed by {', '.join(missing)}, so that it is not known; they have "
            f"{', '.join(terms) or 'no terms'}. Evaluate again with a weight for it, however small"
        )
    used = [name for name in terms if getattr(weights, name)]
    variants: list[tuple[str, Rerank | None]] = [("all", weights)]
    if len(used) > 1:
        variants += [(f"without {name}", replace(weights, **{name: 0.0})) for name in used]
    variants += [(f"{name} alone", Rerank(**{name: 1.0})) for name in terms]
    return [*variants, ("any candidate", None)]


def choose(candidates: Sequence[Sequence[Candidate]], weights: Rerank | None) -> list[Candidate]:
    """The best candidate of each item by the weights, with ties broken at random; without weights a random one.

    Deterministic. A vetoed candidate is only chosen by weights if there is no other.
    """
    draw = random.Random(0)
    # Candidates are stored best first by all terms; without shuffling, that order would break ties of a single term.
    shuffled = [draw.sample(several, len(several)) for several in candidates]
    if weights is None:
        return [several[0] for several in shuffled]
    return [max(several, key=lambda one: (not one.vetoed, weights.total(one.terms))) for several in shuffled]


def reranked(
    evaluation: StoredEvaluation,
    weights: Rerank | None,
    progress: Progress,
    judge: Labeller | None = None,
    encoder: SentenceEncoder | None = None,
    resamples: int = 0,
) -> list[Choice]:
    """All variants, with the scores of the replies they choose. Models read each candidate only once."""
    candidates = stored_candidates(evaluation)
    items = [_item(record) for record in evaluation.records]
    read = _Read(candidates, items, judge, encoder, progress)
    choices: list[Choice] = []
    first: list[str] = []
    for name, chosen_by in ways(weights or weights_of(evaluation), known_terms(candidates)):
        texts = [one.text for one in choose(candidates, chosen_by)]
        first = first or texts
        changed = 100 * float(np.mean([mine != theirs for mine, theirs in zip(texts, first, strict=True)]))
        scores = {s.name: s for s in [*reply_scores([Reply(text) for text in texts], items, resamples), *read(texts)]}
        choices.append(Choice(name, chosen_by, scores, changed))
    return choices


class _Read:
    """Model-based scores of replies; the models read every candidate once, in advance."""

    def __init__(
        self,
        candidates: Sequence[Sequence[Candidate]],
        items: Sequence[Example],
        judge: Labeller | None,
        encoder: SentenceEncoder | None,
        progress: Progress,
    ) -> None:
        texts = sorted({one.text for several in candidates for one in several})
        self.place = {text: row for row, text in enumerate(texts)}
        self.leaning: dict[str, tuple[str, np.ndarray]] = {}
        if judge is not None:
            chances = judge.distribution(texts, progress("positivity", len(texts)))
            self.leaning["positivity"] = (judge.checkpoint.name, metrics.leaning(chances))
            self.language = metrics.readable(texts)
        if find_spec("vaderSentiment") is not None:
            self.leaning["vader"] = (metrics.vader_version(), metrics.vader(texts, progress("VADER", len(texts))))
        self.encoder = encoder
        if encoder is not None:
            references = [item.reply.text if item.reply else "" for item in items]
            every = encoder.embed([*texts, *references], progress("sentence embeddings", len(texts) + len(references)))
            self.vectors, self.references = np.split(every, [len(texts)])

    def __call__(self, texts: Sequence[str]) -> list[Score]:
        rows = [self.place[text] for text in texts]
        scores = [
            metrics.positivity(
                values[rows],
                by=by,
                language=self.language[rows] if name == "positivity" else None,
                name=name,
                resamples=0,
            )
            for name, (by, values) in self.leaning.items()
        ]
        if self.encoder is not None:
            scores.append(
                metrics.sentence_similarity(self.vectors[rows], self.references, encoder=self.encoder.name, resamples=0)
            )
        return scores


def _item(record: dict[str, Any]) -> Example:
    context = Dialogue.from_texts(record["context"]).turns
    reference = record.get("reference")
    return Example(record["id"], context, None if reference is None else Turn("listener", reference))
