from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from listenwell.configuration import ConfigError, instantiate


@dataclass
class Inner:
    rate: float = 0.1
    kind: Literal["a", "b"] = "a"


@dataclass
class Outer:
    name: str
    count: int = 1
    maybe: int | None = None
    inner: Inner = field(default_factory=Inner)
    many: list[Inner] = field(default_factory=list)
    named: dict[str, Inner] = field(default_factory=dict)
    free: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        if self.count < 0:
            raise ValueError(f"count is {self.count}, expected 0 or more")


def test_plain_data_becomes_dataclasses_at_every_depth():
    data = {
        "name": "x",
        "inner": {"rate": 1},
        "many": [{"kind": "b"}, {"rate": 0.3}],
        "named": {"one": {"rate": 2.5}},
        "free": {"anything": [1, None, {"goes": True}]},
    }
    assert instantiate(Outer, data, "here") == Outer(
        "x", 1, None, Inner(1.0), [Inner(kind="b"), Inner(0.3)], {"one": Inner(2.5)}, data["free"]
    )


def test_defaults_are_not_shared():
    one, other = instantiate(Outer, {"name": "x"}, "here"), instantiate(Outer, {"name": "x"}, "here")
    one.free["a"] = 1
    one.inner.rate = 9.0
    assert other == Outer("x")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "here: the key 'name' is missing$"),
        ({"name": "x", "cuont": 2}, "here: unknown key 'cuont'; did you mean 'count'\\? \\(known: name, count, maybe"),
        ({"name": 5}, "here: name is 5, expected a text$"),
        ({"name": "x", "count": "many"}, "here: count is 'many', expected an integer$"),
        ({"name": "x", "count": 1.5}, "here: count is 1.5, expected an integer$"),
        ({"name": "x", "count": None}, "here: count has no value; leave the key out"),
        ({"name": "x", "inner": None}, "here: inner has no value"),
        ({"name": "x", "inner": {"rate": "fast"}}, "here: inner.rate is 'fast', expected a number$"),
        ({"name": "x", "inner": {"rate": None}}, "here: inner.rate has no value"),
        (
            {"name": "x", "inner": {"rat": 1}},
            "here: inner: unknown key 'rat'; did you mean 'rate'\\? \\(known: rate, kind\\)$",
        ),
        ({"name": "x", "inner": {"kind": "c"}}, "here: inner.kind is 'c', expected one of a, b$"),
        ({"name": "x", "many": [{"rat": 1}]}, "here: many.0: unknown key 'rat'; did you mean 'rate'"),
        ({"name": "x", "many": [{"rate": 0.3}, {"rate": None}]}, "here: many.1.rate has no value"),
        ({"name": "x", "many": {"rate": 1}}, "here: many is {'rate': 1}, expected a list$"),
        ({"name": "x", "named": {"one": {"rate": "fast"}}}, "here: named.one.rate is 'fast', expected a number$"),
        ({"name": "x", "count": -1}, "here: count is -1, expected 0 or more"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(data, message):
    with pytest.raises(ConfigError, match=f"(?s)^{message}"):
        instantiate(Outer, data, "here")


def test_a_value_that_may_be_nothing_may_be_nothing():
    assert instantiate(Outer, {"name": "x", "maybe": None}, "here").maybe is None
