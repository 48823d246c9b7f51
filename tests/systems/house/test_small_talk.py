"""Greetings, goodbyes and questions about who is speaking."""

import pytest

from listenwell.data.dialogue import Dialogue
from listenwell.systems.house.small_talk import KINDS, small_talk


def answer(*texts):
    return small_talk(Dialogue.from_texts(texts).turns)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("hi", "a greeting"),
        ("Good morning!", "a greeting"),
        ("hey there", "a greeting"),
        ("are you human?", "a question about who is speaking"),
        ("Are you a real person or a bot?", "a question about who is speaking"),
        ("wait, am I talking to a robot?", None),
        ("Am I talking to a robot?", "a question about who is speaking"),
        ("what's your name?", "a question about a name"),
        ("how are you doing today?", "a question about how the system feels"),
        ("Thanks for listening!", "thanks"),
        ("ok thanks, bye", "a goodbye"),
        ("I have to go now", "a goodbye"),
    ],
)
def test_small_talk_is_recognised_by_its_kind(text, kind):
    found = answer(text)
    assert (found and found[0]) == kind


@pytest.mark.parametrize(
    "text",
    [
        "hi, my dog died",
        "thanks, but it still hurts",
        "I have to go to the hospital tomorrow",
        "Are you kidding me",
        "how are you so calm about it",
        "good grief",
        "she said goodbye and left",
        "",
    ],
)
def test_a_message_that_says_anything_else_is_not_small_talk(text):
    assert answer(text or " ") is None


def test_what_it_says_of_itself_is_that_it_is_a_program():
    for one in KINDS:
        if one.kind.startswith("a question"):
            assert all("program" in text for text in one.replies)


def test_the_same_answer_is_not_given_twice_and_at_last_the_writer_answers():
    replies = next(one.replies for one in KINDS if one.kind == "a greeting")
    texts = []
    for reply in replies:
        found = answer(*texts, "hi")
        assert found == ("a greeting", reply)
        texts += ["hi", reply]
    assert answer(*texts, "hi") is None
