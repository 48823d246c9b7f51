import math

import pytest
import torch

from listenwell.layers.attention import PLAIN_MOST, Attention, KeyValues, attend


def by_hand(attention, x, memory, mask=None, causal=False):
    """softmax(QKᵀ / √d)V for each row, head and position, in loops."""
    width = x.shape[-1]
    size = width // attention.heads
    queries = x @ attention.query.weight.T + attention.query.bias
    both = memory @ attention.key_value.weight.T + attention.key_value.bias
    keys, values = both[..., :width], both[..., width:]
    joined = torch.zeros_like(x)
    for row in range(x.shape[0]):
        for head in range(attention.heads):
            part = slice(head * size, (head + 1) * size)
            for time in range(x.shape[1]):
                seen = [
                    other
                    for other in range(memory.shape[1])
                    if (mask is None or mask[row, other]) and (not causal or other <= time)
                ]
                scores = [float(queries[row, time, part] @ keys[row, other, part]) / math.sqrt(size) for other in seen]
                total = sum(math.exp(score) for score in scores)
                for other, score in zip(seen, scores, strict=True):
                    joined[row, time, part] += math.exp(score) / total * values[row, other, part]
    return joined @ attention.out.weight.T + attention.out.bias


@pytest.fixture
def attention():
    torch.manual_seed(0)
    return Attention(12, 3).eval()


@torch.no_grad()
def test_attention_is_the_softmax_of_scaled_products_for_each_head(attention):
    x, memory = torch.randn(2, 4, 12), torch.randn(2, 5, 12)
    assert torch.allclose(attention(x, attention.project(memory)), by_hand(attention, x, memory), atol=1e-5)


@torch.no_grad()
def test_what_is_masked_is_not_attended_to(attention):
    x, memory = torch.randn(2, 4, 12), torch.randn(2, 5, 12)
    mask = torch.tensor([[True, True, False, True, False], [True, False, False, False, False]])
    actual = attention(x, attention.project(memory), mask)
    assert torch.allclose(actual, by_hand(attention, x, memory, mask), atol=1e-5)
    memory[~mask] = 99.0
    assert torch.equal(attention(x, attention.project(memory), mask), actual)


@torch.no_grad()
def test_causal_attention_sees_no_later_position(attention):
    x = torch.randn(2, 6, 12)
    actual = attention(x, attention.project(x), causal=True)
    assert torch.allclose(actual, by_hand(attention, x, x, causal=True), atol=1e-5)


@torch.no_grad()
def test_a_memory_of_another_width_is_projected():
    attention = Attention(12, 3, memory_width=7)
    x, memory = torch.randn(2, 4, 12), torch.randn(2, 5, 7)
    assert torch.allclose(attention(x, attention.project(memory)), by_hand(attention, x, memory), atol=1e-5)


@torch.no_grad()
def test_a_cache_that_grows_is_the_whole(attention):
    x = torch.randn(2, 6, 12)
    grown = attention.project(x[:, :1])
    for time in range(1, 6):
        grown = grown.extended(attention.project(x[:, time : time + 1]))
    whole = attention.project(x)
    assert isinstance(grown, KeyValues)
    assert torch.allclose(grown.keys, whole.keys, atol=1e-6)
    assert torch.allclose(grown.values, whole.values, atol=1e-6)


def test_a_width_that_does_not_divide_is_told():
    with pytest.raises(ValueError, match="width 12 does not divide into 5 heads"):
        Attention(12, 5)


@pytest.mark.parametrize("kind", ["all", "causal", "masked"])
@pytest.mark.parametrize("shared", [1, 3])
def test_in_half_precision_plain_products_learn_what_the_fused_ones_do(kind, shared):
    """One position more than PLAIN_MOST uses the fused kernel; both are compared with full precision."""
    torch.manual_seed(0)
    for time in (5, PLAIN_MOST + 1):
        whole = [torch.randn(2, heads, time, 8) for heads in (6, 6 // shared, 6 // shared)]
        mask = (torch.arange(time) < torch.tensor([[time], [time - 2]]))[:, None, None] if kind == "masked" else None
        slopes = []
        for dtype in (torch.float32, torch.bfloat16):
            parts = [part.to(dtype, copy=True).requires_grad_() for part in whole]
            actual = attend(*parts, mask, causal=kind == "causal")
            actual.float().square().sum().backward()
            slopes.append([actual.detach(), *(part.grad for part in parts)])
        for full, half in zip(*slopes, strict=True):
            assert half.dtype == torch.bfloat16
            assert torch.cosine_similarity(full.flatten(), half.float().flatten(), dim=0) > 0.999


def test_an_attention_may_be_narrower_than_the_model():
    narrow = Attention(12, 2, inner=4)
    x = torch.randn(3, 5, 12)
    memory = narrow.project(x)
    assert memory.keys.shape == (3, 2, 5, 2)
    assert narrow(x, memory).shape == x.shape
    with pytest.raises(ValueError, match="attention_width 5 does not divide into 2 heads"):
        Attention(12, 2, inner=5)
