"""References to pooled actors: asks that run inline, tells, typed calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeAlias,
    TypeVar,
    cast,
    overload,
)

import pykka
from pykka._envelope import Envelope
from pykka.messages import _ActorStop

from .errors import ActorEndedError, MailboxFullError
from .future import PooledFuture
from .mailbox import Mailbox, MessageEnvelope
from .waiting import AskRule

if TYPE_CHECKING:
    from .actor import PooledActor

A = TypeVar("A", bound="PooledActor")
P = ParamSpec("P")
R = TypeVar("R")
AnyFunction: TypeAlias = Callable[..., Any]
"""Any method; the typed ways to use it are `PooledRef.call` and `send`."""


class PooledRef(pykka.ActorRef[A]):
    """Pykka's reference, whose blocking asks run on the calling thread where they can.

    An ask without a deadline that finds the actor idle takes it and runs it: no queue, no future, no
    thread switch. Otherwise the message is queued, and the asker helps (see `PooledFuture`).
    """

    actor_inbox: Mailbox

    def __init__(self, actor: A) -> None:
        super().__init__(actor)
        self._methods = actor.method_table

    def call(self, method: Callable[Concatenate[A, P], R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Ask, typed, and wait: `ref.call(Node.allocate, x)` runs `node.allocate(x)`.

        A method that the actor's class overrides means the override. Any other function of the
        actor can be given as well.
        """
        inbox = self.actor_inbox
        if inbox.direction is not None:
            answer: R = self._call_by_rule(inbox.direction, self._methods[method], args, kwargs)
            return answer
        actor = inbox.enter()
        if actor is None:
            return cast("R", self._ask_by_message(Invocation(self._methods[method], args, kwargs)))
        try:
            result: R = self._methods[method](actor, *args, **kwargs)
            return result  # noqa: TRY300 - `typing.cast` would be a call on the hottest path
        except BaseException as error:
            actor._raised_inline(error, method)  # noqa: SLF001 - an actor and its references are one
            raise
        finally:
            inbox.leave()

    def send(self, method: Callable[Concatenate[A, P], object], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Tell, typed: after `ref.send(Node.allocate, x)` the actor runs `node.allocate(x)` later."""
        self.tell(Invocation(self._methods[method], args, kwargs))

    def tell(self, message: object, *, control: bool = False, here: bool = False) -> None:
        """Send a message without waiting; a control message overtakes all others.

        With `here` the calling thread runs the actor for a short turn, if it is idle.

        Raises:
            ActorEndedError: the actor has stopped; the dispatcher's `on_dead_letter` gets the message, too.
            MailboxFullError: the actor's mailbox is bounded and full, and the message is not a control
            message.
        """
        if not self.actor_inbox.offer(Envelope(message), control=control, here=here):
            self.actor_inbox.dispatcher.report_dead_letter(self, message)
            raise self._dead()

    @overload
    def ask(
        self, message: object, *, block: Literal[False], timeout: float | None = None, control: bool = False
    ) -> PooledFuture[Any]: ...

    @overload
    def ask(
        self, message: object, *, block: Literal[True], timeout: float | None = None, control: bool = False
    ) -> Any: ...

    @overload
    def ask(
        self, message: object, *, block: bool = True, timeout: float | None = None, control: bool = False
    ) -> Any: ...

    def ask(
        self, message: object, *, block: bool = True, timeout: float | None = None, control: bool = False
    ) -> Any:
        """Send a message and return its answer, or at once a future of it.

        Raises:
            ActorEndedError: the actor has stopped, or stops before it handles the message.
            AskCycleError: the actor waits for this thread; the message has been withdrawn.
            AskDirectionError: the dispatcher checks directions, and this ask goes sideways or up.
            MailboxFullError: the mailbox is bounded and full, and the message is not a control message.
            pykka.Timeout: there is a deadline, and it has passed; the message will still be handled.
        """
        if not block:
            return self._post(message, control=control)
        rule = self.actor_inbox.direction
        if rule is not None:
            rule.asked(limited=timeout is not None)
        if timeout is not None:
            return self._post(message, control=control).obtain(timeout, withdraws=True)
        return self._ask_inline(message, control=control)

    @overload
    def stop(self, *, block: Literal[True], timeout: float | None = None) -> bool: ...

    @overload
    def stop(self, *, block: Literal[False], timeout: float | None = None) -> pykka.Future[bool]: ...

    @overload
    def stop(self, *, block: bool = True, timeout: float | None = None) -> bool | pykka.Future[bool]: ...

    def stop(self, *, block: bool = True, timeout: float | None = None) -> bool | pykka.Future[bool]:
        """Have the actor stop after the messages it has, as Pykka does; inline if it is idle.

        Returns:
            Whether it was alive; a future of that if not to `block`.
        """
        if not block or timeout is not None:
            return super().stop(block=block, timeout=timeout)
        try:
            self.ask(_ActorStop())
        except ActorEndedError:
            return False
        return True

    def _call_by_rule(
        self, rule: AskRule, method: AnyFunction, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Do the work of `call` if the actor's asks are checked."""
        rule.asked()
        inbox = self.actor_inbox
        actor = inbox.enter()
        if actor is None:
            return self._ask_by_message(Invocation(method, args, kwargs))
        try:
            rule.enter()
            try:
                return method(actor, *args, **kwargs)
            finally:
                rule.leave()
        except BaseException as error:
            actor._raised_inline(error, method)  # noqa: SLF001 - an actor and its references are one
            raise
        finally:
            inbox.leave()

    def _ask_inline(self, message: object, *, control: bool) -> Any:
        inbox = self.actor_inbox
        actor = inbox.enter()
        if actor is None:
            return self._ask_by_message(message, control=control)
        try:
            return actor._handle_receive(message)  # noqa: SLF001 - an actor and its references are one
        except BaseException as error:
            actor._raised_inline(error, message)  # noqa: SLF001 - likewise
            raise
        finally:
            inbox.leave()

    def _ask_by_message(self, message: object, *, control: bool = False) -> Any:
        return self._post(message, control=control).obtain(None, withdraws=True)

    def _post(self, message: object, *, control: bool) -> PooledFuture[Any]:
        """Queue a message and return the future of its answer, which exists in every case."""
        future = PooledFuture[Any]()
        future.mailbox = self.actor_inbox
        envelope: MessageEnvelope = Envelope(message, reply_to=future)
        error: Exception | None = None
        try:
            if not self.actor_inbox.offer(envelope, control=control):
                error = self._dead()
        except MailboxFullError as full:
            error = full
        if error is not None:
            future.set_exception((type(error), error, None))
        return future

    def _dead(self) -> ActorEndedError:
        return ActorEndedError(f"{self} not found")


AnyRef: TypeAlias = PooledRef[Any]
"""A reference to an actor of whatever class; Pykka's references are invariant in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An exception in an actor that was not the answer to an ask."""

    ref: AnyRef
    error: BaseException
    message: object
    """The message that was being handled; `None` in `on_start`, `on_stop` and `on_failure`."""
    survived: bool
    """Whether the actor continues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message sent by `tell` that was not delivered, since its actor had stopped."""

    ref: AnyRef
    message: object


FailureHook: TypeAlias = Callable[[Failure], None]
DeadLetterHook: TypeAlias = Callable[[DeadLetter], None]


class Invocation(NamedTuple):
    """Run `method(actor, *args, **kwargs)`."""

    method: AnyFunction
    args: tuple[object, ...]
    kwargs: dict[str, object]
    entries: int = 0
    """How many entries are counted until a request is carried out, see `licorne.actors.runtime.mailbox`."""


class MethodTable(dict[AnyFunction, AnyFunction]):
    """From a method to the one that a class has for it, without a look-up by name.

    Other functions stand for themselves. Never written after it was made.
    """

    def __missing__(self, function: AnyFunction) -> AnyFunction:
        return function


def method_table(owner: type) -> MethodTable:
    """Map every method that `owner` inherits or overrides to the one that its instances have."""
    table = MethodTable()
    for base in owner.__mro__:
        for name, function in vars(base).items():
            found = getattr(owner, name, None)
            if isinstance(function, FunctionType) and isinstance(found, FunctionType):
                table[function] = found
    return table
