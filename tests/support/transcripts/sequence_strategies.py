"""What a resource manager may say, for sequences that hypothesis draws: names, sizes, and whole messages.

Names come from small pools, so that most of what is said concerns what is there, and some of it what was
there before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st
from support.transcripts.contract_checker import CONFIRMED
from support.transcripts.limit_strategies import GROUPS, USERS
from support.transcripts.transcript_lines import resource

if TYPE_CHECKING:
    from support.transcripts.limit_strategies import Quantities
    from support.transcripts.transcript_lines import Json

__all__ = [
    "APPLICATIONS",
    "KEYS",
    "NODES",
    "ODD_QUEUES",
    "TERMINATIONS",
    "allocation",
    "application",
    "applications",
    "capacities",
    "group_lists",
    "key_of",
    "keys",
    "nodes",
    "odd_sizes",
    "one_in_ten",
    "partition_of",
    "priorities",
    "sizes",
    "tag_sets",
    "users",
]

TERMINATIONS: Final = ("STOPPED_BY_RM", "UNKNOWN_TERMINATION_TYPE", *CONFIRMED)
APPLICATIONS: Final = ("a1", "a2", "a3", "g1")
"""The last one, like the last node, belongs to the partition `gpu`, which most configurations do not have."""
NODES: Final = ("n1", "n2", "n3", "gn")
KEYS: Final = ("k1", "k2", "k3", "k4", "k5", "k6")
ODD_QUEUES: Final = (
    "root.dyn.x",
    "root.dyn.x",
    "root.dyn.x.y",
    "root.dyn",
    "root",
    "a",
    "",
    "root.a.b.c.a",
    "root.bad name",
)

applications = st.sampled_from([*3 * APPLICATIONS[:3], APPLICATIONS[3]])
nodes = st.sampled_from([*3 * NODES[:3], NODES[3]])
keys = st.sampled_from(KEYS)
priorities = st.sampled_from([0, 0, 0, -3, 1, 2, 7, 2**31 - 1])
sizes = st.fixed_dictionaries(
    {"memory": st.sampled_from([5, 10, 10, 20, 35]), "vcore": st.sampled_from([500, 1000, 1000, 3000])},
    optional={"gpu": st.sampled_from([1, 2])},
)
odd_sizes = st.sampled_from(
    [{"memory": 0}, {"memory": -5, "vcore": 100}, {"memory": 2**63 - 1}, {"tape": 1}, {}]
)
capacities = st.fixed_dictionaries(
    {"memory": st.sampled_from([0, 15, 40, 60, 90, 120]), "vcore": st.sampled_from([2000, 5000, 9000])},
    optional={"gpu": st.integers(0, 4)},
)
one_in_ten: st.SearchStrategy[bool] = st.integers(0, 9).map(lambda number: number == 9)
users = st.sampled_from(USERS)
group_lists = st.lists(st.sampled_from(GROUPS), unique=True, max_size=2)
tag_sets = st.fixed_dictionaries(
    {},
    optional={
        "namespace": st.sampled_from(["dev", "prod.it", "root.dyn.ns", ""]),
        "namespace.resourcequota": st.sampled_from(['{"resources":{"memory":{"value":30}}}', "{", "{}"]),
        "namespace.resourceguaranteed": st.just('{"resources":{"memory":{"value":10}}}'),
        "namespace.resourcemaxapps": st.sampled_from(["1", "2", "x"]),
        "application.create.force": st.sampled_from(["true", "false"]),
    },
)


def partition_of(name: str) -> str:
    """Return the partition that an application or node belongs to, for ever."""
    return "gpu" if name.startswith("g") else "default"


def key_of(application: str, key: str) -> str:
    """Return the key of an application's ask: applications seldom use keys of each other."""
    return f"{application}-{key}"


def application(name: str, queue: str, user: str, groups: list[str], tags: dict[str, str]) -> dict[str, Json]:
    """Write the submission of an application."""
    body: dict[str, Json] = {
        "applicationID": name,
        "partitionName": partition_of(name),
        "queueName": queue,
    }
    return body | {"ugi": {"user": user, "groups": [*groups]}, "tags": {**tags}}


def allocation(name: str, key: str, size: Quantities) -> dict[str, Json]:
    """Write an ask of an application."""
    body: dict[str, Json] = {"allocationKey": key, "applicationID": name}
    return body | {"partitionName": partition_of(name), "resourcePerAlloc": resource(size)}
