"""Policies of a program decide: the order of nodes, that of applications, and when applications may start."""

from __future__ import annotations

from typing import Any

import pytest
from support.proxy.listening import Listener
from support.proxy.policy_clusters import GPU, HOUR, MIDNIGHT, Cluster, quantities, text

from licorne import LicorneError, RequestError, Scheduler, policies, si
from licorne.model.applications.effects import ApplicationState
from licorne.model.scheduling.cycle import ConcurrentOutcome
from licorne.proxy.core.scheduler.engine_names import EngineName

# ------------------------------------------------------------------------------------- the three examples


class GpuPack:
    """Nodes without GPUs first, then the fewest free GPUs."""

    def node_key(self, node: policies.NodeView) -> float:
        free = node.available.get("vcore") / max(node.capacity.get("vcore"), 1)
        return 10 + node.available.get(GPU) + free if node.capacity.get(GPU) else free


class ShortestFirst:
    """The shortest walltime first, with linear ageing: no clock is needed for it."""

    depends_on = frozenset({"submission"})

    def application_key(self, application: policies.ApplicationView) -> float:
        return (application.walltime_ns or 24 * HOUR) + 0.02 * application.submitted_at_ns


class NightOnly:
    """What is in the queue `a` starts between 22:00 and 6:00."""

    def may_start(self, application: policies.ApplicationView, now_ns: int) -> policies.Wait | None:
        since = now_ns % (24 * HOUR)
        if not application.queue.endswith(".a") or since < 6 * HOUR or since >= 22 * HOUR:
            return None
        return policies.Wait("starts after 22:00", now_ns - since + 22 * HOUR)


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_nodes_are_tried_in_the_order_of_a_policy(engine: EngineName) -> None:
    """Those without GPUs first, and of the others the fullest: whole nodes stay free."""
    cluster = Cluster(
        {"gpu-pack": GpuPack}, text(partition="nodesortpolicy: {type: policy/gpu-pack}"), engine=engine
    )
    cluster.nodes(g1={"vcore": 8, "gpu": 8}, g2={"vcore": 8, "gpu": 8}, plain={"vcore": 2})
    cluster.application("app")
    cluster.ask("small", "app", 2, vcore=1)
    cluster.ask("gpus", "app", 3, vcore=1, gpu=2)
    cluster.run()

    found = cluster.scheduler.explain("app")
    assert found is not None
    assert [ask.node_id for ask in found.asks] == ["plain", "plain", "g1", "g1", "g1"]


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_applications_are_served_in_the_order_of_a_policy(engine: EngineName) -> None:
    """And an explanation names it."""
    cluster = Cluster({"sjf": ShortestFirst}, text(root="application.sort.policy: policy/sjf"), engine=engine)
    for name, walltime in {"day": "1d", "hour": "1h", "minute": "1m", "none": ""}.items():
        cluster.application(name, **({"walltime": walltime} if walltime else {}))
        cluster.ask(name, name, vcore=1)
    place = cluster.scheduler.explain("hour").places[0]
    cluster.nodes(n1={"vcore": 3})

    assert cluster.run() == ["minute", "hour", "day"]
    assert (place.number, place.ahead) == (2, ("minute",))
    assert place.order == (
        f"the smaller key of policy sjf, then the earlier submission: hour has {HOUR + 0.02 * MIDNIGHT}; "
        f"minute has {HOUR / 60 + 0.02 * MIDNIGHT}"
    )


@pytest.mark.parametrize("backfill", ["", "backfill.reservations: '1'", "backfill.reservations: all"])
@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_applications_start_when_a_policy_lets_them(engine: EngineName, backfill: str) -> None:
    """At the second that it has named; others pass them, and an explanation has its words."""
    configuration = text(partition="policies: {admission: [night]}", root=backfill)
    cluster = Cluster({"night": NightOnly}, configuration, engine=engine)
    cluster.scheduler.advance_to(MIDNIGHT + 7 * HOUR)
    cluster.nodes(n1={"vcore": 4})
    for name in "ab":
        cluster.application(f"{name}1", f"root.{name}", walltime="1h")
        cluster.ask(name, f"{name}1", vcore=1)

    assert cluster.run() == ["b"]
    (why,) = cluster.blocked("a1")
    what, change = why.split("; ")
    assert what == "application a1: a policy holds it: night: starts after 22:00 (until in 15h)"
    assert change == "nothing: the policy is asked again in 15h"
    cluster.scheduler.advance_to(MIDNIGHT + 22 * HOUR - 1)
    assert cluster.run() == []
    cluster.scheduler.advance_to(MIDNIGHT + 22 * HOUR)
    cluster.run()
    assert cluster.scheduler.explain("a1").state is ApplicationState.RUNNING
    assert not cluster.failures


