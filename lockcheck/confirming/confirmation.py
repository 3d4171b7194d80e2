"""Confirming a witness: the program runs again, steered, up to three times, until its threads are stuck.

A deadlock that is confirmed is broken as any real one is: a victim raises `DeadlockError`, the others go on.
The confirmed witness is written again, so that `replay` can force the same.

Anything may end a wait for an event, an item of a queue or a notification, so such a wait has no edge in the
wait-for graph. In a steered run it has one: the witness tells who signals later. It counts after all have
stood there for a while, and is made in slices meanwhile, so that a signal from elsewhere still ends it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar, final

from ..checking.acquisition_checks import points_of_participants, witness_of
from ..checking.policy import NOTE_ALL
from ..checking.waiting import wait_in_slices
from ..findings.findings import Edge, Finding, SchedulingPoint, SourcePlace, Witness, WitnessLock
from ..findings.foreign import ByIdentity
from ..findings.json_files import with_replay
from ..findings.terms import DeadlockError, Frame, Level, LockUsageError, Rung
from ..holding.chains import Execution
from ..holding.runtime import LATCH, local, runtime
from ..interception.events import NOTIFICATION
from ..interception.hand_overs import is_checked
from ..interception.hooks import Hooks
from ..interception.queues import ALL_DONE, ITEM, ROOM
from ..order.order import Order
from ..sessions.session import Session
from .point_matching import ATTEMPTS_MAX, edges_of
from .steering import PAUSE_SECONDS, Steering

Result = TypeVar("Result")


@final
class _ThingWait:
    """The wait for something that other executions signal."""

    endless = True
    breakable = True

    def __init__(self, text: str) -> None:
        self.signal = text

    def needs(self, waiting: Execution) -> list[list[Execution]]:
        """Return the execution that signals it by the witness, if all of that stand still."""
        steering = runtime.steering
        return [steering.following(waiting)] if steering is not None else []

    def describe(self) -> str:
        """Return what is waited for, in words."""
        return self.signal


def _awaited(text: str, attempt: Callable[[float], Result]) -> Result:
    """Wait for a thing by attempts of some seconds, until one returns something true; return that."""
    found: list[Result] = []

    def once(seconds: float) -> bool:
        with suppress(queue.Empty, queue.Full):
            found[:] = [attempt(seconds)]
        return any(found)

    wait_in_slices(local.execution, _ThingWait(text), once, -1)
    return found[0]


def _event_wait(method: Callable[..., bool], self: object, timeout: float | None = None) -> bool:
    if timeout is not None or not is_checked():
        return method(self, timeout)
    return _awaited("an event", lambda seconds: method(self, seconds))


_notified: Final[ByIdentity[int]] = ByIdentity()
"""How often each condition was notified."""


def _notify(method: Callable[..., None], self: threading.Condition, n: int = 1) -> None:
    _notified.put(self, (_notified.get(self) or 0) + 1)
    method(self, n)


def _condition_wait(
    method: Callable[..., bool], self: threading.Condition, timeout: float | None = None
) -> bool:
    """Wrap the wait of a condition: a notification counts too that comes just when a slice ends."""
    if timeout is not None or not is_checked():
        return method(self, timeout)
    before = _notified.get(self)
    return _awaited(NOTIFICATION, lambda seconds: method(self, seconds) or _notified.get(self) != before)


def _wait_for(
    method: Callable[..., object],
    self: threading.Condition,
    predicate: Callable[[], object],
    timeout: float | None = None,
) -> object:
    if timeout is not None or not is_checked():
        return method(self, predicate, timeout)
    return _awaited(NOTIFICATION, lambda seconds: method(self, predicate, seconds))


def _get(
    method: Callable[..., object],
    self: queue.Queue[object],
    block: bool = True,  # noqa: FBT001, FBT002 - as in queue
    timeout: float | None = None,
) -> object:
    if not block or timeout is not None or not is_checked():
        return method(self, block, timeout)
    return _awaited(ITEM, lambda seconds: (method(self, timeout=seconds),))[0]


def _put(
    method: Callable[..., None],
    self: queue.Queue[object],
    item: object,
    block: bool = True,  # noqa: FBT001, FBT002 - as in queue
    timeout: float | None = None,
) -> None:
    def attempt(seconds: float) -> bool:
        method(self, item, timeout=seconds)
        return True

    if not block or timeout is not None or self.maxsize <= 0 or not is_checked():
        method(self, item, block, timeout)
    else:
        _awaited(ROOM, attempt)


def _join(method: Callable[[queue.Queue[object]], None], self: queue.Queue[object]) -> None:
    def attempt(seconds: float) -> bool:
        with self.all_tasks_done:
            return self.all_tasks_done.wait_for(lambda: self.unfinished_tasks == 0, seconds)

    if is_checked():
        _awaited(ALL_DONE, attempt)
    method(self)


def _put_all() -> None:
    HOOKS.wrap(threading.Event, "wait", _event_wait)
    HOOKS.wrap(threading.Condition, "notify", _notify)
    HOOKS.wrap(threading.Condition, "wait", _condition_wait)
    HOOKS.wrap(threading.Condition, "wait_for", _wait_for)
    HOOKS.wrap(queue.Queue, "get", _get)
    HOOKS.wrap(queue.Queue, "put", _put)
    HOOKS.wrap(queue.Queue, "join", _join)


HOOKS: Final = Hooks(_put_all)


WAYS_MAX: Final = 4
"""How many sets of threads are tried at most for the same cycle."""
OBSTACLES_MAX: Final = 4
"""How many obstacles are reported, the most frequent ones."""


@dataclass(frozen=True, slots=True)
class ConfirmationOutcome:
    """The outcome of an attempt, or of several."""

    finding: Finding | None
    """The finding at R4, if the threads were stuck."""
    reasons: tuple[str, ...]
    """Why they were not stuck, if they were not."""
    witness: Witness
    """The witness for the next attempt, or for a replay."""
    attempts: int
    seconds: float = 0.0
    """From the first pause that led there until the threads were found to be stuck."""


def confirm(
    witness: Witness,
    run: Callable[[], object],
    *,
    folder: Path | None = None,
    order: Order | None = None,
    name: str | None = None,
    pause_seconds: float = PAUSE_SECONDS,
    confirmed: Callable[[Finding], None] = lambda _: None,
) -> ConfirmationOutcome:
    """Run something again, steered, until a witness is confirmed or the attempts are over.

    Args:
        witness: what is to be confirmed.
        run: starts the threads and waits for them; it may raise a `DeadlockError`, which is ignored here.
        folder: the folder for the confirmed witness; without one it is not written.
        order: the declared order, if any.
        name: the name of the sessions.
        pause_seconds: how long a thread is paused at most in the first attempt.
        confirmed: called with the finding at R4, before a thread is made to give way.
    """

    def once(aim: Witness, attempt: int) -> ConfirmationOutcome:
        with steered(
            aim,
            attempt=attempt,
            folder=folder,
            order=order,
            name=name,
            pause_seconds=pause_seconds,
            confirmed=confirmed,
        ) as (_, steering):
            try:
                run()
            except DeadlockError as error:
                if error.finding is None or not steering.stuck:
                    raise
        return outcome_of(steering)

    return in_attempts(witness, once)


def in_attempts(witness: Witness, once: Callable[[Witness, int], ConfirmationOutcome]) -> ConfirmationOutcome:
    """Attempt to confirm a witness until it is confirmed or the attempts are over.

    Args:
        witness: what is to be confirmed.
        once: makes an attempt, given the witness that the one before has returned, and its number, from one.
    """
    for attempt in range(1, ATTEMPTS_MAX + 1):
        outcome = once(witness, attempt)
        witness = outcome.witness
        if outcome.finding is not None:
            break
    return outcome


@contextmanager
def steered(
    witness: Witness,
    *,
    attempt: int = 1,
    folder: Path | None = None,
    order: Order | None = None,
    name: str | None = None,
    pause_seconds: float = PAUSE_SECONDS,
    confirmed: Callable[[Finding], None] = lambda _: None,
) -> Iterator[tuple[Session, Steering]]:
    """Open a session that steers what runs in it.

    Args:
        witness: what is to be confirmed.
        attempt: which attempt it is, from one.
        folder: as for `confirm`.
        order: as for `confirm`.
        name: as for `confirm`.
        pause_seconds: as for `confirm`.
        confirmed: as for `confirm`.

    Raises:
        LockUsageError: another run is being steered.
    """
    with (
        steering_to(
            witness, attempt=attempt, folder=folder, pause_seconds=pause_seconds, confirmed=confirmed
        ) as steering,
        Session(order, level=Level.CONFIRM, on=NOTE_ALL, name=name) as opened,
        _victims_are_silent(),
    ):
        yield opened, steering


@contextmanager
def steering_to(
    witness: Witness,
    *,
    attempt: int = 1,
    folder: Path | None = None,
    pause_seconds: float = PAUSE_SECONDS,
    confirmed: Callable[[Finding], None] = lambda _: None,
) -> Iterator[Steering]:
    """Steer what runs in the active session; arguments as for `steered`.

    Raises:
        LockUsageError: another run is being steered.
    """

    def make_finding(of: Steering) -> Finding:
        finding = _finding(of, folder)
        confirmed(finding)
        return finding

    steering = Steering(witness, make_finding, attempt=attempt, pause_seconds=pause_seconds)
    with LATCH:
        if runtime.steering is not None:
            raise LockUsageError("another run is being steered")
        runtime.steering = steering
    HOOKS.install()
    try:
        yield steering
    finally:
        HOOKS.uninstall()
        runtime.steering = None


def ways_to_confirm(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Return the findings that have a witness, the strongest first, in groups of one fingerprint.

    The threads of a group differ: several may take the same step.
    """
    found: dict[str, dict[frozenset[SchedulingPoint], Finding]] = {}
    for finding in sorted(findings, key=lambda one: -one.rung):
        if witness_of(finding) is not None:
            ways = found.setdefault(finding.fingerprint, {})
            ways.setdefault(_same_in_every_run(finding.points), finding)
    return [list(ways.values())[:WAYS_MAX] for ways in found.values()]


