"""Metrics: each result is a Score with its interval, its items and a signature of how it was computed.

The functions here take words, texts and arrays, not models or files. sacrebleu, scipy and VADER are imported by the
functions that need them.
"""

from listenwell.metrics.bootstrap import bootstrap_interval
from listenwell.metrics.diversity import (
    Bland,
    Unique,
    bland,
    bland_chinese,
    distinct,
    entropy,
    mean_length,
    unique_replies,
)
from listenwell.metrics.embedding import sentence_similarity
from listenwell.metrics.emotion import (
    accuracy_at,
    calibration_error,
    confusion,
    macro_f1,
    macro_precision,
    macro_recall,
    weighted_f1,
    weighted_precision,
    weighted_recall,
)
from listenwell.metrics.likelihood import perplexity, perplexity_per_word
from listenwell.metrics.nist import nist
from listenwell.metrics.overlap import average_bleu, bleu, sacre_bleu
from listenwell.metrics.positivity import leaning, positive_share, positivity, readable, sentiment, vader, vader_version
from listenwell.metrics.registry import Metric, metric
from listenwell.metrics.reply_emotion import reply_emotion_accuracy
from listenwell.metrics.score import Score, Signature
from listenwell.metrics.significance import Comparison, paired_bootstrap, paired_t_test, welch_t_test

__all__ = [
    "Bland",
    "Comparison",
    "Metric",
    "Score",
    "Signature",
    "Unique",
    "accuracy_at",
    "average_bleu",
    "bland",
    "bland_chinese",
    "bleu",
    "bootstrap_interval",
    "calibration_error",
    "confusion",
    "distinct",
    "entropy",
    "leaning",
    "macro_f1",
    "macro_precision",
    "macro_recall",
    "mean_length",
    "metric",
    "nist",
    "paired_bootstrap",
    "paired_t_test",
    "perplexity",
    "perplexity_per_word",
    "positive_share",
    "positivity",
    "readable",
    "reply_emotion_accuracy",
    "sacre_bleu",
    "sentence_similarity",
    "sentiment",
    "unique_replies",
    "vader",
    "vader_version",
    "weighted_f1",
    "weighted_precision",
    "weighted_recall",
    "welch_t_test",
]
