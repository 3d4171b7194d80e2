"""Workers whose addresses are given."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest

from licorne import LicorneError
from licorne.proxy.wire.door.launchers.fixed import FixedLauncher, read_worker_addresses
from licorne.proxy.wire.door.workers import LaunchedWorker, LaunchError

FORM = "expected PARTITION=HOST:PORT,..., for example batch=10.0.0.7:3333,default=[fd00::7]:3333"


@dataclass(frozen=True)
class Refused:
    """A text, and what is said of it."""

    text: str
    error: str


REFUSALS = {
    "nothing": Refused("", f"{FORM}, got ''"),
    "no equals sign": Refused("a", f"{FORM}, got 'a'"),
    "no partition": Refused("=h:1", f"{FORM}, got '=h:1'"),
    "a comma too many": Refused("a=h:1,", f"{FORM}, got ''"),
    "no port": Refused(
        "a=h",
        "partition 'a': 'h' is not an address: expected HOST:PORT, for example 127.0.0.1:3333 or [::1]:0",
    ),
    "a port that nobody connects to": Refused("a=h:0", "partition 'a': 'h:0' has no port to connect to"),
    "a partition twice": Refused("a=h:1,a=h:2", "partition 'a' is given twice"),
    "an address twice": Refused(
        "a=h:1,b=g:1,c=h:01",
        "the partitions 'a' and 'c' have the same address h:1: each partition needs a separate worker",
    ),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS)
def test_a_text_that_names_no_workers_is_refused(case: Refused) -> None:
    """One line quotes what is wrong, and says where it came from."""
    with pytest.raises(LicorneError) as caught:
        read_worker_addresses(case.text)

    assert str(caught.value) == f"--workers: {case.error}"


def test_addresses_are_read_with_spaces_and_brackets() -> None:
    """A port may have zeros in front."""
    found = read_worker_addresses("default = w1.example:3333, batch=[fd00::7]:03333")

    assert found == {"default": "w1.example:3333", "batch": "[fd00::7]:3333"}


def test_the_worker_of_a_partition_has_the_same_address_each_time() -> None:
    """And a number of its own; to stop ends nothing."""
    launcher = FixedLauncher({"a": "h:1", "b": "h:2"})
    first = launcher.start("a", threading.Event())
    launcher.lost(first)
    found = (first, launcher.start("a", threading.Event()), launcher.start("b", threading.Event()))
    launcher.stop()

    assert found == (
        LaunchedWorker("a", "h:1", 1),
        LaunchedWorker("a", "h:1", 2),
        LaunchedWorker("b", "h:2", 1),
    )


def test_a_partition_without_an_address_has_no_worker() -> None:
    """The text names it, and those that have one."""
    launcher = FixedLauncher({"b": "h:2", "a": "h:1"})

    with pytest.raises(LaunchError, match="partition 'c' has no worker: --workers names a, b"):
        launcher.start("c", threading.Event())


def test_a_worker_that_is_lost_again_and_again_is_waited_for() -> None:
    """The second time at once, then for 0.2 s, which is given up here."""
    launcher, given_up = FixedLauncher({"a": "h:1"}), threading.Event()
    for _ in range(2):
        launcher.lost(launcher.start("a", given_up))
    given_up.set()

    with pytest.raises(LicorneError, match="was given up before it started"):
        launcher.start("a", given_up)
