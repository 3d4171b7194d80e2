"""What watches the partitions of a scheduler: nothing, a recorder, or the replay of a recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

from ....model.configuration.schema import PartitionConfig
from ....model.partition import Partition
from ....model.state.host import PartitionHost
from ....model.values.documents import Document
from ....model.values.messages import Announcement
from ...si.older_answers import Delivery, Generation


class Observer(Protocol):
    """Makes the partitions of a scheduler, and notes what changes all of them or none."""

    ends_partitions: bool
    """Whether partitions that a registration or reload has replaced end at once; a replay ends them."""
    folder: Path | None
    """Where it is recorded, if it is."""

    def make_partition(
        self,
        *,
        incarnation: str,
        name: str,
        rm_id: str,
        config: PartitionConfig,
        host: PartitionHost,
        generation: Generation,
    ) -> Partition:
        """Make a partition.

        Args:
            incarnation: the name that no other partition ever has.
            name: its full name.
            rm_id: its resource manager (RM).
            config: its configuration.
            host: what it gets from outside.
            generation: the generation of `si.v1` in which its RM is answered.
        """

    def change(
        self, verb: str, rm_id: str, configuration: str, only: Sequence[str] | None = None
    ) -> AbstractContextManager[object]:
        """Give a context for a registration or reload, which raises if it does not happen.

        Args:
            verb: `register` or `configuration`.
            rm_id: the RM.
            configuration: its queues, as YAML text.
            only: the full names of the partitions that a registration has made; `None` for all.
        """

    def retired(self, incarnation: str) -> None:
        """Note that a partition has ended."""

    def answer(
        self, rm_id: str, announcement: Announcement, announce: Callable[[Delivery], None], *, older: bool
    ) -> None:
        """Announce to an RM what comes from no partition."""

    def note(self, line: Document) -> None:
        """Note something else: a verb with its body, and the time `at` unless it happens now."""

    def close(self) -> None:
        """Note that the scheduler has ended."""


class Unobserved:
    """Nothing watches: partitions are as they are, and nothing is noted."""

    ends_partitions = True
    folder: Path | None = None

    def make_partition(
        self,
        *,
        incarnation: str,  # noqa: ARG002 - nothing needs it
        name: str,
        rm_id: str,
        config: PartitionConfig,
        host: PartitionHost,
        generation: Generation,  # noqa: ARG002 - likewise
    ) -> Partition:
        """Make a partition."""
        return Partition(name, rm_id, config, host)

    def change(
        self,
        verb: str,  # noqa: ARG002 - likewise
        rm_id: str,  # noqa: ARG002 - likewise
        configuration: str,  # noqa: ARG002 - likewise
        only: Sequence[str] | None = None,  # noqa: ARG002 - likewise
    ) -> AbstractContextManager[object]:
        """Do nothing."""
        return nullcontext()

    def retired(self, incarnation: str) -> None:
        """Do nothing."""

    def answer(
        self,
        rm_id: str,  # noqa: ARG002 - likewise
        announcement: Announcement,
        announce: Callable[[Delivery], None],
        *,
        older: bool,  # noqa: ARG002 - likewise
    ) -> None:
        """Announce it."""
        announce(announcement)

    def note(self, line: Document) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
