from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from listenwell.systems.house.options import HouseDecoding

if TYPE_CHECKING:
    from listenwell.checkpoint import Checkpoint
    from listenwell.data.dialogue import Dialogue, Example
    from listenwell.evaluation.evaluate import Evaluation
    from listenwell.evaluation.partial import PartialResults


def evaluate(
    system: str,
    data: str | None = None,
    split: str = "test",
    path: Path | None = None,
    part: str | None = None,
    out: Path | None = None,
    decoding: HouseDecoding | None = None,
    limit: int = 0,
    items: int = 0,
    judge: str | None = None,
    labeller: str | None = None,
    resamples: int = 1000,
    json: bool = False,
    positivity: float | None = None,
    base_url: str | None = None,
    precision: Literal["", "bf16"] = "",
    workers: int = 1,
    metrics: str | None = None,
) -> None:
    """Score a system on a split: perplexity, emotion accuracy, BLEU, Distinct, bland replies and more.

    A classifier is scored on the turns that have labels: accuracy, precision, recall, F1, calibration, confusion.

    Every score comes with its 95 % interval and a signature that says how it was computed. The system is given
    what it would be given in use: the turns so far, never the emotion, the label or the situation.

    One that is cut off goes on from the replies that it had, if the same command is given again and has a folder.

    Args:
        system: A trained system by name (`listenwell models`), the folder of a run, or openai:NAME, a model behind a
            server of that protocol. Such a server gives no likelihoods: it gets all scores except perplexity.
        data: A source by name (`listenwell data`) or a .jsonl file; EmpatheticDialogues if not given, and for a
            classifier what it was trained on.
        split: Which split; all for all of them together.
        path: Path of the source, if it is not in LISTENWELL_DATA.
        part: Which part of a source that has parts, such as edos's mturk.
        out: Folder for scores.json and replies.jsonl. In the folder of a run it is evaluation/SPLIT if not given, and
            evaluation/DATA-SPLIT on other data than EmpatheticDialogues (a classifier: than its own). What is not done
            as usual is named behind it: edos-test-2000 with --items, test-greedy+max40 with another decoding.
        decoding: How to write replies; the system's own way in all that is not given.
        limit: Only the first so many items; 0 for all.
        items: So many items, drawn from the split, the same ones for every system; 0 for all.
        judge: A classifier of polarity, by name or folder, that says how positive the replies are; the trained system
            called judge if there is one. It must not be what the system itself chooses its replies by.
        labeller: A classifier of emotions and intents, by name or folder, that labels the replies and the references,
            also into labels.png; the trained system called emotion-intent if there is one, else the system's own.
        resamples: Of the bootstrap that gives the intervals; 0 for none.
        json: Print scores.json instead of a table.
        positivity: How far replies lean towards lifting the mood, from 0 to 1, of a system that plans; its own way if
            not given.
        base_url: Where the server of openai:NAME is, such as http://localhost:8000/v1; LISTENWELL_BASE_URL or
            OPENAI_BASE_URL if not given. Its key is read from LISTENWELL_API_KEY or OPENAI_API_KEY.
        precision: bf16 computes the layers in bfloat16, which is faster on some machines; scores record it.
        workers: So many processes share the replies out among them, 512 at a time (house: 128), and divide the cores.
            The numbers are the same; each process needs the memory of a system. Not for openai:NAME.
        metrics: Which scores, by name with commas between (docs/metrics.md), or all; the usual ones if not given. What
            cannot be computed is named with the reason.
    """
    from listenwell.commands.numbers import at_least
    from listenwell.outputs import EVALUATE, check_folder

    at_least(0, limit=limit, items=items, resamples=resamples)
    at_least(1, workers=workers)
    if items and limit:
        raise ValueError("--limit takes the first items and --items draws some; give one of them")
    if out is not None:
        check_folder(out, EVALUATE)
    options = Options(
        system=system,
        data=data,
        split=split,
        path=path,
        part=part,
        out=out,
        decoding=decoding,
        limit=limit,
        items=items,
        judge=judge,
        labeller=labeller,
        resamples=resamples,
        json=json,
        positivity=positivity,
        base_url=base_url,
        precision=precision,
        workers=workers,
        metrics=metrics,
    )
    subject = load_subject(options)
    corpus = read_corpus(options, subject)
    if subject.talks:
        evaluate_replies(options, subject, corpus)
    else:
        evaluate_classifier(options, subject, corpus)


