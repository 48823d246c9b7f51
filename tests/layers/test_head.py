"""A classification head over a whole text."""

import torch

from listenwell.layers.head import Head


def test_it_looks_everywhere_alike_until_it_has_learned_where():
    torch.manual_seed(0)
    head, hidden = Head(6, 4, dropout=0.0), torch.randn(2, 5, 6)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    torch.testing.assert_close(head.pool(hidden, mask)[1], hidden[1, :2].mean(dim=0))
    torch.nn.init.normal_(head.attention)
    scores = [float(position @ head.attention.detach()) / 6**0.5 for position in hidden[0]]
    weights = torch.tensor(scores).softmax(dim=0)
    expected = sum(weight * position for weight, position in zip(weights, hidden[0], strict=True))
    torch.testing.assert_close(head.pool(hidden, mask)[0], expected)
    torch.testing.assert_close(head(hidden, mask)[0], head.out.weight @ expected + head.out.bias)
