"""Hypothesis strategies for queue configurations: any that is valid, and ones that are not by one word.

A configuration is drawn from the root down; what a queue may say is bounded by what stands above it, so
that nothing has to be thrown away. Names come from small pools: a second configuration keeps some queues
of the first, loses some, and turns leaves into parents.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st
from support.transcripts.limit_strategies import GROUPS, USERS, Whom, in_file, limits, some_quantities

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn
    from support.transcripts.limit_strategies import Quantities
    from support.transcripts.transcript_lines import Json

__all__ = ["QUEUE_NAMES", "broken", "configurations"]

QUEUE_NAMES: Final = ("a", "B", "c", "dyn")
"""One with a capital letter: queues are lower case inside."""
_LEVELS_MAX: Final = 2
_SHARES_MAX: Final = 4
"""What a parent guarantees is enough for so many children."""


@dataclass(frozen=True, slots=True)
class _Bounds:
    """What the queues above allow one to say."""

    maximum: Quantities
    guaranteed: Quantities
    applications: int
    users: Whom
    groups: Whom
    levels: int


@st.composite
def configurations(draw: DrawFn) -> str:
    """Draw the text of a valid configuration of one partition, sometimes of two."""
    names = ["default", "gpu"] if draw(st.integers(0, 9)) == 9 else ["default"]
    return _text([draw(_partitions(name)) for name in names])


def _text(partitions: list[Json]) -> str:
    return json.dumps({"partitions": partitions}, indent=1)


@st.composite
def _partitions(draw: DrawFn, name: str) -> Json:
    root = draw(_roots())
    partition: dict[str, Json] = {"name": name, "queues": [root]}
    if "limits" in root and draw(st.booleans()):
        partition["limits"] = root["limits"]  # The same said twice is allowed.
    if draw(st.booleans()):
        weights = {"memory": draw(st.sampled_from([0.0, 1.0, 2.5])), "gpu": 1.0}
        policy: dict[str, Json] = {"type": draw(st.sampled_from(["fair", "binpacking", ""]))}
        partition["nodesortpolicy"] = policy | (
            {"resourceweights": {**weights}} if draw(st.booleans()) else {}
        )
    if draw(st.booleans()):
        switches = {"enabled": st.booleans(), "quotapreemptionenabled": st.booleans()}
        partition["preemption"] = {**draw(st.fixed_dictionaries({}, optional=switches))}
    if draw(st.booleans()):
        rules = draw(st.lists(_rules(), max_size=2))
        partition["placementrules"] = [*rules, {"name": "provided", "create": draw(st.booleans())}]
    return partition


# ------------------------------------------------------------------------------------------- placement


@st.composite
def _rules(draw: DrawFn) -> Json:
    """Draw a placement rule; parents are fixed queues or come from the user's name."""
    rule: dict[str, Json] = {"name": draw(st.sampled_from(["provided", "user", "tag", "Fixed"]))}
    rule["create"] = draw(st.booleans())
    if rule["name"] == "tag":
        rule["value"] = "namespace"
    if rule["name"] == "Fixed":
        return rule | {"value": draw(st.sampled_from(["dyn.fixed", "root.dyn.x.y"])), "create": True}
    if draw(st.booleans()):
        rule["filter"] = draw(_filters())
    if draw(st.booleans()):
        rule["parent"] = draw(_parents(creates=bool(rule["create"])))
    return rule


@st.composite
def _parents(draw: DrawFn, *, creates: bool) -> Json:
    """Draw the rule for a parent queue; one that does not exist is for rules that create queues."""
    fixed: dict[str, Json] = {"name": "fixed", "create": True}
    fixed["value"] = draw(st.sampled_from(["dyn", "Dyn.deep"])) if creates else "dyn"
    if draw(st.booleans()):
        return {"name": "user", "create": draw(st.booleans()), "parent": fixed}
    return fixed


