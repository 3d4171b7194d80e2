"""What holds for every preemption for a guarantee, on small random clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from builders import a_resource
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from preemption_scenes import Scene

from licorne.model.cycle import CycleOutcome
from licorne.model.resources import EMPTY, Resource, add, fits, subtract

if TYPE_CHECKING:
    from licorne.model.preemption_records import PreemptionRecord, VictimRecord
    from licorne.model.queue import Queue

LEAVES: Final = ("root.p.a", "root.p.b", "root.q.c", "root.q.d", "root.e")
ASK_LEAF: Final = "root.p.a"
TYPES: Final = ("memory", "vcore")
EXAMPLES: Final = 150


@dataclass(frozen=True)
class Running:
    leaf: str
    node: int
    resource: Resource
    priority: int
    willing: bool
    originator: bool


@dataclass(frozen=True)
class Cluster:
    guaranteed: dict[str, Resource]
    maximum: dict[str, Resource]
    nodes: tuple[Resource, ...]
    running: tuple[Running, ...]
    ask: Resource
    priority: int


def sizes(low: int, high: int) -> st.SearchStrategy[Resource]:
    """Return resources of both types."""
    return st.builds(lambda memory, vcore: a_resource(memory=memory, vcore=vcore), *[st.integers(low, high)] * 2)


QUEUES: Final = (*LEAVES, "root.p", "root.q")
CLUSTERS: Final = st.builds(
    Cluster,
    guaranteed=st.dictionaries(st.sampled_from(QUEUES), sizes(1, 40), max_size=4).map(
        lambda some: {ASK_LEAF: a_resource(memory=30, vcore=30), **some}
    ),
    maximum=st.dictionaries(st.sampled_from(QUEUES), sizes(15, 60), max_size=2),
    nodes=st.lists(sizes(10, 30), min_size=1, max_size=3).map(tuple),
    running=st.lists(
        st.builds(
            Running,
            leaf=st.sampled_from(LEAVES),
            node=st.integers(0, 2),
            resource=sizes(1, 8),
            priority=st.integers(-1, 1),
            willing=st.booleans(),
            originator=st.booleans(),
        ),
        min_size=4,
        max_size=24,
    ).map(tuple),
    ask=sizes(2, 16),
    priority=st.integers(-1, 1),
)


def quota_lines(cluster: Cluster, path: str) -> str:
    entries = {"guaranteed": cluster.guaranteed.get(path), "max": cluster.maximum.get(path)}
    quotas = ", ".join(
        f"{name}: {{memory: {value['memory']}, vcore: {value['vcore']}m}}"
        for name, value in entries.items()
        if value is not None
    )
    return f"resources: {{{quotas}}}"


def configuration(cluster: Cluster) -> str:
    """Write the queues of a cluster."""
    delay = "properties: {preemption.delay: 10s}"
    lines = []
    for parent in ("p", "q"):
        lines += [f"- name: {parent}", f"  {quota_lines(cluster, f'root.{parent}')}", "  queues:"]
        for leaf in LEAVES:
            if leaf.startswith(f"root.{parent}."):
                name = leaf.rpartition(".")[2]
                lines += [f"  - name: {name}", f"    {delay}", f"    {quota_lines(cluster, leaf)}"]
    lines += ["- name: e", f"  {quota_lines(cluster, 'root.e')}"]
    return "\n".join(lines)


def preempting(cluster: Cluster) -> tuple[Scene, PreemptionRecord, dict[str, Resource]]:
    """Build a cluster in which the ask preempts; return what queues used before it did."""
    scene = Scene(configuration(cluster))
    for number, capacity in enumerate(cluster.nodes):
        scene.nodes(f"n{number}", capacity=capacity)
    for number, entry in enumerate(cluster.running):
        node = f"n{entry.node % len(cluster.nodes)}"
        if fits(scene.node(node).available, entry.resource):
            scene.runs(
                f"v{number}",
                queue=entry.leaf,
                node=node,
                resource=entry.resource,
                priority=entry.priority,
                willing=entry.willing,
                originator=entry.originator,
            )
    scene.asks("ask", queue=ASK_LEAF, resource=cluster.ask, priority=cluster.priority)
    scene.settle()
    scene.advance(11)
    for _ in range(3):
        used = {queue.path: queue.allocated for queue in scene.state.tree}
        if scene.cycle() is not CycleOutcome.PREPARED:
            break
        if len(scene.state.preemptions):
            return scene, scene.record, used
    assume(condition=False)
    raise AssertionError("assume does not return")


def is_under(path: str, queue: Queue) -> bool:
    return path == queue.path or path.startswith(f"{queue.path}.")


def total(victims: list[VictimRecord]) -> Resource:
    result = EMPTY
    for victim in victims:
        result = add(result, victim.resource)
    return result


def has_room(scene: Scene, record: PreemptionRecord, used: dict[str, Resource], gone: list[VictimRecord]) -> bool:
    """Tell whether the ask has room once some victims are gone, in the sense of docs/preemption.md.

    On the node what is available counts; a queue that had no room must get back what the ask takes.
    """
    seat = scene.seat(ASK_LEAF)
    (waiting,) = seat.application.waiting_asks()
    asked = waiting.ask.resource
    on_node = [victim for victim in gone if victim.node_id == record.node_id]
    if not fits(add(scene.node(record.node_id).available, total(on_node)), asked):
        return False
    for queue in seat.queue.above:
        back = total([victim for victim in gone if is_under(victim.queue_path, queue)])
        for name, quantity in asked.items():
            if queue.maximum is None or name not in queue.maximum:
                continue
            over = used[queue.path].get(name) - queue.maximum[name]
            if over + quantity > 0 and back.get(name) < quantity + max(0, over):
                return False
    return True


@settings(deadline=None, max_examples=EXAMPLES)
@given(cluster=CLUSTERS)
def test_the_preemptor_is_placed_once_its_victims_are_gone(cluster: Cluster) -> None:
    """A preemption never leaves its ask without the room that it was made for."""
    scene, record, _ = preempting(cluster)
    scene.confirm()
    scene.cycle()

    assert record.node_id == scene.placements.get("ask")


@settings(deadline=None, max_examples=EXAMPLES)
@given(cluster=CLUSTERS)
def test_no_victim_could_have_been_spared(cluster: Cluster) -> None:
    """All victims together make room, and all but any one of them do not."""
    scene, record, used = preempting(cluster)
    victims = list(record.victims)

    assert has_room(scene, record, used, victims)
    for victim in victims:
        assert not has_room(scene, record, used, [other for other in victims if other is not victim])


@settings(deadline=None, max_examples=EXAMPLES)
@given(cluster=CLUSTERS)
def test_no_queue_falls_below_its_guarantee_for_the_ask(cluster: Cluster) -> None:
    """A queue that loses something is not below its guarantee afterwards in any type that it lost."""
    scene, record, used = preempting(cluster)
    for queue in scene.state.tree:
        if is_under(ASK_LEAF, queue) or queue.guaranteed is None:
            continue
        lost = total([victim for victim in record.victims if is_under(victim.queue_path, queue)])
        left = subtract(used[queue.path], lost)
        for name, quantity in queue.guaranteed.items():
            assert not lost.get(name) or left.get(name) >= quantity, f"{queue} is left with {left!r}"


@settings(deadline=None, max_examples=EXAMPLES)
@given(cluster=CLUSTERS)
def test_the_ask_stays_within_the_guarantee_that_it_is_owed(cluster: Cluster) -> None:
    """Nothing goes for a queue that would use more than its guarantee with the ask."""
    scene, record, used = preempting(cluster)
    served = scene.queue(record.queue_path)
    lost = total([victim for victim in record.victims if is_under(victim.queue_path, served)])
    after = add(subtract(used[served.path], lost), cluster.ask)

    assert served.guaranteed is not None
    for name, quantity in served.guaranteed.items():
        assert after.get(name) <= quantity


@settings(deadline=None, max_examples=EXAMPLES)
@given(cluster=CLUSTERS)
def test_victims_are_of_other_leaves_and_of_no_higher_priority(cluster: Cluster) -> None:
    """Neither the ask's own leaf nor anything more important pays for it."""
    _, record, _ = preempting(cluster)
    for victim in record.victims:
        entry = cluster.running[int(victim.allocation_key[1:])]

        assert victim.queue_path != ASK_LEAF
        assert entry.priority <= cluster.priority


@settings(deadline=None, max_examples=EXAMPLES)
@given(cluster=CLUSTERS)
def test_preemption_is_one_decision(cluster: Cluster) -> None:
    """All victims are asked for in one message, one node is reserved, and the ask preempts no more."""
    scene, record, _ = preempting(cluster)
    scene.settle()
    scene.advance(60)
    scene.settle()
    (message,) = scene.preemption_messages

    assert [victim.allocation_key for victim in record.victims] == [entry.allocation_key for entry in message]
    assert ("ask",) == scene.node(record.node_id).reservations
    assert len(scene.state.preemptions) == 1
