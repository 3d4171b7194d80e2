"""The check of a new edge: contracts, the declared order, the learned graph; the witness of what it finds.

The witness names the scheduling points at which executions would be stuck, or are.

Ends that are waited for are checked too. Locks that an execution takes before such an end, it could as well
take while the other one waits for the end already. So the end counts as a lock that the execution holds all
along and the waiting one requests: cycles over it are found as any others, also if the end happened to be
over when it was waited for. A wait for an end without a lock is remembered: it comes before the end of the
one that waits. A steered run has no such ends: it looks for threads that are stuck, not for possible cycles.

Locks do not count of which the one that waits may know that they were taken: by what it got since from the
execution that took them, directly or not (`knowledge.py`). And once any execution knows that the end is over,
others may know it too: then none has to wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

from ..findings.findings import (
    Edge,
    Ending,
    Finding,
    SchedulingPoint,
    SourcePlace,
    Witness,
    WitnessLock,
    fingerprint_of_cycle,
    fingerprint_of_steps,
    role_of,
    waiting_order,
)
from ..findings.terms import ClassEdge, Frame, Kind, Level, Rung
from ..holding.chains import Acquisition, Execution, TrieNode, class_edge_text, held_nodes
from ..holding.runtime import LATCH, fails_open, local, runtime
from ..holding.stacks import RawStack, caller, capture, resolve
from .cycles import Cycle, find_cycle
from .forks import check_fork
from .graph import Dependency, EndIdentity, HeldLock
from .knowledge import Counts
from .watch import Watch, current

_NOWHERE = Frame("?", 0, "?", "")
"""The place of what has no stack."""


def witness_of(finding: Finding) -> Witness | None:
    """Return the witness of a finding, if it has one: if it is unguarded, or stronger."""
    if not finding.points or finding.rung < Rung.R2:
        return None
    return Witness(
        finding.fingerprint,
        finding.rung,
        finding.kind,
        finding.text,
        finding.points,
        waiting_order(finding.points),
    )


def points_of_cycle(path: Sequence[Dependency]) -> tuple[SchedulingPoint, ...]:
    """Return the points at which the executions of a cycle would be stuck.

    An asker waits for an answer, and others for an end, so a run is steered to that, not to a lock.
    """
    witness_lock = WitnessLocks().of_acquisition
    return tuple(
        SchedulingPoint(
            execution=one.execution_name,
            role=role_of(one.execution_name),
            held=tuple(witness_lock(held.acquisition, held.stack) for held in one.locks),
            wanted=_ending(one, following) or witness_lock(one.wanted, one.stack),
        )
        for one, following in zip(path, (*path[1:], path[0]), strict=True)
    )


def _ending(waiting: Dependency, following: Dependency) -> Ending | None:
    """Return the object of the wait, if it is not a lock."""
    lock = waiting.wanted.lock
    if not lock.answers and not isinstance(lock, EndIdentity):
        return None
    what = lock.signal if isinstance(lock, EndIdentity) else f"the answer of {lock.name}"
    return Ending(role_of(following.execution_name), _innermost(waiting.stack), what)


def points_of_participants(participants: Sequence[BlockedExecution]) -> tuple[SchedulingPoint, ...]:
    """Return the points at which executions are stuck."""
    witness_lock = WitnessLocks().of_acquisition
    return tuple(
        SchedulingPoint(
            execution=one.execution,
            role=role_of(one.execution),
            held=tuple(witness_lock(held.acquisition, held.stack) for held in one.held),
            wanted=witness_lock(one.wanted, one.stack)
            if one.wanted is not None
            else Ending(role_of(following.execution), _innermost(one.stack), one.signal),
            occurrence=one.times,
        )
        for one, following in zip(participants, (*participants[1:], participants[0]), strict=True)
    )


@final
class WitnessLocks:
    """The locks of one witness: equal locks have equal numbers, from zero."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def of_acquisition(self, acquisition: Acquisition, stack: RawStack) -> WitnessLock:
        """Return the witness lock of an acquisition."""
        lock = acquisition.lock
        number = self._numbers.setdefault(lock.serial, len(self._numbers))
        return WitnessLock(number, lock.name, lock.key_text, acquisition.mode, _innermost(stack))


