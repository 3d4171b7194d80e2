from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from support.proxy.simulation_builders import SECOND, written

from licorne import simulate
from licorne.model.configuration.problems import ConfigurationError
from licorne.model.configuration.reader import load
from licorne.model.errors import LicorneError
from licorne.proxy.play.simulation.workloads.scenario import read_scenario
from licorne.proxy.play.simulation.workloads.workload import GangStyle, SimulatedWorkload

_SCENARIO = """\
nodes:
  - prefix: n
    count: 2
    resources: {vcore: 4, memory: 1Gi}
    attributes: {rack: r1}
applications:
  - name: etl
    count: 3
    queue: root.Batch.day
    user: anna
    groups: [data]
    submit: 30m
    every: 10m
    tasks:
      - count: 2
        resources: {vcore: 500m}
        duration: 1m
        priority: -5
      - resources: {vcore: 1}
        after: 5s
"""


def _read(folder: Path, text: str = _SCENARIO, seed: int = 1) -> SimulatedWorkload:
    return read_scenario(written(folder / "day.yaml", text), seed)


def _problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        _read(folder, text)
    return [line.removeprefix(f"{folder}/") for line in str(caught.value).splitlines()]


def test_nodes_are_numbered(tmp_path: Path) -> None:
    """Quantities are those of a queue configuration: cores, and bytes with suffixes."""
    workload = _read(tmp_path)

    assert ["n-1", "n-2"] == [node.node_id for node in workload.nodes]
    assert ({"vcore": 4000, "memory": 2**30}, {"rack": "r1"}) == (
        workload.nodes[0].resources,
        workload.nodes[0].attributes,
    )


