from __future__ import annotations

from pathlib import Path

import pytest
from support.proxy.simulation_builders import SECOND, shared_data, written

from licorne.proxy.base.files import input_files
from licorne.proxy.base.files.input_files import InputError
from licorne.proxy.play.simulation.workloads.openb import OpenbMode, read_openb
from licorne.proxy.play.simulation.workloads.workload import InputNote, SimulatedWorkload

_NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,32000,1024,2,G2\nn1,8000,512,0,\n"
_HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)
_PODS = _HEADER + "p0,12000,16,1,460,,LS,Running,100,160,110\np1,500,8,0,0,T4,BE,Pending,90,150,\n"


def _read(
    folder: Path, pods: str = _PODS, nodes: str = _NODES, mode: OpenbMode = OpenbMode.PACKING
) -> SimulatedWorkload:
    return read_openb(written(folder / "nodes.csv", nodes), written(folder / "pods.csv", pods), mode)


def _refused(folder: Path, pods: str = _PODS, nodes: str = _NODES) -> str:
    with pytest.raises(InputError) as caught:
        _read(folder, pods, nodes)
    return str(caught.value).removeprefix(f"{folder}/")


def test_nodes_have_milli_cores_bytes_and_thousandths_of_devices(tmp_path: Path) -> None:
    """What a node has none of is left out."""
    nodes = _read(tmp_path).nodes

    assert {"vcore": 32000, "memory": 2**30, "gpu": 2000} == nodes[0].resources
    assert {"vcore": 8000, "memory": 2**29} == nodes[1].resources


def test_each_pod_is_an_application_in_the_queue_of_its_class(tmp_path: Path) -> None:
    """A share of a device is a share of a thousand."""
    first, second = _read(tmp_path).applications

    assert ("app-p0", "root.ls", "root.be") == (first.application_id, first.queue, second.queue)
    assert {"vcore": 12000, "memory": 2**24, "gpu": 460} == first.tasks[0].resources


def test_packing_submits_in_the_order_of_the_file_and_ends_nothing(tmp_path: Path) -> None:
    """One pod a second, whatever its own times are."""
    tasks = [application.tasks[0] for application in _read(tmp_path).applications]

    assert [("p0", 0, None), ("p1", SECOND, None)] == [(t.key, t.submit_at_ns, t.duration_ns) for t in tasks]


def test_a_replay_has_the_times_of_the_trace(tmp_path: Path) -> None:
    """It starts with the first pod; a pod that never started runs from its creation."""
    workload = _read(tmp_path, mode=OpenbMode.OWN_TIMES)
    tasks = [application.tasks[0] for application in workload.applications]

    expected = [("p1", 0, 60 * SECOND), ("p0", 10 * SECOND, 50 * SECOND)]
    assert expected == [(t.key, t.submit_at_ns, t.duration_ns) for t in tasks]


def test_what_is_ignored_is_reported(tmp_path: Path) -> None:
    """The model of a device that a pod wants is not looked at."""
    assert (InputNote(1, "pod that names a device model: the model is ignored"),) == _read(tmp_path).notes


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("12000", "12k", "pods.csv:2: cpu_milli: '12k' is not a whole number"),
        ("p1,", "p0,", "pods.csv:3: name: 'p0' stands already in line 2"),
        (",LS", "", "pods.csv:2: 10 fields where the header has 11: 'p0' ..."),
        ("num_gpu,", "gpus,", "pods.csv:1: the header 'name,cpu_milli,"),
        ("gpu_spec", "qos", "pods.csv:1: the header"),
        ("LS", '"LS" ', "pods.csv:2: no CSV: "),
    ],
)
def test_a_wrong_pod_is_named_with_its_line(tmp_path: Path, old: str, new: str, expected: str) -> None:
    """Every error has the place and the value."""
    assert _refused(tmp_path, pods=_PODS.replace(old, new, 1)).startswith(expected)


def test_times_that_are_not_in_order_are_refused_where_they_count(tmp_path: Path) -> None:
    """They are not read where pods are packed."""
    pods = _PODS.replace("100,160,110", "100,160,200")

    assert 2 == len(_read(tmp_path, pods).applications)
    with pytest.raises(InputError, match=r"pods\.csv:2: the times are not in order: creation_time '100'"):
        _read(tmp_path, pods, mode=OpenbMode.OWN_TIMES)


_SHORT_NODES = "sn,cpu_milli,memory_mib,gpu\nn0,32000,1024,2\n"
_SHORT_PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,qos{}\np0,12000,16,1,460,LS{}\n"


def test_columns_that_are_ignored_may_be_missing(tmp_path: Path) -> None:
    """Those of the model, the phase, and the times where pods are packed."""
    packed = _read(tmp_path, _SHORT_PODS.format("", ""), _SHORT_NODES)
    replayed = _read(
        tmp_path,
        _SHORT_PODS.format(",creation_time,deletion_time", ",100,160"),
        _SHORT_NODES,
        OpenbMode.OWN_TIMES,
    )

    assert ({}, ()) == (packed.nodes[0].attributes, packed.notes)
    assert [None, 60 * SECOND] == [one.applications[0].tasks[0].duration_ns for one in (packed, replayed)]


def test_pods_without_a_class_of_service_are_in_the_default_queue(tmp_path: Path) -> None:
    """Some of the published files have no such column."""
    without = _read(
        tmp_path, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,12000,16,1,460\n", _SHORT_NODES
    )
    empty = _read(tmp_path, _SHORT_PODS.format("", "").replace("LS", ""), _SHORT_NODES)

    assert ["root.default"] * 2 == [one.applications[0].queue for one in (without, empty)]


def test_times_are_needed_where_pods_have_their_own(tmp_path: Path) -> None:
    """The column that is missing is named."""
    with pytest.raises(InputError, match="lacks the column 'creation_time'"):
        _read(tmp_path, _SHORT_PODS.format("", ""), _SHORT_NODES, OpenbMode.OWN_TIMES)


def test_there_is_a_limit_to_the_nodes_of_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one of every input."""
    monkeypatch.setattr(input_files, "NODES_MAX", 1)

    assert "nodes.csv: there are 2 nodes, more than 1" == _refused(tmp_path)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("", "nodes.csv: the file is empty; its first line must name the columns"),
        (_NODES.splitlines()[0], "nodes.csv: there is no record below the header"),
        (_NODES.replace("512", "9" * 15), "nodes.csv:3: memory_mib: '999999999999999' is too large"),
    ],
)
def test_wrong_nodes_are_named_too(tmp_path: Path, nodes: str, expected: str) -> None:
    """The file of the nodes is checked like that of the pods."""
    assert expected == _refused(tmp_path, nodes=nodes)


def test_the_whole_trace_is_read() -> None:
    """1,523 nodes and 8,152 pods, whose demand is what the trace is known for."""
    nodes = shared_data("openb/openb_node_list_all_node.csv")
    workload = read_openb(nodes, shared_data("openb/openb_pod_list_default.csv"))
    tasks = [application.tasks[0] for application in workload.applications]

    assert (1523, 8152) == (len(workload.nodes), len(tasks))
    assert 85_436 == sum(task.resources["vcore"] for task in tasks) // 1000
    assert 6_086_800 == sum(task.resources.get("gpu", 0) for task in tasks)
