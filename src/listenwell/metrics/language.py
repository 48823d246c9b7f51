"""Is a text language at all? What a classifier says of a text that is not means nothing, and may be high.

Three signs, none of which needs a model: it has words; they are not the same few again and again ("it it it, and the");
and their letters follow each other as in English words. The last is asked of texts of at least three words that are
written in Latin letters, by the letters' trigrams in the corpus that ships with the package.

Real words in any order pass: whoever reads a text as a classifier does, mostly word by word, does not see the order.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import pairwise
from math import log

from listenwell.data.sources import shipped
from listenwell.text.words import words

MOST_REPEATED = 0.34
"""Of the places between two words, the share where the same word stands on both sides; in all but 3 of 40,254 replies
of EmpatheticDialogues' training split it is less."""
FEWEST_DIFFERENT = 0.5
"""Different words per word among the first `WINDOW`; people's turns joined to 50 words have at least 0.56. The longer a
text, the fewer: at 200 words some of theirs would have too few."""
WINDOW = 50
LEAST_LIKELY = -3.85
"""Mean log-likelihood per letter. Of real replies the median is -1.9, of random letters -4.6."""
LETTERS = 30
SMOOTHING = 0.1


def is_language(text: str) -> bool:
    """Whether a text reads as words that somebody put together, judged by letters and repetition."""
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
    """Of the trigrams in every word of the shipped corpus, and of their first two letters."""
    texts = (turn.text for dialogue in shipped.read() for turn in dialogue.turns)
    spoken = (word for text in texts for word in words(text) if word[0].isalpha())
    trigrams = Counter(trigram for word in spoken for trigram in _trigrams(word))
    beginnings: Counter[str] = Counter()
    for trigram, number in trigrams.items():
        beginnings[trigram[:2]] += number
    return trigrams, beginnings


def _trigrams(word: str) -> list[str]:
    """With marks for the beginning and the end of the word."""
    marked = f"^^{word}$"
    return [marked[start : start + 3] for start in range(len(marked) - 2)]
