"""What the house system should not say: a vetoed candidate is chosen only if every candidate is vetoed.

| veto | the candidate |
|---|---|
| cheers at bad news | calls it good, or is glad about it, when the speaker feels bad |
| laments good news | is sorry, or takes it badly, when the last turn is good |
| repeats an earlier reply | has a sentence that an earlier reply has, exactly or nearly |
| repeats itself | has one of its own sentences twice |
| sorry and glad at once | is sorry in one sentence and calls the news good in another |
| asks what was just said | asks whether something is so that the speaker has just said in these words |
| claims a life of its own | talks about a family, a job, a past: this is a program |
| hopes for the dead | hopes that somebody is well, after a death was mentioned |
| begins as the last reply did | has the same first two words: "I hope …", and again "I hope …" |

Unlike a weighted term, a veto cannot be outweighed. It depends only on the reply's sentences, the conversation so far
and what is felt. If the user requested a label, cheering, lamenting and the same beginning are not vetoed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from listenwell.labels.taxonomy import POSITIVE
from listenwell.metrics.stock import normal
from listenwell.systems.house.honesty import claims_a_life

CHEERS = "cheers at bad news"
LAMENTS = "laments good news"
REPEATS = "repeats an earlier reply"
STUTTERS = "repeats itself"
TORN = "sorry and glad at once"
ASKS = "asks what was just said"
CLAIMS = "claims a life of its own"
DEAD = "hopes for the dead"
OPENS = "begins as the last reply did"

CLEARLY = 0.5
"""The absolute polarity (−1 to 1) from which a sentence is clearly positive or negative."""

NEAR = 0.66
"""The share of words in common from which two sentences say the same."""

CHEERFUL: frozenset[str] = frozenset(
    {"acknowledging", "agreeing", "joyful", "excited", "proud", "impressed", "content"}
)
"""A positive sentence with one of these labels is about the news. One that hopes, encourages or consoles is
about the future, and fits bad news, too."""

SYMPATHY: frozenset[str] = frozenset({"sympathizing", "consoling"})

_GOOD = r"(?:great|good|awesome|amazing|cool|nice|wonderful|fun|fantastic|exciting|happy)"

GLAD = re.compile(
    r"\bcongrat|\bgood for you\b|\bwell done\b|^glad\b"
    r"|\b(?:i am|so|very|really) (?:\w+ )?(?:glad|happy|proud|excited)\b"
    rf"|\b(?:that|it|this) (?:\w+ ){{0,3}}?{_GOOD}\b|^(?:how )?{_GOOD}\b"
)
"""Explicit gladness, in the spelling of `normal`."""

FESTIVE = re.compile(rf"\ba (?:\w+ )?{_GOOD} (?:time|day|night|trip|outlook)\b|\bhave fun\b|\benjoy\b")
"""A wish for somebody who feels well."""

DENIED = re.compile(r"\b(?:not|never|no|hope|wish|if|would|will|could|can)\b")
"""Negated or merely hoped-for statements ("that does not sound good") are not a verdict on the news."""

VERDICT = re.compile(rf"\bcongrat|\b(?:that|it|this) (?:is|was|sounds) (?:\w+ ){{0,2}}?{_GOOD}\b")
SORRY = re.compile(r"\b(?:so|very|really|am|im) sorry\b|^sorry\b")

YES_OR_NO = re.compile(r"(?:(?:oh|wow|so|and|really)[,! ]+)*(?:are|is|was|were|do|does|did|have|has|had) \w+.*\?$")
"""A yes-or-no question, in the spelling of `normal`."""

FUNCTION_WORDS: frozenset[str] = frozenset(
    [
        "the",
        "and",
        "but",
        "for",
        "with",
        "from",
        "into",
        "about",
        "that",
        "this",
        "those",
        "these",
        "there",
        "here",
        "what",
        "when",
        "where",
        "who",
        "why",
        "how",
        "are",
        "was",
        "were",
        "is",
        "be",
        "been",
        "being",
        "do",
        "does",
        "did",
        "done",
        "have",
        "has",
        "had",
        "having",
        "will",
        "would",
        "can",
        "could",
        "should",
        "may",
        "might",
        "you",
        "your",
        "yours",
        "i",
        "me",
        "my",
        "mine",
        "we",
        "our",
        "us",
        "they",
        "them",
        "their",
        "he",
        "him",
        "his",
        "she",
        "her",
        "hers",
        "it",
        "its",
        "not",
        "no",
        "yes",
        "any",
        "some",
        "all",
        "more",
        "much",
        "many",
        "very",
        "really",
        "just",
        "still",
        "ever",
        "never",
        "too",
        "also",
        "then",
        "than",
        "now",
        "good",
        "bad",
        "well",
        "like",
        "get",
        "got",
        "going",
        "go",
        "able",
        "ok",
        "okay",
    ]
)
"""Words that do not tell what a question is about."""

DEATH = re.compile(r"\b(?:died|dead|death|passed away|funeral|killed|put (?:him|her|it) (?:down|to sleep))\b")
HOPES = re.compile(
    r"\bhope (?:he|she|it|they|your \w+)\b.{0,24}"
    r"\b(?:ok|okay|fine|well|alright|better|safe|happy|good|recover\w*|fun)\b"
)
"""Both in the spelling of `normal`."""

LOSS = re.compile(
    r"\b(?:laid off|(?:got|was|been|am) fired|lost (?:my|his|her|our|their) (?!fear|weight)\w+|"
    r"(?:got|been|was) dumped|broke up with me|left me|passed away|died|has died|dying|"
    r"put (?:him|her|it) (?:down|to sleep)|funeral|miscarr\w+|diagnosed|has cancer|got cancer|a stroke|divorc\w+|"
    r"evicted|robbed|was mugged|failed (?:my|the|again)|cheated on)\b"
)
"""Wordings that are bad news whatever tone a classifier finds, in the spelling of `normal`."""

OVERCOME = re.compile(
    r"\b(?:but|finally|now|then|until|instead) .*"
    r"(?:offer|new job|better|found|great|happy|recover\w*|cancer free|glad)\b"
    r"|\b(?:beat|survived|over) (?:it|cancer|the cancer)\b|\blost (?:my|his|her) (?:virginity|accent)\b"
)
"""Wordings of losses that turned out well after all."""

RECENT = 3
"""Number of latest messages whose content is not asked for again."""

SENTENCE_END = re.compile(r"(?<=[.!?…\n])\s+")
INTERJECTIONS: frozenset[str] = frozenset(
    {
        "oh", "ah", "aw", "wow", "no", "yes", "yeah", "ok", "well", "hey", "hi", "hm", "man", "my", "god", "gosh",
        "goodness", "dear", "so", "and", "but",
    }
)  # fmt: skip
"""Words that do not make a sentence and are ignored when sentences are compared."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a candidate, with its predicted label and polarity."""

    text: str
    label: str
    """One of the 41, from the labeller."""
    polarity: float
    """p(positive) − p(negative), from the polarity classifier."""


