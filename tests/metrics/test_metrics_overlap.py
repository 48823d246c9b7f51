import logging
import sys
import warnings

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.bleu_score import corpus_bleu

from listenwell.metrics import average_bleu, bleu, sacre_bleu

REPLIES = [
    "i am so sorry to hear that .",
    "that is great ! what did you cook ?",
    "",
    "oh no , did the cat come back home ?",
    "good luck",
]
FIRST = [
    "i am so sorry that you lost your dog .",
    "that is great ! what did you make for dinner ?",
    "are you all right ?",
    "oh no , did the cat ever come back home ?",
    "good luck with the new job",
]
SECOND = ["so sorry to hear that", "what did you cook", "oh no", "did she come back ?", "good luck to you"]
WORDS = [text.split() for text in REPLIES]
REFERENCES = [text.split() for text in FIRST]
SEVERAL = [[one.split(), other.split()] for one, other in zip(FIRST, SECOND, strict=True)]

texts = st.lists(st.sampled_from("abcde"), max_size=7)
corpora = st.lists(st.tuples(texts, texts), min_size=1, max_size=6)


def test_it_prints_what_multi_bleu_perl_printed():
    # Moses' multi-bleu.perl was run once on these lines, which include an empty reply.
    assert f"{bleu(WORDS, REFERENCES).value:.2f}" == "41.26"
    assert f"{bleu(WORDS, SEVERAL).value:.2f}" == "60.87"


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("references", [[[ref] for ref in REFERENCES], SEVERAL])
def test_it_agrees_with_nltk_on_replies_of_at_least_n_words(n, references):
    # nltk counts one n-gram for a reply too short to have any; multi-bleu.perl and sacrebleu count none.
    long = [index for index, words in enumerate(WORDS) if len(words) >= n]
    replies, references = [WORDS[index] for index in long], [references[index] for index in long]
    assert bleu(replies, references, n).value == pytest.approx(100 * corpus_bleu(references, replies, [1 / n] * n))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_it_agrees_with_sacrebleu_without_smoothing(n):
    metric = sacrebleu.BLEU(tokenize="none", smooth_method="none", max_ngram_order=n, force=True)
    assert bleu(WORDS, REFERENCES, n).value == pytest.approx(metric.corpus_score(REPLIES, [FIRST]).score)


@settings(max_examples=60, deadline=None)
@given(corpora)
def test_it_agrees_with_sacrebleu_on_anything(pairs):
    replies, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    metric = sacrebleu.BLEU(tokenize="none", smooth_method="none", max_ngram_order=2, force=True)
    expected = metric.corpus_score([" ".join(r) for r in replies], [[" ".join(r) for r in references]]).score
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bleu(replies, references, 2, resamples=20).value == pytest.approx(expected)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcde"), min_size=4, max_size=8), min_size=1, max_size=5))
def test_replies_that_are_their_references_score_100(replies):
    assert bleu(replies, replies, resamples=0).value == pytest.approx(100)
    assert average_bleu(replies, replies, resamples=0).value == pytest.approx(100)


@settings(max_examples=30, deadline=None)
@given(corpora, st.randoms(use_true_random=False))
def test_the_order_of_items_does_not_matter(pairs, random):
    shuffled = random.sample(pairs, len(pairs))
    one, other = (bleu([p[0] for p in some], [p[1] for p in some], 2, resamples=0) for some in (pairs, shuffled))
    assert one.value == pytest.approx(other.value)


@pytest.mark.parametrize("replies", [[["x", "y", "z", "w"]] * 3, [[]] * 3, [["a"]] * 3])
def test_without_a_match_of_every_order_it_is_0_and_quiet(replies):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score = bleu(replies, [["a", "b", "c", "d"]] * 3)
    assert (score.value, score.low, score.high) == (0.0, 0.0, 0.0)


def test_the_interval_holds_the_value_and_items_are_sentence_bleu():
    score = bleu(WORDS, REFERENCES, 1)
    assert score.low < score.value < score.high
    alone = [bleu([reply], [ref], 1).value for reply, ref in zip(WORDS, REFERENCES, strict=True)]
    np.testing.assert_allclose(score.items, alone)


def test_average_bleu_is_the_mean_of_bleu_1_to_4():
    expected = np.mean([bleu(WORDS, SEVERAL, n).value for n in (1, 2, 3, 4)])
    assert average_bleu(WORDS, SEVERAL).value == pytest.approx(expected)


def test_the_signature_says_how_many_references_and_whether_words_are_lower_cased():
    assert str(bleu(WORDS, REFERENCES).signature).startswith("bleu|n:4|nrefs:1|case:lc|tok:word|smooth:none|bs:1000|")
    mixed = bleu([["I", "see"], ["no"]], [[["i", "see"], ["ah"]], ["no"]], 1, tok="char").signature
    assert (mixed["nrefs"], mixed["case"], mixed["tok"]) == ("var", "mixed", "char")


def test_sacre_bleu_is_sacrebleus_own_number_with_its_own_signature(caplog):
    replies, references = [text.capitalize() for text in REPLIES], FIRST
    metric = sacrebleu.BLEU(lowercase=True, force=True)
    expected = metric.corpus_score(replies, [references])
    with caplog.at_level(logging.WARNING):
        score = sacre_bleu(replies, references, resamples=50)
    assert score.value == pytest.approx(expected.score)
    assert str(metric.get_signature()) in str(score.signature)
    assert score.low <= score.value <= score.high
    assert not caplog.records


def test_sacre_bleu_takes_several_references_of_varying_number():
    references = [
        [one, other] if index else [one] for index, (one, other) in enumerate(zip(FIRST, SECOND, strict=True))
    ]
    streams = [FIRST, [None, *SECOND[1:]]]
    score = sacre_bleu(REPLIES, references, resamples=0)
    assert score.value == pytest.approx(sacrebleu.BLEU(lowercase=True, force=True).corpus_score(REPLIES, streams).score)
    assert score.signature["nrefs"] == "var"


def test_sacre_bleu_of_empty_replies_is_0():
    assert sacre_bleu(["", ""], ["a b", "c"]).value == 0


def test_without_sacrebleu_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(ImportError, match=r"BLEU needs sacrebleu: pip install 'listenwell\[metrics\]'"):
        sacre_bleu(["a"], ["a"])


def test_lengths_that_differ_are_both_named():
    with pytest.raises(ValueError, match="2 replies, 1 references"):
        bleu([["a"], ["b"]], [["a"]])
    with pytest.raises(ValueError, match="1 replies, 2 references"):
        sacre_bleu(["a"], ["a", "b"])


def test_texts_and_words_are_not_taken_for_each_other():
    with pytest.raises(TypeError, match="item 0: a list of words"):
        bleu(["a b"], [["a", "b"]])
    with pytest.raises(TypeError, match="item 1: a list of words"):
        bleu([["a"], ["b"]], [["a"], "b"])
    with pytest.raises(TypeError, match="item 0"):
        sacre_bleu([["a"]], ["a"])


def test_no_items_and_no_order_are_errors():
    with pytest.raises(ValueError, match="no items"):
        bleu([], [])
    with pytest.raises(ValueError, match="no items"):
        sacre_bleu([], [])
    with pytest.raises(ValueError, match="found 0"):
        bleu([["a"]], [["a"]], 0)
