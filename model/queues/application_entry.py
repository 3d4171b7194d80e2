"""The entry of an application in its queue: the handle, and what is needed to order it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias, final

from ..applications.effects import ApplicationFacts
from ..applications.handle import ApplicationHandle
from ..policies.interface import Wait
from ..policies.policies import PolicyKey
from ..resources.resource import Resource, total_of
from ..values.allocation import Ask
from ..values.dependencies import ApplicationOutcome, Waits
from ..values.messages import ApplicationSubmission, User

if TYPE_CHECKING:
    from .queue import Queue
    from .users import UserPlace
    from .waiting import RestKind


class HeldStart(NamedTuple):
    """A policy keeps an application from starting."""

    policy: str
    wait: Wait


EntryKey: TypeAlias = "tuple[int | tuple[float, ...] | str | UserPlace | PolicyKey, ...]"


@final
class ApplicationEntry:
    """One application in its leaf queue, as the partition knows it from the application's answers."""

    __slots__ = (
        "application",
        "application_id",
        "backoff_until_ns",
        "facts",
        "held",
        "order",
        "outcome",
        "policy_key",
        "queue",
        "rests_for",
        "rests_until_ns",
        "runnable_by_user",
        "runnable_in_queue",
        "shortest_ns",
        "submission",
        "tags",
        "user",
        "user_is_listed",
        "waits",
    )

    def __init__(
        self,
        application: ApplicationHandle,
        application_id: str,
        user: User,
        queue: Queue,
        facts: ApplicationFacts,
    ) -> None:
        self.application = application
        """The handle: in the actors engine each call is an ask."""
        self.application_id = application_id
        self.tags = application.tags
        """Those that it came with, with the walltime that its RM has named last."""
        self.user = user
        self.queue = queue
        self.facts = facts
        self.submission: ApplicationSubmission | None = None
        """The request of the RM, for a saved moment."""
        self.order: EntryKey = ()
        """Its place in the queue's order, empty while none of its asks waits."""
        self.policy_key: PolicyKey | tuple[float, ...] | None = None
        """The last key of the policy that orders its leaf."""
        self.held: HeldStart | None = None
        """The policy that has last kept it from starting, `None` if none did.

        It has to be asked about even if it is no longer accepted, since it has lost its asks meanwhile."""
        self.waits: Waits | None = None
        """What it waits for besides room, which keeps it out of the order; `None` for nothing."""
        self.outcome: ApplicationOutcome | None = None
        """How it ends, if its RM names that with its removal."""
        self.rests_for: RestKind | None = None
        """While it rests: what may give it room."""
        self.rests_until_ns: int | None = None
        """While it rests: when the first ask that is too young for a reservation is old enough."""
        self.shortest_ns = 0
        """While it rests beside a promise: the shortest walltime of its asks."""
        self.backoff_until_ns: int | None = None
        self.user_is_listed = False
        """Its user's limits have been asked for in the queue, which lists the user there."""
        self.runnable_in_queue = True
        self.runnable_by_user = True

    def add_pending(self, *asks: Ask, total: Resource | None = None) -> None:
        """Count new waiting asks in the queues, and have the leaf visited again; `total` is their sum."""
        if total is None:
            total = total_of([ask.resource for ask in asks])
        for ask in asks:
            self.queue.entries.count_size(ask.resource, 1)
        for level in self.queue.above:
            level.add_pending(total)
        wake(self.queue)

    def remove_pending(self, ask: Ask) -> None:
        """Count an ask as waiting no longer."""
        for level in self.queue.above:
            level.remove_pending(ask.resource)
        self.queue.entries.count_size(ask.resource, -1)


def wake(leaf: Queue) -> None:
    """Let the next cycle visit a leaf, whatever failed there before."""
    leaf.entries.sleep = leaf.entries.sleep_before_question = None
    awake = leaf.awake
    if leaf not in awake.leaves:
        awake.wake(leaf)
