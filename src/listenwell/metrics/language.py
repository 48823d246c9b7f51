"""Is a text language at all? If it is not, a classifier's score for it means nothing, and may be high.

There are three criteria, none of which needs a model: the text has words; they are not the same few again and again
("it it it, and the"); and their letter sequences resemble English words. The last one applies to texts of at least
three words in Latin letters, and uses letter trigrams from the corpus that ships with the package.

Real words in any order pass: like most classifiers, which read mostly word by word, this does not see the order.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import pairwise
from math import log

from listenwell.data.sources import shipped
from listenwell.text.words import words

MOST_REPEATED = 0.34
"""Limit for the share of adjacent word pairs in which a word is repeated; all but 3 of 40,254 replies of
EmpatheticDialogues' training split are below it."""
FEWEST_DIFFERENT = 0.5
"""Limit for the share of distinct words among the first `WINDOW`; human turns joined to 50 words have at least 0.56.
Longer texts have a lower share: at 200 words, some human ones would have too few."""
WINDOW = 50
LEAST_LIKELY = -3.85
"""Limit for the mean log-likelihood per letter. The median is -1.9 for real replies and -4.6 for random letters."""
LETTERS = 30
SMOOTHING = 0.1


def is_language(text: str) -> bool:
    """Whether a text looks like words that somebody wrote, judged by letters and repetition."""
    spoken = [word for word in words(text) if word[0].isalpha()]
    if not spoken:
        return False
    return len(spoken) < 3 or not (_repeats(spoken) or _is_scrambled(spoken))


def _repeats(spoken: list[str]) -> bool:
    twice = sum(one == other for one, other in pairwise(spoken))
    first = spoken[:WINDOW]
    return twice / (len(spoken) - 1) >= MOST_REPEATED or len(set(first)) / len(first) <= FEWEST_DIFFERENT


def _is_scrambled(spoken: list[str]) -> bool:
    latin = [word for word in spoken if word.isascii()]
    if len(latin) < 3:
        return False
    letters = [_log_chance(trigram) for word in latin for trigram in _trigrams(word)]
    return sum(letters) / len(letters) < LEAST_LIKELY


def _log_chance(trigram: str) -> float:
    """log p(letter | the two before it), smoothed."""
    trigrams, beginnings = _counts()
    return log((trigrams[trigram] + SMOOTHING) / (beginnings[trigram[:2]] + SMOOTHING * LETTERS))


@cache
def _counts() -> tuple[Counter[str], Counter[str]]:
    """Returns the counts of trigrams in the words of the shipped corpus, and of their first two letters."""
    texts = (turn.text for dialogue in shipped.read() for turn in dialogue.turns)
    spoken = (word for text in texts for word in words(text) if word[0].isalpha())
    trigrams = Counter(trigram for word in spoken for trigram in _trigrams(word))
    beginnings: Counter[str] = Counter()
    for trigram, number in trigrams.items():
        beginnings[trigram[:2]] += number
    return trigrams, beginnings


def _trigrams(word: str) -> list[str]:
    """Returns the letter trigrams of a word, with marks for its beginning and end."""
    marked = f"^^{word}$"
    return [marked[start : start + 3] for start in range(len(marked) - 2)]
