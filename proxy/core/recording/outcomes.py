"""The outcomes of a turn: what a resource manager hears in it, and what justifies each preemption."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from ....model.state.partition_state import PartitionState
from ....model.state.preemption_log import PreemptionRecord
from ....model.values.documents import Document
from ....model.values.messages import Announcement, ApplicationsAnswered
from ....model.views.rows import preemption_document
from .callback_documents import callback_document


@final
class Outcomes:
    """Those of one turn of a partition, in the order in which they happened."""

    def __init__(self) -> None:
        self.state: PartitionState | None = None
        """`None` while the partition is being made: nothing can be preempted then."""
        self._happened: list[Announcement | PreemptionRecord] = []
        self._known = 0
        """How many preemptions have been taken."""

    def note(self, announcement: Announcement) -> None:
        """Note what the resource manager hears, after the preemptions that were remembered before it."""
        self._note_preemptions()
        self._happened.append(announcement)

    def take(self, *, older: bool) -> Iterator[Document]:
        """Yield the documents of the turn that ends, and forget it; `older` is the generation of answers."""
        self._note_preemptions()
        happened, self._happened = self._happened, []
        for each in happened:
            if isinstance(each, PreemptionRecord):
                yield {"preemption": preemption_document(each)}
                continue
            document = callback_document(each, older=older)
            if isinstance(each, ApplicationsAnswered) and self.state is not None:
                entries = map(self.state.entries.get, each.accepted)
                queues = {entry.application_id: entry.queue.path for entry in entries if entry is not None}
                document["queues"] = {**queues}
            if document:  # An answer without entries is not sent.
                yield document

    def _note_preemptions(self) -> None:
        if self.state is not None and self.state.preemptions.added > self._known:
            self._happened += self.state.preemptions.since(self._known)
            self._known = self.state.preemptions.added
