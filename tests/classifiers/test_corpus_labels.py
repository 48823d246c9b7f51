"""A classifier labels a corpus during curation, with the same result in every process."""

from __future__ import annotations

import json

import pytest

from listenwell import checkpoint, cli
from listenwell.classifiers.corpus_labels import CorpusLabelling, label_texts
from listenwell.classifiers.emotionality import emotionality
from listenwell.classifiers.labeller import Labeller
from listenwell.data import sources
from listenwell.data.dialogue import Dialogue
from listenwell.labels.taxonomy import LABELS

DIALOGUES = [["I lost my job.", "Oh no! When?"], ["We won the match!", "Great.", "I know."], ["Hello there."]]


@pytest.fixture
def saved(tiny_classifier, tmp_path):
    checkpoint.save(tiny_classifier(), tmp_path / "classifier")
    return str(tmp_path / "classifier")


def test_labels_and_emotionality_are_those_of_the_labeller(tiny_classifier):
    labeller = Labeller(tiny_classifier())
    labelled = label_texts(labeller, DIALOGUES)
    for one, texts in zip(labelled, DIALOGUES, strict=True):
        labels = labeller.label(texts)
        assert one.labels == tuple(label.name for label in labels)
        assert one.confidences == pytest.approx([label.confidence for label in labels], abs=2e-4)
    expected = emotionality([Dialogue.from_texts(texts) for texts in DIALOGUES], labeller)
    assert [one.emotionality for one in labelled] == pytest.approx(expected.tolist(), abs=1e-5)


def test_other_weights_than_at_the_beginning_are_refused(saved):
    labelling = CorpusLabelling.named(saved, "en")
    assert labelling.knows_emotions
    assert len(labelling.load()(DIALOGUES)) == 3
    with pytest.raises(RuntimeError, match="has other weights than when the curation began"):
        CorpusLabelling(saved, "0123").load()


def test_a_language_that_it_does_not_know_is_refused(saved):
    with pytest.raises(ValueError, match="learned from texts in en, not in zh"):
        CorpusLabelling.named(saved, "zh")


def test_the_command_labels_and_selects_with_any_number_of_workers(saved, tmp_path, capsys):
    (tmp_path / "subs").mkdir()
    for number, animal in enumerate(("cat", "dog with a ball", "small horse here")):
        cues = [
            f"{n}\n00:00:{n * 3:02},000 --> 00:00:{n * 3 + 2:02},000\n{'AB'[n % 2]}NN: Line {n} is about a {animal}.\n"
            for n in range(1, 9)
        ]
        (tmp_path / "subs" / f"{number}.srt").write_text("\n".join(cues))
    hashes = []
    for workers in ("1", "2"):
        out = tmp_path / f"out-{workers}"
        words = ["--labeller", saved, "--most-emotional", "1", "--held-out", "none", "--workers", workers, "--json"]
        cli.main(["curate", "subtitles", str(tmp_path / "subs"), "--out", str(out), *words])
        hashes.append(json.loads(capsys.readouterr().out)["records"]["hash"])
        dialogues = list(sources.read(str(out)))
        assert all(turn.label.name in LABELS for dialogue in dialogues for turn in dialogue.turns)
        assert len(list(sources.read(str(out), part="emotional"))) == 1
    assert hashes[0] == hashes[1]
