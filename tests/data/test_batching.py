import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from listenwell.contract import ABSENT
from listenwell.data.batching import EncodingConfig, collate, cut, encode, epoch_batches, ordered_batches
from listenwell.data.dialogue import Example, Label, Turn, examples
from listenwell.data.sources import shipped
from listenwell.labels.taxonomy import label_id
from listenwell.text import TextConfig, train_tokenizer

SPEAKER, LISTENER = 0, 1
NEUTRAL = label_id("neutral")


@pytest.fixture(scope="module")
def letters():
    """A tokenizer for which every letter is a token."""
    return train_tokenizer([" ".join("abcdefghijklmnopqrstuvwxyz")], TextConfig())


def example(context="a b|c", reply="d e", following="f", **fields):
    roles = ("speaker", "listener")
    turns = tuple(Turn(roles[i % 2], text) for i, text in enumerate(context.split("|"))) if context else ()
    reply = Turn("listener", reply, Label("questioning")) if reply else None
    following = Turn("speaker", following) if following else None
    return Example("x", turns, reply, following, **fields)


def spell(letters, tokens):
    return " ".join(letters.token(int(index)) for index in tokens)


def encode_one(letters, item, cut_replies=False, **config):
    data = encode([item], letters, EncodingConfig(**config), cut_replies)
    return data, collate(data, [0], letters.pad)


def test_a_context_is_its_turns_behind_one_ctx(letters):
    _, batch = encode_one(letters, example("a b|c|d"))
    assert spell(letters, batch.context.tokens[0]) == "<ctx> a b c d"
    assert batch.context.roles[0].tolist() == [SPEAKER, SPEAKER, SPEAKER, LISTENER, SPEAKER]


def test_separators_stand_around_every_turn_instead(letters):
    _, batch = encode_one(letters, example("a b|c"), separators=True)
    assert spell(letters, batch.context.tokens[0]) == "<s> a b </s> <s> c </s>"
    assert batch.context.roles[0].tolist() == [SPEAKER] * 4 + [LISTENER] * 3


def test_a_reply_and_what_follows_end_with_the_end(letters):
    _, batch = encode_one(letters, example(reply="d e", following="f g"))
    assert spell(letters, batch.reply.tokens[0]) == "d e </s>"
    assert batch.reply.roles[0].tolist() == [LISTENER] * 3
    assert spell(letters, batch.following.tokens[0]) == "f g </s>"
    assert batch.following.roles[0].tolist() == [SPEAKER] * 3
    assert spell(letters, batch.reply.shifted(letters.start)[0]) == "<s> d e"


@pytest.mark.parametrize(
    ("separators", "kept", "roles"),
    [
        (False, "<ctx> c d e f", [SPEAKER, SPEAKER, LISTENER, LISTENER, LISTENER]),
        (True, "<s> d e f </s>", [LISTENER] * 5),
    ],
)
def test_of_a_context_too_long_the_oldest_is_dropped(letters, separators, kept, roles):
    _, batch = encode_one(letters, example("a b c|d e f"), max_context=5, separators=separators)
    assert spell(letters, batch.context.tokens[0]) == kept
    assert batch.context.roles[0].tolist() == roles


def test_the_shortest_context_is_one_token_behind_ctx(letters):
    _, batch = encode_one(letters, example("a b c"), max_context=2)
    assert spell(letters, batch.context.tokens[0]) == "<ctx> c"


@pytest.mark.parametrize("wrong", [{"max_context": 1}, {"max_context": 0}, {"max_reply": 0}])
def test_a_length_with_room_for_nothing_is_told(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} is {next(iter(wrong.values()))}, expected at least"):
        EncodingConfig(**wrong)


def test_a_reply_is_cut_in_training_alone_and_then_does_not_end(letters):
    _, whole = encode_one(letters, example(reply="a b c d"), max_reply=3)
    assert spell(letters, whole.reply.tokens[0]) == "a b c d </s>"
    _, shortened = encode_one(letters, example(reply="a b c d"), cut_replies=True, max_reply=3)
    assert spell(letters, shortened.reply.tokens[0]) == "a b c"
    _, fitting = encode_one(letters, example(reply="a b"), cut_replies=True, max_reply=3)
    assert spell(letters, fitting.reply.tokens[0]) == "a b </s>"


def test_labels_and_emotions_are_ids_and_absent_where_not_known(letters):
    items = [
        example(emotion=Label("joyful")),
        example(emotion=Label("bored")),
        Example("y", (Turn("speaker", "a"),), Turn("listener", "b")),
    ]
    data = encode(items, letters, EncodingConfig())
    batch = collate(data, [0, 1, 2], letters.pad)
    assert batch.emotion.tolist() == [22, ABSENT, ABSENT]
    assert batch.label.tolist() == [label_id("questioning"), label_id("questioning"), ABSENT]


