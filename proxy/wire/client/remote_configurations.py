"""Updates of the configurations of a remote scheduler, at once or in two phases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress

from ...core.scheduler.managers.callbacks import CallbackThreads
from ...core.scheduler.prepared_configuration import PreparedConfiguration
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from ...si.arguments import rm_id_of
from .connection import Connection
from .errors import ConnectionLostError, NotSentError
from .remote_life import Registered


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
        """Check all that `update_configuration` may refuse, and change nothing yet; scheduling goes on.

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
            with suppress(ConnectionLostError, NotSentError):  # Nothing commits it any more.
                connection.send(v1.ManagerMessage(abandon_configuration=change), self._send_timeout_seconds)

        return PreparedConfiguration(rm_id, answer.number, commit, abandon)

    def _note_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Have a resource manager that is registered again come with the configuration of now."""
        known = self._registered.get(request.rmID)
        if known is not None:
            known.request.request.config = request.config
            known.request.request.extraConfig.clear()
            known.request.request.extraConfig.update(request.extraConfig)
