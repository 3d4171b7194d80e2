"""A scheduler that notes what a recovery sends to it."""

from __future__ import annotations

from typing import Any

from support.proxy.knowing_manager import KnowingManager

from licorne import Recovery, ResourceManagerCallback, Scheduler
from licorne.model.values.documents import Document
from licorne.proxy.si import si_pb2 as si


class Noting:
    """A scheduler that notes what it is sent, in short texts, and has another one do it."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.sent: list[str] = []

    def register_resource_manager(
        self, request: si.RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> si.RegisterResourceManagerResponse:
        self.sent.append("register")
        return self.scheduler.register_resource_manager(request, callback)

    def update_node(self, request: si.NodeRequest) -> None:
        names = [f"{entry.nodeID} {si.NodeInfo.ActionFromRM.Name(entry.action)}" for entry in request.nodes]
        self.sent.append(", ".join(names))
        self.scheduler.update_node(request)

    def update_application(self, request: si.ApplicationRequest) -> None:
        names = [entry.applicationID + _forced(entry) for entry in request.new]
        names += [f"remove {entry.applicationID}" for entry in request.remove]
        self.sent.append(", ".join(names))
        self.scheduler.update_application(request)

    def update_allocation(self, request: si.AllocationRequest) -> None:
        names = [f"{entry.allocationKey} on {entry.nodeID or 'none'}" for entry in request.allocations]
        names += [f"end {entry.allocationKey}" for entry in request.releases.allocationsToRelease]
        self.sent.append(", ".join(names))
        self.scheduler.update_allocation(request)

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        self.scheduler.update_configuration(request)

    def snapshot(self, *, rm_id: str | None = None) -> Document:
        return self.scheduler.snapshot(rm_id=rm_id)

    def stop(self) -> None:
        self.scheduler.stop()


def _forced(application: si.AddApplicationRequest) -> str:
    return " forced" if application.tags["application.create.force"] == "true" else ""


def schedulable(scheduler: Noting) -> list[str]:
    snapshot: Any = scheduler.scheduler.snapshot()
    return [node["nodeID"] for node in snapshot["nodes"]["default"] if node["schedulable"]]


def begun(manager: KnowingManager, scheduler: Noting, **options: Any) -> Recovery:
    recovery = manager.recovery(scheduler, **options)
    recovery.start()
    return recovery
