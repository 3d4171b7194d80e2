"""The codes beside the reasons of rejections, from the request of an RM to its callback."""

from __future__ import annotations

from typing import Any, Final

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from support.proxy.wire_manager import amount

from licorne import ResourceManager, Scheduler
from licorne.actors.services.clocks import EPOCH_2000_NS
from licorne.model.values.messages import RejectionCode
from licorne.proxy.si import si_pb2 as si

QUEUES: Final = """
partitions:
- name: default
  placementrules: [{name: provided}]
  queues:
  - name: root
    queues:
    - {name: open, submitacl: "*", properties: {application.sort.policy: fifo}, resources: {max: {vcore: 8m}}}
    - {name: closed, submitacl: ada}
"""
NODE: Final = {"nodeID": "n1", "action": "CREATE", "schedulableResource": amount(10)}


class Noting(ResourceManager):
    """Notes the code of each rejection by what was rejected."""

    def __init__(self) -> None:
        self.codes: dict[str, str] = {}

    def update_node(self, response: si.NodeResponse) -> None:
        self.codes |= {each.nodeID: each.code for each in response.rejected}

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.codes |= {each.applicationID: each.code for each in response.rejected}

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.codes |= {each.allocationKey: each.code for each in response.rejectedAllocations}


def application(name: str, queue: str = "root.open", user: str = "bob", **more: Any) -> dict[str, Any]:
    return {"new": [{"applicationID": name, "queueName": queue, "ugi": {"user": user}, **more}]}


def ask(key: str, name: str = "app", vcore: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "allocations": [
            {"allocationKey": key, "applicationID": name, "resourcePerAlloc": amount(vcore), **more}
        ]
    }


C = RejectionCode
CASES: Final[dict[str, tuple[str, dict[str, Any], str, RejectionCode]]] = {
    "an ask of an application that there is not": (
        "allocation",
        ask("k", "none"),
        "k",
        C.APPLICATION_UNKNOWN,
    ),
    "an ask of an application that has completed": (
        "allocation",
        ask("k", "ended"),
        "k",
        C.APPLICATION_UNKNOWN,
    ),
    "an ask of an application that fails": (
        "allocation",
        ask("k", "failing"),
        "k",
        C.APPLICATION_ENDS,
    ),
    "an ask for nothing": ("allocation", ask("k", vcore=0), "k", C.INVALID),
    "a placeholder without a group": ("allocation", ask("k", placeholder=True), "k", C.INVALID),
    "a key of another application": ("allocation", ask("taken", "other"), "taken", C.KEY_IN_USE),
    "an allocation on a node that there is not": (
        "allocation",
        ask("k", nodeID="n9"),
        "k",
        C.NODE_UNKNOWN,
    ),
    "an ask in a partition that there is not": (
        "allocation",
        ask("k", partitionName="gpus"),
        "k",
        C.PARTITION_UNKNOWN,
    ),
    "an application that is there": (
        "application",
        application("app"),
        "app",
        C.APPLICATION_EXISTS,
    ),
    "an application without an id": ("application", application(""), "", C.INVALID),
    "a queue that there is not": ("application", application("x", "root.none"), "x", C.NO_QUEUE),
    "a queue that the user may not use": (
        "application",
        application("x", "root.closed"),
        "x",
        C.NO_PERMISSION,
    ),
    "a gang that is larger than its queue": (
        "application",
        application("x", placeholderAsk=amount(9)),
        "x",
        C.OVER_MAXIMUM,
    ),
    "an application in a partition that there is not": (
        "application",
        application("x", partitionName="gpus"),
        "x",
        C.PARTITION_UNKNOWN,
    ),
    "a node that is there": ("node", {"nodes": [NODE]}, "n1", C.NODE_EXISTS),
    "a node without an action": ("node", {"nodes": [{"nodeID": "n2"}]}, "n2", C.INVALID),
    "a node in a partition that there is not": (
        "node",
        {"nodes": [NODE | {"nodeID": "n2", "attributes": {"si/node-partition": "gpus"}}]},
        "n2",
        C.PARTITION_UNKNOWN,
    ),
}


@pytest.fixture
def rm_and_scheduler() -> Any:
    """Yield an RM with a node, and with applications of which one fails and one has ended."""
    rm = Noting()
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", rm, configuration=QUEUES)
        say(scheduler, "node", {"nodes": [NODE]})
        for name in ("app", "other", "ended"):
            say(scheduler, "application", application(name))
        gang: dict[str, Any] = {"placeholderAsk": amount(4), "gangSchedulingStyle": "Hard"}
        gang["executionTimeoutMilliSeconds"] = 1_000
        say(scheduler, "application", application("failing", **gang))
        say(scheduler, "allocation", ask("p", "failing", placeholder=True, taskGroupName="g"))
        say(scheduler, "allocation", ask("taken"))
        say(scheduler, "allocation", ask("gone", "ended"))
        gone = {"applicationID": "ended", "allocationKey": "gone", "terminationType": "STOPPED_BY_RM"}
        say(scheduler, "allocation", {"releases": {"allocationsToRelease": [gone]}})
        scheduler.advance_to(EPOCH_2000_NS + 40 * 10**9)
        rm.codes.clear()
        yield rm, scheduler


def say(scheduler: Scheduler, kind: str, body: dict[str, Any]) -> None:
    messages: dict[str, type[Message]] = {
        "node": si.NodeRequest,
        "application": si.ApplicationRequest,
        "allocation": si.AllocationRequest,
    }
    message: Any = ParseDict({"rmID": "rm", **body}, messages[kind]())
    getattr(scheduler, f"update_{kind}")(message)
    scheduler.run_until_idle()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_rejection_has_its_code(
    case: tuple[str, dict[str, Any], str, RejectionCode], rm_and_scheduler: tuple[Noting, Scheduler]
) -> None:
    """One code, whatever the sentence says."""
    kind, body, subject, code = case
    rm, scheduler = rm_and_scheduler

    say(scheduler, kind, body)

    assert {subject: code.name} == rm.codes


def test_every_code_but_one_is_here() -> None:
    """A partition that is stopped answers only while it ends."""
    assert {*RejectionCode} - {RejectionCode.PARTITION_STOPPED} == {code for *_, code in CASES.values()}
