"""What random transcripts say, said to a scheduler that runs by itself while threads judge or place."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final
from zlib import crc32

import pytest
from support.proxy.listening import Listener, MeetingPredicateListener, PredicateListener
from support.proxy.running_scheduler import in_threads, running
from support.proxy.threads_stress import switching_every
from support.transcripts.preemption_transcripts import preemption_transcript
from support.transcripts.simulated_transcripts import simulated_transcript

from licorne import RequestError, Scheduler
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.transcripts.transcript import Line, read_transcript

SEEDS: Final = [*range(3), *[pytest.param(seed, marks=pytest.mark.soak) for seed in range(3, 150)]]


class RefusingListener(PredicateListener):
    """A judge that likes four of five nodes for an ask, for reasons of its own."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        super().predicates(args)
        if crc32(f"{args.allocationKey} {args.nodeID}".encode()) % 5 == 0:
            raise ValueError("mood")


class RandomPredicateListener(RefusingListener, MeetingPredicateListener):
    """One that is slow as well."""


@pytest.mark.parametrize("make", [simulated_transcript, preemption_transcript])
@pytest.mark.parametrize("seed", SEEDS)
def test_invariants_hold_whatever_a_manager_says(make: Callable[[int], list[str]], seed: int) -> None:
    """Gangs, required nodes, reloads and releases meet cycles in which several threads judge."""
    say_all(make(seed), RandomPredicateListener())


@pytest.mark.parametrize("make", [simulated_transcript, preemption_transcript])
@pytest.mark.parametrize("seed", SEEDS)
def test_invariants_hold_where_threads_share_the_partition(
    make: Callable[[int], list[str]], seed: int
) -> None:
    """All of that comes between threads that place in leaves of their own."""
    say_all(make(seed), Listener())


@pytest.mark.parametrize("make", [simulated_transcript, preemption_transcript])
@pytest.mark.parametrize("seed", SEEDS)
def test_other_threads_find_a_whole_partition_while_its_manager_judges(
    make: Callable[[int], list[str]], seed: int
) -> None:
    """The lock is released for as long: no step of a decision may be half done then."""
    manager = RefusingListener()
    errors: list[AssertionError] = []
    with Scheduler(engine="threads", stepped=True) as scheduler:

        def validate() -> None:
            try:
                scheduler.validate()
            except AssertionError as error:  # Raised from a predicate, it would count as a refusal.
                errors.append(error)

        manager.react = lambda text: in_threads(validate) if text.startswith("asked") else None
        for line in read_transcript("\n".join(make(seed)), "transcript"):
            with suppress(RequestError):
                say(scheduler, manager, line)
            scheduler.run_until_idle()
        assert () == scheduler.quarantined()
    assert [] == errors


def say_all(lines: list[str], manager: Listener) -> None:
    """Say all lines while four threads schedule."""
    with switching_every(1e-5), running("threads", threads=4, share_partitions=True) as scheduler:
        for line in read_transcript("\n".join(lines), "transcript"):
            with suppress(RequestError):  # Some of it is refused.
                say(scheduler, manager, line)
        assert () == scheduler.quarantined()


def say(scheduler: Scheduler, manager: Listener, line: Line) -> None:
    """Say what a line says; where time is to pass, look whether all is well."""
    match line.verb:
        case "register":
            scheduler.register_resource_manager(line.message(si.RegisterResourceManagerRequest), manager)
        case "configuration":
            scheduler.update_configuration(line.message(si.UpdateConfigurationRequest))
        case "node":
            scheduler.update_node(line.message(si.NodeRequest))
        case "application":
            scheduler.update_application(line.message(si.ApplicationRequest))
        case "allocation":
            scheduler.update_allocation(line.message(si.AllocationRequest))
        case "schedule" | "advance":
            scheduler.validate()
