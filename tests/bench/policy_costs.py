"""The CPU time of an ask with policies at its points, beside the built-in orders.

`python tests/bench/policy_costs.py` prints the least of several rounds for each row; with
`PYTHONPATH=.compiled` the same of the compiled build. Each round places 3,000 asks of 30 applications on 500
nodes, on the engine `direct`.
"""

from __future__ import annotations

import sys
import time
from typing import Final, NamedTuple

from licorne import ResourceManager, Scheduler, policies, si
from licorne.proxy.base.process import is_compiled

NODES: Final = 500
ASKS: Final = 3_000
APPLICATIONS: Final = 30
ROUNDS: Final = 5


class Widest:
    """The nodes with the most free cores first."""

    def node_key(self, node: policies.NodeView) -> float:
        return 1.0 - node.available.get("vcore") / node.capacity.get("vcore")


class Shortest:
    """The applications with the shortest walltime first."""

    def application_key(self, application: policies.ApplicationView) -> int:
        return application.walltime_ns or 0


class ShortestFixed(Shortest):
    """The same; the core keeps its answers."""

    depends_on = frozenset({"submission"})


class Open:
    """Lets each application start."""

    def may_start(self, _application: policies.ApplicationView, _now_ns: int) -> None:
        return None


class Everywhere:
    """Refuses no node."""

    def refuses(self, _ask: policies.AskView, _node: policies.NodeView) -> None:
        return None


class Row(NamedTuple):
    """One measurement: its label, and the words of the configuration."""

    label: str
    nodes: str = "binpacking"
    applications: str = "fifo"
    partition: str = ""


ROWS: Final = (
    Row("no policy"),
    Row("`application.sort.policy: fair`, no policy", applications="fair"),
    Row("`node_key`", nodes="policy/widest"),
    Row("`application_key`", applications="policy/shortest"),
    Row('`application_key` that depends on `"submission"`', applications="policy/fixed"),
    Row("`node_key` and `application_key`", nodes="policy/widest", applications="policy/shortest"),
    Row("`may_start`", partition="policies: {admission: [open]}"),
    Row("`refuses`", partition="policies: {filters: [everywhere]}"),
)
GIVEN: Final = {
    "widest": Widest,
    "shortest": Shortest,
    "fixed": ShortestFixed,
    "open": Open,
    "everywhere": Everywhere,
}


def configuration(row: Row) -> str:
    """Return the queues of a row as YAML."""
    return f"""
partitions:
  - name: default
    {row.partition}
    nodesortpolicy: {{type: {row.nodes}}}
    queues:
      - name: root
        submitacl: "*"
        queues: [{{name: q, properties: {{application.sort.policy: {row.applications}}}}}]
"""


def seconds_of(row: Row) -> float:
    """Return the CPU seconds in which the asks of a row are placed."""
    with Scheduler(engine="direct", policies=GIVEN) as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=configuration(row))
        size = {"resources": {"vcore": {"value": 16_000}, "memory": {"value": 1 << 36}}}
        nodes = [
            {"nodeID": f"n{number}", "action": "CREATE", "schedulableResource": size}
            for number in range(NODES)
        ]
        scheduler.update_node(si.NodeRequest(rmID="rm", nodes=nodes))
        applications = [
            {
                "applicationID": f"a{number}",
                "queueName": "root.q",
                "ugi": {"user": "ada"},
                "tags": {"walltime": f"{10 + number}m"},
            }
            for number in range(APPLICATIONS)
        ]
        scheduler.update_application(si.ApplicationRequest(rmID="rm", new=applications))
        one = {"resources": {"vcore": {"value": 1_000}, "memory": {"value": 1 << 31}}}
        asks = [
            {
                "allocationKey": f"t{number}",
                "applicationID": f"a{number % APPLICATIONS}",
                "resourcePerAlloc": one,
            }
            for number in range(ASKS)
        ]
        scheduler.update_allocation(si.AllocationRequest(rmID="rm", allocations=asks))
        begin = time.process_time()
        scheduler.run_until_idle()
        return time.process_time() - begin


def main() -> None:
    """Print a row for each combination, measured in turns."""
    best = dict.fromkeys(ROWS, float("inf"))
    for _ in range(ROUNDS):
        for row in ROWS:
            best[row] = min(best[row], seconds_of(row))
    build = "compiled" if is_compiled() else "pure"
    sys.stdout.write(f"µs of CPU for an ask, {build}:\n")
    for row, seconds in best.items():
        sys.stdout.write(f"| {row.label} | {seconds / ASKS * 1e6:.1f} |\n")


if __name__ == "__main__":
    main()
