"""`pytest --lockcheck=confirm`: tests are run again, steered into what they found or predict.

A trace has the events of one test alone, and is dropped when the test has ended. A re-run has its own
fixtures and session. Whether it passes does not matter; only whether its threads get stuck does. It has a
limit, since a test may wait for ever for a thread that was a victim.
"""

from __future__ import annotations

import signal
import tempfile
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Final, Literal, final

import pytest

from ..checking.acquisition_checks import witness_of
from ..confirming.confirmation import ConfirmationOutcome, confirm, raised, ways_to_confirm
from ..findings.findings import Finding, Witness
from ..findings.terms import LockUsageError
from ..prediction.predicted_findings import contradictions_of, findings_of
from ..sessions.recording import events_written
from ..sessions.session import Session
from ..traces.trace import Trace, read_trace

RERUN_SECONDS_MAX: Final = 20.0
SEGMENTS: Final = 4
"""The size of the trace of a test, in MiB; of a longer one the end is looked at."""
GRACE_SECONDS: Final = 3.0
"""How long a test may go on after its deadlock was confirmed and broken."""
_NO_LIMIT: Final = "the test does not run on the main thread, so that a re-run could not be ended"
_NOT_AGAIN: Final = "this kind of test cannot be run again"
_OVERDUE: Final = f"the test did not come to its end in {RERUN_SECONDS_MAX:g} s when it was run again"


@final
class _OverdueError(BaseException):
    """A re-run takes too long; an `except Exception` of the test must not catch this."""


_ENDS_THE_RUN: Final = (KeyboardInterrupt, pytest.exit.Exception, _OverdueError)


@final
class Confirming:
    """Confirms what the tests of a run found and predict; each finding until it is confirmed once.

    Args:
        folder: where replay files are written to.
        accepted: fingerprints that need not be confirmed.
    """

    def __init__(self, folder: Path, accepted: Collection[str]) -> None:
        self._folder = folder
        self._accepted = accepted
        self._confirmed: dict[str, ConfirmationOutcome] = {}
        self._recording: _TestTrace | None = None

    def record(self) -> None:
        """Begin to record the events of a test; warn if that cannot be."""
        if self._recording is not None:
            self._recording.close()
        try:
            self._recording = _TestTrace()
        except (LockUsageError, OSError) as error:
            self._recording = None
            warnings.warn(
                pytest.PytestWarning(f"lockcheck predicts nothing of this test: {error}"), stacklevel=2
            )

    def confirm(self, item: pytest.Item, following: pytest.Item | None, opened: Session) -> None:
        """Try to confirm what a test found, by running it again; put the outcome into its session.

        Args:
            item: the test, which has been torn down.
            following: the test that comes next, which shares fixtures.
            opened: the session of the test.
        """
        recording, self._recording = self._recording, None
        predicted, contradicted = _predicted(recording, opened) if recording is not None else ((), {})
        for ways in ways_to_confirm((*opened.findings, *predicted)):
            fingerprint = ways[0].fingerprint
            if fingerprint in self._accepted:
                continue
            known = self._confirmed.get(fingerprint)
            outcome = known or self._first_confirmed(ways, item, following, opened)
            finding = ways[0] if ways[0] in opened.findings else opened.watch.note(ways[0])
            opened.watch.amend(raised(finding, outcome, contradicted.get(fingerprint)))
            if outcome.finding is not None:
                self._confirmed[fingerprint] = outcome

    def _first_confirmed(
        self, ways: Sequence[Finding], item: pytest.Item, following: pytest.Item | None, opened: Session
    ) -> ConfirmationOutcome:
        """Return the outcome of the first way that is confirmed, else that of the first one."""
        outcomes: list[ConfirmationOutcome] = []
        for way in ways:
            witness = witness_of(way)
            assert witness is not None, "please report: a finding without a witness"
            outcomes.append(self._tried(witness, item, following, opened))
            if outcomes[-1].finding is not None:
                return outcomes[-1]
        return outcomes[0]

    def _tried(
        self, witness: Witness, item: pytest.Item, following: pytest.Item | None, opened: Session
    ) -> ConfirmationOutcome:
        if threading.current_thread() is not threading.main_thread():
            return ConfirmationOutcome(None, (_NO_LIMIT,), witness, 0)
        if not hasattr(item, "_initrequest"):
            return ConfirmationOutcome(None, (_NOT_AGAIN,), witness, 0)
        again = _Again(item, following)
        outcome = confirm(
            witness,
            again.run,
            folder=self._folder,
            order=opened.order,
            name=item.nodeid,
            confirmed=again.has_come_true,
        )
        if outcome.finding is None and again.overdue:
            outcome = replace(outcome, reasons=(*outcome.reasons, _OVERDUE))
        return outcome


def _predicted(recording: _TestTrace, opened: Session) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """Return what a test predicts, and contradicts; an error of that is a fault of the checker."""
    try:
        trace = recording.trace()
        return findings_of(trace)[0], contradictions_of(trace, opened.findings)
    except Exception as error:  # noqa: BLE001 - a bug of the checker must not change the tests
        opened.watch.note_fault(error)
        return (), {}


@final
class _TestTrace:
    """The events of one test, recorded until they are looked at.

    Raises:
        LockUsageError: this process is recorded anyway.
        OSError: the trace cannot be written.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lockcheck-")
        self._path = Path(self._folder.name) / "locks.lct"
        self._events = ExitStack()
        self._events.enter_context(events_written(self._path, segments=SEGMENTS))

    def trace(self) -> Trace:
        """Return the events so far, and drop them.

        Raises:
            TraceFileError: the trace is broken.
            OSError: it cannot be read.
        """
        with self._folder:
            self._events.close()
            return read_trace(self._path)

    def close(self) -> None:
        """Drop the events."""
        with self._folder:
            self._events.close()


@final
class _Again:
    """A test that can be run again, any number of times."""

    def __init__(self, item: pytest.Item, following: pytest.Item | None) -> None:
        self._item = item
        self._following = following
        self.overdue = False
        """Whether any of its phases took too long."""
        self._has_limit = False

    def run(self) -> None:
        """Set the test up, run it and tear it down, whether it passes or fails."""
        item, hooks = self._item, self._item.ihook
        item._initrequest()  # type: ignore[attr-defined] # noqa: SLF001 - as pytest-rerunfailures does
        if self._passes(lambda: hooks.pytest_runtest_setup(item=item), "setup"):
            self._passes(lambda: hooks.pytest_runtest_call(item=item), "call")
        self._passes(lambda: hooks.pytest_runtest_teardown(item=item, nextitem=self._following), "teardown")

    def has_come_true(self, _: Finding) -> None:
        """Give the test less time from now on."""
        if self._has_limit:
            signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)

    def _passes(self, work: Callable[[], None], when: Literal["setup", "call", "teardown"]) -> bool:
        try:
            with warnings.catch_warnings(), _limited() as self._has_limit:
                warnings.simplefilter("ignore")
                done = pytest.CallInfo.from_call(work, when, reraise=_ENDS_THE_RUN)
        except _OverdueError:
            self.overdue = True
            return False
        return done.excinfo is None


@contextmanager
def _limited() -> Iterator[bool]:
    """End the body when its time is over; if pytest-timeout has set an alarm, that one ends it.

    Yields:
        Whether the alarm is ours.
    """
    if not hasattr(signal, "SIGALRM") or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield False
        return
    before = signal.signal(signal.SIGALRM, _overdue)
    signal.setitimer(signal.ITIMER_REAL, RERUN_SECONDS_MAX)
    try:
        yield True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _overdue(_: int, __: FrameType | None) -> None:
    raise _OverdueError
