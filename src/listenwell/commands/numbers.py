"""Checks of numeric command-line options, made before any work is done."""

from __future__ import annotations


def at_least(least: int, **options: float | None) -> None:
    """Raise ValueError if an option is below `least` or not a number. Options that are None are fine."""
    for name, number in options.items():
        if number is not None and not number >= least:  # also true for nan
            raise ValueError(f"--{name.replace('_', '-')} is {number}, expected {least} or more")
