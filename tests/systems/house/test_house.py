"""The complete house system: listening, planning, writing and choosing, and what it is never shown."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from listenwell import checkpoint, cli
from listenwell.backbones.llama_engine import fp32
from listenwell.classifiers.calibration import tempered
from listenwell.classifiers.listener import Now
from listenwell.contract import Controls
from listenwell.data.dialogue import Dialogue, Example, Label, Turn
from listenwell.decoding import Hypothesis, sampling
from listenwell.decoding.sampling import uniforms
from listenwell.labels.taxonomy import EMOTIONS, LABELS
from listenwell.loading import load, talking_system
from listenwell.models.writer import PLAIN
from listenwell.systems.house.calibration import calibrate_writer
from listenwell.systems.house.endpoint_writer import EndpointWriter
from listenwell.systems.house.options import HouseDecoding, Lean, Rerank
from listenwell.systems.house.planned import as_item, moves
from listenwell.systems.house.reranking import fresh, new, uplift
from listenwell.systems.house.system import House
from listenwell.systems.house.vetoes import PLAIN_BAD
from listenwell.systems.house.writer import HouseWriter
from listenwell.systems.remote.endpoint import PROMPT
from listenwell.systems.reply import Candidate
from listenwell.training import load_recipe
from test_remote import SAID, Protocol, answer

pytest.importorskip("transformers")
pytest.importorskip("peft")

WEIGHTS = Rerank(likelihood=1.0, plan=0.5, consensus=0.7, positivity=0.3, fresh=0.9, new=0.4, fits=0.6)
TALKS = [
    ["I lost my job today"],
    ["My dog died", "Oh no, I am sorry", "I cannot stop crying"],
    ["We won the cup!"],
]


@pytest.fixture
def whole(tiny_writer, tiny_listener, tiny_classifier, tiny_chooser):
    """The checkpoint of a house system in which everything is tiny."""
    spoken = HouseDecoding(method="sample", candidates=3, max_length=8, rerank=WEIGHTS, lean=Lean(positivity=0.5))
    sentiment = replace(tiny_classifier(labels="polarity"), name="polarity")
    parts = {"listener": tiny_listener(), "labeller": tiny_classifier(), "sentiment": sentiment}
    return replace(tiny_writer(spoken), parts={**parts, "chooser": tiny_chooser()})


@pytest.fixture
def house(whole):
    return House.of(whole)


# A reply


def test_a_reply_tells_what_was_heard_planned_and_considered(house):
    reply = house.reply(TALKS[1])
    assert reply.system == "house"
    assert set(reply.emotions) == set(EMOTIONS)
    assert reply.emotion == next(iter(reply.emotions))
    assert reply.label in LABELS
    assert len(reply.reasons["heard"]) == 3
    assert "feeling" in reply.reasons["plan"]
    assert reply.text == reply.candidates[0].text
    assert set(reply.candidates[0].terms) == set(asdict(WEIGHTS))
    assert reply.to_json()["candidates"][0]["terms"].keys() == reply.candidates[0].terms.keys()


def test_a_reply_does_not_depend_on_its_batch_but_for_its_draw(house):
    greedy = house.with_decoding(method="greedy", candidates=1)
    together = greedy.replies(TALKS)
    assert [reply.text for reply in together] == [greedy.reply(talk).text for talk in TALKS]
    assert [reply.label for reply in together] == [greedy.reply(talk).label for talk in TALKS]


def test_the_same_words_and_seed_are_answered_the_same_and_no_two_turns_draw_alike(house, monkeypatch):
    assert house.reply(TALKS[0]) == house.reply(TALKS[0])
    assert [*house.stream(TALKS[0])] == [*house.stream(TALKS[0])]
    drawn = []
    monkeypatch.setattr(sampling, "uniforms", lambda *told: drawn.append(told[:2]) or uniforms(*told))
    for talk in (TALKS[0], TALKS[1], TALKS[0]):
        house.reply(talk)
        [*house.stream(talk)]
    assert drawn[0] == drawn[1] == drawn[4] == drawn[5]
    assert drawn[2] == drawn[3] != drawn[0]
    assert len({seed for seed, _ in drawn}) == 1
    drawn.clear()
    house.replies(TALKS)
    assert sorted(item for _, items in drawn for item in items) == [0, 1, 2]  # of a corpus, by index


def test_an_intent_and_a_positivity_may_be_asked_for(house):
    reply = house.reply(TALKS[0], Controls(label="questioning"))
    assert reply.label == "questioning"
    assert reply.reasons["plan"] == "requested: questioning"
    assert house.reply(TALKS[0]).reasons["positivity"] == 0.5
    assert house.reply(TALKS[0], Controls(positivity=0.25)).reasons["positivity"] == 0.25
    assert house.with_decoding(lean=Lean(positivity=0.75)).reply(TALKS[0]).reasons["positivity"] == 0.75


def test_one_reply_can_be_written_another_way_by_the_same_engine(house):
    before = house.decoding
    one = house.reply(TALKS[0], method="greedy", candidates=1)
    assert one.text == house.with_decoding(method="greedy", candidates=1).reply(TALKS[0]).text
    assert len(one.candidates) == 1
    assert set(house.reply(TALKS[0], rerank={"fresh": 2.0}).candidates[0].terms) >= {"fresh", "plan"}
    assert house.reply([{"role": "user", "content": TALKS[0][0]}], intent="wishing", seed=3).label == "wishing"
    assert [*house.stream(TALKS[0], max_length=1)]
    assert house.decoding == before
    # Created at the first reply, even though a copy made it: the weights are not merged again for every call.
    assert house.with_decoding(seed=4).writer._get_engine() is house.writer._get_engine() is not None


def test_guidance_is_refused_where_the_plan_is_in_the_prompt(house):
    with pytest.raises(
        ValueError, match=r"decoding.guidance is 1.5, expected 0: every plan is written into the prompt"
    ):
        house.with_decoding(guidance=1.5).reply(TALKS[0])


def test_the_emotion_is_what_listener_and_writer_agree_on(house):
    torch.nn.init.normal_(house.writer.model.emotion.out.weight)
    contexts = [Dialogue.from_texts(talk).turns for talk in TALKS]
    items = [Example(str(row), context) for row, context in enumerate(contexts)]
    heard, felt = house.listening.predict(contexts), np.exp(house.writer.feel(items))
    for reply, one, chances in zip(house.replies(TALKS), heard, felt, strict=True):
        assert chances.sum() == pytest.approx(1)
        both = {name: (one.emotions[name] * chance) ** 0.5 for name, chance in zip(EMOTIONS, chances, strict=True)}
        for name in EMOTIONS:
            assert reply.emotions[name] == pytest.approx(both[name] / sum(both.values()), abs=1e-5)
    slow = [house.writer.model.feel(batch).detach().exp() for batch in house.writer._batches(items)]
    assert np.sort(torch.cat(slow).numpy(), axis=0) == pytest.approx(np.sort(felt, axis=0), abs=5e-3)


def test_how_sure_the_writer_is_of_a_feeling_is_calibrated(whole):
    torch.nn.init.normal_(whole.model.emotion.out.weight)
    items = [Example(str(row), Dialogue.from_texts(talk).turns) for row, talk in enumerate(TALKS)]
    half_as_sure = np.exp(tempered(House.of(whole).writer.feel(items), 2.0))
    random = np.random.default_rng(5)
    drawn = [
        replace(item, emotion=Label(str(random.choice(EMOTIONS, p=chances / chances.sum()))))
        for _ in range(200)
        for item, chances in zip(items, half_as_sure, strict=True)
    ]
    found = calibrate_writer(whole, drawn)["emotion"]
    assert found.temperature == pytest.approx(2, rel=0.15)
    assert float(whole.model.emotion.temperature) == pytest.approx(found.temperature)
    assert whole.meta["calibration"]["emotion"]["items"] == len(drawn)
    assert np.exp(House.of(whole).writer.feel(items)) == pytest.approx(half_as_sure, abs=0.1)
    with pytest.raises(ValueError, match="nothing to calibrate by: no dialogue has an emotion"):
        calibrate_writer(whole, items)


def test_a_dialogue_is_read_once_to_hear_and_to_answer_it(house, monkeypatch):
    read = []
    monkeypatch.setattr("listenwell.systems.house.writer.fp16", fp32)
    engine = house.writer._get_engine()
    inner = engine._read

    def reading(tokens, mask, cache):
        read.append((cache.length, tokens.shape[1]))
        return inner(tokens, mask, cache)

    monkeypatch.setattr(engine, "_read", reading)
    alone = house.with_decoding(method="greedy", candidates=1, rerank=Rerank())
    first = alone.reply(TALKS[1])
    assert read[1][0] == read[0][1]  # the header comes after the context
    assert sum(begin == 0 for begin, _ in read) == 1
    read.clear()
    together = alone.replies(TALKS)
    assert together[1].text == first.text
    assert sum(begin == 0 for begin, _ in read) == 1
    assert not alone.writer._begun
    # With very many contexts, not all encodings are kept; the others are encoded again.
    monkeypatch.setattr("listenwell.systems.house.writer.HELD", 10)
    read.clear()
    assert [reply.text for reply in alone.replies(TALKS)] == [reply.text for reply in together]
    assert sum(begin == 0 for begin, _ in read) == 2
    assert [*alone.stream(TALKS[1])][-1] == first.text


def test_what_is_read_from_its_last_turns_alone_spares_nobody_else_in_the_batch_the_reading(house, monkeypatch):
    monkeypatch.setattr("listenwell.systems.house.writer.fp16", fp32)
    long = [TALKS[0][0], "What happened?", "They closed the office", "That is hard.", "I do not know what to do"]
    talks = [*TALKS, long, TALKS[0]]
    alone = house.with_decoding(method="greedy", candidates=1, rerank=Rerank(), turns=3)
    expected = [alone.reply(talk).text for talk in talks]
    engine, read = alone.writer._get_engine(), []
    inner = engine.understand
    monkeypatch.setattr(engine, "understand", lambda *a, **k: (read.append(len(a[0])), inner(*a, **k))[1])
    assert [reply.text for reply in alone.replies(talks)] == expected
    # All dialogues are heard. The long one's encoding is of no further use and is computed again to reply.
    assert read == [len(TALKS) + 1, 1, 1]


def test_what_is_gold_is_never_read(house):
    plain = Dialogue("a", (Turn("speaker", "I lost my job today"),))
    turns = tuple(replace(turn, label=Label("joyful")) for turn in plain.turns)
    told = replace(plain, turns=turns, emotion=Label("proud"), situation="We won the cup")
    assert house.reply(told) == house.reply(plain)
    own = Controls(situation="We won the cup")
    assert house.reply(plain, own) == house.reply("We won the cup\nI lost my job today") != house.reply(plain)


def test_tokens_come_one_by_one_and_end_in_a_reply(house):
    growing = house.stream(TALKS[0])
    seen = []
    while True:
        try:
            seen.append(next(growing))
        except StopIteration as end:
            reply = end.value
            break
    assert seen
    assert reply.text == seen[-1]
    assert reply.label in LABELS
    assert not reply.candidates


# Reranking


def test_the_best_candidate_is_the_one_with_the_highest_sum(house):
    for reply in house.replies(TALKS):
        order = [(not candidate.vetoed, candidate.score) for candidate in reply.candidates]
        assert order == sorted(order, reverse=True)
        for candidate in reply.candidates:
            assert candidate.score == pytest.approx(WEIGHTS.total(candidate.terms))


def test_every_term_is_what_it_is_said_to_be(house, whole):
    (planned,) = house.plan([TALKS[1]])
    reply = house.reply(TALKS[1])
    voice, last = HouseWriter(whole), TALKS[1][-1]
    for candidate in reply.candidates:
        terms = candidate.terms
        assert terms["fresh"] == fresh(candidate.text)
        assert terms["new"] == pytest.approx(new(candidate.text, [TALKS[1][1]]))
        chance = house.labeller.distribution([candidate.text])[0, LABELS.index(planned.plan.label)]
        assert terms["plan"] == pytest.approx(np.log(max(chance, 0.01)), abs=1e-4)
        says, said = house.sentiment.distribution([candidate.text, last])
        gain = (says[2] - says[0]) - (said[2] - said[0])
        heard = house.labeller.label([candidate.text])[0].name
        assert terms["positivity"] == pytest.approx(uplift(gain, planned.plan, heard), abs=1e-5)
        assert terms["consensus"] == pytest.approx(voice.consensus([last], [candidate.text])[0], abs=1e-4)


def test_consensus_is_the_writers_other_direction(whole, monkeypatch):
    monkeypatch.setattr("listenwell.systems.house.writer.fp16", fp32)
    voice = HouseWriter(whole)
    tokens = voice.tokenizer
    headers = voice.model.config.headers
    reply, turn = "Oh no.", "I lost my job."
    before = [*headers["listener"], *tokens.encode(reply), tokens.end, *headers["line"], *headers["answers"]]
    after = [*tokens.encode(turn), tokens.end]
    ids = torch.tensor([before + after])
    plain = voice.model.merged()
    import transformers

    config = transformers.AutoConfig.for_model(**voice.model.config.architecture)
    slow = transformers.AutoModelForCausalLM.from_config(config).eval()
    slow.load_state_dict(plain, strict=False)
    with torch.inference_mode():
        log_probs = slow(ids).logits[0, :, : len(tokens)].log_softmax(dim=-1)
    wanted = [log_probs[len(before) + place - 1, token] for place, token in enumerate(after)]
    assert voice.consensus([turn], [reply])[0] == pytest.approx(float(sum(wanted)) / len(after), abs=1e-4)


def test_the_lean_engine_weighs_a_consensus_as_the_writer_would(whole, monkeypatch):
    turns = ["I lost my job.", "We won the cup!", "oh", "I cannot stop crying, and it has been a year since then."]
    replies = ["Oh no.", "So you did, and I am glad for all of you!", "Why?", ""]
    lean, slow, half = HouseWriter(whole), HouseWriter(whole), HouseWriter(whole)
    half_found = half.consensus(turns, replies)
    monkeypatch.setattr("listenwell.systems.house.writer.fp16", fp32)
    found = lean.consensus(turns, replies)
    monkeypatch.setattr(slow, "_get_engine", lambda: None)
    assert (lean.engine.split(",")[0], slow.engine) == ("the Llama engine", "transformers")
    assert found == pytest.approx(slow.consensus(turns, replies), abs=1e-5)
    assert half_found == pytest.approx(found, abs=5e-3)
    one_by_one = [lean.consensus([turn], [reply])[0] for turn, reply in zip(turns, replies, strict=True)]
    assert found == pytest.approx(one_by_one, abs=1e-5)


def test_the_cheerful_candidate_wins_only_once_the_feeling_was_acknowledged(house, monkeypatch):
    said = ["Cheer up!", "That is sad."]
    heard = {"Cheer up!": "encouraging", "That is sad.": "sympathizing"}
    moods = {"Cheer up!": [0.0, 0.1, 0.9], "That is sad.": [0.5, 0.5, 0.0]}
    (one,) = house.plan([TALKS[0]])
    certain = {text: np.log(np.eye(len(LABELS))[LABELS.index(label)] + 1e-9) for text, label in heard.items()}
    monkeypatch.setattr(house.labeller, "log_probs", lambda texts, *_: np.array([certain[text] for text in texts]))
    monkeypatch.setattr(
        house.sentiment, "distribution", lambda texts: np.array([moods.get(text, [1.0, 0.0, 0.0]) for text in texts])
    )
    lifting = house.with_decoding(rerank=Rerank(positivity=1.0))
    written = [[Candidate(text, 0.0) for text in said]]
    for phase, best in (("acknowledge", said[1]), ("lift", said[0]), ("share", said[0])):
        planned = replace(one, plan=replace(one.plan, phase=phase))
        assert lifting.rerank([planned], written)[0][0].text == best


def test_what_has_no_weight_is_not_computed(house, monkeypatch):
    monkeypatch.setattr(HouseWriter, "consensus", None)
    monkeypatch.setattr("listenwell.systems.house.system.uplift", None)
    reply = house.with_decoding(rerank=Rerank(likelihood=1.0, plan=0.5)).reply(TALKS[0])
    assert set(reply.candidates[0].terms) == {"likelihood", "plan"}


def test_what_was_cut_is_no_candidate_beside_what_came_to_an_end(whole, monkeypatch):
    voice, talk = HouseWriter(whole), Example("0", Dialogue.from_texts(TALKS[0]).turns)
    said = [voice.tokenizer.encode(text) for text in ("and so on and", "oh no", "I see")]
    for ended, texts in (((0, 1, 1), ["oh no", "I see"]), ((0, 0, 0), ["and so on and", "oh no", "I see"])):
        written = [Hypothesis(tokens, -1.0, -1.0, bool(end)) for tokens, end in zip(said, ended, strict=True)]
        monkeypatch.setattr("listenwell.systems.house.writer.decode", lambda *_, written=written, **__: [written])
        (found,) = voice.write([talk], torch.tensor([[PLAIN]]), [0])
        assert [candidate.text for candidate in found] == texts


def test_candidates_are_written_for_several_plans_from_one_reading_of_the_dialogue(house):
    several = house.with_decoding(plans=3, candidates=2, rerank=Rerank())
    planned = several.plan(TALKS)
    for one, reply in zip(planned, several.replies(TALKS), strict=True):
        wanted = moves(one, 3)
        assert len(set(wanted)) == 3
        assert wanted[0] == one.plan.label
        assert {move for candidate in reply.candidates for move in candidate.moves} <= set(wanted)
        assert len(reply.candidates) > 2
        assert reply.label in reply.candidates[0].moves


def test_what_is_written_for_a_plan_does_not_depend_on_the_other_plans(whole):
    writer = HouseWriter(whole).with_decoding(method="greedy", candidates=1)
    items = [Example(str(row), Dialogue.from_texts(talk).turns) for row, talk in enumerate(TALKS)]
    plans = torch.tensor([[1, 33, 38]] * len(items))
    together = writer.write(items, plans, range(len(items)))
    for place in range(3):
        alone = writer.write(items, plans[:, place : place + 1], range(len(items)))
        for (one,), several in zip(alone, together, strict=True):
            assert one.text in [candidate.text for candidate in several]


def test_what_was_requested_is_all_that_is_written_for(house):
    reply = house.with_decoding(plans=3, candidates=2).reply(TALKS[0], Controls(label="wishing"))
    assert {move for candidate in reply.candidates for move in candidate.moves} == {"wishing"}


def test_pairs_stand_beside_what_they_are_made_of(house, monkeypatch):
    several = house.with_decoding(rerank=Rerank(), pairs=1)
    monkeypatch.setattr(
        several.writer, "write", lambda *_: [[Candidate("Oh no.", -1.0), Candidate("What happened?", -2.0)]]
    )
    assert {candidate.text for candidate in several.reply(TALKS[0]).candidates} == {
        "Oh no.", "What happened?", "Oh no. What happened?"
    }  # fmt: skip


def test_the_writer_may_read_the_last_turns_alone_and_everybody_else_reads_all(house, monkeypatch):
    talk = ["My dog died", "Oh no, I am sorry", "I cannot stop crying", "I see", "She was old"]
    few, written = house.with_decoding(turns=3), []
    write = few.writer.write
    monkeypatch.setattr(few.writer, "write", lambda items, *rest: written.extend(items) or write(items, *rest))
    reply = few.reply(talk)
    assert [turn.text for turn in written[0].context] == talk[2:]
    assert len(reply.reasons["heard"]) == 5
    assert [turn.text for turn in as_item(0, few.plan([talk])[0], 2).context] == talk[4:], "begins with the speaker"


def test_small_talk_is_answered_in_fixed_words_alone_streamed_and_among_others(house):
    first, second = house.replies([["are you a robot?"], TALKS[0]])
    assert first.text.startswith("I'm a program, not a person.")
    assert first.reasons["plan"] == "a question about who is speaking: answered in fixed words"
    assert not first.candidates
    assert second.candidates
    shown = house.stream(["hello"])
    assert next(shown) == "Hi! How are you doing today?"
    with pytest.raises(StopIteration) as end:
        next(shown)
    assert end.value.value.text == house.reply(["hello"]).text
    assert house.reply(["hello"], Controls(label="wishing")).candidates


def test_a_chooser_has_its_say_where_there_is_one(whole):
    weights = Rerank(fits=1.0)
    parts = {name: part for name, part in whole.parts.items() if name != "chooser"}
    without = House.of(replace(whole, parts=parts)).with_decoding(rerank=weights).reply(TALKS[0])
    assert all("fits" not in candidate.terms for candidate in without.candidates)
    house = House.of(whole).with_decoding(rerank=weights)
    reply = house.reply(TALKS[0])
    context = Dialogue.from_texts(TALKS[0]).turns
    for candidate in reply.candidates:
        assert candidate.terms == {"fits": pytest.approx(float(house.chooser.fit([(context, candidate.text)])[0]))}


@pytest.mark.parametrize(("name", "value"), [("plans", 0), ("plans", 99), ("pairs", -1), ("pairs", 1.5)])
def test_impossible_numbers_of_plans_are_refused(name, value):
    with pytest.raises(ValueError, match=f"Decoding.{name} is {value}, expected a whole number"):
        HouseDecoding(**{name: value})


def test_without_weights_the_likeliest_is_said(house):
    reply = house.with_decoding(rerank=Rerank()).reply(TALKS[0])
    scores = [candidate.score for candidate in reply.candidates]
    assert scores == sorted(scores, reverse=True)
    assert not reply.candidates[0].terms


def test_the_recipe_says_how_many_are_written_what_they_are_weighed_by_and_how_far_it_leans():
    spoken = load_recipe("house").decoding
    assert (spoken.candidates, spoken.plans, spoken.pairs, spoken.turns) == (2, 5, 3, 3)
    assert {name for name, weight in asdict(spoken.rerank).items() if weight} == {
        "likelihood", "consensus", "positivity", "new", "fits"
    }  # fmt: skip
    assert spoken.signature().endswith("new0.5,fits1)+lean0.5x2")


def test_an_evaluation_says_how_it_leaned_and_keeps_the_terms_to_choose_anew_by(whole, tmp_path, capsys):
    run = tmp_path / "house"
    checkpoint.save(whole, run / "best")
    some = ["--data", "shipped", "--split", "valid", "--items", "3", "--resamples", "0"]
    cli.main(["evaluate", str(run), *some, "--positivity", "0.8", "--decoding.lean.strength", "3"])
    (place,) = (run / "evaluation").iterdir()
    about = json.loads((place / "scores.json").read_text())["about"]
    assert about["decoding"].endswith(f"max8+of3+rerank({WEIGHTS.signature()})+lean0.8x3")
    capsys.readouterr()
    words = ["--weights.plan", "1", "--weights.consensus", "0.5", "--ses", "false", "--json", "true"]
    cli.main(["rerank", str(place), *words])
    rows = [row["choice"] for row in json.loads(capsys.readouterr().out)]
    assert rows[:3] == ["all", "without plan", "without consensus"]
    assert {f"{name} alone" for name in asdict(WEIGHTS)} <= set(rows)


# The engine


def test_the_lean_engine_writes_what_the_writer_would(whole, monkeypatch):
    options = {"method": "greedy", "candidates": 1}
    lean = House.of(whole).with_decoding(**options).replies(TALKS)
    monkeypatch.setattr(HouseWriter, "_get_engine", lambda self: None)
    slow = House.of(whole).with_decoding(**options).replies(TALKS)
    assert [reply.text for reply in lean] == [reply.text for reply in slow]


def test_who_has_ended_is_read_along_while_most_go_on(whole, monkeypatch):
    options = {"candidates": 4, "max_length": 24, "rerank": Rerank()}
    monkeypatch.setattr("listenwell.systems.house.writer.fp16", fp32)
    written = []
    for share in (0.75, 0.0, 1.0):  # some, all, or no finished rows stay in the batch
        monkeypatch.setattr("listenwell.systems.house.writer.MOST_GO_ON", share)
        written.append(House.of(whole).with_decoding(**options).replies(TALKS))
    assert len({len(c.text) for reply in written[0] for c in reply.candidates}) > 3  # they end one after the other
    for other in written[1:]:
        assert [[c.text for c in reply.candidates] for reply in other] == [
            [c.text for c in reply.candidates] for reply in written[0]
        ]


def test_beams_move_in_the_lean_engines_memory(whole, monkeypatch):
    options = {"method": "beam", "beams": 3, "candidates": 2, "rerank": Rerank()}
    monkeypatch.setattr("listenwell.systems.house.writer.fp16", fp32)  # half precision may swap near ties
    lean = House.of(whole).with_decoding(**options).replies(TALKS)
    monkeypatch.setattr(HouseWriter, "_get_engine", lambda self: None)
    slow = House.of(whole).with_decoding(**options).replies(TALKS)
    assert [[c.text for c in reply.candidates] for reply in lean] == [
        [c.text for c in reply.candidates] for reply in slow
    ]
    for one, other in zip(lean, slow, strict=True):
        assert one.candidates[0].score == pytest.approx(other.candidates[0].score, abs=1e-4)


def test_the_lean_engine_measures_what_the_writer_would(house, monkeypatch):
    items = [
        Example(str(row), Dialogue.from_texts(talk).turns, Turn("listener", said, label))
        for row, (talk, said, label) in enumerate(
            zip(TALKS, ("Oh no, why?", "I am so happy for you!", "Hm."), (None, Label("wishing"), None), strict=False)
        )
    ]
    monkeypatch.setattr("listenwell.systems.house.writer.bf16", fp32)
    monkeypatch.setattr("listenwell.systems.house.writer.AT_ONCE", 3)
    plain, oracle = house.likelihoods(items), house.oracle_likelihoods(items)
    house.precision = "bf16"  # the engine measures then, here without loss
    assert house.likelihoods(items).nll == pytest.approx(plain.nll, abs=1e-3)
    assert house.oracle_likelihoods(items).nll == pytest.approx(oracle.nll, abs=1e-3)


def test_in_half_the_bits_it_writes_weighs_and_scores_much_the_same(house):
    item = Example("0", Dialogue.from_texts(TALKS[0]).turns, Turn("listener", "Oh no, why?"))
    voice = house.writer
    full, engine, nll = (
        voice.consensus(["I lost my job"], ["Oh no"]),
        voice._get_engine(),
        house.likelihoods([item]).nll,
    )
    assert voice._get_engine() is engine
    house.precision = "bf16"
    assert (voice.precision, voice.engine) == ("bf16", "the Llama engine, weights in bfloat16")
    assert voice._get_engine() is not engine
    assert voice.consensus(["I lost my job"], ["Oh no"]) == pytest.approx(full, rel=0.05)
    assert house.likelihoods([item]).nll == pytest.approx(nll, rel=0.05)
    assert house.reply(TALKS[0]).candidates
    house.precision = ""
    assert voice.consensus(["I lost my job"], ["Oh no"]) == pytest.approx(full, rel=1e-6)


def test_scores_of_the_house_in_half_the_bits_say_so(whole, tmp_path):
    checkpoint.save(whole, tmp_path / "house" / "best")
    some = ["--data", "shipped", "--items", "2", "--resamples", "0", "--out", str(tmp_path / "half")]
    cli.main(["evaluate", str(tmp_path / "house"), *some, "--precision", "bf16"])
    found = json.loads((tmp_path / "half" / "scores.json").read_text())
    assert found["about"]["precision"] == "bf16"
    assert all("precision:bf16" in score["signature"] for score in found["scores"])


# Vetoes

WISHING = {"wishing": 1.0} | dict.fromkeys([label for label in LABELS if label != "wishing"], 0.0)
"""A planner's chances."""