def test_applications_come_one_after_the_other(tmp_path: Path) -> None:
    """The first at its time, the next ones at equal distances."""
    applications = _read(tmp_path).applications

    assert [("etl-1", 1800), ("etl-2", 2400), ("etl-3", 3000)] == [
        (one.application_id, one.submit_at_ns // SECOND) for one in applications
    ]
    assert ("root.batch.day", "anna", ("data",)) == (
        applications[0].queue,
        applications[0].user,
        applications[0].groups,
    )


def test_groups_that_are_not_given_are_left_to_the_scheduler(tmp_path: Path) -> None:
    """Its configuration says who knows them."""
    (first, *_) = _read(tmp_path, _SCENARIO.replace("    groups: [data]\n", "")).applications

    assert () == first.groups


def test_tasks_have_their_size_time_and_priority(tmp_path: Path) -> None:
    """A task without a duration runs to the end; keys of tasks are unique."""
    first, second = _read(tmp_path).applications[1].tasks

    assert ("etl-2-t1", 2, 60 * SECOND, -5) == (first.key, first.count, first.duration_ns, first.priority)
    assert ("etl-2-t2", 1, None, 2405 * SECOND) == (
        second.key,
        second.count,
        second.duration_ns,
        second.submit_at_ns,
    )


def test_the_name_is_that_of_the_file_unless_it_is_given(tmp_path: Path) -> None:
    """A report needs a title."""
    assert ("day", "Monday") == (_read(tmp_path).name, _read(tmp_path, f"name: Monday\n{_SCENARIO}").name)


def test_durations_are_drawn_between_two_bounds(tmp_path: Path) -> None:
    """Each piece draws its own, and the same seed draws the same."""
    text = _SCENARIO.replace("duration: 1m", "duration: 1m..2m")
    tasks = [task for one in _read(tmp_path, text).applications for task in one.tasks if task.duration_ns]

    assert 6 == len({task.duration_ns for task in tasks}) == len({task.key for task in tasks})
    assert all(60 * SECOND <= (task.duration_ns or 0) <= 120 * SECOND for task in tasks)
    assert _read(tmp_path, text) == _read(tmp_path, text)
    assert _read(tmp_path, text) != _read(tmp_path, text, seed=2)


def test_queues_are_made_where_there_are_none(tmp_path: Path) -> None:
    """One leaf for each queue that is used; other parts of a partition may still be given."""
    text = f"{_SCENARIO}nodesortpolicy: {{type: binpacking}}\n"

    partition = load(_read(tmp_path, text).default_configuration).partitions[0]

    assert ("batch", "day") == (partition.root.queues[0].name, partition.root.queues[0].queues[0].name)
    assert "binpacking" == partition.node_sort_policy.type


def test_queues_are_taken_as_they_are(tmp_path: Path) -> None:
    """They are written as in a queue configuration."""
    text = (
        f"{_SCENARIO}queues: [{{name: root, submitacl: '*', queues: [{{name: yes, maxapplications: 7}}]}}]\n"
    )

    queue = load(_read(tmp_path, text).default_configuration).partitions[0].root.queues[0]

    assert ("yes", 7) == (queue.name, queue.max_applications)


def test_an_application_may_be_a_gang(tmp_path: Path) -> None:
    """Soft or hard, as the scheduler interface has it."""
    text = _SCENARIO.replace("    count: 3\n", "    gang: hard\n")

    assert GangStyle.HARD is _read(tmp_path, text).applications[0].gang


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("prefix: n", "prefixx: n", "day.yaml:2:5: nodes[0].prefix: the key 'prefix' is missing"),
        ("priority", "prioritty", "day.yaml:18:9: applications[0].tasks[0].prioritty: unknown key"),
        (
            "count: 2\n    res",
            "count: 0\n    res",
            "day.yaml:3:12: nodes[0].count: expected a number from 1 on",
        ),
        ("count: 3", "count: three", "day.yaml:8:12: applications[0].count: expected a whole number"),
        ("500m", "500 Mb", "day.yaml:16:20: applications[0].tasks[0].resources: invalid quantity: '500 Mb'"),
        ("{vcore: 1}", "{}", "day.yaml:19:20: applications[0].tasks[1].resources: expected quantities by"),
        ("{vcore: 1}", "{vcore: 0}", "day.yaml:19:20: applications[0].tasks[1].resources: at least one"),
        ("30m", "-30m", "day.yaml:12:13: applications[0].submit: the duration '-30m' is negative"),
        ("30m", "30", "day.yaml:12:13: applications[0].submit: invalid duration: '30'; write for example"),
        ("duration: 1m", "duration: 2m..1m", "day.yaml:17:19: applications[0].tasks[0].duration: in the"),
        ("root.Batch.day", "batch", "day.yaml:9:12: applications[0].queue: 'batch' is not a path of a queue"),
        ("root.Batch.day", "root.a b", "day.yaml:9:12: applications[0].queue: invalid queue name, max 64 "),
        ("prefix: n", "prefix: -n", "day.yaml:2:13: nodes[0].prefix: '-n' is not a name: 1 to 64 letters"),
        ("prefix: n", "prefix: 7", "day.yaml:2:13: nodes[0].prefix: expected a text, not 7: write it"),
        ("user: anna", "user: [anna]", "day.yaml:10:11: applications[0].user: expected a text"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, old: str, new: str, expected: str) -> None:
    """File, line, column, path, and the value or the key that was probably meant."""
    assert any(line.startswith(expected) for line in _problems(tmp_path, _SCENARIO.replace(old, new)))


@pytest.mark.parametrize(
    "old",
    [
        "n",
        "2",
        "{vcore: 4, memory: 1Gi}",
        "{rack: r1}",
        "etl",
        "3",
        "anna",
        "[data]",
        "30m",
        "1m",
        "-5",
        "5s",
    ],
)
@pytest.mark.parametrize("new", ["", "x y", "7", "-7", "1.5", "true", "[]", "[[]]", "{}", "{a: b}", "9" * 30])
def test_errors_have_texts_of_ours(tmp_path: Path, old: str, new: str) -> None:
    """Whatever stands in the place of whatever: those of pydantic are for programmers."""
    path = written(tmp_path / "day.yaml", _SCENARIO.replace(f": {old}\n", f": {new}\n", 1))

    try:
        read_scenario(path)
    except LicorneError as error:
        said = str(error)
    else:
        said = ""

    assert [] == [word for word in (" should ", "nput", "something else", "None") if word in said]


def test_all_that_is_wrong_is_reported_at_once(tmp_path: Path) -> None:
    """In the order of the file."""
    text = _SCENARIO.replace("30m", "x").replace("count: 3", "count: -1").replace("every", "evry")

    assert [8, 12, 13] == [int(line.split(":")[1]) for line in _problems(tmp_path, text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nodes: [", "day.yaml:2:1: document: not YAML: "),
        ("nodes: []\nnodes: []\n", "day.yaml:2:1: nodes: the key 'nodes' stands here twice, first on line 1"),
        ("- a list\n", "day.yaml:1:1: document: expected a mapping, not"),
        ("", "day.yaml:1:1: document: expected a mapping, not"),
    ],
)
def test_what_is_no_scenario_at_all_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    """Broken YAML, keys that stand twice, and other shapes."""
    assert _problems(tmp_path, text)[0].startswith(expected)


def test_names_must_differ(tmp_path: Path) -> None:
    """Otherwise two nodes or applications would have one id."""
    text = _SCENARIO.replace("applications:\n", "  - {prefix: n, resources: {vcore: 1}}\napplications:\n")

    assert ["day.yaml:6:14: nodes[1].prefix: the prefix 'n' is listed twice"] == _problems(tmp_path, text)


def test_a_queue_cannot_be_a_leaf_and_a_parent(tmp_path: Path) -> None:
    """The error is at the application that makes it a leaf."""
    one = "  - {name: x, queue: root.batch, user: u, tasks: [{resources: {vcore: 1}}]}\n"

    problems = _problems(tmp_path, _SCENARIO + one)

    text = "the queue 'root.batch' cannot take applications and have 'root.batch.day' below it"
    assert [f"day.yaml:21:22: applications[1].queue: {text}"] == problems


def test_a_wrong_queue_is_named_at_its_place_in_the_scenario(tmp_path: Path) -> None:
    """The rules are those of the queue configuration, the place is that of the scenario."""
    text = f"{_SCENARIO}queues:\n  - name: root\n    queues:\n      - nam: a b\n"

    assert any(
        line.startswith("day.yaml:24:14: queues[0].queues[0].nam: unknown key")
        for line in _problems(tmp_path, text)
    )


def test_too_many_tasks_are_refused(tmp_path: Path) -> None:
    """Every number has a bound, also the product of two."""
    text = _SCENARIO.replace("count: 3", "count: 1000000").replace(
        "      - count: 2", "      - count: 1000000"
    )

    assert "there are 1,000,001,000,000 tasks, more than 1,000,000" in _problems(tmp_path, text)[0]


def test_the_bundled_example_is_a_scenario() -> None:
    """A few hundred tasks of several users in several queues, with a gang among them."""
    workload = read_scenario(Path(__file__).resolve().parents[5] / "examples" / "daily.yaml")

    assert 300 <= workload.task_count() <= 600
    assert 4 <= len({application.queue for application in workload.applications})
    assert 4 <= len({application.user for application in workload.applications})
    assert any(application.gang for application in workload.applications)
    load(workload.default_configuration)


def test_a_scenario_has_racks_and_gangs_in_slices(tmp_path: Path) -> None:
    """Each pair of members is in one rack, and the last node of the first rack has no pair."""
    rows = "".join(
        f"- {{prefix: {prefix}, count: 1, resources: {{vcore: {cores}}}, attributes: {{rack: {rack}}}}}\n"
        for prefix, cores, rack in (("a", 3, "r1"), ("b", 3, "r2"))
    )
    text = f"""
nodes:
{rows}
topology: [rack]
queues: [{{name: batch, submitacl: "*", properties: {{gang.placing: whole}}}}]
applications:
  - name: train
    queue: root.batch
    user: anna
    gang: hard
    tags: {{topologySlice: rack, topologySliceSize: "2"}}
    tasks: [{{count: 4, resources: {{vcore: 1}}, duration: 1m}}]
"""
    run = simulate(written(tmp_path / "racks.yaml", text))

    placed = [each["node"] for each in run.decisions if each["kind"] == "placed" and "node" in each]
    assert {"a-1": 2, "b-1": 2} == Counter(placed[:4]), run.decisions
