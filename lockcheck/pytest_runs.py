"""Checked runs of pytest: each test runs in its own session, and fails where it breaks the order of locks.

`pytest_plugin` loads this if locks are checked.

A session for the whole run is around those of the tests, so that what tests do at import is observed too. The
declared order comes from the marker of a test, class or module, `@pytest.mark.lockcheck(order=ORDER)`, else
from `--lockcheck-order`; `off=True` leaves a test unchecked.
"""

from __future__ import annotations

import functools
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, MutableMapping
from contextlib import ExitStack, suppress
from datetime import date, datetime
from pathlib import Path
from typing import Final, ParamSpec, Protocol, TypeVar

import pytest

from .adoption.installation import Adoption
from .adoption.naming import Scope
from .checking.policy import NOTE_ALL, log_briefly
from .commands.settings import ProjectSettings, project_settings
from .findings.findings import Finding, counted
from .findings.terms import Level, LockCheckError, LockUsageError, Rung, fault_said, level_of
from .order.order import Order
from .reports.documents import from_json, to_json
from .reports.several_runs import Baseline, MergedSummaries, Verdict, read_baseline
from .reports.writing import report_paths, write_reports
from .sessions.running import named_order
from .sessions.session import Session, blocking_lines, remarks
from .sessions.summaries import Summary

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def _or_else(result: _Result) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """Let a part of the plugin return a result if it has a fault, and report that on standard error.

    Errors of options and findings are not faults.
    """

    def decorated(part: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
        @functools.wraps(part)
        def guarded(*given: _Given.args, **named: _Given.kwargs) -> _Result:
            try:
                return part(*given, **named)
            except (LockCheckError, pytest.UsageError):
                raise
            except Exception as error:  # noqa: BLE001 - a bug of the checker must not change the run
                if sys.stderr is not None:
                    with suppress(OSError, ValueError):
                        sys.stderr.write(f"lockcheck: {fault_said(error)}\n")
                return result

        return guarded

    return decorated


_WORKER_KEY: Final = "lockcheck"
"""The key of what a process has found; those of the rest begin with it."""


class _XdistProcess(Protocol):
    """A process of xdist that runs tests for another one: `config` there, a node here."""

    workeroutput: MutableMapping[str, object]


def _raise_rung(rungs: dict[str, Rung], fingerprint: str, rung: Rung) -> None:
    """Note the rung of a finding, unless a higher one is known."""
    rungs[fingerprint] = max(rung, rungs.get(fingerprint, rung))


def _texts_of(output: Mapping[str, object], key: str) -> list[str]:
    """Return one of the lists that another process has sent."""
    sent = output.get(f"{_WORKER_KEY} {key}")
    return list(map(str, sent)) if isinstance(sent, list) else []


_SESSION: Final = pytest.StashKey[Session]()
_OPENED: Final = pytest.StashKey[Session]()
_ADOPTION: Final = pytest.StashKey[ExitStack]()
_FOUND: Final = pytest.StashKey[list[Finding]]()
_PROJECT: Final = pytest.StashKey[ProjectSettings]()
_BASELINE: Final = pytest.StashKey[Baseline]()
_MERGED: Final = pytest.StashKey[MergedSummaries]()
_ACROSS_SESSIONS: Final = pytest.StashKey[tuple[Finding, ...]]()
"""Cycles over several tests that are over none of them alone."""
_USED: Final = pytest.StashKey[set[str]]()
"""Fingerprints of what other processes found."""
_REPORTED: Final = pytest.StashKey[dict[str, str]]()
"""The test in whose report each finding is in full, by fingerprint."""
_OUTSIDE: Final = pytest.StashKey[set[str]]()
"""Findings that fail, made while no test ran, in any process."""
_RUNGS: Final = pytest.StashKey[dict[str, Rung]]()
"""The highest rung of what other processes found, by fingerprint."""
_CHECKED: Final = pytest.StashKey[frozenset[str]]()
"""Fingerprints of findings that failed a test at its end, or would have."""


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the run."""
    config.stash[_FOUND] = []
    config.stash[_USED] = set()
    config.stash[_RUNGS] = {}
    config.stash[_REPORTED] = {}
    config.stash[_OUTSIDE] = set()
    config.stash[_BASELINE] = _baseline(config)
    config.stash[_PROJECT] = _settings(config)
    open_run(config, config.option)
    config.stash[_ACROSS_SESSIONS] = ()
    opened = config.stash.get(_SESSION, None)
    if opened is not None:
        config.stash[_MERGED] = MergedSummaries(opened.level.name.lower())


def session_of(item: pytest.Item) -> Session | None:
    """Return the session of a test, if its locks are checked."""
    return item.stash.get(_OPENED, None)


def open_run(config: pytest.Config, options: Namespace) -> None:
    """Open the session of the run, unless it is open."""
    level = level_of(options.lockcheck)
    if level is Level.OFF or _SESSION in config.stash:
        return
    try:
        adoption = Adoption(Scope.of_environment(options.lockcheck_adopt, "--lockcheck-adopt"))
    except LockUsageError as error:
        raise pytest.UsageError(str(error)) from None
    opened = Session(level=level, on=NOTE_ALL, name="outside of tests")
    config.stash[_SESSION] = opened.__enter__()
    config.stash[_ADOPTION] = adopted = ExitStack()
    adopted.enter_context(adoption)
    try:  # Inside of the session, so that what the module of the order makes is checked too.
        report_paths(options, "lockcheck_")
        opened.order = named_order(options.lockcheck_order) if options.lockcheck_order else None
    except LockUsageError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the session of the run."""
    opened = config.stash.get(_SESSION, None)
    if opened is not None:
        config.stash[_ADOPTION].close()
        opened.__exit__(None, None, None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test in its own session, fixtures included."""
    outer = item.config.stash.get(_SESSION, None)
    marker = item.get_closest_marker("lockcheck")
    options = marker.kwargs if marker is not None else {}
    if outer is None:
        return (yield)
    if options.get("off"):
        with outer.left_alone(), pytest.MonkeyPatch.context() as environment:
            for name in ("LOCKCHECK", "DEADLOCK_DETECTION_ENABLED"):  # which would have new locks checked
                environment.delenv(name, raising=False)
            return (yield)
    order = options.get("order", outer.order)
    if order is not None and not isinstance(order, Order):
        raise pytest.UsageError(f"{item.nodeid}: expected an Order, got lockcheck(order={order!r})")
    with Session(
        order, level=outer.level, on=NOTE_ALL, fail_on=_failing(item.config), name=item.nodeid,
        witnesses=_witnesses(item.config), blocking=item.config.stash[_PROJECT].blocking,
    ) as opened:  # fmt: skip
        opened.watch.tell = log_briefly
        item.stash[_OPENED] = opened
        result = yield
    _note_end(item, opened)
    del item.stash[_OPENED]  # items live as long as the run
    return result


@_or_else(None)
def _note_end(item: pytest.Item, opened: Session) -> None:
    checked = item.stash.get(_CHECKED, frozenset())
    late = _verdict(item.config, (one for one in opened.failures if one.fingerprint not in checked)).failures
    item.config.stash[_OUTSIDE].update(f"{item.nodeid}, after its end: {one}" for one in late)
    item.config.stash[_FOUND].extend(opened.findings)
    item.config.stash[_MERGED].add(opened.summary())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test at its end for what was found while it ran."""
    report = yield
    opened = item.stash.get(_OPENED, None)
    if opened is not None and call.when == "teardown":
        _report_found(item, opened, report)
    return report


@_or_else(None)
def _report_found(item: pytest.Item, opened: Session, report: pytest.TestReport) -> None:
    found = opened.failures
    item.stash[_CHECKED] = frozenset(one.fingerprint for one in found)
    if report.passed and _verdict(item.config, found).failures:
        reported = item.config.stash[_REPORTED]
        report.longrepr = opened.report_text(reported)
        report.outcome = "failed"
        vars(report)["lockcheck_summary"] = report.longrepr.partition("\n")[0]
        for one in opened.findings:
            reported.setdefault(one.fingerprint, item.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the reports, or send them to the process that does; fail for entries of the baseline."""
    opened = session.config.stash.get(_SESSION, None)
    if opened is not None and not _finish(session, opened) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


@_or_else(False)
def _finish(session: pytest.Session, outer: Session) -> bool:
    """Do so; return whether the checker had no fault in the run."""
    config = session.config
    config.stash[_MERGED].add(outer.summary())
    worker: _XdistProcess | None = config if hasattr(config, "workeroutput") else None
    if worker is not None:
        worker.workeroutput[_WORKER_KEY] = to_json(config.stash[_MERGED].summary())
        found = [*config.stash[_FOUND], *outer.findings]
        worker.workeroutput[_WORKER_KEY + " found"] = [one.fingerprint for one in config.stash[_FOUND]]
        worker.workeroutput[_WORKER_KEY + " rungs"] = [f"{one.fingerprint} {one.rung.name}" for one in found]
        worker.workeroutput[_WORKER_KEY + " outside"] = [*config.stash[_OUTSIDE], *map(str, outer.failures)]
        return True
    summary, across = config.stash[_MERGED].with_cycles()
    config.stash[_ACROSS_SESSIONS] = across
    _write(config, summary)
    outside = config.stash[_OUTSIDE]
    outside.update(str(finding) for finding in outer.failures)
    failing = _complaints(config) or outside or _verdict(config, across).failures
    if failing and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    return not summary.faults


@pytest.hookimpl(optionalhook=True)
@_or_else(None)
def pytest_testnodedown(node: object, error: object) -> None:
    """Take over what a process of xdist found; one that crashed has sent nothing."""
    output: Mapping[str, object] = getattr(node, "workeroutput", {})
    config: pytest.Config = node.config  # type: ignore[attr-defined] # a node of xdist has one
    text = output.get(_WORKER_KEY)
    if error is None and isinstance(text, str) and text:
        config.stash[_MERGED].add(from_json(text, "a process of pytest-xdist"))
    config.stash[_USED].update(_texts_of(output, "found"))
    for text in _texts_of(output, "rungs"):
        fingerprint, _, rung = text.rpartition(" ")
        _raise_rung(config.stash[_RUNGS], fingerprint, Rung[rung])
    config.stash[_OUTSIDE].update(_texts_of(output, "outside"))


@_or_else(None)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what was observed and what was found."""
    outer = config.stash.get(_SESSION, None)
    if outer is None:
        return
    for report in terminalreporter.getreports("error"):
        # The reports are printed. Pytest's list after this has them again, in full when `CI` is set.
        report.longrepr = getattr(report, "lockcheck_summary", report.longrepr)
    rungs, across = config.stash[_RUNGS].copy(), config.stash[_ACROSS_SESSIONS]
    for one in (*config.stash[_FOUND], *outer.findings, *across):
        _raise_rung(rungs, one.fingerprint, one.rung)
    found = Counter(rung.name for rung in rungs.values())
    summary = config.stash[_MERGED].summary()
    counts = ", ".join(f"{found[rung.name]} at {rung.name}" for rung in Rung if found[rung.name])
    terminalreporter.section("lockcheck", sep="-")
    terminalreporter.line(
        f"level {outer.level.name.lower()}: {counted(len(summary.class_edges), 'kind')} of edges, "
        + (f"found {counts or 'nothing'}" if counts or summary.acquisitions != 0 else "no lock was seen")
    )
    blocking = blocking_lines([*config.stash[_FOUND], *outer.findings], _failing(config))
    for line in (*remarks(summary), *blocking):
        terminalreporter.line(line)
    if across:
        terminalreporter.line(f"{len(across)} of them over several tests")
    for finding in _verdict(config, across).failures:
        terminalreporter.line(f"over several tests: {finding} [{finding.fingerprint}]")
    for complaint in _complaints(config):
        terminalreporter.line(complaint)
    outside = config.stash[_OUTSIDE]
    for text in sorted(outside):
        terminalreporter.line(f"outside of tests: {text}")


def _baseline(config: pytest.Config) -> Baseline:
    path = config.getoption("--lockcheck-baseline")
    try:
        return read_baseline(path) if path else Baseline()
    except LockUsageError as error:
        raise pytest.UsageError(str(error)) from None


def _verdict(config: pytest.Config, findings: Iterable[Finding]) -> Verdict:
    return config.stash[_BASELINE].check(findings, _failing(config), _today(), whole=False)


def _complaints(config: pytest.Config) -> list[str]:
    """Return what is wrong with the baseline; unused entries only if no tests were selected."""
    found = (*config.stash[_FOUND], *config.stash[_ACROSS_SESSIONS])
    used = config.stash[_USED] | {one.fingerprint for one in found}
    everything = config.args_source is not pytest.Config.ArgsSource.ARGS and not config.getoption("keyword")
    return list(config.stash[_BASELINE].complaints(used, _today(), whole=everything))


def _write(config: pytest.Config, summary: Summary) -> None:
    reporter: pytest.TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
    write_reports(
        report_paths(config.option, "lockcheck_"),
        summary,
        root=config.rootpath,
        accepted=config.stash[_BASELINE].reasons(_today()),
        show=lambda text: reporter.write("\n" + text) if reporter is not None else None,
    )


def _today() -> date:
    return datetime.now().astimezone().date()


def _witnesses(config: pytest.Config) -> Path:
    return config.rootpath / str(config.getoption("--lockcheck-witness"))


def _failing(config: pytest.Config) -> frozenset[Rung]:
    return config.stash[_PROJECT].fail_on


def _settings(config: pytest.Config) -> ProjectSettings:
    """Return the settings of the run: those of the project, with those of pytest."""
    rules = [*config.getini("lockcheck_blocking"), *config.getoption("--lockcheck-blocking")]
    failing = config.getoption("--lockcheck-fail-on") or config.getini("lockcheck_fail_on")
    try:
        return project_settings(config.rootpath).with_given(rules, failing, "lockcheck_blocking")
    except LockUsageError as error:
        raise pytest.UsageError(str(error)) from None
