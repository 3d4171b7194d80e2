"""Steering: threads of a re-run get stuck where a witness says, or there is a reason why they do not."""

from __future__ import annotations

import random
import statistics
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
from order_bugs import ORDER_BUGS
from support.lockcheck.deadlocked import LEAVE_ALONE
from support.lockcheck.lock_corpus import Guard, hold
from support.lockcheck.lock_oracle import deadlocks
from support.lockcheck.lock_programs import Program, random_programs
from support.lockcheck.recorded_programs import RunningProgram
from support.lockcheck.steered_threads import (
    Works,
    joins,
    nests_of,
    together,
    waits_without_limits,
    witnesses,
    works_of_bug,
    works_of_program,
)
from support.lockcheck.waiting_programs import (
    each_result,
    end_of_a_pool,
    event,
    in_turn,
    item,
    notification,
    promise,
    result,
    result_before_another_task,
    two_results,
    under,
)
from support.waiting import WAIT_SECONDS, wait_until

from licorne.lockcheck import Lock, LockUsageError, Rung, RWLock, session
from licorne.lockcheck.checking.acquisition_checks import witness_of
from licorne.lockcheck.confirming.confirmation import ConfirmationOutcome, confirm, steered
from licorne.lockcheck.findings.findings import Witness
from licorne.lockcheck.findings.json_files import from_json, read_witness, to_json
from licorne.lockcheck.holding.runtime import runtime

PAUSE_SECONDS = 0.5


def crossed(a: Guard, b: Guard) -> Mapping[str, Callable[[], object]]:
    """Take two locks in both orders, three times."""
    return nests_of({"one": [(a, b)] * 3, "two": [(b, a)] * 3})


def both_ways() -> Mapping[str, Callable[[], object]]:
    """Take two locks in both orders, three times."""
    return crossed(Lock("a"), Lock("b", key=1))


def ring() -> Mapping[str, Callable[[], object]]:
    """Take locks of one class that have no keys in a ring."""
    locks = [Lock("ring") for _ in range(4)]
    return nests_of({f"worker-{n}": [(locks[n], locks[(n + 1) % 4])] for n in range(4)})


def readers_and_writers() -> Mapping[str, Callable[[], object]]:
    """Read two locks in both orders; two others write one each."""
    a, b = RWLock("a"), RWLock("b")
    return nests_of(
        {
            "one": [(a.read(), b.read())],
            "two": [(b.read(), a.read())],
            "writes a": [(a.write(),)],
            "writes b": [(b.write(),)],
        }
    )


def first_for_itself() -> Mapping[str, Callable[[], object]]:
    """Take each lock alone before: who is there first must not keep the other one from getting there."""
    a, b = Lock("a"), Lock("b")
    return nests_of({"one": [(b,), (a, b)], "two": [(a,), (b, a)]})


def confirmed(works: Works, folder: Path | None = None) -> ConfirmationOutcome:
    """Confirm the one witness of some works."""
    (witness,) = witnesses(works)
    return confirm(witness, lambda: together(works), folder=folder, pause_seconds=PAUSE_SECONDS)


@pytest.mark.parametrize("works", [both_ways, ring, readers_and_writers, first_for_itself])
def test_a_deadlock_that_was_only_learned_of_comes_true_when_threads_are_steered(works: Works) -> None:
    """All that are at their points are in the finding, each with both stacks; one of them gave way."""
    outcome = confirmed(works)

    assert outcome.finding is not None, outcome.reasons
    assert outcome.finding.rung is Rung.R4
    assert len(outcome.witness.points) == len(outcome.finding.edges)
    assert all(edge.want_stack for edge in outcome.finding.edges)
    assert all(edge.hold_stack for edge in outcome.finding.edges if edge.held is not None)


def test_what_was_confirmed_is_confirmed_again_from_its_file(tmp_path: Path) -> None:
    """In the first run, at the same pass of each thread through its place."""
    first = confirmed(both_ways, tmp_path)
    assert first.finding is not None
    path = tmp_path / f"{first.finding.fingerprint}.json"
    witness = read_witness(path)
    again = confirm(witness, lambda: together(both_ways))

    assert (str(path), Rung.R4) == (first.finding.replay, witness.rung)
    assert first.witness == witness
    assert again.finding is not None
    assert 1 == again.attempts
    assert first.finding.fingerprint == again.finding.fingerprint
    assert [point.occurrence for point in witness.points] == [
        point.occurrence for point in again.witness.points
    ]


