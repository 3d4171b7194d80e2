"""Why an allocation ends, as the numbers of `si.v1` say it."""

from __future__ import annotations

from typing import Final, NamedTuple

from ...model.values.messages import TerminationType
from . import si_pb2 as si

_TERMINATIONS: Final = {termination.value: termination for termination in TerminationType}
_KNOWN: Final = ", ".join(f"{termination.name} {termination.value}" for termination in TerminationType)


class Termination(NamedTuple):
    """The reason of a release, and why the release is refused: empty if it is not."""

    kind: TerminationType
    refusal: str = ""


def termination_of(release: si.AllocationRelease) -> Termination:
    """Return the reason of a release.

    One with a reason that this version does not know is refused, since what ends depends on the reason; the
    rest of its request is carried out.
    """
    kind = _TERMINATIONS.get(release.terminationType)
    if kind is not None:
        return Termination(kind)
    return Termination(
        TerminationType.UNKNOWN_TERMINATION_TYPE,
        f"the release of {release.allocationKey or release.UUID!r} of application {release.applicationID!r} "
        f"has the terminationType {release.terminationType}; known are {_KNOWN}",
    )
