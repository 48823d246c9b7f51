"""How replies begin: finding the first clause and whether it is positive."""

import pytest

from listenwell.data.dialogue import Example, Turn
from listenwell.labels.polarity import POLARITIES
from listenwell.metrics import registry
from listenwell.metrics.celebration import celebratory, first_clause
from listenwell.metrics.material import ClassifierOutput, Material


@pytest.mark.parametrize(
    ("reply", "begins"),
    [
        ("I am so sorry, he was lucky to have you.", "I am so sorry"),
        ("Oh, that is wonderful! I am happy for you.", "Oh, that is wonderful!"),
        ("He left at 5 a.m. and I cried", "He left at 5 a.m"),
        ("It cost 1,000 pounds, didn't it?", "It cost 1,000 pounds"),
        ("太好了！恭喜你。", "太好了！"),
        ("啊，真替你难过。", "啊，真替你难过"),
        ("心疼你……抱抱", "心疼你"),
        ("no marks at all", "no marks at all"),
        ("", ""),
    ],
)
def test_the_first_clause_ends_at_a_mark_once_it_says_something(reply, begins):
    assert first_clause(reply) == begins


def test_a_reply_is_celebratory_if_its_beginning_is_rather_positive_than_anything_else():
    chances = {"negative": (0.8, 0.1), "neutral": (0.1, 0.3), "positive": (0.1, 0.6)}
    table = [[chances[name][row] for name in POLARITIES] for row in (0, 1)]
    score = celebratory(table, by="a judge", resamples=10)
    assert (score.value, score.unit, score.better) == (50.0, "%", "lower")
    items = [Example(str(n), (Turn("speaker", "My dog died."),), Turn("listener", "I am sorry.")) for n in range(2)]
    read = ClassifierOutput({"by": "a judge"}, POLARITIES, {"replies": table})
    material = Material(["Oh no, sorry.", "Great!"], items, {"first clauses' polarity": lambda: read}, resamples=10)
    assert registry.run(registry.chosen(["celebratory"]), material).scores[0].value == 50.0
    left_out = registry.run(registry.chosen(["celebratory"]), Material(["a", "b"], items)).left_out
    assert "a classifier of polarity, which reads how the replies begin" in left_out["celebratory"]
