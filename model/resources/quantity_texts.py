"""Quantities as people write them in a configuration."""

from __future__ import annotations

from typing import Final

from .resource import Resource

_BINARY: Final = ((60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki"))
_VCORE: Final = "vcore"


def quantity_text(name: str, quantity: int) -> str:
    """Write a quantity: cores or thousandths of one, or whole binary units, or the plain number."""
    if name == _VCORE:
        return f"{quantity}m" if quantity % 1000 else f"{quantity // 1000}"
    for bits, unit in _BINARY:
        if quantity and quantity % (1 << bits) == 0:
            return f"{quantity >> bits}{unit}"
    return f"{quantity}"


def resource_text(resource: Resource | None) -> str:
    """Write a resource, its types in order: `memory 4Gi, vcore 500m`; `nothing` for an empty or unset one."""
    kinds = sorted(resource.items()) if resource is not None else ()
    parts = [f"{name} {quantity_text(name, quantity)}" for name, quantity in kinds]
    return ", ".join(parts) or "nothing"
