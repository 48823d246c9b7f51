"""What care computes is cached for one call, and no longer."""

from __future__ import annotations

from listenwell.systems.safety.once import memory, once, remembering

CALLS: list[str] = []


@once
def shout(text: str) -> str:
    CALLS.append(text)
    return text.upper()


def test_a_result_is_kept_for_one_call_alone():
    CALLS.clear()
    with remembering():
        assert [shout("a"), shout("a"), shout("b")] == ["A", "A", "B"]
        with remembering():  # a call within the call
            assert shout("a") == "A"
    assert CALLS == ["a", "b"]
    with remembering():
        assert shout("a") == "A"
    assert CALLS == ["a", "b", "a"]


def test_outside_of_a_call_nothing_is_kept():
    CALLS.clear()
    assert memory() is None
    assert [shout("a"), shout("a")] == ["A", "A"]
    assert CALLS == ["a", "a"]


def test_none_is_a_result_too():
    found = []

    @once
    def nothing(text: str) -> None:
        found.append(text)

    with remembering():
        nothing("a")
        nothing("a")
    assert found == ["a"]


def test_two_looks_may_share_a_memory():
    CALLS.clear()
    kept: dict[object, object] = {}
    for _ in range(2):
        with remembering(kept):
            shout("a")
    assert CALLS == ["a"]


def test_methods_of_two_objects_are_two_things():
    class Names:
        def __init__(self, name: str) -> None:
            self.name = name

        @once
        def greet(self, text: str) -> str:
            return f"{text} {self.name}"

    one, other = Names("one"), Names("other")
    with remembering():
        assert (one.greet("hello"), other.greet("hello")) == ("hello one", "hello other")
