"""The steps of `listenwell reproduce`: training, scoring, and other material for the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from listenwell.evaluation.reproduce.plan import Plan, Scoring, Training
    from listenwell.evaluation.reproduce.results import Measured, Ratings
    from listenwell.evaluation.reproduce.spec import PaperSpec


def carry_out(work: Plan, spec: PaperSpec, budget: str, precision: Literal["", "bf16"]) -> None:
    """Run the missing steps in turn. An interrupted step is resumed by the command it calls."""
    import sys
    import time

    from listenwell.evaluation.reproduce.plan import Training

    missing = work.missing()
    begun = time.monotonic()
    for number, step in enumerate(missing, 1):
        spent = time.monotonic() - begun
        left = f", about {spent / (number - 1) * (len(missing) - number + 1) / 60:.0f} min left" if number > 1 else ""
        what = f"train {step.recipe}" if isinstance(step, Training) else f"score {step.row}"
        print(f"[{number}/{len(missing)}] {what}{left}", file=sys.stderr, flush=True)
        if isinstance(step, Training):
            _train(step, budget, precision)
        else:
            _score(step, spec, precision)


def _train(step: Training, budget: str, precision: Literal["", "bf16"]) -> None:
    from listenwell.commands.train import train

    step.folder.parent.mkdir(parents=True, exist_ok=True)
    step.mark.touch()
    train(
        step.recipe,
        out=step.folder,
        resume=True,
        set=[f"seed={step.seed}", *(_small(step.recipe) if budget == "small" else [])],
        precision=precision or None,
    )
    step.mark.unlink()


def _small(recipe: str) -> list[str]:
    """Recipe changes that let every stage see only a few examples."""
    from listenwell.evaluation.reproduce.plan import SMALL
    from listenwell.training import load_recipe

    return [f"stages.{index}.examples={SMALL}" for index in range(len(load_recipe(recipe).stages))]


def _score(step: Scoring, spec: PaperSpec, precision: Literal["", "bf16"]) -> None:
    from listenwell.commands.evaluate import evaluate

    step.folder.parent.mkdir(parents=True, exist_ok=True)
    evaluate(
        step.system,
        data=step.dataset.data,
        split=step.dataset.split,
        items=step.dataset.drawn,
        out=step.folder,
        decoding=_decoding(step),
        precision=precision,
        metrics=",".join(_metrics(spec)),
    )


def _decoding(step: Scoring) -> Any:
    from listenwell.decoding import Changes
    from listenwell.evaluation.reproduce.plan import options

    return Changes(options(step.decoding)) if step.decoding else None


def _metrics(spec: PaperSpec) -> list[str]:
    """The usual metrics and those of the paper's tables; any that cannot be computed are left out."""
    from listenwell.metrics.registry import DEFAULT, DEFAULT_IN

    others = [name for names in DEFAULT_IN.values() for name in names]
    return list(dict.fromkeys([*DEFAULT, *others, *spec.scores_needed()]))


def measure_quirks(work: Plan) -> None:
    """Measure the one quirk that saved replies do not give: MIME's perplexity given the gold emotion."""
    import sys

    from listenwell.commands.evaluate_replies import choose_items
    from listenwell.commands.evaluation_input import Options, load_subject, read_corpus
    from listenwell.evaluation.reproduce.gold_emotion import measure
    from listenwell.evaluation.reproduce.quirks import gold_emotion_file

    for step in work.scorings:
        if not step.gold_emotion or not step.done or gold_emotion_file(step.folder).exists():
            continue
        print(f"perplexity of {step.row} with the gold emotion, which is no score", file=sys.stderr, flush=True)
        asked = Options(step.system, data=step.dataset.data, split=step.dataset.split, items=step.dataset.drawn)
        items, _ = choose_items(asked, read_corpus(asked, load_subject(asked)))
        measure(step.system, items, step.folder)


def answer(spec: PaperSpec, work: Plan, root: Path) -> None:
    """Reply to the paper's case studies with each system that was scored."""
    from listenwell.evaluation.reproduce.cases import answer_cases
    from listenwell.loading import load

    def ready(step: Scoring) -> Any:
        system = load(step.system, care=False)
        changes = _decoding(step)
        if changes is not None:
            system.decoding = changes.over(system.decoding)
        return system

    answer_cases(spec.name, work, root, ready)


def read_ratings(spec: PaperSpec, tables: list[str] | None) -> Ratings:
    """The human ratings from the tables' studies, if there are such studies here with ratings."""
    try:
        from listenwell.studies.paper_ratings import for_rows, paper_numbers
        from listenwell.studies.report import make_report
        from listenwell.studies.store import Store, is_there, store_url
    except ModuleNotFoundError:  # without the packages for studies there are no ratings
        return {}
    ratings: dict[tuple[str, str, str, str], Measured] = {}
    for table in tables or spec.tables:
        places = [(row.dataset, row.system, metric) for row in spec.rows(table) for metric in row.values]
        for name in spec.tables[table].studies():
            if not is_there(where := store_url(name, None)):
                continue
            with Store(where) as store:
                studies = [study for study in store.studies() if study.name == name]
                for study in studies:
                    found = for_rows(paper_numbers(make_report(store, study)), places)
                    ratings |= {(table, *place): measured for place, measured in found.items()}
    return ratings


def check_kept(work: Plan) -> str:
    """Recompute every score from saved replies and statistics. Returns a message with their number and the time."""
    import time

    from listenwell.evaluation.rescore import check
    from listenwell.evaluation.store import read_folder

    begun = time.monotonic()
    done = [read_folder(step.folder, "listenwell reproduce") for step in work.scorings if step.done]
    number = check(done)
    return f"{number:,} scores of {len(done)} evaluations computed again in {time.monotonic() - begun:.1f} s: all agree"
