"""The human evaluation datasheet (HEDS) of a study, filled in as far as the study itself has the answers.

Answers that only people know (who they are, which committee approved) come from `datasheet` in the recipe, by question
number. A question without an answer says that it is not stated yet; it is never left empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from listenwell.studies import heds
from listenwell.studies.kinds import AREAS, DRAG_QUESTION, Scale
from listenwell.studies.power import plan
from listenwell.studies.results import Results
from listenwell.studies.tables import Table

NOT_STATED = "Not stated yet: give it in the recipe, under datasheet, as"


@dataclass(frozen=True, slots=True)
class Entry:
    number: str
    question: str
    field: str
    criterion: str
    """Empty if the question is about the whole experiment."""
    choices: tuple[int, ...]
    """The chosen options, for a question that has options."""
    text: str

    @property
    def shown(self) -> str:
        picked = [heds.OPTIONS[self.number][choice] for choice in self.choices]
        return "; ".join([*picked, *([self.text] if self.text else [])])


Answer = str | tuple[int, str] | tuple[tuple[int, ...], str]


def datasheet(results: Results, tables: Sequence[Table]) -> list[Entry]:
    """An entry for every question; questions of section 4 have one per criterion."""
    whole = _whole(results)
    entries = []
    criteria = criteria_of(results)
    for question in heds.QUESTIONS:
        for criterion in criteria if question.per_criterion else [None]:
            own = None if criterion is None else _of_criterion(results, criterion, tables)
            answer = (own if own is not None else whole).get(question.number)
            said = results.spec.datasheet.get(question.number)
            entries.append(_entry(question, "" if criterion is None else criterion.name, answer, said))
    return entries


def _entry(question: heds.Question, criterion: str, answer: Answer | None, said: str | None) -> Entry:
    choices: tuple[int, ...] = ()
    text = f'{NOT_STATED} "{question.number}"' if answer is None else ""
    if isinstance(answer, str):
        text = answer
    elif answer is not None:
        picked, text = answer
        choices = picked if isinstance(picked, tuple) else (picked,)
    if said is not None:  # the researcher's answer takes precedence
        choices, text = (), said
    return Entry(question.number, question.text, question.field, criterion, choices, text)


def criteria_of(results: Results) -> list[Scale]:
    kind = results.spec.kind_of_study()
    if kind.name == "ab":
        return [Scale("choice", "Preference", "Which reply is better?")]
    if kind.name == "drag":
        return [Scale("appropriate", "Emotional appropriateness", DRAG_QUESTION)]
    return list(kind.scales)


def _whole(results: Results) -> dict[str, Answer]:
    spec, design = results.spec, results.design
    aim, planned = spec.power, plan(spec)
    people = sum(not about["machine"] for about in results.raters.values())
    stratified = any(item.emotion for item in design.items)
    english = spec.language.startswith("en")
    language: Answer = (41, "") if english else f"Language code {spec.language}"
    practice = "a practice item, and " if spec.practice else ""
    checks = (
        f"; {spec.bonus.per_task} checks per task in which the human reply is among the candidates"
        if spec.bonus.per_task
        else ""
    )
    return {
        "1.1.2": f"Study {results.study.name!r}: {spec.kind} ratings of {', '.join(spec.systems)} on {spec.data} "
        f"({spec.split}); {', '.join(one.name for one in criteria_of(results))}",
        "1.2": f"The software is listenwell; items, replies and answers are in the study's store "
        f"(content hash {results.study.content_hash}), and `listenwell study export` writes them",
        "2.1": (8, ""),
        "2.2": (6, "One reply in a dialogue"),
        "2.3": (10, ""),
        "2.4": language,
        "2.5": language,
        "3.1.1": f"{spec.items} per system",
        "3.1.2": (2, "Evenly over the emotions of the dialogues" + (" and the sources" if "+" in spec.data else ""))
        if stratified
        else (1, ""),
        "3.1.3.1": f"Power of the {planned.test} used for the results, at the level of Holm's first step for "
        f"{planned.tests} comparison(s)",
        "3.1.3.2": f"{planned.power:.2f} for {planned.shown(aim.difference)} (α = {aim.alpha:g})",
        "3.1.3.3": "listenwell.studies.power",
        "3.2.1": str(people),
        **({"3.2.2.2": (1, f"{spec.pay.per_task:g} {spec.pay.currency} per task")} if spec.pay.per_task else {}),
        "3.2.4": f"{practice}the welcome and instruction pages of the study. "
        + " ".join([*spec.welcome, *spec.instructions]),
        "3.3.2": "A web page served by listenwell study",
        "3.3.3.1": ((2, 4, 5), ""),
        "3.3.3.2": _quality(results) + checks,
        "3.3.4.1": "The pages of `listenwell study serve`",
        "3.3.4.2": "The dialogue so far, "
        + ("the reference reply, " if spec.show_reference else "")
        + "the replies under letters in a balanced random order, the questions with their anchors, and on request the "
        "instructions. No system's name and no other answer is shown",
        "3.3.5": (5, f"A task that nobody has worked on for {spec.lease_minutes:g} minutes goes to somebody else"),
        "3.3.7": (1, ""),
        "3.3.8": "N/A",
        "5.2": "The pages ask for no personal data, and raters are stored under ids that the researcher gave. Whether "
        "those ids or the texts are personal data is the researcher's to say",
    }


def _quality(results: Results) -> str:
    filters = results.spec.filters
    parts = [
        f"raters who give one answer to more than {filters.sameness:.0%} of at least {filters.sameness_from} "
        "judgements are left out"
    ]
    if filters.min_minutes:
        unless = f" with fewer than {filters.min_bonus} bonus points" if results.spec.bonus.per_task else ""
        parts.append(f"tasks done in under {filters.min_minutes:g} minutes{unless} are discarded")
    if filters.needs_bonus:
        parts.append(f"tasks with fewer than {filters.min_bonus} bonus points are discarded")
    return "; ".join(parts) + ". Every table is given with and without these filters"


def _of_criterion(results: Results, scale: Scale, tables: Sequence[Table]) -> dict[str, Answer]:
    spec, kind = results.spec, results.spec.kind_of_study()
    values = [str(v) for v in (kind.choices or range(scale.min, scale.max + 1))]
    relative = kind.name == "ab"
    about_form = scale.key == "fluency"
    aggregate = {
        "ab": "The majority's verdict on each item; a fourth rater where three disagree; shares over items",
        "drag": "Shares of good, okay and bad over all judgements",
    }.get(kind.name, "Mean over raters for each item, then over items")
    test = "Exact sign test of wins against losses; Davidson's model" if relative else "Paired t tests over items"
    anchors = "; ".join(f"{point}: {text}" for point, text in scale.anchors.items())
    return {
        "4.1.1": (2, ""),
        "4.1.2": (1, "") if about_form else (3, ""),
        "4.1.3": (1, "") if about_form else (2, ""),
        "4.2.1": (2, ""),
        "4.2.2": (2, "") if relative else (1, "The candidates are shown together" if spec.together else ""),
        "4.2.3": (1, ""),
        "4.3.1.1": scale.name if kind.name == "likert" else "no name given",
        "4.3.2": anchors or "no definition given beyond the question",
        "4.3.3": str(len(values)),
        "4.3.4": ", ".join(values),
        "4.3.5": (5, f"Cards dragged into {', '.join(AREAS)}, or the same by keyboard")
        if kind.name == "drag"
        else (1, ""),
        "4.3.6": "N/A",
        "4.3.7": scale.question,
        "4.3.8": (3, "") if relative else (2, ""),
        "4.3.9": aggregate,
        "4.3.10": f"{test}, with Holm's correction",
        "4.3.11.1": "Fleiss' kappa, Krippendorff's alpha"
        + ("" if relative or spec.kind == "emotion" else ", quadratically weighted kappa over pairs of raters"),
        "4.3.11.2": _agreement(scale.key, tables),
        "4.3.12.1": "IntraAA not assessed",
        "4.3.12.2": "IntraAA not assessed",
    }


def _agreement(key: str, tables: Sequence[Table]) -> str:
    """The agreement as in the report, for all raters and after the filters."""
    found = []
    for table in tables:
        for row in table.rows if table.key == "agreement" else ():
            if row.name.split(" (")[0] == key:
                numbers = ", ".join(
                    f"{name} {cell.text}" for name, cell in zip(table.columns[:3], row.cells, strict=False)
                )
                found.append(f"{table.title}: {numbers}")
    return "; ".join(found) or "nothing was rated yet"


def datasheet_json(entries: Sequence[Entry]) -> dict[str, Any]:
    """The datasheet in the format that the HEDS form saves: by field, with one value per criterion."""
    record: dict[str, Any] = {}
    criteria = list(dict.fromkeys(entry.criterion for entry in entries if entry.criterion))
    record[heds.CRITERION] = {
        "data": {},
        "control": {name: place == 0 for place, name in enumerate(criteria)},
        "text": {},
    }
    for entry in entries:
        options = heds.OPTIONS.get(entry.number, {})
        for place, words in options.items():
            chosen = place in entry.choices
            field = record.setdefault(f"{entry.field}-{place}", _field(entry))
            field["data"][entry.criterion] = chosen
            field.setdefault("text", {})[entry.criterion] = words if chosen else ""
        name = f"{entry.field}-other_text" if entry.number in heds.WITH_OPTIONS else entry.field
        record.setdefault(name, _field(entry))["data"][entry.criterion] = entry.text
    return record


def _field(entry: Entry) -> dict[str, Any]:
    return {"data": {}, "control": {}, "number": entry.number}


def datasheet_markdown(entries: Sequence[Entry], title: str) -> str:
    lines = [
        f"# Human evaluation datasheet: {_plain(title)}",
        "",
        "HEDS 3.0 (Belz and Thomson, 2025). `heds.json` can be loaded into the form at https://nlp-heds.github.io.",
    ]
    section = ""
    for entry in entries:
        head = entry.number.split(".")[0] + (f" {entry.criterion}" if entry.criterion else "")
        if head.split(" ")[0] != section:
            section = head.split(" ")[0]
            lines += ["", f"## Section {section}", ""]
        about = f" ({_plain(entry.criterion)})" if entry.criterion else ""
        lines.append(f"- **{entry.number}{about}: {entry.question}** {_plain(entry.shown)}")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Escape Markdown and put the text on one line."""
    flat = " ".join(text.split())
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|" else sign for sign in flat)
