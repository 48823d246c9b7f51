"""What is never said, whatever its score."""

import pytest

from listenwell.classifiers.listener import ListenerPrediction, Now, felt_now
from listenwell.systems.house.honesty import claims_a_life
from listenwell.systems.house.planner import feels_bad_now
from listenwell.systems.house.vetoes import (
    PLAIN_BAD,
    PLAIN_GOOD,
    Sentence,
    asks_again,
    begins_alike,
    cheers,
    find_vetoes,
    hopes_for_the_dead,
    is_torn,
    laments,
    plain_reply,
    repeats,
    repeats_itself,
    says_the_same,
    tells_of_a_loss,
)


@pytest.mark.parametrize(
    "text",
    [
        "That's great!",
        "Congratulations!",
        "I'm so glad that you made it.",
        "That must have been fun.",
        "I'm glad you have a great time!",
        "I hope you have a good time.",
    ],
)
def test_to_be_glad_of_what_was_told_is_cheer(text):
    assert cheers(Sentence(text, "neutral", 0.9))


@pytest.mark.parametrize("text", ["I hope she is ok.", "You will get through this.", "Did you have a good time?"])
def test_to_hope_to_console_and_to_ask_is_none(text):
    assert not cheers(Sentence(text, "consoling", 0.9))


def test_a_positive_verdict_is_cheer_in_whatever_words():
    assert cheers(Sentence("What a treat", "acknowledging", 0.9))
    assert not cheers(Sentence("What a blow", "acknowledging", -0.9))


def test_to_be_sorry_is_a_lament():
    assert laments(Sentence("I'm sorry to hear that.", "sympathizing", -0.9))
    assert not laments(Sentence("I hope it goes well.", "wishing", 0.9))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("I hope she is ok.", "i hope she's okay", True),
        ("I hope you did not pass.", "I hope you do not pass.", True),
        ("Maybe you should try to find a new friend.", "Maybe you should start looking for a new friend.", True),
        ("Oh no, what happened?", "What happened?", True),
        ("I hope you feel better soon.", "I hope you find a new job soon.", False),
        ("Oh no!", "Oh no!", False),
        ("", "", False),
    ],
)
def test_sentences_say_the_same_that_are_nearly_equal(one, other, same):
    assert says_the_same(one, other) is same


def test_one_sentence_of_an_earlier_reply_is_a_repetition():
    earlier = ["That sounds awful. I hope she is ok.", "How old was she?"]
    assert repeats("Oh dear! I hope she is ok!", earlier)
    assert not repeats("Was she at home?", earlier)
    assert repeats_itself("I'm so sorry. I'm so sorry.")


def test_vetoes_are_named_and_go_by_what_is_felt():
    said = [Sentence("That's great!", "acknowledging", 0.9)]
    sorry = [Sentence("I'm sorry.", "sympathizing", -0.9)]
    assert find_vetoes(said, [], bad_news=True, good_news=False) == ("cheers at bad news",)
    assert find_vetoes(said, [], bad_news=False, good_news=True) == ()
    assert find_vetoes(sorry, [], bad_news=False, good_news=True) == ("laments good news",)
    assert find_vetoes(said, ["That is great."], True, False, requested=True) == ("repeats an earlier reply",)


def test_plain_sentences_are_used_up_without_an_error():
    assert plain_reply(True, []) == PLAIN_BAD[0]
    assert plain_reply(False, [PLAIN_GOOD[0]]) == PLAIN_GOOD[1]
    assert plain_reply(True, PLAIN_BAD) is None
    for several in (PLAIN_BAD, PLAIN_GOOD):
        assert not any(repeats(text, several[:index]) for index, text in enumerate(several))


def test_what_is_felt_now_goes_before_the_dialogues_emotion():
    hopeful, sad = ListenerPrediction({"hopeful": 1.0}, {}), ListenerPrediction({"devastated": 1.0}, {})
    assert feels_bad_now(hopeful, felt_now(ListenerPrediction({"afraid": 1.0}, {}), {"afraid": 1.0}, -0.9))
    assert not feels_bad_now(sad, felt_now(ListenerPrediction({"grateful": 1.0}, {}), {"faithful": 1.0}, 0.6))
    unclear = Now("sentimental", "sentimental", 0.0)
    assert feels_bad_now(sad, unclear)
    assert not feels_bad_now(hopeful, unclear)


