import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from listenwell.metrics import bland, distinct, mean_length, unique_replies
from listenwell.metrics.stock import is_bland, normal, says_sorry_to_hear

corpora = st.lists(st.lists(st.sampled_from("abcd"), min_size=2, max_size=6), min_size=1, max_size=6)


def test_distinct_is_different_ngrams_of_all():
    replies = [["i", "see"], ["i", "see", "you"]]
    assert distinct(replies, 1).value == pytest.approx(100 * 3 / 5)
    assert distinct(replies, 2).value == pytest.approx(100 * 2 / 3)  # n-grams do not span replies


def test_distinct_says_n_and_how_many_replies_and_claims_no_interval():
    score = distinct([["a"], ["b"], []], 2)
    assert str(score.signature).startswith("distinct|n:2|replies:3|tok:word|ci:none|")
    assert (score.value, score.low, score.items) == (0.0, None, None)


@settings(max_examples=40, deadline=None)
@given(corpora, st.integers(1, 2), st.randoms(use_true_random=False))
def test_distinct_lies_above_0_and_up_to_100_and_knows_no_order(replies, n, random):
    value = distinct(replies, n).value
    assert 0 < value <= 100
    assert distinct(random.sample(replies, len(replies)), n).value == value


@settings(max_examples=20, deadline=None)
@given(corpora)
def test_distinct_halves_when_all_is_said_twice(replies):
    assert distinct(replies * 2, 1).value == pytest.approx(distinct(replies, 1).value / 2)


def test_unique_replies_are_counted_whatever_their_capitals_and_spaces():
    share, number = unique_replies(["I see.", "i  see.", "no", ["no"]])
    assert (share.value, number.value) == (50.0, 2.0)
    assert (str(share), str(number)) == ("50.0", "2")


def test_mean_length_counts_words():
    score = mean_length([["a"], ["a", "b", "c"], []])
    assert score.value == pytest.approx(4 / 3)
    assert list(score.items) == [1, 3, 0]


def test_bland_gives_the_phrase_and_the_kind_as_shares_of_all():
    replies = ["I'm sorry to hear that. Which vet was it?", "oh no !", "the vet was wrong", "", ["that", "'s", "great"]]
    sorry, any_kind = bland(replies)
    assert (sorry.value, any_kind.value) == (20.0, 60.0)
    assert (sorry.name, any_kind.name) == ("sorry-to-hear", "bland")
    assert any_kind.better == "lower"
    assert list(any_kind.items) == [100, 100, 0, 0, 100]
    assert "list:en1" in str(any_kind.signature)


@pytest.mark.parametrize(
    "text",
    [
        "i am sorry to hear that .",
        "I'm SO sorry to  hear about your cat",
        "oh no , sorry to hear it . did you call the vet ?",
    ],
)
def test_sorry_to_hear_is_bland_wherever_it_stands(text):
    assert says_sorry_to_hear(text)
    assert is_bland(text)


@pytest.mark.parametrize("text", ["sorry , i hear music", "i am sorry you hear that noise", "sorry to heart", ""])
def test_other_sorrow_is_not_sorry_to_hear(text):
    assert not says_sorry_to_hear(text)


@pytest.mark.parametrize(
    "text",
    [
        "oh no !",
        "i am so sorry .",
        "i ' m so sorry for your loss .",
        "i 'm sorry about that",
        "That’s great!",
        "that ' s too bad .",
        "thats awesome",
        "oh that is terrible , i am sorry .",
        "that must have been scary !",
        "that must of been so hard for you",
        "wow , sounds like fun !",
        "how exciting !",
        "i know what you mean .",
        "i know exactly how you feel",
        "i can understand that",
        "i hope it gets better",
        "i hope things work out for you",
        "Hopefully everything turns out okay.",
        "it 'll be ok . do n't worry about it .",
        "don 't worry",
        "good luck ! i 'm sure you will do great .",
        "i am so happy for you !",
        "me too .",
        "you are right",
    ],
)
def test_nothing_but_stock_phrases_is_bland(text):
    assert is_bland(text)


@pytest.mark.parametrize(
    "text",
    [
        "that is great ! what did you cook ?",
        "i am so sorry . was she old ?",
        "i am sorry your dog ran away .",
        "oh no ! did it bite you ?",
        "i hope your mother likes the garden",
        "that is a great school .",
        "i know what you mean about the neighbours",
        "i hear music",
        "good luck with the exam on monday",
        "what happened ?",
        "it is raining",
        "5",
        "",
        " ! ?",
    ],
)
def test_a_reply_with_something_of_its_own_is_not_bland(text):
    assert not is_bland(text)


def test_clitics_are_closed_up_and_spelt_out():
    assert normal("I ' m glad that 's  done, I don 't know") == "i am glad that is done, i do not know"
    assert normal("they were there") == "they were there"


def test_a_stuttering_model_does_not_hang_the_list():
    for word in ("all", "it", "that", "so", "really", "for you", "is", "oh"):
        assert not is_bland("i hope it " + f"{word} " * 300 + "zebra")


def test_replies_must_be_words_where_words_are_counted():
    with pytest.raises(TypeError, match="item 0"):
        distinct(["a b"], 1)
    with pytest.raises(TypeError, match="item 0"):
        mean_length(["a b"])


@pytest.mark.parametrize("score", [lambda: distinct([], 1), lambda: unique_replies([]), lambda: mean_length([])])
def test_no_replies_is_an_error(score):
    with pytest.raises(ValueError, match=r"no (replies|items) to score"):
        score()


def test_no_bland_share_of_nothing_and_no_zero_grams():
    with pytest.raises(ValueError, match="no items"):
        bland([])
    with pytest.raises(ValueError, match="found 0"):
        distinct([["a"]], 0)
