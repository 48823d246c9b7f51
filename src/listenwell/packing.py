"""Prepare a trained run for shipping: 8-bit weights, its scores, a model card.

python -m listenwell.packing runs/multi-trs src/listenwell/zoo/multi-trs
"""

from __future__ import annotations

import argparse
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from listenwell import checkpoint
from listenwell.classifiers.listener import listens
from listenwell.models import entry
from listenwell.outputs import Owner, check_folder
from listenwell.weights import find

MOST_BYTES = 25_000_000

WRITTEN_HERE = {
    "choices.jsonl": ("EmpatheticDialogues with replies of the house system", "CC BY-NC 4.0"),
    "ratings.jsonl": ("replies of the house system to EmpatheticDialogues, rated by a language model", "CC BY-NC 4.0"),
}
"""Files that commands of this package write from corpora, with their licences."""

LICENCES = {
    "empathetic-dialogues": ("EmpatheticDialogues", "CC BY-NC 4.0"),
    "empathetic-intents": ("EmpatheticDialogues", "CC BY-NC 4.0"),  # its lines, with labels
    "edos": ("EDOS", "CC BY 4.0"),
    "dailydialog": ("DailyDialog", "CC BY-NC-SA 4.0"),
    "xdailydialog": ("XDailyDialog", "CC BY-NC-SA 4.0"),
    "emotionlines": ("EmotionLines", "research use only"),
    "goemotions": ("GoEmotions", "Apache 2.0"),
    "lccc": ("LCCC", "MIT"),
    "smp2020-ewect": ("SMP2020-EWECT", "research use only"),
    "nlpcc2014": ("NLPCC-2014", "research use only"),
    "nlpcc2013": ("NLPCC-2013", "research use only"),
    "nlpcc-sentences": ("sentences of the NLPCC sets", "research use only"),
    "weibo-senti": ("weibo_senti_100k", "research use only"),
    "weibo-raw": ("Weibo threads", "research use only"),
    "smile": ("SMILE", "CC0"),
    "chinese-chat": ("Chinese three-turn chat", "research use only"),
    "epitome": ("EPITOME", "academic use only"),
    "shipped": ("the corpus that listenwell wrote itself", "MIT"),
    "grief": ("the messages of grief that listenwell wrote itself", "MIT"),
    "talk": ("the conversations that listenwell wrote itself", "MIT"),
    "attentive": ("replies that listenwell wrote itself to EmpatheticDialogues", "CC BY-NC 4.0"),
}
"""The usual name of a source, and its licence: docs/DATA.md."""

BACKBONES = {"minilm": ("all-MiniLM-L6-v2", "Apache 2.0"), "smollm2": ("SmolLM2-135M-Instruct", "Apache 2.0")}
"""The same for pretrained models."""

LANGUAGES = {"en": "English", "zh": "Chinese"}

TALKS = {
    "purpose": """\
research on empathetic dialogue, and conversation with somebody curious. It is a program; it is
  not therapy, it can be wrong, and it must not be relied on in a crisis. `load()` puts Care before it, which answers
  signs of a crisis; `listenwell doctor` says whether all of Care is installed.""",
    "limits": """\
it learned from short {language} conversations between crowd workers; it knows no facts, forgets
  what it has not been told in this conversation, and tends to common phrases.""",
    "steps": "`listenwell train {recipe}` and `listenwell evaluate`",
}

LABELS = {
    "purpose": """\
research on empathetic dialogue: it labels utterances with emotions and intents. It can be
  wrong, and must not be taken for knowledge of how a person is.""",
    "limits": """\
it learned from short {language} lines of crowd workers, and reads one utterance at a time, without
  what was said before it. Many of the 32 emotions are near to one another.""",
    "steps": "`listenwell train {recipe}`, `listenwell calibrate` and `listenwell evaluate`",
}

LISTENS = {
    "purpose": """\
research on empathetic dialogue: it predicts which emotion a dialogue is about, and what people would
  reply with. It can be wrong, and must not be taken for knowledge of how a person is.""",
    "limits": """\
it learned from short {language} conversations between crowd workers. Many of the 32 emotions are near
  to one another, and the labels of replies that it learned from are a machine's.""",
    "steps": LABELS["steps"],
}

POLARITY = {
    "purpose": """\
research on empathetic dialogue: it classifies whether an utterance is negative, neutral or positive.
  It can be wrong, and must not be taken for knowledge of how a person is.""",
    "limits": """\
it learned from short {language} texts, and reads one utterance at a time, without what was said
  before it. Kind words about something sad may count as negative. It gives every text a polarity, also
  one that is not language; an evaluation counts gibberish as neutral, but neither sees whether words stand
  in a sensible order or fit the context.""",
    "steps": LABELS["steps"],
}

