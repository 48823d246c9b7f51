"""From a spec to a design: draw items evenly over the emotions, write and freeze replies, lay out the tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import Any, Protocol

from listenwell.data.dialogue import Dialogue, Example, Turn, examples
from listenwell.studies.layout import deal, lay_out
from listenwell.studies.records import Design, FrozenReply, Item, new_id
from listenwell.studies.spec import HUMAN, StudySpec
from listenwell.systems.reply import Reply


class Talks(Protocol):
    """The part of a system's interface that a study needs."""

    def replies(self, talks: Sequence[Any], controls: Any = None, done: Callable[[int], None] | None = None) -> Any: ...


@dataclass(frozen=True, slots=True)
class Drawn:
    """An item drawn from a corpus."""

    example: Example
    source: str

    @property
    def emotion(self) -> str | None:
        """The dialogue's emotion or, if it has none, the label of the turn to reply to, if any."""
        label = self.example.emotion or self.example.context[-1].label
        return None if label is None else label.name


def draw(dialogues: Iterable[Dialogue], number: int, seed: int, last_turn_only: bool = False) -> list[Drawn]:
    """Draw `number` items, one per dialogue, as evenly as possible over the sources and their emotions.

    For example, 128 items of EmpatheticDialogues are 4 of each of the 32 emotions (MIME § 4.3).
    """
    random = Random(seed)
    strata: dict[str, dict[str, list[Dialogue]]] = {}
    for dialogue in dialogues:
        if any(_can_be_answered(item) for item in examples(dialogue)):
            strata.setdefault(dialogue.source, {}).setdefault(_emotion(dialogue), []).append(dialogue)
    available = sum(len(group) for by_emotion in strata.values() for group in by_emotion.values())
    if available < number:
        raise ValueError(f"{number:,} items are asked for, and the data have {available:,} dialogues with a reply")
    drawn: list[Drawn] = []
    shares = _shares(number, {source: sum(map(len, groups.values())) for source, groups in sorted(strata.items())})
    for source, share in shares.items():
        for dialogue in _evenly(strata[source], share, random):
            choice = random.choice([item for item in examples(dialogue) if _can_be_answered(item)])
            drawn.append(Drawn(_last_turn(choice) if last_turn_only else choice, source))
    random.shuffle(drawn)
    return drawn


def _emotion(dialogue: Dialogue) -> str:
    """The emotion that a dialogue is grouped by: its own, or else the first label of a speaker turn."""
    labels = (turn.label for turn in dialogue.turns if turn.speaker == "speaker" and turn.label is not None)
    label = dialogue.emotion or next(labels, None)
    return "" if label is None else label.name


def _can_be_answered(item: Example) -> bool:
    return bool(item.context) and item.context[-1].speaker == "speaker" and item.reply is not None


def _last_turn(item: Example) -> Example:
    return Example(item.id, item.context[-1:], item.reply, None, item.emotion, language=item.language)


def _shares(number: int, sizes: dict[str, int]) -> dict[str, int]:
    """The number of items from each source: equal shares as far as each has enough dialogues."""
    shares = dict.fromkeys(sizes, 0)
    for _ in range(number):
        open_ = [source for source in sizes if shares[source] < sizes[source]]
        shares[min(open_, key=lambda source: shares[source])] += 1
    return shares


def _evenly(groups: dict[str, list[Dialogue]], number: int, random: Random) -> list[Dialogue]:
    """Draw in rounds: one dialogue of each emotion per round, in random order within a round."""
    rounds = []
    for _, group in sorted(groups.items()):
        random.shuffle(group)
        rounds += [(turn, random.random(), dialogue) for turn, dialogue in enumerate(group)]
    return [dialogue for _, _, dialogue in sorted(rounds, key=lambda entry: entry[:2])[:number]]


def write_replies(
    drawn: Sequence[Drawn],
    systems: Sequence[str],
    load: Callable[[str], Talks],
    progress: Callable[[str, int], Callable[[int], None]],
) -> list[dict[str, FrozenReply]]:
    """Each system's reply to each item; the human reply is the one in the corpus."""
    said: list[dict[str, FrozenReply]] = [{} for _ in drawn]
    talks = [Dialogue(one.example.id, _bare(one.example.context), language=one.example.language) for one in drawn]
    for system in systems:
        if system == HUMAN:
            replies = [Reply(one.example.reply.text if one.example.reply else "") for one in drawn]
        else:
            replies = load(system).replies(talks, None, progress(system, len(talks)))
        for place, reply in enumerate(replies):
            said[place][system] = FrozenReply(reply.text, reply.emotion, reply.label)
    return said


def _bare(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    return tuple(Turn(turn.speaker, turn.text) for turn in turns)


def groups_of_systems(spec: StudySpec) -> list[tuple[str, ...]]:
    """The groups of systems whose replies are shown together: pairs, all of them, or one at a time."""
    if spec.kind == "ab":
        if spec.pairs == "all":
            return list(combinations(spec.systems, 2))
        return [(spec.systems[0], other) for other in spec.systems[1:]]
    return [tuple(spec.systems)] if spec.together else [(system,) for system in spec.systems]


def make_design(
    spec: StudySpec,
    drawn: Sequence[Drawn],
    said: Sequence[dict[str, FrozenReply]],
    made_from: dict[str, Any] | None = None,
) -> Design:
    """The items, replies and tasks of a study. The same spec and replies give the same layout except for the ids."""
    random = Random(spec.seed)
    bonus = _choose_bonus(spec, drawn, random)
    groups = groups_of_systems(spec)
    items: list[Item] = []
    replies: dict[tuple[str, str], FrozenReply] = {}
    for turn in range(len(groups)):
        for place, one in enumerate(drawn):
            # Each round has every dialogue once, each time with a different group. So a task mixes groups, and a
            # dialogue comes back only after all the others.
            group = groups[(turn + place) % len(groups)]
            systems = (*group, HUMAN) if place in bonus else group
            item = _item(one, systems, place in bonus)
            items.append(item)
            for system in systems:
                human = FrozenReply(item.reference or "")
                replies[item.id, system] = said[place].get(system, human)
    dealt = deal(items, spec.task_size, spec.bonus.per_task, random)
    tasks = tuple(lay_out(dealt, spec.raters, random))
    counts = Counter(one.emotion or "none" for one in drawn)
    return Design(tuple(items), replies, tasks, {**(made_from or {}), "items by emotion": dict(sorted(counts.items()))})


def _item(one: Drawn, systems: tuple[str, ...], bonus: bool) -> Item:
    context = tuple({"speaker": turn.speaker, "text": turn.text} for turn in one.example.context)
    reference = one.example.reply.text if one.example.reply else None
    return Item(new_id(), one.example.id, one.source, one.emotion, context, reference, systems, bonus)


def _choose_bonus(spec: StudySpec, drawn: Sequence[Drawn], random: Random) -> set[int]:
    """The indices of the items with a bonus check: `per_task` for each task."""
    if not spec.bonus.per_task:
        return set()
    tasks = -(-len(drawn) // spec.task_size)
    wanted = min(tasks * spec.bonus.per_task, len(drawn))
    able = [place for place, one in enumerate(drawn) if spec.bonus.source in ("", one.source)]
    if len(able) < wanted:
        raise ValueError(
            f"{tasks} tasks with {spec.bonus.per_task} bonus checks each need {wanted} items of {spec.bonus.source}, "
            f"and {len(able)} were drawn; ask for more items, or fewer checks"
        )
    return set(random.sample(able, wanted))
