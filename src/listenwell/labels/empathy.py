"""EPITOME's scales (Sharma et al., 2020): three ways in which a reply can show empathy, each with three levels.

A pair of a post and a reply has a level on each scale, written as one label: "weak-none-strong".
"""

from __future__ import annotations

from itertools import product

MECHANISMS: tuple[str, ...] = ("emotional-reactions", "interpretations", "explorations")
"""The reply expresses warmth or concern; says what it understood of feelings and experiences; asks about them."""

LEVELS: tuple[str, ...] = ("none", "weak", "strong")
"""From lowest to highest: 0, 1 and 2."""

PAIR_LABELS: tuple[str, ...] = tuple("-".join(levels) for levels in product(LEVELS, repeat=len(MECHANISMS)))
"""All labels of a pair. The levels of label number n are n's three digits in base 3."""
