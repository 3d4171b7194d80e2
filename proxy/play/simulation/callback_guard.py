"""Guards that keep the errors of a callback, to raise them where the simulation handles them."""

from __future__ import annotations

from typing import final

from ...si import si_pb2 as si
from ...si.api import ResourceManager


class CallbackGuard(ResourceManager):
    """A callback around another one.

    A scheduler logs the errors of a callback and goes on, as it must with errors of other programs. In a
    simulation both sides are ours, and an error must end it.

    It agrees to every node, with the predicates that it inherits: a scheduler does not ask those at all.
    """

    def __init__(self, inner: ResourceManager) -> None:
        self._inner = inner
        self._failure: Exception | None = None

    def raise_failure(self) -> None:
        """Raise the first error of a callback since the last call, if there was one."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Pass it on."""
        try:
            self._inner.update_allocation(response)
        except Exception as error:  # noqa: BLE001 - it is raised later
            self._failure = self._failure or error

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Pass it on."""
        try:
            self._inner.update_application(response)
        except Exception as error:  # noqa: BLE001 - it is raised later
            self._failure = self._failure or error

    def update_node(self, response: si.NodeResponse) -> None:
        """Pass it on."""
        try:
            self._inner.update_node(response)
        except Exception as error:  # noqa: BLE001 - it is raised later
            self._failure = self._failure or error


@final
class PredicateGuard(CallbackGuard):
    """A guard of a callback that has predicates; their errors are answers, and are passed on."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        """Pass it on."""
        self._inner.predicates(args)

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        """Pass it on."""
        return self._inner.preemption_predicates(args)
