"""What BLEU depends on: python bench/bleu.py FOLDER… (folders of `listenwell evaluate`, with their replies)

No model is run. For the same replies and references, this prints

- BLEU-4 by tokenization and smoothing: listenwell's words as multi-bleu.perl counts them (the score bleu-4),
  sacrebleu's 13a, nltk's words with its smoothing, and contractions expanded as in the data code of MoEL and MIME;
- the effect of length: words per reply and reference, the brevity penalty, and BLEU without it;
- BLEU by reply length, and of replies truncated to a number of words.

Pass folders with the same items and different decoding to see the effect of decoding.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import exp
from pathlib import Path
from statistics import fmean

from rich.console import Console

from listenwell.commands.display import table
from listenwell.evaluation.reproduce.quirks import both_written_out
from listenwell.evaluation.store import StoredEvaluation, read_folder
from listenwell.metrics.overlap import bleu
from listenwell.text import words

Texts = Sequence[Sequence[str]]
BINS = ((0, 7), (8, 10), (11, 14), (15, 99))


def split(one: StoredEvaluation) -> tuple[list[list[str]], list[list[str]]]:
    return tuple([words(record[key]) for record in one.records] for key in ("reply", "reference"))  # type: ignore


def bleu4(replies: Texts, references: Texts) -> float:
    return bleu(replies, references, resamples=0).value


def by_tokenisation(one: StoredEvaluation) -> dict[str, float]:
    """BLEU-4 of the same replies with several tokenizations and smoothings."""
    from nltk.tokenize import TreebankWordTokenizer
    from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu
    from sacrebleu import BLEU

    replies, references = split(one)
    texts = [record["reply"] for record in one.records], [record["reference"] for record in one.records]
    nltk_words = [[TreebankWordTokenizer().tokenize(text.lower()) for text in side] for side in texts]
    smooth = SmoothingFunction().method1
    sacre = {
        name: BLEU(lowercase=True, smooth_method=name, force=True).corpus_score(texts[0], [texts[1]]).score
        for name in ("none", "exp")
    }
    return {
        "words": bleu4(replies, references),
        "written out": bleu4(*both_written_out(one)),
        "13a": sacre["none"],
        "13a, smoothed": sacre["exp"],
        "nltk": 100 * corpus_bleu([[text] for text in nltk_words[1]], nltk_words[0]),
        "nltk, mean of smoothed": 100
        * fmean(
            corpus_bleu([[reference]], [reply], smoothing_function=smooth) if reply else 0.0
            for reply, reference in zip(*nltk_words, strict=True)
        ),
    }


def by_length(one: StoredEvaluation) -> dict[str, float]:
    """The effect of the brevity penalty."""
    replies, references = split(one)
    said, wanted = (sum(map(len, side)) for side in (replies, references))
    penalty = 1.0 if said >= wanted else exp(1 - wanted / max(1, said))
    score = bleu4(replies, references)
    return {
        "words": said / len(replies),
        "reference": wanted / len(references),
        "penalty": penalty,
        "BLEU": score,
        "without it": score / penalty,
    }


def in_bins(one: StoredEvaluation) -> dict[str, str]:
    """BLEU of the replies in each length bin, with their number."""
    replies, references = split(one)
    cells = {}
    for low, high in BINS:
        rows = [row for row, reply in enumerate(replies) if low <= len(reply) <= high]
        score = bleu4([replies[row] for row in rows], [references[row] for row in rows]) if rows else 0.0
        cells[f"{low}–{high} words" if high < 99 else f"from {low} words"] = f"{score:.2f} ({len(rows)})"
    return cells


def cut(one: StoredEvaluation) -> dict[str, float]:
    replies, references = split(one)
    return {f"first {most}": bleu4([reply[:most] for reply in replies], references) for most in (6, 8, 10, 12)}


def show(title: str, rows: dict[str, dict[str, float | str]]) -> None:
    columns = list(next(iter(rows.values())))
    cells = [
        (name, *(one if isinstance(one := row[column], str) else f"{one:.2f}" for column in columns))
        for name, row in rows.items()
    ]
    Console(width=140).print(table(title, ("replies", *columns), cells, right=columns))


def main(folders: Sequence[Path]) -> None:
    kept = {folder.name: read_folder(folder, f"listenwell evaluate SYSTEM --out {folder}") for folder in folders}
    for title, compute in (
        ("BLEU-4 by how texts are split and smoothed", by_tokenisation),
        ("What length costs", by_length),
        ("BLEU-4 by the length of the reply (number of replies)", in_bins),
        ("BLEU-4 of replies cut after so many words", cut),
    ):
        show(title, {name: compute(one) for name, one in kept.items()})  # type: ignore[operator]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    main(parser.parse_args().folders)
