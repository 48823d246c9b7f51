import pytest

from listenwell.labels.taxonomy import (
    EMOTION_ID,
    EMOTIONS,
    INTENTS,
    LABELS,
    NEGATIVE,
    NEUTRAL,
    POSITIVE,
    label_id,
    polarity,
    unknown_name,
)


def test_there_are_32_emotions_8_intents_and_neutral():
    assert (len(EMOTIONS), len(INTENTS), NEUTRAL) == (32, 8, "neutral")
    assert len(set(LABELS)) == len(LABELS) == 41
    assert list(EMOTIONS) == sorted(EMOTIONS)


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("afraid", 0), ("angry", 1), ("joyful", 22), ("terrified", 30), ("trusting", 31),
        ("agreeing", 32), ("acknowledging", 33), ("encouraging", 34), ("consoling", 35), ("sympathizing", 36),
        ("suggesting", 37), ("questioning", 38), ("wishing", 39), ("neutral", 40),
    ],
)  # fmt: skip
def test_the_ids_are_meed2s(name, index):
    assert label_id(name) == index


def test_an_emotions_id_is_the_same_among_all_labels():
    assert all(label_id(name) == index for name, index in EMOTION_ID.items())


def test_the_polarity_is_mimes_13_and_19():
    assert (len(POSITIVE), len(NEGATIVE)) == (13, 19)
    assert set(EMOTIONS) == POSITIVE | NEGATIVE
    assert not POSITIVE & NEGATIVE
    assert {name for name in EMOTIONS if polarity(name) == "positive"} == POSITIVE
    assert polarity("surprised") == "positive"
    assert polarity("anticipating") == polarity("nostalgic") == polarity("sentimental") == "negative"


def test_a_mistyped_name_is_told_the_near_one():
    with pytest.raises(ValueError, match="unknown emotion 'joyfull'; did you mean 'joyful'\\?"):
        polarity("joyfull")
    with pytest.raises(ValueError, match="unknown label 'Sympathising'; did you mean 'sympathizing'\\?"):
        label_id("Sympathising")
    message = unknown_name("model", "multi_trs2", ["trs", "multi-trs"])
    assert message.endswith("did you mean 'multi-trs'? (known: trs, multi-trs)")
    assert unknown_name("option", "Max-Lenght", ["max_length"]).endswith(
        "did you mean 'max_length'? (known: max_length)"
    )
    assert "(known" not in unknown_name("name", "n1", [f"n{number}" for number in range(10, 40)])


def test_a_name_like_no_other_is_told_all():
    assert unknown_name("split", "xyz", ["train", "valid"]) == "unknown split 'xyz'; known: train, valid"


def test_an_intent_has_no_polarity():
    with pytest.raises(ValueError, match="unknown emotion 'questioning'"):
        polarity("questioning")
