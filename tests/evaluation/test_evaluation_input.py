"""What an evaluation reads."""

from listenwell.commands.evaluation_input import as_trained
from listenwell.data.dialogue import Dialogue


def test_a_classifier_that_learned_without_emoticons_is_measured_without_them():
    dialogues = [Dialogue.from_texts(["下班了[哈哈]", "好的"])]
    stripped = {"recipe": {"data": {"emoticons": False}}}
    assert [turn.text for turn in next(iter(as_trained(dialogues, stripped))).turns] == ["下班了", "好的"]
    for meta in ({}, {"recipe": {"data": {"emoticons": True}}}):
        assert list(as_trained(dialogues, meta)) == dialogues
