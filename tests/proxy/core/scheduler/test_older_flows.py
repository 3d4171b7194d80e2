"""The flows of the older generation of `si.v1`, message by message."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

import pytest
from support.proxy.deferring import indexes_for, refusals_of
from support.proxy.wire_manager import WireManager, amount

from licorne import RequestError
from licorne.proxy.si import si_pb2 as si

if TYPE_CHECKING:
    from licorne.proxy.core.scheduler.engine_names import EngineName

ENGINES: Final[tuple[EngineName, ...]] = ("direct", "actors")

pytestmark = pytest.mark.parametrize("engine", ENGINES)

SECOND_NS: Final = 1_000_000_000


def a_node(name: str = "n1", vcore: int = 10, **more: object) -> dict[str, Any]:
    return {"nodeID": name, "action": "CREATE", "schedulableResource": amount(vcore), **more}


def an_ask(key: str, count: int = 1, vcore: int = 2, **more: object) -> dict[str, Any]:
    return {
        "allocationKey": key,
        "applicationID": "app",
        "resourceAsk": amount(vcore),
        "maxAllocations": count,
        **more,
    }


def an_existing(key: str, uuid: str, vcore: int = 2, **more: object) -> dict[str, Any]:
    names = {"allocationKey": key, "UUID": uuid, "applicationID": "app"}
    return {**names, "resourcePerAlloc": amount(vcore), **more}


def started(
    engine: EngineName, *nodes: dict[str, Any], refused: Collection[str] = (), **application: Any
) -> WireManager:
    """Return a resource manager with a node and an application; what it heard of them is forgotten."""
    rm = WireManager(engine, refused=refused)
    rm.say_nodes(*(nodes or (a_node(),)))
    rm.say_applications("app", **application)
    rm.forget()
    return rm


@pytest.fixture
def rm(engine: EngineName) -> Iterator[WireManager]:
    """Give a resource manager with a node of ten vcores and an application, of which it has forgotten."""
    with started(engine) as rm:
        yield rm


# ------------------------------------------------------------------------------------ registration


def test_a_resource_manager_registers_and_reports_nodes_and_applications(engine: EngineName) -> None:
    """Each is accepted or rejected; a node that exists may not be created again."""
    with WireManager(engine) as rm:
        rm.say_nodes(a_node(), a_node("n2"))
        rm.say_nodes(a_node())
        rm.say_applications("app")
        rm.say_applications("app")

        accepted, rejected = rm.nodes
        assert ["n1", "n2"] == [entry.nodeID for entry in accepted.accepted]
        assert ["n1"] == [entry.nodeID for entry in rejected.rejected]
        assert [("accepted", "app"), ("rejected", "app")] == [
            (field, entry.applicationID)
            for told in rm.applications
            for field, entries in (("accepted", told.accepted), ("rejected", told.rejected))
            for entry in entries
        ]


# --------------------------------------------------------------------------- asks and their allocations


K, K2, K3, K4 = ("k", "k"), ("k", "k#allocation-2"), ("k", "k#allocation-3"), ("k", "k#allocation-4")
"""The allocations of the ask `k`: its key, and the UUID of each, which the scheduler gives."""


def asks(count: int, vcore: int = 2) -> dict[str, Any]:
    return {"asks": [an_ask("k", count, vcore)]}


def release(*uuids: str) -> dict[str, Any]:
    stopped = {"applicationID": "app", "terminationType": "STOPPED_BY_RM"}
    return {"releases": {"allocationsToRelease": [{**stopped, "UUID": uuid} for uuid in uuids]}}


@pytest.mark.parametrize(
    ("said", "placed", "released", "used"),
    [
        pytest.param([asks(3)], [K, K2, K3], [], 6, id="several allocations have the key of their ask"),
        pytest.param(
            [asks(1), asks(3), asks(1), asks(3)],
            [K, K2, K3],
            [],
            6,
            id="the same key updates the ask: more allocations are placed, fewer end nothing that runs",
        ),
        pytest.param(
            [asks(4), release("k#allocation-2", "k")],
            [K, K2, K3, K4],
            [K2, K],
            4,
            id="allocations are released by their UUIDs, which the scheduler sends back with the key",
        ),
        pytest.param(
            [{"allocations": [an_existing("k", "u", nodeID="n1")]}, release("u")],
            [("k", "u")],
            [("k", "u")],
            0,
            id="an existing allocation may be reported by itself, with its UUID",
        ),
    ],
)
def test_allocations_are_known_by_key_and_uuid(
    rm: WireManager,
    said: list[dict[str, Any]],
    placed: list[tuple[str, str]],
    released: list[tuple[str, str]],
    used: int,
) -> None:
    """What runs counts on its node, in its application and in the queues."""
    for body in said:
        rm.say_allocations(**body)

    assert placed == rm.placed
    assert [(*names, "STOPPED_BY_RM") for names in released] == rm.released
    sums = (rm.node().get("allocated"), rm.application()["usedResource"], rm.queue().get("allocatedResource"))
    assert [used] * 3 == [(each or {}).get("vcore", 0) for each in sums]


def test_what_waits_is_released_as_an_ask(rm: WireManager) -> None:
    """What runs of it goes on; there is no answer."""
    rm.say_allocations(asks=[an_ask("k", 3, vcore=4), an_ask("l", 2, vcore=9)])
    rm.forget()

    rm.release(asks=[{"allocationKey": "k"}])
    one = rm.application()["pendingResource"]
    rm.release(asks=[{}])

    assert ({"vcore": 18}, None, []) == (one, rm.application().get("pendingResource"), rm.allocations)
    assert {"vcore": 8} == rm.node()["allocated"]


def test_allocations_and_asks_are_released_in_one_message(rm: WireManager) -> None:
    """Without a name all allocations of the application, then the asks that are named."""
    rm.say_allocations(asks=[an_ask("k", 3, vcore=4), an_ask("l", vcore=9)])
    rm.forget()

    rm.release({}, asks=[{"allocationKey": "k"}])

    assert [("k", "k"), ("k", "k#allocation-2")] == [(key, uuid) for key, uuid, _ in rm.released]
    assert [("l", "l")] == rm.placed


def test_an_ask_that_cannot_be_is_rejected(rm: WireManager) -> None:
    """With its key, once; the others of the message are placed."""
    rm.say_allocations(
        asks=[
            an_ask("unknown", 2, applicationID="no"),
            an_ask("negative", -2),
            an_ask("huge", 2_000_000_000),
            an_ask("k", 2),
        ]
    )

    assert [
        ("unknown", "failed to find application no"),
        ("negative", "ask negative has maxAllocations -2: it may be from 1 to 10000, and 0 means 1"),
        ("huge", "ask huge has maxAllocations 2000000000: it may be from 1 to 10000, and 0 means 1"),
    ] == rm.rejected
    assert [("k", "k"), ("k", "k#allocation-2")] == rm.placed


def test_an_allocation_expires_and_is_confirmed(rm: WireManager) -> None:
    """Its time begins when it is placed; the resource manager sends the release back."""
    rm.say_allocations(asks=[an_ask("k", 2, executionTimeoutMilliSeconds=5000)])
    rm.scheduler.advance_to(rm.scheduler.now_ns() + 5 * SECOND_NS)
    rm.confirm()

    assert [("k", "k", "TIMEOUT"), ("k", "k#allocation-2", "TIMEOUT")] == rm.released
    assert "allocated" not in rm.node()


def test_asks_that_are_given_up_are_released_as_asks(engine: EngineName) -> None:
    """A gang whose time is over: what runs is to be ended, what waits is named once."""
    with started(engine, placeholderAsk=amount(20), executionTimeoutMilliSeconds=5000) as rm:
        placeholders = {"placeholder": True, "taskGroupName": "tasks"}
        rm.say_allocations(asks=[an_ask("p", 5, vcore=4, **placeholders)])

        rm.scheduler.advance_to(rm.scheduler.now_ns() + 5 * SECOND_NS)

        assert [("p", "p", "TIMEOUT"), ("p", "p#allocation-2", "TIMEOUT")] == rm.released
        assert ["p"] == rm.given_up


def test_an_application_is_removed_with_all_it_has(rm: WireManager) -> None:
    """Each allocation is reported by its UUID."""
    rm.say_allocations(asks=[an_ask("k", 6)])
    rm.forget()

    rm.say_applications(removed=["app"])

    assert [("k", uuid, "STOPPED_BY_RM") for uuid in sorted(f"k#allocation-{n}" for n in range(2, 6))] == [
        entry for entry in sorted(rm.released) if entry[1] != "k"
    ]
    assert "allocated" not in rm.node()


def test_the_allocations_of_a_removed_node_are_reported_by_uuid(engine: EngineName) -> None:
    """Those on other nodes stay."""
    with started(engine, a_node("n1", 4), a_node("n2", 4)) as rm:
        rm.say_allocations(asks=[an_ask("k", 2, vcore=4)])
        rm.forget()

        rm.say_nodes({"nodeID": "n2", "action": "DECOMISSION"})

        ((key, uuid, why),) = rm.released
        assert ("k", "STOPPED_BY_RM", True) == (key, why, uuid in {"k", "k#allocation-2"})


# ------------------------------------------------------------------------------------- questions


@pytest.fixture(params=["at once", "later"])
def _answered(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the RM answer its predicates at once, or later."""
    if request.param == "later":  # A class of its own: whether one has the methods is remembered for good.
        answered = {
            name: lambda rm, questions, answer, answers=answers: answer(answers(rm, questions))
            for name, answers in (
                ("ask_predicates", refusals_of),
                ("ask_preemption_predicates", indexes_for),
            )
        }
        monkeypatch.setitem(globals(), "WireManager", type("LaterManager", (WireManager,), answered))


