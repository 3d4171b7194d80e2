"""The kinds of limits of users and groups whose values are resources: one row each.

Rules about the configuration, the checks of a cycle and the explanations walk this table, so that a kind is
added by a row here and by its key in `licorne.model.configuration.documents`.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class LimitKind(NamedTuple):
    """A key of `limits` whose value is a resource."""

    key: str
    """The key in the configuration."""
    title: str
    """The key as messages and documents spell it."""
    name: str
    """What messages call it in the limit that they are about."""
    name_above: str
    """What they call it in a queue above."""
    counts_usage: bool
    """Whether what the holder uses counts as well; otherwise each ask is compared with the limit alone."""


MAX_RESOURCES: Final = LimitKind(
    "maxresources", "MaxResources", "max resource", "maximum resource", counts_usage=True
)
LIMIT_KINDS: Final = (MAX_RESOURCES,)
