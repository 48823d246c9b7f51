"""`listenwell data choices`: replies labelled by their origin, for the house system's chooser."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path


def choices_data(
    source: str, split: str | None, path: Path | None, out: Path | None, candidates: Path | None, most: int
) -> None:
    """Write one dialogue per reply, labelled by its origin, and print how many there are of each."""
    from rich.console import Console

    from listenwell.classifiers.choices import choices, read_candidates
    from listenwell.data import sources
    from listenwell.data.dialogue import examples
    from listenwell.data.sources.jsonl import write
    from listenwell.outputs import check_file

    if out is None or candidates is None:
        raise ValueError("data choices needs --candidates REPLIES.jsonl, as `generate` writes it, and --out FILE.jsonl")
    check_file(out)
    written = read_candidates(candidates)
    items = [item for dialogue in sources.read(source, path, split or "train") for item in examples(dialogue)]
    answered = [item for item in items if item.id in written]
    if not answered:
        place = f"{source}, {split or 'train'}"
        raise ValueError(f"{candidates}: none of its {len(written):,} ids is among the items of {place}")
    others = [item for item in items if item.id not in written]
    others = random.Random(0).sample(others, min(most, len(others)))
    dialogues = list(choices([*answered, *others], written))
    random.Random(1).shuffle(dialogues)
    write(dialogues, out)
    counts = Counter(dialogue.turns[-1].label.name for dialogue in dialogues if dialogue.turns[-1].label)
    said = ", ".join(f"{count:,} {name}" for name, count in counts.most_common())
    Console().print(
        f"{len(dialogues):,} replies ({said}) to {len(answered) + len(others):,} dialogues written to {out}"
    )
