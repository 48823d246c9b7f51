"""decode() generates whole replies for a batch; stream() generates one, token by token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from listenwell.contract import State, Steps, map_tensors
from listenwell.decoding.beam import search
from listenwell.decoding.hypotheses import Hypothesis
from listenwell.decoding.options import Decoding
from listenwell.decoding.rules import Rules
from listenwell.decoding.sampling import Choose, drawn, likeliest
from listenwell.decoding.walk import Page, walk


@torch.inference_mode()
def decode(
    model: Steps,
    state: State,
    options: Decoding,
    *,
    start: int,
    end: int,
    banned: Sequence[int] = (),
    items: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Returns the `candidates` hypotheses for each row of the state, best first.

    `banned` ids are never generated. `items` says which items of a data set the rows are (Batch.rows):
    samples are then the same however the data is batched; without it, they depend on a row's position.
    Beam search returns fewer hypotheses where rules and length allow no more; samples may coincide.
    """
    count, device = rows_of(state)
    items = range(count) if items is None else items
    if len(items) != count:
        raise ValueError(f"items names {len(items)} rows, but the state has {count}")
    if count == 0:
        return []
    rules = Rules(end, tuple(banned), options.min_length, options.block_ngrams)
    # One beam is greedy: the general search would go on past the end of its only hypothesis.
    if options.method == "beam" and options.beams > 1:
        return search(model, state, options, rules, start=start, count=count, device=device)
    if options.candidates > 1:
        state = state.repeat(options.candidates)
    page = Page.empty(count * options.candidates, options.max_length, device)
    for _ in walk(model, state, page, rules, chooser(options, items, device), start):
        pass
    written = page.hypotheses(options.length_penalty)
    groups = [written[row * options.candidates : (row + 1) * options.candidates] for row in range(count)]
    return [sorted(group, key=lambda hypothesis: hypothesis.score, reverse=True) for group in groups]


def stream(
    model: Steps,
    state: State,
    options: Decoding,
    *,
    start: int,
    end: int,
    banned: Sequence[int] = (),
    item: int = 0,
) -> Iterator[int]:
    """Yields the tokens of decode()'s one hypothesis for a state of one row, each as soon as it is known."""
    # Checked here and not in the generator, so that errors are raised at the call and not at the first token.
    if options.method == "beam":
        raise ValueError("Decoding.method is 'beam', expected greedy or sample: a beam has no token before its end")
    if options.candidates != 1:
        raise ValueError(f"Decoding.candidates is {options.candidates}, expected 1: a stream is one reply")
    count, device = rows_of(state)
    if count != 1:
        raise ValueError(f"the state has {count} rows, expected 1: a stream is one reply")
    rules = Rules(end, tuple(banned), options.min_length, options.block_ngrams)
    page = Page.empty(1, options.max_length, device)
    return _tokens(model, state, page, rules, chooser(options, [item], device), start)


# As a decorator, inference mode is exited at each yield: it must not leak into the caller's code.
@torch.inference_mode()
def _tokens(model: Steps, state: State, page: Page, rules: Rules, choose: Choose, start: int) -> Iterator[int]:
    for tokens in walk(model, state, page, rules, choose, start):
        yield int(tokens)


def chooser(options: Decoding, items: Sequence[int], device: torch.device) -> Choose:
    return drawn(options, items, device) if options.method == "sample" else likeliest


def rows_of(state: State) -> tuple[int, torch.device]:
    """A state's number of rows and its device, from its first tensor: all tensors are batch first."""
    tensors: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        tensors.append(tensor)
        return tensor

    map_tensors(state, note)
    if not tensors:
        raise ValueError("the state holds no tensor, so its number of rows is unknown; put one in beliefs or fixed")
    if tensors[0].dim() == 0:
        raise ValueError("the first tensor of the state has no dimensions, expected the batch first")
    return len(tensors[0]), tensors[0].device
