"""dict[str, int] of any size, said in any order: what ends leaves the sums of what remains, on every engine.

Hypothesis draws what a resource manager says: asks, existing and foreign allocations, other sizes of them,
releases, nodes that come, change and go. Half of the quantities are so large that a few of them exceed 64
bits. After each line

* `validate()` finds each sum to be that of its parts, on all three engines;
* the documents show what the parts in them sum up to, as far as 64 bits can hold it;
* all engines have said the same, byte for byte.

At the end everything is released, and nothing may be left.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from support.transcripts.snapshot_checks import check_snapshot, tree
from support.transcripts.transcript_lines import (
    RM_ID,
    Json,
    allocations_line,
    line,
    node_line,
    releases_line,
    removal_line,
    resource,
)
from support.transcripts.transcript_witness import make_replay

from licorne.proxy.core.scheduler.engine_names import ENGINES, EngineName
from licorne.proxy.play.transcripts.transcript import read_transcript

MOST: Final = 2**63 - 1
QUEUES: Final = """
partitions:
  - name: default
    preemption: {enabled: true, quotapreemptionenabled: true}
    queues:
      - name: root
        submitacl: "*"
        limits: [{limit: all, users: ["*"], maxresources: {memory: 9223372036854775807}}]
        queues:
          - {name: a, resources: {guaranteed: {memory: 9223372036854775806}}}
          - name: b
            resources: {max: {memory: %s}}
            properties: {quota.preemption.delay: 1s}
            queues: [{name: c}]