def test_every_position_knows_its_turns_label(letters):
    turns = (Turn("speaker", "a b", Label("sad")), Turn("listener", "c", Label("consoling")), Turn("speaker", "d"))
    _, batch = encode_one(letters, Example("x", turns, Turn("listener", "e", Label("wishing"))))
    sad, consoling, wishing = map(label_id, ("sad", "consoling", "wishing"))
    assert batch.context.labels[0].tolist() == [NEUTRAL, sad, sad, consoling, NEUTRAL]
    assert batch.reply.labels[0].tolist() == [wishing, wishing]


def test_rows_are_padded_to_the_longest_and_the_mask_says_where(letters):
    data = encode([example("a"), example("a b c|d", reply="x y z")], letters, EncodingConfig())
    batch = collate(data, [1, 0], letters.pad)
    assert batch.rows == (1, 0)
    assert len(batch) == 2
    assert batch.context.mask.tolist() == [[True] * 5, [True] * 2 + [False] * 3]
    assert batch.reply.mask.sum(1).tolist() == [4, 3]
    assert (batch.context.tokens[~batch.context.mask] == letters.pad).all()
    assert torch.equal(batch.context.tokens[1, :2], collate(data, [0], letters.pad).context.tokens[0])


def test_a_side_that_no_row_has_is_none(letters):
    data, batch = encode_one(letters, Example("x", reply=Turn("listener", "a b")))
    assert batch.context is None
    assert batch.following is None
    assert len(batch) == 1
    assert data.lengths().tolist() == [[0, 3]]
    _, without_reply = encode_one(letters, Example("x", (Turn("speaker", "a"),)))
    assert without_reply.reply is None


def test_a_side_that_some_rows_lack_is_masked_there(letters):
    data = encode([example(), example(context="", following="")], letters, EncodingConfig())
    batch = collate(data, [0, 1], letters.pad)
    assert batch.context.mask[1].tolist() == [False] * 4
    assert not batch.following.mask[1].any()
    assert batch.reply.mask.all()


lengths_of_items = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40)), min_size=1, max_size=80).map(np.array)


@settings(max_examples=100, deadline=None)
@given(lengths_of_items, st.integers(0, 9), st.integers(0, 300), st.integers(0, 5))
def test_every_item_comes_once_an_epoch_and_no_batch_is_too_large(lengths, examples, tokens, epoch):
    if not examples and not tokens:
        examples = 1
    batches = epoch_batches(lengths, examples=examples, tokens=tokens, seed=1, epoch=epoch, pool=3)
    assert sorted(np.concatenate(batches)) == list(range(len(lengths)))
    for rows in batches:
        assert not examples or len(rows) <= examples
        # An item that exceeds the limit by itself is still returned, alone.
        assert not tokens or len(rows) == 1 or lengths[rows].max(axis=0).sum() * len(rows) <= tokens


@settings(max_examples=50, deadline=None)
@given(lengths_of_items, st.integers(0, 9), st.integers(0, 300))
def test_scoring_takes_every_item_once(lengths, examples, tokens):
    batches = ordered_batches(lengths, examples=examples, tokens=tokens)
    assert sorted(np.concatenate(batches)) == list(range(len(lengths)))


def test_batches_are_cut_as_late_as_the_limits_allow():
    lengths = np.array([[2, 1], [2, 2], [4, 4], [1, 1]])
    order = np.arange(4)
    assert [rows.tolist() for rows in cut(order, lengths, 3, 0)] == [[0, 1, 2], [3]]
    assert [rows.tolist() for rows in cut(order, lengths, 0, 8)] == [[0, 1], [2], [3]]
    assert [rows.tolist() for rows in cut(order, lengths, 0, 0)] == [[0, 1, 2, 3]]
    assert list(cut(order[:0], lengths, 3, 0)) == []


def plain(batches):
    return [rows.tolist() for rows in batches]


def test_seed_and_epoch_decide_the_batches_and_nothing_else():
    lengths = np.random.default_rng(0).integers(1, 30, (200, 2))

    def batches(seed=1, epoch=0):
        return plain(epoch_batches(lengths, examples=8, tokens=0, seed=seed, epoch=epoch))

    first = batches()
    np.random.seed(5)
    assert batches() == first
    assert batches(epoch=1) != first
    assert batches(seed=2) != first
    assert {tuple(sorted(rows)) for rows in batches(epoch=1)} != {tuple(sorted(rows)) for rows in first}


def test_like_lengths_meet_so_that_little_is_padding():
    items = [item for dialogue in shipped.read("train") for item in examples(dialogue)]
    texts = (turn.text for item in items for turn in (*item.context, item.reply))
    lengths = encode(items, train_tokenizer(texts, TextConfig()), EncodingConfig()).lengths()

    def padding(batches):
        padded = sum(int(lengths[rows].max(axis=0).sum()) * len(rows) for rows in batches)
        return 1 - lengths.sum() / padded

    by_chance = np.array_split(np.random.default_rng(0).permutation(len(items)), len(items) // 16)
    sorted_ones = epoch_batches(lengths, examples=16, tokens=0, seed=1, epoch=0)
    assert padding(sorted_ones) < 0.12 < 0.3 < padding(by_chance)