EMPATHY = {
    "purpose": """\
academic research on empathetic dialogue, and nothing else: it estimates how much a reply to a post
  shows emotional reactions, interpretations and explorations, each none, weak or strong. It can be wrong, it is no
  person's judgement, and it must not be used to rate people or the help that they give.""",
    "limits": """\
it learned from some 2,500 {language} posts of people in distress and replies to them on Reddit; talk of another
  kind is read as if it were that. It reads one post, or turn, and one reply. Some levels are rare in what it
  learned from, above all weak interpretations and weak explorations, and are seldom recognised.""",
    "steps": LABELS["steps"],
}

CHOOSES = {
    "purpose": """\
research on empathetic dialogue: it predicts how good a reader would find a reply, from 1 to 5, so that
  one can be chosen among several. It can be wrong, and must not be used to rate people or the help that they give.""",
    "limits": """\
it learned from a language model's ratings of some 7,000 replies that the house system wrote to {language}
  dialogues, and has that model's taste; it prefers what is safe, and has hardly seen what people write.""",
    "steps": "`listenwell train house-chooser-origin`, `listenwell train {recipe}` and `listenwell evaluate`",
}

OTHER_LABELS = {
    "purpose": """\
research on empathetic dialogue: it labels utterances. It can be wrong, and must not be taken for
  knowledge of how a person is.""",
    "limits": """\
it learned from short {language} texts, and reads one utterance at a time, without what was said
  before it.""",
    "steps": LABELS["steps"],
}

CARD_FILE = "CARD.md"

OWNER = Owner(
    "packing",
    checkpoint.FILES | {CARD_FILE},
    lambda folder: all((folder / name).is_file() for name in (CARD_FILE, "config.json")),
    keeps_others=True,
)
"""The owner of a packed system's folder, which may also contain evaluations: other files in it are kept."""

CARD = """\
# {name}

{about}. {paper}.

- **What it is for:** {purpose}
- **Trained on:** {data}, {examples:,} examples seen in {minutes:.0f} minutes on {threads}, seed {seed},
  commit {commit}.
- **Size:** {millions:.1f}M parameters, {stored} in 8 bits with one scale a row.
- **Known limits:** {limits}{other}
{licence}

## Scores

{scores}

Scored {precision}, {when}; each with its signature in `meta.json`. Made again by {steps}.
"""


def pack(run: Path, target: Path, evaluation: Path | None = None) -> Path:
    """Write the checkpoint to ship and return its folder.

    The scores are those of the evaluation on the whole test split, or of another folder that `evaluate` wrote.
    A packed system can be packed again, for a new card: its weights stay the same.
    """
    check_folder(target, OWNER, "TARGET")
    folder = find(run)
    scores = _evaluation(run, evaluation)
    whole = checkpoint.load(folder)
    values = {s["name"]: round(s["value"], 2) for s in scores["scores"]}
    chosen = {name: values[name] for name in ("perplexity-word", "accuracy@1") if name in values}
    about = {key: scores["about"].get(key) for key in ("data", "decoding", "drawn") if key in scores["about"]}
    whole.meta["card"] = {"scores": chosen, "test": scores["scores"], "decoding": None, **about}

    when = "as packed" if (folder / CARD_FILE).is_file() else "before packing"
    card = _card(whole, target.name, scores, when)  # with all parts, including those that are shipped separately
    shared = {name: beside for name, part in whole.parts.items() if (beside := _beside(part, target))}
    whole.parts = {name: part for name, part in whole.parts.items() if name not in shared}

    def fill(place: Path) -> None:
        (place / CARD_FILE).write_text(card, encoding="utf-8")
        for name, beside in shared.items():
            (place / checkpoint.PARTS).mkdir(exist_ok=True)
            checkpoint.write_json(place / checkpoint.PARTS / f"{name}.json", {checkpoint.BESIDE: beside})
        for file in place.rglob("*"):
            if (size := file.stat().st_size) > MOST_BYTES:
                shown = target / file.relative_to(place)
                raise ValueError(f"{shown} would have {size:,} bytes; a shipped file has at most {MOST_BYTES:,}")

    checkpoint.save(whole, target, eight_bit=True, extra=fill, owner=OWNER)
    return target


def _evaluation(run: Path, folder: Path | None) -> dict[str, Any]:
    """The scores.json of a run on the test split, for its card."""
    scored = (folder or run / "evaluation" / "test") / "scores.json"
    if not scored.is_file() and folder is not None:
        raise ValueError(f"{scored} is not there: name a folder that `listenwell evaluate` wrote")
    if not scored.is_file():
        command = f"listenwell evaluate {shlex.quote(str(run))}"
        raise ValueError(f"{run} has no evaluation on the test split for its card; make one with: {command}")
    scores = checkpoint.read_json(scored)
    if (split := scores["about"].get("split")) != "test":
        raise ValueError(f"{scored} is of the split {split}: a card has scores on test")
    return scores


def _beside(part: checkpoint.Checkpoint, target: Path) -> str | None:
    """The packed system next to the target that is from the same training run: it need not be shipped twice."""
    packed = (file for file in sorted(target.parent.glob("*/meta.json")) if file.parent != target)
    same = (file for file in packed if checkpoint.same_training(checkpoint.read_json(file), part.meta))
    return next((file.parent.name for file in same), None)


