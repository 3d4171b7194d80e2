"""The usage that an application has built up: resources times seconds, for each type of instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from .resource import Resource


@final
class TrackedResource:
    """Sums of quantity times seconds by instance type and resource type.

    The object belongs to one application, which alone aggregates into it; ``as_dict`` and ``copy`` are for
    handing the sums out. Sums are exact, where those of the recorded core wrap around at 64 bits and come out
    negative.

    Args:
        sums: The sums to start from, by instance type and resource type; copied.

    Raises:
        QuantityError: A sum is not an integer.
    """

    __slots__ = ("_sums",)

    __hash__ = None  # type: ignore[assignment] # It changes while its application runs.

    def __init__(self, sums: Mapping[str, Mapping[str, int]] | None = None) -> None:
        self._sums: dict[str, dict[str, int]] = {}
        if sums:
            self._sums = {instance: Resource(usage).as_dict() for instance, usage in sums.items()}

    def aggregate(self, instance_type: str, resource: Resource | None, seconds: int) -> None:
        """Add what a released allocation has used.

        Args:
            instance_type: The instance type of the node; nodes without one share the type ``""``.
            resource: The resource of the allocation; without one nothing is added.
            seconds: The whole seconds from binding to release.
        """
        if resource is None:
            return
        usage = self._sums.setdefault(instance_type, {})
        for name, quantity in resource.items():
            usage[name] = usage.get(name, 0) + quantity * seconds

    def copy(self) -> TrackedResource:
        """Return an independent object with the same sums."""
        return TrackedResource(self._sums)

    def as_dict(self) -> dict[str, dict[str, int]]:
        """Return fresh dicts of the sums, sorted by instance type and resource type; the caller owns them."""
        if not self._sums:
            return {}
        return {
            instance_type: dict(sorted(usage.items())) for instance_type, usage in sorted(self._sums.items())
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TrackedResource):
            return NotImplemented
        return self._sums == other._sums

    def __repr__(self) -> str:
        entries = (
            f"{instance_type}:{name}={total}"
            for instance_type, usage in self.as_dict().items()
            for name, total in usage.items()
        )
        return f"TrackedResource{{{','.join(entries)}}}"
