import pytest

from listenwell.data.dialogue import examples
from listenwell.data.sources import shipped
from listenwell.data.sources.report import Report
from listenwell.data.sources.splits import SPLITS
from listenwell.labels.taxonomy import EMOTION_ID, LABEL_ID


def test_the_shipped_corpus_loads_and_every_record_is_usable():
    report = Report()
    dialogues = list(shipped.read(report=report))
    assert dialogues
    assert not report.noted
    assert len({dialogue.id for dialogue in dialogues}) == len(dialogues)
    for dialogue in dialogues:
        assert dialogue.split in SPLITS
        assert dialogue.emotion is not None
        assert dialogue.emotion.name in EMOTION_ID
        assert all(turn.label is None or turn.label.name in LABEL_ID for turn in dialogue.turns)
        assert any(examples(dialogue))


def test_the_splits_are_parts_of_the_whole():
    parts = [dialogue.id for split in SPLITS for dialogue in shipped.read(split)]
    assert sorted(parts) == sorted(dialogue.id for dialogue in shipped.read())


def test_a_language_that_is_not_shipped_is_told_at_the_call():
    with pytest.raises(ValueError, match=r"no shipped dialogues in 'tlh'; there are: .*en"):
        shipped.read("train", language="tlh")
