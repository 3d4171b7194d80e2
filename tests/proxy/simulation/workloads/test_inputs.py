from __future__ import annotations

from pathlib import Path

import pytest
from support.proxy.simulation_builders import written

from licorne.proxy.files.input_errors import InputError
from licorne.proxy.simulation.workloads.inputs import InputKind, InputOptions, kind_of_input, load_input
from licorne.proxy.simulation.workloads.openb import POD_COLUMNS
from licorne.proxy.simulation.workloads.workload import Workload


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pods.csv", InputKind.OPENB),
        ("log.SWF", InputKind.SWF),
        ("t.jsonl", InputKind.TRANSCRIPT),
        ("s.yaml", InputKind.SCENARIO),
        ("s.yml", InputKind.SCENARIO),
    ],
)
def test_the_suffix_tells_what_a_file_is(name: str, expected: InputKind) -> None:
    """It need not even be there."""
    assert expected is kind_of_input(Path(name))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (",".join(POD_COLUMNS), InputKind.OPENB),
        ("; Version: 2\n" + "1 " * 18, InputKind.SWF),
        ('# said\n{"schedule": 1}', InputKind.TRANSCRIPT),
        ("# a day\n\nname: x", InputKind.SCENARIO),
    ],
)
def test_without_a_suffix_the_first_line_tells(tmp_path: Path, text: str, expected: InputKind) -> None:
    """Comments are passed over."""
    assert expected is kind_of_input(written(tmp_path / "file", text))


def test_a_file_that_is_nothing_known_is_refused(tmp_path: Path) -> None:
    """With its beginning."""
    path = written(tmp_path / "file", "hello\n")

    with pytest.raises(InputError, match="there is nothing in the file but comments"):
        kind_of_input(written(tmp_path / "empty", "# none\n"))
    with pytest.raises(InputError, match="the format is not known: 'hello"):
        kind_of_input(path)


def test_pods_need_nodes(tmp_path: Path) -> None:
    """They stand in a file of their own; a table of something else is said to be no openb."""
    pods = written(tmp_path / "pods.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n")
    with pytest.raises(InputError, match="the nodes of an openb trace"):
        load_input(InputOptions(path=pods))
    with pytest.raises(InputError, match="the format is not known: 'JobID,State'"):
        load_input(InputOptions(path=written(tmp_path / "jobs.csv", "JobID,State\n")))


def test_a_scenario_has_its_own_nodes(tmp_path: Path) -> None:
    """Others are refused rather than ignored."""
    options = InputOptions(path=tmp_path / "s.yaml", nodes_path=tmp_path / "nodes.csv")

    with pytest.raises(InputError, match="a scenario brings its own nodes"):
        load_input(options)


def test_a_log_may_have_its_machines_elsewhere(tmp_path: Path) -> None:
    """The same option names them."""
    log = written(tmp_path / "log.swf", "1 0 0 5 1 -1 -1 1 5 -1 1 1 1 -1 -1 -1 -1 -1\n")
    machines = written(tmp_path / "machines", "0 m 3 2\n")

    work = load_input(InputOptions(path=log, nodes_path=machines))

    assert isinstance(work, Workload)
    assert 3 == len(work.nodes)
