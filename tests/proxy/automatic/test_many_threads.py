"""Threads that submit at once, and random transcripts, under load: nothing is lost or placed twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final
from zlib import crc32

import pytest
from support.proxy.listening import Listener, MeetingPredicateListener, PredicateListener
from support.proxy.manager_requests import (
    application_request,
    ask_request,
    keys,
    node_request,
    release_request,
)
from support.proxy.running_scheduler import begin, in_threads, running
from support.proxy.threads_stress import stress, stress_of_one_partition, switching_every
from support.transcripts.preemption_transcripts import preemption_transcript
from support.transcripts.simulated_transcripts import simulated_transcript

from licorne import RequestError, Scheduler
from licorne.actors.locks.guards import LOCK_ORDER
from licorne.lockcheck import session
from licorne.proxy.play.transcripts.transcript import Line, read_transcript
from licorne.proxy.si import si_pb2 as si


def test_nothing_is_lost_when_many_threads_submit(scheduler: Scheduler, listener: Listener) -> None:
    """Every ask is placed or answered, once."""
    begin(scheduler, listener)
    scheduler.update_application(application_request("app-0", "app-1", "app-2"))

    def submit(number: int) -> None:
        for wave in range(15):
            name = f"app-{number}" if wave % 3 else "nobody"
            scheduler.update_allocation(ask_request(*keys(5, f"{number}-{wave}"), application=name))

    in_threads(*[partial(submit, number) for number in range(3)])
    listener.wait_for_count("placed ", 3 * 10 * 5)
    listener.wait_for_count("rejected ", 3 * 5 * 5)

    expected = {f"{number}-{wave}-{ask}" for number in range(3) for wave in range(15) for ask in range(5)}
    answered = [text.partition(": ")[0] for text in listener.all("rejected ")] + listener.all("placed ")
    assert dict.fromkeys(expected, 1) == Counter(answered)


def test_nothing_is_lost_when_asks_nodes_and_releases_come_at_once(
    scheduler: Scheduler, listener: Listener
) -> None:
    """What was released makes room for what waits, until all have had their turn."""
    begin(scheduler, listener, memory=10)

    def release(text: str) -> None:
        if text.startswith("placed "):
            scheduler.update_allocation(release_request(text.removeprefix("placed ")))

    listener.react = release

    def add_nodes() -> None:
        for number in range(10):
            scheduler.update_node(node_request(f"more-{number}", memory=3))

    def ask(start: str) -> None:
        for wave in range(10):
            scheduler.update_allocation(ask_request(*keys(10, f"{start}-{wave}")))

    in_threads(add_nodes, partial(ask, "left"), partial(ask, "right"))
    listener.wait_for_count("released ", 200)

    assert dict.fromkeys(listener.all("placed "), 1) == Counter(listener.all("placed "))
    assert 200 == len(listener.all("placed "))


def test_managers_that_submit_at_once_get_callbacks_for_their_own(scheduler: Scheduler) -> None:
    """Each registers on a thread of its own and is served."""
    listeners = [Listener() for _ in range(4)]

    def work(number: int) -> None:
        begin(scheduler, listeners[number], rm_id=f"rm-{number}")
        scheduler.update_allocation(ask_request(*keys(30, f"ask-{number}"), rm_id=f"rm-{number}"))
        listeners[number].wait_for_count("placed ", 30)

    in_threads(*[partial(work, number) for number in range(4)])

    expected = [keys(30, f"ask-{number}") for number in range(4)]
    assert expected == [listener.all("placed ") for listener in listeners]


# --------------------------------------------------------------------------------- the engine `threads`


RUNS = [
    pytest.param(range(1), 40, None, id="short"),
    pytest.param(range(1), 25, 1e-6, id="short, eager switches"),
    pytest.param(range(1, 15), 200, None, id="long", marks=pytest.mark.soak),
    pytest.param(range(1, 15), 100, 1e-6, id="long, eager switches", marks=pytest.mark.soak),
]


@pytest.mark.parametrize(("seeds", "rounds", "interval"), RUNS)
def test_invariants_hold_while_eight_threads_submit_and_kill(
    seeds: range, rounds: int, interval: float | None
) -> None:
    """Applications and nodes are killed at random; nothing is lost, counted twice or quarantined."""
    with switching_every(interval):
        for seed in seeds:
            assert stress(rounds, seed) > 2


@pytest.mark.parametrize(("seeds", "rounds", "interval"), RUNS)
def test_invariants_hold_while_predicates_run(seeds: range, rounds: int, interval: float | None) -> None:
    """The partition changes while the RM is asked."""
    with switching_every(interval):
        for seed in seeds:
            assert stress(rounds, seed, judged=True) > 2


@pytest.mark.parametrize(("seeds", "rounds", "interval"), RUNS)
def test_invariants_hold_while_threads_run_predicates_in_one_partition(
    seeds: range, rounds: int, interval: float | None
) -> None:
    """Several calls are under way at once, and cycles pass over the asks that they are about."""
    with switching_every(interval):
        for seed in seeds:
            assert stress_of_one_partition(rounds, seed) > 1


@pytest.mark.parametrize("rounds", [15, pytest.param(300, marks=pytest.mark.soak)])
@pytest.mark.parametrize("judged", [False, True])
def test_the_lock_checker_finds_nothing(rounds: int, judged: bool) -> None:  # noqa: FBT001 - a parameter
    """Neither an order, nor blocking under a lock, nor a cycle."""
    with session(LOCK_ORDER) as checked:
        assert stress(rounds, seed=3, judged=judged) > 2
        if judged:
            assert stress_of_one_partition(rounds, seed=3) > 1

    assert [] == list(checked.findings), checked.report_text()
    assert [] == checked.faults


# ----------------------------------------------------------------------------------- random transcripts


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
