"""A time limit for resolvers: a caller waits no longer than that.

A system call or a directory server can hang without end, and Python cannot interrupt it. So each look-up
runs on a thread of its own, and its caller stops waiting when the time is over. A look-up that hangs keeps
its thread; the number of these threads is limited, and while all of them hang no user is looked up.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ...lockcheck import Lock, excludes
from .resolver import ResolverUnavailableError

if TYPE_CHECKING:
    from .resolver import UserResolver

__all__ = ["LOOK_UPS_MAX", "TIMEOUT_SECONDS", "TimedResolver"]

TIMEOUT_SECONDS: Final = 10.0
LOOK_UPS_MAX: Final = 8
_LookUp: TypeAlias = "Future[tuple[str, ...]]"


@final
class TimedResolver:
    """Another resolver with a time limit.

    Callers that ask for the same user at the same time wait for the same look-up.

    Args:
        resolver: The resolver to ask; called on a thread of its own.
        timeout_seconds: How long a caller waits at most.
        look_ups_max: How many look-ups run at the same time; more wait for their turn.
    """

    __slots__ = ("_guard", "_look_ups_max", "_resolver", "_running", "_timeout_seconds", "_turns")

    def __init__(
        self,
        resolver: UserResolver,
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        look_ups_max: int = LOOK_UPS_MAX,
    ) -> None:
        self._resolver = resolver
        self._timeout_seconds = timeout_seconds
        self._look_ups_max = look_ups_max
        self._turns = threading.BoundedSemaphore(look_ups_max)
        self._guard = Lock("look-ups")
        self._running: dict[str, _LookUp] = {}

    @excludes()
    def groups_of(self, user: str) -> tuple[str, ...]:
        """Return the groups of a user.

        Raises:
            UserResolutionError: The resolver does not know the user, or gave no answer in time.
        """
        deadline = monotonic() + self._timeout_seconds
        look_up = self._join(user)
        if look_up is None:
            if not self._turns.acquire(timeout=self._timeout_seconds):
                raise ResolverUnavailableError(
                    f"user {user!r} was not looked up within {self._timeout_seconds:g} s: "
                    f"{self._look_ups_max} other look-ups are without an answer"
                )
            look_up = self._begin(user)
        try:
            return look_up.result(max(0.0, deadline - monotonic()))
        except TimeoutError:
            raise ResolverUnavailableError(
                f"user {user!r}: no answer within {self._timeout_seconds:g} s"
            ) from None

    def _join(self, user: str) -> _LookUp | None:
        """Return the look-up of the user that runs already."""
        with self._guard:
            return self._running.get(user)

    def _begin(self, user: str) -> _LookUp:
        """Begin a look-up; the caller has taken a turn, which its end gives back."""
        with self._guard:
            look_up = self._running.get(user)
            if look_up is not None:
                self._turns.release()  # Another caller began while this one waited for a turn.
                return look_up
            look_up = self._running[user] = Future()
        name = "licorne-user-look-up"
        threading.Thread(target=self._look_up, args=(user, look_up), name=name, daemon=True).start()
        return look_up

    def _look_up(self, user: str, look_up: _LookUp) -> None:
        try:
            groups = self._resolver.groups_of(user)
        except BaseException as error:  # noqa: BLE001 - it is raised again in the callers that wait
            outcome: tuple[str, ...] | BaseException = error
        else:
            outcome = groups
        with self._guard:
            del self._running[user]
        self._turns.release()
        if isinstance(outcome, BaseException):
            look_up.set_exception(outcome)
        else:
            look_up.set_result(outcome)
