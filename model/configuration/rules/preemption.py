"""Rules about how a partition preempts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..problems import RuleFinding
from ..schema import PartitionConfig, VictimOrdering
from ..words import did_you_mean

__all__ = ["victim_order_is_known"]

_ORDERS: Final = tuple(order.value for order in VictimOrdering)


def victim_order_is_known(partition: PartitionConfig) -> Iterator[RuleFinding]:
    """Refuse an order of victims that does not exist; the empty text means `youngest`."""
    written = partition.preemption.victims
    if written and written not in _ORDERS:
        wanted = " or ".join(repr(order) for order in _ORDERS)
        yield RuleFinding(
            partition.positions["preemption.victims"],
            f"preemption.victims is {written!r}, and must be {wanted}{did_you_mean(written, _ORDERS)}",
        )
