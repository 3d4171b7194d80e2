"""The user of a pod: its creator, the author of its workload, or another user who is named.

The objects of a controller run for the user of its workload, whose signature is in the annotations of the
template. The name of an account alone does not permit another user: a template that was written while no
replica answered has no signature.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, final

from ..mapping.settings import DEFAULT_NAMESPACE, DEFAULT_USER, USER_INFO, UnsignedUsers
from ..mapping.user_signatures import (
    SIGNATURE,
    UserAndGroups,
    UserInfoError,
    UserSigner,
    parsed_user_info,
    subject_of,
    subjects_of_owner,
)
from ..objects import ObjectMeta, OwnerReference
from .reviews import AdmissionRequest
from .settings import AdmissionSettings
from .templates import OPERATED_KINDS


class ChosenUser(NamedTuple):
    """The annotations with the user of a pod; or the reason for a refusal."""

    annotations: Mapping[str, str] = {}
    problem: str = ""


_NOBODY: Final = UserAndGroups(DEFAULT_USER, ())


@final
class PodUsers:
    """Chooses the users of pods, and signs them.

    Args:
        settings: The settings in force.
        signer: Signs the chosen users.
    """

    def __init__(self, settings: AdmissionSettings, signer: UserSigner) -> None:
        self._settings = settings
        self._signer = signer

    def of_created(
        self, request: AdmissionRequest, whole: ObjectMeta, annotations: Mapping[str, str]
    ) -> ChosenUser:
        """Return the user of a new pod, or of the pods of a new workload.

        Args:
            request: The write, with its author and the kind of the object.
            whole: The metadata of the object.
            annotations: The annotations of the pod, or of the template of pods.
        """
        owner = controller_of(whole)
        if owner is None:
            return self.of_named(request, whole, annotations)
        said = annotations.get(USER_INFO)
        subjects = subjects_of_owner(namespace_of(request), owner, whole)
        is_signed = said is not None and self._signer.is_signed(
            subjects, said, annotations.get(SIGNATURE, "")
        )
        if not self._settings.is_trusted_controller(request.user_info.username):
            # An operator copies the user of its workload: what it creates runs for the operator.
            is_copied = is_signed and owner.kind in OPERATED_KINDS
            return self.of_named(request, whole, {} if is_copied else annotations)
        if said is not None and is_signed:
            return self._signed(request, whole, said)
        match self._settings.unsigned_users:
            case UnsignedUsers.BELIEVED:
                return self._signed(request, whole, said or _NOBODY.annotation)
            case UnsignedUsers.NOBODY | None:
                return self._signed(request, whole, _NOBODY.annotation)
            case _:
                return ChosenUser(problem=_unsigned(owner))

    def of_named(
        self, request: AdmissionRequest, whole: ObjectMeta, annotations: Mapping[str, str]
    ) -> ChosenUser:
        """Return the user in the annotations, or else the author of the request."""
        said = annotations.get(USER_INFO)
        user, groups = request.user_info.username, request.user_info.groups
        own = UserAndGroups(user, groups)
        if said is None:
            return self._signed(request, whole, own.annotation)
        try:
            named = parsed_user_info(said)
        except UserInfoError as error:
            return ChosenUser(problem=f"the annotation {USER_INFO} cannot be used: {error}")
        if named == own or self._settings.may_name_user(user, groups):
            return self._signed(request, whole, said)
        listed = ",".join(groups)
        return ChosenUser(
            problem=f"user {user} with groups [{listed}] may not set the annotation {USER_INFO}"
        )

    def _signed(self, request: AdmissionRequest, whole: ObjectMeta, text: str) -> ChosenUser:
        subject = subject_of(request.kind.kind, namespace_of(request), whole)
        return ChosenUser({USER_INFO: text, SIGNATURE: self._signer.signature(subject, text)})

    def is_signed(self, request: AdmissionRequest, whole: ObjectMeta, annotations: Mapping[str, str]) -> bool:
        """Return whether the user in annotations was signed for the object with these annotations."""
        subject = subject_of(request.kind.kind, namespace_of(request), whole)
        said = annotations.get(USER_INFO)
        return said is not None and self._signer.is_signed((subject,), said, annotations.get(SIGNATURE, ""))


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """Return the object for which a controller has made another one, if any."""
    return next((owner for owner in metadata.owner_references if owner.controller), None)


def namespace_of(request: AdmissionRequest) -> str:
    """Return the namespace that a request is about."""
    return request.namespace or DEFAULT_NAMESPACE


def kept_user(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations to restore after an update: the former user and its signature."""
    return {
        key: before[key]
        for key in (USER_INFO, SIGNATURE)
        if USER_INFO in before and key in before and after.get(key) != before[key]
    }


def _unsigned(owner: OwnerReference) -> str:
    return (
        f"the webhook has not signed the annotation {USER_INFO} of {owner.kind} {owner.name}: "
        "change its template, or create it anew"
    )
