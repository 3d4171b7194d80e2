"""The watch of a session, which its checks read and report to."""

from __future__ import annotations

import _thread
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from types import BuiltinFunctionType, FrameType
from typing import TYPE_CHECKING, Final, TypeVar, final

from ..findings.findings import Finding, fingerprint_of, place_text
from ..findings.foreign import shown
from ..findings.terms import Kind, Level, LockCheckError, LockOrderWarning, Rung
from ..holding.chains import Execution, ExecutionWait, TrieNode
from ..holding.runtime import LATCH, fails_open, local, raised_by_handler, runtime
from ..holding.stacks import RawStack, caller, capture
from .graph import Graph
from .knowledge import Knowledge
from .policy import Policy, act_on, edge_of, log_finding

if TYPE_CHECKING:
    from .forks import SharedFile
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
        self.contracts: dict[str, int] = {}
        """How often each contract was checked that was declared or checked while the session was active."""
        self.acquisitions = 0
        """How many acquisitions were new, and so checked; 0 if no lock was seen."""
        self.knowledge = Knowledge()
        """The locks that executions took before others wait for an end that comes by them."""
        self.skipped = 0
        """How many acquisitions were not checked, because the checker itself had triggered them."""
        self.faults: list[str] = []
        """The first errors of the checker itself; the program went on without it."""
        self.off = False
        """Whether a fault has switched the checks off: what it left behind could mislead them."""
        self.greenlets = False
        """Whether the checks were switched off because greenlets run in the place of threads."""
        self.searches_given_up = 0
        self.deadlocks: set[frozenset[ExecutionWait]] = set()
        """The waits of each real deadlock that was reported."""
        self.breaking: set[ExecutionWait] = set()
        """The waits of deadlocks that are being reported now."""
        self.interruptions: dict[int, Interruption] = {}
        """How finalizers and signal handlers take locks, by number."""
        self.finalized: list[Interruption] = []
        """Those of finalizers that are findings if their locks outlive the finalized objects."""
        self.survivors: set[Interruption] = set()
        """Those of them of which the locks outlived a collection."""
        self.unwatched: dict[str, None] = {}
        """The names of locks that existed before locks were adopted, and that are not watched."""
        self.named_executions: dict[str, Execution] = {}
        self.running_executions: set[str] = set()
        self.children: SharedFile | None = None
        """The findings of the children of forks, if any was forked while other threads had taken locks."""
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
        """Count an error of the checker itself, report it once, and switch the checks off.

        An error of our own kind is a wrong argument of the program, such as a policy, and is only counted.
        """
        said = f"{type(error).__name__}: {shown(error)}"
        if len(self.faults) < FAULTS_MAX:
            self.faults.append(said)
        if self.off or isinstance(error, LockCheckError):
            return
        self.off = True
        if sys.stderr is not None:
            with suppress(OSError, ValueError):
                sys.stderr.write(f"lockcheck: switched off by a fault of its own, please report: {said}\n")


@fails_open(False)
def find_greenlets(watch: Watch) -> bool:
    """Switch the checks off if greenlets have taken the place of threads, and report that once a process.

    gevent and eventlet replace the function of the interpreter that starts a thread.
    """
    if type(_thread.start_new_thread) is BuiltinFunctionType:
        return False
    watch.off = watch.greenlets = True
    if not runtime.greenlets and sys.stderr is not None:
        runtime.greenlets = True
        with suppress(OSError, ValueError):
            sys.stderr.write("lockcheck: greenlets have taken the place of threads: nothing is checked now\n")
    return True


def current() -> Watch | None:
    """Return the watch of the active session, or `None` if no session is open or a fault switched it off."""
    watch: Watch | None = runtime.watch  # type: ignore[assignment] # a session puts it there
    return watch if watch is not None and not watch.off else None