def _innermost(stack: RawStack) -> SourcePlace:
    """Return the place of a stack, so that another run can find it again."""
    frame = next(iter(resolve(stack[:1])), _NOWHERE)
    return SourcePlace(frame.file, frame.function, frame.source, frame.line)


@final
@dataclass(frozen=True, slots=True)
class BlockedExecution:
    """An execution that is stuck, with what it holds and waits for."""

    execution: str
    held: tuple[HeldLock, ...]
    """Outermost first."""
    wanted: Acquisition | None
    """`None` if it waits for the end of a thread."""
    wait_text: str
    """The object of its wait, in words."""
    signal: str | None
    """The end of its wait, in words, if that is neither the release of a lock nor the end of a thread."""
    stack: RawStack
    times: int | None
    """How often it had come there, if that was counted."""


def blocked_execution(
    execution: Execution, wanted: Acquisition | None, times: int | None = None
) -> BlockedExecution:
    """Return what an execution holds and waits for now."""
    held = [
        HeldLock(node.acquisition, node.stack, fresh=False)
        for node in held_nodes(execution.node)
        if node.acquisition
    ]
    return BlockedExecution(
        execution=execution.name,
        held=tuple(reversed(held)),
        wanted=wanted,
        wait_text=execution.wait.describe() if execution.wait is not None else str(wanted),
        signal=execution.wait.signal if execution.wait is not None else None,
        stack=execution.stack,
        times=times,
    )


def check_acquisition(watch: Watch, node: TrieNode, held: Sequence[TrieNode]) -> bool:
    """Check an acquisition that is new; `held` is what its execution holds, innermost first.

    Returns:
        Whether nothing is wrong, so that the edge need not be checked again.

    Raises:
        LockCheckError, LockOrderWarning: that is the policy for what was found.
    """
    sound = _keeps_leaf(watch, node)
    if not watch.policy.order_disabled:
        sound = _keeps_order(watch, node, held) and sound
        if watch.policy.level >= Level.FULL:
            _learn(watch, node, held)
            check_fork(watch, node)
            wanted = node.acquisition
            mine = [one for one in held if wanted and one.acquisition and one.acquisition.lock is wanted.lock]
            if mine and wanted is not None and wanted.attempt == "block":
                advise_two(watch, node, f"a permit of {wanted.lock}", mine[:1])
    return sound


def advise_two(watch: Watch, node: TrieNode, what: str, holders: Sequence[TrieNode] = ()) -> None:
    """Note that an execution takes a second one of what only so many executions can have at a time.

    Args:
        watch: takes the finding.
        node: has the place where it does so.
        what: one of them, in words.
        holders: where it took the first one, if that is known.
    """
    text = f"{node.execution.name} takes {what} while it has one"
    why = ("if all are taken by those that want a second one, each waits for another: take both at once",)
    watch.report_step(Kind.RECURSION, text, node, holders, why=why, rung=Rung.R1)


def _keeps_leaf(watch: Watch, node: TrieNode) -> bool:
    if node.execution.leaf is None:
        return True
    text = f"{node.execution.leaf} is marked @leaf, but takes {node.acquisition}"
    watch.report_step(Kind.CONTRACT, text, node, list(_parents(node))[:1], clause="@leaf")
    return False


def _parents(node: TrieNode) -> Sequence[TrieNode]:
    return [node.parent] if node.parent is not None and node.parent.acquisition is not None else []


def _keeps_order(watch: Watch, node: TrieNode, held: Sequence[TrieNode]) -> bool:
    """Compare an acquisition with the declared order; to only try, or to take a fresh lock, is allowed."""
    wanted = node.acquisition
    order = watch.policy.order
    if order is None or wanted is None or wanted.attempt == "try" or wanted.lock.fresh_for is not None:
        return True
    sound = True
    for holder in held:
        acquisition = holder.acquisition
        if acquisition is None or acquisition.lock is wanted.lock:
            continue
        objection = order.check(
            (acquisition.lock.name, acquisition.mode, acquisition.lock.key),
            (wanted.lock.name, wanted.mode, wanted.lock.key),
        )
        if objection is not None:
            sound = False
            text = f"{wanted} is requested while {acquisition} is held: {objection.text}"
            watch.report_step(objection.kind, text, node, [holder], clause=objection.clause)
    return sound