@pytest.mark.parametrize("backfill", ["", "backfill.reservations: '1'"])
@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_an_application_that_loses_its_asks_has_not_started(engine: EngineName, backfill: str) -> None:
    """It completes without them, and with another one it would run: a policy holds it still."""
    configuration = text(partition="policies: {admission: [night]}", root=backfill)
    cluster = Cluster({"night": NightOnly}, configuration, engine=engine)
    cluster.scheduler.advance_to(MIDNIGHT + 7 * HOUR)
    cluster.nodes(n1={"vcore": 4})
    cluster.application("app", walltime="1h")
    cluster.ask("first", "app", vcore=1)
    assert cluster.run() == []
    gone = {
        "allocationsToRelease": [{"applicationID": "app", "allocationKey": "first", "terminationType": 1}]
    }
    cluster.scheduler.update_allocation(si.AllocationRequest(rmID="rm", releases=gone))
    cluster.run()
    cluster.ask("second", "app", vcore=1)

    assert cluster.run() == []
    assert cluster.blocked("app")[0].startswith(
        "application app: a policy holds it: night: starts after 22:00"
    )
    cluster.scheduler.advance_to(MIDNIGHT + 22 * HOUR)
    cluster.run()
    assert "second" in " ".join(cluster.listener.all("placed "))


def test_threads_that_share_a_partition_start_nothing_that_a_policy_may_hold() -> None:
    """To start it takes a cycle that has the partition alone."""
    configuration = text(partition="policies: {admission: [night]}")
    cluster = Cluster({"night": NightOnly}, configuration, engine="threads")
    cluster.scheduler.advance_to(MIDNIGHT + 7 * HOUR)
    cluster.nodes(n1={"vcore": 4})
    cluster.application("app")
    cluster.ask("key", "app", vcore=1)
    (partition,) = cluster.scheduler._cluster.partitions()

    assert partition.place_concurrently() is ConcurrentOutcome.ALONE
    assert cluster.run() == []


@pytest.mark.parametrize("call", ["validate", "run_until_idle", "snapshot", "next_asks", "stop"])
@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_a_policy_may_not_call_the_scheduler(engine: EngineName, call: str) -> None:
    """The partition waits for the answer, and the call would wait for the partition."""

    class Calling:
        def node_key(self, _: policies.NodeView) -> float:
            for scheduler in schedulers:
                getattr(scheduler, call)()
            return 0.0

    schedulers: list[Scheduler] = []
    cluster = Cluster({"own": Calling}, text(partition="nodesortpolicy: {type: policy/own}"), engine=engine)
    cluster.nodes(n1={"vcore": 4})
    cluster.application("app")
    cluster.run()
    schedulers.append(cluster.scheduler)
    cluster.ask("key", "app", vcore=1)

    assert cluster.run() == ["key"]
    assert cluster.failures
    assert {type(each.error) for each in cluster.failures} == {RequestError}
    cluster.scheduler.validate()


# ------------------------------------------------------------------------------------------- when it asks


def test_a_fixed_key_is_asked_for_once() -> None:
    asked: list[str] = []

    class Counted(ShortestFirst):
        def application_key(self, application: policies.ApplicationView) -> float:
            asked.append(application.application_id)
            return super().application_key(application)

    cluster = Cluster({"sjf": Counted}, text(root="application.sort.policy: policy/sjf"))
    cluster.nodes(n1={"vcore": 9})
    for name in ("one", "two"):
        cluster.application(name)
        cluster.ask(name, name, 4, vcore=1)

    assert len(cluster.run()) == 8
    assert sorted(asked) == ["one", "two"]


def test_a_key_of_what_changes_is_asked_for_at_each_change() -> None:
    """The one that has least goes first."""

    class Least:
        def application_key(self, application: policies.ApplicationView) -> float:
            return application.allocated.get("vcore")

    cluster = Cluster({"least": Least}, text(root="application.sort.policy: policy/least"))
    cluster.nodes(n1={"vcore": 9})
    for name in ("a", "b"):
        cluster.application(name)
        cluster.ask(name, name, 2, vcore=1)

    assert cluster.run() == ["a", "b", "a1", "b1"]


