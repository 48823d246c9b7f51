"""Separates the languages of a subtitle file by their scripts."""

from __future__ import annotations

from listenwell.data.curation.cues import Cue, Subtitle


def split_by_script(subtitle: Subtitle) -> dict[str, list[Cue]]:
    """The cues of each language, in order, with the numbers of the cues they stood in."""
    raise NotImplementedError