def test_an_emotion_of_good_news_and_of_bad_says_nothing_about_the_mood():
    assert felt_now(ListenerPrediction({"nostalgic": 0.6, "caring": 0.4}, {}), {"sentimental": 1.0}, 0.0).mood == 0


# What a program cannot say


@pytest.mark.parametrize(
    "text",
    [
        "I have cheated on my wife and it is a terrible feeling.",
        "My dog died last year.",
        "I've lost a few pets.",
        "I love wake-boarding.",
        "Me too!",
        "I was poor at the time.",
        "I have been to Louisiana before.",
        "I feel the same way.",
    ],
)
def test_a_life_of_its_own_is_a_claim_that_a_program_cannot_make(text):
    assert claims_a_life(text)


@pytest.mark.parametrize(
    "text",
    [
        "I am so sorry to hear that.",
        "I love that you told her.",
        "I would be so scared!",
        "I would miss my dog, too.",
        "I can imagine how much my words fall short.",
        "I was wondering how you are.",
        "I had no idea it was so hard.",
        "Did my question hurt you?",
        "I hope your dog is fine.",
        "I understand how you feel.",
    ],
)
def test_to_feel_with_somebody_to_imagine_and_to_ask_claims_nothing(text):
    assert not claims_a_life(text)


def test_what_claims_a_life_is_vetoed_even_where_an_intent_was_requested():
    said = [Sentence("My wife left me, too.", "sympathizing", -0.5)]
    assert find_vetoes(said, [], bad_news=True, good_news=False, requested=True) == ("claims a life of its own",)


@pytest.mark.parametrize(
    ("text", "torn"),
    [
        ("That's awesome! I'm so sorry for the situation.", True),
        ("I am sorry, that is very nice of you.", True),
        ("I am so sorry. That is not good at all.", False),
        ("I am so sorry to hear that.", False),
        ("That is great!", False),
        ("I'm sorry. I hope it will be a good day after all.", False),
    ],
)
def test_sorry_and_glad_at_once_is_neither(text, torn):
    assert is_torn([Sentence(text, "", 0.0)]) is torn


@pytest.mark.parametrize(
    ("said", "reply", "again"),
    [
        ("I'm taking a business trip.", "Are you taking a trip?", True),
        ("I have a job interview later today.", "Oh, is it a good job interview?", True),
        ("My friend Phil really bugs me.", "What does he do?", False),
        ("My friend Phil really bugs me.", "Did he always tease you?", False),
        ("I got a dog.", "I see. How old is the dog?", False),
        ("I got a dog.", "Are you ok?", False),
    ],
)
def test_to_ask_whether_it_is_so_shows_that_nobody_listened(said, reply, again):
    assert asks_again(reply, [said]) is again


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        ("I got laid off in March and I've been applying everywhere since.", True),
        ("My grandmother passed away last night.", True),
        ("We lost our house in the fire", True),
        ("She broke up with me by text.", True),
        ("I failed my driving test again.", True),
        ("I was laid off in March but now I have an offer!", False),
        ("My aunt beat cancer!", False),
        ("I lost my fear of flying", False),
        ("I got the job!", False),
    ],
)
def test_a_loss_is_one_in_whatever_tone_it_is_told(text, loss):
    assert tells_of_a_loss(text) is loss


@pytest.mark.parametrize(
    ("told", "reply", "vetoed"),
    [
        ("My mom died last month.", "I hope she is okay.", True),
        ("We had to put him to sleep.", "I hope your dog gets better!", True),
        ("My mom died last month.", "I hope you are okay.", False),
        ("My mom is in the hospital.", "I hope she is okay.", False),
        ("My mom died last month.", "She must have been dear to you.", False),
    ],
)
def test_nobody_hopes_that_the_dead_are_well(told, reply, vetoed):
    assert hopes_for_the_dead(reply, [told, "I miss her."]) is vetoed


@pytest.mark.parametrize(
    ("earlier", "reply", "alike"),
    [
        (["I hope you are fine."], "Oh, I hope it goes well.", True),
        (["I hope you are fine.", "What happened?"], "I hope it goes well.", False),
        (["I see."], "I see.", True),
        (["Oh no!"], "Oh no!", False),
        ([], "I hope so.", False),
    ],
)
def test_two_replies_in_a_row_do_not_begin_alike(earlier, reply, alike):
    assert begins_alike(reply, earlier) is alike