def pause_for(seconds: float) -> None:
    """Have each further pause of a steered run last so long."""
    if runtime.steering is not None:
        vars(runtime.steering).update(_pause_seconds=seconds, _left=4 * WAIT_SECONDS)


def at_the_third_pass() -> Mapping[str, Callable[[], object]]:
    """Take two locks three times in one order; the other thread begins after the second time.

    Pauses before that are over at once, and later ones last until it has come, whatever the load is.
    """
    a, b, twice = Lock("a"), Lock("b"), threading.Event()

    def one() -> None:
        pause_for(0)
        hold(a, b)
        hold(a, b)
        pause_for(WAIT_SECONDS)
        twice.set()
        hold(a, b)

    def two() -> None:
        assert twice.wait(WAIT_SECONDS)
        hold(b, a)

    return {"one": one, "two": two}


def holds_while_it_joins(*, inner_first: bool = False) -> Mapping[str, Callable[[], object]]:
    """Wait for the end of a thread that wants what is held meanwhile, or had it before, unheard."""
    a, over = Lock("a"), threading.Lock()
    over.acquire()

    def work() -> None:
        hold(a)
        over.release()

    def outer() -> None:
        inner = threading.Thread(target=work, name="inner", daemon=True)
        inner.start()
        assert not inner_first or over.acquire(timeout=WAIT_SECONDS)
        with a:
            inner.join()

    return {"outer": outer}


def test_the_wait_for_the_end_of_a_thread_is_part_of_a_deadlock(tmp_path: Path) -> None:
    """It is learned of, comes true when steered, and again from its file."""
    witness = learned(lambda: together(lambda: holds_while_it_joins(inner_first=True)))
    outcome = confirm(witness, lambda: together(holds_while_it_joins), folder=tmp_path)
    assert outcome.finding is not None, outcome.reasons
    replayed = read_witness(tmp_path / f"{witness.fingerprint}.json")

    assert ["the end of inner"] == [
        edge.wanted for edge in outcome.finding.edges if edge.execution == "outer"
    ]
    assert outcome.witness == replayed
    assert confirm(replayed, lambda: together(holds_while_it_joins)).attempts == 1


def test_locks_that_are_called_after_their_places_are_known_again_elsewhere() -> None:
    """Edits above move the line that is in their names."""

    def named_after(line: int) -> Works:
        return lambda: crossed(Lock(f"shop.py:{line}"), Lock(f"shop.py:{line + 1}"))

    (witness,) = witnesses(named_after(10))

    assert confirm(witness, lambda: together(named_after(70))).finding is not None


def test_a_thread_is_paused_no_sooner_than_at_the_pass_that_the_witness_names() -> None:
    """If it is not known which one it is, it is paused at each, and the first pauses have no result."""
    (witness,) = witnesses(at_the_third_pass)
    points = [replace(point, occurrence=3 if point.role == "one" else 1) for point in witness.points]
    known = replace(witness, points=tuple(points))
    with steered(known, pause_seconds=WAIT_SECONDS) as (_, steering):
        together(at_the_third_pass)

    assert {1, 3} == {one.times for one in steering.stuck}
    again = confirm(witness, lambda: together(at_the_third_pass))
    assert again.finding is not None


def gated() -> Mapping[str, Callable[[], object]]:
    """Take two locks in both orders, now under a gate."""
    gate, a, b = Lock("gate"), Lock("a"), Lock("b", key=1)
    return nests_of({"one": [(gate, a, b)] * 3, "two": [(gate, b, a)] * 3})


def in_one_order() -> Mapping[str, Callable[[], object]]:
    """Take two locks in one order, now."""
    a, b = Lock("a"), Lock("b", key=1)
    return nests_of({"one": [(a, b)], "two": [(a, b)]})


def one_thread() -> Mapping[str, Callable[[], object]]:
    """Take two locks in one order on the only thread."""
    a, b = Lock("a"), Lock("b", key=1)
    return nests_of({"one": [(a, b)]})


