"""Evaluating a system on a split: what it is given, what is scored, and what is saved."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from listenwell.data.dialogue import Dialogue, Example, Label, Turn
from listenwell.evaluation.evaluate import Evaluation, evaluate, write
from listenwell.evaluation.store import read_folder
from listenwell.labels.taxonomy import EMOTIONS
from listenwell.systems.base import Likelihoods
from listenwell.systems.reply import Reply

SAID = [
    ("I lost my keys again", "oh no , where did you look ?", "annoyed"),
    ("My dog died on Sunday", "i am so sorry to hear that .", "sad"),
    ("I passed my exam", "that is great news , well done !", "joyful"),
    ("There is a noise in the attic", "did you go up and look ?", "afraid"),
    ("She forgot my birthday", "that must have hurt you .", "disappointed"),
    ("We are moving to Spain", "are you excited about it ?", "excited"),
]

STOCK = ["i am so sorry to hear that ."] * len(SAID)
MIXED = [*STOCK[:3], *(reply for _, reply, _ in SAID[3:])]


def made_items(number: int = len(SAID)) -> list[Example]:
    """Items that include everything a system must not see."""
    return [
        Example(
            f"d{index}#1",
            (Turn("speaker", said, Label("questioning", "machine")),),
            Turn("listener", reply, Label("consoling")),
            following=Turn("speaker", "GOLD following"),
            emotion=Label(emotion),
            situation="GOLD situation",
            extra={"secret": "GOLD extra"},
        )
        for index, (said, reply, emotion) in enumerate(SAID[:number])
    ]


class FakeSystem:
    """Gives predefined replies and records its inputs."""

    def __init__(
        self, name: str, texts: Sequence[str], recognised: Sequence[str] | None = None, cost: float | None = None
    ) -> None:
        self.name, self.texts, self.recognised, self.cost = name, texts, recognised, cost
        self.given: list[Dialogue] = []
        self.scored: list[Example] = []

    def reply(self, talk, controls=None) -> Reply:
        return self.replies([talk])[0]

    def replies(self, talks, controls=None, done=None, first=0) -> list[Reply]:
        self.given = list(talks)
        return [self._reply(index) for index in range(len(talks))]

    def _reply(self, index: int) -> Reply:
        if self.recognised is None:
            return Reply(self.texts[index])
        emotions = {name: 0.9 if name == self.recognised[index] else 0.1 / 31 for name in EMOTIONS}
        return Reply(self.texts[index], self.recognised[index], emotions)

    def likelihoods(self, items, done=None) -> Likelihoods | None:
        self.scored = list(items)
        if self.cost is None:
            return None
        words = np.array([len(item.reply.text.split()) for item in items])
        nll = (words + 1) * self.cost + np.arange(len(items)) % 3
        return Likelihoods(nll, words + 1, words, np.zeros(len(items)), 0)


def quiet(name: str, total: int) -> Callable[[int], None]:
    return lambda more: None


def measured(system: FakeSystem, items: list[Example] | None = None, **about: object) -> Evaluation:
    return evaluate(system, items or made_items(), {"data": "made", "split": "test", **about}, quiet, resamples=20)


def parrot(name: str = "parrot", **choices) -> FakeSystem:
    """Replies with the references and predicts every emotion correctly."""
    return FakeSystem(name, [reply for _, reply, _ in SAID], [emotion for _, _, emotion in SAID], **choices)


def written(folder: Path, system: FakeSystem, items: list[Example] | None = None, **about: object) -> Path:
    """A run's folder with the system's evaluation."""
    place = folder / system.name / "evaluation" / "test"
    place.parent.mkdir(parents=True)
    write(measured(system, items, **about), place)
    return folder / system.name


def test_the_gold_emotion_label_and_situation_never_reach_the_system():
    system = parrot(cost=2.0)
    measured(system)
    assert [dialogue.turns[-1].text for dialogue in system.given] == [said for said, _, _ in SAID]
    for dialogue in system.given:
        assert dialogue.emotion is None
        assert dialogue.situation is None
        assert all(turn.label is None for turn in dialogue.turns)
        assert len(dialogue.turns) == 1
    for item in system.scored:
        assert (item.emotion, item.situation, item.following, dict(item.extra)) == (None, None, None, {})
        assert all(turn is not None and turn.label is None for turn in (*item.context, item.reply))
    assert "GOLD" not in repr(system.given) + repr(system.scored)
    replies = {reply for _, reply, _ in SAID}
    assert not any(turn.text in replies for dialogue in system.given for turn in dialogue.turns)


def test_a_right_system_scores_full_marks():
    scores = measured(parrot(cost=2.0))
    assert scores["accuracy@1"].value == scores["bleu-4"].value == pytest.approx(100)
    assert scores["perplexity-word"].value > np.exp(2)
    assert scores.about["items"] == len(SAID)


def test_the_emotion_has_a_mean_f1_of_classes_and_one_weighed_by_how_frequent_they_are():
    said, reply, _ = SAID[1]
    items = [*made_items(), Example("d6#1", (Turn("speaker", said),), Turn("listener", reply), emotion=Label("sad"))]
    gold = [item.emotion.name for item in items]
    recognised = ["joyful", *gold[1:]]
    scores = measured(FakeSystem("hears", [item.reply.text for item in items], recognised), items)
    # Annoyed is never predicted, joyful once too often, the four others are always right; sad occurs twice.
    assert scores["macro-f1"].value == pytest.approx(100 * (0 + 2 / 3 + 4) / 6)
    assert scores["weighted-f1"].value == pytest.approx(100 * (0 + 2 / 3 + 3 + 2) / 7)
    for name in ("macro-f1", "weighted-f1"):
        assert scores[name].low <= scores[name].value <= scores[name].high
        assert scores[name].signature["average"] == name.removesuffix("-f1")


def test_a_system_without_likelihoods_has_no_perplexity():
    names = {score.name for score in measured(parrot()).scores}
    assert not any("perplexity" in name for name in names)
    assert {"accuracy@1", "bleu-4"} <= names


def test_a_system_that_names_no_emotion_has_no_accuracy():
    scores = measured(FakeSystem("mute", [reply for _, reply, _ in SAID], cost=1.0))
    names = {score.name for score in scores.scores}
    assert not any("accuracy" in name or "f1" in name for name in names)
    assert "perplexity-word" in names
    with pytest.raises(KeyError, match="no score 'accuracy@1', there are perplexity-word"):
        scores["accuracy@1"]


def test_data_without_emotions_gives_no_accuracy():
    items = [Example(item.id, item.context, item.reply) for item in made_items()]
    assert not any("accuracy" in score.name for score in measured(parrot(), items).scores)


def test_nothing_to_evaluate_is_said():
    with pytest.raises(ValueError, match="nothing to evaluate"):
        evaluate(parrot(), [], {}, quiet)


def test_what_is_written_reads_back_the_same(tmp_path: Path):
    scores = measured(parrot(cost=2.0), commit="abc")
    write(scores, tmp_path / "test")
    again = read_folder(tmp_path / "test", "")
    assert list(again.scores.values()) == scores.scores
    for score in scores.scores:
        other = again.scores[score.name]
        assert (score.items is None) == (other.items is None)
        if score.items is not None:
            np.testing.assert_allclose(other.items, score.items)
        if score.statistics is not None:
            assert other.statistics.value() == pytest.approx(score.value)
    assert again.about == scores.about
    assert [record["reply"] for record in again.records] == [reply for _, reply, _ in SAID]
    first = again.records[0]
    assert (first["id"], first["context"], first["gold emotion"]) == ("d0#1", ["I lost my keys again"], "annoyed")
    summary = json.loads((tmp_path / "test" / "scores.json").read_text(encoding="utf-8"))
    assert summary["system"] == "parrot"
    assert "items" not in summary["scores"][0]


class Chooser(FakeSystem):
    """Chooses a label for each reply, and knows a reply's likelihood under its true label."""

    def __init__(self, chosen: Sequence[str]) -> None:
        super().__init__("chooser", [reply for _, reply, _ in SAID], cost=2.0)
        self.chosen = chosen
        self.scored_with_labels: list[Example] = []

    def _reply(self, index: int) -> Reply:
        return Reply(self.texts[index], label=self.chosen[index])

    def oracle_likelihoods(self, items, done=None) -> Likelihoods:
        self.scored_with_labels = list(items)
        words = np.array([len(item.reply.text.split()) for item in items])
        return Likelihoods((words + 1) * 1.0, words + 1, words, np.zeros(len(items)), 0)


