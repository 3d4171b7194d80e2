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
