"""Ends that are waited for while locks are held: of threads and tasks, and settings of events.

What an execution takes before such an end, it could as well take while the other one waits for the end
already. So the end counts as a lock that the execution holds all along and the waiting one wants: cycles
over it are found as any others, also if the end happened to be over when it was waited for. A wait for an end
without a lock is remembered: it comes before the end of the one that waits. A steered run has no such ends:
it looks for what is stuck, not for what could be.

What an execution took before it notified others of anything is forgotten: the one that waits for its end may
know of it, and then the execution needs it no more. And once any execution knows that the end is over, others
may know it too: then none has to wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from ..findings.levels import Level
from ..holding.chains import Acquisition, Execution, held_nodes
from ..holding.runtime import fails_open, local, runtime
from ..holding.stacks import caller, capture
from .acquisition_checks import dependency_of, learn
from .active import current
from .graph import Dependency, EndIdentity
from .taken import has_room, note_taken
from .watch import Watch


@final
class End:
    """What executions may wait for until another one comes to it.

    Args:
        text: what is waited for, in words.
        signal: the same for a witness; `None` for the end of a thread.
        taken: what the other execution took before.
    """

    def __init__(self, text: str, signal: str | None, taken: Sequence[Dependency]) -> None:
        self._identity = EndIdentity(text, signal, taken)
        self._known = False
        """Whether an execution knows that it is over; then others may know it too."""

    @fails_open(None)
    def __del__(self) -> None:
        self._identity.alive = False  # so that the graph forgets it

    def noticed(self) -> None:
        """Note that an execution knows that the end is over."""
        self._known = True

    @fails_open(None)
    def awaited(self, *, besides: object = None) -> None:
        """Note that the calling execution waited for the end without a limit; the first such wait counts.

        Args:
            besides: a lock that it released meanwhile, as that of a condition.

        Raises:
            DeadlockPossibleError: that is the policy for what was found.
        """
        watch, execution, known = current(), local.execution, self._known
        self._known = True
        if known or watch is None or runtime.steering is not None or execution.inside:
            return
        if watch.policy.order_disabled or watch.policy.level < Level.FULL:
            return
        watch.guarded_on(execution, lambda: self._check(watch, execution, besides), lambda: None)

    def _check(self, watch: Watch, execution: Execution, besides: object) -> None:
        nodes = held_nodes(execution.node)
        held = [node for node in nodes if node.acquisition is None or node.acquisition.lock is not besides]
        noted = has_room(watch, execution)
        if not noted and not held:
            return
        wanted = Acquisition(self._identity, "W")
        waiting = dependency_of(execution, held, wanted, capture(caller()))
        if noted:
            note_taken(watch, execution, waiting)
        if held:
            for dependency in (*self._identity.needs(wanted), waiting):
                learn(watch, dependency)
