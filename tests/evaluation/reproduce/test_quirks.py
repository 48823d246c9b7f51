"""Why numbers differ: the effect of known quirks of public code, computed from saved replies and likelihoods."""

from __future__ import annotations

import json

import numpy as np
import pytest
from test_evaluate import MIXED, STOCK, FakeSystem, parrot, written

from listenwell.data.dialogue import Example, Turn
from listenwell.evaluation.reproduce.quirks import (
    ABOUT,
    FEWER,
    GOLD,
    MACRO,
    MULTI_BLEU,
    UNKNOWN,
    answered,
    gold_emotion_file,
    perplexity_with_free_names,
    quirks_of,
    written_out,
)
from listenwell.evaluation.rescore import check, rescore
from listenwell.evaluation.store import read_folder
from listenwell.metrics import distinct, perplexity_per_word
from listenwell.text import words


@pytest.fixture
def kept(tmp_path):
    return read_folder(written(tmp_path, parrot(cost=2.0)) / "evaluation" / "test", "")


def test_a_macro_averaged_perplexity_counts_every_reply_alike(kept):
    quirk = {one.name: one for one in quirks_of("perplexity-word", [kept])}[MACRO]
    cost, counted = kept.scores["perplexity-word"].statistics.rows.T
    slow = np.exp(sum(c / n for c, n in zip(cost, counted, strict=True)) / len(cost))
    assert quirk.value == pytest.approx(slow)
    assert quirk.worth == pytest.approx(slow - kept.scores["perplexity-word"].value)


def test_free_names_of_unknown_words_take_their_price_back(kept):
    nll, counted, unknown = np.array([30.0, 50.0]), np.array([100, 99]), np.array([2, 0])
    charged = perplexity_per_word(nll, counted, unknown=unknown, unseen_types=7, resamples=0)
    free = perplexity_per_word(nll, counted, resamples=0)
    assert perplexity_with_free_names(kept, charged) == pytest.approx(free.value, rel=1e-3)  # the rate is rounded
    assert UNKNOWN in {one.name for one in quirks_of("perplexity-word", [kept])}


def test_the_gold_emotion_is_read_where_it_was_measured_and_never_a_score(kept):
    assert GOLD not in {one.name for one in quirks_of("perplexity-word", [kept])}
    gold_emotion_file(kept.place).write_text(json.dumps({"perplexity-word": 5.0}))
    quirk = {one.name: one for one in quirks_of("perplexity-word", [kept])}[GOLD]
    assert quirk.value == 5.0
    assert not [name for name in read_folder(kept.place, "").scores if "gold" in name]


def dialogue_items():
    """Two dialogues: one with two replies, the first of which is answered, and one with a single reply."""
    first = (Turn("speaker", "I lost my keys"),)
    reply, after = Turn("listener", "oh no !"), Turn("speaker", "They were under the bed")
    return [
        Example("a#1", first, reply),
        Example("a#3", (*first, reply, after), Turn("listener", "good !")),
        Example("b#1", (Turn("speaker", "I passed"),), Turn("listener", "well done !")),
    ]


def test_fewer_items_are_those_whose_reply_is_answered(tmp_path):
    system = FakeSystem("some", ["that is sad .", "that is good .", "that is good ."])
    one = read_folder(written(tmp_path, system, dialogue_items()) / "evaluation" / "test", "")
    assert answered(one.records) == [0]
    (quirk,) = quirks_of("distinct-1", [one])
    assert quirk.name == FEWER
    assert quirk.value == distinct([words("that is sad .")], 1).value == 100
    assert quirk.worth > 0


def test_contractions_are_written_out_as_the_public_readers_do():
    assert written_out("I’m sure it's fine, CAN'T you?") == "i am sure it is fine, cannot you?"


def test_bleu_of_written_out_texts_counts_what_the_scripts_count(tmp_path):
    items = [Example("a#1", (Turn("speaker", "hi"),), Turn("listener", "I am sure that it is fine ."))]
    one = read_folder(
        written(tmp_path, FakeSystem("short", ["I'm sure that it's fine ."]), items) / "evaluation" / "test", ""
    )
    (quirk,) = quirks_of("bleu-4", [one])
    assert quirk.name == MULTI_BLEU
    assert quirk.value == pytest.approx(100)
    assert quirk.worth > 0


def test_several_seeds_are_averaged_and_every_quirk_says_what_it_is(tmp_path):
    systems = [FakeSystem("one", STOCK, cost=2.0), FakeSystem("two", MIXED, cost=3.0)]
    several = [read_folder(written(tmp_path, system) / "evaluation" / "test", "") for system in systems]
    for name in ("perplexity-word", "distinct-1", "bleu-4"):
        apart = [{quirk.name: quirk.value for quirk in quirks_of(name, [one])} for one in several]
        for quirk in quirks_of(name, several):
            assert quirk.value == pytest.approx(np.mean([one[quirk.name] for one in apart]))
            assert quirk.name in ABOUT


# Scores from saved results, without a model


def test_every_score_of_texts_and_statistics_is_computed_again_and_agrees(kept):
    done, left = rescore(kept)
    by = {one.name: one.by for one in done}
    assert by["bleu-4"] == by["distinct-1"] == by["bland"] == "texts"
    assert by["perplexity-word"] == by["accuracy@1"] == "statistics"
    assert all(one.agrees for one in done)
    assert not set(left) & set(by)
    assert check([kept]) == len(done) > 10


def test_replies_that_do_not_give_their_scores_are_told(tmp_path):
    folder = written(tmp_path, parrot()) / "evaluation" / "test"
    lines = (folder / "replies.jsonl").read_text().splitlines()
    record = json.loads(lines[0]) | {"reply": "something else entirely"}
    (folder / "replies.jsonl").write_text("\n".join([json.dumps(record), *lines[1:]]))
    with pytest.raises(ValueError, match=r"its replies do not give its scores \(bleu-4 .* instead of 100"):
        check([read_folder(folder, "")])
