"""Metrics by name: what they need, what is left out, and each new one against a known tool or a slow computation."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from listenwell.data.dialogue import Example, Turn
from listenwell.metrics import registry
from listenwell.metrics.diversity import bland_chinese, entropy
from listenwell.metrics.material import ClassifierOutput, Material
from listenwell.metrics.nist import nist
from listenwell.metrics.overlap import bleu
from listenwell.metrics.page import page
from listenwell.metrics.positivity import positive_share, sentiment
from listenwell.metrics.score import Score, Signature
from listenwell.metrics.significance import welch_t_test
from listenwell.metrics.vector_similarity import MATCHES, read_word_vectors, word_similarity

SAID = ["i am so sorry to hear that", "what did you do then ?", "that is great", "oh no , where was it ?"]
GOLD = ["i am sorry that it was so bad", "what did they do to you ?", "that is great news", "where was it then ?"]


@dataclass(frozen=True)
class Spoken(Example):
    language: str = "en"


def material(said=SAID, gold=GOLD, language="en", **providers) -> Material:
    items = [
        Spoken(str(n), (Turn("speaker", "x"),), Turn("listener", text), language=language)
        for n, text in enumerate(gold)
    ]
    return Material(said, items, providers, resamples=20)


def split(texts):
    return [text.split() for text in texts]


def test_a_wrong_name_is_answered_with_the_near_one():
    with pytest.raises(ValueError, match="unknown metric 'blue-4'; did you mean 'bleu-4'"):
        registry.chosen(["blue-4"])


def test_what_cannot_be_computed_is_left_out_with_the_reason():
    actual = registry.run(registry.chosen(["perplexity", "bleu-1", "sent"]), material())
    assert [score.name for score in actual.scores] == ["bleu-1"]
    assert set(actual.left_out) == {"perplexity", "sent"}
    assert "likelihoods" in actual.left_out["perplexity"]


def test_what_is_made_for_english_is_absent_in_chinese():
    chinese = material(["好的", "哈哈，太好了"], ["你在哪里", "我很高兴"], "zh")
    actual = registry.run(registry.chosen(None, chinese.languages), chinese)
    assert {"sacrebleu", "ses", "vader", "bland", "sorry-to-hear"} <= set(actual.left_out)
    assert "made for English, and the items are in Chinese" in actual.left_out["vader"]
    scores = {score.name: score for score in actual.scores}
    assert scores["sacrebleu-zh"].signature["tok"] == "zh"
    assert scores["bleu-4"].signature["tok"] == "zh"
    assert scores["distinct-1"].signature["tok"] == scores["length"].signature["tok"] == "char"
    assert scores["bland-zh"].value == 100


def test_a_name_is_registered_once():
    def mine(material: Material) -> Score: ...

    mine.__module__ = "mine"
    with pytest.raises(ValueError, match=r"bleu-4 is registered twice, in listenwell\.metrics\.overlap and mine"):
        registry.metric("bleu-4")(mine)


@pytest.mark.parametrize("n", [3, 4])
def test_nist_is_nltk_s(n):
    theirs = pytest.importorskip("nltk.translate.nist_score").corpus_nist
    actual = nist(split(SAID), split(GOLD), n, resamples=20)
    assert actual.value == pytest.approx(theirs([[text] for text in split(GOLD)], split(SAID), n))
    assert actual.low <= actual.high


@pytest.mark.parametrize("n", [1, 2, 3])
def test_bleu_n_is_nltk_s(n):
    theirs = pytest.importorskip("nltk.translate.bleu_score").corpus_bleu
    expected = 100 * theirs([[text] for text in split(GOLD)], split(SAID), [1 / n] * n)
    assert bleu(split(SAID), split(GOLD), n, resamples=0).value == pytest.approx(expected)


def test_entropy_is_scipy_s():
    counts = Counter(" ".join(SAID).split())
    theirs = pytest.importorskip("scipy.stats").entropy(list(counts.values()))
    assert entropy(split(SAID)).value == pytest.approx(theirs)


def test_word_vectors_by_a_slow_computation(tmp_path):
    words = sorted({word for text in SAID + GOLD for word in text.split()} - {"sorry"})
    table = np.random.default_rng(0).normal(size=(len(words), 5)).round(4)
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in zip(words, table, strict=True)]
    (tmp_path / "v.txt").write_text("\n".join(lines))
    vectors = read_word_vectors(tmp_path / "v.txt", {*words, "sorry"})
    known = dict(zip(words, table, strict=True))

    def cos(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True)) / math.dist(a, [0] * 5) / math.dist(b, [0] * 5)

    def slow(name, one, other):
        a, b = ([known.get(word, table.mean(0)) for word in side.split()] for side in (one, other))
        if name == "embedding-average":
            return cos(np.mean(a, 0), np.mean(b, 0))
        if name == "vector-extrema":
            return cos(*([max(column, key=abs) for column in zip(*side, strict=True)] for side in (a, b)))
        ways = ([max(cos(x, y) for y in right) for x in left] for left, right in ((a, b), (b, a)))
        return sum(sum(way) / len(way) for way in ways) / 2

    for name in MATCHES:
        expected = [slow(name, one, other) for one, other in zip(SAID, GOLD, strict=True)]
        np.testing.assert_allclose(
            word_similarity(name, split(SAID), split(GOLD), vectors, resamples=0).items, expected
        )


def test_sent_and_posi_by_hand():
    chances = [[0.2, 0.2, 0.6], [0.3, 0.6, 0.1]]
    assert sentiment(chances, by="x", resamples=0).value == pytest.approx((0.75 + 0.25) / 2)
    assert positive_share(chances, by="x", resamples=0).value == 50
    read = ClassifierOutput({"by": "x"}, ("negative", "neutral", "positive"), {"replies": np.array(chances)})
    given = material(SAID[:2], GOLD[:2], **{"classifier polarity": lambda: read})
    assert [s.value for s in registry.run(registry.chosen(["sent", "posi"]), given).scores] == pytest.approx([0.5, 50])


def test_welch_is_scipy_s():
    stats = pytest.importorskip("scipy.stats")
    one, other = np.array([1.0, 2, 4, 3]), np.array([2.0, 5, 6])
    first, second = (Score("a", s.mean(), items=s, signature=Signature.of("a")) for s in (one, other))
    actual, theirs = welch_t_test(first, second), stats.ttest_ind(one, other, equal_var=False)
    assert (actual.p, actual.low) == pytest.approx((theirs.pvalue, theirs.confidence_interval().low))


@pytest.mark.parametrize(("text", "bland"), [("哈哈，太好了！", True), ("好的，你在哪里买的？", False), ("", False)])
def test_bland_chinese_replies(text, bland):
    assert bland_chinese([text], resamples=0).value == 100 * bland


def test_the_page_is_up_to_date():
    text = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert text == page(), "run python -m listenwell.metrics.page > docs/metrics.md"
