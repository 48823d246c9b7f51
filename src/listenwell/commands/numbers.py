"""Numbers that are typed on the command line: one that makes no sense is refused before anything is done."""

from __future__ import annotations


def at_least(least: int, **options: float | None) -> None:
    """Rejects an option below `least` and anything that is not a number; an option that is not given is fine."""
    for name, number in options.items():
        if number is not None and not number >= least:  # also of nan, which no comparison holds for
            raise ValueError(f"--{name.replace('_', '-')} is {number}, expected {least} or more")
