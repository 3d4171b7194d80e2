"""Calls of a scheduler of pods to an API server: bind, delete, patch and create, and hold a lease."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar, final
from urllib.parse import quote

import msgspec

from ..objects import (
    SELECTED_NODE,
    ApiUser,
    Binding,
    BindingTarget,
    KubernetesEvent,
    Lease,
    ObjectMeta,
    Pod,
    SelfReview,
)
from .api_client import ApiClient
from .errors import ApiError, ApiUnreachable

_MERGE_PATCH: Final = "application/merge-patch+json"
_STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"

_LEASE_TIMEOUT_SECONDS: Final = 5.0
"""A lease is renewed within seconds, or lost."""

_Answered = TypeVar("_Answered")


@final
class ApiCalls:
    """Calls of an API server. Threads share them.

    All of them raise `ApiError` if the server refuses, `ApiUnreachable` if it is unknown whether the call was
    carried out, and `CredentialError` and `InputError` if the credentials cannot be used. The uid identifies
    the pod: the server refuses with 409 if another one has its name now.

    Args:
        client: The client.
    """

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    def limit_rate(self, qps: float, burst: int) -> None:
        """Limit how many calls are made a second, and at once."""
        self._client.limit_rate(qps, burst)

    def own_user(self) -> ApiUser:
        """Return the user of these calls."""
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        return _decoded(self._client.request("POST", path, body=b"{}"), SelfReview).status.user_info

    def get_pod(self, namespace: str, name: str) -> Pod:
        """Return a pod of the server; the status of the error is 404 if it does not exist."""
        return _decoded(self._client.request("GET", _pod(namespace, name)), Pod)

    def create_pod(self, namespace: str, document: Mapping[str, object], *, is_dry_run: bool = False) -> Pod:
        """Create a pod from its document, and return it.

        Args:
            namespace: Its namespace.
            document: The pod.
            is_dry_run: Only return the pod that the API server would create, with its defaults.
        """
        path = f"/api/v1/namespaces/{_step(namespace)}/pods"
        query = {"dryRun": "All"} if is_dry_run else None
        body = msgspec.json.encode(document)
        return _decoded(self._client.request("POST", path, query=query, body=body), Pod)

    def bind(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Assign a pod to a node.

        409 has two meanings: the pod is assigned already, perhaps to this very node, or another one has its
        name. `get_pod` tells them apart. The server does not check that the node exists.
        """
        binding = Binding(
            metadata=ObjectMeta(name=name, namespace=namespace, uid=uid), target=BindingTarget(name=node)
        )
        path = f"{_pod(namespace, name)}/binding"
        self._client.request("POST", path, body=msgspec.json.encode(binding))

    def delete_pod(
        self, namespace: str, name: str, uid: str, *, grace_period_seconds: int | None = None
    ) -> bool:
        """Delete a pod; return whether it existed.

        A bound pod stays until its node has ended it.

        Args:
            namespace: Its namespace.
            name: Its name.
            uid: Its uid.
            grace_period_seconds: How long its node gives it to end; `None` for the period of the pod.
        """
        options = _delete_options(uid, grace_period_seconds)
        return self._unless_missing("DELETE", _pod(namespace, name), options)

    def evict_pod(
        self, namespace: str, name: str, uid: str, *, grace_period_seconds: int | None = None
    ) -> bool:
        """Delete a pod unless a disruption budget forbids it; return whether it existed.

        The status of the error is 429 if a budget forbids it; the call does not wait for it. A server takes
        ten seconds to report that another pod has the name.
        """
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": _delete_options(uid, grace_period_seconds),
        }
        return self._unless_missing("POST", f"{_pod(namespace, name)}/eviction", eviction, 0.0)

    def _unless_missing(
        self, method: str, path: str, document: Mapping[str, object], patience_seconds: float | None = None
    ) -> bool:
        """Make a call about a pod; return whether the pod existed."""
        try:
            body = msgspec.json.encode(document)
            self._client.request(method, path, body=body, patience_seconds=patience_seconds)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    def patch_pod_condition(
        self,
        namespace: str,
        name: str,
        uid: str,
        condition: Mapping[str, object],
        nominated_node: str | None = None,
    ) -> Pod:
        """Set one condition of a pod's status, and return the pod; its other conditions stay.

        Args:
            namespace: The pod's namespace.
            name: Its name.
            uid: Its uid.
            condition: The condition with `type`, `status`, `reason`, `message` and `lastTransitionTime`.
            nominated_node: The node on which others end for the pod, empty for none; `None` leaves it.
        """
        status: dict[str, object] = {"conditions": [condition]}
        if nominated_node is not None:
            status["nominatedNodeName"] = nominated_node or None
        return self._patch_status(namespace, name, uid, status)

    def patch_pod_phase(
        self, namespace: str, name: str, uid: str, *, phase: str, reason: str, message: str
    ) -> Pod:
        """Set the phase of a pod's status with its reason, and return the pod."""
        status = {"phase": phase, "reason": reason, "message": message}
        return self._patch_status(namespace, name, uid, status)

    def _patch_status(self, namespace: str, name: str, uid: str, status: Mapping[str, object]) -> Pod:
        # Another uid counts as a change of the pod, which the server refuses.
        body = msgspec.json.encode({"metadata": {"uid": uid}, "status": status})
        path = f"{_pod(namespace, name)}/status"
        try:
            answer = self._client.request("PATCH", path, body=body, content_type=_STRATEGIC_PATCH)
        except ApiError as error:
            if error.status == 422 and "metadata.uid" in error.message:
                # Other calls report this as 409: it is the same to the caller.
                raise ApiError(409, "Conflict", error.message) from error
            raise
        return _decoded(answer, Pod)

    def select_node(self, namespace: str, name: str, uid: str, node: str) -> None:
        """Select the node for which the volume of a claim is made."""
        annotations = {SELECTED_NODE: node}
        body = msgspec.json.encode({"metadata": {"uid": uid, "annotations": annotations}})
        path = f"/api/v1/namespaces/{quote(namespace)}/persistentvolumeclaims/{quote(name)}"
        self._client.request("PATCH", path, body=body, content_type=_MERGE_PATCH)

    def patch_pod_labels(self, namespace: str, name: str, labels: Mapping[str, str]) -> Pod:
        """Set labels of a pod, and return it; its other labels stay."""
        body = msgspec.json.encode({"metadata": {"labels": labels}})
        answer = self._client.request("PATCH", _pod(namespace, name), body=body, content_type=_MERGE_PATCH)
        return _decoded(answer, Pod)

    def create_event(self, namespace: str, document: Mapping[str, object]) -> KubernetesEvent:
        """Create an event of `events.k8s.io/v1` from its document, and return it."""
        answer = self._client.request("POST", _events(namespace), body=msgspec.json.encode(document))
        return _decoded(answer, KubernetesEvent)

    def patch_event_series(
        self, namespace: str, name: str, *, count: int, last_observed_time: str
    ) -> KubernetesEvent:
        """Record that an event has happened again, and return it; 404 if the server has dropped it since.

        Args:
            namespace: The event's namespace.
            name: Its name.
            count: How often it has happened.
            last_observed_time: When it happened last, RFC 3339 with microseconds.
        """
        series = {"series": {"count": count, "lastObservedTime": last_observed_time}}
        path = f"{_events(namespace)}/{_step(name)}"
        answer = self._client.request(
            "PATCH", path, body=msgspec.json.encode(series), content_type=_MERGE_PATCH
        )
        return _decoded(answer, KubernetesEvent)

    def get_lease(self, namespace: str, name: str) -> Lease:
        """Return a lease; the status of the error is 404 if it does not exist."""
        return self._lease_call("GET", f"{_leases(namespace)}/{_step(name)}", None)

    def create_lease(self, lease: Lease) -> Lease:
        """Create a lease, and return it; the status of the error is 409 if the name is taken."""
        return self._lease_call("POST", _leases(lease.metadata.namespace), lease)

    def update_lease(self, lease: Lease) -> Lease:
        """Replace a lease, and return its new state.

        The status of the error is 409 if it has changed since it was read.

        Args:
            lease: The new lease, with the version that was read.
        """
        path = f"{_leases(lease.metadata.namespace)}/{_step(lease.metadata.name)}"
        return self._lease_call("PUT", path, lease)

    def _lease_call(self, method: str, path: str, lease: Lease | None) -> Lease:
        """Make one attempt: the holder of a lease decides itself when to repeat it."""
        answer = self._client.request(
            method,
            path,
            body=None if lease is None else msgspec.json.encode(lease),
            timeout_seconds=_LEASE_TIMEOUT_SECONDS,
            patience_seconds=0.0,
        )
        return _decoded(answer, Lease)


def _step(name: str) -> str:
    """Return a name as one step of a path, with its characters escaped."""
    return quote(name, safe="")


def _pod(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{_step(namespace)}/pods/{_step(name)}"


def _events(namespace: str) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{_step(namespace)}/events"


def _leases(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{_step(namespace)}/leases"


def _delete_options(uid: str, grace_period_seconds: int | None) -> dict[str, object]:
    """Return the document of a deletion."""
    options: dict[str, object] = {"preconditions": {"uid": uid}}
    if grace_period_seconds is not None:
        options["gracePeriodSeconds"] = grace_period_seconds
    return options


def _decoded(answer: bytes, kind: type[_Answered]) -> _Answered:
    """Return the object in an answer.

    Raises:
        ApiUnreachable: It cannot be read: a server in between has written it, or the call was carried out and
            its result is unknown.
    """
    try:
        return msgspec.json.decode(answer, type=kind)
    except msgspec.DecodeError as error:
        raise ApiUnreachable(f"the answer cannot be read as {kind.__name__}: {error}") from error
