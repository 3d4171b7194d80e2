"""What a client has the scheduler do in a session of `licorne.v1`, and the RMs that have registered in it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, final

from ....model.errors import RequestError
from ...core.scheduler.prepared_configuration import PreparedConfiguration, commit_refused
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from .access import Peer
from .buffers import call_soon
from .core import ServerCore
from .later_answers import ask_state_dump, refuse_state_dump
from .remote_managers import RemoteManager
from .session_calls import SessionCalls
from .session_managers import DeferringManager, ManagedSession, SessionManager, SteppedManager
from .statuses import NotRegisteredError


@final
class SessionRequests:
    """Carries out the messages of one session, on its thread.

    Args:
        core: Has the scheduler.
        peer: The client.
        session: Sends what the RMs are to receive.
        on_registration: Called on the event loop when an RM has registered.
    """

    def __init__(
        self,
        core: ServerCore,
        peer: Peer,
        session: ManagedSession,
        on_registration: Callable[[SessionManager], None],
    ) -> None:
        self._core = core
        self._peer = peer
        self._session = session
        self._on_registration = on_registration
        self._calls = SessionCalls(core.scheduler, peer)
        self.managers: dict[str, SessionManager] = {}
        self.companion_of = ""
        """The RM that uses the streams of `si.v1`, and this session besides."""
        self.client = ""
        """The address of the client."""
        self.door = v1.DoorStart()
        """The door that is the client, if it is one."""
        self.has_ended = False
        """Whether the session has ended: what is prepared from now on is abandoned at once."""
        self._prepared: dict[str, PreparedConfiguration] = {}
        """The configuration that was prepared last for an RM; only this session can commit it."""
        self._said_goodbye = False

    @property
    def is_over(self) -> bool:
        """Whether the client has said goodbye, or has no RM here."""
        return self._said_goodbye or not self.managers

    def end(self, reason: str) -> None:
        """Abandon what was prepared, and have the RMs lose their connection; on the event loop."""
        self._abandon_all()
        for manager in list(self.managers.values()):
            self._core.managers.connection_lost(manager, reason)

    def carry_out(self, message: v1.ManagerMessage) -> v1.Answer:
        """Carry out one message.

        Raises:
            Exception: It is refused, or cannot be carried out.
        """
        scheduler = self._core.scheduler
        match message.WhichOneof("body"):
            case "update_allocation" | "update_application" | "update_node" as method:
                request = getattr(message, method)
                manager = self._check_own(request.rmID)
                manager.wait_until_delivered(scheduler)
                with manager.turn:
                    self._check_own(request.rmID)  # It may have registered elsewhere meanwhile.
                    manager.hand_over(scheduler, method, request)
            case "question":
                if (
                    scheduler.stepped or self._core.works_elsewhere
                ):  # Each worker bounds its own time for them.
                    return self._calls.ask(message.question)
                with self._core.questions.step():
                    return self._calls.ask(message.question)
            case "step":
                return self._calls.step(message.step)
            case "pause" | "stop" as change:
                return self._calls.halt(change, getattr(message, change))
            case body:
                calls: dict[str | None, Callable[[Any], v1.Answer | None]] = {
                    "register": self._register,
                    "update_configuration": self._update_configuration,
                    "prepare_configuration": self._prepare_configuration,
                    "commit_configuration": self._commit_configuration,
                    "abandon_configuration": self._abandon_configuration,
                    "forget": self._forget,
                    "goodbye": self._say_goodbye,
                    "reconsider": self._reconsider,
                    "take_kept_use": self._calls.take_kept_use,
                }
                if body not in calls:
                    raise RequestError(f"a message {body or 'without a body'!r} is not expected here")
                return calls[body](getattr(message, body)) or v1.Answer()
        return v1.Answer()

    def _update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        self._core.update_configuration(request, self._check_own(request.rmID))

    def _prepare_configuration(self, request: si.UpdateConfigurationRequest) -> v1.Answer:
        prepared = self._core.prepare_configuration(request, self._check_own(request.rmID))
        before, self._prepared[request.rmID] = self._prepared.get(request.rmID), prepared
        if before is not None:
            before.abandon()
        if self.has_ended:
            self._abandon_all()
        return v1.Answer(number=prepared.number)

    def _commit_configuration(self, change: v1.ConfigurationChange) -> None:
        """Commit what was prepared in this session.

        Raises:
            RequestError: There is no such change, or it cannot be committed any more.
        """
        self._check_own(change.rm_id)
        prepared = self._prepared.get(change.rm_id)
        if prepared is None:
            raise commit_refused(change.rm_id, "none is prepared in this session")
        if prepared.number != change.number:
            raise commit_refused(change.rm_id, "another one has been prepared since")
        prepared.commit()
        self._prepared.pop(change.rm_id, None)

    def _abandon_configuration(self, change: v1.ConfigurationChange) -> None:
        self._peer.check_may_speak_for(change.rm_id)
        prepared = self._prepared.get(change.rm_id)
        if prepared is not None and prepared.number == change.number:
            self._prepared.pop(change.rm_id, None)
            prepared.abandon()

    def _abandon_all(self) -> None:
        for prepared in list(self._prepared.values()):
            prepared.abandon()
        self._prepared.clear()

    def _reconsider(self, named: v1.Reconsideration) -> None:
        with self._check_own(named.rm_id).turn:
            self._core.scheduler.request_reconsideration(named)

    def _check_own(self, rm_id: str) -> RemoteManager:
        """Return the RM that a message names.

        Raises:
            StatusError: It may not be named, or has not registered in this session.
        """
        self._peer.check_may_speak_for(rm_id)
        if rm_id and rm_id == self.companion_of:
            return self._core.managers.current(rm_id)
        manager = self._core.managers.current(rm_id)
        if not isinstance(manager, SessionManager) or not manager.is_of(self._session):
            raise NotRegisteredError(f"RM {rm_id!r} has not registered in this session")
        return manager

    def _register(self, registration: v1.Registration) -> None:
        request = registration.request
        self._peer.check_may_speak_for(request.rmID)
        kind = SessionManager
        if registration.predicates:
            kind = SteppedManager if self._core.scheduler.stepped else DeferringManager
        manager = kind(self._session, request.rmID, dict(request.extraConfig), uses_file=not request.config)
        manager.connected_by = f"licorne.v1 from {self.client}"
        manager.door = self.door
        if registration.state_dump:
            ask = refuse_state_dump if self._core.scheduler.stepped else ask_state_dump
            manager.get_state_dump = partial(ask, self._session, request.rmID)
        before = self.managers.get(request.rmID)
        self.managers[request.rmID] = manager
        try:
            self._core.register(request, manager, registration.partitions)
        except BaseException:
            if before is None:
                del self.managers[request.rmID]
            else:
                self.managers[request.rmID] = before
            raise
        call_soon(self._core.loop, self._on_registration, manager)

    def _forget(self, message: v1.Forget) -> None:
        self._peer.check_may_speak_for(message.rm_id)
        self._core.scheduler.forget_manager(message.rm_id)

    def _say_goodbye(self, message: v1.Goodbye) -> None:
        for name in [message.rm_id] if message.rm_id else list(self.managers):
            self._core.managers.shut_down(self._check_own(name))
            del self.managers[name]
        self._said_goodbye = not self.managers
