"""Print the table of docs/topology.md: openb's nodes in racks of 16, its pods, and then gangs of its pods.

python examples/rack_tables.py openb_node_list_all_node.csv openb_pod_list_default.csv
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from licorne import ResourceManager, Scheduler, si

RACK = 16
FIRST, ALL = 3_000, 4_000
GANGS, MEMBERS = 24, 32
MEMBER = {"vcore": 11_300, "memory": 49_152 << 20, "gpu": 1_000}
"""The most frequent pod of the trace that has a whole device."""
WAYS: Mapping[str, Mapping[str, str]] = {
    "any nodes": {},
    "one rack preferred": {"topologyPreferred": "rack"},
    "slices of 8 in one rack": {"topologySlice": "rack", "topologySliceSize": "8"},
}


class Manager(ResourceManager):
    """Notes where each pod runs."""

    def __init__(self) -> None:
        self.node_of: dict[str, str] = {}

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Note the placed pods."""
        self.node_of |= {each.allocationKey: each.nodeID for each in response.new}


def resource(quantities: Mapping[str, int]) -> si.Resource:
    """Return quantities as a message, those of zero left out."""
    wanted = {name: quantity for name, quantity in quantities.items() if quantity}
    return si.Resource(resources={name: si.Quantity(value=value) for name, value in wanted.items()})


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def size_of(row: Mapping[str, str], gpu: int) -> dict[str, int]:
    """Return the resources of a node or a pod."""
    return {"vcore": int(row["cpu_milli"]), "memory": int(row["memory_mib"]) << 20, "gpu": gpu}


def submit(
    scheduler: Scheduler, name: str, sizes: Iterable[Mapping[str, int]], tags: Mapping[str, str]
) -> None:
    """Submit an application with asks of these sizes, and place what has room."""
    application = si.AddApplicationRequest(applicationID=name, queueName="root.pods", tags=tags)
    application.ugi.user = "openb"
    scheduler.update_application(si.ApplicationRequest(rmID="rm", new=[application]))
    asks = [
        si.Allocation(allocationKey=f"{name}-{number}", applicationID=name, resourcePerAlloc=resource(size))
        for number, size in enumerate(sizes)
    ]
    scheduler.update_allocation(si.AllocationRequest(rmID="rm", allocations=asks))
    scheduler.run_until_idle()


def row_of(
    order: str, way: str, nodes: list[dict[str, str]], pods: list[dict[str, str]], *, in_turn: bool
) -> tuple[str, int, int, int, float, int]:
    """Return the results of one order of nodes and one way to place gangs.

    These are its names, the racks without any pod, the gangs placed, those of them in one rack, the mean
    number of racks of a gang, and the racks without any pod or member at the end. Before the gangs some pods
    come, two of three end, and the others come.
    """
    configuration = f"""
partitions:
  - name: default
    topology: [rack]
    nodesortpolicy: {{type: {order}, resourceweights: {{vcore: 1, memory: 1, gpu: 1}}}}
    queues: [{{name: root, submitacl: '*', queues: [{{name: pods}}]}}]
"""
    manager, racks_in_all = Manager(), -(-len(nodes) // RACK)
    rack_of = {
        row["sn"]: f"r{index % racks_in_all if in_turn else index // RACK}" for index, row in enumerate(nodes)
    }
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", manager, configuration=configuration)
        infos = [
            si.NodeInfo(
                nodeID=row["sn"],
                action="CREATE",
                attributes={"rack": rack_of[row["sn"]]},
                schedulableResource=resource(size_of(row, 1_000 * int(row["gpu"]))),
            )
            for row in nodes
        ]
        scheduler.update_node(si.NodeRequest(rmID="rm", nodes=infos))
        sizes = [size_of(row, int(row["num_gpu"]) * int(row["gpu_milli"])) for row in pods]
        submit(scheduler, "early", sizes[:FIRST], {})
        ends = [key for number, key in enumerate(list(manager.node_of)) if number % 3]
        releases = [
            si.AllocationRelease(
                applicationID="early",
                allocationKey=key,
                partitionName="default",
                terminationType=si.STOPPED_BY_RM,
            )
            for key in ends
        ]
        scheduler.update_allocation(
            si.AllocationRequest(
                rmID="rm", releases=si.AllocationReleasesRequest(allocationsToRelease=releases)
            )
        )
        for key in ends:
            del manager.node_of[key]
        submit(scheduler, "later", sizes[FIRST:], {})
        whole = len({*rack_of.values()} - {rack_of[node] for node in manager.node_of.values()})
        for number in range(GANGS):
            tags = {"gangSize": str(MEMBERS), **WAYS[way]}
            submit(scheduler, f"gang{number}", [MEMBER] * MEMBERS, tags)
    racks: dict[str, Counter[str]] = {}
    for key, node in manager.node_of.items():
        name = key.partition("-")[0]
        if name.startswith("gang"):
            racks.setdefault(name, Counter())[rack_of[node]] += 1
    used = [len(each) for each in racks.values()]
    left = len({*rack_of.values()} - {rack_of[node] for node in manager.node_of.values()})
    mean = sum(used) / len(used) if used else 0.0
    return f"`{order}` | {way}", whole, len(used), used.count(1), mean, left


def main() -> None:
    """Read the command line, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("nodes", type=Path)
    parser.add_argument("pods", type=Path)
    parser.add_argument(
        "--in-turn", action="store_true", help="neighbours in the file are in different racks"
    )
    options = parser.parse_args()
    nodes, pods = read(options.nodes), read(options.pods)[:ALL]
    print("| order of nodes | gangs | whole racks before | placed | in one rack | racks of a gang | left |")
    print("|---|---|---|---|---|---|---|")
    for order in ("fair", "binpacking", "domainpacking"):
        for way in WAYS:
            names, whole, placed, in_one, mean, left = row_of(
                order, way, nodes, pods, in_turn=options.in_turn
            )
            print(f"| {names} | {whole} | {placed} of {GANGS} | {in_one} | {mean:.1f} | {left} |", flush=True)


if __name__ == "__main__":
    main()
