"""From a model's State to replies: greedy decoding, sampling and beam search, all through the same step() contract."""

from listenwell.decoding.decode import decode, stream
from listenwell.decoding.guidance import Guided, paired
from listenwell.decoding.hypotheses import Hypothesis
from listenwell.decoding.options import Changes, Decoding, changed
from listenwell.decoding.rows import Row, requests, write_rows
from listenwell.decoding.rules import Rules

__all__ = [
    "Changes",
    "Decoding",
    "Guided",
    "Hypothesis",
    "Row",
    "Rules",
    "changed",
    "decode",
    "paired",
    "requests",
    "stream",
    "write_rows",
]
