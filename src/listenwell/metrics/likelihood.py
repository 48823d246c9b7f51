"""Perplexity, weighted by tokens over the whole split, so that models can be compared whatever their tokenizer.

A model with a smaller vocabulary must not win by calling words unknown. An unknown target word costs the model's
negative log-likelihood of UNK *plus* log(number of unseen types in the split), the cost of naming which one it was.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from listenwell.metrics.bootstrap import RESAMPLES, SEED, same_length, score_with_interval
from listenwell.metrics.material import Material
from listenwell.metrics.registry import metric
from listenwell.metrics.score import Score, Signature
from listenwell.metrics.sums import Array, Statistics


def perplexity(
    nll: ArrayLike,
    tokens: ArrayLike,
    *,
    unknown: ArrayLike | None = None,
    unseen_types: int = 0,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Score:
    """Perplexity per token of the model's own tokenizer.

    Per item: `nll`, the total negative log-likelihood (nats, smoothing off) of the reply and its end token; `tokens`,
    the number of tokens including the end token; `unknown`, how many of them are UNK.
    """
    counted = _numbers("tokens", tokens)
    if len(low := np.flatnonzero(counted < 1)):
        raise ValueError(f"item {low[0]}: {counted[low[0]]:g} tokens; the end token makes at least 1")
    return _perplexity("token", nll, counted, unknown, unseen_types, resamples=resamples, seed=seed)


def perplexity_per_word(
    nll: ArrayLike,
    words: ArrayLike,
    *,
    unknown: ArrayLike | None = None,
    unseen_types: int = 0,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Score:
    """Perplexity per word, for models with any tokenizer: total NLL over (words + end).

    Per item: `nll` and `unknown` as for `perplexity`; `words`, counted by the word-level tokenizer *without* the end,
    which is added here. For a word-level model, this equals `perplexity`.
    """
    counted = _numbers("words", words)
    if len(low := np.flatnonzero(counted < 0)):
        raise ValueError(f"item {low[0]}: {counted[low[0]]:g} words")
    return _perplexity("word", nll, counted + 1, unknown, unseen_types, resamples=resamples, seed=seed)


def _perplexity(
    per: str, nll: ArrayLike, counted: Array, unknown: ArrayLike | None, unseen_types: int, **resampling: int
) -> Score:
    cost = _numbers("nll", nll)
    unknowns = np.zeros_like(cost) if unknown is None else _numbers("unknown", unknown)
    same_length(nll=cost, **{f"{per}s": counted}, unknown=unknowns)
    if len(odd := np.flatnonzero((unknowns < 0) | (unknowns > counted))):
        raise ValueError(f"item {odd[0]}: {unknowns[odd[0]]:g} unknown words of {counted[odd[0]]:g} {per}s")
    total = unknowns.sum()
    if total and unseen_types < 1:
        raise ValueError(
            f"{total:g} target words are unknown, but unseen_types is {unseen_types}: "
            "give the number of word types of the split that the vocabulary lacks"
        )
    if total:
        cost = cost + unknowns * np.log(unseen_types)
    # The rate is over words: the end token, one per item, cannot be unknown.
    rate = total / max(1.0, counted.sum() - len(counted))
    fields: dict[str, Any] = {"per": per, "end": "counted", "smoothing": "off"}
    fields |= {"unk": f"{100 * rate:.2f}%", "unseen": unseen_types, "items": len(cost)}
    statistics = Statistics(np.stack([cost, counted], axis=1), "exp-ratio")
    name = "perplexity" if per == "token" else f"perplexity-{per}"
    return score_with_interval(name, statistics, Signature.of("ppl", **fields), "lower", "", **resampling)


def _numbers(name: str, values: ArrayLike) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name}: one number an item is needed, found shape {array.shape}")
    if len(bad := np.flatnonzero(~np.isfinite(array))):
        raise ValueError(f"{name} of item {bad[0]} is {array[bad[0]]}")
    return array


def of_likelihoods(per: str, likelihoods: Any, **resampling: int) -> Score:
    """Perplexity per word or per token from the result of a system's `likelihoods`."""
    options: dict[str, Any] = {"unknown": likelihoods.unknown, "unseen_types": likelihoods.unseen_types, **resampling}
    if per == "word":
        return perplexity_per_word(likelihoods.nll, likelihoods.words, **options)
    return perplexity(likelihoods.nll, likelihoods.tokens, **options)


def _register(per: str, mark: str, need: str, about: str, **fields: str) -> None:
    name = "perplexity-word" if per == "word" else "perplexity"

    @metric(f"{name}{mark}", needs=[need], better="lower", about=f"Perplexity per {per}{about}")
    def compute(material: Material) -> Score:
        score = of_likelihoods(per, material.get(need), **material.resampling)
        return replace(score, name=f"{name}{mark}", signature=score.signature.plus(**fields)) if mark else score


for _per in ("word", "token"):
    _register(_per, "", "likelihoods", " of the references")
    _register(_per, "-labelled", "labelled likelihoods", " of the references that have a label", only="labelled")
    _register(_per, "-oracle", "oracle likelihoods", " of references whose true label is given", label="true")
    _register(_per, "-given-label", "given-label likelihoods", " of references whose label, the data's or else a "
              "classifier's, is given", label="given")  # fmt: skip