def written(house, monkeypatch, by_label, otherwise=()):
    """Make the writer write these texts for these plans, and record the plans it was given."""
    plans = []

    def write(planned, numbers, done):
        plans.extend(one.plan.label for one in planned)
        return [[Candidate(text, 0.0) for text in by_label.get(one.plan.label, otherwise)] for one in planned]

    monkeypatch.setattr(house, "_write", write)
    return plans


@pytest.fixture
def sad(house, monkeypatch):
    """A house system that hears bad news in every last turn, and cheer in every "great" sentence."""
    plain = house.with_decoding(rerank=Rerank())
    monkeypatch.setattr(plain, "feel_now", lambda contexts: [Now("sad", "sad", -0.9)] * len(contexts))
    moods = np.array([[0.9, 0.1, 0.0], [0.0, 0.1, 0.9]])
    monkeypatch.setattr(plain.sentiment, "distribution", lambda texts: moods[[int("great" in text) for text in texts]])
    monkeypatch.setattr(plain.labeller, "label", lambda texts: [Label("acknowledging")] * len(texts))
    return plain


def test_cheer_at_bad_news_is_not_said_and_the_reasons_say_so(sad, monkeypatch):
    written(sad, monkeypatch, {}, ["That's great!", "What a loss."])
    reply = sad.reply(TALKS[0])
    assert reply.text == "What a loss."
    assert [candidate.vetoed for candidate in reply.candidates] == [(), ("cheers at bad news",)]
    assert reply.reasons["vetoed"] == ["That's great! (cheers at bad news)"]
    assert reply.reasons["now"] == "sad, mood bad (-0.90)"
    assert reply.to_json()["candidates"][1]["vetoed"] == ["cheers at bad news"]


