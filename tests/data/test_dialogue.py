import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from listenwell.data.dialogue import Dialogue, Example, Label, Turn, examples, without_annotations

# Records reject blank texts, and "" stands for a missing situation or split.
texts = st.text(min_size=1, max_size=12).filter(str.strip)
labels = st.none() | st.builds(Label, texts, st.sampled_from(["gold", "machine"]), st.none() | st.floats(0, 1))
turns = st.builds(Turn, st.sampled_from(["speaker", "listener"]), texts, labels)
dialogues = st.builds(
    Dialogue,
    id=st.text(max_size=5),
    turns=st.lists(turns, min_size=1, max_size=6).map(tuple),
    emotion=labels,
    situation=st.none() | texts,
    source=st.text(max_size=5),
    language=st.sampled_from(["en", "zh"]),
    split=st.sampled_from([None, "train", "valid", "test"]),
)

SPOKEN = {"speaker": "speaker", "text": "I passed!"}
HEARD = {"speaker": "listener", "text": "You did it!"}


@settings(max_examples=60, deadline=None)
@given(dialogues)
def test_a_dialogue_comes_back_from_json_as_it_was(dialogue):
    assert Dialogue.from_json(json.loads(json.dumps(dialogue.to_json()))) == dialogue


def test_a_gold_label_is_a_plain_string_and_a_machines_says_so():
    assert Label("sad").to_json() == "sad"
    assert Label("sad", "machine", 0.5).to_json() == {"name": "sad", "by": "machine", "confidence": 0.5}
    assert Label.from_json("sad") == Label("sad", "gold")
    assert Label.from_json({"name": "sad"}) == Label("sad", "gold")


