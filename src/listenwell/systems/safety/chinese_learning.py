"""Trains the two Chinese classifiers on the written cases, and on ordinary and troubled talk.

python -m listenwell.systems.safety.chinese_learning                  trains the n-grams, writes chinese.safetensors
python -m listenwell.systems.safety.chinese_learning --leave-out 5    reports their rates on each fifth of the batches,
                                                                      without training on it
python -m listenwell.systems.safety.chinese_learning --out crisis-chinese.jsonl
                                                                      writes what the encoder learns from (--without
                                                                      BATCH...: not these batches, which it is
                                                                      validated on instead)
listenwell train text-encoder-zh-cpu                                  pretrains the encoder on Chinese talk
listenwell train crisis-chinese                                       learns from that file, as its recipe says
python -m listenwell.systems.safety.chinese_learning --ship runs/crisis-chinese
                                                                      writes what care reads: chinese_encoder/

Ordinary talk is Weibo chit-chat (LCCC, test) in which the rules find no sign; troubled talk is what people ask in SMILE
(`smile/train.jsonl`): a sign if the rules find one of self-harm, ordinary if nothing in it mentions death. Both are
found by LISTENWELL_DATA. The result is deterministic on the same machine.

The n-gram model is a logistic regression, fitted to all messages at once with torch's L-BFGS: it has no batches, epochs
or stages that the shared trainer could run. The encoder is trained like every model here.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from listenwell import checkpoint
from listenwell.checkpoint import write_tensors
from listenwell.data import sources
from listenwell.data.dialogue import Dialogue
from listenwell.data.sources import jsonl
from listenwell.labels.sets import CRISIS
from listenwell.systems.safety.chinese_classifier import encoder_folder
from listenwell.systems.safety.detector import CUT, rules
from listenwell.systems.safety.evidence import joined
from listenwell.systems.safety.ngrams import NgramClassifier, features, size, weights_file
from listenwell.systems.safety.training import NONE, ROUNDS, case_text, label_of, lesson
from listenwell.weights import find

STEPS, DECAY = 150, 1.7
CASE_WEIGHT = 4.0
"""A written case counts as much as this many corpus messages."""
CHAT, TROUBLED = 12000, 16000
"""Number of messages from each corpus."""
ORDINARY = 5000
"""Messages of ordinary talk per round of the encoder's data."""
AMID_TALK = 0.15
"""The share of cases that the encoder sees after an ordinary message."""
UNCLEAR = re.compile(
    "死|活着|活下|自杀|消失|撑不|解脱|跳楼|割|遗书|自残|伤害自己|轻生|绝望|离开这个世界|没有?意义|家暴|打我|杀"
)
"""Words in troubled talk that may be a sign that no rule covers."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message to train on."""

    text: str
    is_sign: bool
    weight: float = 1.0
    batch: str = ""
    """The file of cases, each in a voice of its own."""
    label: int = NONE
    """Which sign: its id in the label set `crisis`."""


def read(text: str) -> str:
    """Returns a message as the classifier reads it: normalised, without idioms."""
    return rules("zh").idioms.sub(CUT, rules("zh").normal(text))