def split_sentences(text: str) -> list[str]:
    return [part for part in SENTENCE_END.split(text.strip()) if part]


def cheers(sentence: Sentence) -> bool:
    """Whether a sentence is glad about the news."""
    spelt = normal(sentence.text)
    if sentence.text.rstrip().endswith("?") or sentence.polarity < CLEARLY:
        return False
    glad = GLAD.search(spelt)
    if FESTIVE.search(spelt) or (glad and not DENIED.search(spelt[: glad.end()])):
        return True
    return sentence.label in CHEERFUL


def tells_of_a_loss(text: str) -> bool:
    """Whether a message explicitly mentions a loss that did not turn out well."""
    spelt = normal(text)
    return bool(LOSS.search(spelt)) and not OVERCOME.search(spelt)


def laments(sentence: Sentence) -> bool:
    """Whether a sentence takes the news as bad."""
    return sentence.polarity < -CLEARLY and (sentence.label in SYMPATHY or sentence.label not in POSITIVE)


def says_the_same(one: str, other: str) -> bool:
    """Whether two sentences are equal or nearly so. A mere "oh no" does not count as a sentence."""
    first, second = _content(one), _content(other)
    if not first or not second:
        return False
    shared = (first & second).total()
    return 2 * shared >= NEAR * (first.total() + second.total())


