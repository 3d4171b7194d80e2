"""What a gang wants of the domains of nodes, such as racks, by the names of their levels."""

from __future__ import annotations

from typing import NamedTuple


class DomainTerms(NamedTuple):
    """The levels of the topology that a gang names; one of them at least."""

    required: str = ""
    """All members are in one domain of this level; the empty text for no such condition."""
    preferred: str = ""
    """All members are in one domain of this level, if one has room; else of the next wider level."""
    balanced: bool = False
    """Members are spread evenly over the parts of the domain that are used."""
    slice_level: str = ""
    """Each slice of the members is in one domain of this level; the empty text for no such condition."""
    slice_size: int = 1
    """How many members a slice has."""

    @property
    def needed(self) -> str:
        """The level of which each slice needs one domain, or else all members; the empty text for none."""
        return self.slice_level or self.required
