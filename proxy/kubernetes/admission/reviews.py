"""What an API server asks a webhook, and what is answered: `AdmissionReview` of `admission.k8s.io/v1`."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, TypeVar, final

import msgspec

from licorne.proxy.kubernetes.objects import resolve_structs

from ....model.errors import LicorneError
from ..decoding import decoded

_VERSION: Final = "admission.k8s.io/v1"
_WARNING_LENGTH_MAX: Final = 256
"""An API server cuts off what is longer."""

_Object = TypeVar("_Object")


class UnreadableReviewError(LicorneError):
    """The question cannot be read, so that the failure policy of the webhook decides."""


class RequestKind(msgspec.Struct, frozen=True):
    """The kind of the object that is written."""

    group: str = ""
    version: str = ""
    kind: str = ""


class RequestUser(msgspec.Struct, frozen=True):
    """Who writes the object."""

    username: str = ""
    groups: tuple[str, ...] = ()


class AdmissionRequest(msgspec.Struct, frozen=True, rename="camel"):
    """A write that is asked about."""

    uid: str
    operation: str = ""
    """`CREATE`, `UPDATE` or another one that nothing here is registered for."""
    kind: RequestKind = RequestKind()
    namespace: str = ""
    user_info: RequestUser = RequestUser()
    object: msgspec.Raw = msgspec.Raw(b"null")
    """The object as it is to be."""
    old_object: msgspec.Raw = msgspec.Raw(b"null")
    """The object as it was before an update."""


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    request: AdmissionRequest
    api_version: str = ""


_REVIEW: Final = msgspec.json.Decoder(_Review)


@final
@dataclass(frozen=True, slots=True)
class AdmissionVerdict:
    """What is answered."""

    is_allowed: bool = True
    reason: str = ""
    """Why the write is denied."""
    patch: tuple[Mapping[str, object], ...] = ()
    """What is changed in the object, as operations of a JSON patch."""
    warnings: tuple[str, ...] = ()
    """What the client shows to its user though the write is allowed."""


ADMITTED: Final = AdmissionVerdict()
"""The write passes as it is."""


def denied(reason: str) -> AdmissionVerdict:
    """Return that a write is denied."""
    return AdmissionVerdict(is_allowed=False, reason=reason)


def request_of(body: bytes) -> AdmissionRequest:
    """Return the question in a body.

    Raises:
        UnreadableReviewError: It is not a review of the version that is spoken here.
    """
    try:
        review = _REVIEW.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableReviewError(f"the body is no AdmissionReview: {error}") from error
    if review.api_version != _VERSION:
        raise UnreadableReviewError(f"the review is of {review.api_version!r}, not of {_VERSION}")
    return review.request


def object_of(raw: msgspec.Raw, kind: type[_Object]) -> _Object:
    """Return an object of a question.

    Raises:
        UnreadableReviewError: It cannot be read as what it is said to be.
    """
    try:
        return decoded(msgspec.json.Decoder(kind), raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableReviewError(f"the object cannot be read as {kind.__name__}: {error}") from error


def encoded_review(uid: str, verdict: AdmissionVerdict) -> bytes:
    """Return the body of an answer.

    Args:
        uid: That of the question.
        verdict: What is answered.
    """
    response: dict[str, object] = {"uid": uid, "allowed": verdict.is_allowed}
    if verdict.reason:
        response["status"] = {
            "code": int(HTTPStatus.FORBIDDEN),
            "reason": "Forbidden",
            "message": verdict.reason,
        }
    if verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(verdict.patch)).decode()
    if verdict.warnings:
        response["warnings"] = [each[:_WARNING_LENGTH_MAX] for each in verdict.warnings]
    return msgspec.json.encode({"apiVersion": _VERSION, "kind": "AdmissionReview", "response": response})


def added_entries(
    path: Sequence[str], held: Mapping[str, str], entries: Mapping[str, str]
) -> tuple[Mapping[str, object], ...]:
    """Return the operations that set entries of an object within an object.

    Args:
        path: The way to the inner object, whose parent is there.
        held: What the inner object has; without anything it may be missing.
        entries: What it is to have besides; equal entries are left out.
    """
    changed = {key: value for key, value in entries.items() if held.get(key) != value}
    if not changed:
        return ()
    if not held:
        return ({"op": "add", "path": _pointer(path), "value": changed},)
    return tuple({"op": "add", "path": _pointer((*path, key)), "value": changed[key]} for key in changed)


def _pointer(path: Sequence[str]) -> str:
    """Return a way as RFC 6901 writes it."""
    return "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in path)


resolve_structs(__name__)