def test_without_a_time_it_is_asked_after_each_change() -> None:
    """And not while nothing changes."""
    asked: list[int] = []

    class OneAtOnce:
        def may_start(self, _: policies.ApplicationView, now_ns: int) -> policies.Wait | None:
            asked.append(now_ns)
            return policies.Wait("the gate is shut") if shut else None

    shut = True
    cluster = Cluster({"gate": OneAtOnce}, text(partition="policies: {admission: [gate]}"))
    cluster.nodes(n1={"vcore": 4})
    cluster.application("app")
    cluster.ask("key", "app", vcore=1)
    assert cluster.run() == []
    (why,) = cluster.blocked("app")
    what, change = why.split("; ")
    assert what == "application app: a policy holds it: gate: the gate is shut"
    assert change == "the policy must let it start: it is asked again after each change"
    before = len(asked)
    assert cluster.run() == []
    assert len(asked) == before
    shut = False
    cluster.nodes(n2={"vcore": 4})
    assert cluster.run() == ["key"]


def test_what_depends_on_outside_is_asked_when_the_program_says_so() -> None:
    """Prices of nodes, and a gate for starts."""
    prices = {"n1": 1.0, "n2": 2.0}

    class Cheapest:
        depends_on = frozenset({"outside"})

        def node_key(self, node: policies.NodeView) -> float:
            return prices[node.node_id]

        def may_start(self, _: policies.ApplicationView, __: int) -> policies.Wait | None:
            return None if is_open else policies.Wait("shut", 2 * MIDNIGHT)

    is_open = False
    partition = "nodesortpolicy: {type: policy/cheap}, policies: {admission: [cheap]}".replace(
        ", p", "\n    p"
    )
    cluster = Cluster({"cheap": Cheapest}, text(partition=partition))
    cluster.nodes(n1={"vcore": 4}, n2={"vcore": 4})
    cluster.application("app")
    cluster.ask("key", "app", vcore=1)
    assert cluster.run() == []
    prices["n1"], is_open = 3.0, True
    assert cluster.run() == []
    cluster.scheduler.reconsider("rm")
    assert cluster.run() == ["key"]
    assert cluster.scheduler.explain("app").asks[0].node_id == "n2"


def test_what_depends_on_time_is_asked_anew_from_time_to_time() -> None:
    """In the afternoon the order of two applications is another one."""

    class ByHour:
        depends_on = frozenset({"time"})
        every_ns = HOUR

        def application_key(self, application: policies.ApplicationView) -> str:
            name = application.application_id
            return name if cluster.scheduler.now_ns() < MIDNIGHT + 12 * HOUR else name[::-1]

    cluster = Cluster({"hours": ByHour}, text(root="application.sort.policy: policy/hours"))
    for name in ("a-2", "b-1"):
        cluster.application(name)
        cluster.ask(name, name, 2, vcore=1)
    cluster.nodes(n1={"vcore": 1})
    assert cluster.run() == ["a-2"]
    cluster.scheduler.advance_to(MIDNIGHT + 13 * HOUR)
    cluster.nodes(n2={"vcore": 1})
    assert cluster.run() == ["b-1"]


# ---------------------------------------------------------------------------------------- what goes wrong


class Broken:
    """Raises for some, and answers others with nonsense."""

    def _answer(self, name: str) -> Any:
        number = sum(map(ord, name)) % 4
        if number == 0:
            raise RuntimeError("a bug")
        return [None, float("nan"), "text", 1.5][number]

    def node_key(self, node: policies.NodeView) -> Any:
        return self._answer(node.node_id)

    def application_key(self, application: policies.ApplicationView) -> Any:
        return self._answer(application.application_id)

    def may_start(self, application: policies.ApplicationView, _: int) -> Any:
        return self._answer(application.application_id)


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_a_broken_order_loses_nothing(engine: EngineName) -> None:
    """What it fails for goes last, and each failure is reported with what it was asked about."""
    configuration = text(
        root="application.sort.policy: policy/broken", partition="nodesortpolicy: {type: policy/broken}"
    )
    cluster = Cluster({"broken": Broken}, configuration, engine=engine)
    cluster.nodes(**{f"n{number}": {"vcore": 2} for number in range(8)})
    for number in range(8):
        cluster.application(f"app-{number}")
        cluster.ask(f"key-{number}-", f"app-{number}", 2, vcore=1)

    assert len(cluster.run()) == 16
    assert {each.rm_id for each in cluster.failures} == {"rm"}
    assert {each.callback for each in cluster.failures} == {
        "policy broken.node_key",
        "policy broken.application_key",
    }
    assert all(each.subject for each in cluster.failures)


