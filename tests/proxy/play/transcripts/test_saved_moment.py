"""A saved moment, played again, decides what the scheduler that was saved decides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from support.transcripts.simulated_transcripts import simulated_transcript

from licorne import Scheduler
from licorne.proxy.play.transcripts.replay import Replay
from licorne.proxy.play.transcripts.saved_moment import open_configuration, saved_lines
from licorne.proxy.play.transcripts.transcript import read_transcript

SEEDS: Final = (1, 3, 4, 6)
"""Random states without reservations and replacements under way, which are not saved."""
ENDED: Final = ("Completed", "Rejected", "Failed", "Expired")
OWNED: Final = """
partitions:
  - name: default
    placementrules: [{name: user, create: true, parent: {name: fixed, value: root.users}}]
    queues:
      - name: root
        queues:
          - {name: users, parent: true, submitacl: "ada", resources: {max: {memory: 10}}}
"""


class Played:
    """A stepped scheduler to which lines are played, and what it says."""

    def __init__(self, lines: Iterator[str] | list[str]) -> None:
        self._output: list[str] = []
        self.core = Scheduler(engine="direct", stepped=True)
        self._replay = Replay(self.core, self._output.append)
        self.said = self.play(lines)

    def play(self, lines: Iterator[str] | list[str]) -> list[dict[str, Any]]:
        """Play lines; return what the scheduler said."""
        self._output.clear()
        self._replay.run(read_transcript("\n".join(lines), "lines"))
        return [json.loads(line) for line in self._output]

    def fork(self) -> Played:
        """Return a scheduler that goes on from what this one has."""
        return Played(saved_lines(self.core.saved()))

    def had(self) -> dict[str, object]:
        """Return what is where: nodes, and active applications with what they have and wait for."""
        documents: Any = self.core.snapshot()
        found: dict[str, object] = {}
        for name, applications in documents["applications"].items():
            for each in applications:
                if each["applicationState"] not in ENDED:
                    found[f"{name} {each['applicationID']}"] = (
                        each["queueName"],
                        each["user"],
                        sorted((one["allocationKey"], one["nodeId"]) for one in each.get("allocations", ())),
                        sorted(one["allocationKey"] for one in each.get("requests", ())),
                    )
        for name, nodes in documents["nodes"].items():
            for each in nodes:
                found[f"{name} {each['nodeID']}"] = (
                    each["capacity"],
                    each["available"],
                    each["schedulable"],
                )
        return found


def further(core: Scheduler) -> list[str]:
    """Return lines that ask for more, for every application, and run the scheduler."""
    documents: Any = core.snapshot()
    asks = [
        {
            "allocationKey": f"new-{name}-{each['applicationID']}-{number}",
            "applicationID": each["applicationID"],
            "partitionName": name,
            "resourcePerAlloc": {"resources": {"memory": {"value": str(number)}}},
        }
        for name, applications in documents["applications"].items()
        for each in applications
        if each["applicationState"] not in ENDED
        for number in (1, 2, 3)
    ]
    return [
        json.dumps({"allocation": {"rmID": "rm", "allocations": asks}}),
        json.dumps({"schedule": "all"}),
        json.dumps({"advance": "5s"}),
        json.dumps({"schedule": "all"}),
    ]


def placed(said: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return what was placed where, in order."""
    return [
        (new["allocationKey"], new["nodeID"])
        for line in said
        for new in line.get("allocationResponse", {}).get("new", [])
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_fork_has_what_the_original_has_and_decides_the_same(seed: int) -> None:
    """Whatever it was that led to the state."""
    original = Played(simulated_transcript(seed, 60)[:45])
    fork = original.fork()
    lines = further(original.core)

    assert original.had() == fork.had()
    assert placed(original.play(lines)) == placed(fork.play(lines))
    fork.core.validate()


def line(verb: str, **body: object) -> str:
    return json.dumps({verb: {"rmID": "rm", **body}})


def application(name: str, **tags: str) -> str:
    return line("application", new=[{"applicationID": name, "ugi": {"user": "ada"}, "tags": tags}])


def ask(application_id: str, key: str, memory: int, **tags: str) -> str:
    size = {"resources": {"memory": {"value": str(memory)}}}
    one = {"allocationKey": key, "applicationID": application_id, "resourcePerAlloc": size}
    return line("allocation", allocations=[{**one, "allocationTags": tags}])


@pytest.fixture
def owned() -> Played:
    """Return a cluster whose users have queues by a rule; the second application came later, and waits."""
    size = {"resources": {"memory": {"value": "100"}}}
    nodes = [
        {"nodeID": "n1", "action": "CREATE", "schedulableResource": size},
        {"nodeID": "n2", "action": "CREATE_DRAIN", "schedulableResource": size},
    ]
    return Played(
        [
            line("register", config=OWNED),
            '{"advance": "1h"}',
            line("node", nodes=nodes),
            application("first"),
            ask("first", "runs", 8),
            '{"schedule": "all"}',
            '{"advance": "1500ms"}',
            application("second"),
            ask("second", "older", 5, creationTime="946688399"),
            ask("first", "later", 7),
            '{"schedule": "all"}',
            '{"advance": "2s"}',
        ]
    )


def test_the_explanation_is_the_same_but_for_the_time(owned: Played) -> None:
    """A limit that holds an ask back does so in the fork; the rule need not be one that names a queue."""
    original, fork = owned.core.explain("second"), owned.fork().core.explain("second")

    assert "root.users.ada" == fork.queue_path
    assert original.asks[0].blockers == fork.asks[0].blockers
    assert len(fork.asks[0].blockers) > 0


def test_times_are_counted_from_the_oldest(owned: Played) -> None:
    """In tags too: an ask that its manager made a second before the rest is as old as it was."""
    saved: Any = owned.core.saved()
    (moment,) = saved["partitions"]
    fork = owned.fork().core
    documents: Any = fork.snapshot()
    (waits,) = [each for each in documents["applications"]["default"] if each["applicationID"] == "second"]

    assert 946688403_500000000 == moment["time"]
    assert 946684804_500000000 == fork.now_ns()
    assert 946684800_000000000 == waits["submissionTime"]


def test_a_drained_node_stays_drained(owned: Played) -> None:
    """The others were drained only while everything came."""
    assert (True, False) == (
        owned.fork().had()["default n1"][2],  # type: ignore[index]
        owned.fork().had()["default n2"][2],  # type: ignore[index]
    )


def test_the_placement_and_the_access_of_the_saved_configuration_are_back_at_the_end(owned: Played) -> None:
    """Who could not submit before, cannot now."""
    fork = owned.fork()
    other = {"applicationID": "other", "queueName": "root.users.eve", "ugi": {"user": "eve"}}
    said = fork.play([line("application", new=[other])])

    assert [["other"]] == [
        [each["applicationID"] for each in one["applicationResponse"]["rejected"]] for one in said
    ]


def test_a_queue_that_a_reload_made_a_parent_is_a_leaf_while_applications_come() -> None:
    """And a queue below one that has become a leaf can be created."""
    text = "partitions: [{name: default, queues: [{name: a, queues: [{name: b}]}, {name: c}]}]"
    opened = open_configuration(text, {"default": ["root.a", "root.c.d"]})

    assert (
        "partitions:\n- name: default\n  queues:\n  - name: root\n    queues:\n    - name: a\n    - name: c\n"
        "      parent: true\n    submitacl: '*'\n  placementrules:\n  - name: provided\n    create: true\n"
        "  preemption:\n    enabled: false\n"
    ) == opened


def test_a_saved_application_waits_for_what_it_still_waits_for() -> None:
    """What has ended is not in the file: it is no longer named."""

    def line(verb: str, **body: object) -> str:
        return json.dumps({verb: {"rmID": "rm", **body}})

    def came(name: str, **tags: str) -> list[str]:
        size = {"resources": {"memory": {"value": 1}}}
        ask = {"allocationKey": f"{name}-1", "applicationID": name, "resourcePerAlloc": size}
        new = {"applicationID": name, "queueName": "root.q", "ugi": {"user": "ada"}, "tags": tags}
        return [line("application", new=[new]), line("allocation", allocations=[ask])]

    config = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: q}]}]}]"
    first = Played(
        [
            line("register", config=config),
            *came("a"),
            *came("b"),
            *came("c", afterOk="a,b", namespace="x"),
            *came("d", after="a"),
            *came("e", afterOk="a"),
            line("application", remove=[{"applicationID": "a", "outcome": "failed"}]),
        ]
    )
    copy = first.fork()
    node = {"nodeID": "n", "action": "CREATE", "schedulableResource": {"resources": {"memory": {"value": 9}}}}
    after = [
        line("application", remove=[{"applicationID": "b"}]),
        line("node", nodes=[node]),
        '{"schedule": 9}',
    ]
    for played in (first, copy):
        played.play(after)
    assert first.had() == copy.had()
    assert first.had()["default d"][2] == [("d-1", "n")]  # type: ignore[index]
    first.core.stop()
    copy.core.stop()