def _learn(watch: Watch, node: TrieNode, held: Sequence[TrieNode]) -> None:
    """Write an edge down, and report the cycle that it closes, if there is one."""
    wanted, execution = node.acquisition, node.execution
    if wanted is None:
        return
    counts = bool(held) or (wanted.lock.policy == "writer" and wanted.mode == "W")
    noted = watch.knowledge.has_room(execution, wanted, node.stack[:1])
    if counts and not noted and watch.graph.is_known_well(held, wanted, node.stack):
        counts = False
    if not counts and not noted:
        return
    dependency = dependency_of(execution, held, wanted, node.stack)
    if noted:
        watch.knowledge.note_taken(execution, dependency)
    if not counts:
        return
    edges = learn(watch, dependency)
    if edges and wanted.attempt != "try":
        paths = watch.graph.class_paths(wanted.lock.name)
        for edge in edges:
            _report_classes(watch, edge, paths)


def dependency_of(
    execution: Execution, held: Sequence[TrieNode], wanted: Acquisition, stack: RawStack
) -> Dependency:
    """Return what an execution holds and wants, in the segment in which it is; `held` is innermost first."""
    if not execution.segment.learned:
        execution.segment = replace(execution.segment, silent=False, learned=True)
    return Dependency(
        execution=execution.serial,
        execution_name=execution.name,
        segment=execution.segment,
        held=tuple(
            HeldLock(one.acquisition, one.stack, one.acquisition.lock.fresh_for is not None)
            for one in reversed(held)
            if one.acquisition is not None
        ),
        wanted=wanted,
        stack=stack,
        fresh=wanted.lock.fresh_for is not None,
    )


def learn(watch: Watch, dependency: Dependency) -> Sequence[ClassEdge]:
    """Add a dependency to the learned graph, and report the cycle that it closes, if there is one.

    Returns:
        The edges of classes that are new with it, if it closes no cycle.
    """
    with LATCH:
        forgotten = watch.graph.sweep()
        new, edges = watch.graph.add(dependency)
        cycle, given_up = find_cycle(watch.graph, dependency) if new else (None, False)
        watch.searches_given_up += given_up
    del forgotten  # keys may have finalizers, which are not to run under the latch
    if cycle is not None:
        watch.report(_cycle_finding(cycle))
        return []
    return edges


def _cycle_finding(cycle: Cycle) -> Finding:
    """Return the finding of a cycle."""
    reasons = cycle.reasons()
    edges = edges_of_cycle(cycle.path)
    return Finding(
        Rung.R1 if reasons else Rung.R2,
        Kind.CYCLE,
        f"a cycle of {len(edges)} steps: "
        + ", then ".join(f"{edge.held or 'nothing'} -> {edge.wanted}" for edge in edges),
        edges,
        reasons or _NOTHING_GUARDS,
        fingerprint=fingerprint_of_steps(edges),
        points=() if reasons else points_of_cycle(cycle.path),
    )


_NOTHING_GUARDS = (
    "no lock is held by two of them in modes that exclude each other",
    "they are different executions, and none must have ended before another one begins",
    "every lock was known to others, and everybody waits without a limit",
)


def edges_of_cycle(path: Sequence[Dependency]) -> tuple[Edge, ...]:
    """Return the edges of a cycle: the lock that each execution holds and the one before wants."""
    return tuple(edge_of_dependency(one, shared_lock) for one, shared_lock in _with_shared_locks(path))


def _with_shared_locks(path: Sequence[Dependency]) -> Iterator[tuple[Dependency, HeldLock | None]]:
    wanted = [one.wanted.lock for one in path]
    for place, one in enumerate(path):
        held = {held.acquisition.lock: held for held in one.held}
        yield one, next((held[lock] for lock in (wanted[place - 1], *wanted) if lock in held), None)


def edge_of_dependency(one: Dependency, shared_lock: HeldLock | None) -> Edge:
    """Return the edge between a lock that was held, if any, and the one that was requested."""
    if shared_lock is not None and shared_lock.acquisition.lock.ends:
        shared_lock = None
    classes = None
    if shared_lock is not None and not one.wanted.lock.ends:
        classes = class_edge_text(shared_lock.acquisition, one.wanted)
    return Edge(
        execution=one.execution_name,
        held=str(shared_lock.acquisition) if shared_lock is not None else None,
        wanted=str(one.wanted),
        all_held=tuple(str(held.acquisition) for held in one.locks),
        hold_stack=resolve(shared_lock.stack) if shared_lock is not None else (),
        want_stack=resolve(one.stack),
        class_edge=classes,
    )


