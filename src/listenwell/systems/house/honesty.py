"""Finds sentences in which the listener claims a life of its own, which a program does not have.

The writer learned from people, who often answer a story with one of their own ("my dog died, too"). From a program,
that is a lie, and a bad one to somebody who is grieving. A claim is a fact about the listener's life; being sorry,
hoping, understanding, agreeing or loving an idea is not.
"""

from __future__ import annotations

import re

_THEIRS = (
    "wife husband spouse partner mom mum mother dad father parents son daughter kid kids child children baby dog dogs "
    "cat cats pet pets boss friend friends car house home apartment job work brother sister siblings family grandma "
    "grandmother grandpa grandfather grandparents girlfriend boyfriend fiance ex school college class teacher neighbor "
    "neighbors neighbour neighbours cousin uncle aunt coworker coworkers birthday town city country wedding childhood "
    "life"
).replace(" ", "|")

_OWNED = rf"\b(?:my|our) (?:own |\w+ )?(?:{_THEIRS})\b"

_ADVERBS = r"(?:(?:also|really|just|always|never|actually|still|once|usually|recently|too|even) )*"

_DID = (
    r"went|had(?! no idea| a feeling| to (?:ask|say))|used to|got|lived?|own|owned|played?|watched?|worked?|"
    r"drive|drove|eat|ate|cook|cooked|grew|lost|bought|studied|failed|cheated|cried|did|do (?:too|that too|the same)|"
    r"have (?:a|an|two|three|four|some|many|had|been|done|seen|gone|never|always|the same|kids|children|pets)|"
    r"was (?!wondering|hoping|going to ask|about to ask|so sorry|sorry|not sure)|"
    r"am (?:a|an|from|married|single|going to|planning|the same|too)|"
    r"(?:can not|cannot|can't) wait|feel the same|felt the same"
)
_LIVED = rf"\bi(?: |'ve |'m ){_ADVERBS}(?:{_DID})\b"

_LIKEWISE = (
    r"\bme too\b|\bso do i\b|\bso am i\b|\bneither do i\b|\bwhen i was\b|\bhappened to me\b|"
    r"\bi(?: have|'ve)? been there\b"
)

_TASTE = (
    r"\bi (?:(?:really|also|just|do|always) )*(?:love|hate|enjoy) "
    r"(?!you\b|that\b|this\b|how\b|it when\b|to hear|hearing|your\b)\w"
    r"|\bi (?:(?:really|also|just|do|always) )*like (?:to|going|doing|eating|playing|watching|my)\b(?! hear)"
)

CLAIMS = re.compile("|".join((_OWNED, _LIVED, _LIKEWISE, _TASTE)), re.IGNORECASE)

IMAGINED = re.compile(
    r"\bif (?:i|it) (?:was|were|had)\b|\bi (?:would|could|can|might)(?:n't| not)?\b[^.]*$", re.IGNORECASE
)
"""Hypothetical statements claim nothing ("I would miss my dog, too")."""


def claims_a_life(sentence: str) -> bool:
    """Whether a sentence claims a life that a program does not have. Questions do not."""
    if sentence.rstrip().endswith("?"):
        return False
    claim = CLAIMS.search(sentence)
    return claim is not None and not IMAGINED.search(sentence[: claim.end()])