def test_what_is_not_given_is_absent_or_the_default():
    dialogue = Dialogue.from_json({"turns": [SPOKEN]})
    assert dialogue == Dialogue("", (Turn("speaker", "I passed!"),))
    given_null = dict.fromkeys(["id", "emotion", "situation", "source", "language", "split"])
    assert Dialogue.from_json({**given_null, "turns": [SPOKEN]}) == dialogue
    assert Dialogue.from_json({"id": 7, "turns": [SPOKEN]}).id == "7"


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ([], "a dialogue is a JSON object, found list"),
        ({"id": "d"}, "a dialogue has a non-empty list 'turns'"),
        ({"turns": []}, "a dialogue has a non-empty list 'turns'"),
        ({"turns": "I passed!"}, "a dialogue has a non-empty list 'turns'"),
        ({"turns": ["I passed!"]}, "a turn is an object with speaker and text, found 'I passed!'"),
        ({"turns": [{"text": "x"}]}, "a turn's speaker is 'speaker' or 'listener', found None"),
        ({"turns": [{"speaker": "bot", "text": "x"}]}, "a turn's speaker is 'speaker' or 'listener', found 'bot'"),
        ({"turns": [{"speaker": "speaker"}]}, "a turn's text is a non-empty string, found None"),
        ({"turns": [{"speaker": "speaker", "text": " \n"}]}, "a turn's text is a non-empty string, found ' \\n'"),
        ({"turns": [SPOKEN | {"label": 3}]}, "a label is a string or an object with a name, found 3"),
        ({"turns": [SPOKEN | {"label": {"by": "gold"}}]}, "a label is a string or an object with a name"),
        ({"turns": [SPOKEN], "emotion": {"name": "sad", "by": "me"}}, "a label is by 'gold' or 'machine', found 'me'"),
        ({"turns": [SPOKEN], "id": ["d"]}, "a dialogue's id is a string, found ['d']"),
        ({"turns": [SPOKEN], "id": True}, "a dialogue's id is a string, found True"),
        ({"turns": [SPOKEN], "situation": 5}, "a dialogue's situation is a string, found 5"),
        ({"turns": [SPOKEN], "source": ["x"]}, "a dialogue's source is a string, found ['x']"),
        ({"turns": [SPOKEN], "language": 1}, "a dialogue's language is a string, found 1"),
        ({"turns": [SPOKEN], "split": {}}, "a dialogue's split is a string, found {}"),
    ],
)
def test_a_bad_record_is_told_what_it_should_be(record, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the message is compared below
        Dialogue.from_json(record)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("confidence", ["high", "0.5", True, -0.1, 1.1, math.nan, math.inf, [0.5]])
def test_a_confidence_is_a_number_from_0_to_1(confidence):
    with pytest.raises(ValueError, match="a label's confidence is a number from 0 to 1, found"):
        Label.from_json({"name": "sad", "by": "machine", "confidence": confidence})


@pytest.mark.parametrize("confidence", [None, 0, 1, 0.25])
def test_a_good_confidence_is_kept(confidence):
    assert Label.from_json({"name": "sad", "confidence": confidence}).confidence == confidence


def test_plain_texts_end_with_the_speaker():
    assert [turn.speaker for turn in Dialogue.from_texts(["a", "b", "c"]).turns] == ["speaker", "listener", "speaker"]
    assert [turn.speaker for turn in Dialogue.from_texts(["a", "b"]).turns] == ["listener", "speaker"]
    with pytest.raises(ValueError, match="at least one text"):
        Dialogue.from_texts([])
    with pytest.raises(ValueError, match="a list of texts, found one text: 'hello'"):
        Dialogue.from_texts("hello")


def test_every_reply_of_the_listener_is_an_example_with_what_came_before_and_after():
    one, two, three = Turn("speaker", "1"), Turn("listener", "2", Label("questioning")), Turn("speaker", "3")
    four = Turn("listener", "4")
    dialogue = Dialogue("d", (one, two, three, four), Label("proud"), "A prize.")
    assert list(examples(dialogue)) == [
        Example("d#1", (one,), two, three, Label("proud"), "A prize."),
        Example("d#3", (one, two, three), four, None, Label("proud"), "A prize."),
    ]


def test_a_reply_needs_a_turn_before_it():
    opening, answer = Turn("listener", "Hello?"), Turn("speaker", "Hi.")
    assert list(examples(Dialogue("d", (opening, answer)))) == []
    assert list(examples(Dialogue("d", (opening,)))) == []


def test_without_annotations_an_item_has_no_gold_in_it():
    turns = (Turn("speaker", "1", Label("sad")), Turn("listener", "2", Label("questioning")))
    item = Example("d#1", turns[:1], turns[1], Turn("speaker", "3"), Label("sad"), "A loss.", {"more": 1})
    assert without_annotations(item) == Example("d#1", (Turn("speaker", "1"),), Turn("listener", "2"))
    assert without_annotations(Example("d", turns)).reply is None


def test_the_speakers_turns_are_replies_where_asked_for():
    dialogue = Dialogue("d", (Turn("speaker", "1"), Turn("listener", "2"), Turn("speaker", "3")))
    assert [item.id for item in examples(dialogue, ["speaker"])] == ["d#2"]
    assert [item.id for item in examples(dialogue, ["speaker", "listener"])] == ["d#1", "d#2"]


def test_a_side_that_is_not_asked_for_need_not_be_there():
    opening, answer, thanks = Turn("listener", "Hello?"), Turn("speaker", "Hi."), Turn("listener", "Good.")
    dialogue = Dialogue("d", (opening, answer, thanks))
    assert list(examples(dialogue, sides=["reply"])) == [
        Example("d#0", (), opening, answer),
        Example("d#2", (), thanks, None),
    ]
    assert list(examples(dialogue, sides=["context"])) == [Example("d#1", (opening, answer))]
    assert list(examples(dialogue, sides=["context", "reply", "following"])) == []
    assert [item.id for item in examples(dialogue, sides=["reply", "following"])] == ["d#0"]


def test_a_situation_is_an_example_of_its_own_with_nothing_to_answer():
    joy = Label("joyful")
    dialogue = Dialogue("d", (Turn("speaker", "Guess what!"), Turn("listener", "What?")), joy, "I got a puppy.")
    turns = (Turn("speaker", "I got a puppy."),)
    assert list(examples(dialogue, sides=["situation"])) == [
        Example("d#situation", turns, None, None, joy, "I got a puppy.")
    ]
    assert list(examples(Dialogue("d", dialogue.turns, joy), sides=["situation"])) == []


def test_an_opening_is_what_the_speaker_says_first_in_the_place_of_a_reply():
    joy, hello, answer = Label("joyful"), Turn("speaker", "Guess what!"), Turn("listener", "What?")
    assert list(examples(Dialogue("d", (hello, answer, hello), joy), sides=["opening"])) == [
        Example("d#0", (), hello, None, joy)
    ]
    assert list(examples(Dialogue("d", (answer, hello), joy), sides=["opening"])) == []


@settings(max_examples=60, deadline=None)
@given(dialogues)
def test_examples_are_as_many_as_listener_turns_with_a_context(dialogue):
    items = list(examples(dialogue))
    assert len(items) == sum(turn.speaker == "listener" for turn in dialogue.turns[1:])
    for item in items:
        following = () if item.following is None else (item.following,)
        whole = (*item.context, item.reply, *following)
        assert whole == dialogue.turns[: len(whole)]
        assert item.following is not None or len(whole) == len(dialogue.turns)
