"""Renders a comparison as a self-contained HTML page: tables, notes, and the systems' replies side by side.

Names and replies are untrusted text. Jinja escapes them in the markup; the embedded JSON contains no `<`, so it cannot
close its element; the page's script inserts them as text nodes; and the page's content security policy allows no other
script.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib import resources
from itertools import groupby
from random import Random
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from listenwell.evaluation import published
from listenwell.evaluation.compare import ABSENT, HOW_TESTED, MARKS, TESTED, Comparison, TableCell

SEED = 12345


def page(comparison: Comparison, samples: int = 300, seed: int = SEED) -> str:
    """Render the page, with the replies to at most `samples` items."""
    source = resources.files("listenwell.evaluation").joinpath("page.html").read_text(encoding="utf-8")
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(source)
    data = sample_data(comparison, samples, seed)
    return template.render(
        comparison=comparison,
        policy=_policy(source),
        systems=[
            (one.name, [comparison.cell(one, column) for column in comparison.columns]) for one in comparison.systems
        ],
        published=_published(comparison),
        footnotes=[published.NOTES[key] for key in comparison.footnotes],
        ways={"↑": "higher is better", "↓": "lower is better"},
        absent=ABSENT,
        marks=MARKS,
        tested=TESTED,
        how_tested=HOW_TESTED,
        drawn=_drawn(comparison, len(data["items"]), seed),
        samples=Markup(embedded(data)),  # contains no markup characters
    )


def _published(comparison: Comparison) -> list[tuple[str, list[tuple[str, list[TableCell | None]]]]]:
    """The published rows, grouped by where they were published."""

    def cells(row: Any) -> list[TableCell | None]:
        return [comparison.published_cell(row, column) for column in comparison.columns]

    groups = groupby(comparison.published, key=lambda row: row.where)
    return [(where, [(row.system, cells(row)) for row in rows]) for where, rows in groups]


def _drawn(comparison: Comparison, shown: int, seed: int) -> str:
    whole = max((len(one.records) for one in comparison.systems), default=0)
    if shown == whole:
        return "All items."
    return f"{shown:,} of {whole:,} items, drawn evenly over the emotions with seed {seed}."


def draw(records: Sequence[dict[str, Any]], number: int, seed: int = SEED) -> list[int]:
    """Draw the indices of `number` records, spread as evenly as possible over the gold emotions, in order."""
    groups: dict[str, list[int]] = {}
    for index, record in enumerate(records):
        groups.setdefault(str(record.get("gold emotion")), []).append(index)
    generator = Random(seed)
    for _, group in sorted(groups.items()):
        generator.shuffle(group)
    # The n-th item of any emotion comes before the (n + 1)-th of any other; within a round, the order is random.
    rounds = [(turn, generator.random(), index) for _, g in sorted(groups.items()) for turn, index in enumerate(g)]
    return sorted(index for _, _, index in sorted(rounds)[: max(0, number)])


def sample_data(comparison: Comparison, number: int, seed: int = SEED) -> dict[str, Any]:
    """The data for the page's script: items with the replies of every system that stored them."""
    whole = [one for one in comparison.systems if not one.from_card]
    if not whole:
        return {"systems": [], "items": []}
    items = []
    for index in draw(whole[0].records, number, seed):
        first = whole[0].records[index]
        replies = (one.records[index] for one in whole)
        items.append(
            {
                "id": first["id"],
                "emotion": first.get("gold emotion"),
                "context": first["context"],
                "reference": first.get("reference"),
                "replies": [[reply["reply"], reply.get("emotion"), reply.get("label")] for reply in replies],
            }
        )
    return {"systems": [one.name for one in whole], "items": items}


def embedded(data: Any) -> str:
    """JSON that is safe inside a script element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _policy(template: str) -> str:
    """A content security policy that allows no external resources, and only the page's own script and style by hash."""

    def own(tag: str) -> str:
        text = template.split(f"<{tag}>")[1].split(f"</{tag}>")[0]
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    return (
        f"default-src 'none'; script-src {own('script')}; style-src {own('style')}; base-uri 'none'; form-action 'none'"
    )
