"""A session: it opens and closes the checking of locks, and has what was found.

Sessions nest; the innermost one is active. Without one, the environment may ask for one (`ambient`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self, final

from ..checking.finalizers import finalizers_noted
from ..checking.forks import hear_children
from ..checking.graph import Graph
from ..checking.interruptions import report_survivors
from ..checking.policy import DEFAULT_ACTIONS, FindingAction, Policy, VictimPolicy, edge_of, youngest
from ..checking.watch import Watch, current, find_greenlets
from ..findings.findings import Finding, counted, finding_text, fingerprint_of, place_text
from ..findings.terms import DEFAULT_FAIL_ON, Kind, Level, LockCheckError, Rung, level_of
from ..holding.chains import Execution, TrieNode, held_nodes
from ..holding.runtime import LATCH, fails_open, runtime
from ..interception import found_late, joins, observed, threads
from ..interception.hooks import Hooks
from ..order.order import Order
from .summaries import Summary, summary_of

AT_OPENING: Final[list[Callable[[], None]]] = []
"""The functions to call when a session has opened, in this order."""
BLOCKING_LINES_MAX: Final = 10
"""How many blocking calls under locks `blocking_lines` lists; the reports have all."""
UNWATCHED_MAX: Final = 5
"""How many locks that are not watched a text names."""


@final
class Session:
    """The time in which locks are checked under one policy, and the findings of it.

    Args:
        order: the declared order, if any.
        level: how much is checked: `order`, `full` or `confirm`; at `off` the locks that are made are plain.
        on: what happens at a finding, by rung: `raise` before the lock is taken, `warn`, `log`, `record`,
            and for a real deadlock `break`; rungs that are left out keep their default.
        fail_on: the rungs at which `failures` counts a finding.
        name: the name of the session in findings, such as the test that runs.
        members_max: how many locks of a class may be taken one by one while another lock is held.
        timeout_seconds: a wait for a lock that takes longer is reported; `None` for no limit.
        blocking: for each class of locks the kinds of blocking calls that are allowed while one of it is
            held, such as `{"rm": {"ask"}}`; `*` stands for all kinds.
        victim: chooses the execution that gives way in a real deadlock.
        witnesses: the folder for replay files of real deadlocks, over locks and ends of threads alone, that
            happen at the level `full` or above; `None` for no files.
        order_disabled: do not check orders, recursion and cycles.
        exits: end the process, with code 1, at the first finding that fails.

    Raises:
        LockUsageError: an argument is invalid.
    """

    def __init__(
        self,
        order: Order | None = None,
        *,
        level: Level | str = Level.FULL,
        on: Mapping[Rung, FindingAction] | None = None,
        fail_on: Collection[Rung] = DEFAULT_FAIL_ON,
        name: str | None = None,
        members_max: int = 2,
        timeout_seconds: float | None = None,
        blocking: Mapping[str, Collection[str]] | None = None,
        victim: VictimPolicy = youngest,
        witnesses: Path | None = None,
        order_disabled: bool = False,
        exits: bool = False,
    ) -> None:
        self.watch = Watch(
            Policy(
                order=order,
                level=level_of(level),
                on={**DEFAULT_ACTIONS, **(on or {})},
                fail_on=frozenset(fail_on),
                name=name,
                members_max=members_max,
                timeout_seconds=timeout_seconds,
                blocking={held: frozenset(kinds) for held, kinds in (blocking or {}).items()},
                victim=victim,
                witnesses=witnesses,
                order_disabled=order_disabled,
                exits=exits,
            )
        )
        """The interface for checks, while the session is active."""
        self._outer: Watch | None = None

    # ------------------------------------------------------------------------------- what is checked

    @property
    def level(self) -> Level:
        """How much is checked."""
        return self.watch.policy.level

    @property
    def order(self) -> Order | None:
        """The declared order, if any."""
        return self.watch.policy.order

    @order.setter
    def order(self, order: Order | None) -> None:
        self.watch.policy = replace(self.watch.policy, order=order)

    # ----------------------------------------------------------------------------- opening, closing

    def __enter__(self) -> Self:
        with LATCH:
            self._outer = current()
            cut = _activate(self.watch)
        del cut  # keys of locks may have finalizers, which are not to run under the latch
        if self.level >= Level.ORDER:
            self._hooks().install()
            found_late.HOOKS.install()
            found_late.find()
        if self.level >= Level.FULL:
            finalizers_noted(wanted=True)
        early, runtime.early_fault = runtime.early_fault, None
        if early is not None:
            self.watch.note_fault(early)
        if current() is self.watch:
            for begin in tuple(AT_OPENING):
                begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        find_greenlets(self.watch)
        hear_children(self.watch)
        if self.level >= Level.FULL:
            finalizers_noted(wanted=False)
            report_finalized(self.watch)
        if self.level >= Level.ORDER:
            found_late.HOOKS.uninstall()
            self._hooks().uninstall()
        with LATCH:
            cut = _activate(self._outer)
        del cut
        for execution in self.watch.named_executions.values():
            runtime.forget(execution)
        if error is None and self.watch.deferred:
            raise self.watch.deferred[0]

    def _hooks(self) -> Hooks:
        return observed.HOOKS if self.level >= Level.FULL else joins.HOOKS

    @contextmanager
    def left_alone(self) -> Iterator[None]:
        """Close the session while the body runs: new locks are plain, unless an outer session checks them."""
        self.__exit__(None, None, None)
        try:
            yield
        finally:
            self.__enter__()

    # ------------------------------------------------------------------------------ what was found

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings, in the order in which they were found first."""
        hear_children(self.watch)
        return self.watch.findings

    @property
    def failures(self) -> tuple[Finding, ...]:
        """Findings on a rung that fails."""
        return tuple(finding for finding in self.findings if finding.rung in self.watch.policy.fail_on)

    @property
    def faults(self) -> list[str]:
        """The first errors of the checker itself; the program went on without it."""
        return self.watch.faults

    @property
    def skipped(self) -> int:
        """How many acquisitions were not checked, because the checker itself had triggered them."""
        return self.watch.skipped

    @property
    def graph(self) -> Graph:
        """The edges that were learned."""
        return self.watch.graph

    def summary(self) -> Summary:
        """Return everything that was found and observed so far, as values."""
        hear_children(self.watch)
        return summary_of(self.watch)

    def report_text(self, reported: Mapping[str, str] | None = None) -> str:
        """Return the report of everything that was found and observed, as text; see `text_report`."""
        return text_report(self.summary(), reported)

    def assert_order(self, held: str, wanted: str) -> None:
        """Assert that locks of one class were taken while another one's were held, and never the other way.

        Raises:
            AssertionError: the edge was never seen, or its reverse was, or nothing is learned.
        """
        assert self.level >= Level.FULL, "the level `order` learns no edges"
        seen = {(edge.held, edge.wanted) for edge in self.graph.classes}
        assert (held, wanted) in seen, f"{wanted} was never taken while {held} was held; seen: {sorted(seen)}"
        assert (wanted, held) not in seen, f"{held} was also taken while {wanted} was held"


