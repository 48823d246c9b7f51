from __future__ import annotations

from pathlib import Path
from typing import Literal

from listenwell.systems.house.options import HouseDecoding


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
    empathy: str | None = None,
    resamples: int = 1000,
    json: bool = False,
    positivity: float | None = None,
    base_url: str | None = None,
    precision: Literal["", "bf16"] = "",
    workers: int = 1,
    metrics: str | None = None,
    vectors: Path | None = None,
    language: str | None = None,
) -> None:
    """Score a system on a split: perplexity, emotion accuracy, BLEU, Distinct, bland replies and more.

    A classifier is scored on the turns that have labels: accuracy, precision, recall, F1, calibration, confusion.

    Every score comes with its 95 % interval and a signature that says how it was computed. The system gets the same
    input as in use: the turns so far, never the emotion, the label or the situation.

    If an evaluation with a folder is interrupted, the same command continues from the replies already written.

    Args:
        system: A trained system by name (`listenwell models`), the folder of a run, or openai:NAME, a model behind an
            OpenAI-compatible server. Such a server gives no likelihoods: it gets all scores except perplexity.
        data: A source by name (`listenwell data`) or a .jsonl file. If not given: EmpatheticDialogues; LCCC for a
            system that speaks only Chinese; for a classifier, the data it was trained on.
        split: Which split; all for all of them together.
        path: Path of the source, if it is not in LISTENWELL_DATA.
        part: Which part of a source that has parts, such as edos's mturk.
        out: Folder for scores.json and replies.jsonl. If not given, for the folder of a run: evaluation/SPLIT in it, or
            evaluation/DATA-SPLIT on data other than EmpatheticDialogues (for a classifier: other than its own).
            Unusual options are appended to the name: edos-test-2000 with --items, test-greedy+max40 with other
            decoding.
        decoding: How to write replies; options not given keep the system's own values.
        limit: Only the first N items; 0 for all.
        items: N items drawn from the split, the same ones for every system; 0 for all.
        judge: A polarity classifier, by name or folder, that measures how positive the replies are; the trained system
            called judge if there is one, for Chinese judge-zh. It must not be the classifier that the system itself
            uses to choose its replies.
        labeller: A classifier of emotions and intents, by name or folder, that labels the replies and the references
            and draws labels.png; the trained system called emotion-intent if there is one, else the system's own.
        empathy: An empathy classifier, by name or folder, that rates the empathy of the replies and the references; the
            trained system called epitome if there is one. English only.
        resamples: Bootstrap resamples for the intervals; 0 for no intervals.
        json: Print scores.json instead of a table.
        positivity: How strongly replies should lift the mood, from 0 to 1, for a system that plans; the system's own
            setting if not given.
        base_url: Where the server of openai:NAME is, such as http://localhost:8000/v1; LISTENWELL_BASE_URL or
            OPENAI_BASE_URL if not given. Its key is read from LISTENWELL_API_KEY or OPENAI_API_KEY.
        precision: bf16 computes the layers in bfloat16, which is faster on some machines; the scores record it.
        workers: The number of processes that share the replies, 512 at a time (house: 128), and the cores. The scores
            are the same; each process needs the memory of one system. Not for openai:NAME.
        metrics: Which scores, by name, separated by commas (docs/metrics.md), or all; the usual ones if not given.
            Scores that cannot be computed are listed with the reason.
        vectors: A text file of word vectors, such as GloVe's, for embedding-average, greedy-matching and
            vector-extrema; the first one in LISTENWELL_DATA/glove if not given. Their signatures name the file.
        language: The language to evaluate in, such as en or zh; chooses the system of that name that speaks it.
    """
    from listenwell.commands.evaluate_classifier import evaluate_classifier
    from listenwell.commands.evaluate_replies import evaluate_replies
    from listenwell.commands.evaluation_input import Options, load_subject, read_corpus
    from listenwell.commands.numbers import at_least
    from listenwell.metrics.vector_similarity import check_word_vectors
    from listenwell.outputs import EVALUATE, check_folder
    from listenwell.weights import in_language

    at_least(0, limit=limit, items=items, resamples=resamples)
    at_least(1, workers=workers)
    if items and limit:
        raise ValueError("--limit takes the first items and --items draws some; give one of them")
    if out is not None:
        check_folder(out, EVALUATE)
    if vectors is not None:
        check_word_vectors(vectors)
    options = Options(
        system=str(in_language(system, language)),
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
        empathy=empathy,
        resamples=resamples,
        json=json,
        positivity=positivity,
        base_url=base_url,
        precision=precision,
        workers=workers,
        metrics=metrics,
        vectors=vectors,
    )
    subject = load_subject(options)
    corpus = read_corpus(options, subject)
    if subject.talks:
        evaluate_replies(options, subject, corpus)
    else:
        evaluate_classifier(options, subject, corpus)
