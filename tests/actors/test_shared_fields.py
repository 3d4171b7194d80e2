"""The watch over what threads share."""

from __future__ import annotations

from licorne.actors.services.rm_link import RmLink
from licorne.proxy.core.resolvers.resolver import CachedResolver, StaticResolver


def test_a_field_touched_without_its_lock_is_noted(shared_fields: list[str]) -> None:
    """Looks and changes, with slots and without."""
    link: RmLink[str] = RmLink("rm", lambda _: None, lambda: None)
    link._delivers = link._closed
    with link._changed:
        link._closed = False
    link.close()
    memory = CachedResolver(StaticResolver({}), lambda: 0)
    memory._outage = None
    found = sorted(set(shared_fields))
    shared_fields.clear()

    assert [
        "CachedResolver._outage is written without _guard",
        "RmLink._closed is read without _changed",
        "RmLink._delivers is written without _changed",
    ] == found
