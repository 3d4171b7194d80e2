"""What holds for every preemption for a guarantee, on small random clusters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from random import Random
from typing import Final

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.model.builders import a_resource, an_ask_submission
from support.model.preemption_scenes import Scene

from licorne.model.queues.queue import Queue
from licorne.model.resources.resource import EMPTY, Resource, add, fits, subtract
from licorne.model.scheduling.cycle import CycleOutcome
from licorne.model.state.preemption_log import PreemptionRecord, VictimRecord

LEAVES: Final = ("root.p.a", "root.p.b", "root.q.c", "root.q.d", "root.e")
PARENTS: Final = ("root.p", "root.q")
ASK_LEAF: Final = "root.p.a"
QUEUES: Final = """
    - name: p
      queues:
      - {name: a, properties: {preemption.delay: 10s}}
      - {name: b}
    - name: q
      queues: [{name: c}, {name: d}]
    - {name: e}
"""
EXAMPLES: Final = 30


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
    """The guarantees of leaves; how much more parents are guaranteed, and how far above any maximum is."""

    guaranteed: dict[str, Resource]
    parents: dict[str, Resource]
    above: dict[str, Resource]
    nodes: tuple[Resource, ...]
    running: tuple[Running, ...]
    ask: Resource
    priority: int

    def guarantee(self, path: str) -> Resource | None:
        """Return what is guaranteed to a queue: to a parent no less than to its children."""
        if path not in PARENTS:
            return self.guaranteed.get(path)
        if path not in self.parents:
            return None
        below = [value for leaf, value in self.guaranteed.items() if leaf.startswith(f"{path}.")]
        return reduce(add, below, self.parents[path])


def a_size(draw: Random, low: int, high: int) -> Resource:
    """Return a resource of both types."""
    return a_resource(memory=draw.randint(low, high), vcore=draw.randint(low, high))


def a_cluster(seed: int) -> Cluster:
    """Return a small cluster that is nearly full; the same seed gives the same one."""
    draw = Random(seed)  # noqa: S311 - nothing is secret
    guaranteed = {leaf: a_size(draw, 1, 10) for leaf in draw.sample(LEAVES[1:], draw.randint(0, 3))}
    limited = draw.choice(((), ("root.p",), ("root.p", "root.p.b"), ("root.q",), ("root.e",)))
    return Cluster(
        guaranteed={ASK_LEAF: a_size(draw, 10, 30), **guaranteed},
        parents={parent: a_size(draw, 0, 8) for parent in draw.sample(PARENTS, draw.randint(0, 2))},
        above={path: a_size(draw, 0, 12) for path in limited},
        nodes=tuple(a_size(draw, 10, 25) for _ in range(draw.randint(1, 3))),
        running=tuple(
            Running(
                leaf=draw.choice((*LEAVES, "root.p.b", "root.p.b")),
                node=draw.randint(0, 2),
                resource=a_size(draw, 1, 8),
                priority=draw.randint(-1, 0),
                willing=draw.random() < 0.7,
                originator=draw.random() < 0.2,
            )
            for _ in range(draw.randint(12, 24))
        ),
        ask=a_size(draw, 2, 9),
        priority=draw.randint(-1, 1),
    )


CLUSTERS: Final = st.integers(0, 2**32).map(a_cluster)


def a_scene(
    cluster: Cluster,
    *,
    bound: frozenset[str] = frozenset(),
    apart_seconds: int = 0,
    until_seconds: int = 0,
    runtimes: dict[str, str] | None = None,
) -> Scene:
    """Build a cluster with an ask that is old enough to preempt.

    Args:
        cluster: The cluster.
        bound: The keys of allocations that are bound to their nodes.
        apart_seconds: How long after each other the allocations begin.
        until_seconds: When the ask comes at the earliest, counted from the first of them.
        runtimes: The minimum run times of queues, which those below them inherit.
    """
    scene = Scene(QUEUES)
    for path, runtime in sorted((runtimes or {}).items()):
        for queue in scene.state.tree:
            if is_under(queue.path, scene.queue(path)):
                queue.apply_properties({**queue.properties, "preemption.min-runtime": runtime})
    for path in (*LEAVES, *PARENTS):
        guaranteed = cluster.guarantee(path)
        above = cluster.above.get(path)
        scene.queue(path).set_quota(guaranteed, None if above is None else add(guaranteed, above))
    scene.state.tree.limits_changed()
    for number, capacity in enumerate(cluster.nodes):
        scene.nodes(f"n{number}", capacity=capacity)
    for leaf in LEAVES:
        scene.submit(leaf, leaf)
    free = list(cluster.nodes)
    for number, entry in enumerate(cluster.running):
        node = entry.node % len(free)
        if fits(free[node], entry.resource):
            free[node] = subtract(free[node], entry.resource)
            submission = an_ask_submission(
                f"v{number}",
                entry.leaf,
                required_node=f"n{node}" if f"v{number}" in bound else "",
                resource=entry.resource,
                priority=entry.priority,
                created_at_seconds=number,
                node_id=f"n{node}",
                originator=entry.originator,
                willing=entry.willing,
            )
            scene.partition.update_allocations([submission], [])
        scene.advance(apart_seconds)
        until_seconds -= apart_seconds
    scene.advance(max(0, until_seconds))
    scene.asks("ask", queue=ASK_LEAF, resource=cluster.ask, priority=cluster.priority)
    scene.run_until_idle()
    scene.advance(11)
    return scene


def preempting(cluster: Cluster) -> tuple[Scene, PreemptionRecord, dict[str, Resource]]:
    """Build a cluster in which the ask preempts; return what queues used before it did."""
    scene = a_scene(cluster)
    for _ in range(3):
        used = {queue.path: queue.allocated for queue in scene.state.tree}
        outcome = scene.cycle()
        if len(scene.state.preemptions):
            return scene, scene.record, used
        assume(outcome is CycleOutcome.PREPARED)
    assume(condition=False)
    raise AssertionError("assume does not return")


def is_under(path: str, queue: Queue) -> bool:
    return path == queue.path or path.startswith(f"{queue.path}.")


def total(victims: list[VictimRecord]) -> Resource:
    result = EMPTY
    for victim in victims:
        result = add(result, victim.resource)
    return result


def has_room(
    scene: Scene, record: PreemptionRecord, used: dict[str, Resource], gone: list[VictimRecord]
) -> bool:
    """Return whether the ask has room once some victims are gone, in the sense of docs/preemption.md.

    On the node what is available counts, and so it does for the root, whose room is the nodes'. Another queue
    that had no room must get back what the ask takes.
    """
    entry = scene.entry(ASK_LEAF)
    (waiting,) = entry.application.asks.waiting()
    asked = waiting.ask.resource
    on_node = [victim for victim in gone if victim.node_id == record.node_id]
    if not fits(add(scene.node(record.node_id).available, total(on_node)), asked):
        return False
    for queue in entry.queue.above:
        back = total([victim for victim in gone if is_under(victim.queue_path, queue)])
        for name, quantity in asked.items():
            if queue.maximum is None or name not in queue.maximum:
                continue
            over = used[queue.path].get(name) - queue.maximum[name]
            held = over if queue.parent is None else max(0, over)
            if over + quantity > 0 and back.get(name) < quantity + held:
                return False
    return True


@settings(max_examples=EXAMPLES)
@given(cluster=CLUSTERS)
def test_the_preemptor_is_placed_once_its_victims_are_gone(cluster: Cluster) -> None:
    """A preemption never leaves its ask without the room that it was made for."""
    scene, record, _ = preempting(cluster)
    scene.confirm()
    scene.cycle()

    assert record.node_id == scene.placements.get("ask")


@settings(max_examples=EXAMPLES)
@given(cluster=CLUSTERS)
def test_no_victim_could_have_been_spared(cluster: Cluster) -> None:
    """All victims together make room, and all but any one of them do not."""
    scene, record, used = preempting(cluster)
    victims = list(record.victims)

    assert has_room(scene, record, used, victims)
    for victim in victims:
        assert not has_room(scene, record, used, [other for other in victims if other is not victim])


@settings(max_examples=EXAMPLES)
@given(cluster=CLUSTERS)
def test_no_queue_falls_from_above_its_guarantee_to_below_it(cluster: Cluster) -> None:
    """Whatever goes together for one ask: a type of which a queue had more than its guarantee stays there."""
    scene, record, used = preempting(cluster)
    for queue in scene.state.tree:
        if is_under(ASK_LEAF, queue) or queue.guaranteed is None:
            continue
        lost = total([victim for victim in record.victims if is_under(victim.queue_path, queue)])
        left = subtract(used[queue.path], lost)
        for name, quantity in queue.guaranteed.items():
            was_above = used[queue.path].get(name) > quantity
            assert not was_above or left.get(name) >= quantity, f"{queue} is left with {left!r}"


@settings(max_examples=EXAMPLES)
@given(cluster=CLUSTERS)
def test_a_queue_that_loses_something_had_too_much_of_a_type(cluster: Cluster) -> None:
    """Each queue with a guarantee that a victim is in, unless the ask is in it too, had more than that."""
    scene, record, used = preempting(cluster)
    for victim in record.victims:
        above = [
            {name for name, quantity in queue.guaranteed.items() if used[queue.path].get(name) > quantity}
            for queue in scene.queue(victim.queue_path).above
            if queue.guaranteed is not None and not is_under(ASK_LEAF, queue)
        ]

        assert all(above)
        assert not above or set.intersection(*above)


@settings(max_examples=EXAMPLES)
@given(cluster=CLUSTERS)
def test_the_ask_stays_within_its_guarantee(cluster: Cluster) -> None:
    """Nothing goes for a queue that would use more than its guarantee with the ask."""
    scene, record, used = preempting(cluster)
    served = scene.queue(record.queue_path)
    lost = total([victim for victim in record.victims if is_under(victim.queue_path, served)])
    after = add(subtract(used[served.path], lost), cluster.ask)

    assert served.guaranteed is not None
    for name, quantity in served.guaranteed.items():
        assert after.get(name) <= quantity


@settings(max_examples=EXAMPLES)
@given(cluster=CLUSTERS)
def test_victims_are_of_other_leaves_and_of_no_higher_priority(cluster: Cluster) -> None:
    """Neither the ask's own leaf nor anything more important pays for it."""
    _, record, _ = preempting(cluster)
    for victim in record.victims:
        entry = cluster.running[int(victim.allocation_key[1:])]

        assert victim.queue_path != ASK_LEAF
        assert entry.priority <= cluster.priority


