"""The grief messages that ship for evaluation."""

import pytest

from listenwell.data import sources
from listenwell.data.dialogue import examples
from listenwell.data.sources import grief, shipped


@pytest.mark.parametrize("language", grief.PARTS)
def test_there_are_thirty_messages_in_each_language_with_a_reply_that_does_not_cheer(language):
    dialogues = list(sources.read("grief", split="test", part=language))
    assert len(dialogues) == 30
    assert {dialogue.language for dialogue in dialogues} == {language}
    assert all(len(list(examples(dialogue))) == 1 for dialogue in dialogues)
    assert len({dialogue.turns[0].text for dialogue in dialogues}) == 30
    cheer = ("congrat", "great news", "恭喜", "太好了", "哈哈")
    assert not any(word in dialogue.turns[1].text.lower() for dialogue in dialogues for word in cheer)


def test_they_are_for_evaluation_alone():
    assert not list(sources.read("grief", split="train"))
    assert not {dialogue.id for dialogue in sources.read("grief")} & {dialogue.id for dialogue in shipped.read()}
    assert len(sources.data_hash(sources.data_files("grief"))) == 16
    with pytest.raises(ValueError, match="unknown part of grief 'de'"):
        sources.read("grief", part="de")
