"""Why an allocation ends, as the numbers of `si.v1` say it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...model.errors import RequestError
from ...model.values.messages import TerminationType

if TYPE_CHECKING:
    from . import si_pb2 as si

__all__ = ["termination_of"]

_TERMINATIONS: Final = {termination.value: termination for termination in TerminationType}
_KNOWN: Final = ", ".join(f"{termination.name} {termination.value}" for termination in TerminationType)


def termination_of(release: si.AllocationRelease, rm_id: str) -> TerminationType:
    """Return the reason of a release.

    Raises:
        RequestError: It is none that this version knows. What ends, and what is answered, depends on it.
    """
    termination = _TERMINATIONS.get(release.terminationType)
    if termination is None:
        raise RequestError(
            f"resource manager {rm_id!r} releases {release.allocationKey or release.UUID!r} of application "
            f"{release.applicationID!r} with the terminationType {release.terminationType}; "
            f"known are {_KNOWN}"
        )
    return termination
