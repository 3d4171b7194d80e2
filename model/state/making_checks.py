"""The choice of the checks by what the RM's predicates are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .deferred_checks import DeferredChecks
from .node_checks import ImmediateChecks

if TYPE_CHECKING:
    from .host import PartitionHost
    from .node_checks import NodeChecks

__all__ = ["checks_of"]


def checks_of(host: PartitionHost) -> NodeChecks | None:
    """Return the checks of a partition's nodes, `None` if the RM takes every node."""
    if host.question_channel is not None:
        assert host.predicates is None, "predicates answer at once or later, not both: please report"
        return DeferredChecks(
            host.question_channel, host.answer_timeout_ns, may_overtake=host.asks_may_overtake
        )
    return None if host.predicates is None else ImmediateChecks(host.predicates, host.keys_of_others)
