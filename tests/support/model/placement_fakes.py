"""What placement needs to look things up, for tests: queues that exist, and who may submit to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from licorne.model.placement import PlacementRequest
from licorne.model.values.messages import User


@dataclass(frozen=True)
class FakeQueue:
    """One queue: a leaf, unless its path is said to be that of a parent."""

    path: str
    is_leaf: bool = True
    is_draining: bool = False


@dataclass
class FakeQueues:
    """A tree of queues: each path a leaf, all paths above it parents; `denied` takes no submissions."""

    paths: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    draining: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    asked: list[tuple[str, str]] = field(default_factory=list)

    def find(self, path: str) -> FakeQueue | None:
        """Return the queue, if it is one of those."""
        above = any(known.startswith(f"{path}.") for known in (*self.paths, *self.parents))
        if path == "root" or above or path in self.parents:
            return FakeQueue(path, is_leaf=False)
        return FakeQueue(path, is_draining=path in self.draining) if path in self.paths else None

    def submit_allowed(self, path: str, user: User) -> bool:
        """Return whether the queue is none of those denied, and note the question."""
        assert self.find(path) is not None, f"asked for the access list of {path}, which does not exist"
        self.asked.append((path, user.name))
        return path not in self.denied


def a_request(
    queue_name: str = "",
    *,
    user: User = User("bob", ("dev",)),  # noqa: B008 - a value
    tags: Mapping[str, str] | None = None,
    forced: bool = False,
) -> PlacementRequest:
    """Return what an RM asks for."""
    return PlacementRequest(queue_name=queue_name, user=user, tags=tags or {}, forced=forced)