@pytest.mark.usefixtures("_answered")
def test_predicates_are_asked_about_the_ask(engine: EngineName) -> None:
    """With its own key for each of its allocations."""
    with started(engine, a_node("n1"), a_node("n2"), refused={"n1"}) as rm:
        rm.say_allocations(asks=[an_ask("k", 2)])

        assert {"k"} == {args.allocationKey for args in rm.asked}
        assert {"n2"} == {entry.nodeID for told in rm.allocations for entry in told.new}


@pytest.mark.usefixtures("_answered")
def test_victims_are_named_by_their_asks(engine: EngineName) -> None:
    """In the question; the release then has the UUID."""
    queues = "[{name: q}, {name: rich, resources: {guaranteed: {vcore: 10m}}}]"
    with WireManager(engine, queues) as rm:
        rm.say_nodes(a_node())
        rm.say_applications("app")
        rm.say_applications("claims", queueName="root.rich")
        policy = {"allowPreemptSelf": True, "allowPreemptOther": True}
        rm.say_allocations(asks=[an_ask("k", 2, vcore=5, preemptionPolicy=policy)])
        rm.forget()

        rm.say_allocations(
            asks=[an_ask("wants", 2, vcore=4, applicationID="claims", preemptionPolicy=policy)]
        )
        rm.scheduler.advance_to(rm.scheduler.now_ns() + 60 * SECOND_NS)
        rm.scheduler.run_until_idle()

        assert {("wants", ("k",)), ("wants", ("k", "k"))} >= {
            (args.allocationKey, tuple(args.preemptAllocationKeys)) for args in rm.asked_to_preempt
        }
        assert rm.asked_to_preempt
        assert {("k", "PREEMPTED_BY_SCHEDULER")} == {(key, why) for key, _, why in rm.released}