def test_the_label_chosen_is_held_against_that_of_the_reply_and_a_guess():
    scores = measured(Chooser(["consoling"] * 4 + ["wishing"] * 2))
    assert scores["label-recall"].value == pytest.approx(100 * 4 / 6)
    assert scores["label-precision"].value == pytest.approx(100)
    assert scores["label-f1"].value == pytest.approx(80)
    assert scores["random-label-f1"].value < scores["label-f1"].value
    assert scores["random-label-f1"].signature["chosen"] == "uniform"
    names = {score.name for score in measured(parrot()).scores}
    assert not any("label" in name for name in names)


def test_with_the_true_label_told_perplexity_is_marked_and_nothing_else_is_told():
    system = Chooser(["consoling"] * 6)
    scores = measured(system)
    assert scores["perplexity-word-oracle"].value == pytest.approx(np.e)
    assert scores["perplexity-oracle"].signature["label"] == "true"
    assert scores["perplexity"].value > scores["perplexity-oracle"].value
    assert [item.reply.label for item in system.scored_with_labels] == [Label("consoling")] * 6
    assert all(turn.label is None for item in system.scored_with_labels for turn in item.context)
    assert "GOLD" not in repr(system.scored_with_labels)


def test_the_likeliest_label_is_scored_apart_from_the_one_chosen():
    class Fitted(Chooser):
        """Always finds consoling the most likely, and chooses another label."""

        def _reply(self, index: int) -> Reply:
            return replace(super()._reply(index), reasons={"likeliest": {"consoling": 0.5, "wishing": 0.2}})

    system = Fitted(["wishing"] * 6)
    about = {"data": "made", "split": "test"}
    names = ["label-recall", "likeliest-label-recall", "machine-label-recall"]
    scores = evaluate(system, made_items(), about, quiet, resamples=0, metrics=names)
    assert (scores["label-recall"].value, scores["likeliest-label-recall"].value) == (0, 100)
    assert scores["likeliest-label-recall"].signature["chosen"] == "likeliest"
    assert "machine-label-recall" in scores.about["left out"]  # no classifier was given


