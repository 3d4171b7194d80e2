"""The objects of Kubernetes about the room for new volumes, with only the fields that a scheduler reads."""

from __future__ import annotations

import msgspec

from .decoding import resolve_structs
from .objects import ObjectMeta
from .placement_objects import LabelSelector


class CsiDriverSpec(msgspec.Struct, frozen=True, rename="camel", gc=False, kw_only=True):
    """The specification of a driver."""

    storage_capacity: bool = False
    """Whether it publishes how much room it has for new volumes."""


class CsiDriver(msgspec.Struct, frozen=True, rename="camel", gc=False, kw_only=True):
    """A driver that makes volumes."""

    metadata: ObjectMeta
    spec: CsiDriverSpec = CsiDriverSpec()


class CsiStorageCapacity(msgspec.Struct, frozen=True, rename="camel", gc=False, kw_only=True):
    """The room for new volumes of one class on some nodes."""

    metadata: ObjectMeta
    storage_class_name: str
    node_topology: LabelSelector | None = None
    """The nodes; `None` for no node."""
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None
    """The size of the largest new volume, which is more exact than `capacity`."""


resolve_structs(__name__)