def _card_texts(whole: checkpoint.Checkpoint) -> dict[str, str]:
    if whole.model.talks:
        return TALKS
    if listens(whole):
        return LISTENS
    texts = {"polarity": POLARITY, "emotion-intent": LABELS, "empathy": EMPATHY, "rating": CHOOSES, "origin": CHOOSES}
    return texts.get(whole.model.label_set.name, OTHER_LABELS)


def _card(whole: checkpoint.Checkpoint, name: str, scores: dict[str, Any], when: str) -> str:
    """`when` says whether the scores are from the packed weights."""
    meta, known = whole.meta, entry(whole.name)
    lines = [f"| {s['name']} | {s['value']:.2f}{s.get('unit') or ''} |" for s in scores.get("scores", [])]
    table = "not scored"
    if lines:
        about = scores["about"]
        on = ", ".join(about[key] for key in ("split", "drawn") if key in about)
        table = "\n".join([f"| {on} | {about.get('decoding') or ''} |", "|---|---|", *lines])
    texts = _card_texts(whole)
    return CARD.format(
        purpose=texts["purpose"],
        limits=texts["limits"].format(language=_spoken(meta)),
        other=_knows(whole),
        steps=texts["steps"].format(recipe=meta["recipe"]["name"]),
        name=name,
        about=known.about.capitalize(),
        paper=known.paper[:1].upper() + known.paper[1:],
        stored="of which those that were learned are stored" if whole.model.borrowed() else "stored",
        data=_data(meta),
        examples=meta.get("examples", 0),
        minutes=meta.get("seconds", 0) / 60,
        threads="one CPU thread" if meta.get("threads") == 1 else f"{meta.get('threads')} CPU threads",
        seed=meta.get("seed"),
        commit=meta.get("commit"),
        millions=meta.get("parameters", 0) / 1e6,
        licence=_licence(whole),
        scores=table,
        when=when,
        precision="with products in bfloat16" if scores.get("about", {}).get("precision") else "in full precision",
    )


def _spoken(meta: dict[str, Any]) -> str:
    """The languages of its training data, as named on a card."""
    return _listed([LANGUAGES.get(code, code) for code in meta.get("languages") or ["en"]])


def _knows(whole: checkpoint.Checkpoint) -> str:
    """Its labels, if they differ from those of most systems."""
    own = {one.name: one for one in (whole.model.label_set, whole.model.emotions)}
    others = [
        one for name, one in own.items() if name not in ("emotion", "emotion-intent", "polarity", "empathy", "rating")
    ]
    return "".join(f"\n- **Labels:** {one.name}: {', '.join(one)}." for one in others)


def _data(meta: dict[str, Any]) -> str:
    """The data that a run was trained on, and the data of its starting point."""
    own, start = Path(meta["data"]["source"]).name, meta.get("start", {})
    return f"{own}, after {_listed(start['data'])} ({Path(start['name']).name})" if start.get("data") else own


def _licence(whole: checkpoint.Checkpoint) -> str:
    """Licence terms of the weights and of its parts' weights: from their training corpora and pretrained models."""
    text = " ".join(["- **Licence:** the code is MIT.", *_terms("The weights", whole)])
    return textwrap.fill(text, 120, subsequent_indent="  ", break_on_hyphens=False)


def _terms(weights: str, ckpt: checkpoint.Checkpoint) -> Iterator[str]:
    sources = dict.fromkeys(_named(source, LICENCES | WRITTEN_HERE) for source in checkpoint.learned_from(ckpt.meta))
    if sources:
        licences = " ".join(licence for _, licence in sources)
        uses = {"academic": "academic use only", "research": "non-commercial research", "NC": "non-commercial use"}
        use = next((use for term, use in uses.items() if term in licences), "")
        trained = _listed([f"{name} ({licence})" for name, licence in sources])
        yield f"{weights} were trained on {trained}{use and f': for {use}'}."
    if ckpt.model.pretrained is not None:
        name, licence = _named(ckpt.model.pretrained, BACKBONES)
        yield f"They {'lie above those of' if ckpt.model.borrowed() else 'start from'} {name} ({licence})."
    for name, part in ckpt.parts.items():
        yield from _terms(f"Those of the {name}", part)


def _named(name: str, known: dict[str, tuple[str, str]]) -> tuple[str, str]:
    return known.get(name, (Path(name).name, "under its own licence"))


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of a run")
    parser.add_argument("target", type=Path, help="folder to write")
    parser.add_argument("--evaluation", type=Path, help="folder of the numbers, if not RUN/evaluation/test")
    chosen = parser.parse_args()
    try:
        print(pack(chosen.run, chosen.target, chosen.evaluation))
    except ValueError as problem:
        raise SystemExit(f"packing: {problem}") from problem


if __name__ == "__main__":
    main()
