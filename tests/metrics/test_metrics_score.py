import json

import numpy as np
import pytest

from listenwell import __version__
from listenwell.metrics import Score, Signature, accuracy_at, bleu, distinct, paired_bootstrap
from listenwell.metrics.extras import need


def test_a_signature_reads_as_sacrebleus_do():
    signature = Signature.of("bleu", n=4, case="lc", tok="word", smooth="none")
    assert str(signature) == f"bleu|n:4|case:lc|tok:word|smooth:none|v:{__version__}"
    assert signature["n"] == "4"
    assert "case" in signature
    assert dict(signature)["tok"] == "word"


def test_a_signature_survives_its_own_text():
    signature = Signature.of("ppl", unk="1.20%", note="a:b")
    assert Signature.parse(str(signature)) == signature


def test_more_is_said_in_front_of_the_version():
    signature = Signature.of("bleu", n=4).plus(decoding="beam5", n=2)
    assert str(signature) == f"bleu|n:2|decoding:beam5|v:{__version__}"


@pytest.mark.parametrize("text", ["", "bleu|n", "|n:4"])
def test_a_text_that_is_no_signature_is_refused(text):
    with pytest.raises(ValueError, match="signature"):
        Signature.parse(text)


def test_a_bar_in_a_value_is_refused_since_it_could_not_be_read_back():
    with pytest.raises(ValueError, match=r"a\|b"):
        Signature.of("bleu", tok="a|b")


def test_an_unknown_key_names_itself():
    with pytest.raises(KeyError, match="case"):
        Signature.of("bleu")["case"]


@pytest.mark.parametrize(
    ("value", "low", "high", "unit", "text"),
    [
        (36.21, 35.9, 36.52, "", "36.2 [35.9, 36.5]"),
        (2.134, 2.0, 2.3, "", "2.13 [2.00, 2.30]"),
        (50.0, None, None, "%", "50.0"),
        (769.0, None, None, "", "769"),
    ],
)
def test_a_score_prints_its_interval(value, low, high, unit, text):
    assert str(Score("x", value, low, high, signature=Signature("x"), unit=unit)) == text


def test_a_format_applies_to_value_and_interval():
    assert f"{Score('x', 1.0, 0.5, 1.5, signature=Signature('x')):.3f}" == "1.000 [0.500, 1.500]"


@pytest.mark.parametrize("wrong", [{"better": "more"}, {"unit": "points"}, {"low": 1.0}])
def test_a_score_of_impossible_parts_is_refused(wrong):
    with pytest.raises(ValueError, match="score x"):
        Score("x", 1.0, signature=Signature("x"), **wrong)


def test_a_score_survives_json_without_its_items():
    score = distinct([["a", "b"], ["a"]], 1)
    again = Score.from_json(json.loads(json.dumps(score.to_json())))
    assert again == score
    assert again.items is None


def test_a_score_read_back_with_items_can_still_be_tested_against_another():
    gold = [0, 1, 2, 0, 1]
    first = accuracy_at(np.eye(3)[[0, 1, 2, 0, 0]], gold)
    second = accuracy_at(np.eye(3)[[0, 2, 2, 1, 0]], gold)
    again = Score.from_json(json.loads(json.dumps(first.to_json(items=True))))
    assert again == first
    np.testing.assert_array_equal(again.items, first.items)
    assert paired_bootstrap(again, second) == paired_bootstrap(first, second)


def test_items_of_bleu_survive_json_too():
    score = bleu([["a", "b", "c"], ["a"]], [["a", "b", "d"], ["b"]], 2, resamples=10)
    again = Score.from_json(json.loads(json.dumps(score.to_json(items=True))))
    np.testing.assert_allclose(again.items, score.items)
    assert again.statistics.value() == pytest.approx(score.value)


def test_a_record_that_is_no_score_says_what_is_missing():
    with pytest.raises(ValueError, match="signature"):
        Score.from_json({"name": "x", "value": 1})


def test_a_missing_library_says_who_wants_it_and_how_to_get_it():
    with pytest.raises(ImportError, match=r"BLEU needs nosuchmodule: pip install 'listenwell\[metrics\]'"):
        need("nosuchmodule.part", "BLEU")
