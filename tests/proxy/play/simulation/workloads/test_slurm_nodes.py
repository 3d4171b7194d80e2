"""Machines of Slurm in its three forms, and jobs that run on the machines of their partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from support.proxy.simulation_builders import simulated, written

from licorne.model.errors import LicorneError
from licorne.proxy.play.simulation.workloads.inputs import InputOptions, Transcript, load_input
from licorne.proxy.play.simulation.workloads.machines import nodes_of, read_machines
from licorne.proxy.play.simulation.workloads.slurm_nodes import expanded
from licorne.proxy.play.simulation.workloads.swf import JobOptions

CONFIGURED: Final = """\
ClusterName=c   # PartitionName=not
NodeName=DEFAULT RealMemory=1000
NodeName=n[1-2] CPUs=8 \\
  Gres=gpu:2
NodeName=m[01-02] Sockets=2 CoresPerSocket=2 RealMemory=2000
PartitionName=gpu Nodes=n[1-2]
PartitionName=short Nodes=m[01-02] Default=YES
PartitionName=all Nodes=ALL
"""
LISTED: Final = """\
Mon Nov 30 20:00:00 2026
NODELIST PARTITION CPUS MEMORY GRES
m01 short* 4 2000 (null)
m02 short* 4 2000 (null)
n1 gpu 8 1000 gpu:2(S:0-1)
n2 gpu 8 1000 gpu:2(S:0-1)
m[01-02] all 4 2000 (null)
n[1-2] all 8 1000 gpu:2
"""


@pytest.mark.parametrize("text", [CONFIGURED, LISTED, "\n".join(LISTED.split("\n")[1:]).replace(" ", "|")])
def test_nodes_are_those_of_the_file(text: str, tmp_path: Path) -> None:
    """Of the configuration or of a table, under their names; the partitions are an attribute."""
    path = written(tmp_path / "nodes.txt", text)
    nodes = {node.node_id: node for node in nodes_of(path, read_machines(path))}
    mebibyte = 1024 * 1024

    assert ["m01", "m02", "n1", "n2"] == sorted(nodes)
    assert {"vcore": 8000, "memory": 1000 * mebibyte, "gpu": 2} == nodes["n2"].resources
    assert {"vcore": 4000, "memory": 2000 * mebibyte} == nodes["m01"].resources
    assert ["gpu,all", "short,all"] == [nodes[name].attributes["partitions"] for name in ("n1", "m02")]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b", ["a", "b"]),
        ("n[8-10],x", ["n8", "n9", "n10", "x"]),
        ("n[08-10,3]", ["n08", "n09", "n10", "n3"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("", []),
    ],
)
def test_a_list_of_nodes_is_expanded(text: str, names: list[str]) -> None:
    """Numbers keep their leading zeros."""
    assert names == expanded(Path("nodes"), text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NODELIST CPUS\nn1 4+\n", r"nodes:2: processors: '4\+' is not a whole number"),
        ("NODELIST CPUS\nn1\n", "nodes:2: expected 2 columns, got 1: 'n1'"),
        (
            "NODELIST CPUS\nn[1-x] 4\n",
            r"nodes:2: expected a list of nodes such as n\[01-20\], got 'n\[1-x\]'",
        ),
        ("NODELIST CPUS\nn[1-9999999] 4\n", "nodes: .*1,000,000"),
        ("NodeName=a CPUs=0\nPartitionName=p\n", "nodes:1: the node 'a' has no processors"),
    ],
)
def test_a_wrong_node_is_refused_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    """A `+` is a sum over unequal nodes: `sinfo -N` lists each."""
    with pytest.raises(LicorneError, match=message):
        read_machines(written(tmp_path / "nodes", text))


JOBS: Final = """\
JobID|User|Account|Partition|Submit|Elapsed|NNodes|AllocCPUS
1|a|x|short|2026-03-01T08:00:00|01:00:00|2|8
2|a|x|short|2026-03-01T08:01:00|01:00:00|1|4
3|b|x|gpu|2026-03-01T08:02:00|01:00:00|2|16
4|b|x|all|2026-03-01T08:03:00|01:00:00|1|4
5|b|x|short|2026-03-01T08:04:00|01:00:00|1|8
6|b|x|other|2026-03-01T08:05:00|01:00:00|1|4
"""


@pytest.mark.parametrize("whole", [False, True])
def test_jobs_run_on_the_nodes_of_their_partitions(whole: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a case
    """Job 2 waits for job 1 though others are idle; job 5 fits no node of its partition; 6 may use any."""
    nodes = written(tmp_path / "slurm.conf", CONFIGURED)
    jobs = written(tmp_path / "jobs.txt", JOBS)
    work = load_input(InputOptions(path=jobs, nodes_path=nodes, jobs=JobOptions(whole=whole)))
    assert not isinstance(work, Transcript)

    report = simulated(work, with_jobs=True)

    rows = () if report.jobs is None else report.jobs.rows
    starts = {row.job: None if row.started_ns is None else row.started_ns // 60_000_000_000 for row in rows}
    assert {"1": 0, "3": 2} == {job: starts[job] for job in ("1", "3")}
    assert starts["2"] in {60, 120}
    assert starts.get("5") is None
    assert "job of a partition that no machine has: it runs on any machine" in [
        note.text for note in work.notes
    ]
