"""Hypothesis strategies for limits of users and groups that are valid below given limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from hypothesis import strategies as st

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn
    from support.transcripts.transcript_lines import Json

__all__ = ["GROUPS", "USERS", "Quantities", "Whom", "in_file", "limits", "some_quantities"]

Quantities: TypeAlias = dict[str, int]

USERS: Final = ("ada", "bob", "eve", "kim.it")
GROUPS: Final = ("analysts", "builders", "cooks")
_TYPES: Final = ("memory", "vcore", "gpu")
_MOST: Final = {"memory": 200, "vcore": 20, "gpu": 6}
"""In units of the file: cores there, thousandths on the wire."""


@dataclass(slots=True)
class Whom:
    """What is said of users, or of groups, in the queues above: an upper bound for all that stand below."""

    resources: dict[str, Quantities] = field(default_factory=dict)
    applications: dict[str, int] = field(default_factory=dict)

    def bound(self, names: list[str]) -> Quantities:
        """Return what the maximum of a limit for all these names must fit in."""
        bound: Quantities = {}
        for name in names:
            for kind, most in self.resources.get(name, self.resources.get("*", {})).items():
                bound[kind] = min(most, bound.get(kind, most))
        return bound

    def applications_bound(self, names: list[str]) -> int:
        """Return how many applications such a limit may allow, 0 for any number."""
        bounds = [self.applications.get(name, self.applications.get("*", 0)) for name in names]
        return min((bound for bound in bounds if bound), default=0)

    def below(self, names: list[str], resources: Quantities, applications: int) -> Whom:
        """Return the bounds for the queues below a limit."""
        inner = Whom({**self.resources}, {**self.applications})
        for name in names:
            inner.resources[name] = _smaller(self.bound([name]), resources)
            inner.applications[name] = applications
        return inner


def _smaller(left: Quantities, right: Quantities) -> Quantities:
    kinds = [*left, *(kind for kind in right if kind not in left)]
    return {
        kind: min(left.get(kind, right.get(kind, 0)), right.get(kind, left.get(kind, 0))) for kind in kinds
    }


def in_file(quantities: Quantities) -> dict[str, Json]:
    """Write quantities as the file has them; cores in thousandths, so that both spellings are read."""
    return {kind: f"{most * 1000}m" if kind == "vcore" else str(most) for kind, most in quantities.items()}


@st.composite
def some_quantities(draw: DrawFn, bound: Quantities, types: tuple[str, ...] = _TYPES) -> Quantities:
    """Draw some types with quantities of at most the bound where there is one; perhaps none at all."""
    kinds = draw(st.lists(st.sampled_from(types), unique=True, max_size=len(types)))
    return {kind: draw(st.integers(0, bound.get(kind, _MOST[kind]))) for kind in kinds}


@st.composite
def limits(
    draw: DrawFn, users: Whom, groups: Whom, maximum: Quantities, applications_max: int
) -> tuple[list[Json], Whom, Whom]:
    """Draw the limits of one queue; return them with the bounds for the queues below.

    Args:
        draw: given by hypothesis.
        users: what is said of users above.
        groups: what is said of groups above.
        maximum: what no limit of this queue may exceed.
        applications_max: the queue's maximum of applications, 0 if it has none.
    """
    entries: list[Json] = []
    inner_users, inner_groups = users, groups
    for names in draw(_name_lists(USERS)):
        limit = draw(
            _limit(kind="users", names=names, above=users, maximum=maximum, applications_max=applications_max)
        )
        if limit is not None:
            entries.append(limit[0])
            inner_users = inner_users.below(names, limit[1], limit[2])
    named = False
    for names in draw(_name_lists(GROUPS)):
        if names == ["*"] and not named:
            continue  # A limit for all other groups needs one group that is named.
        limit = draw(
            _limit(
                kind="groups", names=names, above=groups, maximum=maximum, applications_max=applications_max
            )
        )
        if limit is not None:
            named = True
            entries.append(limit[0])
            inner_groups = inner_groups.below(names, limit[1], limit[2])
    return entries, inner_users, inner_groups


@st.composite
def _name_lists(draw: DrawFn, names: tuple[str, ...]) -> list[list[str]]:
    """Draw the users that are limited together: none twice, and all others last."""
    chosen = draw(st.lists(st.sampled_from(names), unique=True, max_size=3))
    together = draw(st.booleans())
    lists = [chosen] if together and chosen else [[name] for name in chosen]
    return [*lists, ["*"]] if draw(st.booleans()) else lists


@st.composite
def _limit(
    draw: DrawFn,
    *,
    kind: str,
    names: list[str],
    above: Whom,
    maximum: Quantities,
    applications_max: int,
) -> tuple[Json, Quantities, int] | None:
    """Draw one limit, `None` if there is none that says anything."""
    resources = draw(some_quantities(_smaller(above.bound(names), maximum)))
    if not any(resources.values()):
        resources = {}
    bounds = [bound for bound in (above.applications_bound(names), applications_max) if bound]
    wanted = bool(above.applications_bound(names)) or not resources or draw(st.booleans())
    applications = draw(st.integers(1, min(bounds, default=4))) if wanted else 0
    limit: dict[str, Json] = {"limit": "", kind: [*names]}
    if resources:
        limit["maxresources"] = in_file(resources)
    if applications:
        limit["maxapplications"] = applications
    return limit, resources, applications
