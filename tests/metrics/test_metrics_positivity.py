import numpy as np
import pytest

from listenwell.data.sources import shipped
from listenwell.labels.polarity import POLARITIES
from listenwell.metrics import leaning, positivity, readable, vader, vader_version
from listenwell.metrics.language import is_language


def test_a_classifier_leans_by_positive_minus_negative():
    chances = [dict(zip(POLARITIES, row, strict=True)) for row in ((0.7, 0.2, 0.1), (0.0, 1.0, 0.0), (0.1, 0.1, 0.8))]
    actual = leaning([list(row.values()) for row in chances])
    np.testing.assert_allclose(actual, [row["positive"] - row["negative"] for row in chances])
    with pytest.raises(ValueError, match=r"an array \(items, 3\), found shape \(2, 41\)"):
        leaning(np.ones((2, 41)))


def test_positivity_is_the_mean_and_the_gain_that_over_the_turn_before():
    said, before = np.array([0.5, -0.1, 0.3]), np.array([-0.5, 0.1, 0.3])
    score = positivity(said, by="a judge", resamples=50)
    assert score.value == pytest.approx((0.5 - 0.1 + 0.3) / 3)
    assert (score.name, score.signature["by"], score.signature["of"]) == ("positivity", "a judge", "reply")
    gain = positivity(said, by="vader", before=before, name="vader", resamples=50)
    assert gain.value == pytest.approx((1.0 - 0.2 + 0.0) / 3)
    np.testing.assert_allclose(gain.items, [1.0, -0.2, 0.0])
    assert (gain.name, gain.signature["of"]) == ("vader-gain", "reply-turn")
    assert gain.low <= gain.value <= gain.high
    with pytest.raises(ValueError, match="found 3 replies, 2 before"):
        positivity(said, by="x", before=[0.1, 0.2])


def test_vader_reads_each_text_once_and_tells_of_all():
    analyser = pytest.importorskip("vaderSentiment.vaderSentiment").SentimentIntensityAnalyzer()
    texts = ["That is great news!", "I am sad.", "", "It is on the table.", "I am sad."]
    progress = []
    actual = vader(texts, progress.append)
    assert actual.tolist() == [analyser.polarity_scores(text)["compound"] for text in texts]
    assert actual[0] > 0 > actual[1]
    assert actual[2] == actual[3] == 0
    assert sum(progress) == 5
    assert vader_version() == "vader3.3.2"


@pytest.mark.parametrize(
    "text",
    ["it it it , and the", "A a a", "You you you", "and the and the and the", "happy, happy, happy, happy", "!!!!", "",
     "42", "asdf qwer zxcv", "xkqz vbnt wrtp jjkl mnbv"],
)  # fmt: skip
def test_repeated_words_and_random_letters_are_no_language(text):
    assert not is_language(text)


@pytest.mark.parametrize(
    "text",
    ["Wow!", "Oh no.", "That is really, really great!", "oh boy oh boy oh boy where are you going??", "LOL",
     "我很难过。", "Je suis désolé pour toi.", "omg thats awesom, congrats!"],
)  # fmt: skip
def test_short_sloppy_and_foreign_replies_are_language(text):
    assert is_language(text)


def test_every_turn_of_the_shipped_corpora_is_language():
    for language in shipped.languages():
        assert all(is_language(turn.text) for dialogue in shipped.read(language=language) for turn in dialogue.turns)


def test_gibberish_is_neutral_whatever_the_judge_says_of_it():
    texts = ["You you you", "That is great news!"]
    assert readable(texts).tolist() == [False, True]
    score = positivity([0.55, 0.9], by="a judge", language=readable(texts), resamples=0)
    assert score.items.tolist() == [0, 0.9]
    assert score.signature["gibberish"] == "neutral"
    gain = positivity([0.55, 0.9], by="a judge", before=[-0.5, -0.5], language=readable(texts), resamples=0)
    assert gain.items.tolist() == [0, 1.4]


def test_a_long_text_is_language_though_its_words_come_again():
    texts = [turn.text for dialogue in shipped.read() for turn in dialogue.turns]
    assert is_language(" ".join(texts[:400]))
