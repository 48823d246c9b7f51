"""Decoding options: one frozen dataclass for the command line's flags and a recipe's YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from math import isfinite
from typing import Any, Literal, TypeVar, get_args

from listenwell.labels.taxonomy import unknown_name

Method = Literal["greedy", "sample", "beam"]


@dataclass(frozen=True)  # no slots: jsonargparse reads the __dict__ of default instances
class Decoding:
    """How a reply is generated, token by token."""

    method: Method = "greedy"
    """greedy: the most likely token at each step; sample: a random one; beam: the best of several hypotheses."""
    max_length: int = 40
    """A reply that has not ended after this many tokens is cut off."""
    min_length: int = 1
    """A reply does not end before this many tokens, unless nothing else is left to say."""
    temperature: float = 1.0
    """Sampling: below 1 sharpens the distribution, above 1 flattens it."""
    top_k: int = 0
    """Sampling: only among this many most likely tokens; 0 for all."""
    top_p: float = 1.0
    """Sampling: only among the most likely tokens that together reach this probability; 1 for all."""
    beams: int = 5
    """Beam search: how many hypotheses are kept; one beam is greedy."""
    length_penalty: float = 1.0
    """score = logprob / length ** length_penalty, counting the end token: 0 favours short replies, 1 is the mean."""
    early: bool = False
    """Beam search: stop once no unfinished hypothesis scores better, at its present length, than those that ended.
    Otherwise stop only once none can score better at any length: exact, but the search takes several times as long."""
    block_ngrams: int = 0
    """No n-gram of this many tokens occurs twice in one reply; 0 for off."""
    guidance: float = 0.0
    """When a reply is requested with a label: how much further than the model itself to move away from the reply it
    would otherwise give; 0 for not at all. See listenwell.decoding.guidance."""
    candidates: int = 1
    """How many replies to return for each context: samples, or the best of the beams."""
    seed: int = 0
    """For everything that is sampled, words or a model's latents: the same seed gives the same replies."""

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise self._wrong("method", f"one of {', '.join(get_args(Method))}")
        for name, least in _LEAST.items():
            if not _is_integer(getattr(self, name)) or getattr(self, name) < least:
                raise self._wrong(name, f"an integer of at least {least}")
        if not isinstance(self.early, bool):
            raise self._wrong("early", "true or false")
        if not _is_integer(self.seed):
            raise self._wrong("seed", "an integer")
        if not is_number(self.temperature) or self.temperature <= 0:
            raise self._wrong("temperature", "a finite number above 0 (for no randomness: method greedy)")
        if not is_number(self.top_p) or not 0 < self.top_p <= 1:
            raise self._wrong("top_p", "a number above 0 and at most 1")
        # Beyond this, length ** penalty leaves the range of a float and all scores become equal.
        if not is_number(self.length_penalty) or abs(self.length_penalty) > 10:
            raise self._wrong("length_penalty", "a number from -10 to 10")
        if not is_number(self.guidance) or self.guidance < 0:
            raise self._wrong("guidance", "a number from 0 on")
        if self.min_length > self.max_length:
            raise self._wrong("min_length", f"at most max_length, which is {self.max_length}")
        if self.method == "greedy" and self.candidates != 1:
            raise self._wrong("candidates", "1 for method greedy (for more: sample or beam)")
        if self.method == "beam" and self.candidates > self.beams:
            raise self._wrong("candidates", f"at most beams, which is {self.beams}")

    def signature(self) -> str:
        """The label of scores obtained with these options, such as "beam5+lp1+block3+max40".

        Guidance is not in it: it only affects replies requested with a label, and the metrics of those name it.
        """
        penalty = f"lp{short(self.length_penalty)}"
        if self.method == "beam":
            parts = [f"beam{self.beams}", penalty, *(["early"] if self.early else [])]
        elif self.method == "sample":
            parts = ["sample", f"t{short(self.temperature)}"]
            parts += [f"k{self.top_k}"] if self.top_k else []
            parts += [f"p{short(self.top_p)}"] if self.top_p < 1 else []
            parts += [f"seed{self.seed}"]
            parts += [penalty] if self.candidates > 1 else []  # it decides which sample is best
        else:
            parts = ["greedy"]
        if self.method != "sample" and self.seed:
            parts += [f"seed{self.seed}"]  # a model may sample latents
        parts += [f"block{self.block_ngrams}"] if self.block_ngrams else []
        parts += [f"min{self.min_length}"] if self.min_length != 1 else []
        parts += [f"max{self.max_length}"]
        parts += [f"of{self.candidates}"] if self.candidates > 1 else []
        return "+".join(parts)

    def streamed(self) -> Decoding:
        """For streaming one reply: with a beam, or the best of several candidates, it is known only at the end."""
        method = "greedy" if self.method == "beam" else self.method
        return replace(self, method=method, candidates=1)

    def over(self, own: Decoding) -> Decoding:
        """The options to use in place of a system's own ones: these."""
        return self

    def _wrong(self, name: str, expected: str) -> ValueError:
        return ValueError(f"Decoding.{name} is {getattr(self, name)!r}, expected {expected}")


class Changes(Decoding):
    """Only some options, as typed on the command line: all others stay as the system has them."""

    def __init__(self, changes: Mapping[str, Any]) -> None:
        object.__setattr__(self, "changes", dict(changes))

    def over(self, own: Decoding) -> Decoding:
        return changed(own, self.__dict__["changes"])


D = TypeVar("D", bound=Decoding)


def changed(own: D, changes: Mapping[str, Any]) -> D:
    """The options with some of them changed; fields of a nested dataclass can be given one by one."""
    known = [f.name for f in fields(own)]
    if unknown := [name for name in changes if name not in known]:
        raise ValueError(f"this system's decoding has no {', '.join(unknown)}; its options are {', '.join(known)}")
    return replace(own, **{name: _changed_option(own, name, value) for name, value in changes.items()})


def _changed_option(own: Decoding, name: str, value: Any) -> Any:
    before = getattr(own, name)
    if not is_dataclass(before) or not isinstance(value, Mapping):
        return value
    known = [f.name for f in fields(before)]
    for key in value:
        if key not in known:
            raise TypeError(unknown_name(f"option of {name}", key, known))
    return replace(before, **value)  # type: ignore[type-var]


_LEAST = {"max_length": 1, "min_length": 0, "top_k": 0, "beams": 1, "block_ngrams": 0, "candidates": 1}


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def short(value: float) -> str:
    """1.0 as "1", 0.95 as "0.95": all digits are kept, so that different options never share a signature."""
    return repr(float(value)).removesuffix(".0")