def _same_in_every_run(points: Iterable[SchedulingPoint]) -> frozenset[SchedulingPoint]:
    """Return points without the details in which two runs differ."""
    return frozenset(
        replace(
            point,
            occurrence=None,
            held=tuple(replace(held, number=0) for held in point.held),
            wanted=replace(point.wanted, number=0) if isinstance(point.wanted, WitnessLock) else point.wanted,
        )
        for point in points
    )


def finding_of(witness: Witness) -> Finding:
    """Return the finding of a witness, as far as it has one; a confirmed one has to be confirmed anew."""
    edges = tuple(
        _edge_at(point, point.shared_lock(before))
        for point, before in zip(witness.points, (witness.points[-1], *witness.points), strict=False)
    )
    return Finding(
        Rung.R2, witness.kind, witness.text, edges, fingerprint=witness.fingerprint, points=witness.points
    )


def _edge_at(point: SchedulingPoint, shared_lock: WitnessLock | None) -> Edge:
    return Edge(
        execution=point.execution,
        held=str(shared_lock) if shared_lock is not None else None,
        wanted=str(point.wanted),
        all_held=tuple(map(str, point.held)),
        hold_stack=(_frame(shared_lock.place),) if shared_lock is not None else (),
        want_stack=(_frame(point.wanted.place),),
    )