def test_where_all_are_vetoed_others_are_written_under_another_plan(sad, monkeypatch):
    plans = written(sad, monkeypatch, {"sympathizing": ["What a loss."]}, ["That's great!"])
    monkeypatch.setattr("listenwell.systems.house.planner.lean", lambda *_: WISHING)
    reply = sad.reply(TALKS[0])
    assert (reply.text, reply.label) == ("What a loss.", "sympathizing")
    assert reply.reasons["plan"] == "what was written for wishing was vetoed: sympathizing instead"
    assert plans == ["wishing", "sympathizing", "questioning"]


def test_where_these_are_vetoed_too_plain_sentences_are_said_and_never_the_same(sad, monkeypatch):
    written(sad, monkeypatch, {}, ["That's great!"])
    talk = ["I lost my job today"]
    for _ in range(len(PLAIN_BAD)):
        talk += [sad.reply(talk).text, "I do not know what to do"]
    assert talk[1::2] == list(PLAIN_BAD)
    assert sad.reply(talk).text == "That's great!"  # there is no alternative, and no error


def test_what_was_asked_for_is_not_contradicted(sad, monkeypatch):
    written(sad, monkeypatch, {}, ["That's great!"])
    assert sad.reply(TALKS[0], Controls(label="joyful")).text == "That's great!"


