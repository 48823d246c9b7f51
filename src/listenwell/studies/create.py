"""`study create`: from a spec to a study in a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from listenwell.data import sources
from listenwell.data.dialogue import Dialogue
from listenwell.evaluation import published
from listenwell.studies.design import Talks, draw, groups_of_systems, make_design, write_replies
from listenwell.studies.records import Design, Study
from listenwell.studies.spec import HUMAN, StudySpec
from listenwell.studies.store import Store

ProgressBar = Callable[[str, int], Callable[[int], None]]


def no_progress(_: str, __: int) -> Callable[[int], None]:
    return lambda more: None


def create(
    store: Store,
    name: str,
    spec: StudySpec,
    load: Callable[[str], Talks] | None = None,
    progress: ProgressBar = no_progress,
) -> Study:
    """Make a study and store it, completely or not at all."""
    spec = with_language(spec)
    return store.add(name, spec, prepare(spec, load, progress))


def with_language(spec: StudySpec) -> StudySpec:
    """Fill in the language of the data if the spec has none, since raters read the pages and the data together."""
    first = None if spec.language else next(_read(spec), None)
    return spec if first is None else replace(spec, language=first.language)


def prepare(spec: StudySpec, load: Callable[[str], Talks] | None = None, progress: ProgressBar = no_progress) -> Design:
    """Draw the items, let every system reply once, and lay out the tasks."""
    load = load or load_system
    check_systems(spec.systems, load)
    for place in spec.published:
        published.rows_at(place)  # a missing table raises now, not in the report
    try:
        drawn = draw(_read(spec), spec.items, spec.seed, spec.last_turn_only)
    except ValueError as problem:
        raise ValueError(
            f"{spec.data}, split {spec.split}: {problem}; name another with --split, or fewer --items"
        ) from problem
    return make_design(spec, drawn, write_replies(drawn, spec.systems, load, progress), made_from(spec))


def _read(spec: StudySpec) -> Iterator[Dialogue]:
    for dialogue in sources.read(spec.data, spec.path, spec.split):
        yield dialogue if dialogue.source else replace(dialogue, source=Path(spec.data).stem)


def load_system(name: str) -> Talks:
    """Load the bare system, as `listenwell generate` does: a study measures the system, not the care in front of it."""
    from listenwell.loading import load

    return load(name, care=False)


def check_systems(names: list[str], load: Callable[[str], Talks]) -> None:
    """Raise an error that lists all unknown system names, before any reply is written."""
    from listenwell.weights import find, is_remote

    if load is not load_system:
        return
    problems = []
    for name in names:
        try:
            if name != HUMAN and not is_remote(name):
                find(name)
        except (ValueError, OSError) as problem:
            problems.append(str(problem))
    if problems:
        raise ValueError("; ".join(problems))


def made_from(spec: StudySpec) -> dict[str, Any]:
    """Record what a study was made from, to detect later changes."""
    from listenwell import __version__

    return {
        "data hash": current_hash(spec),
        "listenwell": __version__,
        "groups": [list(group) for group in groups_of_systems(spec)],
    }


def current_hash(spec: StudySpec) -> str | None:
    """The hash of the corpus as it is now; None if it can no longer be found."""
    try:
        return sources.data_hash(sources.data_files(spec.data, spec.path, spec.split))
    except (OSError, ValueError):
        return None


def data_notice(study: Study) -> str | None:
    """A notice if the corpus has changed since the items were drawn. The items stay as they were."""
    before, now = study.made_from.get("data hash"), current_hash(study.spec)
    if now is None:
        return f"{study.spec.data} is not here any more; the study's items were frozen when it was made, and are used"
    if before != now:
        return (
            f"{study.spec.data} has changed since the study was made (hash {before}, now {now}); its items were frozen "
            "then, and are used as they were. A new study would draw others"
        )
    return None
