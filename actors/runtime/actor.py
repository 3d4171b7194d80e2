"""Actors that run on any thread that has work for them, one thread at a time."""

from __future__ import annotations

import threading
from contextlib import suppress
from queue import Full
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, cast

import pykka
from pykka import ActorRegistry
from pykka._envelope import Envelope
from pykka.messages import _ActorStop

from .errors import ActorEndedError, DispatcherError
from .future import PooledFuture
from .mailbox import Mailbox, MessageEnvelope
from .reference import Failure, Invocation, MethodTable, PooledRef, method_table

if TYPE_CHECKING:
    from .dispatcher import Dispatcher

_ON_START: Final = object()
"""The first message of an actor that overrides `on_start`."""
_WAIT_LOCK: Final = threading.Lock()
"""Held while a thread makes the condition of an event."""


class _StopEvent(threading.Event):
    """An event that makes its condition when a thread waits for it: few actors are waited for.

    A condition is six objects, which the collector of garbage would follow for each application and node.
    """

    def __init__(self) -> None:
        self._flag = False
        self._waited_for: threading.Condition | None = None

    def is_set(self) -> bool:
        """Return whether the actor has stopped."""
        return self._flag

    def set(self) -> None:
        """Wake all that wait."""
        self._flag = True  # Before the look: a thread that is about to wait looks at it afterwards.
        if self._waited_for is not None:
            with self._waited_for:
                self._waited_for.notify_all()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set; return whether it is."""
        with _WAIT_LOCK:
            changed = self._waited_for = self._waited_for or threading.Condition()
        with changed:
            return changed.wait_for(self.is_set, timeout)


class PooledActor(pykka.Actor):
    """Pykka's actor, multiplexed on the workers of a dispatcher and on the threads that ask it.

    `on_start`, `on_stop` and `on_failure` run under the same ownership as messages, on no particular
    thread. An actor that needs its own thread stays a `pykka.ThreadingActor`.
    """

    bound_dispatcher: ClassVar[Dispatcher | None] = None
    """Where `start` of this class starts actors; `Dispatcher.start` needs no class to be bound."""

    mailbox_capacity: ClassVar[int | None] = None
    """Bound on waiting messages, control messages not counted; `None` is unbounded."""

    survives_failures: ClassVar[bool] = False
    """Whether the actor continues after an error in a message sent by `tell`, which is reported. By Pykka's
    contract it stops, and for `SystemExit` and the like all actors stop."""

    in_pykka_registry: ClassVar[bool] = False
    """Whether to register in `pykka.ActorRegistry`: one registry for the process, linear in all it does."""

    rank: ClassVar[int | None] = None
    """The actor's place in the order of asks, 0 at the top; `None` is unchecked."""

    method_table: ClassVar[MethodTable] = MethodTable()
    """From each method of a base class to the method that this class has for it."""

    actor_inbox: Mailbox

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.method_table = method_table(cls)

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.actor_stopped = _StopEvent()
        self.actor_inbox.bind(self)
        self._actor_ref = PooledRef(self)

    @classmethod
    def start(cls, *args: object, **kwargs: object) -> PooledRef[Self]:
        """Start an actor on the dispatcher that the class is bound to.

        Raises:
            DispatcherError: the class is not bound to a dispatcher.
        """
        if cls.bound_dispatcher is None:
            raise DispatcherError(f"{cls.__name__} has no bound_dispatcher: use Dispatcher.start")
        return cls.bound_dispatcher.start(cls, *args, **kwargs)

    @property
    def actor_ref(self) -> PooledRef[Self]:
        """The reference to this actor."""
        return cast("PooledRef[Self]", self._actor_ref)

    @property
    def dispatcher(self) -> Dispatcher:
        """The dispatcher that runs this actor; known once it is started."""
        return self.actor_inbox.dispatcher

    def actor_class_and_key(self) -> tuple[str, object]:
        """Return the actor's lock class in a declared order, and its key in that class, for lockcheck."""
        return type(self).__name__, None

    # The interface that Pykka asks of a runtime.

    @staticmethod
    def _create_actor_inbox() -> Mailbox:
        return Mailbox()

    @staticmethod
    def _create_future() -> PooledFuture[Any]:
        return PooledFuture()

    def _start_actor_loop(self) -> None:
        """Begin to handle messages; if the class defines no `on_start`, this costs no turn of a worker."""
        starts = type(self).on_start is not pykka.Actor.on_start
        self.actor_inbox.open(Envelope(_ON_START) if starts else None)

    def _handle_receive(self, message: object) -> object:
        rule = self.actor_inbox.direction
        if rule is not None:
            rule.enter()
            try:
                return self._perform(message)
            finally:
                rule.leave()
        if type(message) is Invocation:
            return message.method(self, *message.args, **message.kwargs)
        return self._perform(message)

    def _perform(self, message: object) -> object:
        if type(message) is Invocation:
            return message.method(self, *message.args, **message.kwargs)
        if message is _ON_START:
            self._actor_loop_setup()
            return None
        return super()._handle_receive(message)

    def _stop(self) -> None:
        self._end()
        self.dispatcher.log.debug("Stopped {}", self)  # noqa: PLE1205 - loguru's braces
        try:
            self.on_stop()
        except Exception as error:  # noqa: BLE001 - any error of a hook ends here
            self._report_and_end(error)

    def _handle_failure(
        self,
        exception_type: type[BaseException] | None,  # noqa: ARG002 - Pykka's signature
        exception_value: BaseException | None,
        traceback: TracebackType | None,  # noqa: ARG002 - Pykka's signature
    ) -> None:
        assert exception_value is not None
        self._report_and_end(exception_value)

    def on_withdrawn(self) -> None:
        """Do the work of the end of a turn when a withdrawn message is skipped; by default nothing."""

    # The interface for the actor's mailbox and references.

    def _handle_envelope(self, envelope: MessageEnvelope) -> None:
        """Handle one message and answer it; nothing is raised."""
        reply = envelope.reply_to
        try:
            response = self._handle_receive(envelope.message)
        except BaseException as error:  # noqa: BLE001 - the asker or `on_failure` gets it
            if not self._survives(error):
                self._crash(error, envelope.message)
            elif reply is None:
                self._fail(error, envelope.message)
            else:
                self._note_returned(error)
            if reply is not None:
                _answer_with(reply, error)
        else:
            if type(envelope.message) is _ActorStop:
                self.actor_inbox.answer_last(envelope)
            elif reply is not None:
                try:  # noqa: SIM105 - `suppress` would be one more call in every answer
                    reply.set(response)
                except Full:  # it has an answer already
                    pass

    def _return_envelope(self, envelope: MessageEnvelope) -> None:
        """Answer a message that the actor stopped before handling."""
        reply = envelope.reply_to
        if reply is None:
            self.dispatcher.report_dead_letter(self.actor_ref, envelope.message)
        elif isinstance(envelope.message, _ActorStop):
            with suppress(Full):  # it has an answer already
                reply.set(None)
        else:
            _answer_with(reply, ActorEndedError(f"{self.actor_ref} stopped before handling the message"))

    def _raised_inline(self, error: BaseException, message: object) -> None:
        """Handle an error that the asker is about to get."""
        if self._survives(error):
            self._note_returned(error)
        else:
            self._crash(error, message)

    def _survives(self, error: BaseException) -> bool:
        """Return whether the actor continues; by Pykka's contract `SystemExit` and the like end all."""
        return self.survives_failures or isinstance(error, Exception)

    # Failures.

    def _note_returned(self, error: BaseException) -> None:
        log = self.dispatcher.log
        log.info("Exception returned from {} to caller:", self, error=error)  # noqa: PLE1205 - loguru's braces

    def _fail(self, error: BaseException, message: object) -> None:
        """Handle an exception that no asker gets."""
        self._report_or_end(error, message)
        try:
            self.on_failure(type(error), error, error.__traceback__)
        except Exception as another:  # noqa: BLE001 - any error of a hook ends here
            self._report_or_end(another, None)

    def _report_or_end(self, error: BaseException, message: object) -> None:
        if self.survives_failures:
            self._report(error, message, survived=True)
        else:
            self._report_and_end(error, message)

    def _report_and_end(self, error: BaseException, message: object = None) -> None:
        self._report(error, message, survived=False)
        self._end()

    def _crash(self, error: BaseException, message: object) -> None:
        """Stop all actors of the dispatcher on `SystemExit` and the like.

        Pykka stops all actors of the process and waits for them. Here other schedulers continue, and no
        thread waits, since the other actors may be waiting for this thread.
        """
        log = self.dispatcher.log
        log.debug("{!r} in {}. Stopping all actors.", error, self)  # noqa: PLE1205 - loguru's braces
        self._report(error, message, survived=False)
        self._stop()
        self.dispatcher.stop_actors_nowait()

    def _report(self, error: BaseException, message: object, *, survived: bool) -> None:
        log = self.dispatcher.log.bind(received=message)
        log.error("Unhandled exception in {}:", self, error=error)  # noqa: PLE1205 - loguru's braces
        failure = Failure(ref=self.actor_ref, error=error, message=message, survived=survived)
        self.dispatcher.report_failure(failure)

    def _end(self) -> None:
        """Refuse messages from now on."""
        if self.in_pykka_registry:
            ActorRegistry.unregister(self.actor_ref)
        self.dispatcher.dismiss(self.actor_ref)
        self.actor_inbox.close()
        self.actor_stopped.set()


def _answer_with(reply: pykka.Future[Any], error: BaseException) -> None:
    with suppress(Full):  # it has an answer already
        reply.set_exception((type(error), error, error.__traceback__))