@pytest.mark.parametrize(
    ("works", "reason"),
    [
        (gated, "waited for gate #"),
        (in_one_order, "two never came to its place, where it holds b 1 [W] and wants a [W] at "),
        (one_thread, "two never took a lock of these classes"),
        (dict, "one never took a lock of these classes"),
    ],
)
def test_what_cannot_come_true_is_left_at_its_rung_with_the_reason(works: Works, reason: str) -> None:
    """A witness of the program as it was is tried on the program as it is: nothing is invented."""
    (witness,) = witnesses(both_ways)
    outcome = confirm(witness, lambda: together(works), pause_seconds=0.02)

    assert outcome.finding is None
    assert any(one.startswith(reason) or reason in one for one in outcome.reasons), outcome.reasons


def test_units_of_one_thread_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no other thread runs, nobody can come: that is seen at once."""
    mine = [threading.current_thread()]  # those of pytest-xdist and others do not come
    monkeypatch.setattr(threading, "enumerate", lambda: mine)
    (witness,) = witnesses(both_ways)
    outcome = confirm(witness, lambda: witnesses(both_ways), pause_seconds=20)

    assert outcome.finding is None
    assert any("there was no other thread" in one for one in outcome.reasons)


def test_threads_that_come_one_after_the_other_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever started them waits for the end of each: nobody else can come, and that is seen at once."""
    (witness,) = witnesses(both_ways)
    both = [threading.current_thread()]
    monkeypatch.setattr(threading, "enumerate", lambda: both)  # likewise

    def run() -> None:
        for name, work in both_ways().items():
            both[1:] = [threading.Thread(target=work, name=name)]
            both[1].start()
            both[1].join()

    outcome = confirm(witness, run, pause_seconds=WAIT_SECONDS)

    assert outcome.finding is None
    assert any("all waited for paused ones" in one for one in outcome.reasons)


def test_one_run_is_steered_at_a_time() -> None:
    """The second one is refused, and the first one goes on."""
    (witness,) = witnesses(both_ways)
    with (
        steered(witness),
        pytest.raises(LockUsageError, match="another run is being steered"),
        steered(witness),
    ):
        pass
    with steered(witness) as (_, steering):
        together(both_ways)

    assert steering.confirmed is not None


# ---------------------------------------------------------------------------------------- how many


def programs(seed: int, count: int) -> Iterator[tuple[Witness, Works]]:
    """Yield what is learned of random programs that come to a standstill in some schedule."""
    chance = random.Random(seed)  # noqa: S311 - a seed to repeat
    found = (
        one
        for one in random_programs(chance)
        if waits_without_limits(one) and not joins(one) and deadlocks(one)
    )
    for program in islice(found, count):
        works = works_of_program(program)
        for witness in witnesses(works):
            yield witness, works


def under_a_gate(works: Works) -> Works:
    """Let each thread hold one more lock around all that it does."""

    def guarded(gate: Guard, work: Callable[[], object]) -> None:
        with gate:
            work()

    def gated() -> Mapping[str, Callable[[], object]]:
        gate = Lock("gate")
        return {name: partial(guarded, gate, work) for name, work in works().items()}

    return gated


def tried(
    cases: Iterable[tuple[Witness, Works]], pause_seconds: float = PAUSE_SECONDS
) -> list[ConfirmationOutcome]:
    """Try to confirm each."""
    return [
        confirm(witness, lambda works=works: together(works), pause_seconds=pause_seconds)  # type: ignore[misc] # bound now
        for witness, works in cases
    ]


def share(outcomes: list[ConfirmationOutcome]) -> float:
    """Return how many of them were confirmed, of one."""
    return sum(outcome.finding is not None for outcome in outcomes) / len(outcomes)


def assert_come_true(outcomes: list[ConfirmationOutcome]) -> None:
    """Assert that nearly all were confirmed, and most of them within 50 milliseconds of the first pause."""
    assert share(outcomes) >= 0.99, [outcome.reasons for outcome in outcomes if outcome.finding is None]
    assert statistics.median(outcome.seconds for outcome in outcomes) < 0.05


def corpus() -> Iterator[tuple[Witness, Works]]:
    """Yield what is learned of the known bugs that threads can really deadlock in."""
    for bug in ORDER_BUGS:
        if bug.rung is Rung.R2:
            works = works_of_bug(bug)
            for witness in witnesses(works):
                yield witness, works


