"""What a resource manager has refused is tried again when it says so: in process, and over the session."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, application_request, node_request
from support.proxy.recorded_traffic import callbacks_in, replayed
from support.waiting import wait_until

from licorne import LicorneError, RemoteScheduler, RequestError, Scheduler
from licorne.proxy.core.recording.recorder import AnonymousLines
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.play.transcripts.replay import Replay
from licorne.proxy.play.transcripts.transcript import read_transcript
from licorne.proxy.si import si_pb2 as si

if TYPE_CHECKING:
    from .conftest import Served


class Tainted(Listener):
    """Refuses all nodes until the test allows them."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str]] = []
        self.allows = False

    def predicates(self, args: si.PredicatesArgs) -> None:
        self.asked.append((args.allocationKey, args.nodeID))
        if not self.allows:
            raise LicorneError("it has a taint")


def asks(*keys: str) -> si.AllocationRequest:
    """Return asks of one class."""
    request = si.AllocationRequest(rmID="rm")
    for key in keys:
        ask = request.allocations.add(allocationKey=key, applicationID="app")
        ask.resourcePerAlloc.resources["memory"].value = 1
        ask.allocationTags["licorne/predicate-class"] = "executor"
    return request


@contextmanager
def started(place: EngineName | None, serve: Callable[..., Served]) -> Iterator[Scheduler | RemoteScheduler]:
    """Yield a scheduler with an engine in this process, or one at a server if there is none."""
    if place is None:
        with RemoteScheduler(serve().address) as remote:
            yield remote
    else:
        with Scheduler(engine=place) as scheduler:
            yield scheduler


@pytest.mark.parametrize("place", ["actors", "threads", pytest.param(None, id="at a server")])
def test_a_class_is_asked_about_once_and_again_when_it_is_reconsidered(
    place: EngineName | None, serve: Callable[..., Served]
) -> None:
    """One question a node, however many asks there are, until the RM says that its answers change."""
    rm = Tainted()
    with started(place, serve) as scheduler:
        scheduler.register("rm", rm, configuration=ONE)
        scheduler.update_node(node_request("n1", "n2"))
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(asks(*(f"a{number}" for number in range(20))))
        wait_until(lambda: "it has a taint" in str(scheduler.explain("app")))
        assert ["n1", "n2"] == sorted(node for _, node in rm.asked)

        rm.allows = True
        scheduler.reconsider("rm", node_ids=["n2"])
        rm.wait_for_count("placed ", 20)

        assert 3 == len(rm.asked)
        scheduler.validate()


@pytest.mark.parametrize("place", ["direct", pytest.param(None, id="at a server")])
def test_who_has_not_registered_has_nothing_to_reconsider(
    place: EngineName | None, serve: Callable[..., Served]
) -> None:
    """Its id is in the error."""
    with (
        started(place, serve) as scheduler,
        pytest.raises(RequestError, match=r'RmID="other" not registered'),
    ):
        scheduler.reconsider("other")


def test_a_partition_that_it_does_not_have_is_refused() -> None:
    """Its name is in the error."""
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", Listener(), configuration=ONE)

        with pytest.raises(RequestError, match="RM 'rm' has no partition 'gpus'"):
            scheduler.reconsider("rm", partition="gpus")


def memory(quantity: int) -> dict[str, Any]:
    return {"resources": {"memory": {"value": quantity}}}


APPLICATION = {"applicationID": "app", "queueName": "root.leaf", "ugi": {"user": "ada"}}
ASK: dict[str, Any] = {
    "allocationKey": "a",
    "applicationID": "app",
    "resourcePerAlloc": memory(1),
    "allocationTags": {"licorne/predicate-class": "executor"},
}
LINES: list[dict[str, Any]] = [
    {"register": {"rmID": "rm", "config": ONE}},
    {
        "node": {
            "rmID": "rm",
            "nodes": [{"nodeID": "n1", "action": "CREATE", "schedulableResource": memory(9)}],
        }
    },
    {"application": {"rmID": "rm", "new": [APPLICATION]}},
    {"predicates": {"denyAll": True}},
    {"allocation": {"rmID": "rm", "allocations": [ASK]}},
    {"schedule": "all"},
    {"predicates": {}},
    {"schedule": "all"},
    {"reconsider": {"rmId": "rm", "predicateClasses": ["executor"]}},
    {"schedule": "all"},
]


@pytest.mark.parametrize("engine", ["direct", "actors"])
def test_a_transcript_has_it_and_a_recording_repeats_it(engine: EngineName, tmp_path: Path) -> None:
    """The ask is placed after it, at the last line, and so it is in the recording."""
    output: list[str] = []
    with Scheduler(engine=engine, stepped=True, record=tmp_path) as scheduler:
        text = "\n".join(json.dumps(line) for line in LINES)
        Replay(scheduler, output.append).run(read_transcript(text, "transcript"))

    rows = [json.loads(row) for row in output]
    assert [len(LINES)] == [row["line"] for row in rows if row.get("allocationResponse", {}).get("new")]
    heard = [row for row in rows if not {"registered", "scheduled", "error", "snapshot"} & row.keys()]
    assert callbacks_in(heard) == callbacks_in(replayed(tmp_path))


def test_an_anonymous_recording_hides_what_is_named() -> None:
    """A class is named as in the tag of the asks, and a node and a key as elsewhere."""
    named: dict[str, Any] = {"nodeIds": ["n1"], "allocationKeys": ["a"], "predicateClasses": ["executor"]}
    lines = AnonymousLines()
    reconsidered: Any = lines.hidden({"reconsider": named})["reconsider"]
    hidden = json.dumps([lines.hidden({"allocation": ASK}), reconsidered])

    assert not {"executor", '"n1"', '"a"'} & set(re.findall(r'"[^"]*"|executor', hidden))
    assert 2 == hidden.count(reconsidered["predicateClasses"][0])
