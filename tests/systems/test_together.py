"""Replies written in one batch: each is what the system would say to that person alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from listenwell.backbones.llama_slots import Slots
from listenwell.checkpoint import Checkpoint
from listenwell.contract import Controls
from listenwell.data.batching import EncodingConfig
from listenwell.decoding import Decoding
from listenwell.systems.base import as_context, draw_number
from listenwell.systems.bot import Bot
from listenwell.systems.house.options import HouseDecoding, Lean, Rerank
from listenwell.systems.house.system import House
from listenwell.systems.reply import Reply
from listenwell.systems.together import Job, draws_latents, write_plainly

TALKS = [
    ["I lost my job today"],
    ["My dog died", "Oh no, I am sorry", "I cannot stop crying, and nobody here understands what he was to me"],
    ["We won the cup!"],
    ["I am afraid of the exam", "You have worked hard", "I know"],
]


@pytest.fixture
def bot(tiny_model, tokenizer) -> Bot:
    return Bot(Checkpoint("tiny", tiny_model(), tokenizer, EncodingConfig(), Decoding(max_length=12)))


@pytest.fixture
def house(tiny_writer, tiny_listener, tiny_classifier) -> House:
    weights = Rerank(likelihood=1.0, plan=0.5, consensus=0.7, positivity=0.3, fresh=0.9, new=0.4)
    spoken = HouseDecoding(method="sample", candidates=3, max_length=8, rerank=weights, lean=Lean(positivity=0.5))
    sentiment = replace(tiny_classifier(labels="polarity"), name="polarity")
    parts = {"listener": tiny_listener(), "labeller": tiny_classifier(), "sentiment": sentiment}
    return House.of(replace(tiny_writer(spoken), parts=parts))


def job(talk: list[str], decoding: Decoding, controls: Controls | None = None, **more) -> Job:
    context = as_context(talk, controls)
    return Job(context, controls, decoding, draw_number(context), **more)


def written(system, jobs: list[Job]) -> list[Reply]:
    for _ in system.write_together(jobs):
        pass
    return [one.reply for one in jobs]


def streamed(system, talk: list[str], controls: Controls | None = None) -> Reply:
    growing = system.stream(talk, controls)
    while True:
        try:
            next(growing)
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "greedy"},
        {"method": "sample", "seed": 7},
        {"method": "sample", "candidates": 3},
        {"method": "beam", "beams": 3, "candidates": 2},
    ],
)
def test_a_reply_written_with_others_is_the_one_that_its_person_would_get_alone(bot, changes):
    speaks = bot.with_decoding(**changes)
    found = written(bot, [job(talk, speaks.decoding) for talk in TALKS])
    assert [reply.text for reply in found] == [speaks.reply(talk).text for talk in TALKS]
    assert [len(reply.candidates) for reply in found] == [speaks.decoding.candidates] * len(TALKS)
    assert all(reply.emotion for reply in found)


def test_those_who_ask_for_different_things_are_written_together(bot):
    options = [
        bot.with_decoding(method="sample", seed=seed, temperature=0.5 + seed, max_length=4 + seed).decoding
        for seed in range(3)
    ]
    options.append(bot.with_decoding(method="beam", beams=2).decoding)
    found = written(bot, [job(talk, one) for talk, one in zip(TALKS, options, strict=True)])
    alone = [replace_decoding(bot, one).reply(talk).text for talk, one in zip(TALKS, options, strict=True)]
    assert [reply.text for reply in found] == alone


def replace_decoding(bot: Bot, decoding: Decoding) -> Bot:
    other = bot.with_decoding()
    other.decoding = decoding
    return other


def test_a_model_with_latents_is_asked_for_each_seed_apart(tiny_model, tokenizer):
    mime = Bot(Checkpoint("tiny", tiny_model("mime"), tokenizer, EncodingConfig(), Decoding(max_length=6)))
    plain = Bot(Checkpoint("tiny", tiny_model(), tokenizer, EncodingConfig(), Decoding(max_length=6)))
    assert draws_latents(mime)
    assert not draws_latents(plain)
    jobs = [job(talk, mime.with_decoding(seed=seed).decoding) for seed, talk in enumerate(TALKS)]
    alone = [mime.with_decoding(seed=seed).reply(talk).text for seed, talk in enumerate(TALKS)]
    assert [reply.text for reply in written(mime, jobs)] == alone


def test_texts_grow_a_word_at_a_time_and_a_dropped_job_is_given_up(bot):
    jobs = [job(talk, bot.with_decoding(max_length=8, min_length=8).decoding) for talk in TALKS]
    seen = []
    for step, _ in enumerate(bot.with_decoding(max_length=8, min_length=8).write_together(jobs)):
        seen.append(jobs[0].text)
        if step == 2:
            jobs[1].dropped = True
    assert seen == sorted(set(seen), key=len)
    assert jobs[1].reply is None
    assert jobs[1].steps <= 2 + 2
    assert [one.reply is not None for one in jobs] == [True, False, True, True]


def test_a_stop_ends_the_work(bot):
    (whole,) = written(bot, [job(TALKS[0], bot.decoding)])
    word = whole.text.split()[1]
    stopped = job(TALKS[0], bot.decoding, stops=(word,))
    written(bot, [stopped])
    assert word in stopped.reply.text
    assert stopped.finished
    assert stopped.reply.text == whole.text[: len(stopped.reply.text)]


def test_the_house_system_says_to_each_what_it_says_to_them_alone(house):
    ranked = written(house, [job(talk, house.decoding) for talk in TALKS])
    assert [reply.text for reply in ranked] == [house.reply(talk).text for talk in TALKS]
    assert [reply.label for reply in ranked] == [house.reply(talk).label for talk in TALKS]
    one = house.decoding.streamed()
    growing = written(house, [job(talk, one) for talk in TALKS])
    assert [reply.text for reply in growing] == [streamed(house, talk).text for talk in TALKS]


def test_the_house_system_with_several_plans_says_to_each_what_it_says_to_them_alone(house):
    several = house.with_decoding(plans=3, candidates=2, pairs=2, turns=1)
    ranked = written(several, [job(talk, several.decoding) for talk in TALKS])
    alone = [several.reply(talk) for talk in TALKS]
    assert [reply.text for reply in ranked] == [reply.text for reply in alone]
    assert [len(reply.candidates) for reply in ranked] == [len(reply.candidates) for reply in alone]


def test_small_talk_among_others_is_answered_at_once(house):
    for decoding in (house.decoding, house.decoding.streamed()):
        jobs = [job(talk, decoding) for talk in (["hello"], TALKS[0])]
        greeting, other = written(house, jobs)
        assert greeting.text == "Hi! How are you doing today?"
        assert jobs[0].finished
        assert other.text != greeting.text


def test_the_house_system_heeds_what_each_asks_for(house):
    asked = [Controls(label="questioning"), None, Controls(positivity=1.0), Controls(label="wishing")]
    jobs = [job(talk, house.decoding, controls) for talk, controls in zip(TALKS, asked, strict=True)]
    alone = [house.reply(talk, controls) for talk, controls in zip(TALKS, asked, strict=True)]
    for mixed, expected in zip(written(house, jobs), alone, strict=True):
        assert (mixed.text, mixed.label) == (expected.text, expected.label)
        assert mixed.reasons["positivity"] == expected.reasons["positivity"]


def test_a_vetoed_beginning_is_given_up_and_another_plan_tried(house, monkeypatch):
    calls = []
    veto = House.veto

    def veto_first(self, pairs):
        calls.append(len(pairs))
        found = veto(self, pairs)
        return [replace(one, vetoed=("tested",)) for one in found] if len(calls) == 1 else found

    monkeypatch.setattr(House, "veto", veto_first)
    alone = streamed(house, TALKS[0])
    calls.clear()
    (reply,) = written(house, [job(TALKS[0], house.decoding.streamed())])
    assert reply.text == alone.text
    assert reply.label == alone.label
    assert len(calls) >= 2


def test_groups_that_begin_at_different_steps_share_each_step_and_say_what_each_would_alone(house, monkeypatch):
    monkeypatch.setattr(House, "veto", veto_some(House.veto))
    alone = [streamed(house, talk).text for talk in TALKS]
    steps = []
    step = Slots.step
    monkeypatch.setattr(Slots, "step", lambda self, *a: (steps.append(len(a[1])), step(self, *a))[1])
    groups = [[job(talk, house.decoding.streamed())] for talk in TALKS]
    going, rounds = [], 0
    while len(going) < len(groups) or any(going):
        if len(going) < len(groups):
            going.append(house.write_together(groups[len(going)]))
        going = [one and (one if next(one, groups) is None else None) for one in going]
        rounds += 1
    assert [one.reply.text for (one,) in groups] == alone
    assert max(steps) == len(TALKS)
    assert len(steps) <= rounds + len(TALKS)  # one step for all, except in the round in which a reply starts
    assert not house.writer._joints  # nothing is left of it


def test_a_group_that_is_given_up_leaves_the_others_alone(house):
    expected = [streamed(house, talk).text for talk in TALKS[:2]]
    given_up, stays = job(TALKS[0], house.decoding.streamed()), job(TALKS[1], house.decoding.streamed())
    first, second = house.write_together([given_up]), house.write_together([stays])
    next(first), next(second)
    joint = house.writer.joint
    first.close()
    assert len(joint.going) == 1
    assert len(joint.slots) <= 1
    for _ in second:
        pass
    assert stays.reply.text == expected[1]
    assert written(house, [job(TALKS[0], house.decoding.streamed())])[0].text == expected[0]


def veto_some(veto):
    """Veto the first sentence written in reply to the second dialogue, whenever it comes."""

    def vetoed(self, pairs):
        found = veto(self, pairs)
        return [
            replace(
                one, vetoed=("tested",) if planned.last == TALKS[1][-1] and "instead" not in planned.plan.reason else ()
            )
            for (planned, _), one in zip(pairs, found, strict=True)
        ]

    return vetoed


def test_what_was_vetoed_is_begun_again_without_a_new_reading(house, monkeypatch):
    monkeypatch.setattr(House, "veto", veto_some(House.veto))
    read = []
    engine = house.writer._get_engine()
    understand = engine.understand
    monkeypatch.setattr(engine, "understand", lambda *a, **k: (read.append(len(a[0])), understand(*a, **k))[1])
    (reply,) = written(house, [job(TALKS[1], house.decoding.streamed())])
    assert "instead" in reply.reasons["plan"]
    assert read == [1]


def test_a_house_job_can_be_dropped(house):
    jobs = [job(talk, house.decoding.streamed()) for talk in TALKS]
    for step, _ in enumerate(house.write_together(jobs)):
        if step == 0:
            jobs[2].dropped = True
    assert jobs[2].reply is None
    assert jobs[2].steps <= 2
    assert all(one.reply is not None for one in jobs if one is not jobs[2])


def test_a_system_that_writes_one_at_a_time_is_served_too():
    class Plain:
        name = "plain"

        def reply(self, talk, controls=None):
            return Reply(f"You said {talk[-1].text}")

    jobs = [job(talk, Decoding()) for talk in TALKS]
    jobs[1].dropped = True
    for _ in write_plainly(Plain(), jobs):
        pass
    assert jobs[0].text == "You said I lost my job today"
    assert jobs[1].reply is None