"""
LEAVES: Final = {"one": "root.a", "two": "root.b.c", "three": "root.a"}
FOREIGN: Final[dict[str, Json]] = {"allocationTags": {"foreign": "static"}}

names = st.sampled_from(sorted(LEAVES))
keys = st.sampled_from(["k1", "k2", "k3"])
nodes = st.sampled_from(["n1", "n2"])
quantities = st.sampled_from([1, 7, 2**62, MOST - 1, MOST]) | st.integers(1, MOST)
sizes = st.fixed_dictionaries({"memory": quantities}, optional={"gpu": quantities})
odd_sizes = sizes | st.sampled_from([{"memory": 0}, {"memory": -MOST - 1, "gpu": 1}, {}])


def application(name: str) -> dict[str, Json]:
    """Write the submission of an application of its own user to its own queue."""
    body: dict[str, Json] = {"applicationID": name, "partitionName": "default", "queueName": LEAVES[name]}
    return body | {"ugi": {"user": name}}


def allocation(name: str, key: str, size: dict[str, int]) -> dict[str, Json]:
    """Write an ask of an application."""
    body: dict[str, Json] = {"allocationKey": key, "applicationID": name, "partitionName": "default"}
    return body | {"resourcePerAlloc": resource(size)}


def submission(name: str) -> str:
    """Submit an application."""
    body = application(name)
    return line("application", {"rmID": RM_ID, "new": [body]})


class SumsOfAnySize(RuleBasedStateMachine):
    """A resource manager that knows no measure, and a scheduler of each engine."""

    def __init__(self) -> None:
        super().__init__()
        self._outputs: dict[EngineName, list[str]] = {engine: [] for engine in ENGINES}
        self._replays = {engine: make_replay(engine, output) for engine, output in self._outputs.items()}
        self._sound = True
        self.say(line("register", {"rmID": RM_ID, "policyGroup": "queues", "config": QUEUES % 1000}))
        for name in LEAVES:
            self.say(submission(name))

    def say(self, text: str) -> None:
        """Say a line to all, and look at everything."""
        note(text)
        self._sound = False
        for replay in self._replays.values():
            replay.run(read_transcript(text, "transcript"))
            replay.scheduler.validate()
        snapshots = [replay.scheduler.snapshot() for replay in self._replays.values()]
        check_snapshot(snapshots[0])
        assert all(snapshots[0] == snapshot for snapshot in snapshots)
        output, *others = self._outputs.values()
        assert all(output == other for other in others)
        self._sound = True

    def teardown(self) -> None:
        """Release and remove everything; nothing may be left."""
        try:
            if self._sound:
                self._end()
        finally:
            for replay in self._replays.values():
                replay.scheduler.stop()

    def _end(self) -> None:
        for name in LEAVES:
            self.say(releases_line(name, "default", [("", "STOPPED_BY_RM")]))
        for key in ("k1", "k2", "k3"):
            self.say(releases_line("", "default", [(f"f-{key}", "STOPPED_BY_RM")]))
        snapshot: Any = self._replays["direct"].scheduler.snapshot()
        for queue in tree(snapshot["queues"]["default"]):
            for sum_of in ("pendingResource", "allocatedResource", "preemptingResource"):
                assert not any(queue.get(sum_of, {}).values()), queue
        for node in snapshot["nodes"]["default"]:
            assert node.get("capacity") == node.get("available"), node
        for name in LEAVES:
            self.say(removal_line(name, "default"))

    # What is asked for and what runs.

    def _ask(self, *, name: str, chosen: list[str], size: dict[str, int], scheduled: bool) -> None:
        """Ask for something, or for another size of what there is."""
        self.say(allocations_line([allocation(name, f"{name}-{key}", size) for key in chosen]))
        if scheduled:
            self.say(line("schedule", "all"))

    _asks = rule(
        name=names, chosen=st.lists(keys, unique=True, min_size=1), size=odd_sizes, scheduled=st.booleans()
    )
    ask = _asks(_ask)
    ask_again = _asks(_ask)

    @rule(name=names, key=keys, node=nodes, size=odd_sizes)
    def restore(self, *, name: str, key: str, node: str, size: dict[str, int]) -> None:
        """Say that something runs, as after a restart, or where a waiting ask has been placed."""
        self.say(allocations_line([allocation(name, f"{name}-{key}", size) | {"nodeID": node}]))

    @rule(key=keys, node=nodes, size=odd_sizes)
    def name_foreign(self, *, key: str, node: str, size: dict[str, int]) -> None:
        body: dict[str, Json] = allocation("", f"f-{key}", size) | {"nodeID": node}
        self.say(allocations_line([body | FOREIGN]))

    @rule(name=names, count=st.integers(1, 3), size=sizes, member=sizes)
    def start_gang(self, *, name: str, count: int, size: dict[str, int], member: dict[str, int]) -> None:
        """Have an application come again as a gang, with a member."""
        self.say(removal_line(name, "default"))
        body = application(name)
        announced = {kind: min(MOST, count * quantity) for kind, quantity in size.items()}
        body["placeholderAsk"] = resource(announced)
        self.say(line("application", {"rmID": RM_ID, "new": [body]}))
        group: dict[str, Json] = {"taskGroupName": "group"}
        holders = [allocation(name, f"{name}-p{number}", size) | group for number in range(count)]
        self.say(allocations_line([holder | {"placeholder": True} for holder in holders]))
        self.say(line("schedule", "all"))
        self.say(allocations_line([allocation(name, f"{name}-k1", member) | group]))
        self.say(line("schedule", "all"))

    # What ends.

    @rule(name=names, key=keys, everything=st.integers(0, 4))
    def release(self, *, name: str, key: str, everything: int) -> None:
        ended = f"{name}-{key}" if everything else ""
        self.say(releases_line(name, "default", [(ended, "STOPPED_BY_RM")]))

    @rule(key=keys)
    def end_foreign(self, *, key: str) -> None:
        self.say(releases_line("", "default", [(f"f-{key}", "STOPPED_BY_RM")]))

    @rule(name=names)
    def begin_anew(self, *, name: str) -> None:
        self.say(removal_line(name, "default"))
        self.say(submission(name))

    # Nodes, quotas, and time.

    def _change_node(self, *, node: str, action: str, capacity: dict[str, int]) -> None:
        self.say(node_line(node, "default", action, None if action == "DECOMISSION" else capacity))

    _nodes = rule(
        node=nodes, action=st.sampled_from(["CREATE", "CREATE", "UPDATE", "DECOMISSION"]), capacity=sizes
    )
    change_node = _nodes(_change_node)
    change_node_again = _nodes(_change_node)

    @rule(maximum=quantities)
    def reload(self, *, maximum: int) -> None:
        """Set another maximum, perhaps one that is below what is used."""
        self.say(line("configuration", {"rmID": RM_ID, "config": QUEUES % maximum}))

    @rule(cycles=st.sampled_from([1, "all"]))
    def schedule(self, *, cycles: int | str) -> None:
        self.say(line("schedule", cycles))

    @rule(wait=st.sampled_from(["1s", "3s", "31s"]))
    def let_time_pass(self, *, wait: str) -> None:
        self.say(line("advance", wait))


_COMMON = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

TestSumsOfAnySize = SumsOfAnySize.TestCase
# The same examples on every run: a test that fails by chance does not show which change broke it.
TestSumsOfAnySize.settings = settings(
    _COMMON, derandomize=True, database=None, max_examples=10, stateful_step_count=30
)


@pytest.mark.soak
def test_many_quantities_of_any_size_leave_the_sums_of_what_remains() -> None:
    """New sequences each time, and longer ones: some minutes."""
    many = settings(_COMMON, derandomize=False, max_examples=500, stateful_step_count=80)
    run_state_machine_as_test(SumsOfAnySize, settings=many)


def placed(engine: EngineName, *lines: str) -> list[str]:
    """Say lines after a registration; return those of the output in which something is placed."""
    output: list[str] = []
    replay = make_replay(engine, output)
    register = line("register", {"rmID": RM_ID, "policyGroup": "queues", "config": QUEUES % 1})
    replay.run(read_transcript("\n".join([register, *lines]), "transcript"))

    replay.scheduler.validate()
    replay.scheduler.stop()
    return [row for row in output if '"new"' in row]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_ask_that_can_never_fit_takes_nothing_from_others(engine: EngineName) -> None:
    """An ask of all that 64 bits can hold, once released, took away what others waited for."""
    good = {"memory": 1000}
    evil = [allocation("two", key, {"memory": MOST}) for key in ("e1", "e2")]
    (row,) = placed(
        engine,
        submission("one"),
        submission("two"),
        allocations_line([allocation("one", "good", good), *evil]),
        releases_line("two", "default", [("e1", "STOPPED_BY_RM"), ("e2", "STOPPED_BY_RM")]),
        node_line("n1", "default", "CREATE", good),
        line("schedule", "all"),
    )

    assert '"good"' in row


@pytest.mark.parametrize("engine", ENGINES)
def test_an_ask_that_fills_a_huge_node_keeps_no_other_off_the_rest(engine: EngineName) -> None:
    """A cluster that stopped at 64 bits would be full with it."""
    small = {"memory": 4}
    first, second = placed(
        engine,
        submission("one"),
        node_line("huge", "default", "CREATE", {"memory": MOST}),
        allocations_line([allocation("one", "all", {"memory": MOST}) | {"nodeID": "huge"}]),
        node_line("small", "default", "CREATE", small),
        submission("three"),
        allocations_line([allocation("three", "good", small)]),
        line("schedule", "all"),
    )

    assert '"all"' in first
    assert '"good"' in second
    assert '"small"' in second
