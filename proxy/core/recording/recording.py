"""Where and how the traffic of a scheduler is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from ....model.errors import LicorneError
from ...si.arguments import check_type

ROTATE_BYTES: Final = 64 * 2**20


@final
@dataclass(frozen=True, slots=True)
class Recording:
    """What `Scheduler(record=...)` takes: the folder, and what is different from the usual.

    Each scheduler makes a folder of its own below.

    Raises:
        LicorneError: a file would have no room for a line.
    """

    folder: Path | str
    rotate_bytes: int = ROTATE_BYTES
    """A file ends before it becomes larger, unless a single turn is."""
    anonymize: bool = False
    """Names have pseudonyms; see `docs/transcripts.md` for what is replaced, and what may differ then."""
    outcomes: bool = False
    """What the resource managers hear is written as well, and what justifies each preemption: so that
    `licorne verify` can check it."""

    def __post_init__(self) -> None:
        check_type("folder", self.folder, Path, str)
        check_type("rotate_bytes", self.rotate_bytes, int)
        check_type("outcomes", self.outcomes, bool)
        if self.rotate_bytes < 1:
            raise LicorneError(f"rotate_bytes={self.rotate_bytes}: a file must have one byte at least")


def recording_of(record: Recording | Path | str) -> Recording:
    """Return a recording; a path stands for one with the usual settings."""
    return record if isinstance(record, Recording) else Recording(Path(record))