@st.composite
def _filters(draw: DrawFn) -> Json:
    users = [[], [USERS[0]], ["ada", "bob"], ["^[a-d]"]]
    groups = [[], [GROUPS[0]], ["cooks", "builders"], ["s$"]]
    return {
        "type": draw(st.sampled_from(["allow", "deny", ""])),
        "users": [*draw(st.sampled_from(users))],
        "groups": [*draw(st.sampled_from(groups))],
    }


# ---------------------------------------------------------------------------------------------- queues


@st.composite
def _roots(draw: DrawFn) -> dict[str, Json]:
    root: dict[str, Json] = {"name": "root", "parent": True}
    root["submitacl"] = draw(st.sampled_from(["*", "*", "*", "*", "*", "ada,bob analysts"]))
    applications = draw(st.sampled_from([0, 0, 0, 5, 8]))
    if applications:
        root["maxapplications"] = applications
    bounds = _Bounds({}, {}, applications, Whom(), Whom(), _LEVELS_MAX)
    if draw(st.booleans()):
        bounds = draw(_add_limits(root, bounds))
    if draw(st.booleans()):
        root["properties"] = draw(_properties())
    if draw(st.integers(0, 3)) == 3:
        root["childtemplate"] = draw(_templates())
    names = draw(st.lists(st.sampled_from(QUEUE_NAMES[:3]), unique=True, min_size=1, max_size=3))
    root["queues"] = [*(draw(_queues(name, bounds)) for name in names), draw(_dynamic_parents(bounds))]
    return root


@st.composite
def _add_limits(draw: DrawFn, queue: dict[str, Json], bounds: _Bounds) -> _Bounds:
    """Give a queue limits, if there is anything to say; return what is allowed below."""
    entries, users, groups = draw(limits(bounds.users, bounds.groups, bounds.maximum, bounds.applications))
    if not entries:
        return bounds
    queue["limits"] = entries
    return replace(bounds, users=users, groups=groups)


@st.composite
def _dynamic_parents(draw: DrawFn, bounds: _Bounds) -> Json:
    """Draw the queue below which others are created by placement."""
    queue: dict[str, Json] = {"name": "dyn", "parent": True}
    applications = 0
    if bounds.applications:
        queue["maxapplications"] = applications = draw(st.integers(1, bounds.applications))
    if draw(st.booleans()):
        queue["childtemplate"] = draw(_templates())
    if draw(st.booleans()):
        draw(_add_limits(queue, replace(bounds, applications=applications)))
    return queue


