"""Parts of a remote scheduler: the lives of resource managers (RMs), configurations, and steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import final

from ....model.errors import ReplacedError, RequestError
from ...core.scheduler.managers.callbacks import CallbackFailures, CallbackThreads
from ...core.scheduler.prepared_configuration import PreparedConfiguration
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from ...si.api import ResourceManagerCallback
from ...si.arguments import check_type, replaced_hook, rm_id_of
from .connection import Connection
from .errors import ConnectionLostError, NotSentError


@final
class Registered:
    """An RM that has registered, and its registration."""

    def __init__(self, request: v1.Registration, callback: ResourceManagerCallback) -> None:
        self.request = request
        self.callback = callback


class RemoteLife(ABC):
    """The methods for the life of RMs; `RemoteScheduler` has the rest."""

    _registered: dict[str, Registered]
    _replaced: dict[str, tuple[Registered | None, ReplacedError]]
    """The RMs that have registered elsewhere since, until they register here again."""
    _callback_threads: CallbackThreads
    _failures: CallbackFailures

    @property
    def connection(self) -> Connection:
        """The session with the server, for who looks after it.

        Raises:
            RequestError: This object has been stopped, or there is no connection now.
        """
        return self._known()

    @property
    def rest_address(self) -> str:
        """Where the REST interface of the server listens, `HOST:PORT`; empty if it has none.

        Raises:
            RequestError: This object has been stopped, or there is no connection now.
        """
        return self._known().rest_address

    @property
    def server_version(self) -> str:
        """The version of Licorne of the server; empty if it does not send it.

        Raises:
            RequestError: This object has been stopped, or there is no connection now.
        """
        return self._known().server_version

    @property
    def server_build(self) -> str:
        """The hash of the source code of the server; empty if it does not send it.

        Raises:
            RequestError: This object has been stopped, or there is no connection now.
        """
        return self._known().server_build

    @abstractmethod
    def _known(self) -> Connection:
        """Return the connection."""

    @abstractmethod
    def _call(self, message: v1.ManagerMessage) -> v1.Answer:
        """Make a call and wait for its answer."""

    def forget_manager(self, rm_id: str) -> None:
        """Forget a resource manager that has stopped, with its partitions and all that is counted of it.

        Raises:
            RequestError: It has not stopped, or no such one has registered.
        """
        check_type("rm_id", rm_id, str)
        self._callback_threads.refuse("the end of a resource manager")
        self._call(v1.ManagerMessage(forget=v1.Forget(rm_id=rm_id)))

    def pause_manager(
        self, rm_id: str, reason: str, *, callback: ResourceManagerCallback | None = None
    ) -> bool:
        """Place nothing new for a resource manager whose connection is lost, until it registers again.

        See `Scheduler.pause_manager`.

        Raises:
            RequestError: No such resource manager has registered, or a predicate calls.
        """
        check_type("rm_id", rm_id, str)
        check_type("reason", reason, str)
        self._callback_threads.refuse("a pause of a resource manager")
        return self._halt(v1.ManagerMessage(pause=v1.Halt(rm_id=rm_id, reason=reason)), rm_id, callback)

    def stop_manager(
        self, rm_id: str, reason: str, *, callback: ResourceManagerCallback | None = None
    ) -> bool:
        """End the timers of a resource manager, and refuse its requests, until it registers again.

        See `Scheduler.stop_manager`.

        Raises:
            RequestError: As for `pause_manager`.
        """
        check_type("rm_id", rm_id, str)
        check_type("reason", reason, str)
        self._callback_threads.refuse("a stop of a resource manager")
        return self._halt(v1.ManagerMessage(stop=v1.Halt(rm_id=rm_id, reason=reason)), rm_id, callback)

    def _halt(self, message: v1.ManagerMessage, rm_id: str, callback: ResourceManagerCallback | None) -> bool:
        registered = self._registered.get(rm_id)
        if callback is not None and (registered is None or registered.callback is not callback):
            return False  # It has registered with another one since.
        return self._call(message).changed

    # ------------------------------------------------------------------------------- RMs that are replaced

    def _note_replaced(self, rm_id: str, error: ReplacedError) -> None:
        """Note that an RM has registered elsewhere: this object does not register it again automatically."""
        self._replaced[rm_id] = (self._registered.pop(rm_id, None), error)

    def _all_replaced(self) -> ReplacedError | None:
        """Return why no RM is still registered here, `None` if one is, or none was."""
        if self._registered:
            return None
        return next((error for _, error in self._replaced.values()), None)

    def _tell_replaced(self, rm_id: str) -> None:
        """Tell the callback of an RM, or whom failures are reported to, that it is replaced."""
        registered, error = self._replaced.get(rm_id, (None, None))
        hook = None if registered is None else replaced_hook(registered.callback)
        if error is not None:
            self._guarded(rm_id, "replaced", _raising(error) if hook is None else partial(hook, str(error)))()

    def _guarded(self, rm_id: str, name: str, step: Callable[[], object]) -> Callable[[], None]:
        """Return a step that is a callback of an RM, and reports what it raises."""

        def run() -> None:
            try:
                with self._callback_threads.callback(rm_id):
                    step()
            except BaseException as error:  # noqa: BLE001 - it is reported
                self._failures.note(rm_id, name, error)

        return run

    def _check_not_replaced(self, rm_id: str) -> None:
        """Refuse a request of an RM that has registered elsewhere.

        Raises:
            ReplacedError: It has.
        """
        if rm_id in self._replaced:
            raise ReplacedError(str(self._replaced[rm_id][1]))


def _raising(error: Exception) -> Callable[[], object]:
    """Return what raises an error."""

    def step() -> None:
        raise error

    return step


def reconnected_of(registered: Registered) -> Callable[[], object] | None:
    """Return the method by which an RM registers again, `None` if it has none."""
    found: Callable[[], object] | None = getattr(registered.callback, "reconnected", None)
    return found


def disconnected_hooks(
    registered: Mapping[str, Registered], error: RequestError
) -> list[tuple[str, Callable[[], object]]]:
    """Return what tells each RM whose callback has a method for it that the connection is lost."""
    hooks = [(rm_id, getattr(each.callback, "disconnected", None)) for rm_id, each in [*registered.items()]]
    return [(rm_id, partial(hook, error)) for rm_id, hook in hooks if hook is not None]


class RemoteConfigurations(ABC):
    """The methods that update configurations; `RemoteScheduler` has the rest."""

    _registered: dict[str, Registered]
    _callback_threads: CallbackThreads
    _send_timeout_seconds: float

    @abstractmethod
    def _call(self, message: v1.ManagerMessage) -> v1.Answer:
        """Make a call and wait for its answer."""

    @abstractmethod
    def _ask(self, connection: Connection, message: v1.ManagerMessage) -> v1.Answer:
        """Make a call over one connection and wait for its answer."""

    @abstractmethod
    def _known(self) -> Connection:
        """Return the connection."""

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Replace the configuration of a resource manager while it runs.

        An empty one is that of the server.

        Raises:
            RequestError: the configuration is refused, and nothing has changed.
        """
        rm_id_of(request, si.UpdateConfigurationRequest)
        self._callback_threads.refuse("an update of the configuration")
        self._call(v1.ManagerMessage(update_configuration=request))
        self._note_configuration(request)

    def prepare_configuration(self, request: si.UpdateConfigurationRequest) -> PreparedConfiguration:
        """Check all that `update_configuration` may refuse, and change nothing yet; scheduling continues.

        See `Scheduler.prepare_configuration`. An empty configuration is that of the server. It is abandoned
        when the connection is lost.

        Raises:
            RequestError: the configuration is refused, and nothing has changed.
        """
        rm_id = rm_id_of(request, si.UpdateConfigurationRequest)
        self._callback_threads.refuse("a preparation of a configuration")
        connection = self._known()
        answer = self._ask(connection, v1.ManagerMessage(prepare_configuration=request))
        prepared = si.UpdateConfigurationRequest()
        prepared.CopyFrom(request)  # The caller may change it meanwhile.
        change = v1.ConfigurationChange(rm_id=rm_id, number=answer.number)

        def commit() -> None:
            self._callback_threads.refuse("a commit of a configuration")
            self._ask(connection, v1.ManagerMessage(commit_configuration=change))
            self._note_configuration(prepared)

        def abandon() -> None:
            with suppress(ConnectionLostError, NotSentError):  # Nothing can commit it now.
                connection.send(v1.ManagerMessage(abandon_configuration=change), self._send_timeout_seconds)

        return PreparedConfiguration(rm_id, answer.number, commit, abandon)

    def _note_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Register a resource manager again with its present configuration."""
        known = self._registered.get(request.rmID)
        if known is not None:
            known.request.request.config = request.config
            known.request.request.extraConfig.clear()
            known.request.request.extraConfig.update(request.extraConfig)


class RemoteSteps(ABC):
    """The steps of a stepped scheduler; one that is not stepped refuses them. See `Stepping`."""

    @abstractmethod
    def _call(self, message: v1.ManagerMessage) -> v1.Answer:
        """Make a call and wait for its answer."""

    def _step(self, method: v1.Step.Method, argument: int | None = None) -> int | None:
        answer = self._call(v1.ManagerMessage(step=v1.Step(method=method, argument=argument)))
        return answer.number if answer.HasField("number") else None

    def now_ns(self) -> int:
        """Return the scheduler's time, nanoseconds since 1970."""
        return self._step(v1.Step.NOW) or 0

    def deliver(self) -> int:
        """Deliver all announcements; return how many callbacks there were."""
        return self._step(v1.Step.DELIVER) or 0

    def schedule(self, cycles: int | None = None) -> int:
        """Run cycles until one gives no result in any partition, up to a maximum; return how many did."""
        check_type("cycles", cycles, int, type(None))
        return self._step(v1.Step.SCHEDULE, cycles) or 0

    def run_until_idle(self) -> int:
        """Deliver and schedule until nothing more happens; return how many cycles gave a result."""
        return self._step(v1.Step.RUN_UNTIL_IDLE) or 0

    def settle(self) -> int:
        """Do what `run_until_idle` does where no callback calls the scheduler: then once is enough.

        A scheduler in another process does all of it.
        """
        return self.run_until_idle()

    def next_deadline_ns(self) -> int | None:
        """Return when the next timer or check is due on the virtual clock, `None` if nothing is."""
        return self._step(v1.Step.NEXT_DEADLINE)

    def next_timer_ns(self) -> int | None:
        """Return when the next timer is due on the virtual clock, `None` if none runs."""
        return self._step(v1.Step.NEXT_TIMER)

    def fire_next(self) -> None:
        """Move the virtual clock to the next timer and fire it, without delivering what follows."""
        self._step(v1.Step.FIRE_NEXT)

    def advance_to(self, time_ns: int) -> None:
        """Move the virtual clock, firing everything that is due on the way, and deliver after each."""
        check_type("time_ns", time_ns, int)
        self._step(v1.Step.ADVANCE_TO, time_ns)

    def inspect_outstanding(self) -> None:
        """Look for asks that wait for room in the cluster, and report them to the RMs."""
        self._step(v1.Step.INSPECT_OUTSTANDING)

    def preempt_over_quota(self) -> None:
        """Enforce maxima that were lowered and are due, where a partition is configured to."""
        self._step(v1.Step.PREEMPT_OVER_QUOTA)

    def deliver_events(self) -> None:
        """Queue events for the resource managers' callbacks now."""
        self._step(v1.Step.DELIVER_EVENTS)

    def record_history(self) -> None:
        """Add to the history how many applications run now, and how many allocations there are."""
        self._step(v1.Step.RECORD_HISTORY)