def test_a_hint_for_an_autoscaler_has_the_key_of_the_ask(rm: WireManager) -> None:
    """It may come again for each allocation that waits."""
    rm.say_allocations(asks=[an_ask("k", 2, vcore=8)])
    rm.scheduler.inspect_outstanding()
    rm.scheduler.deliver()

    assert ["k"] == [hint.allocationKey for hint in rm.hints]


# ----------------------------------------------------------------------------------------- recovery


def test_a_restart_loses_and_doubles_nothing(engine: EngineName) -> None:
    """Applications first, then nodes with what runs on them, then asks: the books are those of before."""
    with started(engine, a_node(), a_node("n2", 4)) as rm:
        rm.say_allocations(asks=[an_ask("k", 5), an_ask("l", 2, vcore=1)])
        placed = [entry for told in rm.allocations for entry in told.new]

        def books() -> list[object]:
            documents = [rm.node(), rm.node("n2")]
            sums = [(node["nodeID"], node.get("allocated"), node.get("available")) for node in documents]
            application, queue = rm.application(), rm.queue()
            return [*sums, application["usedResource"], queue["allocatedResource"]]

        before = books()
        queues = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: q}]}]}]"
        rm.scheduler.register("rm", rm, configuration=queues)
        rm.say_applications("app")
        rm.forget()
        for name, vcore in (("n1", 10), ("n2", 4)):
            here = [
                an_existing(entry.allocationKey, entry.UUID, entry.resourcePerAlloc.resources["vcore"].value)
                for entry in placed
                if entry.nodeID == name
            ]
            rm.say_nodes(a_node(name, vcore, existingAllocations=here))
        rm.say_allocations(asks=[an_ask("k", 5), an_ask("l", 2, vcore=1)])

        assert before == books()
        assert sorted((entry.allocationKey, entry.UUID) for entry in placed) == sorted(rm.placed)
        assert ["n1", "n2"] == [entry.nodeID for told in rm.nodes for entry in told.accepted]


