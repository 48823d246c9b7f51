from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from listenwell.checkpoint import Checkpoint
    from listenwell.systems.memory_view import MemoryView


def memory(
    system: str,
    emotion: str | None = None,
    slots: int = 8,
    language: str | None = None,
    json: bool = False,
) -> None:
    """Show the memory of a strategy-memory system: its slots by emotion, what they stand for, how often they are read.

    A slot stands for a group of similar training queries. It is described by the words that its queries use more often
    than the emotion's other queries and, if the training corpus is available, by its nearest queries.

    Args:
        system: A trained system by name (`listenwell models`), or the folder of a run.
        emotion: Show only the memory of this emotion.
        slots: How many slots to show per emotion, the most read ones first.
        language: Chooses the system of that name that speaks this language, such as zh.
        json: Print JSON instead of tables.
    """
    import json as encoder

    from listenwell import checkpoint
    from listenwell.commands.numbers import at_least
    from listenwell.labels.taxonomy import unknown_name
    from listenwell.systems.memory_view import view_memory
    from listenwell.weights import find, in_language

    at_least(1, slots=slots)
    trained = checkpoint.load(find(in_language(system, language)))
    views = view_memory(trained, slots)
    if emotion is not None:
        known = [view.emotion for view in views]
        if emotion not in known:
            raise ValueError(unknown_name("emotion with a memory", emotion, known))
        views = [view for view in views if view.emotion == emotion]
    queries = _queries(trained, {number for view in views for slot in view.slots for number in slot.queries})
    if json:
        print(encoder.dumps([_with_queries(view, queries) for view in views], ensure_ascii=False))
    else:
        _show(system, views, queries)


def _queries(trained: Checkpoint, numbers: set[int]) -> dict[int, str]:
    """The texts of training queries by number; empty if the training corpus is not available."""
    from listenwell.training.training_texts import training_queries

    return training_queries(trained.meta.get("recipe"), numbers)


def _with_queries(view: MemoryView, queries: dict[int, str]) -> dict[str, Any]:
    record = view.to_json()
    for slot in record["slots"]:
        slot["queries"] = [queries[number] for number in slot["queries"] if number in queries]
    return record


def _show(system: str, views: list[MemoryView], queries: dict[int, str]) -> None:
    from listenwell.commands.display import report, table

    console = report()
    for view in views:
        rows = []
        for slot in view.slots:
            nearest = " / ".join(queries[number] for number in slot.queries if number in queries)
            rows.append([str(slot.slot), f"{slot.reads:,.0f}", slot.words, *([nearest] if queries else [])])
        columns = ["slot", "read by", "words", *(["nearest training queries"] if queries else [])]
        title = f"{system}, {view.emotion}: {view.filled:,} slots, {view.read:,} of them read"
        console.print(table(title, columns, rows, right=("slot", "read by")))
    if not queries:
        console.print("The training corpus is not available, so its queries are not shown (LISTENWELL_DATA).")
