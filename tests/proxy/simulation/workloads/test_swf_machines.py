from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from support.proxy.simulation_builders import written

from licorne.proxy.files.input_errors import InputError
from licorne.proxy.simulation.workloads.swf_log import SwfLog
from licorne.proxy.simulation.workloads.swf_machines import machines_of_header, nodes_of, read_machines

LOG: Final = Path("log.swf")


def test_each_kind_of_machine_becomes_its_nodes(tmp_path: Path) -> None:
    """Processors are milli-cores, memory is kB in the file."""
    path = written(tmp_path / "m", "0\tbig\t2\t80\t1\t2048\n\n1 small 10 2 1\n")

    nodes = nodes_of(path, read_machines(path))

    assert ["big-1", "big-2", "small-01"] == [node.node_id for node in nodes[:3]]
    assert {"vcore": 80_000, "memory": 2048 * 1024} == nodes[0].resources
    assert {"vcore": 2_000} == nodes[-1].resources


def _of_header(nodes: int, processors: int) -> list[int]:
    """Return the cores of each node that a header tells of."""
    log = SwfLog(LOG, (), nodes, processors)
    return [node.resources["vcore"] // 1000 for node in nodes_of(LOG, machines_of_header(log))]


@pytest.mark.parametrize(
    ("nodes", "processors", "cores"),
    [(3, 12, [4, 4, 4]), (3, 0, [1, 1, 1]), (0, 3, [1, 1, 1]), (2, 5, [2, 2]), (0, 0, [])],
)
def test_the_header_of_a_log_may_tell_the_machines(nodes: int, processors: int, cores: list[int]) -> None:
    """Processors are shared out evenly; one of the two numbers is enough; nothing is known of memory."""
    assert cores == _of_header(nodes, processors)


def test_a_header_with_fewer_processors_than_nodes_is_refused() -> None:
    """A node without a processor is none."""
    with pytest.raises(InputError, match=r"^log\.swf: the header has fewer processors \(MaxProcs 2\)"):
        _of_header(4, 2)


def test_there_is_a_limit_to_the_nodes_of_all_machines_together(tmp_path: Path) -> None:
    """It holds before any of them is made."""
    path = written(tmp_path / "m", "0 a 600000 2\n1 b 400001 2\n")

    with pytest.raises(InputError, match=r"m: there are 1,000,001 nodes, more than 1,000,000$"):
        nodes_of(path, read_machines(path))
    with pytest.raises(InputError, match=r"^log\.swf: there are 999,999,999 nodes, more than"):
        _of_header(999_999_999, 0)


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
