"""A comparison as one HTML page that stands alone: tables, notes, and the systems' replies side by side.

Names and replies are text from outside. In the markup they are escaped; in the embedded JSON no `<` is left, so
nothing in it can end its element; the page's script makes text nodes of them; and the page's policy lets no other
script run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from html import escape
from importlib import resources
from itertools import groupby
from random import Random
from typing import Any

from listenwell.evaluation import published
from listenwell.evaluation.compare import ABSENT, HOW_TESTED, MARKS, TESTED, Column, Comparison, Shown

SEED = 12345


def page(comparison: Comparison, samples: int = 300, seed: int = SEED) -> str:
    """The page, with the replies to at most `samples` items."""
    template = resources.files("listenwell.evaluation").joinpath("page.html").read_text(encoding="utf-8")
    data = sample_data(comparison, samples, seed)
    whole = max((len(one.records) for one in comparison.systems), default=0)
    shown = len(data["items"])
    kept = "All" if shown == whole else f"{shown:,} of {whole:,}"
    parts = {
        "policy": escape(_policy(template)),
        "title": escape(comparison.title),
        "scores": _scores(comparison),
        "legend": escape(comparison.legend),
        "notes": _notes(comparison),
        "tests": _tests(comparison),
        "systems": _systems(comparison),
        "signatures": _signatures(comparison),
        "drawn": f"{kept} items" + ("." if shown == whole else f", drawn evenly over the emotions with seed {seed}."),
        "samples": embedded(data),
    }
    # One pass, so that nothing which was put in is looked through for places to fill.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], template)


def draw(records: Sequence[dict[str, Any]], number: int, seed: int = SEED) -> list[int]:
    """The places of `number` records, as evenly over their gold emotions as can be, in their own order."""
    groups: dict[str, list[int]] = {}
    for index, record in enumerate(records):
        groups.setdefault(str(record.get("gold emotion")), []).append(index)
    generator = Random(seed)
    for _, group in sorted(groups.items()):
        generator.shuffle(group)
    # An emotion's n-th item comes before any other's n + 1st; within a round, by chance.
    rounds = [(turn, generator.random(), index) for _, g in sorted(groups.items()) for turn, index in enumerate(g)]
    return sorted(index for _, _, index in sorted(rounds)[: max(0, number)])


def sample_data(comparison: Comparison, number: int, seed: int = SEED) -> dict[str, Any]:
    """What the page's script shows: items with the replies of every system that has kept them."""
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
    """JSON that may stand in a script element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _policy(template: str) -> str:
    """Nothing from anywhere, and of scripts and styles only the page's own, by their hashes."""

    def own(tag: str) -> str:
        text = template.split(f"<{tag}>")[1].split(f"</{tag}>")[0]
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    return (
        f"default-src 'none'; script-src {own('script')}; style-src {own('style')}; base-uri 'none'; form-action 'none'"
    )


def _scores(comparison: Comparison) -> str:
    columns = comparison.columns
    body = [
        _row(one.name, [comparison.cell(one, column) for column in columns], comparison) for one in comparison.systems
    ]
    parts = [f"<tbody>{''.join(body)}</tbody>"]
    for where, rows in groupby(comparison.published, key=lambda row: row.where):
        head = (
            f'<tr class="group"><th scope="rowgroup" colspan="{len(columns) + 1}">Published: {escape(where)}</th></tr>'
        )
        cells = [_row(r.system, [comparison.published_cell(r, column) for column in columns], comparison) for r in rows]
        parts.append(f'<tbody class="published">{head}{"".join(cells)}</tbody>')
    heads = "".join(_head(column) for column in columns)
    thead = f'<thead><tr><th scope="col">system</th>{heads}</tr></thead>'
    return _scrolling(f"Scores on {comparison.title}", thead + "".join(parts), "scores")


def _head(column: Column) -> str:
    way = {"↑": "higher is better", "↓": "lower is better", "": ""}[column.arrow]
    told = f'<span aria-hidden="true">{column.arrow}</span><span class="hidden">{way}</span>' if way else ""
    unit = escape(column.unit)
    return f'<th scope="col">{escape(column.name)}<small>{unit} {told}</small></th>'


def _row(name: str, cells: Sequence[Shown | None], comparison: Comparison) -> str:
    return f'<tr><th scope="row">{escape(name)}</th>{"".join(_cell(cell, comparison) for cell in cells)}</tr>'


def _cell(shown: Shown | None, comparison: Comparison) -> str:
    if shown is None:
        return f'<td class="absent"><span aria-hidden="true">{ABSENT}</span><span class="hidden">absent</span></td>'
    value = escape(shown.value)
    if shown.best:
        value = f'<strong>{value}<span class="hidden"> best</span></strong>'
    if shown.verdict:
        told = escape(f"significantly {shown.verdict} than {comparison.baseline}")
        mark = f'<span aria-hidden="true">{MARKS[shown.verdict]}</span><span class="hidden">{told}</span>'
        value += f' <span class="{shown.verdict}" title="{told}">{mark}</span>'
    if shown.note:
        value += f'<sup><a href="#note-{shown.note}" aria-label="note {shown.note}">{shown.note}</a></sup>'
    if shown.interval:
        value += f"<small>{escape(shown.interval)}</small>"
    return f"<td>{value}</td>"


def _notes(comparison: Comparison) -> str:
    if not comparison.footnotes and not comparison.remarks:
        return ""
    numbered = [
        f'<li id="note-{number}">{escape(published.NOTES[key])}</li>'
        for number, key in enumerate(comparison.footnotes, 1)
    ]
    plain = [f"<li>{escape(remark)}</li>" for remark in comparison.remarks]
    lists = [f"<{tag}>{''.join(lines)}</{tag}>" for tag, lines in (("ol", numbered), ("ul", plain)) if lines]
    head = '<h2 id="notes-head">Notes on the definitions</h2>'
    return f'<section class="notes" aria-labelledby="notes-head">{head}{"".join(lists)}</section>'


def _tests(comparison: Comparison) -> str:
    if not comparison.tests:
        return ""
    title = f"Paired tests against {comparison.baseline}"
    table = _plain_table(title, TESTED, comparison.tested_rows(), "tests")
    return _details(title, f'{table}<p class="legend">{escape(HOW_TESTED)}</p>')


def _systems(comparison: Comparison) -> str:
    heads, rows = comparison.facts()
    return _details("Systems", _plain_table("Systems", heads, rows, "words"))


def _signatures(comparison: Comparison) -> str:
    return _details("Signatures", f"<dl>{''.join(_signature_lines(comparison))}</dl>")


def _signature_lines(comparison: Comparison) -> Iterator[str]:
    for name, by in comparison.signatures():
        yield f"<dt>{escape(name)}</dt>"
        for signature, systems in by:
            whose = "" if len(by) == 1 else f" ({escape(', '.join(systems))})"
            yield f"<dd><code>{escape(signature)}</code>{whose}</dd>"


def _details(summary: str, inside: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>{inside}</details>"


def _plain_table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]], kind: str) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    body = (
        f'<tr><th scope="row">{escape(first)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    return _scrolling(caption, f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody>", kind)


def _scrolling(caption: str, inside: str, kind: str) -> str:
    """A table in a region that scrolls sideways, with the keyboard too."""
    told = escape(caption)
    table = f'<table class="{kind}"><caption>{told}</caption>{inside}</table>'
    return f'<div class="scroll" role="region" aria-label="{told}" tabindex="0">{table}</div>'