def test_a_start_that_cannot_be_judged_is_tried_each_second() -> None:
    cluster = Cluster({"broken": Broken}, text(partition="policies: {admission: [broken]}"))
    cluster.nodes(n1={"vcore": 2})
    cluster.application("app-0")
    cluster.ask("key", "app-0", vcore=1)
    cluster.run()

    assert cluster.scheduler.next_deadline_ns() == MIDNIGHT + 1_000_000_000
    assert "it has failed: " in cluster.blocked("app-0")[0]


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        (
            text(partition="nodesortpolicy: {type: policy/sjff}"),
            "4:28: partitions[0].nodesortpolicy.type: no policy 'sjff'",
        ),
        (text(partition="nodesortpolicy: {type: policy/sjf}"), "the policy 'sjf' has no method node_key"),
        (
            text(root="application.sort.policy: policy/night"),
            "no policy 'night' was given to the scheduler; given: sjf",
        ),
        (text(partition="policies: {admission: [sjf]}"), "the policy 'sjf' has no method may_start"),
        (
            text(
                "[{name: a, parent: true, childtemplate: {properties: {application.sort.policy: policy/x}}}]"
            ),
            "no policy 'x' was given",
        ),
    ],
)
def test_what_was_not_given_is_refused(configuration: str, message: str) -> None:
    """At a registration and at a reload, with its place; nothing changes."""
    cluster = Cluster({"sjf": ShortestFirst}, text(root="application.sort.policy: policy/sjf"))

    with pytest.raises(RequestError) as refused:
        cluster.scheduler.register("other", Listener(), configuration=configuration)
    assert message in str(refused.value)
    with pytest.raises(RequestError) as refused:
        cluster.scheduler.update_configuration(si.UpdateConfigurationRequest(rmID="rm", config=configuration))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "given", [5, [ShortestFirst], {"sjf": None}, {"SJF": ShortestFirst}, {"sjf": ShortestFirst()}]
)
def test_what_is_no_policy_is_refused_by_the_scheduler(given: Any) -> None:
    with pytest.raises(LicorneError):
        Scheduler(engine="direct", policies=given)


def test_views_cannot_be_changed() -> None:
    """What tries to goes last, and is reported."""

    class Vandal:
        def application_key(self, application: policies.ApplicationView) -> float:
            application.tags["walltime"] = "1s"  # type: ignore[index]
            return 1

        def node_key(self, node: policies.NodeView) -> float:
            node.attributes["rack"] = "r1"  # type: ignore[index]
            return 1

    configuration = text(
        root="application.sort.policy: policy/vandal", partition="nodesortpolicy: {type: policy/vandal}"
    )
    cluster = Cluster({"vandal": Vandal}, configuration)
    cluster.nodes(n1={"vcore": 2})
    cluster.application("app", walltime="1h")
    cluster.ask("key", "app", vcore=1)

    assert cluster.run() == ["key"]
    assert {type(each.error) for each in cluster.failures} == {TypeError}


# ------------------------------------------------------------------------------------- reloads and gangs


def test_a_reload_goes_to_a_policy_and_back() -> None:
    """While asks wait and rest."""
    plain, ordered = text(), text(root="application.sort.policy: policy/sjf")
    cluster = Cluster({"sjf": ShortestFirst}, plain)
    for name, walltime in {"day": "1d", "hour": "1h", "minute": "1m"}.items():
        cluster.application(name, walltime=walltime)
        cluster.ask(name, name, 2, vcore=1)
    cluster.nodes(n1={"vcore": 1})
    assert cluster.run() == ["day"]
    cluster.scheduler.update_configuration(si.UpdateConfigurationRequest(rmID="rm", config=ordered))
    cluster.nodes(n2={"vcore": 1})
    assert cluster.run() == ["minute"]
    cluster.scheduler.update_configuration(si.UpdateConfigurationRequest(rmID="rm", config=plain))
    cluster.nodes(n3={"vcore": 1})
    assert cluster.run() == ["day1"]