def decided(cluster: Cluster, seconds: int, settings_of: dict[str, str], bound: frozenset[str]) -> list[str]:
    """Return who is preempted in a cluster whose allocations start a second after each other.

    Args:
        cluster: The cluster.
        seconds: When the ask comes, counted from the first allocation.
        settings_of: The minimum run times by queue.
        bound: The keys of allocations that are bound to their nodes, so that they are no victims.
    """
    scene = a_scene(cluster, bound=bound, apart_seconds=1, until_seconds=seconds, runtimes=settings_of)
    for _ in range(3):
        scene.cycle()
    return scene.preempted


def protecting(leaf: str, runtimes: dict[str, str]) -> int:
    """Return for how many seconds an allocation is protected from the ask, by another reading of the rule."""
    team = leaf.rpartition(".")[0]
    if leaf == ASK_LEAF or team == ASK_LEAF.rpartition(".")[0]:
        own = runtimes.get(leaf, runtimes.get(team, "0s"))
    else:
        own = runtimes.get(leaf if team == "root" else team, "0s")
    return int(own[:-1])


@settings(max_examples=4 * EXAMPLES)
@given(cluster=CLUSTERS, seconds=st.integers(10, 40), data=st.data())
def test_protection_decides_as_if_what_it_protects_could_never_end(
    cluster: Cluster, seconds: int, data: st.DataObject
) -> None:
    """The same cluster, with those that are too young bound to their nodes: the victims are the same."""
    paths = data.draw(st.sets(st.sampled_from([*LEAVES, *PARENTS]), min_size=1))
    runtimes = {path: f"{data.draw(st.integers(0, 40))}s" for path in sorted(paths)}
    young = frozenset(
        f"v{number}"
        for number, entry in enumerate(cluster.running)
        if max(seconds, len(cluster.running)) + 11 - number < protecting(entry.leaf, runtimes)
    )

    assert decided(cluster, seconds, {}, young) == decided(cluster, seconds, runtimes, frozenset())


@settings(max_examples=EXAMPLES)
@given(cluster=CLUSTERS)
def test_preemption_is_one_decision(cluster: Cluster) -> None:
    """All victims are asked for in one message, one node is reserved, and the ask preempts no more."""
    scene, record, _ = preempting(cluster)
    scene.run_until_idle()
    scene.wait(60)
    (message,) = scene.preemption_messages

    assert [victim.allocation_key for victim in record.victims] == [entry.allocation_key for entry in message]
    assert ("ask",) == scene.node(record.node_id).reservations
    assert len(scene.state.preemptions) == 1