def repeats(reply: str, earlier: Sequence[str]) -> bool:
    """Whether a sentence of the reply was said in an earlier one."""
    said = [sentence for text in earlier for sentence in split_sentences(text)]
    return any(says_the_same(sentence, before) for sentence in split_sentences(reply) for before in said)


def repeats_itself(reply: str) -> bool:
    return any(says_the_same(one, other) for one, other in combinations(split_sentences(reply), 2))


def is_torn(sentences: Sequence[Sentence]) -> bool:
    """Whether one part is explicitly sorry and another calls the same news good."""
    spelt = normal(" ".join(sentence.text for sentence in sentences))
    verdict = VERDICT.search(spelt)
    return bool(SORRY.search(spelt) and verdict and not DENIED.search(spelt[: verdict.end()].rsplit(".", 1)[-1]))


def asks_again(reply: str, said: Sequence[str]) -> bool:
    """Whether a yes-or-no question has no content words other than the speaker's own."""
    known = {stem for text in said for stem in _stems(text)}
    questions = [sentence for sentence in split_sentences(reply) if YES_OR_NO.match(normal(sentence))]
    return any(stems and stems <= known for stems in map(_stems, questions))


def _stems(text: str) -> set[str]:
    """The content words of a text, each cut to five letters."""
    return {word[:5] for word in re.findall(r"[\w']+", normal(text)) if word not in FUNCTION_WORDS and len(word) > 2}


def hopes_for_the_dead(reply: str, told: Sequence[str]) -> bool:
    """Whether a reply hopes that somebody is well, in a conversation that mentions a death."""
    return bool(HOPES.search(normal(reply))) and any(DEATH.search(normal(text)) for text in told)


def opening(reply: str) -> tuple[str, ...]:
    """The first two words of a reply, not counting interjections; fewer if it has no more."""
    words = (word for word in re.findall(r"[\w']+", normal(reply)) if word not in INTERJECTIONS)
    return tuple(islice(words, 2))


def begins_alike(reply: str, earlier: Sequence[str]) -> bool:
    return bool(earlier) and len(opening(reply)) == 2 and opening(reply) == opening(earlier[-1])


def find_vetoes(
    sentences: Sequence[Sentence],
    earlier: Sequence[str],
    bad_news: bool,
    good_news: bool,
    requested: bool = False,
    said: Sequence[str] = (),
) -> tuple[str, ...]:
    """Returns why a candidate should not be used, given the listener's earlier replies and what the speaker `said`."""
    text = " ".join(sentence.text for sentence in sentences)
    checks = {
        CHEERS: bad_news and not requested and any(map(cheers, sentences)),
        LAMENTS: good_news and not requested and any(map(laments, sentences)),
        REPEATS: repeats(text, earlier),
        STUTTERS: repeats_itself(text),
        TORN: is_torn(sentences),
        ASKS: asks_again(text, said[-RECENT:]),
        DEAD: hopes_for_the_dead(text, said),
        OPENS: not requested and begins_alike(text, earlier),
        CLAIMS: any(claims_a_life(sentence.text) for sentence in sentences),
    }
    return tuple(name for name, applies in checks.items() if applies)


PLAIN_BAD = (
    "That sounds really hard.",
    "I'm here, and I'm listening.",
    "It makes sense that you feel this way.",
    "I can hear how much this weighs on you.",
    "Do you want to tell me more about it?",
    "What has been the worst part of it for you?",
)
PLAIN_GOOD = (
    "That is good to hear.",
    "I can hear how much this means to you.",
    "Tell me more about it!",
    "What did you like best about it?",
)
"""Replies for when every candidate was vetoed under every plan tried; they fit most things that people say."""


def plain_reply(feels_bad: bool, earlier: Sequence[str]) -> str | None:
    """Returns the first plain sentence that was not said yet; None once all were."""
    fitting = PLAIN_BAD if feels_bad else PLAIN_GOOD
    return next((text for text in fitting if not repeats(text, earlier)), None)


def _content(sentence: str) -> Counter[str]:
    return Counter(word for word in re.findall(r"[\w']+", normal(sentence)) if word not in INTERJECTIONS)
