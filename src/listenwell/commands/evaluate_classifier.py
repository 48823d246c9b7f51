"""`listenwell evaluate` for classifiers: of turns, of dialogues (a listener), of the empathy of replies (which read
pairs), and choosers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from listenwell.commands.evaluation_input import Corpus, Options, Subject, output_folder

if TYPE_CHECKING:
    from listenwell.data.dialogue import Example


def evaluate_classifier(options: Options, subject: Subject, corpus: Corpus) -> None:
    from listenwell.classifiers.chooser import chooses
    from listenwell.classifiers.empathy import judges_empathy
    from listenwell.classifiers.listener import listens
    from listenwell.evaluation.store import folder_name

    assert subject.checkpoint is not None
    for_replies: dict[str, Any] = {
        "--decoding": options.decoding,
        "--items": options.items,
        "--judge": options.judge,
        "--labeller": options.labeller,
        "--empathy": options.empathy,
        "--positivity": options.positivity,
        "--precision": options.precision,
        "--workers": options.workers > 1,
        "--vectors": options.vectors,
    }
    if needless := [name for name, value in for_replies.items() if value]:
        raise ValueError(f"{options.system} labels texts and writes no replies; leave {', '.join(needless)} out")
    is_own = (corpus.data, corpus.part) == subject.trained_on()
    data, part = (None, None) if is_own else (corpus.data, corpus.part)
    out = output_folder(options, folder_name(options.split, data, part, limit=options.limit))
    run = evaluate_contexts if listens(subject.checkpoint) else evaluate_turns
    if judges_empathy(subject.checkpoint):
        run = evaluate_pairs
    if chooses(subject.checkpoint):
        run = evaluate_choices
    run(options, subject, corpus, out)


def evaluate_contexts(options: Options, subject: Subject, corpus: Corpus, out: Path | None) -> None:
    """Score a listener's predictions before every listener turn, write them to `out`, and print the scores."""
    from itertools import islice

    from listenwell.classifiers.listener import ListenerClassifier
    from listenwell.commands.display import tracked
    from listenwell.data.dialogue import examples
    from listenwell.evaluation.listener_scores import evaluate_listening, write

    assert subject.checkpoint is not None
    every = (item for dialogue in corpus.dialogues for item in examples(dialogue))
    items = list(islice(every, options.limit or None))
    listener = ListenerClassifier(subject.checkpoint)
    with tracked() as progress:
        evaluation = evaluate_listening(listener, items, corpus.about, progress, options.resamples)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write(evaluation, out)
    if options.json:
        _print_json(options, evaluation)
        return
    console = _print_scores(options, corpus, evaluation, f"{len(items):,} contexts")
    if out is not None:
        console.print(f"written to {out}: scores.json, heard.jsonl, confusion.png", highlight=False)


def evaluate_pairs(options: Options, subject: Subject, corpus: Corpus, out: Path | None) -> None:
    """Score predicted empathy levels on replies that people rated, write them to `out`, and print the scores."""
    from listenwell.classifiers.empathy import EmpathyClassifier
    from listenwell.commands.display import table, tracked
    from listenwell.evaluation.empathy_scores import evaluate_empathy, write

    assert subject.checkpoint is not None
    items = _items(options, corpus)
    with tracked() as progress:
        evaluation = evaluate_empathy(
            EmpathyClassifier(subject.checkpoint), items, corpus.about, progress, options.resamples
        )
    _keep(evaluation, out, write)
    if options.json:
        _print_json(options, evaluation)
        return
    console = _print_scores(options, corpus, evaluation, f"{evaluation.about['items']:,} pairs")
    for mechanism, classes in evaluation.classes.items():
        heads = ("level", "gold", "given", "precision %", "recall %", "F1 %")
        console.print(table(mechanism, heads, [one.cells() for one in classes], right=heads[1:]))
    if out is not None:
        console.print(f"written to {out}: scores.json, levels.jsonl", highlight=False)


def evaluate_choices(options: Options, subject: Subject, corpus: Corpus, out: Path | None) -> None:
    """Score a chooser on replies that a reader rated, write the predictions to `out`, and print the scores."""
    from listenwell.classifiers.chooser import ReplyChooser
    from listenwell.commands.display import tracked
    from listenwell.evaluation.chooser_scores import evaluate_chooser, write

    assert subject.checkpoint is not None
    items = _items(options, corpus)
    with tracked() as progress:
        evaluation = evaluate_chooser(
            ReplyChooser(subject.checkpoint), items, corpus.about, progress, options.resamples
        )
    _keep(evaluation, out, write)
    if options.json:
        _print_json(options, evaluation)
        return
    console = _print_scores(options, corpus, evaluation, f"{evaluation.about['items']:,} replies")
    if out is not None:
        console.print(f"written to {out}: scores.json, fits.jsonl", highlight=False)


def _items(options: Options, corpus: Corpus) -> list[Example]:
    """The items of the corpus, up to the limit if there is one."""
    from listenwell.data.dialogue import examples

    return [item for dialogue in corpus.dialogues for item in examples(dialogue)][: options.limit or None]


def _keep(evaluation: Any, out: Path | None, write: Callable[[Any, Path], None]) -> None:
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write(evaluation, out)


def evaluate_turns(options: Options, subject: Subject, corpus: Corpus, out: Path | None) -> None:
    """Score a classifier on the labelled turns, write its predictions to `out`, and print the scores."""
    from dataclasses import asdict

    from listenwell.classifiers.labeller import Labeller
    from listenwell.commands.display import table, tracked
    from listenwell.evaluation.classifier_scores import evaluate_labels, labelled_turns, write

    assert subject.checkpoint is not None
    labeller = Labeller(subject.checkpoint, subject.checkpoint.model.label_set)
    turns = labelled_turns(corpus.dialogues)[: options.limit or None]
    with tracked() as progress:
        evaluation = evaluate_labels(labeller, turns, corpus.about, progress, options.resamples)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write(evaluation, out)
    if options.json:
        _print_json(options, evaluation, classes=[asdict(one) for one in evaluation.classes])
        return
    console = _print_scores(options, corpus, evaluation, f"{evaluation.about['items']:,} turns")
    heads = ("label", "gold", "given", "precision %", "recall %", "F1 %")
    console.print(table("Each label", heads, [one.cells() for one in evaluation.classes], right=heads[1:]))
    if out is not None:
        console.print(f"written to {out}: scores.json, labels.jsonl, confusion.png", highlight=False)


def _print_json(options: Options, evaluation: Any, **more: Any) -> None:
    import json

    scores = [score.to_json() for score in evaluation.scores]
    print(json.dumps({"system": options.system, "about": evaluation.about, "scores": scores, **more}))


def _print_scores(options: Options, corpus: Corpus, evaluation: Any, count: str) -> Any:
    """Print the scores. Returns the console, for further output."""
    from listenwell.commands.display import report, scores_table

    console = report()
    data = ", ".join(str(corpus.about[key]) for key in ("data", "part", "split") if key in corpus.about)
    console.print(scores_table(f"{options.system} on {data}: {count}", evaluation.scores))
    return console
