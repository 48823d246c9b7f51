"""Chinese as characters: tokenization, detokenization, and the vocabulary."""

from collections import Counter
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from listenwell.data.sources import find_data, read
from listenwell.text import TextConfig, Tokenizer, train_tokenizer
from listenwell.text.characters import characters, join_tokens
from listenwell.text.tokenizer import SPECIALS

TEXTS = ["我今天很开心，你呢？", "我也很开心！", "iPhone 12 好用吗", "我的iPhone不好用。"]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXTS, TextConfig(kind="char", coverage=1))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("我很好。", ["我", "很", "好", "。"]),
        ("iPhone12不好用", ["iPhone12", "不", "好", "用"]),
        ("I don't know 3.5 kg", ["I", "don't", "know", "3.5", "kg"]),
        ("10,000元，3:30", ["10,000", "元", "，", "3:30"]),
        ("好……！_", ["好", "…", "…", "！", "_"]),
        ("かわいい 좋아", ["か", "わ", "い", "い", "좋", "아"]),
        ("café", ["café"]),
    ],
)
def test_chinese_is_split_and_words_and_numbers_are_whole(text, tokens):
    assert characters(text) == tokens


@pytest.mark.parametrize(
    "text",
    [
        "我很好，谢谢！",
        "打call！",
        "用iPhone 12 Pro打的",
        "I'm fine, thanks. OK?",
        "Well... maybe (not) this one.",
        "well-known",
        "你好,you",
        "6点a.m.起床",
        "他说：“好。”",
        "《一本书》和《另一本》",
        "3.5%的人",
    ],
)
def test_text_comes_back_as_it_was_written(text):
    assert join_tokens(characters(text)) == text


def test_spaces_in_chinese_are_not_kept():
    assert join_tokens(characters("你 好 ， 在 吗")) == "你好，在吗"


@settings(max_examples=200, deadline=None)
@given(st.text("我你好吗，。！？…abcXYZ019 .,!"))
def test_only_spaces_differ_after_the_way_there_and_back(text):
    back = join_tokens(characters(text))
    assert "".join(back.split()) == "".join(text.split())


def test_the_tokenizer_keeps_the_interface_of_the_others(tokenizer, tmp_path):
    assert [tokenizer.token(index) for index in range(5)] == list(SPECIALS)
    assert tokenizer.banned == (0, 1, 2, 4)
    ids = tokenizer.encode("我的iPhone很好用。")
    assert tokenizer.decode([tokenizer.start, *ids, tokenizer.end]) == "我的iPhone很好用。"
    assert tokenizer.encode_many(TEXTS) == [tokenizer.encode(text) for text in TEXTS]
    assert {index for index in tokenizer.encode("我</s>好") if index < 5} <= {tokenizer.unk}
    tokenizer.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json", "char", tokenizer.rare_from)
    assert [again.decode(again.encode(text)) for text in TEXTS] == [
        tokenizer.decode(tokenizer.encode(t)) for t in TEXTS
    ]


def test_characters_are_ranked_by_count_and_those_seen_once_are_rare(tokenizer):
    ranked = [tokenizer.token(index) for index in range(5, len(tokenizer))]
    counts = Counter(token for text in TEXTS for token in characters(text))
    assert ranked == sorted(counts, key=lambda token: (-counts[token], token))
    for token in ranked:
        (index,) = tokenizer.encode(token)
        assert (index >= tokenizer.rare_from) == (counts[token] == 1)


def test_no_more_than_the_wanted_share_and_number_of_characters_is_kept():
    texts = ["好" * 990 + "坏" * 9 + "哈"]
    assert len(train_tokenizer(texts, TextConfig(kind="char"))) == 7
    assert len(train_tokenizer(texts, TextConfig(kind="char", coverage=0.99))) == 6
    assert len(train_tokenizer(texts, TextConfig(kind="char", coverage=1))) == 8
    assert len(train_tokenizer(texts, TextConfig(kind="char", coverage=1, most=2))) == 7


def test_what_is_not_kept_is_unknown_and_told(tokenizer):
    assert tokenizer.encode("我哭iPad") == [*tokenizer.encode("我"), tokenizer.unk, tokenizer.unk]
    assert tokenizer.unknown("我哭iPad") == ["哭", "iPad"]


def test_sub_words_know_everything_and_words_are_folded():
    assert train_tokenizer(TEXTS, TextConfig(kind="bpe", size=300)).unknown("zebra 哭") == []
    assert train_tokenizer(["Hello there"], TextConfig()).unknown("HELLO zebra") == ["zebra"]


@pytest.mark.parametrize(("texts", "message"), [([], "training data is empty"), ([" "], "training texts are blank")])
def test_texts_without_characters_are_told(texts, message):
    with pytest.raises(ValueError, match=message):
        train_tokenizer(texts, TextConfig(kind="char"))


@pytest.mark.data
@pytest.mark.parametrize(("source", "size"), [("lccc", 4_129), ("smile", 1_890)])
def test_real_texts_come_back(source, size):
    try:
        find_data(source)
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")
    texts = [turn.text for dialogue in islice(read(source, split="valid"), 20_000) for turn in dialogue.turns]
    tokenizer = train_tokenizer(texts, TextConfig(kind="char"))
    assert len(tokenizer) == size
    ids = tokenizer.encode_many(texts)
    total = sum(map(len, ids))
    assert sum(row.count(tokenizer.unk) for row in ids) / total < 0.0015
    whole = [(text, row) for text, row in zip(texts, ids, strict=True) if tokenizer.unk not in row]
    same = sum(tokenizer.decode(row) == text for text, row in whole)
    assert same / len(whole) > 0.999
    assert all(tokenizer.encode(tokenizer.decode(row)) == row for _, row in whole[:3_000])
