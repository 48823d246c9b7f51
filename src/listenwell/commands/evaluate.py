from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from listenwell.decoding import Decoding


def evaluate(
    system: str,
    data: str | None = None,
    split: str = "test",
    path: Path | None = None,
    part: str | None = None,
    out: Path | None = None,
    decoding: Decoding | None = None,
    limit: int = 0,
    items: int = 0,
    judge: str | None = None,
    labeller: str | None = None,
    resamples: int = 1000,
    json: bool = False,
    positivity: float | None = None,
    base_url: str | None = None,
    precision: Literal["", "bf16"] = "",
) -> None:
    """Score a system on a split: perplexity, emotion accuracy, BLEU, Distinct, bland replies and more.

    A classifier is scored on the turns that have labels: accuracy, precision, recall, F1, calibration, confusion.

    Every score comes with its 95 % interval and a signature that says how it was computed. The system is given
    what it would be given in use: the turns so far, never the emotion, the label or the situation.

    One that is cut off goes on from the replies that it had, if the same command is given again and has a folder.

    Args:
        system: A trained system by name (`listenwell models`), the folder of a run, or openai:NAME, a model behind a
            server of that protocol. That one tells no likelihoods: it gets all scores but perplexity.
        data: A source by name (`listenwell data`) or a .jsonl file; EmpatheticDialogues if not given, and for a
            classifier what it was trained on.
        split: Which split; all for all of them together.
        path: Where the source lies, if not in LISTENWELL_DATA.
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
        precision: bf16 computes the layers in half the bits, for machines that do that faster; scores say so.
    """
    import json as encoder
    import sys
    from itertools import islice

    from listenwell import __version__, checkpoint
    from listenwell.classifiers.label_cache import LABELLER, fingerprint
    from listenwell.classifiers.labeller import Labeller
    from listenwell.classifiers.listener import listens
    from listenwell.commands.display import report, scores_table, tracked
    from listenwell.commands.evaluate_listener import evaluate_listener
    from listenwell.commands.numbers import at_least
    from listenwell.data import sources
    from listenwell.data.dialogue import examples
    from listenwell.evaluation.evaluate import all_parts, check_judge, drawn, write
    from listenwell.evaluation.evaluate import evaluate as measure
    from listenwell.evaluation.partial import Kept, mark
    from listenwell.evaluation.store import folder_name
    from listenwell.loading import load, made_to_talk
    from listenwell.outputs import EVALUATE, check_folder, resolved
    from listenwell.systems.bot import Bot
    from listenwell.systems.controls import lean
    from listenwell.systems.house.system import House
    from listenwell.weights import find, is_remote

    at_least(0, limit=limit, items=items, resamples=resamples)
    if items and limit:
        raise ValueError("--limit takes the first items and --items draws some; give one of them")
    if out is not None:
        check_folder(out, EVALUATE)
    remote = load(system, care=False, base_url=base_url) if is_remote(system) or base_url else None
    made = checkpoint.load(find(system)) if remote is None else None
    talks = made is None or made.model.talks
    meta = {} if made is None else made.meta
    wanted = None if split == "all" else split
    trained_on, trained_part = (meta.get("data", {}).get(key) for key in ("source", "part"))
    if data is None and not talks:
        part = part or trained_part
    options: dict[str, Any] = {} if part is None else {"part": part}
    data = data or (None if talks else trained_on) or "empathetic-dialogues"
    about: dict[str, Any] = {
        "data": data,
        "split": split,
        **options,
        "data hash": sources.data_hash(sources.data_files(data, path, wanted, **options)),
        **{key: meta[key] for key in ("commit", "seed", "examples", "seconds", "parameters") if key in meta},
    }
    if made is not None:
        options["labels"] = made.model.label_set
    dialogues = sources.read(data, path, wanted, **options)
    if made is not None and not talks:
        given: dict[str, Any] = {"--decoding": decoding, "--items": items, "--judge": judge, "--labeller": labeller}
        given |= {"--positivity": positivity, "--precision": precision}
        if needless := [name for name, value in given.items() if value]:
            raise ValueError(f"{system} labels texts and writes no replies; leave {', '.join(needless)} out")
        if out is None and Path(system).is_dir():
            own = (data, part) == (trained_on, trained_part)
            named = folder_name(split, limit=limit) if own else folder_name(split, data, part, limit=limit)
            out = Path(system) / "evaluation" / named
            check_folder(out, EVALUATE)
        if listens(made):
            return evaluate_listener(system, made, dialogues, about, out, limit, resamples, json)
        return _labels(system, made, dialogues, about, out, limit, resamples, json)
    bot = made_to_talk(made) if made is not None else remote
    assert bot is not None
    about |= getattr(bot, "about", {})
    own_decoding = bot.decoding.signature()
    if decoding is not None:
        bot.decoding = decoding.over(bot.decoding)
    lean(bot, positivity)
    if precision:
        if not isinstance(bot, Bot | House):
            raise ValueError(f"{system} computes in a precision of its own; leave --precision out")
        bot.precision = precision
    readers = {"labeller": reading(labeller, "emotion-intent"), "judge": reading(judge, "judge", "polarity")}
    if readers["labeller"] is None and made is not None and LABELLER in made.parts:
        readers["labeller"] = Labeller(made.parts[LABELLER])
    if made is not None and readers["judge"] is not None:
        check_judge(readers["judge"].checkpoint, made)
    every = (item for dialogue in dialogues for item in examples(dialogue))
    chosen = list(islice(every, limit or None))
    if items:
        about["drawn"] = f"{min(items, len(chosen)):,} of {len(chosen):,}, seed 0"
        chosen = drawn(chosen, items)
    if out is None and Path(system).is_dir():
        usual = (data, part) == ("empathetic-dialogues", None)
        way = bot.decoding.signature()
        named = folder_name(
            split, None if usual else data, part, items, limit, decoding=None if way == own_decoding else way
        )
        out = Path(system) / "evaluation" / named
        check_folder(out, EVALUATE)
    kept = None
    if out is not None:
        who: list[Any] = [system, base_url]
        if made is not None:
            who = [(fingerprint(one), one.model.config) for one in (made, *(part for _, part in all_parts(made)))]
        place = resolved(out)
        kept = Kept(place.with_name(f".{place.name}.begun"), mark(chosen, who, bot.decoding, precision, __version__))
        if kept.replies:
            print(f"going on: {len(kept.replies):,} of {len(chosen):,} replies were written before", file=sys.stderr)
    try:
        with tracked() as progress:
            found = measure(bot, chosen, about, progress, resamples, **readers, kept=kept)
    except BaseException:
        if kept is not None and kept.replies:
            print(f"{len(kept.replies):,} replies are kept; the same command goes on from there", file=sys.stderr)
        raise
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write(found, out)
    if kept is not None:
        kept.gone()
    if json:
        print(encoder.dumps({"system": system, "about": found.about, "scores": [s.to_json() for s in found.scores]}))
        return
    title = f"{system} on {data}, {split}: {len(chosen):,} items, {found.about['decoding']}"
    console = report()
    console.print(scores_table(title, found.scores))
    if out is not None:
        drawing = ", labels.png" if found.labels else ""
        console.print(f"written to {out}: scores.json, replies.jsonl{drawing}", highlight=False)


