"""The users of pods, and the signatures of the webhook for them, in two annotations.

A signature is for one namespace, and one name of a pod or workload there, or the beginning of names that the
API server generates. A controller copies the annotations of a template: the signature identifies the
template.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable
from typing import Final, NamedTuple, final

import msgspec

from ....model.errors import LicorneError
from ..decoding import resolve_structs
from ..objects import ObjectMeta, OwnerReference

SIGNATURE: Final = "licorne.io/user-signature"
"""The annotation of the signature, next to the annotation of the user."""
_HASH_LABEL: Final = "pod-template-hash"
"""The label of pods of a Deployment with the end of the name of their ReplicaSet."""
_GENERATED_LENGTH: Final = 5
_PREFIX_LENGTH_MAX: Final = 58
"""The API server cuts longer names before it appends the generated characters."""


class UserAndGroups(NamedTuple):
    """The user of a pod, and the user's groups."""

    user: str
    groups: tuple[str, ...]

    @property
    def annotation(self) -> str:
        """The text of the annotation that names both."""
        return msgspec.json.encode({"user": self.user, "groups": self.groups}).decode()


class UserInfoError(LicorneError):
    """The annotation of a user cannot be read."""


class _UserRead(msgspec.Struct, frozen=True):
    user: str = ""
    groups: tuple[str, ...] | None = None


_USER: Final = msgspec.json.Decoder(_UserRead)


def parsed_user_info(text: str) -> UserAndGroups:
    """Return the user and the groups in the JSON of an annotation; the user may be empty.

    Raises:
        UserInfoError: The text is not JSON of a user and groups.
    """
    try:
        read = _USER.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UserInfoError(f"{text!r} is not JSON of a user and groups: {error}") from error
    return UserAndGroups(read.user, read.groups or ())


class Subject(NamedTuple):
    """The object of a signature."""

    kind: str
    """`Pod`, or the kind of the workload with the template."""
    namespace: str
    name: str


@final
class UserSigner:
    """Signs users, and verifies signatures. Threads share it.

    Args:
        key: The secret that all replicas share.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def signature(self, subject: Subject, user_info: str) -> str:
        """Return the signature of a user, 64 hexadecimal digits."""
        text = json.dumps([*subject, user_info])
        return hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def is_signed(self, subjects: Iterable[Subject], user_info: str, signature: str) -> bool:
        """Return whether a signature is valid for a user and one of the subjects."""
        given = signature.encode("utf-8", "surrogatepass")
        return any(
            hmac.compare_digest(self.signature(subject, user_info).encode(), given) for subject in subjects
        )


def subject_of(kind: str, namespace: str, metadata: ObjectMeta) -> Subject:
    """Return the subject of an object's signature; its name may not be generated yet."""
    return Subject(kind, namespace, metadata.generate_name[:_PREFIX_LENGTH_MAX] or metadata.name)


def subjects_of_owner(namespace: str, owner: OwnerReference, metadata: ObjectMeta) -> list[Subject]:
    """Return the workloads from which a controlled object may have its annotations.

    Args:
        namespace: The namespace of both.
        owner: The workload for which the controller has created it.
        metadata: The metadata of the object.
    """
    owners = [(owner.kind, owner.name)]
    ending = f"-{metadata.labels.get(_HASH_LABEL, '')}"
    if owner.kind == "ReplicaSet" and len(ending) > 1 and owner.name.endswith(ending):
        owners.append(("Deployment", owner.name.removesuffix(ending)))
    return [
        Subject(kind, namespace, name)
        for kind, whole in owners
        for name in (whole, whole[:-_GENERATED_LENGTH])
    ]


resolve_structs(__name__)
