"""A resource manager whose messages are all written and read again, as on a wire, to a stepped scheduler."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Self, TypeVar

from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message

from licorne import LicorneError, ResourceManager, Scheduler
from licorne.proxy.si import si_pb2 as si

if TYPE_CHECKING:
    from licorne.proxy.core.scheduler.engine_names import EngineName

_Kind = TypeVar("_Kind", bound=Message)


def amount(vcore: int) -> dict[str, Any]:
    """Return a resource."""
    return {"resources": {"vcore": {"value": vcore}}}


class WireManager(ResourceManager):
    """It keeps what it is told, and refuses the nodes that it is told to refuse.

    Args:
        engine: The engine of its scheduler, which is stepped.
        queues: The queues below the root, as YAML.
        refused: The nodes that its predicates refuse.
    """

    def __init__(
        self, engine: EngineName, queues: str = "[{name: q}]", refused: Collection[str] = ()
    ) -> None:
        self.allocations: list[si.AllocationResponse] = []
        self.applications: list[si.ApplicationResponse] = []
        self.nodes: list[si.NodeResponse] = []
        self.hints: list[si.UpdateContainerSchedulingStateRequest] = []
        self.asked: list[si.PredicatesArgs] = []
        self.asked_to_preempt: list[si.PreemptionPredicatesArgs] = []
        self.scheduler = Scheduler(engine=engine, stepped=True, check_direction=engine == "actors")
        self._refused = refused
        tree = f"partitions: [{{name: default, queues: [{{name: root, submitacl: '*', queues: {queues}}}]}}]"
        self.scheduler.register_resource_manager(
            _sent(si.RegisterResourceManagerRequest(rmID="rm", policyGroup="queues", config=tree)), self
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.scheduler.validate()
        finally:
            self.scheduler.stop()

    # ------------------------------------------------------------------------------- what it says

    def say_nodes(self, *nodes: dict[str, Any]) -> None:
        """Send nodes in one message, and let the scheduler do all that follows."""
        self.scheduler.update_node(_sent(ParseDict({"rmID": "rm", "nodes": list(nodes)}, si.NodeRequest())))
        self.scheduler.run_until_idle()

    def say_applications(self, *names: str, removed: Collection[str] = (), **more: object) -> None:
        """Send new applications, or removed ones, likewise."""
        new = [
            {"applicationID": name, "queueName": "root.q", "ugi": {"user": "ada"}, **more} for name in names
        ]
        body = {"rmID": "rm", "new": new, "remove": [{"applicationID": name} for name in removed]}
        self.scheduler.update_application(_sent(ParseDict(body, si.ApplicationRequest())))
        self.scheduler.run_until_idle()

    def say_allocations(self, **body: object) -> None:
        """Send an `AllocationRequest` with these fields, likewise."""
        self.scheduler.update_allocation(_sent(ParseDict({"rmID": "rm", **body}, si.AllocationRequest())))
        self.scheduler.run_until_idle()

    def release(self, *releases: dict[str, Any], asks: Collection[dict[str, Any]] = ()) -> None:
        """Release allocations and asks in one message, of the application `app` unless they say another."""
        app = {"applicationID": "app"}
        stopped = {**app, "terminationType": "STOPPED_BY_RM"}
        self.say_allocations(
            releases={
                "allocationsToRelease": [{**stopped, **release} for release in releases],
                "allocationAsksToRelease": [{**app, **ask} for ask in asks],
            }
        )

    def confirm(self) -> None:
        """Send back what it was told to release, as it came."""
        wanted = [entry for told in self.allocations for entry in told.released]
        releases = si.AllocationReleasesRequest(allocationsToRelease=wanted)
        self.scheduler.update_allocation(_sent(si.AllocationRequest(rmID="rm", releases=releases)))
        self.scheduler.run_until_idle()

    # --------------------------------------------------------------------------- what it is told

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.allocations.append(_sent(response))

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.applications.append(_sent(response))

    def update_node(self, response: si.NodeResponse) -> None:
        self.nodes.append(_sent(response))

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        self.hints.append(_sent(request))

    def predicates(self, args: si.PredicatesArgs) -> None:
        self.asked.append(_sent(args))
        if args.nodeID in self._refused:
            raise LicorneError("refused")

    def preemption_predicates(self, args: si.PreemptionPredicatesArgs) -> si.PreemptionPredicatesResponse:
        self.asked_to_preempt.append(_sent(args))
        return si.PreemptionPredicatesResponse(success=True, index=args.startIndex)

    def forget(self) -> None:
        """Forget what it was told so far."""
        for told in (self.allocations, self.applications, self.nodes, self.hints, self.asked):
            told.clear()

    @property
    def placed(self) -> list[tuple[str, str]]:
        """The key and the UUID of each new allocation."""
        return [(entry.allocationKey, entry.UUID) for told in self.allocations for entry in told.new]

    @property
    def released(self) -> list[tuple[str, str, str]]:
        """The key, the UUID and the reason of each release."""
        return [
            (entry.allocationKey, entry.UUID, si.TerminationType.Name(entry.terminationType))
            for told in self.allocations
            for entry in told.released
        ]

    @property
    def given_up(self) -> list[str]:
        """The key of each ask that the scheduler gave up."""
        return [entry.allocationKey for told in self.allocations for entry in told.releasedAsks]

    @property
    def rejected(self) -> list[tuple[str, str]]:
        """The key and the reason of each ask that was rejected, as the older generation reads it."""
        return [(entry.allocationKey, entry.reason) for told in self.allocations for entry in told.rejected]

    # -------------------------------------------------------------------------------- documents

    def node(self, name: str = "n1") -> dict[str, Any]:
        """Return the document of a node."""
        snapshot: Any = self.scheduler.snapshot()
        (document,) = [node for node in snapshot["nodes"]["default"] if node["nodeID"] == name]
        return dict(document)

    def queue(self) -> dict[str, Any]:
        """Return the document of the root."""
        snapshot: Any = self.scheduler.snapshot()
        return dict(snapshot["queues"]["default"])

    def application(self, name: str = "app") -> dict[str, Any]:
        """Return the document of an application."""
        snapshot: Any = self.scheduler.snapshot()
        (document,) = [
            entry for entry in snapshot["applications"]["default"] if entry["applicationID"] == name
        ]
        return dict(document)


def _sent(message: _Kind) -> _Kind:
    """Return a message as it comes out of a wire."""
    return type(message).FromString(message.SerializeToString())
