"""Designs: items evenly over the emotions, balanced orders and sides, and bonus checks in the right places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations, islice
from random import Random

import pytest

pytest.importorskip("sqlalchemy")
from study_raters import Echo

from listenwell.configuration import OptionError
from listenwell.data.dialogue import Dialogue, Label, Turn
from listenwell.labels.taxonomy import EMOTIONS
from listenwell.studies.create import create, data_notice, load_system
from listenwell.studies.design import draw, groups_of_systems, make_design, write_replies
from listenwell.studies.layout import balanced_orders
from listenwell.studies.spec import HUMAN, Bonus, StudySpec, read_recipe, recipe_names
from listenwell.studies.store import Store, Study

SPEAKER, LISTENER = "speaker", "listener"


def corpus(per_emotion: int = 10, source: str = "one") -> list[Dialogue]:
    """Dialogues of two exchanges, the same number for each of the 32 emotions."""
    return [
        Dialogue(
            f"{source}-{emotion}-{number}",
            (
                Turn(SPEAKER, f"I feel {emotion} {number}."),
                Turn(LISTENER, "Tell me more."),
                Turn(SPEAKER, "There is not much more."),
                Turn(LISTENER, f"I see, {emotion}."),
            ),
            emotion=Label(emotion),
            source=source,
        )
        for emotion in EMOTIONS
        for number in range(per_emotion)
    ]


def design_of(spec: StudySpec, dialogues: list[Dialogue] | None = None):
    drawn = draw(dialogues or corpus(20), spec.items, spec.seed, spec.last_turn_only)
    said = write_replies(drawn, spec.systems, Echo, lambda *_: lambda more: None)
    return make_design(spec, drawn, said)


@pytest.mark.parametrize(("items", "counts"), [(128, {4}), (100, {3, 4}), (250, {7, 8}), (32, {1}), (20, {1})])
def test_items_are_drawn_evenly_over_the_32_emotions(items: int, counts: set[int]):
    drawn = draw(corpus(10), items, seed=1)
    found = Counter(one.emotion for one in drawn)
    assert len(drawn) == items
    assert set(found.values()) == counts
    assert len({one.example.id.split("#")[0] for one in drawn}) == items, "one item per dialogue"


def test_the_draw_goes_by_the_seed():
    ids = [[one.example.id for one in draw(corpus(), 40, seed)] for seed in (1, 1, 2)]
    assert ids[0] == ids[1]
    assert ids[0] != ids[2]


def test_every_item_ends_with_the_speaker_and_has_a_reference():
    for one in draw(corpus(), 64, seed=3):
        assert one.example.context[-1].speaker == SPEAKER
        assert one.example.reply.speaker == LISTENER


def test_of_several_sources_each_gives_its_share_evenly_over_the_emotions():
    drawn = draw([*corpus(10, "one"), *corpus(10, "two")], 128, seed=5)
    assert Counter(one.source for one in drawn) == {"one": 64, "two": 64}
    assert set(Counter((one.source, one.emotion) for one in drawn).values()) == {2}


def test_more_items_than_there_are_dialogues_are_refused():
    with pytest.raises(ValueError, match="33 items are asked for, and the data have 32 dialogues"):
        draw(corpus(1), 33, seed=1)


def test_single_turn_items_have_their_last_turn_alone():
    assert all(len(one.example.context) == 1 for one in draw(corpus(), 40, seed=1, last_turn_only=True))


@pytest.mark.parametrize("systems", [2, 3, 4, 5])
def test_orders_put_each_system_equally_often_at_each_place(systems: int):
    names = [f"s{number}" for number in range(systems)]
    orders = list(islice(balanced_orders(names, Random(1)), 20 * systems))
    for place in range(systems):
        assert set(Counter(order[place] for order in orders).values()) == {20}


@pytest.mark.parametrize("items", [100, 128, 33])
@pytest.mark.parametrize("raters", [3, 4])
def test_sides_of_a_pair_are_in_balance_to_a_percent(items: int, raters: int):
    spec = StudySpec("ab", ["a", "b", "c"], items=items, raters=raters, task_size=10)
    left: Counter[tuple[str, ...]] = Counter()
    shown: Counter[tuple[str, ...]] = Counter()
    for task in design_of(spec).tasks:
        for layout in task.layouts:
            for entry in layout:
                pair = tuple(sorted(entry["systems"]))
                shown[pair] += 1
                left[pair] += entry["systems"][0] == pair[0]
    assert set(shown.values()) == {items * raters}
    for pair, number in shown.items():
        assert abs(left[pair] / number - 0.5) <= max(0.01, 1 / number)


def test_a_study_that_ends_early_is_in_balance_too():
    spec = StudySpec("likert", ["a", "b"], items=100, raters=3, task_size=10)
    for task in design_of(spec).tasks:
        for layout in task.layouts:
            assert sum(entry["systems"][0] == "a" for entry in layout) in (5, 5)


def test_raters_of_a_task_see_its_items_in_orders_of_their_own():
    task = design_of(StudySpec("likert", ["a", "b"], items=20, raters=4, task_size=20)).tasks[0]
    assert len({tuple(entry["item"] for entry in layout) for layout in task.layouts}) == 4


def test_every_pair_sees_every_dialogue_and_no_task_has_one_twice():
    spec = StudySpec("ab", ["a", "b", "c"], items=40, pairs="all", task_size=10)
    design = design_of(spec)
    assert groups_of_systems(spec) == [("a", "b"), ("a", "c"), ("b", "c")]
    by_pair = Counter(item.systems for item in design.items)
    assert set(by_pair.values()) == {40}
    items = {item.id: item for item in design.items}
    for task in design.tasks:
        dialogues = [items[item].corpus_id for item in task.item_ids]
        assert len(set(dialogues)) == len(dialogues)
        assert len({items[item].systems for item in task.item_ids}) > 1, "a task mixes the pairs"


def test_replies_each_alone_as_dual_emp_rated_them():
    design = design_of(StudySpec("likert", ["a", "b", "c"], items=10, together=False))
    assert Counter(item.systems for item in design.items) == {("a",): 10, ("b",): 10, ("c",): 10}


def test_each_task_of_ten_has_three_bonus_checks_from_the_source_that_is_asked_for():
    spec = StudySpec(
        "drag", ["a", "b"], items=200, raters=4, task_size=10, bonus=Bonus(per_task=3, source="two"), max_tasks=50
    )
    design = design_of(spec, [*corpus(10, "one"), *corpus(10, "two")])
    items = {item.id: item for item in design.items}
    assert len(design.tasks) == 20
    for task in design.tasks:
        assert len(task.item_ids) == 10
        checks = [items[item] for item in task.item_ids if items[item].bonus]
        assert len(checks) == 3
        for check in checks:
            assert check.source == "two"
            assert check.systems == ("a", "b", HUMAN)
            assert design.replies[check.id, HUMAN].text == check.reference


def test_too_few_items_for_the_bonus_checks_are_refused():
    spec = StudySpec("drag", ["a", "b"], items=20, bonus=Bonus(per_task=3, source="nowhere"))
    with pytest.raises(ValueError, match="need 6 items of nowhere, and 0 were drawn"):
        design_of(spec)


def test_the_human_system_says_what_people_said():
    design = design_of(StudySpec("likert", ["a", HUMAN], items=10))
    assert all(design.replies[item.id, HUMAN].text == item.reference for item in design.items)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"systems": []}, "at least one system"),
        ({"systems": ["a", "a"]}, "named twice"),
        ({"kind": "ab", "systems": ["a"]}, "two systems or more"),
        ({"items": 0}, "items is 0"),
        ({"raters": 0}, "raters is 0"),
        ({"bonus": Bonus(per_task=3)}, "belong to drag"),
        ({"kind": "drag", "bonus": Bonus(per_task=11)}, "more than task_size"),
        ({"scales": "mimi"}, "did you mean 'mime'"),
        ({"systems": [f"s{n}" for n in range(27)]}, "at most 26"),
    ],
)
def test_specs_that_make_no_sense_are_refused(fields: dict, message: str):
    with pytest.raises((OptionError, ValueError), match=message):
        StudySpec(**{"kind": "likert", "systems": ["a", "b"], **fields})


def test_a_spec_comes_back_from_its_json():
    spec = StudySpec("drag", ["a", "b"], bonus=Bonus(per_task=3), datasheet={"5.1": "ours"})
    assert StudySpec.from_json(spec.to_json()) == spec


def test_unknown_systems_are_named_before_any_reply_is_written(sqlite_store: Store):
    spec = StudySpec("likert", ["mimee", "no-such-system", HUMAN], data="shipped", items=4)
    with pytest.raises(ValueError, match=r"(?s)mimee.*no-such-system"):
        create(sqlite_store, "study", spec, load_system)
    assert sqlite_store.studies() == []


def test_published_tables_that_there_are_not_are_told_at_once(sqlite_store: Store, make_study: Callable[..., Study]):
    with pytest.raises(ValueError, match="unknown paper 'mimi'"):
        make_study(sqlite_store, published=["mimi/2"])


def test_dialogues_without_an_emotion_are_grouped_by_their_turns():
    turns = [
        (Turn(SPEAKER, f"{name} {number}", Label(name)), Turn(LISTENER, "Oh."))
        for name in ("sad", "joyful")
        for number in range(9)
    ]
    drawn = draw([Dialogue(f"d{place}", pair, source="one") for place, pair in enumerate(turns)], 6, seed=1)
    assert Counter(one.emotion for one in drawn) == {"sad": 3, "joyful": 3}


def test_the_papers_studies_are_ready():
    found = {name: read_recipe(name) for name in recipe_names()}
    assert set(found) == {
        "mime-ratings",
        "mime-ab",
        "meed2-drag",
        "dual-emp-ratings",
        "dual-emp-ab",
        "bert-joint-ratings",
        "bert-joint-emotion",
        "strategy-memory",
        "epitome",
    }
    assert (found["mime-ratings"].items, found["mime-ratings"].raters) == (128, 3)
    assert (found["dual-emp-ratings"].items, found["dual-emp-ratings"].raters) == (100, 3)
    assert (found["bert-joint-ratings"].items, found["bert-joint-ratings"].raters) == (250, 6)
    memory = found["strategy-memory"]
    assert (memory.items, memory.raters, memory.show_reference, memory.last_turn_only) == (250, 5, True, True)
    drag = found["meed2-drag"]
    assert (drag.raters, drag.task_size, drag.bonus.per_task, drag.max_tasks) == (4, 10, 3, 50)
    assert (drag.filters.min_minutes, drag.filters.min_bonus) == (5, 2)
    assert found["mime-ab"].fourth_rater
    for name, spec in found.items():
        for system in (*spec.systems, "MIME", "MEED", "MoEL", "Dual-Emp", "BERT"):
            if system != "human":
                assert system not in " ".join([spec.title, *spec.welcome, *spec.instructions]), (name, system)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("kind: likret\nsystems: [a]", "did you mean 'likert'"),
        ("kind: likert\nsystems: [a]\nitms: 3", "did you mean 'items'"),
        ("kind: likert\nsystems: [a]\nitems: many", "an integer"),
        ("systems: [a]", "'kind' is missing"),
        ("kind: ab\nsystems: [a]", "two systems"),
        ("- a list", "keys with values"),
        ("kind: [", "not YAML"),
    ],
)
def test_recipes_with_mistakes_name_the_file_and_the_place(tmp_path, content: str, message: str):
    path = tmp_path / "study.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(OptionError, match=message) as caught:
        read_recipe(str(path))
    assert "study.yaml" in str(caught.value)


def test_anchors_of_appendix_c_are_verbatim():
    from listenwell.studies.kinds import STRATEGY_MEMORY_SCALES

    qual, div, emo = STRATEGY_MEMORY_SCALES
    assert qual.anchors["3"] == "A valid response that only satisfies the user’s query should be marked as 3 points."
    assert div.anchors["3"] == "A normal response of a single clause or a single topic should be marked as 3 points."
    assert emo.anchors["1"] == "A response that cannot satisfy any one aspect should be scored as 1 point."
    assert "(empathetic and emotionally positive) should be assigned as a full mark (5 points)" in emo.anchors["5"]
    assert all(set(scale.anchors) == set("12345") for scale in STRATEGY_MEMORY_SCALES)


def test_data_that_changed_is_told(tmp_path, sqlite_store: Store, make_study: Callable[..., Study]):
    from listenwell.data.sources import jsonl

    path = tmp_path / "corpus.jsonl"
    jsonl.write(corpus(2), path)
    study = make_study(sqlite_store, data=str(path), split=None, items=6)
    assert data_notice(study) is None
    path.write_text(path.read_text(encoding="utf-8").replace("Tell me more.", "Go on."), encoding="utf-8")
    assert "has changed since the study was made" in data_notice(study)
    path.unlink()
    assert "is not here any more" in data_notice(study)
    sqlite_store.check_unchanged(study)  # what raters see is frozen


def test_pairs_of_systems_are_all_compared():
    spec = StudySpec("ab", ["a", "b", "c", "d"], pairs="all")
    assert groups_of_systems(spec) == list(combinations("abcd", 2))


@pytest.mark.data
def test_the_real_test_split_gives_four_items_of_each_emotion():
    from listenwell.data import sources

    try:
        dialogues = list(sources.read("empathetic-dialogues", split="test"))
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    drawn = draw(dialogues, 128, seed=12345)
    assert Counter(one.emotion for one in drawn) == dict.fromkeys(EMOTIONS, 4)
