"""The errors of a benchmark run."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from ...model.errors import LicorneError


class BenchError(LicorneError):
    """A run that gave no valid figure; the message names the workload and what did not come."""


class UnknownWorkloadError(LicorneError):
    """A workload was asked for that the bench does not have."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        nearest = difflib.get_close_matches(name, known, n=3)
        hint = f"did you mean {' or '.join(nearest)}?" if nearest else f"there are {', '.join(known)}"
        super().__init__(f"unknown workload {name!r}: {hint}")
