"""The metrics of a door: those of the workers, each sample with its worker, and its own."""

from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from support.proxy.door_views import Both, place_at

from licorne.proxy.wire.door.view.merging import policies, summed_history
from licorne.proxy.wire.door.view.questions import merged_metrics
from licorne.proxy.wire.door.view.reading import AskedWorker, Said

MINUTE_NS = 60 * 10**9


def _samples(text: str) -> dict[str, list[dict[str, str]]]:
    return {
        family.name: [sample.labels for sample in family.samples]
        for family in text_string_to_metric_families(text)
    }


def test_the_families_are_those_of_one_scheduler_and_of_the_door(both: Both) -> None:
    """Each once, and by name: Prometheus refuses a family that comes twice."""
    one, door = (each.get("/ws/v1/metrics").text for each in (both.one, both.door))
    heads = [line for line in door.splitlines() if line.startswith("# TYPE")]

    assert len(heads) == len(set(heads))
    assert sorted(heads) == heads
    own = {"licorne_door_partition", "licorne_door_requests_waiting", "licorne_door_worker_number"}
    assert _samples(one).keys() | own == _samples(door).keys()


def test_each_sample_of_a_worker_has_its_name(both: Both) -> None:
    """That of its partition, which a worker in its place has as well."""
    found = _samples(both.door.get("/ws/v1/metrics").text)

    assert [
        {"state": "active", "worker": "default"},
        {"state": "active", "worker": "second"},
    ] == [each for each in found["yunikorn_scheduler_node"] if each.get("state") == "active"]
    assert [{}, {"worker": "default"}, {"worker": "second"}] == found["process_open_fds"]
    assert {"rm": "rm", "partition": "second", "state": "running"} in found["licorne_door_partition"]


def test_labels_and_values_with_traps_stay() -> None:
    """A brace in a label, no labels, and a partition whose name has a quote."""
    place = place_at("127.0.0.1:1", 'a"b')
    text = '# HELP m what\n# TYPE m gauge\nm{queue="x}y"} 1\nm 2e+06\n'
    said = Said(AskedWorker("127.0.0.1:1", (place,)), 200, "", text.encode())

    assert (
        '# HELP m what\n# TYPE m gauge\nm{queue="x}y",worker="a\\"b"} 1\nm{worker="a\\"b"} 2e+06\n'
        == merged_metrics("", [said]).decode()
    )


def test_histories_are_added_minute_by_minute() -> None:
    """A gap counts as the minute before, and what was before the first entry as nothing."""
    first = [(0, 1), (1, 2), (3, 4)]
    second = [(1, 10), (2, 20), (3, 30), (4, 40)]
    histories = [
        [{"timestamp": minute * MINUTE_NS + late, "n": str(count)} for minute, count in entries]
        for late, entries in ((5, first), (9, second))
    ]

    found = [(each["timestamp"], each["n"]) for each in summed_history(histories, "n")]
    late = [5, *(minute * MINUTE_NS + 9 for minute in (1, 2, 3, 4))]
    assert [*zip(late, ["1", "12", "22", "34", "44"], strict=True)] == found


def test_policies_of_workers_are_added_by_name() -> None:
    """Means count by their answers, and of failures the last one is shown."""

    def row(name: str, answers: int, mean_ns: int, failures: int = 0, at: int = 0) -> dict[str, Any]:
        last = {"lastFailure": {"at": at}} if at else {}
        times = {"meanNs": mean_ns, "longestNs": 10 * mean_ns}
        return {"name": name, "answers": answers, "failures": failures, **times, **last}

    worker: Any = None
    found = [(worker, [row("b", 1, 100, 1, 9), row("a", 0, 0)]), (worker, [row("b", 3, 20, 2, 7)])]

    assert policies(found) == [row("a", 0, 0), {**row("b", 4, 40, 3, 9), "longestNs": 1000}]