def test_a_streamed_reply_is_shown_once_its_first_sentence_has_no_veto(sad, monkeypatch):
    texts = {"wishing": ["That's", "That's great!", "That's great! So"], "sympathizing": ["What", "What a loss."]}
    monkeypatch.setattr("listenwell.systems.house.planner.lean", lambda *_: WISHING)
    monkeypatch.setattr(sad, "_grow", lambda one, number: iter(texts[one.plan.label]))
    assert [*sad.stream(TALKS[0])] == ["What", "What a loss."]


# Memory


def test_talking_reads_no_copy_of_the_backbone_and_measuring_does(whole, tmp_path):
    checkpoint.save(whole, tmp_path / "house")
    house = load(tmp_path / "house", care=False)
    model = house.writer.model
    before = house.reply(TALKS[0])
    assert model._stored is not None, "the engine takes the weights one by one"
    items = [Example("0", Dialogue.from_texts(TALKS[0]).turns, Turn("listener", "Oh no, why?"))]
    assert house.likelihoods(items).nll == pytest.approx(House.of(whole).likelihoods(items).nll, abs=1e-6)
    assert model._stored is None
    assert house.reply(TALKS[0]) == before


def test_whoever_asks_for_all_weights_gets_those_of_the_backbone(whole, tmp_path):
    checkpoint.save(whole, tmp_path / "house")
    found = checkpoint.load(tmp_path / "house").model.state_dict()
    assert all(torch.equal(weight, found[name]) for name, weight in whole.model.state_dict().items())


