"""The watch of a session, which its checks read and report to; and locks that were taken before an end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Final, TypeVar, cast, final

from ..findings.findings import Finding, fingerprint_of, place_text
from ..findings.foreign import ByIdentity, shown
from ..findings.statistics import UsageTallies, UsageTally
from ..findings.terms import Kind, Level, LockCheckError, LockOrderWarning, Rung
from ..holding.chains import Acquisition, Execution, ExecutionWait, TrieNode
from ..holding.runtime import LATCH, Interpreter, fails_open, local, raised_by_handler, runtime
from ..holding.stacks import RawStack, caller, capture
from .graph import Dependency, Graph
from .policy import Policy, act_on, act_on_elsewhere, edge_of, log_finding

if TYPE_CHECKING:
    from .interruptions import Interruption

FAULTS_MAX: Final = 1000
"""How many errors of the checker itself are kept."""

Result = TypeVar("Result")


@final
class Watch:
    """The policy of a session, what was learned while it was active, and what was found."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.graph = Graph()
        self.tallies = UsageTallies()
        self.contracts: dict[str, int] = {}
        """How often each contract was checked that was declared or checked while the session was active."""
        self.acquisitions = 0
        """How many acquisitions were new, and so checked; 0 if no lock was seen."""
        self.notes: Final[ByIdentity[Notes]] = ByIdentity()
        """The locks that each execution took before others wait for an end that comes by it."""
        self.executions_noted = 0
        """Of how many executions there were notes, also of those that are over."""
        self.skipped = 0
        """How many acquisitions were not checked, because the checker itself had triggered them."""
        self.faults: list[str] = []
        """The first errors of the checker itself; the program went on without it."""
        self.off = False
        """Whether a fault has switched the checks off: what it left behind could mislead them."""
        self.searches_given_up = 0
        self.deadlocks: set[frozenset[ExecutionWait]] = set()
        """The waits of each real deadlock that was reported."""
        self.breaking: set[ExecutionWait] = set()
        """The waits of deadlocks that are being reported now."""
        self.interruptions: dict[int, Interruption] = {}
        """How finalizers and signal handlers take locks, by number."""
        self.finalized: list[Interruption] = []
        """Those of finalizers that are findings if their locks outlive the finalized objects."""
        self.unwatched: dict[str, None] = {}
        """The names of locks that existed before locks were adopted, and that are not watched."""
        self.named_executions: dict[str, Execution] = {}
        self.running_executions: set[str] = set()
        self.deferred: list[LockCheckError] = []
        """Errors that cannot be raised where they were found: the session raises the first at its end."""
        self.tell: Callable[[Finding, str], None] = log_finding
        """Called with a finding that is to be reported at once, and its whole report."""
        self._found: dict[str, Finding] = {}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings, in the order in which they were found first."""
        with LATCH:
            return tuple(self._found.values())

    def tally(self, acquisition: Acquisition, frame: FrameType) -> UsageTally | None:
        """Return the tally for the times of a place; `None` below the level `full`."""
        if self.policy.level is not Level.FULL:
            return None
        key = acquisition.lock.key_text if self.policy.by_key else None
        with LATCH:
            return self.tallies.of(acquisition.lock.name, acquisition.mode, frame.f_code, frame.f_lasti, key)

    def captured(self, frame: FrameType | None) -> RawStack:
        """Return the stack of a new acquisition if the level is `full`, else nothing."""
        return capture(frame) if self.policy.level >= Level.FULL else ()

    def report_step(
        self, kind: Kind, text: str, node: TrieNode, holders: Sequence[TrieNode], *,
        why: tuple[str, ...] = (), clause: str | None = None, what: str = "",
        rung: Rung = Rung.R0,
    ) -> None:  # fmt: skip
        """Report a rule that an acquisition or a release breaks, and raise if that is the policy.

        Args:
            kind: which rule.
            text: one sentence: what, by which execution.
            node: what is requested, or released; if it has no stack, the present stack is used.
            holders: what is held against the rule.
            why: what would be right.
            clause: the clause of the declaration that was broken.
            what: distinguishes findings of one kind at one place, such as the kind of a blocking call.
            rung: `RB` where a lock is held over what may take long, and the program did not declare that.
        """
        if self.policy.order_disabled:
            return
        stack = node.stack or capture(caller())
        edges = tuple(edge_of(node, holder, stack) for holder in holders) or (edge_of(node, None, stack),)
        classes = [
            f"{one.acquisition.lock.name}[{one.acquisition.mode}]"
            for one in (node, *holders)
            if one.acquisition is not None
        ]
        name = fingerprint_of(kind.value, what, *classes, place_text(edges[0].want_stack))
        self.report(Finding(rung, kind, text, edges, why, clause, fingerprint=name))

    def report_use(
        self, kind: Kind, text: str, holders: Sequence[TrieNode], *,
        why: tuple[str, ...] = (), clause: str | None = None, what: str = "", rung: Rung = Rung.R0,
        frame: FrameType | None = None,
    ) -> None:  # fmt: skip
        """Report a rule that the calling execution breaks otherwise, in a frame or at its present place.

        The other arguments are as for `report_step`.
        """
        execution = local.execution
        node = TrieNode(execution, execution.node, None, self)
        node.stack = capture(frame)
        self.report_step(kind, text, node, holders, why=why, clause=clause, what=what, rung=rung)

    def report(self, finding: Finding) -> None:
        """Note a finding and carry out the policy of its rung.

        Raises:
            LockCheckError: that is the policy, and the finding is not a real deadlock.
        """
        error = self.act_on(self.note(finding))
        if error is not None:
            raise error

    def report_elsewhere(self, finding: Finding) -> None:
        """Do the same for another thread, where nothing can be raised: there is a warning instead."""
        error = act_on_elsewhere(self.policy, self.graph, self.note(finding), self.tell)
        if error is not None:
            self.deferred.append(error)

    def note(self, finding: Finding) -> Finding:
        """Note a finding: a new one, one more of the same, or a higher rung of it, which counts anew.

        Returns:
            The finding to act on: one that is known at a higher rung keeps that, and this one is acted on at
            its rung.
        """
        with LATCH:
            known = self._found.get(finding.fingerprint)
            if known is None or known.rung < finding.rung:
                finding = replace(finding, test=known.test if known is not None else self.policy.name)
                self._found[finding.fingerprint] = finding
                return finding
            self._found[finding.fingerprint] = replace(known, count=known.count + 1)
            return replace(finding if known.rung > finding.rung else known, count=known.count + 1)

    def withdraw(self, lock: str, *kinds: Kind) -> None:
        """Take back findings of some kinds about a lock that turned out to be none."""
        with LATCH:
            wrong = {
                name
                for name, finding in self._found.items()
                if finding.kind in kinds and any(lock in {edge.held, edge.wanted} for edge in finding.edges)
            }
            for name in wrong:
                del self._found[name]
            self.deferred = [
                error
                for error in self.deferred
                if error.finding is None or error.finding.fingerprint not in wrong
            ]

    def act_on(self, finding: Finding) -> LockCheckError | None:
        """Carry out the policy of a finding's rung; return the error to raise, if any."""
        return act_on(self.policy, self.graph, finding, self.tell)

    def amend(self, finding: Finding) -> None:
        """Replace the finding with the same fingerprint, without counting it again."""
        with LATCH:
            self._found[finding.fingerprint] = finding

    def guarded(self, work: Callable[[], Result], fallback: Callable[[], Result]) -> Result:
        """Run a check; an error of the check itself switches the checks off, and the program goes on.

        An error that a signal handler of the program raises in the middle of a check is the program's. A
        stack that is too deep is not a fault: this check is left out.
        """
        try:
            return work()
        except (LockCheckError, LockOrderWarning) as error:
            raise error from None
        except RecursionError:
            self.skipped += 1
            return fallback()
        except Exception as error:
            if raised_by_handler(error):
                raise
            self.note_fault(error)
            return fallback()

    def guarded_on(
        self, execution: Execution, work: Callable[[], Result], fallback: Callable[[], Result]
    ) -> Result:
        """Run a check as `guarded` does; acquisitions that it triggers on the execution are not checked."""
        inside, execution.inside = execution.inside, True
        try:
            return self.guarded(work, fallback)
        finally:
            execution.inside = inside

    def note_fault(self, error: Exception) -> None:
        """Count an error of the checker itself, report it once, and switch the checks and the trace off.

        An error of our own kind is a wrong argument of the program, such as a policy, and is only counted.
        """
        said = f"{type(error).__name__}: {shown(error)}"
        if len(self.faults) < FAULTS_MAX:
            self.faults.append(said)
        if self.off or isinstance(error, LockCheckError):
            return
        self.off = True
        if runtime.recorder is not None:
            runtime.recorder.give_up()
        if sys.stderr is not None:
            with suppress(OSError, ValueError):
                sys.stderr.write(f"lockcheck: switched off by a fault of its own, please report: {said}\n")


