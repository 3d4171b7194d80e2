"""The interface in one process."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.api import ResourceManager, ResourceManagerCallback, SchedulerAPI, StateDumpPlugin


class _Picky(ResourceManager):
    """A resource manager that writes only what matters to it."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        if args.nodeID == "bad":
            raise ValueError(f"not on {args.nodeID}")

    def get_state_dump(self) -> str:
        return "{}"


def _methods(protocol: type) -> dict[str, list[str]]:
    """Return the public methods of a class with the names of their parameters."""
    return {
        name: list(inspect.signature(method).parameters)[1:]
        for name, method in inspect.getmembers(protocol, inspect.isfunction)
        if not name.startswith("_")
    }


@pytest.mark.parametrize(
    ("protocol", "methods"),
    [
        (
            SchedulerAPI,
            {
                "register_resource_manager": ["request", "callback"],
                "update_allocation": ["request"],
                "update_application": ["request"],
                "update_node": ["request"],
                "update_configuration": ["request"],
                "stop": [],
            },
        ),
        (
            ResourceManagerCallback,
            {
                "update_allocation": ["response"],
                "update_application": ["response"],
                "update_node": ["response"],
                "predicates": ["args"],
                "preemption_predicates": ["args"],
                "send_event": ["events"],
                "update_container_scheduling_state": ["request"],
            },
        ),
    ],
)
def test_calls_and_callbacks_of_the_interface_are_all_there(
    protocol: type, methods: dict[str, list[str]]
) -> None:
    """In Python's spelling."""
    assert methods == _methods(protocol)


def test_the_convenient_resource_manager_has_every_callback() -> None:
    """A class that extends it has nothing left to write; the type checker agrees at this very assignment."""
    callback: ResourceManagerCallback = ResourceManager()

    assert _methods(type(callback)) == _methods(ResourceManagerCallback)


@pytest.mark.parametrize(
    "tell",
    [
        lambda callback: callback.update_allocation(si.AllocationResponse()),
        lambda callback: callback.update_application(si.ApplicationResponse()),
        lambda callback: callback.update_node(si.NodeResponse()),
        lambda callback: callback.predicates(si.PredicatesArgs(allocationKey="a", nodeID="n")),
        lambda callback: callback.send_event([si.EventRecord()]),
        lambda callback: callback.update_container_scheduling_state(
            si.UpdateContainerSchedulingStateRequest()
        ),
    ],
)
def test_the_convenient_resource_manager_takes_everything(
    tell: Callable[[ResourceManagerCallback], object],
) -> None:
    """Nothing that a scheduler tells makes it raise."""
    assert tell(ResourceManager()) is None


def test_the_convenient_resource_manager_agrees_to_preemption_at_once() -> None:
    """What the first try removes is enough."""
    args = si.PreemptionPredicatesArgs(preemptAllocationKeys=["a", "b", "c"], startIndex=1)

    expected = si.PreemptionPredicatesResponse(success=True, index=1)

    assert expected == ResourceManager().preemption_predicates(args)


def test_an_overwritten_predicate_refuses_by_raising() -> None:
    """The text of the error is the reason."""
    callback: ResourceManagerCallback = _Picky()

    callback.predicates(si.PredicatesArgs(nodeID="good"))
    with pytest.raises(ValueError, match="not on bad"):
        callback.predicates(si.PredicatesArgs(nodeID="bad"))


def test_a_state_dump_is_offered_by_having_the_method() -> None:
    """The scheduler can see whether a resource manager has a state to add to a dump."""
    assert isinstance(_Picky(), StateDumpPlugin)
    assert not isinstance(ResourceManager(), StateDumpPlugin)
