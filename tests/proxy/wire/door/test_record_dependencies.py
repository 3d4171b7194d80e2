"""How applications have ended is known on another worker to those that wait for it."""

from __future__ import annotations

from support.proxy.booked_link import BookedLink
from support.proxy.knowing_manager import a_node, an_allocation, an_application

from licorne import ResourceManager
from licorne.proxy.si import si_pb2 as si

_QUEUES = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: leaf}]}]}]"


def _submit(link: BookedLink, name: str, **tags: str) -> None:
    application = an_application(name)
    application.tags.update(tags)
    link.update_application(si.ApplicationRequest(rmID="rm", new=[application]))
    link.update_allocation(
        si.AllocationRequest(rmID="rm", allocations=[an_allocation(f"{name}-1", application=name, memory=1)])
    )
    link.settle()


def _end(link: BookedLink, name: str, outcome: str = "") -> None:
    removal = si.RemoveApplicationRequest(applicationID=name, outcome=outcome)
    link.update_application(si.ApplicationRequest(rmID="rm", remove=[removal]))
    link.settle()


def _placed(link: BookedLink) -> list[str]:
    responses = [each for each in link.heard if isinstance(each, si.AllocationResponse)]
    return [new.allocationKey for each in responses for new in each.new]


def test_what_ended_on_the_lost_worker_has_ended_on_the_next_one() -> None:
    """With the outcome; what lives is waited for as before, and an array ends with its elements."""
    link = BookedLink()
    link.register_resource_manager(
        si.RegisterResourceManagerRequest(rmID="rm", config=_QUEUES), ResourceManager()
    )
    link.update_node(si.NodeRequest(rmID="rm", nodes=[a_node("n", 100)]))
    for name in ("bad", "lives"):
        _submit(link, name)
    _submit(link, "e", array="x")
    _submit(link, "f", array="y")
    _submit(link, "never", afterOk="bad,lives")
    _submit(link, "clean", afterFailed="bad", after="lives")
    _submit(link, "last", afterOk="x,lives")
    _submit(link, "later", after="y")
    _end(link, "bad", "failed")
    _end(link, "e")
    assert _placed(link) == ["bad-1", "lives-1", "e-1", "f-1"]

    parts = link.lose()
    link.settle()
    told = [
        (each.applicationID, each.outcome)
        for request in parts.late
        if isinstance(request, si.ApplicationRequest)
        for each in request.remove
    ]
    assert told == [("bad", "failed"), ("x", "ok")]
    link.heard.clear()
    _end(link, "lives")
    assert sorted(_placed(link)) == ["clean-1", "last-1"]
    _end(link, "f")
    assert sorted(_placed(link)) == ["clean-1", "last-1", "later-1"]
    link.stop()