def test_the_uuids_of_an_earlier_scheduler_are_kept(rm: WireManager) -> None:
    """In answers and in releases; what is missing of the ask is placed in addition."""
    rm.say_nodes(a_node("n2", existingAllocations=[an_existing("k", "u"), an_existing("k", "v")]))
    rm.say_allocations(asks=[an_ask("k", 3)])
    rm.release({"UUID": "u"}, {"UUID": "v", "allocationKey": "k"})

    assert [("k", "u"), ("k", "v"), ("k", "k#allocation-2")] == rm.placed
    assert [("k", "u", "STOPPED_BY_RM"), ("k", "v", "STOPPED_BY_RM")] == rm.released


def test_a_node_whose_allocations_are_not_known_is_rejected(rm: WireManager) -> None:
    """Applications come first; the node may be sent again then."""
    node = a_node(
        "n2", existingAllocations=[an_existing("k", "u"), an_existing("l", "v", applicationID="late")]
    )
    rm.say_nodes(node)
    rm.say_applications("late")
    rm.say_nodes(node)

    rejected, accepted = rm.nodes
    why = (
        "failure while adding new node n2: its existing allocation l#allocation:v is refused: "
        "failed to find application late"
    )
    assert [why] == [entry.reason for entry in rejected.rejected]
    assert ["n2"] == [entry.nodeID for entry in accepted.accepted]
    assert [("k", "u"), ("l", "v")] == rm.placed


# ------------------------------------------------------------------------------------- occupied nodes


def test_what_others_use_of_a_node_takes_the_place_of_the_amount_before(engine: EngineName) -> None:
    """It is shown on the node alone, and there is no answer to it."""
    with started(engine, a_node(occupiedResource=amount(4))) as rm:
        first = rm.node()
        rm.say_nodes({"nodeID": "n1", "action": "UPDATE", "occupiedResource": amount(7)})

        second = rm.node()
        assert [({"vcore": 4}, {"vcore": 6}), ({"vcore": 7}, {"vcore": 3})] == [
            (node["occupied"], node["available"]) for node in (first, second)
        ]
        assert not {"allocated", "foreignAllocations", "allocations"} & {k for k, v in second.items() if v}
        assert "allocatedResource" not in rm.queue()
        assert ([], []) == (rm.allocations, rm.nodes)


def test_nothing_is_placed_on_what_others_use(engine: EngineName) -> None:
    """Until they use less."""
    with started(engine, a_node(occupiedResource=amount(9))) as rm:
        rm.say_allocations(asks=[an_ask("k", 2)])
        before = list(rm.placed)
        rm.say_nodes({"nodeID": "n1", "action": "UPDATE", "occupiedResource": {}})

        assert ([], [("k", "k"), ("k", "k#allocation-2")]) == (before, rm.placed)


