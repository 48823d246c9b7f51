import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from listenwell.text import TextConfig, detokenize, train_tokenizer, words


def seen_by_the_tokenizer(text):
    """The tokens of a tokenizer whose vocabulary was built from this very text."""
    tokenizer = train_tokenizer([text, "something"], TextConfig())
    return [tokenizer.token(index) for index in tokenizer.encode(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't!", ["do", "n't", "!"]),
        ("I can’t", ["i", "ca", "n't"]),
        ("WON'T", ["wo", "n't"]),
        ("I'm, we're, he'd've", ["i", "'m", ",", "we", "'re", ",", "he", "'d", "'ve"]),
        ("shan't've", ["sha", "n't", "'ve"]),
        ("Anna's mum`s and dad´s", ["anna", "'s", "mum", "'s", "and", "dad", "'s"]),
        ("'sad' it's", ["'", "sad", "'", "it", "'s"]),
        ("o'clock", ["o", "'", "clock"]),
        ("well-known", ["well", "-", "known"]),
        ("Wait... what….", ["wait", "...", "what", "...."]),
        ("no. yes", ["no", ".", "yes"]),
        ("$5.50", ["$", "5", ".", "50"]),
        ("50%", ["50", "%"]),
        ("what?!", ["what", "?", "!"]),
        ("snake_case", ["snake_case"]),
        ("naïve cafe\u0301", ["naïve", "café"]),
        ("ﬁne ½", ["fine", "1", "⁄", "2"]),
        ("日本語 です", ["日", "本", "語", "です"]),
        ("I ❤️ you😀😀", ["i", "❤", "you", "😀", "😀"]),
        ("a\u00a0b\u200bc", ["a", "b", "\u200b", "c"]),
        ("İstanbul नमस्ते", ["i\u0307stanbul", "नमस्ते"]),
        ("a\x00\x1cb\x7f", ["a", "b"]),
        (" \t\n", []),
        ("", []),
    ],
)
def test_a_text_is_cut_into_words(text, expected):
    assert words(text) == expected
    assert seen_by_the_tokenizer(text) == expected


clitics = st.sampled_from(["n't", "'s", "n’t", "'ll", "'", "´", "…", "..", " ", "a", "I", "don", "\ufe0f", "</s>"])


@settings(max_examples=300, deadline=None)
@given(st.text() | st.text(st.characters(max_codepoint=127)) | st.lists(clitics).map("".join))
@example("n't've'd")
def test_a_word_is_what_the_tokenizer_sees(text):
    assert words(text) == seen_by_the_tokenizer(text)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(max_codepoint=0x24F, exclude_categories=["Cc"])))
def test_words_leave_nothing_out_but_blanks(text):
    tokens = words(text)
    assert all(word and not any(map(str.isspace, word)) for word in tokens)
    assert len("".join(tokens)) >= len("".join(text.split()))  # NFKC may expand one character to several


@pytest.mark.parametrize(
    "sentence",
    [
        "I'm so sorry, that sounds hard.",
        "You don't say! When did it happen?",
        "It's well-known that we can't, won't and shouldn't.",
        "Oh no... I'd be furious!",
        'She said "no way" and left.',
        "He said 'hello' to me.",
        "My parents' house isn't far.",
        "It cost $5.50, and 10,000 people came at 3:30 p.m.",
        "It's 5 o'clock, y'all.",
        "50% off (really)!",
        "Yes and/or no; maybe: who knows?",
        "Get 'em all!",
        "You are #1!",
    ],
)
def test_ordinary_sentences_come_back_as_people_write_them(sentence):
    assert detokenize(words(sentence)) == sentence


def test_sentences_start_with_a_capital_and_so_does_i():
    assert detokenize(words("i know. i've been there! have you? (yes) i.e. often")) == (
        "I know. I've been there! Have you? (Yes) i.e. Often"
    )


def test_no_words_make_no_text():
    assert detokenize([]) == ""


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*"abcdefgh", "i", "n't", "'s", "'", '"', "-", ".", ",", ":", "5", "500", "(", ")"])))
def test_joining_loses_no_word(tokens):
    """Whatever a model writes, the displayed text differs only in whitespace and capitalization."""
    assert "".join(detokenize(tokens).split()).lower() == "".join(tokens)


@pytest.mark.parametrize(
    "text", ["我今天丢了工作，怎么办？", "别担心，你好。", "他说：“走吧”", "我等了三个小时！真的（很久）。"]
)
def test_chinese_comes_back_as_it_was_written(text):
    assert detokenize(words(text)) == text


def test_a_chinese_character_is_a_word():
    assert words("我爱Python，真的") == ["我", "爱", "python", ",", "真", "的"]
