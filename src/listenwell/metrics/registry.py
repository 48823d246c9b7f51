"""Metrics by name. A metric is registered in its own module; no other code needs to know about it.

    @metric("questions", better="higher")
    def _questions(material: Material) -> Score:
        '''The share of replies that ask something.'''

The modules of this package are imported when the first metric is looked up, then those that other packages name in the
entry point group `listenwell.metrics`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from listenwell.labels.taxonomy import unknown_name
from listenwell.metrics.material import CLASSIFIER, NEEDS, Material, UnavailableError
from listenwell.metrics.score import Better, Score
from listenwell.notices import PluginWarning, warn_once
from listenwell.plugins import describe, plugins

GROUP = "listenwell.metrics"
"""The entry point group for packages with their own metrics: each entry names a module that registers them."""

DEFAULT: tuple[str, ...] = (
    *("perplexity-word", "perplexity", "perplexity-word-labelled", "perplexity-labelled"),
    *("perplexity-word-oracle", "perplexity-oracle"),
    *("accuracy@1", "accuracy@2", "accuracy@5", "macro-f1", "weighted-f1"),
    *("label-precision", "label-recall", "label-f1"),
    *("random-label-precision", "random-label-recall", "random-label-f1"),
    *("bleu-4", "sacrebleu", "average-bleu", "distinct-1", "distinct-2", "unique", "unique-count"),
    *("sorry-to-hear", "bland", "length", "ses"),
    *("positivity", "positivity-gain", "vader", "vader-gain", "reply-emotion@1", "reference-emotion@1"),
)
"""The metrics that an evaluation computes by default, in the order of its tables. Others come after these."""

DEFAULT_IN: dict[str, tuple[str, ...]] = {"zh": ("sacrebleu-zh", "bland-zh")}
"""By language, the further default metrics, in place of those made for English."""

LANGUAGE_NAMES = {"en": "English", "zh": "Chinese"}


@dataclass(frozen=True)
class Metric:
    """How a score is computed, and what it needs."""

    name: str
    compute: Callable[[Material], Score]
    about: str
    needs: tuple[str, ...] = ()
    """Keys of `material.NEEDS`, cheap ones first."""
    packages: tuple[str, ...] = ()
    """Optional packages that must be installed."""
    languages: tuple[str, ...] = ()
    """The languages it is made for; empty for any."""
    better: Better = "higher"

    def missing(self, material: Material) -> str | None:
        """Returns why it cannot be computed from the material; None if it can."""
        if self.languages and (others := [name for name in material.languages if name not in self.languages]):
            return f"made for {languages(self.languages)}, and the items are in {languages(others)}"
        for package in self.packages:
            if find_spec(package) is None:
                return f"needs {package}: pip install 'listenwell[metrics]'"
        for need in self.needs:
            try:
                material.get(need)
            except UnavailableError as reason:
                return str(reason)
        return None


@dataclass
class Scored:
    """The scores that could be computed, and why the others were left out."""

    scores: list[Score] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


_METRICS: dict[str, Metric] = {}


def metric(
    name: str,
    *,
    needs: Sequence[str] = (),
    packages: Sequence[str] = (),
    languages: Sequence[str] = (),
    better: Better = "higher",
    about: str = "",
) -> Callable[[Callable[[Material], Score]], Callable[[Material], Score]]:
    """Registers a function from material to a score. `about` describes it, by default the docstring's first line."""

    def registered(compute: Callable[[Material], Score]) -> Callable[[Material], Score]:
        text = about or (compute.__doc__ or "").strip().partition("\n")[0]
        _add(Metric(name, compute, text, tuple(needs), tuple(packages), tuple(languages), better))
        return compute

    return registered


def _add(new: Metric) -> None:
    for need in new.needs:
        if need not in NEEDS and not need.startswith(CLASSIFIER):
            raise ValueError(f"metric {new.name}: " + unknown_name("need", need, NEEDS))
    old = _METRICS.get(new.name)
    # A module that is imported again registers its metrics again.
    if old is not None and _origin(old) != _origin(new):
        raise ValueError(f"metric {new.name} is registered twice, in {_origin(old)} and {_origin(new)}; rename one")
    _METRICS[new.name] = new


def _origin(one: Metric) -> str:
    return one.compute.__module__


@cache
def _discover() -> None:
    from listenwell import metrics

    for module in pkgutil.iter_modules(metrics.__path__):
        import_module(f"{metrics.__name__}.{module.name}")
    for entry in plugins(GROUP).values():
        try:
            import_module(entry.module)
        except Exception as problem:  # whatever it raises, other metrics are still computed
            reason = f"{type(problem).__name__}: {problem}"
            warn_once(f"{describe(entry)} in {GROUP} is ignored: {reason}", PluginWarning)


def known() -> dict[str, Metric]:
    """Returns all metrics by name: the default ones in table order, then the others by module and registration."""
    _discover()
    first = [name for name in DEFAULT if name in _METRICS]
    # Not by registration alone, which depends on the order of imports.
    others = sorted((name for name in _METRICS if name not in DEFAULT), key=lambda name: _origin(_METRICS[name]))
    return {name: _METRICS[name] for name in (*first, *others)}


def chosen(names: str | Iterable[str] | None, languages: Sequence[str] = ("en",)) -> list[Metric]:
    """Returns the named metrics in table order; None for the default set, "all" for every one."""
    every = known()
    if names == "all":
        return list(every.values())
    if names is None or names == "default":
        names = [*DEFAULT, *(name for language in languages for name in DEFAULT_IN.get(language, ()))]
    wanted = {names} if isinstance(names, str) else set(names)
    for name in sorted(wanted - every.keys()):
        raise ValueError(unknown_name("metric", name, every))
    return [one for name, one in every.items() if name in wanted]


def run(metrics: Iterable[Metric], material: Material) -> Scored:
    """Computes each metric that can be computed from the material."""
    result = Scored()
    for one in metrics:
        try:
            reason = one.missing(material)
            if reason is None:
                result.scores.append(one.compute(material))
        except UnavailableError as problem:
            reason = str(problem)
        if reason is not None:
            result.left_out[one.name] = reason
    return result


def languages(codes: Iterable[str]) -> str:
    return " and ".join(LANGUAGE_NAMES.get(code, code) for code in codes)
