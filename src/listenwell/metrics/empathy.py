"""How much empathy replies show, by EPITOME's classifier: emotional reactions, interpretations and explorations.

Each is the mean of the replies' expected levels, from 0 (none) to 2 (strong), with the same for the references, which
people wrote. More is not always better: a system that asks in every reply has the most explorations. The classifier
reads the turn being answered and the reply, and was trained on Reddit: short chat has lower levels.

They are computed on request (`--metrics explorations,reference-explorations`), since reading pairs is slow. A
classifier gives every text a level; a reply that is not language (`listenwell.metrics.language`) counts as none, 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from listenwell.labels.empathy import LEVELS, MECHANISMS
from listenwell.metrics.bootstrap import RESAMPLES, SEED, same_length, score_with_interval
from listenwell.metrics.material import ClassifierOutput, Material
from listenwell.metrics.positivity import readable
from listenwell.metrics.registry import metric
from listenwell.metrics.score import Score, Signature
from listenwell.metrics.sums import Statistics

ABOUT = {
    "emotional-reactions": "How much warmth, concern or compassion replies voice, 0 to 2",
    "interpretations": "How much replies tell of what they understood of feelings and experiences, 0 to 2",
    "explorations": "How much replies ask about feelings and experiences, 0 to 2",
}


def mean_level(
    levels: ArrayLike,
    mechanism: str,
    *,
    by: str,
    of: str = "reply",
    language: ArrayLike | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Score:
    """Mean of levels from 0 to 2, one per item. `language` tells which texts are language; the others count as 0."""
    values = np.asarray(levels, dtype=np.float64)
    if values.ndim != 1 or (values.size and not 0 <= values.min() <= values.max() <= len(LEVELS) - 1):
        raise ValueError(f"{mechanism}: levels are numbers from 0 to {len(LEVELS) - 1}, one per item")
    how = {"level": "expected", "by": by}
    if language is not None:
        same_length(levels=values, language=np.asarray(language))
        values, how["gibberish"] = np.where(language, values, 0.0), "none"
    statistics = Statistics(np.stack([values, np.ones(len(values))], axis=1), "ratio")
    name = mechanism if of == "reply" else f"{of}-{mechanism}"
    signature = Signature.of(mechanism, of=of, **how)
    return score_with_interval(name, statistics, signature, "higher", resamples=resamples, seed=seed)


def _register(mechanism: str, of: str) -> None:
    side = "replies" if of == "reply" else "references"
    about = ABOUT[mechanism] if of == "reply" else f"The same of the references: {mechanism} of what people wrote"
    needs = ["contexts", *(["references"] if of == "reference" else []), "classifier empathy"]

    @metric(mechanism if of == "reply" else f"{of}-{mechanism}", needs=needs, languages=["en"], about=about)
    def compute(material: Material) -> Score:
        read: ClassifierOutput = material.get("classifier empathy")
        texts = material.replies if of == "reply" else material.get("references")
        language = material.shared(f"language of {side}", lambda: readable(texts))
        levels = read[side][:, list(read.names).index(mechanism)]
        by = " ".join(read.by.values())
        return mean_level(levels, mechanism, by=by, of=of, language=language, **material.resampling)


for _mechanism in MECHANISMS:
    _register(_mechanism, "reply")
    _register(_mechanism, "reference")