def test_each_partition_has_an_object() -> None:
    """One is made to look at, and one for each partition."""
    made: list[object] = []

    class Counted(ShortestFirst):
        def __init__(self) -> None:
            made.append(self)

    two = text().replace("partitions:", "partitions:\n  - name: other\n    queues: [{name: root}]")
    Cluster({"sjf": Counted}, two)

    assert len(made) == 3


@pytest.mark.parametrize(("placing", "is_taken"), [("whole", True), ("stepwise", False)])
def test_gangs_are_taken_that_are_placed_whole(placing: str, is_taken: bool) -> None:  # noqa: FBT001
    """The members of others would wait between those of applications that the policy puts before them."""
    configuration = text(root=f"application.sort.policy: policy/sjf, gang.placing: {placing}")
    cluster = Cluster({"sjf": ShortestFirst}, configuration)
    gang = {
        "applicationID": "gang",
        "queueName": "root.a",
        "ugi": {"user": "ada"},
        "placeholderAsk": quantities({"vcore": 2}),
    }
    cluster.scheduler.update_application(si.ApplicationRequest(rmID="rm", new=[gang]))
    cluster.scheduler.run_until_idle()
    cluster.scheduler.deliver()

    assert ("accepted gang" in cluster.listener.heard) is is_taken
    if not is_taken:
        assert "unsupported sort type policy/sjf: it could put others between" in cluster.listener.heard[0]


# ------------------------------------------------------------------------------------------- sibling queues


class Credit:
    """The queue with the most credit less what it uses."""

    def queue_key(self, queue: policies.SiblingView) -> int:
        return queue.allocated.get("vcore") - int(queue.properties["credit"])


CREDITS = "[{name: a, properties: {credit: '1'}}, {name: b, properties: {credit: '3'}}]"


@pytest.mark.parametrize("backfill", ["", ", backfill.reservations: '1'"])
@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_queues_are_served_in_the_order_of_a_policy(engine: EngineName, backfill: str) -> None:
    """Whatever their priorities, and an explanation names it."""
    configuration = text(CREDITS, root=f"queue.sort.policy: policy/credit{backfill}")
    cluster = Cluster({"credit": Credit}, configuration, engine=engine)
    for name in "ab":
        cluster.application(name, f"root.{name}", walltime="1h")
        cluster.ask(name, name, 4, vcore=1)
    place = cluster.scheduler.explain("a").places[1]
    cluster.nodes(n1={"vcore": 6})

    assert cluster.run() == ["b", "b1", "a", "b2", "a1", "b3"]
    assert place.order == ("the smaller key of policy credit, then the name: root.a has -1; root.b has -3")
    assert (place.number, place.position is not None) == (2, True)


def test_a_queue_that_a_policy_fails_for_goes_last() -> None:
    """Nothing is lost."""
    configuration = text(CREDITS.replace("'3'", "much"), root="queue.sort.policy: policy/credit")
    cluster = Cluster({"credit": Credit}, configuration)
    for name in "ba":
        cluster.application(name, f"root.{name}")
        cluster.ask(name, name, 2, vcore=1)
    cluster.nodes(n1={"vcore": 3})

    assert cluster.run() == ["a", "a1", "b"]
    assert {(each.callback, each.subject) for each in cluster.failures} == {
        ("policy credit.queue_key", "root.b")
    }


def test_queues_are_ordered_anew_when_the_program_says_so_and_after_a_reload() -> None:
    """What a key depends on outside is asked for again."""

    class Named:
        depends_on = frozenset({"outside"})

        def queue_key(self, queue: policies.SiblingView) -> int:
            return first.index(queue.path)

    first = ["root.b", "root.a"]
    configuration = text(root="queue.sort.policy: policy/named")
    cluster = Cluster({"named": Named}, configuration)
    for name in "ab":
        cluster.application(name, f"root.{name}")
        cluster.ask(name, name, 9, vcore=1)
    cluster.nodes(n1={"vcore": 1})
    assert cluster.run() == ["b"]
    first.reverse()
    cluster.scheduler.reconsider("rm")
    cluster.nodes(n2={"vcore": 1})
    assert cluster.run() == ["a"]
    cluster.scheduler.update_configuration(si.UpdateConfigurationRequest(rmID="rm", config=text()))
    cluster.nodes(n3={"vcore": 2})
    assert cluster.run() == ["a1", "b1"]