# -------------------------------------------------------------------------------------- generations


def test_who_speaks_the_current_generation_is_answered_in_it(rm: WireManager) -> None:
    """Whatever is in its keys; nothing that it does not know is in its answers."""
    allocation = {"applicationID": "app", "resourcePerAlloc": amount(2)}
    rm.say_allocations(allocations=[{"allocationKey": "k#allocation-2", **allocation}])
    rm.say_allocations(allocations=[{"allocationKey": "no", "applicationID": "no"}])
    rm.release({"allocationKey": "k#allocation-2"})

    assert [("k#allocation-2", "")] == rm.placed
    assert [("k#allocation-2", "", "STOPPED_BY_RM")] == rm.released
    assert ([], ["no"]) == (
        rm.rejected,
        [entry.allocationKey for told in rm.allocations for entry in told.rejectedAllocations],
    )


def test_both_generations_are_spoken_to_one_scheduler(rm: WireManager) -> None:
    """What one resource manager says changes nothing for another one."""
    other = WireManager("direct")
    rm.scheduler.register(
        "other", other, configuration="partitions: [{name: default, queues: [{name: root}]}]"
    )
    rm.say_allocations(asks=[an_ask("k", 2)])
    node = si.NodeRequest(rmID="other")
    rm.scheduler.update_node(node)
    request = si.AllocationRequest(rmID="other", allocations=[si.Allocation(allocationKey="k")])
    rm.scheduler.update_allocation(request)
    rm.scheduler.run_until_idle()

    assert [("k", "k"), ("k", "k#allocation-2")] == rm.placed
    assert ([], ["k"]) == (
        other.rejected,
        [entry.allocationKey for told in other.allocations for entry in told.rejectedAllocations],
    )
    other.scheduler.stop()


def test_a_resource_manager_that_registers_again_may_speak_another_generation(rm: WireManager) -> None:
    """It has nothing left of before."""
    rm.say_allocations(asks=[an_ask("k", 2)])
    queues = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: q}]}]}]"
    rm.scheduler.register("rm", rm, configuration=queues)
    rm.say_nodes(a_node())
    rm.say_applications("app")
    rm.forget()

    allocation = {"allocationKey": "k", "applicationID": "app", "resourcePerAlloc": amount(2)}
    rm.say_allocations(allocations=[allocation])

    assert [("k", "")] == rm.placed


# ----------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            {"asks": [{"allocationKey": "k#allocation-2", "applicationID": "app"}]},
            "uses the allocation key 'k#allocation-2'",
        ),
        (
            {"allocations": [{"allocationKey": "k", "applicationID": "app", "UUID": "u"}]},
            "sends the ask 'k' with the UUID 'u'",
        ),
        (
            {"releases": {"allocationAsksToRelease": [{"message": "all"}]}},
            "with neither allocationKey nor applicationID",
        ),
    ],
)
def test_a_message_that_is_refused_changes_nothing(rm: WireManager, body: dict[str, Any], why: str) -> None:
    """Neither what is before the fault in it, nor what is after."""
    rm.say_allocations(asks=[an_ask("runs"), an_ask("waits", vcore=9)])
    rm.forget()
    fine: dict[str, Any] = {
        "asks": [an_ask("more", 3)],
        "releases": {"allocationsToRelease": [{"applicationID": "app", "UUID": "runs"}]},
    }
    together = {
        "asks": [*fine["asks"], *body.get("asks", [])],
        "allocations": body.get("allocations", []),
        "releases": {**fine["releases"]},
    }
    for field, entries in body.get("releases", {}).items():
        together["releases"][field] = [*together["releases"].get(field, []), *entries]

    with pytest.raises(RequestError, match=why):
        rm.say_allocations(**together)

    rm.scheduler.run_until_idle()
    assert ([], {"vcore": 2}, {"vcore": 9}) == (
        rm.allocations,
        rm.application()["usedResource"],
        rm.application()["pendingResource"],
    )