def test_the_known_bugs_come_true_when_they_are_steered() -> None:
    """Inversions, rings of locks, and readers with writers between them, each in threads of its own."""
    outcomes = tried(corpus())

    assert len(outcomes) >= sum(bug.rung is Rung.R2 for bug in ORDER_BUGS)
    assert_come_true(outcomes)


@pytest.mark.parametrize(("seed", "count"), [(3, 8), pytest.param(4, 200, marks=pytest.mark.soak, id="many")])
def test_random_programs_that_can_deadlock_do_so_when_they_are_steered(seed: int, count: int) -> None:
    """In at most three runs each."""
    assert_come_true(tried(programs(seed, count)))


def together_too(program: Program, *, one_by_one: bool = False) -> None:
    """Run a program that may have joins."""
    RunningProgram(program, one_by_one=one_by_one).run()


def test_what_is_learned_of_programs_with_joins_comes_true() -> None:
    """Each cycle, of locks and of joins under locks, in at most three runs."""
    chance = random.Random(2)  # noqa: S311 - a seed to repeat
    found = (one for one in random_programs(chance, joins_inside=True) if waits_without_limits(one))
    outcomes = []
    for program in islice(found, 40):
        outcomes += [
            confirm(witness, partial(together_too, program), pause_seconds=PAUSE_SECONDS)
            for witness in learned_of(partial(together_too, program, one_by_one=True))
        ]

    assert len(outcomes) > 5
    assert [] == [outcome.reasons for outcome in outcomes if outcome.finding is None]
    assert any("the end of" in str(point.wanted) for outcome in outcomes for point in outcome.witness.points)


def test_nothing_comes_true_of_programs_that_a_gate_guards() -> None:
    """Steered to what they could do without it, they go on, and the reasons name the gate."""
    cases = [(witness, under_a_gate(works)) for witness, works in programs(seed=6, count=5)]
    outcomes = tried(cases, pause_seconds=0.2)

    assert {None} == {outcome.finding for outcome in outcomes}
    assert all("gate" in " ".join(outcome.reasons) for outcome in outcomes)


# ------------------------------------------------------------------------ waits that anything might end


def wait_until_both_wait(done: threading.Event) -> None:
    """Set an event as soon as a thread waits for it and another one for the lock of that."""
    wait_until(lambda: sum(execution.wait is not None for execution in runtime.all_executions()) > 1)
    done.set()


def learned_of(program: Callable[[], object]) -> list[Witness]:
    """Return the witnesses of what a run of a program learns."""
    with session(on=LEAVE_ALONE) as opened:
        program()
    return list(filter(None, map(witness_of, opened.findings)))


def learned(program: Callable[[], object]) -> Witness:
    """Return the first of them."""
    return learned_of(program)[0]


@pytest.mark.parametrize(
    "program",
    [event, item, promise, result, result_before_another_task, each_result, end_of_a_pool, notification],
)
def test_threads_are_steered_to_where_they_wait_for_each_other(
    program: Callable[[], None], tmp_path: Path
) -> None:
    """The file of the witness has what is waited for, and so has the one for a replay."""
    witness = learned(program)
    outcome = confirm(from_json(to_json(witness), "it"), program, folder=tmp_path)

    assert outcome.finding is not None, outcome.reasons
    assert Rung.R4 is outcome.finding.rung
    assert outcome.finding.replay is not None
    assert {str(point.wanted) for point in witness.points} == {
        str(point.wanted) for point in from_json(to_json(witness), "it").points
    }


def test_what_is_stuck_likewise_after_the_first_is_no_other_deadlock() -> None:
    """A second task waits for the lock when the first one has given way."""
    witness = learned(two_results)
    with steered(witness) as (opened, _):
        two_results()

    (finding,) = [one for one in opened.findings if one.rung >= Rung.R2]
    assert (Rung.R4, 2) == (finding.rung, finding.count)


def test_a_wait_that_something_else_ends_is_no_deadlock() -> None:
    """The witness says who sets the event; in the steered run a third thread does, after all stand there."""
    witness = learned(event)

    def program() -> None:
        lock, done = Lock("lock"), threading.Event()
        others = [threading.Thread(target=wait_until_both_wait, args=(done,), name="third")]
        for thread in others:
            thread.start()
        in_turn(under(lock, done.set), under(lock, done.wait))
        for thread in others:
            thread.join(WAIT_SECONDS)

    outcome = confirm(witness, program, pause_seconds=0.05)

    assert outcome.finding is None