@dataclass(frozen=True, slots=True)
class Options:
    """What was typed; `evaluate` says what each option means."""

    system: str
    data: str | None
    split: str
    path: Path | None
    part: str | None
    out: Path | None
    decoding: HouseDecoding | None
    limit: int
    items: int
    judge: str | None
    labeller: str | None
    resamples: int
    json: bool
    positivity: float | None
    base_url: str | None
    precision: Literal["", "bf16"]
    workers: int
    metrics: str | None


@dataclass(frozen=True, slots=True)
class Subject:
    """What is evaluated: a trained checkpoint, or a model behind a server."""

    checkpoint: Checkpoint | None
    remote: Any = None

    @property
    def talks(self) -> bool:
        return self.checkpoint is None or self.checkpoint.model.talks

    @property
    def meta(self) -> dict[str, Any]:
        return {} if self.checkpoint is None else self.checkpoint.meta

    def trained_on(self) -> tuple[str | None, str | None]:
        """The source and the part of it."""
        data = self.meta.get("data", {})
        return data.get("source"), data.get("part")


@dataclass(frozen=True, slots=True)
class Corpus:
    """The dialogues to evaluate on, and what the scores note about them."""

    data: str
    part: str | None
    dialogues: Iterable[Dialogue]
    about: dict[str, Any]


def load_subject(options: Options) -> Subject:
    from listenwell import checkpoint
    from listenwell.loading import load
    from listenwell.weights import find, is_remote

    if is_remote(options.system) or options.base_url:
        if options.workers > 1:
            raise ValueError(
                f"{options.system} is behind a server, which gets several requests at once anyway; leave --workers out"
            )
        return Subject(None, load(options.system, care=False, base_url=options.base_url))
    return Subject(checkpoint.load(find(options.system)))


def read_corpus(options: Options, subject: Subject) -> Corpus:
    """The source that is named, else EmpatheticDialogues; for a classifier, what it was trained on."""
    from listenwell.data import sources

    data, part = options.data, options.part
    trained_on, trained_part = subject.trained_on()
    if data is None and not subject.talks:
        data, part = trained_on, part or trained_part
    data = data or "empathetic-dialogues"
    split = None if options.split == "all" else options.split
    selection: dict[str, Any] = {} if part is None else {"part": part}
    about: dict[str, Any] = {
        "data": data,
        "split": options.split,
        **selection,
        "data hash": sources.data_hash(sources.data_files(data, options.path, split, **selection)),
        **{
            key: subject.meta[key]
            for key in ("commit", "seed", "examples", "seconds", "parameters")
            if key in subject.meta
        },
    }
    if subject.checkpoint is not None:
        selection["labels"] = subject.checkpoint.model.label_set
    return Corpus(data, part, sources.read(data, options.path, split, **selection), about)


def evaluate_classifier(options: Options, subject: Subject, corpus: Corpus) -> None:
    from listenwell.classifiers.listener import listens
    from listenwell.commands.evaluate_listener import evaluate_listener
    from listenwell.evaluation.store import folder_name

    trained = subject.checkpoint
    assert trained is not None
    for_replies: dict[str, Any] = {
        "--decoding": options.decoding,
        "--items": options.items,
        "--judge": options.judge,
        "--labeller": options.labeller,
        "--positivity": options.positivity,
        "--precision": options.precision,
        "--workers": options.workers > 1,
    }
    if needless := [name for name, value in for_replies.items() if value]:
        raise ValueError(f"{options.system} labels texts and writes no replies; leave {', '.join(needless)} out")
    is_own = (corpus.data, corpus.part) == subject.trained_on()
    data, part = (None, None) if is_own else (corpus.data, corpus.part)
    out = output_folder(options, folder_name(options.split, data, part, limit=options.limit))
    run = evaluate_listener if listens(trained) else _labels
    run(options.system, trained, corpus.dialogues, corpus.about, out, options.limit, options.resamples, options.json)


