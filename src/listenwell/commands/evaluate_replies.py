"""`listenwell evaluate` for systems that reply."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from listenwell.commands.evaluation_input import Corpus, Options, Subject, output_folder

if TYPE_CHECKING:
    from listenwell.checkpoint import Checkpoint
    from listenwell.classifiers.empathy import EmpathyClassifier
    from listenwell.data.dialogue import Example
    from listenwell.evaluation.evaluate import Evaluation
    from listenwell.evaluation.material import EmpathyLoader
    from listenwell.evaluation.partial import PartialResults


def evaluate_replies(options: Options, subject: Subject, corpus: Corpus) -> None:
    from listenwell.evaluation.evaluate import write
    from listenwell.evaluation.store import folder_name

    bot, own_way = load_bot(options, subject)
    items, drawn_from = choose_items(options, corpus)
    readers = load_readers(options, subject, items[0].language if items else "en")
    about = {**corpus.about, **getattr(bot, "about", {}), **drawn_from}
    usual = (corpus.data, corpus.part) == ("empathetic-dialogues", None)
    way = bot.decoding.signature()
    name = folder_name(
        options.split,
        None if usual else corpus.data,
        corpus.part,
        options.items,
        options.limit,
        decoding=None if way == own_way else way,
    )
    out = output_folder(options, name)
    with open_partial_results(options, subject, bot, items, out) as partial_results:
        evaluation = measure(options, bot, items, about, readers, partial_results)
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            write(evaluation, out)
    print_scores(options, corpus, evaluation, out)


def load_bot(options: Options, subject: Subject) -> tuple[Any, str]:
    """The system, set up according to the options, and the signature of its own decoding."""
    from listenwell.loading import talking_system
    from listenwell.systems.bot import Bot
    from listenwell.systems.controls import lean
    from listenwell.systems.house.system import House

    bot: Any = subject.remote if subject.checkpoint is None else talking_system(subject.checkpoint)
    own_way = bot.decoding.signature()
    if options.decoding is not None:
        bot.decoding = options.decoding.over(bot.decoding)
    lean(bot, options.positivity)
    if options.precision:
        if not isinstance(bot, Bot | House):
            raise ValueError(f"{options.system} has a fixed precision; leave --precision out")
        bot.precision = options.precision
    return bot, own_way


def load_readers(options: Options, subject: Subject, language: str = "en") -> dict[str, Any]:
    """The classifiers that read the replies: the labeller, the judge of how positive they are, and that of empathy.

    For languages other than English, the default judge is judge-LANGUAGE.
    """
    from listenwell.classifiers.label_cache import LABELLER
    from listenwell.classifiers.labeller import Labeller
    from listenwell.evaluation.evaluate import check_judge
    from listenwell.labels.sets import EMOTION_INTENT

    labeller = reading(options.labeller, "emotion-intent")
    judge = reading(options.judge, "judge" if language == "en" else f"judge-{language}", "polarity")
    trained = subject.checkpoint
    if trained is not None:
        own = trained.parts.get(LABELLER)
        if labeller is None and own is not None and own.model.label_set == EMOTION_INTENT:
            labeller = Labeller(own)
        if judge is not None:
            check_judge(judge.checkpoint, trained)
    empathy = empathy_loader(options.empathy, trained)
    return {"labeller": labeller, "judge": judge, "empathy": empathy, "vectors": options.vectors}


def empathy_loader(named: str | None, system: Checkpoint | None) -> EmpathyLoader:
    """A function that loads the empathy classifier, given or shipped, once a metric needs it."""
    from listenwell.classifiers.empathy import DEFAULT, EmpathyClassifier
    from listenwell.evaluation.evaluate import part_of
    from listenwell.metrics.material import UnavailableError
    from listenwell.weights import find

    if named is not None:
        find(named)  # fail early on a wrong name

    def load() -> EmpathyClassifier:
        try:
            classifier = EmpathyClassifier.load(named or DEFAULT)
        except (ImportError, OSError, ValueError) as problem:
            if named is not None:
                raise
            raise UnavailableError(str(problem)) from problem
        if system is not None and (part := part_of(classifier.checkpoint, system)) is not None:
            raise UnavailableError(f"{classifier.name} is the {part} that {system.name} itself has")
        return classifier

    return load


def choose_items(options: Options, corpus: Corpus) -> tuple[list[Example], dict[str, Any]]:
    """The items to reply to, and a note if they were sampled from more."""
    from itertools import islice

    from listenwell.data.dialogue import examples
    from listenwell.evaluation.evaluate import draw_items

    every = (item for dialogue in corpus.dialogues for item in examples(dialogue))
    chosen = list(islice(every, options.limit or None))
    if not options.items:
        return chosen, {}
    note = f"{min(options.items, len(chosen)):,} of {len(chosen):,}, seed 0"
    return draw_items(chosen, options.items), {"drawn": note}


@contextmanager
def open_partial_results(
    options: Options, subject: Subject, bot: Any, items: list[Example], out: Path | None
) -> Iterator[PartialResults | None]:
    """Partial results of an earlier, interrupted evaluation with the same settings, to resume from.

    They are deleted once everything is written, and kept if this evaluation is interrupted too. Without an output
    folder there are none (None), or temporary ones if there are several workers.
    """
    import sys
    from tempfile import TemporaryDirectory

    from listenwell import __version__
    from listenwell.classifiers.label_cache import fingerprint
    from listenwell.evaluation.evaluate import all_parts
    from listenwell.evaluation.partial import PartialResults, request_key
    from listenwell.outputs import resolved

    if out is None:
        if options.workers == 1:
            yield None
            return
        with TemporaryDirectory() as folder:
            yield PartialResults(Path(folder) / "begun", "begun")
        return
    identity: list[Any] = [options.system, options.base_url]
    if subject.checkpoint is not None:
        checkpoints = (subject.checkpoint, *(part for _, part in all_parts(subject.checkpoint)))
        identity = [(fingerprint(one), one.model.config) for one in checkpoints]
    place = resolved(out)
    key = request_key(items, identity, bot.decoding, options.precision, __version__)
    partial_results = PartialResults(place.with_name(f".{place.name}.begun"), key)
    if len(partial_results):
        print(f"resuming: {len(partial_results):,} of {len(items):,} replies were written before", file=sys.stderr)
    try:
        yield partial_results
    except BaseException:
        if len(partial_results):
            print(f"{len(partial_results):,} replies are saved; the same command resumes from there", file=sys.stderr)
        raise
    partial_results.delete()


def measure(
    options: Options,
    bot: Any,
    items: list[Example],
    about: dict[str, Any],
    readers: dict[str, Any],
    partial_results: PartialResults | None,
) -> Evaluation:
    from functools import partial

    from listenwell.commands.display import tracked
    from listenwell.evaluation.evaluate import evaluate as score
    from listenwell.evaluation.workers import compute, load_like

    with tracked() as progress:
        if options.workers > 1 and partial_results is not None:
            about = {**about, "workers": options.workers}
            load_other = partial(load_like, options.system, bot.decoding, options.precision)
            compute(bot, load_other, items, options.workers, partial_results, progress)
        return score(
            bot,
            items,
            about,
            progress,
            options.resamples,
            **readers,
            partial_results=partial_results,
            metrics=chosen_metrics(options),
        )


def chosen_metrics(options: Options) -> str | list[str] | None:
    if options.metrics in (None, "all"):
        return options.metrics
    return [name.strip() for name in options.metrics.split(",") if name.strip()]


def print_scores(options: Options, corpus: Corpus, evaluation: Evaluation, out: Path | None) -> None:
    import json

    from listenwell.commands.display import report, scores_table

    if options.json:
        scores = [score.to_json() for score in evaluation.scores]
        print(json.dumps({"system": options.system, "about": evaluation.about, "scores": scores}))
        return
    count, way = len(evaluation.items), evaluation.about["decoding"]
    console = report()
    title = f"{options.system} on {corpus.data}, {options.split}: {count:,} items, {way}"
    console.print(scores_table(title, evaluation.scores))
    by_reason: dict[str, list[str]] = {}
    for name, reason in evaluation.about.get("left out", {}).items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        console.print(f"left out: {', '.join(names)} ({reason})", highlight=False, markup=False, style="dim")
    if out is not None:
        drawing = ", labels.png" if evaluation.labels else ""
        console.print(f"written to {out}: scores.json, replies.jsonl{drawing}", highlight=False)


def reading(named: str | None, usual: str, labels: Any = "emotion-intent") -> Any:
    """Load a classifier that reads replies: the one named, or else the usual one if it is installed."""
    from listenwell.classifiers.labeller import Labeller
    from listenwell.weights import shipped

    if named is None and usual not in shipped():
        return None
    return Labeller.load(named or usual, labels)
