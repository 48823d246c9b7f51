"""Positivity of Chinese replies by a lexicon."""

import json

import pytest

from listenwell.data.dialogue import Example, Turn
from listenwell.metrics import registry
from listenwell.metrics.lexicon_zh import FILE, ChineseLexicon
from listenwell.metrics.material import Material

WORDS = {
    "dutir/乐": ["开心", "高兴"], "dutir/好": ["善良"], "dutir/哀": ["伤心", "伤心欲绝"], "dutir/怒": ["生气"],
    "dutir/惧": ["害怕"], "dutir/恶": ["讨厌"], "dutir/惊": ["惊讶"], "hownet/pos": ["加油", "好", "骄傲"],
    "hownet/neg": ["骄傲", "糟糕"], "hownet/deny": ["不", "没有"],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    place = tmp_path / FILE
    place.parent.mkdir()
    place.write_text(json.dumps(WORDS), encoding="utf-8")
    monkeypatch.setenv("LISTENWELL_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("今天很开心，加油", (2, 0)),
        ("伤心欲绝", (0, 1)),
        ("我不是很开心", (0, 1)),
        ("不要害怕", (1, 0)),
        ("不知道为什么总是开心", (1, 0)),
        ("好的，你真让人骄傲", (0, 0)),
    ],
)
def test_words_are_counted_and_turned_round_by_a_denial_right_before_them(folder, text, counts):
    assert ChineseLexicon.read(folder / FILE).counts(text) == counts


def test_the_metrics_read_replies_in_chinese_where_the_lexicon_is_there(folder, monkeypatch):
    items = [Example(str(n), (Turn("speaker", "我"),), Turn("listener", "嗯"), language="zh") for n in range(4)]
    material = Material(["开心", "开心但害怕", "糟糕", "嗯"], items, resamples=10)
    both = registry.chosen(["lexicon-zh", "lexicon-posi-zh"], ["zh"])
    assert {score.name: score.value for score in registry.run(both, material).scores} == {
        "lexicon-zh": 0.0,
        "lexicon-posi-zh": 25.0,
    }
    monkeypatch.setenv("LISTENWELL_DATA", str(folder / "lexicons"))
    left_out = registry.run(both, Material(material.replies, items)).left_out
    assert all("no Chinese lexicon; looked for" in reason for reason in left_out.values())
    assert len(left_out) == 2
