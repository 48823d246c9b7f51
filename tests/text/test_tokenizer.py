import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from listenwell.text import TextConfig, Tokenizer, train_tokenizer, words
from listenwell.text.tokenizer import SPECIALS

TEXTS = ["I don't know, I really don't.", "You know it!", "Rainy days, sunny days."]


@pytest.fixture(scope="module")
def word_level():
    return train_tokenizer(TEXTS, TextConfig())


@pytest.fixture(scope="module")
def bpe():
    return train_tokenizer(TEXTS * 3, TextConfig(kind="bpe", size=300))


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_the_special_tokens_come_first_in_every_kind(kind):
    tokenizer = train_tokenizer(TEXTS, TextConfig(kind=kind, size=300))
    assert [tokenizer.token(index) for index in range(5)] == list(SPECIALS)
    actual = (tokenizer.pad, tokenizer.unk, tokenizer.start, tokenizer.end, tokenizer.ctx)
    assert actual == (0, 1, 2, 3, 4)
    assert tokenizer.banned == (0, 1, 2, 4)
    vocabulary = tokenizer.vocabulary
    assert (vocabulary.size, vocabulary.pad, vocabulary.end) == (len(tokenizer), 0, 3)


def test_words_are_ranked_by_count_then_by_name(word_level):
    counts = Counter(word for text in TEXTS for word in words(text))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    assert [word_level.token(index) for index in range(5, len(word_level))] == ranked


def test_the_same_texts_in_another_order_give_the_same_ids(word_level):
    assert train_tokenizer(reversed(TEXTS), TextConfig()).backend.get_vocab() == word_level.backend.get_vocab()


def test_words_seen_once_stand_from_rare_from_on(word_level):
    counts = Counter(word for text in TEXTS for word in words(text))
    for word, count in counts.items():
        (index,) = word_level.encode(word)
        assert (index >= word_level.rare_from) == (count == 1), word


def test_where_words_seen_once_are_left_out_none_is_rare():
    tokenizer = train_tokenizer(TEXTS, TextConfig(least=2))
    assert tokenizer.rare_from == len(tokenizer) < len(train_tokenizer(TEXTS, TextConfig()))
    assert tokenizer.encode("rainy days") == [tokenizer.unk, tokenizer.encode("days")[0]]


def test_an_unseen_word_is_unknown(word_level):
    assert word_level.encode("You know penguins!")[2] == word_level.unk


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(max_codepoint=0x24F)))
def test_there_is_a_token_for_every_word(word_level, text):
    known = word_level.backend.get_vocab()
    assert word_level.encode(text) == [known.get(word, word_level.unk) for word in words(text)]


def test_many_are_encoded_as_one_by_one(word_level, bpe):
    for tokenizer in (word_level, bpe):
        assert tokenizer.encode_many(TEXTS) == [tokenizer.encode(text) for text in TEXTS]


@pytest.mark.parametrize("special", SPECIALS)
def test_what_a_person_types_is_never_a_special_token(word_level, bpe, special):
    for tokenizer in (word_level, bpe):
        ids = tokenizer.encode(f"I know {special} days")
        assert {index for index in ids if index < 5} <= {tokenizer.unk}
    assert bpe.decode(bpe.encode(f"I know {special} days")) == f"I know {special} days"


def test_words_come_back_as_a_sentence_without_special_tokens(word_level):
    ids = word_level.encode("i don't know, you know!")
    assert word_level.decode([2, 4, *ids, 1, 3, 0]) == "I don't know, you know!"


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_bpe_gives_any_text_back(bpe, text):
    assert bpe.decode(bpe.encode(text)) == text.strip()
    assert bpe.unk not in bpe.encode(text)


def test_bpe_pieces_make_common_words_short(bpe):
    assert len(bpe.encode("know")) < len("know")
    assert bpe.rare_from == len(bpe)


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_what_is_saved_gives_the_same_ids(tmp_path, kind):
    tokenizer = train_tokenizer(TEXTS, TextConfig(kind=kind, size=300))
    tokenizer.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json", kind, tokenizer.rare_from)
    for text in [*TEXTS, "Un’seen – 日本 </s> text…"]:
        assert again.encode(text) == tokenizer.encode(text)
        assert again.decode(again.encode(text)) == tokenizer.decode(tokenizer.encode(text))
    assert (again.kind, again.rare_from, len(again)) == (kind, tokenizer.rare_from, len(tokenizer))


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_an_empty_corpus_is_told(kind):
    with pytest.raises(ValueError, match="no words to learn a vocabulary from: the training data is empty"):
        train_tokenizer([], TextConfig(kind=kind))


def test_words_that_are_all_too_rare_are_told():
    with pytest.raises(ValueError, match="none of 2 is there 5 times"):
        train_tokenizer(["hello there"], TextConfig(least=5))


def test_a_file_that_is_no_tokenizer_is_named(tmp_path):
    path = tmp_path / "tokenizer.json"
    for text in ("{}", "not json", ""):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"tokenizer\.json: not a tokenizer\.json"):
            Tokenizer.load(path, "word")


def test_another_tools_tokenizer_is_refused(tmp_path, word_level):
    path = tmp_path / "tokenizer.json"
    record = json.loads(word_level.backend.to_str())
    record["added_tokens"] = []
    del record["model"]["vocab"]["<ctx>"]
    path.write_text(json.dumps(record))
    with pytest.raises(ValueError, match="this tokenizer has no <ctx> token"):
        Tokenizer.load(path, "word")
