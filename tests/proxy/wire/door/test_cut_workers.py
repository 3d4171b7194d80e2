"""Workers out of reach for a while: nothing is lost or doubled, and an old worker is without effect.

Each worker is behind a proxy and, when the door has given it up, stays alive with all that it has.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.door.cluster_round import SECONDS, Round
from support.proxy.cutting_proxy import BOTH_WAYS, TO_CLIENT, TO_SERVER
from support.waiting import let_time_pass, wait_until

from licorne.proxy.base.process import is_compiled
from licorne.proxy.wire.door.workers import LinkState

WAYS = {"both ways": BOTH_WAYS, "to the worker": (TO_SERVER,), "from the worker": (TO_CLIENT,)}


def play(folder: Path, seed: int, ways: Collection[str], seconds: float, *, lost: bool, count: int) -> None:
    """Run a cluster; under load keep what one worker and the door say to each other for so long."""
    with ExitStack() as stack:
        played = Round(folder, seed, stack, count=count, behind_proxies=True)
        played.cluster.wait_for_load(played.random.randrange(20, count // 2), "a")
        place = played.running("a")
        proxy = played.workers.proxy_of(place)
        begun = played.cluster.begun("b")
        began = time.monotonic()
        proxy.hold(ways)
        played.cluster.wait_for_load(min(10, count - begun), "b")  # It does not wait for the other one.
        if lost:
            wait_until(lambda: played.place("a") != place, "it is lost", SECONDS)
            played.running("a", place.worker_number)
        let_time_pass(max(began + seconds - time.monotonic(), 0.0))
        if not lost:
            now = played.running("a")
            assert (place.worker_number, LinkState.RUNNING) == (now.worker_number, now.state)
        proxy.go_on()  # The old worker gets what it was sent, and says what it has done.
        played.check()


@pytest.mark.skipif(is_compiled(), reason="machine code does not look its constants up")
def test_a_worker_that_was_given_up_is_without_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is alive, and says what it has done when it can be reached again."""
    monkeypatch.setattr("licorne.proxy.wire.client.connection._KEEPALIVE_SECONDS", 0.5)
    monkeypatch.setattr("licorne.proxy.wire.client.connection._SIGN_SECONDS", 1.0)
    play(tmp_path, 2, BOTH_WAYS, 1, lost=True, count=600)


@pytest.mark.soak
@pytest.mark.parametrize("ways", WAYS.values(), ids=WAYS)
def test_workers_that_are_out_of_reach_for_5_s_go_on(ways: Collection[str], tmp_path: Path) -> None:
    """In both directions, and in either one."""
    play(tmp_path, len(ways), ways, 5, lost=False, count=3_000)


@pytest.mark.soak
@pytest.mark.parametrize("ways", WAYS.values(), ids=WAYS)
def test_workers_that_are_out_of_reach_for_60_s_are_replaced(ways: Collection[str], tmp_path: Path) -> None:
    """In both directions, and in either one: no sign of life comes."""
    play(tmp_path, len(ways), ways, 60, lost=True, count=3_000)
