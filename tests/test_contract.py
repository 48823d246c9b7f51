from dataclasses import fields
from importlib import import_module

import pytest
import torch

from listenwell.contract import Batch, Model, Moment, Sequence, State, Term, Vocabulary, map_tensors
from listenwell.data.batching import collate
from listenwell.data.dialogue import ROLES
from listenwell.layers.attention import KeyValues
from listenwell.layers.transformer import Memory
from listenwell.models import MODELS, build, entry


def state(rows=3):
    def numbers(*shape):
        return torch.arange(rows * max(1, torch.Size(shape).numel())).reshape(rows, *shape)

    memory = Memory([KeyValues(numbers(2, 4, 3), numbers(2, 4, 3))], numbers(4) % 2 == 0)
    return State({"emotion": numbers(5)}, memory, [KeyValues(numbers(2, 1, 3), numbers(2, 1, 3))], length=7)


def tensors(tree):
    actual = []

    def note(tensor):
        actual.append(tensor)
        return tensor

    map_tensors(tree, note)
    return actual


def test_select_takes_rows_of_everything_in_the_order_asked():
    whole = state()
    chosen = whole.select(torch.tensor([2, 0, 2]))
    assert chosen.length == 7
    assert len(tensors(chosen)) == len(tensors(whole)) == 6
    for part, before in zip(tensors(chosen), tensors(whole), strict=True):
        assert torch.equal(part, before[[2, 0, 2]])


def test_select_may_leave_no_row():
    assert all(len(part) == 0 for part in tensors(state().select(torch.tensor([], dtype=torch.long))))


def test_repeat_puts_copies_of_a_row_next_to_each_other():
    whole = state()
    repeated = whole.repeat(2)
    assert repeated.length == 7
    for part, before in zip(tensors(repeated), tensors(whole), strict=True):
        assert torch.equal(part, before[[0, 0, 1, 1, 2, 2]])


def test_a_state_is_not_changed_by_taking_from_it():
    whole, same = state(), state()
    whole.select(torch.tensor([1]))
    whole.repeat(3)
    for part, before in zip(tensors(whole), tensors(same), strict=True):
        assert torch.equal(part, before)


def test_a_state_that_holds_what_cannot_be_selected_is_told():
    with pytest.raises(TypeError, match="a state holds tensors, dicts, lists, tuples and dataclasses, found set"):
        State(fixed={1, 2}).select(torch.tensor([0]))


def test_the_decoders_input_is_the_start_and_all_but_the_last():
    tokens = torch.tensor([[5, 6, 3], [7, 3, 0]])
    assert Sequence(tokens, tokens > 0, tokens).shifted(2).tolist() == [[2, 5, 6], [2, 7, 3]]


def test_a_batch_is_as_long_as_the_side_it_has():
    tokens = torch.zeros(4, 2, dtype=torch.long)
    side = Sequence(tokens, tokens == 0, tokens)
    assert len(Batch(context=side)) == len(Batch(reply=side)) == 4
    assert len(Batch()) == 0
    moved = Batch(context=side, rows=(1, 2, 3, 4)).to("cpu")
    assert moved.rows == (1, 2, 3, 4)
    assert moved.reply is None


def test_a_term_is_learned_by_its_total_and_shown_by_its_plain_part():
    term = Term(torch.tensor(6.0), 3, plain=torch.tensor(4.5))
    assert (term.mean.item(), term.shown) == (2.0, 1.5)
    assert Term(torch.tensor(6.0), 3).shown == 2.0
    assert Term(torch.tensor(0.0), 0).shown == 0.0


def test_a_model_says_what_it_cannot_do():
    class Mute(Model):
        pass

    with pytest.raises(TypeError, match="Mute does not understand"):
        Mute().understand(Batch())
    with pytest.raises(TypeError, match="Mute does not decode"):
        Mute().step(torch.tensor([1]), State())
    with pytest.raises(TypeError, match="Mute gives no likelihood"):
        Mute().score(Batch())
    with pytest.raises(ValueError, match="unknown objective 'likelyhood'; did you mean 'likelihood'"):
        Mute().objective("likelyhood", Batch(), Moment())


@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_made_by_name_and_says_where_it_is_from(name):
    actual = entry(name)
    assert actual.about
    assert actual.paper
    choices = {choice.name for choice in fields(getattr(import_module(actual.module), actual.cls).Config)}
    small = {"width": 24} if "width" in choices else {}  # a backbone has its own width
    assert isinstance(build(name.replace("-", "_"), small, Vocabulary(9)), Model)


@pytest.mark.parametrize(
    ("name", "choices", "message"),
    [
        ("multi-tsr", {}, "unknown model 'multi-tsr'; did you mean 'multi-trs'"),
        ("trs", {"widht": 12}, "model trs: unknown key 'widht'; did you mean 'width'"),
        ("trs", {"width": "wide"}, "model trs: width is 'wide', expected an integer"),
        ("trs", {"width": None}, "model trs: width has no value"),
        ("trs", {"width": 30, "heads": 4}, "model trs: width 30 does not divide into 4 heads"),
        ("trs", {"dropout": 1.0}, "model trs: a dropout rate is at least 0 and below 1, found 1.0"),
    ],
)
def test_a_model_that_cannot_be_made_says_why(name, choices, message):
    with pytest.raises(ValueError, match=message):
        build(name, choices, Vocabulary(9))


def test_a_state_that_holds_what_cannot_follow_its_rows_is_refused():
    class Cache:
        pass

    with pytest.raises(TypeError, match="found Cache"):
        State(moving=Cache()).select(torch.tensor([0]))


def test_a_reply_is_read_backwards_as_a_context_is(encoded, tokenizer):
    reply = collate(encoded, range(6), tokenizer.pad).reply
    source = reply.as_source(tokenizer.ctx, tokenizer.end)
    assert (source.tokens[:, 0] == tokenizer.ctx).all()
    for row in range(6):
        said = reply.tokens[row][reply.mask[row]].tolist()
        assert source.tokens[row][source.mask[row]].tolist() == [tokenizer.ctx, *said[:-1]]
        assert set(source.roles[row][source.mask[row]].tolist()) == {ROLES.index("listener")}


def test_a_backward_model_writes_the_whole_context_with_marks_between_turns():
    ids = Vocabulary(size=40)
    context = Sequence(
        torch.tensor([[4, 10, 11, 20, 21, 30], [4, 12, 13, 0, 0, 0]]),
        torch.tensor([[True] * 6, [True] * 3 + [False] * 3]),
        torch.tensor([[0, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0]]),
    )
    target = context.as_target(ids.ctx, ids.start, ids.end, ids.pad)
    assert target.tokens.tolist() == [[10, 11, 2, 20, 21, 2, 30, 3], [12, 13, 3, 0, 0, 0, 0, 0]]
    assert target.roles.tolist() == [[0, 0, 0, 1, 1, 1, 0, 0], [0] * 8]
    assert target.mask.sum(1).tolist() == [8, 3]
