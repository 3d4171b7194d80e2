"""The slow path of an acquisition: what is new is checked once, before the lock is taken.

Also the slow path of a release: out of turn, in the wrong mode, or by an execution that does not hold the
lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter_ns
from types import FrameType

from ..findings.terms import Kind, Level, Mode, Rung
from ..holding.chains import (
    NONE_BELOW,
    SWEEP_MIN,
    Acquisition,
    Execution,
    LockIdentity,
    TrieNode,
    copied,
    held_nodes,
    holds_of,
)
from ..holding.runtime import LATCH, fails_open, runtime
from ..holding.stacks import caller
from .acquisition_checks import check_acquisition
from .interruptions import check_interruption
from .watch import Watch, current, find_greenlets


def take_slow_path(execution: Execution, acquisition: Acquisition) -> TrieNode:
    """Check an acquisition that the execution's trie does not have, and return its node there.

    Raises:
        LockOrderError, DeadlockPossibleError: that is the policy for what was found; nothing was taken.
    """
    return take_slow_path_at(execution, acquisition, caller(), by_place=False)


def take_slow_path_at(
    execution: Execution, acquisition: Acquisition, frame: FrameType | None, *, by_place: bool = True
) -> TrieNode:
    """Check an acquisition in a frame of the program, and remember it for that place; see `take_slow_path`.

    Args:
        execution: what wants the lock.
        acquisition: the lock, and how it is requested.
        frame: where.
        by_place: whether it is remembered there also after it was taken elsewhere.
    """
    watch = current()
    if watch is None or execution.inside or find_greenlets(watch):
        if watch is not None and not watch.off:
            watch.skipped += 1
        return TrieNode(execution, execution.node, acquisition, None)
    return watch.guarded_on(
        execution,
        lambda: _slow_path(watch, execution, acquisition, frame, by_place=by_place),
        lambda: TrieNode(execution, execution.node, acquisition, None),
    )


def here(execution: Execution, acquisition: Acquisition, after: TrieNode) -> TrieNode:
    """Return the node for an acquisition at this place in the code, given one that may be for another place.

    The checked locks have the same code in line for `with`.
    """
    frame = caller()
    if frame is None or (after.code is frame.f_code and after.instruction == frame.f_lasti):
        return after
    return take_slow_path_at(execution, acquisition, frame)


def _slow_path(
    watch: Watch, execution: Execution, acquisition: Acquisition, frame: FrameType | None, *, by_place: bool
) -> TrieNode:
    if execution.node.owner is not watch:
        execution.node = _moved(execution, watch)
    watch.acquisitions += 1
    at = execution.node
    place = (acquisition, frame.f_code, frame.f_lasti) if frame is not None else (acquisition, None, -1)
    known = at.next.get(place)
    if known is not None:
        at.next[acquisition] = known  # it was checked when it was taken from here
        return known
    node = TrieNode(execution, at, acquisition, watch)
    if frame is not None:
        node.code, node.instruction = frame.f_code, frame.f_lasti
    node.stack = watch.captured(frame)
    mine = list(holds_of(acquisition.lock, at))
    again = mine[0] if len(mine) >= (acquisition.lock.permits or 1) else None
    if again is not None and (acquisition.lock.reentrant or not acquisition.lock.certain):
        sound = True
    elif again is not None:
        sound = _wants_again(watch, node, again)
    else:
        if acquisition.lock.fresh_for not in {None, execution}:
            acquisition.lock.fresh_for = None
        sound = check_acquisition(watch, node, tuple(held_nodes(at)))
    if sound and frame is not None and watch.policy.level >= Level.FULL:
        sound = check_interruption(watch, node, frame)
    if sound and acquisition.lock.fresh_for is None:
        forgotten = at.next  # keys may have finalizers, which are not to run under the latch
        with LATCH:
            if runtime.watch is watch:
                _remember(at, node, acquisition, *((place,) if by_place else ()))
        del forgotten
    return node


def _remember(at: TrieNode, node: TrieNode, *asked: object) -> None:
    """Remember a node below another one, under keys."""
    if at.next is NONE_BELOW:
        at.next = {}
    elif len(at.next) >= at.sweep_at:
        _sweep(at)
    at.next.update(dict.fromkeys(asked, node))


def _sweep(at: TrieNode) -> None:
    """Forget edges of locks that are gone; the rest has to double before the next time."""
    at.next = {
        place: node
        for place, node in at.next.items()
        if node.acquisition is not None and node.acquisition.lock.alive
    }
    at.sweep_at = max(SWEEP_MIN, 2 * len(at.next))


def _wants_again(watch: Watch, node: TrieNode, holding: TrieNode) -> bool:
    """Report a lock that its holder requests again; only to try is allowed, and simply fails.

    Neither is it where a function waits within a limit for a lock that it never releases: for a signal.
    """
    acquisition, held = node.acquisition, holding.acquisition
    if acquisition is None or held is None or acquisition.attempt == "try" or is_for_signal(node):
        return True
    if held.mode == "R" and acquisition.mode == "W":
        kind, why = Kind.UPGRADE, "the writer waits for all readers to leave, and is one itself"
    elif acquisition.lock.answers:
        kind, why = Kind.RECURSION, "it would wait for its own answer"
    elif held.mode == "R":
        kind, why = (
            Kind.RECURSION,
            "as soon as a writer waits in between, the second read waits for it, and it for the first",
        )
    else:
        kind, why = Kind.RECURSION, "the lock is not re-entrant, and nobody else can release it"
    text = f"{acquisition.lock} is held [{held.mode}] and wanted [{acquisition.mode}] again"
    watch.report_step(kind, text, node, [holding], why=(why,))
    if acquisition.lock.alive is None:  # another thread has released it meanwhile
        watch.withdraw(str(acquisition.lock), kind)
    return False


def is_for_signal(node: TrieNode) -> bool:
    """Return whether a function waits, within a limit, for a lock without owner that it never releases."""
    asked, code = node.acquisition, node.code
    if asked is None or code is None:
        return False
    return asked.lock.may_be_signal and asked.attempt == "timed" and "release" not in code.co_names


def _moved(execution: Execution, watch: Watch) -> TrieNode:
    """Return nodes of the active session for what an execution holds."""
    at = TrieNode(execution, None, None, watch)
    for old in reversed(list(held_nodes(execution.node))):
        at = copied(old, at, watch)
    return at


def entered(node: TrieNode, after: TrieNode) -> None:
    """Count that a lock was taken at a place below another one.

    The checked locks have the same code in line for `with`: a call would cost a third of the whole check
    there.
    """
    after.since = perf_counter_ns()
    after.visits = 0
    if after.parent_since is not node.since:
        after.parent_since = node.since
        node.visits += 1
        if node.visits > 2:
            many_members(node, after)


def many_members(node: TrieNode, after: TrieNode) -> None:
    """Count the members of a class that were taken below one hold, and report a walk under a lock."""
    watch = current()
    acquisition = after.acquisition
    if (
        watch is None
        or acquisition is None
        or node.execution.inside
        or node.visits <= watch.policy.members_max
    ):
        return
    if (
        node.acquisition is not None and node.acquisition.lock.answers
    ):  # an actor may ask any number of others
        return
    watch.guarded_on(node.execution, lambda: _count_members(watch, node, after, acquisition), lambda: None)


def _count_members(watch: Watch, node: TrieNode, after: TrieNode, acquisition: Acquisition) -> None:
    members = {
        below.acquisition.lock.serial
        for below in list(node.next.values())
        if below.parent_since == node.since
        and below.acquisition is not None
        and below.acquisition.lock.name == acquisition.lock.name
    }
    if len(members) <= watch.policy.members_max or node.acquisition is None:
        return
    node.visits = -(1 << 60)
    order = watch.policy.order
    if order is not None and order.allows_walk(
        node.acquisition.lock.name, node.acquisition.mode, acquisition.lock.name, acquisition.mode
    ):
        return
    text = (
        f"{len(members)} {acquisition.lock.name} locks were taken one by one "
        f"while {node.acquisition} was held"
    )
    advice = "copy the members under the lock, release it, and then visit them"
    rung = Rung.RB if order is None else Rung.R0
    watch.report_step(Kind.ITERATION, text, after, [node], why=(advice,), rung=rung)


def release_held(execution: Execution, lock: LockIdentity, mode: Mode) -> bool:
    """Remove a lock from what an execution holds, wherever it is in the chain.

    Returns:
        `False` if the execution does not hold it; this is reported, and may raise.
    """
    if take_out(execution, lock, mode):
        return True
    watch = current()
    if watch is not None and not execution.inside:
        watch.guarded_on(execution, lambda: _wrongly_released(watch, execution, lock, mode), lambda: None)
    return False


def _noted(node: TrieNode) -> Iterator[TrieNode]:
    """Yield the nodes of all locks that are noted as held, also of those that are gone or were signals."""
    at: TrieNode | None = node
    while at is not None and at.acquisition is not None:
        yield at
        at = at.parent


@fails_open(False)
def take_out(execution: Execution, lock: LockIdentity, mode: Mode) -> bool:
    """Remove the innermost acquisition of a lock from what is held; return whether there was one."""
    above: list[TrieNode] = []
    for node in _noted(execution.node):
        if node.acquisition is not None and node.acquisition.lock is lock and node.acquisition.mode == mode:
            at = node.parent
            for old in reversed(above):
                at = copied(old, at, old.owner) if at is not None else None
            if at is not None:
                execution.node = at
            return True
        above.append(node)
    return False


def _wrongly_released(watch: Watch, execution: Execution, lock: LockIdentity, mode: Mode) -> None:
    mine = list(holds_of(lock, execution.node))
    others = [
        (other, node)
        for other in runtime.all_executions()
        if other is not execution
        for node in holds_of(lock, other.node)
    ]
    if mine and mine[0].acquisition is not None:
        holder_text = f"it holds [{mine[0].acquisition.mode}]"
    elif others:
        holder_text = f"{others[0][0].name} holds it"
    else:
        holder_text = "nobody holds it"
    acquisition = Acquisition(lock, mode) if execution.node.acquisition is not None else None
    node = TrieNode(execution, execution.node, acquisition, watch)
    holders = mine or [node for _, node in others[:1]]
    watch.report_step(
        Kind.WRONG_RELEASE,
        f"{lock} [{mode}] is released by {execution.name}, but {holder_text}",
        node,
        holders,
    )
    if not mine and others and not lock.shared:
        take_out(others[0][0], lock, mode)  # the program goes on, and the lock is free then
