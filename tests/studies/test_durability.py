"""No acknowledged answer is lost: a real server, killed with -9 while raters send, on both databases."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from study_campaign import Campaign

from listenwell.studies.store import Store, Study


def test_acknowledged_answers_survive_kills_exactly_once(store: Store, make_study: Callable[..., Study]):
    study = make_study(store, items=12, task_size=4, raters=6)
    campaign = Campaign(store, study, raters=6, each=12)
    campaign.run(kills=2)
    campaign.check()
    assert campaign.server.starts == 3


@pytest.mark.soak
def test_fifty_raters_two_hundred_answers_twenty_kills(store: Store, make_study: Callable[..., Study]):
    study = make_study(store, items=200, task_size=10, raters=50)
    campaign = Campaign(store, study, raters=50, each=200)
    campaign.run(kills=20)
    campaign.check()
    assert campaign.server.starts == 21
