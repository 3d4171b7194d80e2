from __future__ import annotations

from pathlib import Path

import pytest
from support.proxy.simulation_builders import written

from licorne.proxy.base.files.input_files import InputError
from licorne.proxy.play.simulation.workloads.inputs import InputKind, InputOptions, kind_of_input, load_input
from licorne.proxy.play.simulation.workloads.openb import POD_COLUMNS
from licorne.proxy.play.simulation.workloads.workload import SimulatedWorkload


@pytest.mark.parametrize(
    ("name", "expected"),
    [
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# none\n", "there is nothing in the file but comments"),
        ('[{"jobid": "application_1", "vc": "11cb48"}]', "a list in JSON, such as the job log of Philly"),
        ("hello\n", "the format is not known: 'hello"),
    ],
)
def test_a_file_that_is_nothing_known_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    """With its beginning."""
    with pytest.raises(InputError, match=expected):
        kind_of_input(written(tmp_path / "file", text))


@pytest.mark.parametrize(
    ("name", "text", "nodes", "expected"),
    [
        ("pods.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", None, "the nodes of an openb trace"),
        ("jobs.csv", "JobID,State\n", None, "the format is not known: 'JobID,State'"),
        ("s.yaml", "", Path("nodes.csv"), "a scenario brings its own nodes"),
    ],
)
def test_pods_need_nodes_and_scenarios_bring_their_own(
    tmp_path: Path, name: str, text: str, nodes: Path | None, expected: str
) -> None:
    """Nodes of pods stand in a file of their own; those that are not used are refused rather than ignored."""
    with pytest.raises(InputError, match=expected):
        load_input(InputOptions(path=written(tmp_path / name, text), nodes_path=nodes))


def test_a_log_may_have_its_machines_elsewhere(tmp_path: Path) -> None:
    """The same option names them."""
    log = written(tmp_path / "log.swf", "1 0 0 5 1 -1 -1 1 5 -1 1 1 1 -1 -1 -1 -1 -1\n")
    machines = written(tmp_path / "machines", "0 m 3 2\n")

    work = load_input(InputOptions(path=log, nodes_path=machines))

    assert isinstance(work, SimulatedWorkload)
    assert 3 == len(work.nodes)
