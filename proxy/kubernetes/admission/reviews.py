"""The questions of an API server to a webhook, and the answers: `admission.k8s.io/v1`."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, TypeVar, final

import msgspec

from licorne.proxy.kubernetes.decoding import resolve_structs

from ....model.errors import LicorneError
from ..decoding import decoded
from ..objects import ApiUser

_VERSION: Final = "admission.k8s.io/v1"
_WARNING_LENGTH_MAX: Final = 256
"""An API server cuts off longer warnings."""

_Object = TypeVar("_Object")


class UnreadableReviewError(LicorneError):
    """The question cannot be read, so that the failure policy of the webhook decides."""


class RequestKind(msgspec.Struct, frozen=True):
    """The kind of the object that is written."""

    group: str = ""
    version: str = ""
    kind: str = ""


class AdmissionRequest(msgspec.Struct, frozen=True, rename="camel"):
    """A write under review."""

    uid: str
    operation: str = ""
    """`CREATE`, `UPDATE`, or another operation, for which no webhook here is registered."""
    kind: RequestKind = RequestKind()
    namespace: str = ""
    user_info: ApiUser = ApiUser()
    """The user who writes the object."""
    object: msgspec.Raw = msgspec.Raw(b"null")
    """The object after the write."""
    old_object: msgspec.Raw = msgspec.Raw(b"null")
    """The object before an update."""


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    request: AdmissionRequest
    api_version: str = ""


_REVIEW: Final = msgspec.json.Decoder(_Review)


@final
@dataclass(frozen=True, slots=True)
class AdmissionVerdict:
    """The answer to a review."""

    is_allowed: bool = True
    reason: str = ""
    """The reason for a denial."""
    patch: tuple[Mapping[str, object], ...] = ()
    """The changes to the object, as operations of a JSON patch."""
    warnings: tuple[str, ...] = ()
    """Warnings that the client shows to its user although the write is allowed."""


ADMITTED: Final = AdmissionVerdict()
"""The write passes unchanged."""


def denied(reason: str) -> AdmissionVerdict:
    """Return that a write is denied."""
    return AdmissionVerdict(is_allowed=False, reason=reason)


def request_of(body: bytes) -> AdmissionRequest:
    """Return the question in a body.

    Raises:
        UnreadableReviewError: It is not a review of the supported version.
    """
    try:
        review = _REVIEW.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableReviewError(f"the body is not an AdmissionReview: {error}") from error
    if review.api_version != _VERSION:
        raise UnreadableReviewError(f"the review is of {review.api_version!r}, not of {_VERSION}")
    return review.request


def object_of(raw: msgspec.Raw, kind: type[_Object]) -> _Object:
    """Return an object of a question.

    Raises:
        UnreadableReviewError: It cannot be read as an object of the expected type.
    """
    try:
        return decoded(msgspec.json.Decoder(kind), raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableReviewError(f"the object cannot be read as {kind.__name__}: {error}") from error


def encoded_review(uid: str, verdict: AdmissionVerdict) -> bytes:
    """Return the body of an answer.

    Args:
        uid: The uid of the question.
        verdict: The answer.
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
        path: The path to the inner object, whose parent exists.
        held: The present entries of the inner object, which may be missing if there are none.
        entries: The entries to set; those that are equal already are left out.
    """
    changed = {key: value for key, value in entries.items() if held.get(key) != value}
    if not changed:
        return ()
    if not held:
        return ({"op": "add", "path": _pointer(path), "value": changed},)
    return tuple({"op": "add", "path": _pointer((*path, key)), "value": changed[key]} for key in changed)


def _pointer(path: Sequence[str]) -> str:
    """Return a path in the notation of RFC 6901."""
    return "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in path)


resolve_structs(__name__)