session = Session
"""The name that a program uses: `with session(ORDER): ...`."""


def _activate(watch: Watch | None) -> Sequence[object]:
    """Set the watch that checks call, if any; return objects that the caller drops without the latch."""
    runtime.watch = watch
    runtime.ended = _thread_ended if watch is not None else None
    runtime.born = threads.started_after if watch is not None else None
    return runtime.cut_tries()


@fails_open(None)
def report_finalized(watch: Watch) -> None:
    """Report the locks of finalizers that outlived them; an error is raised at the end of the session."""
    try:
        watch.guarded(lambda: report_survivors(watch), lambda: None)
    except LockCheckError as error:
        watch.deferred.append(error)


@fails_open(None)
def _thread_ended(execution: Execution) -> None:
    """Report locks that a thread held when it ended."""
    watch = current()
    if watch is None or execution.node.acquisition is None:
        return
    for node in held_nodes(execution.node, gone=True):
        if node.acquisition is not None and node.acquisition.lock.permits is not None:
            continue  # another thread may release a semaphore
        watch.guarded_on(execution, partial(_report_leak, watch, node), lambda: None)


def _report_leak(watch: Watch, node: TrieNode) -> None:
    text = f"{node.execution.name} ended while it held {node.acquisition}"
    edge = edge_of(node, node, ())
    name = fingerprint_of(Kind.LEAK.value, edge.class_edge or "", place_text(edge.hold_stack))
    finding = Finding(Rung.R0, Kind.LEAK, text, (edge,), fingerprint=name)
    error = watch.act_on(watch.note(finding))
    if error is not None:
        watch.deferred.append(error)