def output_folder(options: Options, usual: str) -> Path | None:
    """Where the evaluation is written: where the user says, else in the folder of the run, if it is one."""
    from listenwell.outputs import EVALUATE, check_folder

    if options.out is not None or not Path(options.system).is_dir():
        return options.out
    out = Path(options.system) / "evaluation" / usual
    check_folder(out, EVALUATE)
    return out


def evaluate_replies(options: Options, subject: Subject, corpus: Corpus) -> None:
    from listenwell.evaluation.evaluate import write
    from listenwell.evaluation.store import folder_name

    bot, own_way = load_bot(options, subject)
    readers = load_readers(options, subject)
    items, drawn_from = choose_items(options, corpus)
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
    """The system, set up as the options say, and the signature of its own way of decoding."""
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


def load_readers(options: Options, subject: Subject) -> dict[str, Any]:
    """The classifiers that read the replies: one labels them, one judges how positive they are."""
    from listenwell.classifiers.label_cache import LABELLER
    from listenwell.classifiers.labeller import Labeller
    from listenwell.evaluation.evaluate import check_judge

    labeller = reading(options.labeller, "emotion-intent")
    judge = reading(options.judge, "judge", "polarity")
    trained = subject.checkpoint
    if trained is not None:
        if labeller is None and LABELLER in trained.parts:
            labeller = Labeller(trained.parts[LABELLER])
        if judge is not None:
            check_judge(judge.checkpoint, trained)
    return {"labeller": labeller, "judge": judge}


def choose_items(options: Options, corpus: Corpus) -> tuple[list[Example], dict[str, Any]]:
    """The items to reply to, and a note where they were drawn from more."""
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
    """What an interrupted evaluation of the same had done; removed once all is written, left if this one ends early.

    None without a folder to keep it beside; with several workers, a temporary one.
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
    """A classifier that reads replies: the one named, else the trained system that is usual, if there is one."""
    from listenwell.classifiers.labeller import Labeller
    from listenwell.weights import shipped

    if named is None and usual not in shipped():
        return None
    return Labeller.load(named or usual, labels)


def _labels(
    system: str, ckpt: Any, dialogues: Any, about: dict, out: Path | None, limit: int, resamples: int, json: bool
) -> None:
    import json as encoder
    from dataclasses import asdict

    from listenwell.classifiers.labeller import Labeller
    from listenwell.commands.display import report, scores_table, table, tracked
    from listenwell.evaluation.classifier_scores import evaluate_labels, labelled_turns, write

    items = labelled_turns(dialogues)[: limit or None]
    with tracked() as progress:
        evaluation = evaluate_labels(Labeller(ckpt, ckpt.model.label_set), items, about, progress, resamples)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write(evaluation, out)
    if json:
        scores = {
            "scores": [s.to_json() for s in evaluation.scores],
            "classes": [asdict(one) for one in evaluation.classes],
        }
        print(encoder.dumps({"system": system, "about": evaluation.about, **scores}))
        return
    console = report()
    title = f"{system} on {', '.join(str(about[key]) for key in ('data', 'part', 'split') if key in about)}"
    console.print(scores_table(f"{title}: {evaluation.about['items']:,} turns", evaluation.scores))
    each = [
        (c.label, f"{c.gold:,}", f"{c.given:,}", f"{c.precision:.1f}", f"{c.recall:.1f}", f"{c.f1:.1f}")
        for c in evaluation.classes
    ]
    heads = ("label", "gold", "given", "precision %", "recall %", "F1 %")
    console.print(table("Each label", heads, each, right=heads[1:]))
    if out is not None:
        console.print(f"written to {out}: scores.json, labels.jsonl, confusion.png", highlight=False)
