"""What a cycle notes in the logs of asks.

With predicates, a cycle may be invalidated between its steps and begin anew
(`licorne.actors.predicate_cache`). So
that nothing is counted twice, its notes are kept until it is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from ..applications.ask_walk import AskWalk
    from ..applications.handle import ApplicationHandle

__all__ = ["RefusalNotes"]


@final
class RefusalNotes:
    """The notes of the cycle that runs.

    Args:
        kept: The notes are kept until the cycle is over; otherwise each counts at once.
    """

    def __init__(self, *, kept: bool) -> None:
        self.kept = kept
        self._notes: list[tuple[ApplicationHandle, str, str, int, int]] = []

    def begin(self) -> None:
        """Forget the notes of a cycle that was invalidated."""
        self._notes.clear()

    def note(
        self, application: ApplicationHandle, allocation_key: str, text: str, now_ns: int, times: int = 1
    ) -> None:
        """Note a refusal, or several with the same text."""
        if self.kept:
            self._notes.append((application, allocation_key, text, now_ns, times))
        else:
            application.asks.note_refusal(allocation_key, text, now_ns, times)

    def take(self, application: ApplicationHandle, walk: AskWalk) -> None:
        """Note what the application itself has refused at the last question of a walk."""
        if walk.notes:
            self._notes += [(application, key, text, walk.now_ns, 1) for key, text in walk.notes]

    @property
    def taken(self) -> int:
        """How many notes this cycle has taken."""
        return len(self._notes)

    def drop_beyond(self, taken: int) -> None:
        """Drop the notes after so many: the part of the cycle that took them is repeated."""
        del self._notes[taken:]

    def count(self) -> None:
        """Count all that was noted, now that the cycle is over."""
        for application, allocation_key, text, now_ns, times in self._notes:
            application.asks.note_refusal(allocation_key, text, now_ns, times)
        self._notes.clear()
