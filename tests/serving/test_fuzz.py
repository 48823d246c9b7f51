"""Requests generated from the API's schema, valid and invalid: none may cause a 5xx."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi")


from hypothesis import HealthCheck, Phase, given, settings
from serving_helpers import Echo, running

schemathesis = pytest.importorskip("schemathesis")

QUICK, LONG = 200, 15_000


@pytest.fixture(scope="module")
def server():
    with running(Echo(), room=512) as one:
        yield one


def cases(server, count: int) -> int:
    """Call every operation with generated requests, mostly those with a body, and check each response."""
    schema = schemathesis.openapi.from_dict(server.app.openapi())
    schema.config.update(base_url=server.url)
    called = 0
    for operation in [result.ok() for result in schema.get_all_operations()]:
        share = 0.3 if operation.method.upper() == "POST" else 0.05
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            called += _call_many(operation, mode, max(1, int(share * count / 2)))
    return called


def _call_many(operation, mode, count: int) -> int:
    called = 0

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def call(case) -> None:
        nonlocal called
        called += 1
        answer = case.call()
        assert answer.status_code < 500, answer.text
        if answer.status_code >= 400:
            assert answer.json()["error"].keys() == {"message", "type", "param", "code"}

    try:
        call()
    except Exception as problem:
        if "Unsatisfiable" not in type(problem).__name__:  # an operation without input cannot be given a wrong one
            raise
    return called


def test_no_generated_request_is_a_server_error(server):
    assert cases(server, QUICK) >= 100


@pytest.mark.soak
def test_no_generated_request_of_ten_thousand_is_a_server_error(server):
    called = cases(server, LONG)
    print(f"\n{called:,} generated requests, no 5xx")
    assert called >= 10_000
