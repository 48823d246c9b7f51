import numpy as np
import pytest
import torch

from listenwell.configuration import ConfigError
from listenwell.data.batching import EncodingConfig, collate, encode
from listenwell.data.dialogue import examples
from listenwell.data.sources import jsonl, shipped
from listenwell.text import TextConfig, train_tokenizer
from listenwell.training import data
from listenwell.training.recipe import DataConfig, Stream
from listenwell.training.recipe_files import load_recipe


@pytest.fixture
def train_split(small_corpus, tokenizer):
    items = [item for dialogue in jsonl.read(small_corpus, "train") for item in examples(dialogue)]
    return encode(items, tokenizer, EncodingConfig())


def feed(train_split, tokenizer, **stream):
    return data.Feed(Stream(**{"examples": 8, **stream}), train_split, tokenizer, seed=5)


def sides(batch):
    return [side for side in (batch.context, batch.reply, batch.following) if side is not None]


def test_a_feed_gives_every_example_once_an_epoch_and_goes_on(train_split, tokenizer):
    source = feed(train_split, tokenizer)
    epochs = []
    for epoch in range(2):
        rows = []
        while source.epoch == epoch:
            rows.append(source.draw().rows)
        assert sorted(row for batch in rows for row in batch) == list(range(len(train_split)))
        epochs.append(rows)
    assert epochs[0] != epochs[1]
    assert (source.epoch, source.batch) == (2, 0)


def test_a_feed_goes_on_from_any_place(train_split, tokenizer):
    source = feed(train_split, tokenizer, rare_as_unknown=0.0)
    places, drawn = [], []
    for _ in range(20):
        places.append((source.epoch, source.batch))
        drawn.append(source.draw())
    for index in (0, 7, 8, 13):
        other = feed(train_split, tokenizer, rare_as_unknown=0.0)
        other.epoch, other.batch = places[index]
        for batch in drawn[index:]:
            again = other.draw()
            assert again.rows == batch.rows
            assert torch.equal(again.reply.tokens, batch.reply.tokens)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_words_seen_once_and_no_others_become_unknown_at_the_rate_asked(train_split, tokenizer, share):
    torch.manual_seed(0)
    source = feed(train_split, tokenizer, rare_as_unknown=share)
    rare = replaced = 0
    for _ in range(60):
        batch = source.draw()
        whole = collate(train_split, batch.rows, tokenizer.pad)
        for side, before in zip(sides(batch), sides(whole), strict=True):
            was_rare = before.tokens >= tokenizer.rare_from
            assert torch.equal(side.tokens[~was_rare], before.tokens[~was_rare])
            changed = side.tokens != before.tokens
            assert (side.tokens[changed] == tokenizer.unk).all()
            assert torch.equal(side.mask, before.mask)
            rare += int(was_rare.sum())
            replaced += int(changed.sum())
    assert rare > 1000
    assert share < 1 or replaced == rare
    assert replaced / rare == pytest.approx(share, abs=0.03)


def test_what_is_kept_as_ids_is_not_changed_by_forgetting(train_split, tokenizer):
    before = [side.tokens.copy() for side in train_split.replies]
    source = feed(train_split, tokenizer, rare_as_unknown=1.0)
    for _ in range(10):
        source.draw()
    assert all(np.array_equal(side.tokens, then) for side, then in zip(train_split.replies, before, strict=True))


def test_streams_take_the_recipes_corpus_unless_they_have_their_own(tiny_recipe, tiny_stage, tokenizer):
    streams = {"all": {"replies_by": ["speaker", "listener"]}, "own": {"source": "shipped", "split": "valid"}}
    recipe = tiny_recipe(stages=[tiny_stage(streams=streams, moves=[{"stream": "all"}])])
    by_stream = data.feeds(recipe, recipe.stages[0], tokenizer, {})
    assert all(id.startswith("lw-en-") for id in by_stream["own"].data.ids)
    assert len(by_stream["own"].data) == sum(1 for dialogue in shipped.read("valid") for _ in examples(dialogue))
    assert {int(id.split("#")[1]) % 2 for id in by_stream["all"].data.ids} == {0, 1}
    assert by_stream["all"].seed != by_stream["own"].seed


