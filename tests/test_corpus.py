"""The corpus in the package has the properties that training and tests rely on."""

from collections import Counter
from itertools import combinations, pairwise

import pytest

from listenwell.data.sources import shipped
from listenwell.labels.taxonomy import EMOTIONS, INTENTS
from listenwell.text import words

SPLITS = ("train", "valid", "test")


@pytest.fixture(scope="module")
def dialogues():
    return list(shipped.read())


def test_there_are_1152_english_dialogues_and_no_emotion_has_few(dialogues):
    assert len(dialogues) == 1152
    assert {dialogue.language for dialogue in dialogues} == {"en"}
    counts = Counter(dialogue.emotion.name for dialogue in dialogues)
    assert set(counts) == set(EMOTIONS)
    assert min(counts.values()) >= 30


def test_of_each_emotion_there_are_some_to_validate_some_to_test_and_most_to_learn_from(dialogues):
    counts = Counter((dialogue.emotion.name, dialogue.split) for dialogue in dialogues)
    for emotion in EMOTIONS:
        assert counts[emotion, "train"] >= 20
        assert min(counts[emotion, "valid"], counts[emotion, "test"]) >= 3


def test_turns_alternate_from_the_speaker_to_the_listener(dialogues):
    for dialogue in dialogues:
        assert dialogue.turns[0].speaker == "speaker", dialogue.id
        assert dialogue.turns[-1].speaker == "listener", dialogue.id
        assert all(one.speaker != two.speaker for one, two in pairwise(dialogue.turns)), dialogue.id


def test_every_listener_turn_has_one_of_the_eight_intents(dialogues):
    for dialogue in dialogues:
        for turn in dialogue.turns:
            if turn.speaker == "listener":
                assert turn.label is not None, dialogue.id
                assert turn.label.name in INTENTS, dialogue.id


@pytest.mark.parametrize("split", SPLITS)
def test_all_eight_intents_are_used_in_each_split(dialogues, split):
    turns = [turn for dialogue in dialogues if dialogue.split == split for turn in dialogue.turns]
    assert {turn.label.name for turn in turns if turn.speaker == "listener"} == set(INTENTS)


def test_no_text_comes_twice(dialogues):
    spoken = Counter(" ".join(words(turn.text)) for dialogue in dialogues for turn in dialogue.turns)
    assert [text for text, count in spoken.items() if count > 1] == []
    situations = [dialogue.situation for dialogue in dialogues]
    assert all(situations)
    assert len(set(situations)) == len(situations)


def test_no_two_speakers_tell_almost_the_same(dialogues):
    first_turns: dict[tuple[str, ...], list[int]] = {}
    runs = []
    for dialogue in dialogues:
        for turn in dialogue.turns:
            if turn.speaker == "speaker":
                said = words(turn.text)
                runs.append(set(zip(said, said[1:], said[2:], strict=False)))
                for run in runs[-1]:
                    first_turns.setdefault(run, []).append(len(runs) - 1)
    shared = Counter(pair for places in first_turns.values() for pair in combinations(places, 2))
    assert all(count <= 0.5 * len(runs[one] | runs[two]) for (one, two), count in shared.items())


def test_ids_are_unique_and_say_what_they_are(dialogues):
    assert len({dialogue.id for dialogue in dialogues}) == len(dialogues)
    assert all(dialogue.id.startswith(f"lw-en-{dialogue.emotion.name}-") for dialogue in dialogues)


# The Chinese half: smaller, with the same properties


@pytest.fixture(scope="module")
def chinese():
    return list(shipped.read(language="zh"))


def test_there_are_forty_chinese_dialogues_and_every_emotion_is_among_them(chinese):
    assert len(chinese) == 40
    assert set(Counter(dialogue.emotion.name for dialogue in chinese)) == set(EMOTIONS)
    assert Counter(dialogue.split for dialogue in chinese) == {"train": 28, "valid": 6, "test": 6}
    assert all(dialogue.id.startswith(f"lw-zh-{dialogue.emotion.name}-") for dialogue in chinese)
    assert len({dialogue.id for dialogue in chinese}) == 40


def test_chinese_dialogues_alternate_have_four_turns_or_more_and_all_intents(chinese):
    intents = Counter()
    for dialogue in chinese:
        assert len(dialogue.turns) >= 4, dialogue.id
        assert dialogue.turns[0].speaker == "speaker", dialogue.id
        assert all(one.speaker != two.speaker for one, two in pairwise(dialogue.turns)), dialogue.id
        intents.update(turn.label.name for turn in dialogue.turns if turn.speaker == "listener")
    assert set(intents) == set(INTENTS)
    assert min(intents.values()) >= 5


def test_they_are_in_chinese_and_no_text_comes_twice(chinese):
    texts = [turn.text for dialogue in chinese for turn in dialogue.turns]
    assert len(set(texts)) == len(texts)
    for text in texts:
        han = sum("\u4e00" <= character <= "\u9fff" for character in text)
        assert han > 0.7 * len(text), text
