"""The lexicon of emotional words: what counts as one, and the errors for a broken file."""

import pytest

from listenwell.configuration import ConfigError
from listenwell.text import TextConfig, train_tokenizer
from listenwell.text.lexicon import emotional_characters, emotional_words
from listenwell.training import data


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "lexicon.json"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_a_word_is_emotional_by_an_emotion_and_not_by_a_polarity(written):
    path = written('{"abandon": ["fear", "negative"], "ability": ["positive"], "abacus": ["trust"], "the": []}')
    assert emotional_words(path) == {"abandon", "abacus"}


def test_words_are_spelled_as_the_tokenizer_spells_them(written):
    path = written('{" Grief ": ["sadness"], "DON\'T": ["fear"], "ice cream": ["joy"], "": ["joy"], "ﬁre": ["fear"]}')
    assert emotional_words(path) == {"grief", "fire"}


def test_the_entries_of_a_word_that_stands_twice_add_up(written):
    assert emotional_words(written('{"cry": ["sadness"], "cry": ["negative"]}')) == {"cry"}


def test_a_byte_order_mark_is_no_dirt(written):
    assert emotional_words(written(b'\xef\xbb\xbf{"cry": ["sadness"]}')) == {"cry"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{\n"cry": ["sadness"],\n"sob" ["sadness"]}',
            r"lexicon\.json line 3: Expecting ':'.*\[.*, expected a JSON obj",
        ),
        ('{"cry": ["sadness"],\n', r"lexicon\.json line 2: .*the end of the file, expected a JSON object"),
        ("", r"lexicon\.json line 1: the end of the file, expected a JSON object"),
        (b'{\n"cr\xff": ["joy"]}', r"lexicon\.json line 2: the byte 0xff, expected UTF-8"),
        ('[["cry"]]', r"lexicon\.json line 1: a list of other things, expected an object"),
        (
            '{\n"cry":\n"sadness"}',
            r"lexicon\.json line 2: 'cry' has \"sadness\", expected a list of names such as anger",
        ),
        ('{"cry": {"sadness": 1}}', r"lexicon\.json line 1: 'cry' has an object, expected a list of names"),
        (
            '{"cry": ["joy"],\n\n"sob": ["joy", 1]}',
            r"line 3: 'sob' has a list of other things, expected a list of names",
        ),
        ('{"cry": ["joy"],\n"sob": null}', r"line 2: 'sob' has null, expected a list of names"),
        ('{"cry": ["sadnes"]}', r"line 1: 'cry' has an unknown emotion 'sadnes'; did you mean 'sadness'\?"),
        ('{"caf\\u00e9": [],\n"cr\\u00e8me": 3}', r"line 2: 'crème' has 3, expected a list of names"),
        ('{"ability": ["positive"]}', r"lexicon\.json: none of its words has an emotion, expected some with anger, "),
        ("{}", r"lexicon\.json: none of its words has an emotion"),
    ],
)
def test_a_broken_file_is_told_with_its_line(written, text, message):
    with pytest.raises(ConfigError, match=message):
        emotional_words(written(text))


def test_the_vocabularys_emotional_words_are_marked(written, tokenizer):
    path = written('{"good": ["joy"], "friend": ["trust"], "xyzzy": ["fear"], "day": ["positive"]}')
    marked = data.read_lexicon(path, tokenizer)
    assert marked.shape == (len(tokenizer),)
    assert {tokenizer.token(index) for index in marked.nonzero()[:, 0].tolist()} == {"friend", "good"}


def test_a_lexicon_that_shares_no_word_with_the_data_is_told(written, tokenizer):
    with pytest.raises(ConfigError, match=r"lexicon\.json: none of its emotional words is in the vocabulary"):
        data.read_lexicon(written('{"xyzzy": ["fear"]}'), tokenizer)


def test_a_lexicon_of_whole_words_is_nothing_to_sub_words(written):
    pieces = train_tokenizer(["a happy day"], TextConfig(kind="bpe", size=300))
    with pytest.raises(ConfigError, match=r"a lexicon has whole words, but text\.kind is bpe, expected word"):
        data.read_lexicon(written('{"happy": ["joy"]}'), pieces)


def test_a_lexicon_is_looked_for_where_corpora_are(written, tmp_path, monkeypatch):
    path = written('{"happy": ["joy"]}')
    monkeypatch.setenv("LISTENWELL_DATA", str(tmp_path))
    assert data.find_lexicon("lexicon.json") == data.find_lexicon(str(path)) == path
    with pytest.raises(FileNotFoundError, match=r"lexicon not found; looked for .*none\.json.*--set lexicon=PATH"):
        data.find_lexicon("none.json")


def test_a_recipe_without_a_lexicon_knows_of_no_emotional_words(tiny_recipe, tokenizer, encoded, written):
    assert data.word_prior(tiny_recipe(), tokenizer, encoded).emotional is None
    path = written('{"good": ["joy"]}')
    prior = data.word_prior(tiny_recipe(lexicon=str(path)), tokenizer, encoded)
    assert int(prior.emotional.sum()) == 1
    assert tiny_recipe(lexicon=str(path)).fingerprint() != tiny_recipe().fingerprint()


CHINESE = """{"dutir/乐": ["欢笑", "大笑 "], "dutir/哀": ["痛哭", "哭天抢地"], "dutir/怒": [], "dutir/惧": ["害怕"],
"dutir/惊": [], "dutir/好": ["大方", "大气", "大度"], "dutir/恶": ["痛骂", "痛打", "痛斥"], "hownet/pos": ["美"],
"hownet/neg": ["害人", "害虫", "害群"], "hownet/deny": ["不"]}"""


def test_a_character_is_emotional_if_it_stands_mostly_in_short_words_of_feeling(written):
    assert emotional_characters(written(CHINESE)) == set("欢笑哭怕")  # 大, 痛 and 害 occur mostly in other words


def test_a_lexicon_without_its_classes_is_refused(written):
    with pytest.raises(ConfigError, match=r"no class dutir/乐, dutir/好.*expected the words of DUTIR and HowNet"):
        emotional_characters(written('{"dutir/哀": ["痛哭"], "dutir/怒": [], "dutir/惧": [], "dutir/惊": []}'))
    with pytest.raises(ConfigError, match=r"line 1: 'dutir/乐' has \"笑\", expected a list of words"):
        emotional_characters(written('{"dutir/乐": "笑"}'))


def test_characters_of_the_vocabulary_are_marked(written):
    tokenizer = train_tokenizer(["我哭了笑了"], TextConfig(kind="char"))
    marked = data.read_lexicon(written(CHINESE), tokenizer)
    assert {tokenizer.token(token) for token in marked.nonzero()[:, 0].tolist()} == set("哭笑")