def test_the_recipes_corpus_is_cleaned_for_its_streams_too(tiny_recipe, tiny_stage, tokenizer, monkeypatch):
    requested = []

    def encode_split(recipe, stream, split, tokenizer, *, cut_replies, labeller, sets, begin):
        requested.append((stream.source, stream.clean, split))

    monkeypatch.setattr(data, "encode_split", encode_split)
    monkeypatch.setattr(data, "Feed", lambda *arguments: None)
    streams = {"train": {"examples": 4}, "own": {"source": "shipped"}}
    recipe = tiny_recipe(data={"source": "x.jsonl", "clean": True}, stages=[tiny_stage(streams=streams)])
    data.feeds(recipe, recipe.stages[0], tokenizer, {})
    assert requested == [("x.jsonl", True, "train"), ("shipped", False, "train")]


def test_the_same_data_is_encoded_once_for_all_stages(tiny_recipe, tokenizer):
    recipe, ready = tiny_recipe(), {}
    first = data.feeds(recipe, recipe.stages[0], tokenizer, ready)
    second = data.feeds(recipe, recipe.stages[0], tokenizer, ready)
    assert first["train"].data is second["train"].data


def test_a_split_without_a_reply_is_told(tiny_recipe, tokenizer, tmp_path):
    path = tmp_path / "lonely.jsonl"
    path.write_text('{"id": "d", "split": "train", "turns": [{"speaker": "speaker", "text": "Hello?"}]}\n')
    recipe = tiny_recipe(data={"source": str(path)})
    with pytest.raises(ConfigError, match=r"lonely\.jsonl, split train: there is no example with context and reply"):
        data.encode_split(recipe, recipe.data, "train", tokenizer, cut_replies=True)


def test_counts_are_of_words_as_targets(tiny_recipe, tokenizer, train_split):
    prior = data.word_prior(tiny_recipe(), tokenizer, train_split)
    assert prior.vectors is None
    assert int(prior.counts.sum()) == sum(len(side.tokens) for side in train_split.replies)
    assert int(prior.counts[tokenizer.end]) == len(train_split)
    assert int(prior.counts[tokenizer.pad]) == 0


# Word vectors


def test_vectors_are_read_for_the_words_that_are_known(tmp_path, tokenizer):
    path = tmp_path / "v.txt"
    path.write_text("the 1 2 3\nxyzzy 4 5 6\n. . . 7 8 9\n. -1 0 1e-2\n")
    vectors, known = data.read_vectors(path, tokenizer)
    the, dot = tokenizer.encode("the")[0], tokenizer.encode(".")[0]
    assert vectors.shape == (len(tokenizer), 3)
    assert set(known.nonzero()[:, 0].tolist()) == {the, dot}
    assert vectors[the].tolist() == [1, 2, 3]
    assert vectors[dot].tolist() == pytest.approx([-1, 0, 0.01])


def test_a_piece_that_is_a_whole_word_has_the_words_vector_and_one_that_goes_on_a_word_has_none(tmp_path):
    texts = ["The ring, the Ring", "the, being", "the ring being"] * 10
    pieces = train_tokenizer(texts, TextConfig(kind="bpe", size=400))
    path = tmp_path / "v.txt"
    path.write_text("the 1 2\nring 3 4\ning 5 6\n, 7 8\nxyzzy 9 9\n")
    vectors, known = data.read_vectors(path, pieces)
    actual = {pieces.token(index): vectors[index].tolist() for index in known.nonzero()[:, 0].tolist()}
    assert actual == {"Ġthe": [1, 2], "ĠThe": [1, 2], "Ġring": [3, 4], "ĠRing": [3, 4], ",": [7, 8]}
    assert pieces.backend.token_to_id("ing") is not None


def test_word2vecs_header_is_no_word(tmp_path, tokenizer):
    path = tmp_path / "v.txt"
    path.write_text("2 3\nthe 1 2 3\nand 4 5 6\n")
    vectors, known = data.read_vectors(path, tokenizer)
    assert vectors.shape[1] == 3
    assert int(known.sum()) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the 1 2 3\nand 4 5\n", r"v\.txt line 2: 2 numbers, expected 3"),
        ("the 1 2 3\nand 4 five 6\n", r"v\.txt line 2: could not convert .*five"),
        ("xyzzy 1 2 3\n", r"v\.txt: none of its words is in the vocabulary"),
        ("", r"v\.txt: none of its words is in the vocabulary"),
    ],
)
def test_broken_vectors_are_told_with_their_line(tmp_path, tokenizer, text, message):
    path = tmp_path / "v.txt"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        data.read_vectors(path, tokenizer)