@st.composite
def _templates(draw: DrawFn) -> Json:
    template: dict[str, Json] = {}
    if draw(st.booleans()):
        template["maxapplications"] = draw(st.integers(1, 3))
    if draw(st.booleans()):
        template["properties"] = draw(_properties())
    if draw(st.booleans()):
        maximum = draw(some_quantities({}))
        guaranteed = draw(some_quantities({kind: most // 2 for kind, most in maximum.items()}))
        template["resources"] = {"max": in_file(maximum), "guaranteed": in_file(guaranteed)}
    return template


@st.composite
def _queues(draw: DrawFn, name: str, bounds: _Bounds) -> Json:
    queue: dict[str, Json] = {"name": name}
    inner = draw(_add_resources(queue, bounds))
    if bounds.applications or draw(st.integers(0, 4)) == 4:
        applications = draw(st.integers(1, bounds.applications or 4))
        queue["maxapplications"] = applications
        inner = replace(inner, applications=applications)
    else:
        inner = replace(inner, applications=0)
    if draw(st.integers(0, 2)) == 2:
        inner = draw(_add_limits(queue, inner))
    if draw(st.booleans()):
        queue["properties"] = draw(_properties())
    if draw(st.integers(0, 5)) == 5:
        queue["submitacl"] = draw(st.sampled_from(["ada", "eve cooks", "* ", ""]))
        queue["adminacl"] = draw(st.sampled_from(["bob", " analysts", "*"]))
    if inner.levels and draw(st.booleans()):
        queue["parent"] = draw(st.booleans())
        names = draw(st.lists(st.sampled_from(QUEUE_NAMES), unique=True, max_size=3))
        below = replace(inner, levels=inner.levels - 1)
        queue["queues"] = [draw(_queues(child, below)) for child in names]
    return queue


@st.composite
def _add_resources(draw: DrawFn, queue: dict[str, Json], bounds: _Bounds) -> _Bounds:
    """Give a queue a guarantee and a maximum; return what is allowed below it."""
    own = draw(some_quantities(bounds.maximum))
    maximum = {**bounds.maximum, **own}
    share = {kind: most // _SHARES_MAX for kind, most in maximum.items()}
    share |= {kind: most // _SHARES_MAX for kind, most in bounds.guaranteed.items()}
    share = {kind: min(most, maximum.get(kind, most)) for kind, most in share.items()}
    guaranteed = draw(some_quantities(share))
    resources: dict[str, Json] = {}
    if own:
        resources["max"] = in_file(own)
    if guaranteed:
        resources["guaranteed"] = in_file(guaranteed)
    if resources:
        queue["resources"] = resources
    return replace(bounds, maximum=maximum, guaranteed=share | guaranteed)


@st.composite
def _properties(draw: DrawFn) -> Json:
    """Draw properties; some values are nonsense, which leaves the default."""
    onoff = st.sampled_from(["enabled", "Disabled"])
    policies = {
        "application.sort.policy": st.sampled_from(["fifo", "fair", "stateaware", "odd"]),
        "application.sort.priority": onoff,
        "priority.policy": st.sampled_from(["fence", "default"]),
        "priority.offset": st.sampled_from(["-5", "3", "2147483647", "x"]),
        "preemption.policy": st.sampled_from(["fence", "disabled", "default"]),
        "preemption.delay": st.sampled_from(["1s", "10ms", "-1s"]),
        "application.unschedasks.backoff": st.sampled_from(["1", "2"]),
        "application.unschedasks.backoff.delay": st.sampled_from(["2s", "100ms"]),
        "quota.preemption.delay": st.sampled_from(["1s", "3s", "0s"]),
        "colour": st.just("red"),
    }
    names = draw(st.lists(st.sampled_from([*policies]), unique=True, max_size=4))
    return {name: draw(policies[name]) for name in names}


# ---------------------------------------------------------------------------------------------- broken


def _with_queues(*queues: Json) -> Callable[[dict[str, Json]], None]:
    """Break a partition by queues below its root."""

    def add(partition: dict[str, Json]) -> None:
        tops = partition["queues"]
        assert isinstance(tops, list)
        assert isinstance(tops[0], dict)
        children = tops[0]["queues"]
        assert isinstance(children, list)
        children.extend(queues)

    return add


def _with(key: str, value: Json) -> Callable[[dict[str, Json]], None]:
    """Break a partition by one of its settings."""

    def put(partition: dict[str, Json]) -> None:
        partition[key] = value

    return put


_BREAKAGES: Final = (
    _with_queues({"name": "no.dots"}),
    _with_queues({"name": "twin"}, {"name": "Twin"}),
    _with_queues({"name": "z", "colour": "red"}),
    _with_queues({"name": "z", "resources": {"max": {"memory": "-1"}}}),
    _with_queues({"name": "z", "resources": {"max": {"memory": "1"}, "guaranteed": {"memory": "2"}}}),
    _with_queues({"name": "z", "submitacl": "u g h"}),
    _with_queues({"name": "z", "limits": [{"limit": "", "users": [], "maxapplications": 1}]}),
    _with_queues({"name": "z", "maxapplications": 2, "queues": [{"name": "y", "maxapplications": 3}]}),
    _with("placementrules", [{"name": "unheard"}]),
    _with("placementrules", [{"name": "recovery"}]),
    _with("placementrules", [{"name": "fixed", "value": "root.nowhere", "create": False}]),
    _with("nodesortpolicy", {"type": "oldest"}),
    _with("queues", [{"name": "root", "resources": {"max": {"memory": "1"}}}]),
)


@st.composite
def broken(draw: DrawFn, text: str) -> str:
    """Draw the text of a configuration that is as a given one but for one thing, in its last partition."""
    partitions = json.loads(text)["partitions"]
    draw(st.sampled_from(_BREAKAGES))(partitions[-1])
    return _text(partitions)