def current() -> Watch | None:
    """Return the watch of the active session, or `None` if no session is open or a fault switched it off."""
    watch: Watch | None = runtime.watch  # type: ignore[assignment] # a session puts it there
    return watch if watch is not None and not watch.off else None


TAKEN_MAX: Final = 64
"""How many acquisitions of an execution are remembered."""
EXECUTIONS_MAX: Final = 256
"""Of how many executions in a session: all that comes after one of them keeps that it does."""


@final
class Notes:
    """The locks and ends of an execution since it last notified others, in a session."""

    __slots__ = ("ends", "taken")

    def __init__(self) -> None:
        self.taken: list[Dependency] = []
        self.ends: list[Callable[[], None]] = []
        """By which to note of ends that others know that they have come."""


def has_room(watch: Watch, execution: Execution) -> bool:
    """Return whether another acquisition of an execution would be remembered."""
    known = watch.notes.get(execution)
    return len(known.taken) < TAKEN_MAX if known is not None else watch.executions_noted < EXECUTIONS_MAX


def note_taken(watch: Watch, execution: Execution, dependency: Dependency) -> None:
    """Remember an acquisition of an execution."""
    known = watch.notes.get(execution)
    if known is None:
        known = Notes()
        watch.notes.put(execution, known)
        watch.executions_noted += 1
    known.taken.append(dependency)


def _notes(execution: Execution | None) -> Notes | None:
    watch = current()
    return watch.notes.get(execution) if watch is not None and execution is not None else None


def note_come(execution: Execution, noticed: Callable[[], None]) -> None:
    """Remember an end that has come by an execution: when it notifies others, they may know that."""
    known = _notes(execution)
    if known is not None:
        known.ends.append(noticed)


@fails_open(cast("Sequence[Dependency]", ()))
def taken_by(execution: Execution) -> Sequence[Dependency]:
    """Return what an execution took since it last notified others, as far as that is remembered."""
    known = _notes(execution)
    return tuple(known.taken) if known is not None else ()


@fails_open(None)
def forget_taken() -> None:
    """Forget what the calling execution took: it notifies others, who may know then that it did."""
    known = _notes(runtime.running.get(Interpreter.thread_number()))  # a new thread has no notes yet
    if known is not None and (known.taken or known.ends):
        ends, known.ends = known.ends, []
        known.taken = []
        for noticed in ends:
            noticed()