def _path_to(name: str, paths: Mapping[str, ClassEdge]) -> list[ClassEdge]:
    """Return the edges of the path that ends at a class; empty without a path."""
    found: list[ClassEdge] = []
    while name in paths:
        found.append(paths[name])
        name = paths[name].held
    return found[::-1]


def _report_classes(watch: Watch, edge: ClassEdge, paths: Mapping[str, ClassEdge]) -> None:
    """Report a cycle of classes that is not a cycle of instances.

    Args:
        watch: the watch.
        edge: an edge that is new.
        paths: the last edge of the shortest path from the class that it leads to, by class.
    """
    if edge.held == edge.wanted:
        if (order := watch.policy.order) is not None and order.rule_of(edge.held).nests:
            return
        path, reason = [edge], "no two locks of the class were taken in both orders"
    else:
        back = _path_to(edge.held, paths)
        if not back:
            return
        path, reason = [edge, *back], "no instances close it: the locks of these classes that met are others"
    examples = [watch.graph.examples[one] for one in path]
    edges = tuple(
        edge_of_dependency(
            example, next((held for held in example.held if held.acquisition.lock.name == one.held), None)
        )
        for one, example in zip(path, examples, strict=True)
    )
    names = [str(one) for one in path]
    text = "a cycle over classes: " + ", then ".join(names)
    watch.report(
        Finding(
            Rung.R1,
            Kind.CYCLE,
            text,
            edges,
            (reason,),
            fingerprint=fingerprint_of_cycle("classes", names),
        )
    )


@final
class End:
    """An event that executions may wait for until another one reaches it.

    Args:
        text: what is waited for, in words.
        signal: the same for a witness; `None` for the end of a thread.
        taken: what the other execution took before.
    """

    def __init__(self, text: str, signal: str | None, taken: Sequence[Dependency]) -> None:
        self.taken = tuple(taken)
        """What the other execution took before."""
        self._identity = EndIdentity(text, signal, taken)
        self._known = False
        """Whether an execution knows that it is over; then others may know it too."""
        self._came: tuple[int, int] | None = None
        """By which execution it has come, and the count of that."""

    @fails_open(None)
    def __del__(self) -> None:
        self._identity.alive = False  # so that the graph forgets it

    def come(self) -> None:
        """Note that the end has come by the calling execution: who gets something from it later may know."""
        watch = current()
        if watch is not None:
            self._came = watch.knowledge.note_come(local.execution)

    def noticed(self) -> None:
        """Note that an execution knows that the end is over."""
        self._known = True

    @fails_open(None)
    def awaited(self, *, besides: object = None, knew: Counts | None = None) -> None:
        """Note that the calling execution waited for the end without a limit; the first such wait counts.

        Args:
            besides: a lock that it released meanwhile, as that of a condition.
            knew: what it knew before; `None` if that is what it knows now.

        Raises:
            DeadlockPossibleError: that is the policy for what was found.
        """
        watch, execution, known = current(), local.execution, self._known
        self._known = True
        if watch is not None and self._came is not None:
            knowledge = watch.knowledge
            known = known or knowledge.is_public(*self._came) or knowledge.is_known(execution, *self._came)
        if known or watch is None or runtime.steering is not None or execution.inside:
            return
        if watch.policy.order_disabled or watch.policy.level < Level.FULL:
            return
        if not watch.knowledge.follows(execution):
            return
        knew = watch.knowledge.known_by(execution) if knew is None else knew
        watch.guarded_on(execution, lambda: self._check(watch, execution, besides, knew), lambda: None)

    def _check(self, watch: Watch, execution: Execution, besides: object, knew: Counts) -> None:
        nodes = held_nodes(execution.node)
        held = [node for node in nodes if node.acquisition is None or node.acquisition.lock is not besides]
        wanted = Acquisition(self._identity, "W")
        noted = watch.knowledge.has_room(execution, wanted, ())
        if not noted and not held:
            return
        waiting = dependency_of(execution, held, wanted, capture(caller()))
        if noted:
            watch.knowledge.note_taken(execution, waiting)
        if held:
            needed = self._identity.needs(wanted)
            for dependency in (*(one for one in needed if one.count > knew.get(one.execution, 0)), waiting):
                learn(watch, dependency)
