"""Export studies to other tools: all ratings as CSV or JSON lines; items and ratings for Potato and Label Studio.

Exports are for the researcher and name the systems. The items for another round of rating (Potato's data file, Label
Studio's texts) do not: they show replies under letters, in an order set by the seed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from random import Random
from typing import Any, Literal
from xml.sax.saxutils import quoteattr

import yaml

from listenwell.outputs import Owner, check_file, check_folder, command_of, write_folder
from listenwell.studies.kinds import LEFT, RIGHT, Kind
from listenwell.studies.layout import letters
from listenwell.studies.quality import filter_records
from listenwell.studies.records import Item
from listenwell.studies.results import Answer, Results, TaskRecord, judgements
from listenwell.studies.tables import write_csv

Format = Literal["csv", "jsonl", "potato", "label-studio"]

POTATO_FILES = frozenset({"config.yaml", "items.jsonl", "annotated_instances.jsonl", "systems.json", "export.json"})
LABEL_STUDIO_FILES = frozenset({"config.xml", "tasks.json", "systems.json", "export.json"})
FOLDERS = {
    "potato": Owner("study", POTATO_FILES, lambda folder: command_of(folder / "export.json") == "study"),
    "label-studio": Owner("study", LABEL_STUDIO_FILES, lambda folder: command_of(folder / "export.json") == "study"),
}


def export(results: Results, format: Format, out: Path) -> None:
    """Write a study in a format. Raises rather than overwrite anything that is not an earlier export."""
    if format in ("csv", "jsonl"):
        check_file(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(ratings_csv(results) if format == "csv" else ratings_jsonl(results), encoding="utf-8")
        return
    owner = FOLDERS[format]
    check_folder(out, owner)
    texts = potato(results) if format == "potato" else label_studio(results)
    texts["export.json"] = _json({"command": "study", "format": format, "study": results.study.name})

    def fill(folder: Path) -> None:
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")

    write_folder(out, fill, owner)


def ratings_csv(results: Results) -> str:
    """One line per judgement by people and machines, with whether the filters keep it."""
    head = ["rater", "machine", "kept", "item", "corpus id", "source", "emotion", "system", "scale", "value"]
    items, kept = results.items(), _kept(results)
    lines = [head]
    for machine in (False, True):
        for record in results.counted(machine):
            for one in judgements([record], results):
                item = items[one.item]
                lines.append(
                    [
                        one.rater,
                        "yes" if one.machine else "no",
                        "yes" if record.assignment in kept else "no",
                        one.item,
                        item.corpus_id,
                        item.source,
                        item.emotion or "",
                        one.system,
                        one.scale,
                        str(one.value),
                    ]
                )
    return write_csv(lines)


def ratings_jsonl(results: Results) -> str:
    """One line per answer that was not replaced by a later one, including answers of unfinished tasks."""
    items, kept = results.items(), _kept(results)
    lines = []
    for record in results.records:
        for answer in record.answers:
            item = items[answer.item]
            lines.append(
                {
                    "rater": record.rater,
                    "machine": record.machine,
                    "task": record.task,
                    "state": record.state,
                    "kept": record.assignment in kept,
                    "item": answer.item,
                    "corpus_id": item.corpus_id,
                    "source": item.source,
                    "emotion": item.emotion,
                    "context": [dict(turn) for turn in item.context],
                    "reference": item.reference,
                    "replies": {system: results.design.replies[item.id, system].text for system in answer.systems},
                    "order": list(answer.systems),
                    "answer": answer.by_system(),
                    "seconds": answer.seconds,
                    "received": _moment(answer.received_at),
                }
            )
    return "".join(_json(line, indent=None) + "\n" for line in lines)


def _kept(results: Results) -> set[str]:
    people = filter_records(results, results.counted()).kept
    return {record.assignment for record in (*people, *results.counted(machine=True))}


def fixed_orders(results: Results) -> dict[str, list[str]]:
    """One order of the systems for each item, set by the seed, since other tools show every rater the same order."""
    random = Random(results.spec.seed)
    return {item.id: random.sample(item.systems, len(item.systems)) for item in results.design.items}


def values_in_order(answer: Answer, order: Sequence[str]) -> dict[str, Any]:
    """Translate an answer to the letters of another order."""
    if "choice" in answer.values:
        choice = answer.values["choice"]
        if choice not in (LEFT, RIGHT) or list(answer.systems) == list(order):
            return {"choice": choice}
        return {"choice": RIGHT if choice == LEFT else LEFT}
    said = answer.by_system()
    return {letter: said[system] for letter, system in letters(order).items()}


# Potato


def potato(results: Results) -> dict[str, str]:
    orders = fixed_orders(results)
    kind = results.spec.kind_of_study()
    most = max(len(order) for order in orders.values())
    config = {
        "annotation_task_name": results.study.title,
        "task_dir": ".",
        "output_annotation_dir": "annotation_output/",
        "output_annotation_format": "jsonl",
        "data_files": ["items.jsonl"],
        "item_properties": {"id_key": "id", "text_key": "text"},
        "user_config": {"allow_all_users": True, "users": []},
        "annotation_schemes": list(_potato_schemes(kind, list(letters("x" * most)))),
        "site_dir": "default",
    }
    items = [{"id": item.id, "text": potato_text(item, orders[item.id], results)} for item in results.design.items]
    given = [
        {
            "user_id": record.rater,
            "instance_id": answer.item,
            "displayed_text": potato_text(results.items()[answer.item], orders[answer.item], results),
            "label_annotations": potato_labels(kind, values_in_order(answer, orders[answer.item])),
            "span_annotations": [],
            "behavioral_data": {"time_spent": answer.seconds, "timestamp": _moment(answer.received_at)},
            **({"annotator_origin": {"kind": "llm", "id": record.rater}} if record.machine else {}),
        }
        for record, answer in _all_answers(results)
    ]
    return {
        "config.yaml": yaml.safe_dump(config, sort_keys=False, allow_unicode=True),
        "items.jsonl": "".join(_json(item, indent=None) + "\n" for item in items),
        "annotated_instances.jsonl": "".join(_json(one, indent=None) + "\n" for one in given),
        "systems.json": _json(orders),
    }


def _potato_schemes(kind: Kind, shown: Sequence[str]) -> Iterator[dict[str, Any]]:
    if kind.name == "ab":
        yield {
            "annotation_type": "radio",
            "name": "choice",
            "description": "Which reply is better?",
            "labels": list(kind.choices),
        }
        return
    for letter in shown:
        if kind.name == "likert":
            for scale in kind.scales:
                yield {
                    "annotation_type": "likert",
                    "name": f"{letter}_{scale.key}",
                    "description": f"Reply {letter}: {scale.question}",
                    "min_label": scale.anchors.get(str(scale.min), ""),
                    "max_label": scale.anchors.get(str(scale.max), ""),
                    "size": scale.max,
                }
        else:
            labels = list(kind.choices) or ["0", "1"]
            yield {"annotation_type": "radio", "name": letter, "description": f"Reply {letter}", "labels": labels}


def potato_labels(kind: Kind, values: dict[str, Any]) -> dict[str, Any]:
    """Values in the format that Potato saves: the chosen label of each scheme."""
    if kind.name == "ab":
        return {"choice": {values["choice"]: True}}
    if kind.name == "likert":
        return {f"{letter}_{key}": {f"scale_{n}": n} for letter, given in values.items() for key, n in given.items()}
    return {letter: {str(value): True} for letter, value in values.items()}


def potato_text(item: Item, order: Sequence[str], results: Results) -> str:
    """The item as HTML. Potato shows it as is, so every text is escaped."""
    parts = [f"<p><b>{turn['speaker']}:</b> {escape(turn['text'])}</p>" for turn in item.context]
    if results.spec.show_reference and item.reference:
        parts.append(f"<p><i>Reference:</i> {escape(item.reference)}</p>")
    for letter, system in letters(order).items():
        parts.append(f"<p><b>Reply {letter}:</b> {escape(results.design.replies[item.id, system].text)}</p>")
    return "".join(parts)


# Label Studio


def label_studio(results: Results) -> dict[str, str]:
    orders, kind = fixed_orders(results), results.spec.kind_of_study()
    most = max(len(order) for order in orders.values())
    by_item: dict[str, list[tuple[TaskRecord, Answer]]] = {}
    for record, answer in _all_answers(results):
        by_item.setdefault(answer.item, []).append((record, answer))
    tasks = []
    for number, item in enumerate(results.design.items, 1):
        order = orders[item.id]
        given = by_item.get(item.id, [])
        result = [
            (record, answer, _label_studio_result(kind, values_in_order(answer, order))) for record, answer in given
        ]
        tasks.append(
            {
                "id": number,
                "data": _label_studio_data(item, order, most, results),
                "annotations": [
                    {
                        "result": one,
                        "lead_time": answer.seconds,
                        "created_at": _moment(answer.received_at),
                        "completed_by": {"email": f"{record.rater}@raters.invalid"},
                    }
                    for record, answer, one in result
                    if not record.machine
                ],
                "predictions": [
                    {"model_version": record.rater, "result": one} for record, _, one in result if record.machine
                ],
            }
        )
    shown = list(letters("x" * most))
    return {
        "config.xml": label_studio_config(kind, shown),
        "tasks.json": _json(tasks),
        "systems.json": _json(orders),
    }


def _label_studio_data(item: Item, order: Sequence[str], most: int, results: Results) -> dict[str, Any]:
    shown = {letter: results.design.replies[item.id, system].text for letter, system in letters(order).items()}
    return {
        "item": item.id,
        "context": "\n".join(f"{turn['speaker']}: {turn['text']}" for turn in item.context),
        "reference": (item.reference or "") if results.spec.show_reference else "",
        **{f"reply_{letter}": shown.get(letter, "") for letter in letters("x" * most)},
    }


def label_studio_config(kind: Kind, shown: Sequence[str]) -> str:
    lines = ["<View>", '  <Text name="context" value="$context"/>', '  <Text name="reference" value="$reference"/>']
    for letter in shown:
        lines += [f'  <Header value="Reply {letter}"/>', f'  <Text name="reply_{letter}" value="$reply_{letter}"/>']
        if kind.name == "likert":
            for scale in kind.scales:
                lines.append(f'  <Header size="5" value={quoteattr(scale.question)}/>')
                lines.append(f'  <Rating name="{letter}_{scale.key}" toName="reply_{letter}" maxRating="{scale.max}"/>')
        elif kind.name != "ab":
            lines += _label_studio_choices(letter, f"reply_{letter}", list(kind.choices) or ["0", "1"])
    if kind.name == "ab":
        lines.append('  <Header value="Which reply is better?"/>')
        lines += _label_studio_choices("choice", "context", list(kind.choices))
    return "\n".join([*lines, "</View>"]) + "\n"


def _label_studio_choices(name: str, target: str, values: Sequence[str]) -> list[str]:
    options = "".join(f"<Choice value={quoteattr(value)}/>" for value in values)
    return [f'  <Choices name="{name}" toName="{target}" choice="single">{options}</Choices>']


def _label_studio_result(kind: Kind, values: dict[str, Any]) -> list[dict[str, Any]]:
    def entry(name: str, target: str, type_: str, value: dict[str, Any]) -> dict[str, Any]:
        return {"id": name, "from_name": name, "to_name": target, "type": type_, "value": value}

    if kind.name == "ab":
        return [entry("choice", "context", "choices", {"choices": [values["choice"]]})]
    if kind.name == "likert":
        return [
            entry(f"{letter}_{key}", f"reply_{letter}", "rating", {"rating": number})
            for letter, given in values.items()
            for key, number in given.items()
        ]
    return [entry(letter, f"reply_{letter}", "choices", {"choices": [str(value)]}) for letter, value in values.items()]


def _all_answers(results: Results) -> list[tuple[TaskRecord, Answer]]:
    records = [*results.counted(), *results.counted(machine=True)]
    return [(record, answer) for record in records for answer in record.answers]


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _json(value: Any, indent: int | None = 1) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