# Likelihood


def test_the_plan_is_summed_out_by_what_people_would_do(house):
    items = [
        Example(str(row), Dialogue.from_texts(talk).turns, Turn("listener", "Oh no, why?"))
        for row, talk in enumerate(TALKS)
    ]
    voice = house.writer
    found = house.likelihoods(items)
    for row, item in enumerate(items):
        chances = house.listening.predict([item.context])[0].labels
        mass, weighed = 0.0, {}
        for name in list(chances)[: voice.model.config.score_most]:
            weighed[LABELS.index(name)] = chances[name]
            mass += chances[name]
            if mass >= voice.model.config.score_mass:
                break
        summed = 0.0
        for plan, weight in (weighed | {PLAIN: 1 - mass}).items():
            told = torch.tensor([[plan]])
            nll = voice._likelihoods([item], lambda batch, told=told: voice.model.plan_scores(batch, told)[:, 0], None)
            summed += weight * np.exp(-nll.nll[0])
        assert found.nll[row] == pytest.approx(-np.log(summed), abs=1e-3)


# Saved and loaded


def test_it_is_loaded_from_its_checkpoint(whole, tmp_path):
    checkpoint.save(whole, tmp_path / "house")
    found = load(tmp_path / "house", care=False)
    assert isinstance(found, House)
    assert found.reply(TALKS[0]) == House.of(whole).reply(TALKS[0])