def test_a_given_label_is_the_data_s_own_for_every_reply_that_has_one():
    system = Chooser(["consoling"] * 6)
    about = {"data": "made", "split": "test"}
    scores = evaluate(system, made_items(), about, quiet, resamples=0, metrics=["perplexity-given-label"])
    assert scores["perplexity-given-label"].value == pytest.approx(np.e)
    assert scores["perplexity-given-label"].signature["label"] == "given"
    assert [item.reply.label for item in system.scored_with_labels] == [Label("consoling")] * 6
    assert "GOLD" not in repr(system.scored_with_labels)


def test_where_some_replies_have_no_label_the_oracle_stands_beside_the_perplexity_of_those_that_have():
    assert not any("labelled" in score.name for score in measured(Chooser(["consoling"] * 6)).scores)
    items = made_items()
    items[1] = replace(items[1], reply=replace(items[1].reply, label=None))
    items[4] = replace(items[4], reply=replace(items[4].reply, label=Label("joy")))
    scores = measured(Chooser(["consoling"] * 6), items)
    rows = [0, 2, 3, 5]
    words = [len(items[row].reply.text.split()) + 1 for row in rows]
    costs = [2.0 * count + row % 3 for row, count in zip(rows, words, strict=True)]
    assert scores["perplexity-word-labelled"].value == pytest.approx(np.exp(sum(costs) / sum(words)))
    for name in ("perplexity-labelled", "perplexity-oracle"):
        assert scores[name].signature["items"] == "4"
    assert scores["perplexity-labelled"].signature["only"] == "labelled"
    assert scores["perplexity"].signature["items"] == "6"


def test_where_the_data_has_other_labels_nothing_is_held_against_them():
    items = made_items()
    items = [replace(item, reply=replace(item.reply, label=Label("joy"))) for item in items[:4]] + [
        replace(item, reply=replace(item.reply, label=Label("neutral"))) for item in items[4:]
    ]
    names = {score.name for score in measured(Chooser(["neutral"] * 6), items).scores}
    assert not any("label" in name or "oracle" in name for name in names)


BY_VECTORS = ["embedding-average", "greedy-matching", "vector-extrema"]


def test_the_file_of_word_vectors_can_be_chosen_and_is_named_in_the_signature(tmp_path):
    words = sorted({word for _, reply, _ in SAID for word in reply.split()})
    rows = np.random.default_rng(0).normal(size=(len(words), 4)).round(3)
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in zip(words, rows, strict=True)]
    (tmp_path / "mine.vec").write_text("\n".join(lines))
    vectors = tmp_path / "mine.vec"
    evaluation = evaluate(parrot(), made_items(), {}, quiet, resamples=0, metrics=BY_VECTORS, vectors=vectors)
    assert [score.name for score in evaluation.scores] == BY_VECTORS
    assert all(score.value == pytest.approx(1) for score in evaluation.scores)
    assert all("vectors:mine" in str(score.signature) for score in evaluation.scores)
    with pytest.raises(ValueError, match=r"none of these metrics reads .*--metrics embedding-average,"):
        evaluate(parrot(), made_items(), {}, quiet, resamples=0, metrics=["bleu-4"], vectors=vectors)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"the quick brown fox\n", r"mine.vec line 1: could not convert .* 'quick'; expected a text file with a word"),
        (b"word\nanother\n", "mine.vec line 1: there are no numbers; expected a text file"),
        (b"\x1f\x8b\x08\xff\xfe", "mine.vec: not UTF-8 text; expected a text file"),
        (b"a 1 2\nb 1\n", "mine.vec line 2: "),
        (b"", "mine.vec: there are no word vectors in it"),
        (None, "mine.vec: there is no such file of word vectors"),
    ],
)
def test_what_is_not_a_file_of_word_vectors_is_refused_before_a_reply_is_written(tmp_path, content, problem):
    if content is not None:
        (tmp_path / "mine.vec").write_bytes(content)
    system = parrot()
    with pytest.raises((ValueError, FileNotFoundError), match=problem):
        evaluate(system, made_items(), {}, quiet, metrics=BY_VECTORS, vectors=tmp_path / "mine.vec")
    assert not system.given
