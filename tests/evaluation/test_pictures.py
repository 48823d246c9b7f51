"""Pictures of labels: their content, and what cannot be drawn."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from listenwell.cli import main
from listenwell.data.dialogue import Dialogue, Label, Turn
from listenwell.data.sources import jsonl
from listenwell.evaluation.pictures import draw_against, draw_confusion, draw_distributions
from listenwell.labels.taxonomy import LABELS
from listenwell.metrics.score import Score, Signature


@pytest.fixture
def drawn(monkeypatch):
    """The axes of every figure that is saved."""
    actual = []
    save = Figure.savefig

    def keep(figure, path, **options):
        actual.append(figure.axes[0])
        save(figure, path, **options)

    monkeypatch.setattr(Figure, "savefig", keep)
    return actual


def names(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_a_confusion_shows_the_labels_met_and_the_shares_of_each_gold_label(drawn, tmp_path):
    table = np.zeros((41, 41), int)
    table[0, 0], table[0, 40], table[33, 40] = 3, 1, 2
    draw_confusion(table, LABELS, "a classifier", tmp_path / "pictures" / "confusion.png")
    (axes,) = drawn
    assert names(axes.yaxis) == ["afraid (4)", "acknowledging (2)"]
    assert names(axes.xaxis) == ["afraid", "neutral"]
    np.testing.assert_allclose(axes.images[0].get_array(), [[75, 25], [0, 100]])
    assert [text.get_text() for text in axes.texts] == ["75", "25", "100"]
    assert axes.get_title() == "a classifier: 50.0% right"
    assert (tmp_path / "pictures" / "confusion.png").stat().st_size > 1000


def test_all_labels_have_room(drawn, tmp_path):
    draw_confusion(np.eye(41, dtype=int), LABELS, "all", tmp_path / "all.png")
    assert names(drawn[0].xaxis) == list(LABELS)
    # Each name has more room than its font height.
    assert drawn[0].figure.get_figwidth() * 72 / 41 > 7


def test_distributions_are_shares_of_each_corpus(drawn, tmp_path):
    counts = {"people": {"sad": 1, "questioning": 3}, "a system": {"questioning": 10}}
    draw_distributions(counts, "labels of replies", tmp_path / "labels.png")
    (axes,) = drawn
    heights = [[bar.get_height() for bar in bars] for bars in axes.containers]
    assert heights[0][LABELS.index("sad")] == 25
    assert heights[1][LABELS.index("questioning")] == 100
    assert [sum(bars) for bars in heights] == [100, 100]
    assert names(axes.xaxis) == list(LABELS)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["people (4)", "a system (10)"]


def test_a_corpus_labelled_by_the_41_is_drawn_as_shares_and_any_other_as_counts(drawn, tmp_path):
    ours = Dialogue("d", (Turn("speaker", "a", Label("sad")), Turn("listener", "b", Label("wishing"))), Label("sad"))
    odd = Dialogue("e", (Turn("speaker", "c", Label("a word of their own")), Turn("listener", "d", Label("wishing"))))
    theirs = Dialogue("d", (Turn("speaker", "a", Label("joy")), Turn("listener", "b", Label("neutral"))))
    for name, dialogues in (("ours", [ours, odd]), ("theirs", [theirs])):
        jsonl.write(dialogues, tmp_path / f"{name}.jsonl")
        main(["data", "stats", str(tmp_path / f"{name}.jsonl"), "--plot", str(tmp_path / f"{name}.png"), "--json"])
    shares, counts = drawn
    assert [text.get_text() for text in shares.get_legend().get_texts()] == ["turns (3)", "dialogues (1)"]
    turns, dialogues = ([bar.get_height() for bar in bars] for bars in shares.containers)
    assert turns[LABELS.index("wishing")] == pytest.approx(200 / 3)
    assert dialogues[LABELS.index("sad")] == 100
    assert names(counts.yaxis) == ["neutral", "joy"]
    assert counts.get_xlabel() == "turns"


def test_what_cannot_be_drawn_is_told(tmp_path):
    with pytest.raises(ValueError, match="no items to draw a confusion matrix of"):
        draw_confusion(np.zeros((41, 41), int), LABELS, "none", tmp_path / "none.png")
    with pytest.raises(ValueError, match="there are no labels to draw of a system"):
        draw_distributions({"people": {"sad": 1}, "a system": {}}, "", tmp_path / "none.png")
    with pytest.raises(ValueError, match=r"there are no labels to draw$"):
        draw_distributions({}, "", tmp_path / "none.png")


def scores(**values):
    def score(value):
        low, high = value - 1, value + 2
        return Score(
            name="made", value=value, better="higher", signature=Signature.of("made"), low=low, high=high, unit="%"
        )

    return {name.replace("_", "-"): score(value) for name, value in values.items()}


def test_systems_stand_by_two_of_their_scores_with_their_intervals(drawn, tmp_path):
    systems = {"plain": scores(bleu_2=3.0, posi=20.0), "kind": scores(bleu_2=2.5, posi=40.0), "blank": scores(posi=9.0)}
    draw_against(systems, "bleu-2", "posi", tmp_path / "against.png")
    (axes,) = drawn
    assert [text.get_text() for text in axes.texts] == ["plain", "kind"]
    assert [text.xy for text in axes.texts] == [(3.0, 20.0), (2.5, 40.0)]
    across, up = (lines.get_segments()[0] for lines in axes.containers[1][2])
    np.testing.assert_allclose(across[:, 0], [1.5, 4.5])
    np.testing.assert_allclose(up[:, 1], [39, 42])
    assert axes.get_ylabel() == "posi, % (higher is better)"
    with pytest.raises(ValueError, match="no system has both scores, bleu-2 and sent; give them with evaluate"):
        draw_against(systems, "bleu-2", "sent", tmp_path / "against.png")
