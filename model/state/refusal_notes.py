"""Why asks were refused in a cycle: noted at once, or when it is known that the cycle counts."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple, final

from ..applications.ask_walk import AskWalk
from ..applications.handle import ApplicationHandle


class _Note(NamedTuple):
    """One or more refusals of an ask with the same text."""

    application: ApplicationHandle
    allocation_key: str
    text: str
    now_ns: int
    times: int = 1
    of_attempt: bool = False


@final
class RefusalNotes:
    """The notes of the cycle that runs.

    Args:
        kept: The notes are kept until the cycle is over; otherwise each counts at once.
    """

    def __init__(self, *, kept: bool) -> None:
        self.kept = kept
        self._notes: list[_Note] = []
        self._counted: Counter[tuple[str, str]] = Counter()
        """The counts of cycles that the next one repeats: keys, and texts except those of attempts."""

    def begin(self) -> None:
        """Forget the notes of a cycle that has failed, or was invalidated."""
        self._notes.clear()

    def note(
        self,
        application: ApplicationHandle,
        allocation_key: str,
        text: str,
        now_ns: int,
        times: int = 1,
        *,
        of_attempt: bool = False,
    ) -> None:
        """Note a refusal, or several with the same text.

        Args:
            application: The application of the ask.
            allocation_key: The key of the ask.
            text: Why it was refused.
            now_ns: When.
            times: The number of times.
            of_attempt: Whether the text is why an attempt to preempt failed, or was not made.
        """
        if self.kept:
            self._notes.append(_Note(application, allocation_key, text, now_ns, times, of_attempt))
        else:
            application.asks.note_refusal(allocation_key, text, now_ns, times)

    def take(self, application: ApplicationHandle, walk: AskWalk) -> None:
        """Note what the application itself has refused at the last question of a walk."""
        if walk.notes:
            self._notes += [_Note(application, key, text, walk.now_ns) for key, text in walk.notes]

    @property
    def taken(self) -> int:
        """How many notes this cycle has taken."""
        return len(self._notes)

    def drop_beyond(self, taken: int) -> None:
        """Drop the notes after a number of them: the part of the cycle that took them is repeated."""
        del self._notes[taken:]

    def count(self, *, repeats: bool) -> None:
        """Count what was noted, now that the cycle is over, except what it repeats of cycles before it.

        Args:
            repeats: Nothing has changed, and the RM's answers are pending: the next cycle repeats this one.
        """
        repeated = self._counted.copy()
        for note in self._notes:
            kind = note.allocation_key, "" if note.of_attempt else note.text
            if repeated[kind]:
                repeated[kind] -= not note.of_attempt  # None is made again, which has another text.
                continue
            self._counted[kind] += 1
            note.application.asks.note_refusal(note.allocation_key, note.text, note.now_ns, note.times)
        self._notes.clear()
        if not repeats:
            self._counted.clear()