def written_cases() -> list[Message]:
    """Returns all Chinese cases, in the order of the files."""
    folder = Path(str(files("listenwell.systems.safety").joinpath("cases")))
    records = [
        (path.stem, json.loads(line))
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return [
        Message(case_text(record), record["sign"] is not None, CASE_WEIGHT, batch, label_of(record))
        for batch, record in records
        if record["language"] == "zh" and not record.get("answer")
    ]


def corpus_messages() -> list[Message]:
    """Returns ordinary and troubled talk, in a fixed order."""
    look, draw = rules("zh").look, random.Random(0)
    chat = sorted({turn.text for dialogue in sources.read("lccc", split="test") for turn in dialogue.turns})
    path = sources.find_data("smile") / "train.jsonl"
    troubled = sorted({json.loads(line)["query"] for line in path.read_text(encoding="utf-8").splitlines()})
    messages = [Message(text, False) for text in draw.sample(chat, CHAT) if look(text) is None]
    for text in draw.sample(troubled, TROUBLED):
        sign = look(text)
        if sign is not None and sign.kind == "self-harm":
            messages.append(Message(text, True, label=CRISIS.id_of(f"{sign.kind}, {sign.directness}")))
        elif sign is None and not UNCLEAR.search(text):
            messages.append(Message(text, False))
    return messages


class Model(NamedTuple):
    """The learned parameters."""

    weights: Tensor
    bias: Tensor


class Rows(NamedTuple):
    """The concatenated features of all messages."""

    used: Tensor
    amounts: Tensor
    starts: Tensor

    @classmethod
    def of(cls, texts: Sequence[str]) -> Rows:
        rows = [features(text) for text in texts]
        lengths = torch.tensor([len(used) for used, _ in rows])
        used = torch.tensor([column for columns, _ in rows for column in columns])
        amounts = torch.tensor([amount for _, amounts in rows for amount in amounts], dtype=torch.float32)
        return cls(used, amounts, lengths.cumsum(0) - lengths)

    def weighed(self, weights: Tensor) -> Tensor:
        """Returns the weighted sum of each message."""
        bags = F.embedding_bag(self.used, weights, self.starts, mode="sum", per_sample_weights=self.amounts)
        return bags.squeeze(1)


def learn(messages: Sequence[Message], steps: int = STEPS) -> Model:
    """Fits a logistic regression to all messages at once, with an L2 penalty."""
    rows = Rows.of([read(message.text) for message in messages])
    labels = torch.tensor([float(message.is_sign) for message in messages])
    counts = torch.tensor([message.weight for message in messages])
    weights, bias = torch.zeros(size(), 1, requires_grad=True), torch.tensor([-2.0], requires_grad=True)
    optimizer = torch.optim.LBFGS([weights, bias], max_iter=steps, history_size=10, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        logits = rows.weighed(weights) + bias
        value = F.binary_cross_entropy_with_logits(logits, labels, weight=counts, reduction="sum")
        value = value + DECAY * weights.square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    return Model(weights.detach()[:, 0], bias.detach())


def as_classifier(model: Model) -> NgramClassifier:
    return NgramClassifier(model.weights.numpy(), float(model.bias))


def leave_out(folds: int) -> list[tuple[Message, float]]:
    """Returns the log-odds of each case by a classifier that was not trained on its batch."""
    cases, corpus = written_cases(), corpus_messages()
    batches = sorted({case.batch for case in cases})
    odds_of_cases = []
    for fold in range(folds):
        away = set(batches[fold::folds])
        classifier = as_classifier(learn([*(case for case in cases if case.batch not in away), *corpus]))
        odds_of_cases += [(case, classifier.odds(read(case.text))) for case in cases if case.batch in away]
    return odds_of_cases


def lessons(
    cases: Sequence[Message], corpus: Sequence[Message], rounds: int = ROUNDS, seed: int = 0
) -> Iterator[Dialogue]:
    """Yields the encoder's training data: per round, all cases and some ordinary talk, as written or normalized."""
    draw = random.Random(seed)
    ordinary = [message for message in corpus if not message.is_sign]
    signs = [message for message in corpus if message.is_sign]
    for number in range(1, rounds + 1):
        for index, message in enumerate([*cases, *signs, *draw.sample(ordinary, min(ORDINARY, len(ordinary)))]):
            text = message.text
            if message.batch and ordinary and draw.random() < AMID_TALK:
                text = joined([draw.choice(ordinary).text, text])
            yield lesson(f"{number}-{index}", draw.choice((text, read(text))) or text, message.label, "train")


def write_lessons(path: Path, away: Collection[str]) -> None:
    """Writes the data. Left-out batches are for validation; without any, `chinese` is, though also trained on."""
    cases = written_cases()
    learned = [case for case in cases if case.batch not in away]
    watched = [case for case in cases if case.batch in (away or {"chinese"})]
    checks = (lesson(f"valid-{index}", case.text, case.label, "valid") for index, case in enumerate(watched))
    chinese = (replace(one, language="zh") for one in chain(lessons(learned, corpus_messages()), checks))
    jsonl.write(chinese, path)


def ship(run: Path, target: Path) -> None:
    """Saves the trained encoder in 8 bits where Care reads it."""
    trained = checkpoint.load(find(run))
    checkpoint.save(trained, target, eight_bit=True)


def report(odds_of_cases: Sequence[tuple[Message, float]]) -> None:
    """Prints the shares of signs and of ordinary talk above each threshold."""
    for threshold in (-3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5):
        above = {True: 0, False: 0}
        for case, odds in odds_of_cases:
            above[case.is_sign] += odds > threshold
        signs = sum(case.is_sign for case, _ in odds_of_cases)
        ordinary = len(odds_of_cases) - signs
        print(f"{threshold:5.1f}   signs {above[True] / signs:6.1%}   none {above[False] / ordinary:6.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--leave-out", type=int, metavar="FOLDS", help="measure the n-grams, and write nothing")
    what.add_argument("--out", type=Path, metavar="FILE", help="write what the encoder is trained on")
    what.add_argument("--ship", type=Path, metavar="RUN", help="write the weights of a trained encoder")
    parser.add_argument("--without", nargs="*", default=(), metavar="BATCH", help="with --out: batches not trained on")
    chosen = parser.parse_args()
    if chosen.leave_out:
        report(leave_out(chosen.leave_out))
    elif chosen.out:
        write_lessons(chosen.out, chosen.without)
    elif chosen.ship:
        ship(chosen.ship, encoder_folder())
    else:
        learn_ngrams()


def learn_ngrams() -> None:
    """Trains the n-gram model and writes its weights where Care reads them."""
    model = learn([*written_cases(), *corpus_messages()])
    weights = {"weights": model.weights.half(), "bias": model.bias}
    write_tensors(weights_file(), weights)
    print(weights_file())


if __name__ == "__main__":
    main()