def test_a_writer_without_ears_talks_without_a_plan(whole):
    alone = talking_system(replace(whole, parts={}))
    assert not isinstance(alone, House)
    assert alone.reply(TALKS[0]).label is None


def test_a_missing_part_is_named(whole):
    with pytest.raises(ValueError, match="lacks labeller among the parts"):
        House({name: part for name, part in whole.parts.items() if name != "labeller"}, HouseWriter(whole))


# Behind an endpoint


class Server:
    """Writes predefined texts, as an endpoint would."""

    name = "openai:far"
    about = {"server": "far away"}  # noqa: RUF012
    decoding = HouseDecoding(method="sample", candidates=2, rerank=WEIGHTS)

    def __init__(self):
        self.asked = []

    def many_candidates(self, asked, done=None):
        self.asked += asked
        return [[Candidate("I'm sorry to hear that.", 0.0), Candidate(f"So, {c[-1].text}?", 0.0)] for c, _ in asked]


def test_an_endpoint_writes_what_was_planned_here(whole):
    server = Server()
    house = House(whole.parts, EndpointWriter(server))
    reply = house.reply(TALKS[0])
    assert reply.system == "openai:far"
    assert server.asked[0][1].label == reply.label
    assert set(reply.candidates[0].terms) == {"plan", "positivity", "fresh", "new", "fits"}
    assert house.likelihoods([]) is None
    assert house.about == {"server": "far away"}
    with pytest.raises(ValueError, match="openai:far has a fixed precision; leave --precision out"):
        house.precision = "bf16"


