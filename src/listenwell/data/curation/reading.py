"""Reads a subtitle file of any format in any encoding."""

from __future__ import annotations

from pathlib import Path

from listenwell.data.curation.cues import Subtitle


def read_cues(path: Path | str, data: bytes | None = None) -> Subtitle:
    """The cues of a file (of `data`, if it is given), in the order of time.

    Raises:
        SubtitleError: the file is empty, in no readable encoding, or contains no cues.
    """
    raise NotImplementedError