def reading(named: str | None, usual: str, labels: Any = "emotion-intent") -> Any:
    """A classifier that reads replies: the one named, else the trained system that is usual, if there is one."""
    from listenwell.classifiers.labeller import Labeller
    from listenwell.weights import shipped

    if named is None and usual not in shipped():
        return None
    return Labeller.load(named or usual, labels)


def _labels(
    system: str, made: Any, dialogues: Any, about: dict, out: Path | None, limit: int, resamples: int, json: bool
) -> None:
    import json as encoder
    from dataclasses import asdict

    from listenwell.classifiers.labeller import Labeller
    from listenwell.commands.display import report, scores_table, table, tracked
    from listenwell.evaluation.classifier_scores import evaluate_labels, labelled_turns, write

    items = labelled_turns(dialogues)[: limit or None]
    with tracked() as progress:
        found = evaluate_labels(Labeller(made, made.model.label_set), items, about, progress, resamples)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write(found, out)
    if json:
        scores = {"scores": [s.to_json() for s in found.scores], "classes": [asdict(one) for one in found.classes]}
        print(encoder.dumps({"system": system, "about": found.about, **scores}))
        return
    console = report()
    title = f"{system} on {', '.join(str(about[key]) for key in ('data', 'part', 'split') if key in about)}"
    console.print(scores_table(f"{title}: {found.about['items']:,} turns", found.scores))
    each = [
        (c.label, f"{c.gold:,}", f"{c.given:,}", f"{c.precision:.1f}", f"{c.recall:.1f}", f"{c.f1:.1f}")
        for c in found.classes
    ]
    heads = ("label", "gold", "given", "precision %", "recall %", "F1 %")
    console.print(table("Each label", heads, each, right=heads[1:]))
    if out is not None:
        console.print(f"written to {out}: scores.json, labels.jsonl, confusion.png", highlight=False)