def test_a_model_behind_a_real_server_writes_and_the_house_listens_plans_and_chooses(whole, tmp_path, monkeypatch):
    checkpoint.save(whole, tmp_path / "house")
    monkeypatch.setenv("LISTENWELL_CACHE", str(tmp_path))
    texts = ["I'm sorry to hear that.", "I see.", "Did they say why?"]
    with Protocol() as server:
        server.faults = [answer(*texts)]
        bot = load("openai:small", care=False, base_url=server.url)
        assert isinstance(bot, House)
        assert (
            bot.decoding.signature()
            == f"sample+t0.7+p0.95+seed0+lp1+max120+of3+rerank({WEIGHTS.signature()})+lean0.5x2"
        )
        reply = bot.reply(TALKS[1])
        (body,) = server.bodies
        assert body["n"] == 3
        assert (
            body["messages"][0]["content"] == f"{PROMPT}\n\nFor this reply: what it does or expresses is {reply.label}."
        )
        assert [message["content"] for message in body["messages"][1:]] == TALKS[1]
        assert sorted(candidate.text for candidate in reply.candidates) == sorted(texts)
        order = [(bool(candidate.vetoed), -candidate.score) for candidate in reply.candidates]
        assert order == sorted(order)
        assert set(reply.candidates[0].terms) == {"plan", "positivity", "fresh", "new", "fits"}
        assert set(reply.emotions) == set(EMOTIONS)
        streamed = load("openai:small", base_url=server.url, mode="stream")
        assert [*streamed.stream(TALKS[1])][-1] == SAID
        assert streamed.reply(TALKS[1]).candidates[0].text == SAID
        assert "n" not in server.bodies[-1]