def text_report(summary: Summary, reported: Mapping[str, str] | None = None) -> str:
    """Return the report: the findings, the strongest evidence first, and what was observed.

    Args:
        summary: what was found and observed.
        reported: where findings were reported in full, by fingerprint: those get one line here.
    """
    sites, before = summary.sites, reported or {}
    blocks = [
        f"{finding.sentence}  [{finding.rung_text}, {finding.fingerprint}, reported in full in "
        f"{before[finding.fingerprint]}]"
        if finding.fingerprint in before
        else finding_text(finding, sites)
        for finding in summary.findings
    ]
    return "\n\n".join([*blocks, closing(summary)])


def closing(summary: Summary) -> str:
    """Yield lines on how much was found and observed, and what was left out."""
    kinds = counted(len(summary.class_edges), "kind")
    lines = [
        f"lockcheck, level {summary.level}: {summary.verdict}.",
        f"Looked at: {counted(summary.dependencies, 'edge')}, {kinds} of them by class.",
    ]
    if summary.skipped:
        skipped = counted(summary.skipped, "acquisition")
        lines.append(f"Not looked at: {skipped} that the checker itself had triggered.")
    if summary.unexamined:
        unexamined = counted(summary.unexamined, "repetition")
        lines.append(f"Not looked at: {unexamined} of known edges by short-lived threads.")
    if summary.searches_given_up:
        given_up = counted(summary.searches_given_up, "search", "searches")
        lines.append(f"Given up: {given_up} for cycles that took too long.")
    return "\n".join([*lines, *remarks(summary)])


def remarks(summary: Summary) -> list[str]:
    """Return a line on locks that are not watched, one on greenlets, one on faults, if there are such."""
    lines = []
    if summary.unwatched:
        existed = counted(len(summary.unwatched), "lock")
        left = len(summary.unwatched) - UNWATCHED_MAX
        more = f" and {left} more, see the reports" if left > 0 else ""
        names = ", ".join(summary.unwatched[:UNWATCHED_MAX])
        lines.append(f"Not watched: {existed} that existed before lockcheck: {names}{more}.")
    if summary.greenlets:
        lines.append("Not checked: greenlets, which have taken the place of threads, and all after that.")
    if summary.faults:
        lines.append(f"Faults of the checker: {len(summary.faults)}, the first: {summary.faults[0]}")
    return lines


def blocking_lines(findings: Iterable[Finding], failing: Collection[Rung]) -> list[str]:
    """Return a line for each blocking call under a lock that fails nothing, up to a number."""
    found = {one.fingerprint: one for one in findings if one.rung is Rung.RB and one.rung not in failing}
    lines = [f"{one} at {one.edges[0].place} [{one.fingerprint}]" for one in found.values()]
    left = len(lines) - BLOCKING_LINES_MAX
    return lines if left <= 0 else [*lines[:BLOCKING_LINES_MAX], f"... and {left} more, see the reports"]
