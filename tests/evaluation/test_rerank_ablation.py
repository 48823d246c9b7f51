"""Choosing again among the candidates that an evaluation saved."""

from __future__ import annotations

import json

import pytest

from listenwell import cli
from listenwell.data.dialogue import Example, Turn
from listenwell.evaluation.evaluate import Evaluation, write
from listenwell.evaluation.rerank_ablation import choose, known_terms, reranked, stored_candidates, ways, weights_of
from listenwell.evaluation.store import StoredEvaluation, read
from listenwell.systems.house.options import Rerank
from listenwell.systems.reply import Candidate, Reply

TEXTS = ["I am sorry to hear that.", "What happened next?", "You will find a better one soon."]
TERMS = [
    {"likelihood": -1.0, "plan": -2.0, "fresh": -1.0},
    {"likelihood": -2.0, "plan": -0.5, "fresh": 0.0},
    {"likelihood": -1.5, "plan": -3.0, "fresh": 0.0},
]


def candidates():
    return [Candidate(text, 0.0, terms) for text, terms in zip(TEXTS, TERMS, strict=True)]


@pytest.fixture
def folder(tmp_path):
    """The output of `evaluate` for two items with three candidates each."""
    records = [
        {
            "id": f"d{row}#1",
            "context": ["I lost my job today"],
            "reference": "What happened?",
            "reply": TEXTS[0],
            "emotion": None,
            "label": "questioning",
            "candidates": [one.to_json() for one in candidates()],
        }
        for row in range(2)
    ]
    about = {"data": "shipped", "split": "valid", "items": 2, "rerank": {"likelihood": 1.0, "plan": 1.0}}
    place = tmp_path / "valid"
    place.mkdir()
    (place / "replies.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (place / "scores.json").write_text(json.dumps({"system": "house", "about": about, "scores": []}))
    (place / "items.json").write_text("[]")
    return place


def test_an_evaluation_keeps_what_was_weighed_and_nothing_else(tmp_path):
    item = Example("1", (Turn("speaker", "I lost my job"),), Turn("listener", "Oh no"))
    for name, several in (("weighed", candidates()), ("plain", [Candidate("Oh", -1.0), Candidate("No", -2.0)])):
        reply = Reply(several[0].text, candidates=tuple(several))
        write(Evaluation("house", [], [item], [reply], {}), tmp_path / name)
        (record,) = map(json.loads, (tmp_path / name / "replies.jsonl").read_text().splitlines())
        assert ("candidates" in record) == (name == "weighed")
    assert stored_candidates(read(str(tmp_path / "weighed"))) == [candidates()]


def none(name, total):
    return lambda more: None


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (Rerank(likelihood=1), TEXTS[0]),
        (Rerank(plan=1), TEXTS[1]),
        (Rerank(likelihood=1, fresh=1), TEXTS[2]),
        (Rerank(likelihood=1, plan=1), TEXTS[1]),
    ],
)
def test_the_best_by_the_weighed_sum_is_chosen(weights, expected):
    assert [one.text for one in choose([candidates()], weights)] == [expected]


def test_among_equals_the_order_in_which_they_were_kept_says_nothing():
    many = [candidates() for _ in range(200)]
    chosen = [one.text for one in choose(many, Rerank(fresh=1))]
    assert set(chosen) == {TEXTS[1], TEXTS[2]}  # the two that are equally novel
    assert 60 < chosen.count(TEXTS[1]) < 140
    assert chosen == [one.text for one in choose(many, Rerank(fresh=1))]


def test_without_weights_any_candidate_is_drawn_and_always_the_same():
    many = [candidates() for _ in range(60)]
    drawn = [one.text for one in choose(many, None)]
    assert set(drawn) == set(TEXTS)
    assert drawn == [one.text for one in choose(many, None)]


def test_every_term_is_left_out_once_and_stands_alone_once():
    weights_by_name = dict(ways(Rerank(likelihood=0.5, plan=2.0), ("likelihood", "plan", "fresh")))
    assert weights_by_name == {
        "all": Rerank(likelihood=0.5, plan=2.0),
        "without likelihood": Rerank(plan=2.0),
        "without plan": Rerank(likelihood=0.5),
        "likelihood alone": Rerank(likelihood=1.0),
        "plan alone": Rerank(plan=1.0),
        "fresh alone": Rerank(fresh=1.0),
        "any candidate": None,
    }


def test_a_term_that_was_not_computed_cannot_be_weighed():
    with pytest.raises(ValueError, match=r"not weighed by consensus.*they have likelihood, plan"):
        ways(Rerank(consensus=1.0), ("likelihood", "plan"))


def test_what_would_have_been_said_is_scored(folder):
    evaluated = read(str(folder))
    assert known_terms(stored_candidates(evaluated)) == ("likelihood", "plan", "fresh")
    assert weights_of(evaluated) == Rerank(likelihood=1.0, plan=1.0)
    results = {one.name: one for one in reranked(evaluated, None, none)}
    assert results["all"].changed == 0.0
    assert results["all"].scores["sorry-to-hear"].value == 0.0
    assert results["likelihood alone"].changed == 100.0
    assert results["likelihood alone"].scores["sorry-to-hear"].value == 100.0
    assert results["likelihood alone"].scores["unique-count"].value == 1.0
    own = {one.name: one for one in reranked(evaluated, Rerank(likelihood=1.0), none)}
    assert own["all"].scores["sorry-to-hear"].value == 100.0
    assert "without likelihood" not in own  # nothing would be left


def test_an_evaluation_without_candidates_says_which_have_them(tmp_path):
    plain = StoredEvaluation("trs", tmp_path, {}, ({"id": "1", "context": ["Hi"], "reply": "Hello"},))
    with pytest.raises(ValueError, match="has no candidates to choose among"):
        stored_candidates(plain)


def test_the_command_prints_a_row_for_each_choice(folder, capsys):
    cli.main(["rerank", str(folder), "--ses", "false"])
    printed = capsys.readouterr().out
    assert "valid, valid: 2 items" in printed
    for name in ("all", "without plan", "plan alone", "any candidate", "Distinct-2", "sorry %"):
        assert name in printed
    cli.main(["rerank", str(folder), "--weights.plan", "1", "--ses", "false", "--json", "true"])
    first = json.loads(capsys.readouterr().out)[0]
    assert (first["choice"], first["weights"]["plan"], first["weights"]["likelihood"]) == ("all", 1.0, 0.0)


def test_the_title_names_the_split_that_the_folder_holds(folder, capsys):
    scores = json.loads((folder / "scores.json").read_text())
    scores["about"]["split"] = "test"
    (folder / "scores.json").write_text(json.dumps(scores))
    cli.main(["rerank", str(folder), "--ses", "false"])
    assert "valid, test: 2 items" in capsys.readouterr().out
