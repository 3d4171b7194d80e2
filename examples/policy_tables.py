"""Print the tables of docs/which-policy.md about policies of your own: what each does to the jobs that wait.

python examples/policy_tables.py                              the day of GPU gangs, a row for each order
python examples/policy_tables.py LOG.swf --estimate-factor 5  a log, a row for each order of jobs
"""

from __future__ import annotations

import argparse
from pathlib import Path

from own_policies import (  # type: ignore[import-not-found] # in the same folder
    F1,
    CheapestFirst,
    GpuPack,
    ShortestFirst,
)

import licorne

DAY = Path(__file__).with_name("gpu-day.yaml")


def queues(leaf: str, *, nodes: str = "fair", jobs: str = "fifo", gangs: str = "whole") -> dict[str, object]:
    """Return queues with one leaf, an order of nodes, an order of jobs, and a style of placing gangs."""
    properties = {"gang.placing": gangs, "application.sort.policy": jobs}
    root = {"name": "root", "submitacl": "*", "queues": [{"name": leaf, "properties": properties}]}
    return {"partitions": [{"name": "default", "nodesortpolicy": {"type": nodes}, "queues": [root]}]}


def rank(values: list[float], share: float) -> float:
    """Return the value that this share of the values does not exceed, by nearest rank."""
    return sorted(values)[max(-int(-share * len(values) // 1), 1) - 1]


def day_table(processes: int) -> None:
    """Print the waits of jobs of each kind, in seconds, on the day of GPU gangs under each order of nodes."""
    given = {"gpu-pack": GpuPack, "cheapest": CheapestFirst}
    words = {"fair": "fair", "binpacking": "binpacking"}
    words |= {"GpuPack": "policy/gpu-pack", "CheapestFirst": "policy/cheapest"}
    options = {
        f"{name} | {gangs}": {"queues": queues("batch", nodes=word, gangs=gangs), "policies": given}
        for gangs in ("stepwise", "whole")
        for name, word in words.items()
    }
    print(
        "| node order | gangs placed | all, p95 | small, max | one GPU, p95 | gangs, median | p95 | started |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for run in licorne.compare(DAY, options, processes=processes):
        waits: dict[str, list[float]] = {user: [] for user in ("ada", "ben", "cleo")}
        for job in run.jobs:
            if job["wait"] is not None:
                waits[job["user"]].append(job["wait"])
        small, one, gangs = waits.values()
        figures = [
            rank(small + one + gangs, 0.95),
            max(small),
            rank(one, 0.95),
            rank(gangs, 0.5),
            rank(gangs, 0.95),
        ]
        cells = " | ".join(f"{figure:,.0f}" for figure in figures)
        print(f"| {run.name} | {cells} | {len(gangs)} of 12 |")


def log_table(log: Path, first: int, estimate_factor: int | None, processes: int) -> None:
    """Print what each order of jobs does to a log: waits in seconds, slowdowns, and the makespan in hours."""
    work = licorne.load(log, gang=True, first=first, estimate_factor=estimate_factor)
    leaves = {str(job["queue"]) for job in work.jobs}
    rows = [{**job, "queue": "root.batch"} for job in work.jobs]  # one queue, so that one order decides
    if len(leaves) > 1:
        work = licorne.Workload.from_rows(rows, work, name=work.name)
    leaf = "batch" if len(leaves) > 1 else leaves.pop().removeprefix("root.")
    given = {"sjf": ShortestFirst, "f1": F1}
    orders = {"fifo": "fifo", "ShortestFirst": "policy/sjf", "F1": "policy/f1"}
    runs = licorne.compare(
        work,
        {name: {"queues": queues(leaf, jobs=word), "policies": given} for name, word in orders.items()},
        processes=processes,
        figures=False,
    )
    print("| job order | mean wait | p95 | longest | mean slowdown | p95 slowdown | makespan h |")
    print("|---|---|---|---|---|---|---|")
    for run in runs:
        row = run.summary
        print(
            f"| {run.name} | {row['wait_mean']:,.0f} | {row['wait_p95']:,.0f} | {row['wait_max']:,.0f} "
            f"| {row['slowdown_mean']:,.1f} | {row['slowdown_p95']:,.1f} | {row['makespan'] / 3600:,.1f} |"
        )


def main() -> None:
    """Read the command line, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", nargs="?", type=Path)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--estimate-factor", type=int)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    if options.log is None:
        day_table(options.processes)
    else:
        log_table(options.log, options.first, options.estimate_factor, options.processes)


if __name__ == "__main__":
    main()
