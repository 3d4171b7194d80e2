"""Drivers of the schedulers that are measured: some schedulers run by themselves, one must be stepped."""

from __future__ import annotations

from typing import Final, Protocol, final

from figures import BenchError, Gauges
from recorder import Goal, Recorder

from licorne.proxy.si.api import SchedulerAPI

# The slowest workload of the recorded core needs 70 s; ten times that is no measurement any more.
_WAIT_SECONDS_MAX: Final = 700.0
_STEP_INTERVAL_SECONDS: Final = 0.1


class SteppedAPI(SchedulerAPI, Protocol):
    """A scheduler that does nothing until its caller steps it."""

    def run_until_idle(self) -> object:
        """Do all that can be done now; callbacks come from inside this call."""

    def now_ns(self) -> int:
        """Return the scheduler's own time, nanoseconds since 1970: it stands still by itself."""

    def advance_to(self, time_ns: int) -> None:
        """Let the scheduler's own time pass, and do what becomes due."""


class BenchDriver(Protocol):
    """What the measuring code needs besides the scheduler's own API."""

    @property
    def api(self) -> SchedulerAPI:
        """The scheduler."""

    def wait(self, recorder: Recorder, goal: Goal) -> None:
        """Return as soon as the recorder has reached the goal.

        Raises:
            BenchError: it never will, or something else makes the run worthless.
        """

    def pause(self, seconds: float) -> None:
        """Let that much time pass without requests to the scheduler."""


@final
class SelfRunning:
    """A scheduler with threads of its own."""

    def __init__(
        self, api: SchedulerAPI, gauges: Gauges, *, wait_seconds_max: float = _WAIT_SECONDS_MAX
    ) -> None:
        self.api = api
        self._gauges = gauges
        self._wait_seconds_max = wait_seconds_max

    def wait(self, recorder: Recorder, goal: Goal) -> None:
        """Block until the goal is reached."""
        if not recorder.wait(goal, self._wait_seconds_max):
            waited = f"after {self._wait_seconds_max:g} s"
            raise BenchError(f"{waited} the resource manager has {recorder.progress()}, not {goal}")

    def pause(self, seconds: float) -> None:
        """Sleep."""
        self._gauges.sleep_seconds(seconds)


@final
class Stepped:
    """A scheduler that runs inside its caller."""

    def __init__(self, api: SteppedAPI, gauges: Gauges) -> None:
        self.api = api
        self._gauges = gauges

    def wait(self, recorder: Recorder, goal: Goal) -> None:
        """Let the scheduler run until it is idle; then the goal must be reached."""
        self.api.run_until_idle()
        if not recorder.has_reached(goal):
            raise BenchError(
                f"the scheduler is idle, and the resource manager has {recorder.progress()}, not {goal}"
            )

    def pause(self, seconds: float) -> None:
        """Sleep, and step the scheduler now and then, as a host with a timer of its own would."""
        deadline = self._gauges.clock_seconds() + seconds
        self.api.run_until_idle()
        while (left := deadline - self._gauges.clock_seconds()) > 0:
            slept = min(left, _STEP_INTERVAL_SECONDS)
            self._gauges.sleep_seconds(slept)
            self.api.advance_to(self.api.now_ns() + round(slept * 1e9))
            self.api.run_until_idle()