def _frame(place: SourcePlace) -> Frame:
    return Frame(place.file, place.line, place.function, place.source)


def outcome_of(steering: Steering) -> ConfirmationOutcome:
    """Return the outcome of a steered run, or its outcome so far."""
    witness = steering.witness
    if steering.confirmed is not None:
        confirmed = _came_true(steering)
        return ConfirmationOutcome(steering.confirmed, (), confirmed, steering.attempt, steering.seconds)
    points = tuple(
        replace(point, late=point.late or place in steering.late)
        for place, point in enumerate(witness.points)
    )
    aside = tuple(sorted({*witness.aside, *steering.aside}))
    next_one = replace(witness, points=points, aside=aside)
    return ConfirmationOutcome(None, tuple(_reasons(steering)), next_one, steering.attempt)


def raised(finding: Finding, outcome: ConfirmationOutcome) -> Finding:
    """Return a finding after the attempts to confirm it: at R4, or with the reasons why not.

    A deadlock that happened stays at R5, and gets the replay file.

    Args:
        finding: what was to be confirmed.
        outcome: what became of that.
    """
    if outcome.finding is not None and finding.rung is Rung.R5:
        return replace(finding, replay=outcome.finding.replay)
    if outcome.finding is not None:
        return replace(outcome.finding, test=finding.test, count=finding.count)
    runs = "a steered re-run" if outcome.attempts == 1 else f"{outcome.attempts} steered re-runs"
    message = f"not confirmed in {runs}" if outcome.attempts else "not confirmed"
    return replace(finding, why=(*finding.why, message, *outcome.reasons))


def _finding(steering: Steering, folder: Path | None) -> Finding:
    witness = _came_true(steering)
    edges = edges_of(steering.stuck)
    steps = ", then ".join(f"{edge.held or 'nothing'} -> {edge.wanted}" for edge in edges)
    finding = Finding(
        Rung.R4,
        witness.kind,
        f"{len(edges)} threads were stuck: {steps}",
        edges,
        (
            f"in steered re-run {steering.attempt} the threads were stuck so, until one was made to give way",
            f"they were stuck {steering.seconds * 1000:.0f} ms after the first of them was paused",
        ),
        fingerprint=witness.fingerprint,
        points=witness.points,
    )
    return with_replay(finding, witness, folder)


def _came_true(steering: Steering) -> Witness:
    """Return the witness of the moment when the threads were stuck."""
    witness = steering.witness
    points = tuple(
        replace(point, late=before.late)
        for point, before in zip(points_of_participants(steering.stuck), witness.points, strict=True)
    )
    return replace(witness, rung=Rung.R4, points=points)


def _reasons(steering: Steering) -> Iterator[str]:
    """Yield the reasons why threads were not stuck: which were missing, and the obstacles."""
    came = {place for _, place in steering.came}
    if steering.participants:
        yield "they stood at their places, but did not wait for each other"
    for place, point in enumerate(steering.witness.points):
        if place not in came:
            known = point.role in steering.matching.roles
            message = "never came to its place" if known else "never took a lock of these classes"
            yield f"{point.role} {message}, where it {point.holds_and_wants} at {point.wanted.place}"
    for obstacle, times in steering.obstacles.most_common(OBSTACLES_MAX):
        yield obstacle if times == 1 else f"{obstacle} ({times} times)"
    if len(came) == len(steering.witness.points) and not steering.participants and not steering.obstacles:
        yield "they all came to their places, but never at the same time"


@contextmanager
def _victims_are_silent() -> Iterator[None]:
    """Suppress the reports of threads that end with a `DeadlockError`: it is expected."""
    before = threading.excepthook

    def hook(given: threading.ExceptHookArgs) -> None:
        if not isinstance(given.exc_value, DeadlockError):
            before(given)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = before
