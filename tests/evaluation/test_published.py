"""The papers' numbers: they are complete, and each is only compared with the matching score."""

from __future__ import annotations

from decimal import Decimal

import pytest

from listenwell.evaluation import published
from listenwell.evaluation.published import MEANINGS, MEANINGS_IN, NOTES, load, meaning, rows, rows_at
from listenwell.metrics import registry

NOT_OURS = {
    "ab_loss", "ab_tie", "ab_win", "accuracy", "empathy_neg",
    "empathy_pos", "fluency_neg", "fluency_pos", "kappa", "params_m", "posi",
    "relevance_neg", "relevance_pos", "sent", "unpaired_contexts", "unpaired_responses",
    "bleu_deviation", "dialogs", "epochs", "kappa_consistency", "kappa_emotion_acc", "kappa_fluency",
    "parameters_millions", "ppl_valid", "tokens", "tokens_per_dialog", "tokens_per_turn", "training_hours", "turns",
    "turns_per_dialog",
}  # fmt: skip


def row(paper: str, table: str, dataset: str, system: str) -> published.Row:
    (actual,) = [row for row in rows(paper, table, dataset) if row.system == system]
    return actual


def test_every_number_of_the_five_papers_is_there():
    assert {row.paper for row in load()} == {"mime", "meed2", "dual-emp", "bert-joint", "strategy-memory"}
    assert sum(len(row.values) for row in load()) == 715


def test_every_metric_is_a_score_of_ours_or_known_not_to_be():
    metrics_there = {(row.paper, metric) for row in load() for metric in row.values}
    unknown = {metric for paper, metric in metrics_there if meaning(paper, metric) is None}
    assert {metric for metric in unknown if not metric.startswith("human_")} == NOT_OURS


def test_ratings_by_people_never_stand_beside_measured_scores():
    assert not any(metric.startswith(("human_", "ab_")) for metric in MEANINGS)


def test_every_meaning_names_a_score_that_can_be_computed_and_a_note_that_exists():
    meanings = [*MEANINGS.values(), *MEANINGS_IN.values()]
    assert {entry.score for entry in meanings} <= set(registry.known())
    assert {entry.note for entry in meanings} == set(NOTES)


@pytest.mark.parametrize(
    ("place", "system", "score", "shown"),
    [
        (("mime", "2", "ed"), "MIME", "bleu-4", "2.98"),
        (("mime", "text", "ed"), "MIME", "accuracy@5", "77"),
        (("dual-emp", "1", "ed"), "Dual-Emp", "perplexity-word", "31.01"),
        (("dual-emp", "1", "ed"), "Multi-TRS", "distinct-1", "0.68"),
        (("dual-emp", "1", "ed"), "EmpDG", "accuracy@1", "34.35"),
        (("bert-joint", "1", "ed"), "BERT (JT)", "average-bleu", "7.71"),
        (("bert-joint", "1", "ed"), "BERT (JT)", "macro-f1", "25.2"),
        (("meed2", "3", "edos"), "MEED2 (OS->EDOS)", "distinct-2", "22.5"),
        (("meed2", "3", "edos"), "Pre-trained (OS)", "ses", "0.126"),
        (("strategy-memory", "1", "weibo"), "Ours (hard)", "distinct-4", "60.8"),
        (("strategy-memory", "1", "weibo"), "Ours (hard)", "bleu-1", "19.715"),
    ],
)
def test_numbers_stand_in_our_unit_with_the_digits_of_the_paper(place, system, score, shown):
    assert str(row(*place, system).cells()[score]) == shown


def test_perplexity_per_sub_word_does_not_stand_beside_perplexity_per_word():
    cells = row("meed2", "3", "ed", "MEED2 (OS->ED)").cells()
    assert "perplexity-word" not in cells
    assert cells["perplexity"].value == Decimal("17.2")
    assert "sub-word" in NOTES[cells["perplexity"].note]


def test_the_note_on_perplexity_says_how_the_published_ones_differ():
    note = NOTES[row("dual-emp", "1", "ed", "MIME").cells()["perplexity-word"].note]
    assert all(part in note for part in ("mean of batch means", "train, valid and test", "not charged"))


def test_what_is_no_score_of_ours_is_named():
    assert row("mime", "2", "ed", "MIME").left_out() == [
        "params_m", "human_empathy", "human_relevance", "human_fluency",
    ]  # fmt: skip


def test_a_table_of_several_datasets_gives_the_one_that_was_measured():
    assert {row.dataset for row in rows_at("meed2/3", "empathetic-dialogues")} == {"ed"}
    assert {row.dataset for row in rows_at("meed2/3", "shipped")} == {"os", "edos", "ed"}
    assert {row.dataset for row in rows_at("meed2/3/os", "empathetic-dialogues")} == {"os"}
    assert {row.table for row in rows_at("mime")} == {"2", "3", "4", "5", "text"}


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("mmie/2", "did you mean 'mime'?"),
        ("mime/1", "unknown table '1' of mime; known: 2, 3, 4, 5, text"),
        ("meed2/3/weibo", "unknown dataset 'weibo' of meed2 table 3; known: os, edos, ed"),
        ("mime/2/ed/x", "paper/table"),
        ("mime//ed", "paper/table"),
        ("", "paper/table"),
    ],
)
def test_a_mistyped_place_says_what_there_is(place: str, problem: str):
    with pytest.raises(ValueError, match=problem.replace("?", r"\?")):
        rows_at(place)