def test_vectors_are_looked_for_where_corpora_are(tmp_path, monkeypatch):
    monkeypatch.setenv("LISTENWELL_DATA", str(tmp_path))
    (tmp_path / "glove").mkdir()
    (tmp_path / "glove" / "v.txt").write_text("the 1 2\n")
    assert data.find_vectors("glove/v.txt") == tmp_path / "glove" / "v.txt"
    assert data.find_vectors(str(tmp_path / "glove" / "v.txt")) == tmp_path / "glove" / "v.txt"
    with pytest.raises(FileNotFoundError, match=r"looked for .*glove/w\.txt.*--set vectors=null"):
        data.find_vectors("glove/w.txt")


def test_words_of_the_context_are_forgotten_at_the_rate_asked_and_nothing_else(tiny_recipe, tokenizer, train_split):
    stream = Stream(examples=8, rare_as_unknown=0.0, forget_words=0.3)
    plain = Stream(examples=8, rare_as_unknown=0.0)
    kept = forgotten = 0
    one, other = (data.Feed(which, train_split, tokenizer, 1) for which in (stream, plain))
    torch.manual_seed(0)
    for _ in range(20):
        with_gaps, whole = one.draw(), other.draw()
        assert torch.equal(with_gaps.reply.tokens, whole.reply.tokens)
        changed = with_gaps.context.tokens != whole.context.tokens
        assert not changed[~whole.context.mask].any()
        assert not changed[:, 0].any()  # <ctx> stays
        assert (with_gaps.context.tokens[changed] == tokenizer.unk).all()
        forgotten += int(changed.sum())
        kept += int((whole.context.mask & ~changed).sum())
    assert forgotten / (kept + forgotten) == pytest.approx(0.3, abs=0.05)


def test_dialogues_are_left_out_by_name_and_examples_without_a_label_if_so_asked(small_corpus):
    every = list(data.read_examples(DataConfig(source=str(small_corpus)), "train"))
    first = every[0].id.split("#")[0]
    read_back = list(data.read_examples(DataConfig(source=str(small_corpus), leave_out=[first]), "train"))
    assert [item for item in every if not item.id.startswith(f"{first}#")] == read_back
    both = {"replies_by": ["speaker", "listener"], "sides": ["reply"], "source": str(small_corpus)}
    items = list(data.read_examples(DataConfig(**both, labelled=True), "train"))
    assert items == [i for i in data.read_examples(DataConfig(**both), "train") if i.reply.label is not None]
    assert 0 < len(items) < len(list(data.read_examples(DataConfig(**both), "train")))
    polar = list(data.read_examples(DataConfig(**both, labelled=True, labels="polarity"), "train"))
    assert {item.reply.label.name for item in polar} <= {"negative", "neutral", "positive"}


def test_a_stream_without_a_source_reads_all_of_the_recipe_s_corpus(tiny_recipe):
    corpus = {"source": "edos", "part": "mturk", "labels": "polarity", "labelled": True, "leave_out": ["x"]}
    recipe = tiny_recipe(data=corpus)
    stream = data.with_corpus(recipe, Stream(sides=["reply"]))
    assert {key: getattr(stream, key) for key in corpus} == corpus
    other = Stream(source="goemotions")
    assert data.with_corpus(recipe, other) == other


@pytest.mark.data
@pytest.mark.parametrize("unseen", ["edos", "empathetic-dialogues"])
def test_the_recipes_of_everyday_talk_hold_no_dialogue_of_what_is_to_be_unseen(unseen):
    from listenwell.data import sources
    from listenwell.data.sources.quality import fingerprint

    try:
        for name in (unseen, "xdailydialog", "emotionlines"):
            sources.find_data(name)
    except FileNotFoundError as error:
        pytest.skip(f"the real corpus is not on this machine: {error}")
    there = {fingerprint(dialogue) for dialogue in sources.read(unseen)}
    for name in ("meed2-os-cpu", "meed2-plain-os-cpu"):
        recipe = load_recipe(name)
        for split in ("train", "valid"):
            assert not any(fingerprint(dialogue) in there for dialogue in data.read_dialogues(recipe.data, split))
