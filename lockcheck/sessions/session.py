"""A session: what is declared, how much is looked at, what was found, and what happens then.

Sessions nest; the innermost one looks on. If nobody opened one, the environment may ask for one (`ambient`).
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias, TypeVar, final, get_args

from ..checking.graph import Graph
from ..checking.long_holds import ANY, HoldWatch
from ..checking.reactions import edge_of, react
from ..checking.waiting import youngest
from ..findings.errors import LockCheckError, LockOrderWarning, LockUsageError
from ..findings.evidence import DEFAULT_FAIL_ON, Kind, Rung
from ..findings.findings import Finding, fingerprint_of
from ..findings.levels import Level, level_of
from ..findings.statistics import KEYS_MAX, OTHER_KEYS, Tally
from ..holding.chains import Node, held_nodes
from ..holding.foreign import shown
from ..holding.runtime import LATCH, local, runtime
from ..holding.stacks import caller, capture
from ..interception import awaited, patches, pykka_found
from ..order.order import Order
from .summaries import summary_of
from .text import text_report

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import CodeType, FrameType, TracebackType

    from ..checking.waiting import VictimPolicy
    from ..findings.evidence import Mode
    from ..holding.chains import Grip, Unit, Wait
    from ..holding.stacks import RawStack
    from .summaries import Summary

__all__ = ["Action", "Session", "session"]

FAULTS_MAX: Final = 1000
"""So many errors of the checker itself are kept."""

Action: TypeAlias = Literal["raise", "warn", "log", "record", "break"]
Result = TypeVar("Result")

DEFAULT_ACTIONS: Final[Mapping[Rung, Action]] = {
    Rung.R0: "raise",
    Rung.R1: "record",
    Rung.R2: "raise",
    Rung.R3: "record",
    Rung.R4: "record",
    Rung.R5: "break",
}
NOTE_ALL: Final[Mapping[Rung, Action]] = {rung: "record" for rung in Rung if rung is not Rung.R5}
"""Raise nothing but what breaks a real deadlock: the program is to do what it always does."""


@final
class Session:
    """What is checked while it is open, and what was found.

    Args:
        order: the declared order, if any.
        level: how much is looked at: `order`, `full` or `record`; `off` leaves alone what is made in it.
        on: what happens at a finding, by rung: `raise` before the lock is taken, `warn`, `log`, `record`,
            and for a real deadlock `break`; rungs that are left out keep their default.
        fail_on: the rungs at which `failures` counts a finding.
        name: what the session is called in findings, such as the test that runs.
        role: what sessions have in common the steps of which the program takes at the same time.
        members_max: how many locks of a class may be taken one by one while another lock is held.
        timeout_seconds: a wait for a lock that takes longer is reported; none for no limit.
        max_hold_seconds: a lock that is held longer is reported while it is, at the level `full`; none for no
            limit. `max_hold` sets it by class.
        blocking: for each class of locks what may block while one of it is held, such as `{"rm": {"ask"}}`;
            `*` stands for everything.
        victim: who gives way in a real deadlock.
        witnesses: the folder for replay files of real deadlocks, over locks and ends of threads alone, that
            happen at the level `full` or above; none for no files.
        order_disabled: leave orders, recursion and closed paths alone.
        exits: end the process, with code 1, at the first finding that fails.
        by_key: note times by the key of the lock too.

    Raises:
        LockUsageError: an argument means nothing.
    """

    def __init__(
        self,
        order: Order | None = None,
        *,
        level: Level | str = Level.FULL,
        on: Mapping[Rung, Action] | None = None,
        fail_on: Collection[Rung] = DEFAULT_FAIL_ON,
        name: str | None = None,
        role: str | None = None,
        members_max: int = 2,
        timeout_seconds: float | None = None,
        max_hold_seconds: float | None = None,
        blocking: Mapping[str, Collection[str]] | None = None,
        victim: VictimPolicy = youngest,
        witnesses: Path | None = None,
        order_disabled: bool = False,
        exits: bool = False,
        by_key: bool = False,
    ) -> None:
        if order is not None and not isinstance(order, Order):
            raise LockUsageError(f"{order!r} is no Order")
        for rung, action in (on or {}).items():
            if not isinstance(rung, Rung) or action not in get_args(Action):
                raise LockUsageError(f"{rung!r}: {action!r} is no rung with what happens at it")
        self.order = order
        self.level = level_of(level)
        self.on = {**DEFAULT_ACTIONS, **(on or {})}
        self.fail_on = frozenset(fail_on)
        self.name = name
        self.role = role
        self.members_max = members_max
        self.timeout_seconds = timeout_seconds
        self.blocking = {held: frozenset(kinds) for held, kinds in (blocking or {}).items()}
        self.victim = victim
        self.witnesses = witnesses
        self.order_disabled = order_disabled
        self.exits = exits
        self.by_key = by_key
        self._keys: dict[str, set[str]] = {}
        self.graph = Graph()
        self.tallies: dict[tuple[str, Mode, CodeType, int, str | None], Tally] = {}
        """How long locks were held and waited for, by class, mode and place, and by key on request."""
        self.contracts: dict[str, int] = {}
        """How often each contract was checked that was declared or checked while it looked on."""
        self.skipped = 0
        """Acquisitions that were not looked at: the checker itself had triggered them."""
        self.faults: list[str] = []
        """Errors of the checker itself, the first of them; the program went on as if it were not there."""
        self.searches_given_up = 0
        self.circles: set[frozenset[Wait]] = set()
        """Real deadlocks that were reported: which waits stood in them."""
        self.breaking: set[Wait] = set()
        """The waits of those that are just being reported."""
        self.named_units: dict[str, Unit] = {}
        self.running_units: set[str] = set()
        self._found: dict[str, Finding] = {}
        self._owed: list[LockCheckError] = []
        self._outer: Session | None = None
        self._hold_watch: HoldWatch | None = None
        if max_hold_seconds is not None:
            self._hold_watch = self._watch_for({ANY: max_hold_seconds})

    # ----------------------------------------------------------------------------- opening, closing

    def __enter__(self) -> Self:
        with LATCH:
            self._outer = runtime.session
            cut = self._look_on(self)
        del cut  # keys of locks may have finalizers, which are not to run under the latch
        if self.level >= Level.ORDER:
            awaited.HOOKS.install()
            pykka_found.install()
        if self.level >= Level.FULL:
            patches.HOOKS.install()
        if self._hold_watch is not None:
            self._hold_watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._hold_watch is not None:
            self._hold_watch.stop()
        if self.level >= Level.FULL:
            patches.HOOKS.uninstall()
        if self.level >= Level.ORDER:
            pykka_found.HOOKS.uninstall()
            awaited.HOOKS.uninstall()
        with LATCH:
            cut = self._look_on(self._outer)
        del cut
        for unit in self.named_units.values():
            runtime.forget(unit)
        if error is None and self._owed:
            raise self._owed[0]

    @contextmanager
    def left_alone(self) -> Iterator[None]:
        """Be closed meanwhile: what is made is plain, unless the session around this one checks it."""
        self.__exit__(None, None, None)
        try:
            yield
        finally:
            self.__enter__()

    def _look_on(self, session: Session | None) -> list[object]:
        """Have a session look on, or none; return what is to be let go of without the latch."""
        runtime.session = session
        runtime.ended = _thread_ended if session is not None else None
        runtime.born = patches.started_after if session is not None else None
        return runtime.cut_tries()

    def max_hold(self, name: str, seconds: float) -> None:
        """Have a lock of a class reported that is held longer, while the session is open.

        Raises:
            LockUsageError: the limit is not positive, or the level does not note since when locks are held.
        """
        if self._hold_watch is not None:
            self._hold_watch.limit(name, seconds)
            return
        self._hold_watch = self._watch_for({name: seconds})
        self._hold_watch.start()

    def _watch_for(self, seconds: dict[str, float]) -> HoldWatch:
        if self.level < Level.FULL:
            raise LockUsageError(f"the level {self.level.name.lower()} does not note how long locks are held")
        return HoldWatch(self, seconds)

    # ------------------------------------------------------------------------------ what was found

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found, in the order in which it was found first."""
        with LATCH:
            return tuple(self._found.values())

    @property
    def failures(self) -> tuple[Finding, ...]:
        """Findings on a rung that fails."""
        return tuple(finding for finding in self.findings if finding.rung in self.fail_on)

    def summary(self) -> Summary:
        """Return everything that was found and looked at so far, as values."""
        return summary_of(self)

    def report_text(self) -> str:
        """Say everything that was found, and what was looked at."""
        return text_report(self.summary())

    def assert_order(self, held: str, wanted: str) -> None:
        """Assert that locks of one class were taken while another one's were held, and never the other way.

        Raises:
            AssertionError: the nesting was never seen, or its reverse was, or nothing is learned.
        """
        assert self.level >= Level.FULL, "the level `order` learns no nestings"
        seen = {(edge.held, edge.wanted) for edge in self.graph.classes}
        assert (held, wanted) in seen, f"{wanted} was never taken while {held} was held; seen: {sorted(seen)}"
        assert (wanted, held) not in seen, f"{held} was also taken while {wanted} was held"

    # -------------------------------------------------------------------------- what the checks call

    def tally(self, grip: Grip, frame: FrameType) -> Tally | None:
        """Return where the times of a place are noted; nowhere but at the level `full`."""
        if self.level is not Level.FULL:
            return None
        key = grip.lock.key_text if self.by_key else None
        with LATCH:
            key = self._told_apart(grip.lock.name, key)
            place = (grip.lock.name, grip.mode, frame.f_code, frame.f_lasti, key)
            if place not in self.tallies:
                self.tallies[place] = Tally(*place)
            return self.tallies[place]

    def _told_apart(self, name: str, key: str | None) -> str | None:
        """Return the key that times are noted under, of one class so many keys at most."""
        known = self._keys.setdefault(name, set())
        if key is not None and key not in known:
            if len(known) >= KEYS_MAX:
                return OTHER_KEYS
            known.add(key)
        return key

    def captured(self, frame: FrameType | None) -> RawStack:
        """Return the stack of what is new, where the level asks for stacks."""
        return capture(frame) if self.level >= Level.FULL else ()

    def report_step(
        self, kind: Kind, text: str, node: Node, holders: Sequence[Node], *,
        why: tuple[str, ...] = (), clause: str | None = None,
    ) -> None:  # fmt: skip
        """Report a rule that an acquisition or a release breaks, and raise if that is the policy.

        Args:
            kind: which rule.
            text: one sentence: what, by whom.
            node: what is wanted, or let go of; where it has no stack, that is where the program is now.
            holders: what is held against the rule.
            why: what would be right.
            clause: the clause of the declaration that was broken.
        """
        if self.order_disabled:
            return
        stack = node.stack or capture(caller())
        edges = tuple(edge_of(node, holder, stack) for holder in holders) or (edge_of(node, None, stack),)
        place = (
            f"{edges[0].want_stack[0].file}:{edges[0].want_stack[0].function}" if edges[0].want_stack else ""
        )
        classes = [
            f"{one.grip.lock.name}[{one.grip.mode}]" for one in (node, *holders) if one.grip is not None
        ]
        name = fingerprint_of(kind.value, *classes, place)
        self.report(Finding(Rung.R0, kind, text, edges, why, clause, fingerprint=name))

    def report_use(
        self, kind: Kind, text: str, holders: Sequence[Node], *,
        why: tuple[str, ...] = (), clause: str | None = None, frame: FrameType | None = None,
    ) -> None:  # fmt: skip
        """Report a rule that the calling unit breaks by something else: in a frame, or where the program is.

        The other arguments are as for `report_step`.
        """
        unit = local.unit
        node = Node(unit, unit.node, None, self)
        node.stack = capture(frame)
        self.report_step(kind, text, node, holders, why=why, clause=clause)

    def report(self, finding: Finding) -> None:
        """Write a finding down and do what the policy of its rung says.

        Raises:
            LockCheckError: that is the policy, and the finding is not a real deadlock.
        """
        error = react(self, self.note(finding))
        if error is not None:
            raise error

    def note(self, finding: Finding) -> Finding:
        """Write a finding down: a new one, one more of the same, or a higher rung of it."""
        with LATCH:
            known = self._found.get(finding.fingerprint)
            if known is None:
                finding = replace(finding, test=self.name)
            elif known.rung >= finding.rung:
                finding = replace(known, count=known.count + 1)
            else:
                finding = replace(finding, count=known.count + 1, test=known.test)
            self._found[finding.fingerprint] = finding
        return finding

    def amend(self, finding: Finding) -> None:
        """Put a finding in the place of the one that it is about, without counting it once more."""
        with LATCH:
            self._found[finding.fingerprint] = finding

    def owe(self, error: LockCheckError) -> None:
        """Keep an error that cannot be raised where it was found, until the session ends."""
        self._owed.append(error)

    @property
    def breaks_deadlocks(self) -> bool:
        """Whether a victim has to give way in a real deadlock."""
        return self.on[Rung.R5] in {"break", "raise"}

    def guarded(self, work: Callable[[], Result], fallback: Callable[[], Result]) -> Result:
        """Run a check; an error of the check itself is counted, and the program goes on."""
        try:
            return work()
        except (LockCheckError, LockOrderWarning) as error:
            raise error from None
        except Exception as error:  # noqa: BLE001 - a bug of the checker must not change the program
            self.note_fault(error)
            return fallback()

    def guarded_on(self, unit: Unit, work: Callable[[], Result], fallback: Callable[[], Result]) -> Result:
        """Run a check as `guarded` does; what it triggers on the unit is not checked."""
        inside, unit.inside = unit.inside, True
        try:
            return self.guarded(work, fallback)
        finally:
            unit.inside = inside

    def note_fault(self, error: Exception) -> None:
        """Count an error of the checker itself."""
        if len(self.faults) < FAULTS_MAX:
            self.faults.append(f"{type(error).__name__}: {shown(error)}")


session = Session
"""What a program writes: `with session(ORDER): ...`."""


def _thread_ended(unit: Unit) -> None:
    """Report locks that a thread held when it ended."""
    looks_on = runtime.session
    if looks_on is None or unit.node.grip is None:
        return
    for node in held_nodes(unit.node):
        looks_on.guarded_on(unit, partial(_report_leak, looks_on, node), lambda: None)


def _report_leak(session: Session, node: Node) -> None:
    text = f"{node.unit.name} ended while it held {node.grip}"
    name = fingerprint_of("leak", node.grip.lock.name if node.grip is not None else "")
    finding = Finding(Rung.R0, Kind.LEAK, text, (edge_of(node, node, ()),), fingerprint=name)
    error = react(session, session.note(finding))
    if error is not None:
        session.owe(error)
