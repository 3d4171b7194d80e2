from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from simulation_builders import written

from licorne.proxy.simulation.input_errors import InputError
from licorne.proxy.simulation.swf_log import SwfLog
from licorne.proxy.simulation.swf_machines import machines_of_header, nodes_of, read_machines

if TYPE_CHECKING:
    from pathlib import Path


def test_each_kind_of_machine_becomes_its_nodes(tmp_path: Path) -> None:
    """Processors are milli-cores, memory is kB in the file."""
    path = written(tmp_path / "m", "0\tbig\t2\t80\t1\t2048\n\n1 small 10 2 1\n")

    nodes = nodes_of(read_machines(path))

    assert ["big-1", "big-2", "small-01"] == [node.node_id for node in nodes[:3]]
    assert {"vcore": 80_000, "memory": 2048 * 1024} == nodes[0].resources
    assert {"vcore": 2_000} == nodes[-1].resources


def test_the_header_of_a_log_may_tell_the_machines() -> None:
    """Processors are shared out evenly; nothing is known of memory."""
    nodes = nodes_of(machines_of_header(SwfLog((), 3, 12)))

    assert [{"vcore": 4000}] * 3 == [node.resources for node in nodes]


@pytest.mark.parametrize(("nodes", "processors"), [(0, 0), (4, 2)])
def test_a_header_that_makes_no_sense_tells_nothing(nodes: int, processors: int) -> None:
    """A node without a processor is none."""
    assert () == machines_of_header(SwfLog((), nodes, processors))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "there is no machine in the file"),
        ("0 a 2", "1: 3 columns where a machine has id, name, nodes"),
        ("0 a x 2", "1: nodes: 'x' is not a whole number"),
        ("0 a 0 2", "1: '0' nodes with '2' processors are no cluster"),
        ("0 a 2 2\n1 a 2 2", "2: the machine 'a' stands there twice"),
    ],
)
def test_wrong_machines_are_named_with_their_line(tmp_path: Path, text: str, expected: str) -> None:
    """Nothing is guessed."""
    path = written(tmp_path / "m", text)

    with pytest.raises(InputError) as caught:
        read_machines(path)

    assert str(caught.value).removeprefix(f"{path}:").strip().startswith(expected)
