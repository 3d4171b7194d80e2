"""The settings of the admission webhook, from two objects of the cluster.

The objects are `yunikorn-defaults` and `yunikorn-configs`, the same that configure the scheduler of pods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from ....model.configuration.names import Pattern, PatternError, compile_pattern
from ..mapping.settings import (
    NAMESPACE_ENABLED,
    NAMESPACE_GENERATES_ID,
    UnsignedUsers,
    parsed_flag,
    parsed_unsigned,
    values_of_config_maps,
)
from ..objects import ConfigMap, Namespace


@final
@dataclass(frozen=True, slots=True)
class Patterns:
    """A list of regular expressions; one of them has to be found in a text."""

    expressions: tuple[Pattern, ...] = ()

    @classmethod
    def of(cls, text: str) -> Patterns:
        """Read a list of expressions separated by commas.

        Raises:
            ValueError: One of them is not a regular expression; the message continues a sentence after "is".
        """
        parts = [part.strip() for part in text.split(",")]
        try:
            return cls(tuple(compile_pattern(part) for part in parts if part))
        except PatternError as error:
            raise ValueError(f"not a list of regular expressions: {error}") from error

    def match(self, text: str) -> bool:
        """Return whether one of them is found in a text; an empty list never matches."""
        return any(expression.search(text) for expression in self.expressions)

    def match_if_any(self, text: str) -> bool:
        """Return whether one of them is found in a text; an empty list always matches."""
        return not self.expressions or self.match(text)


_NO_PATTERNS: Final = Patterns()
_SYSTEM_NAMESPACE: Final = Patterns.of("^kube-system$")
_CONTROLLERS: Final = Patterns.of("^system:serviceaccount:kube-system:")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionSettings:
    """The pods that the webhook marks, and the users who may choose the user of a pod.

    The annotations of a namespace override the lists of namespaces.
    """

    process_namespaces: Patterns = _NO_PATTERNS
    """The namespaces whose pods are given to the scheduler; all if the list is empty."""
    bypass_namespaces: Patterns = _SYSTEM_NAMESPACE
    """The exceptions from `process_namespaces`."""
    label_namespaces: Patterns = _NO_PATTERNS
    """The namespaces whose pods get an application id if they have none; all if the list is empty."""
    no_label_namespaces: Patterns = _NO_PATTERNS
    """The exceptions from `label_namespaces`."""
    generate_unique_app_id: bool = False
    """Whether each pod without an application id becomes an application, instead of each namespace."""
    default_queue: str = ""
    """The queue of pods without one; if empty, the placement rules decide."""
    bypass_auth: bool = False
    """Whether everybody may choose the user of a pod; then no user is added either."""
    trust_controllers: bool = True
    """Whether the objects that system users create for a workload run for the user of the workload."""
    system_users: Patterns = _CONTROLLERS
    external_users: Patterns = _NO_PATTERNS
    """Further users who may choose the user of a pod."""
    external_groups: Patterns = _NO_PATTERNS
    """The groups whose members may choose the user of a pod."""
    unsigned_users: UnsignedUsers | None = None
    """How pods are treated whose workload has no signed user; `None` means `nobody`."""
    hot_reload: bool = True
    """Whether a change of these settings takes effect without a restart."""

    def processes(self, name: str, namespace: Namespace | None) -> bool:
        """Return whether the pods of a namespace are given to the scheduler.

        Args:
            name: The name of the namespace.
            namespace: The namespace, `None` if it is unknown.
        """
        said = _said(namespace, NAMESPACE_ENABLED)
        if said is not None:
            return said
        return self.process_namespaces.match_if_any(name) and not self.bypass_namespaces.match(name)

    def labels(self, name: str, namespace: Namespace | None) -> bool:
        """Return whether the pods of a namespace get an application id.

        Args:
            name: The name of the namespace.
            namespace: The namespace, `None` if it is unknown.
        """
        said = _said(namespace, NAMESPACE_GENERATES_ID)
        if said is not None:
            return said
        return self.label_namespaces.match_if_any(name) and not self.no_label_namespaces.match(name)

    def may_name_user(self, user: str, groups: tuple[str, ...]) -> bool:
        """Return whether a user may choose the user of a pod."""
        return self.external_users.match(user) or any(map(self.external_groups.match, groups))

    def is_trusted_controller(self, user: str) -> bool:
        """Return whether a user creates pods for the users of workloads."""
        return self.trust_controllers and self.system_users.match(user)


def admission_settings(defaults: ConfigMap | None, configs: ConfigMap | None) -> AdmissionSettings:
    """Read the settings of the webhook.

    Args:
        defaults: `yunikorn-defaults`, `None` if it does not exist.
        configs: `yunikorn-configs`, whose values override the defaults.

    Raises:
        ConfigMapError: A value cannot be read; the message names object, key and value.
    """
    values = values_of_config_maps(defaults, configs)
    found: dict[str, Any] = {
        field: values[key].parsed(parse) for key, (field, parse) in _READERS.items() if key in values
    }
    return AdmissionSettings(**found)


def _said(namespace: Namespace | None, annotation: str) -> bool | None:
    """Return the value of an annotation: `true` is yes, anything else no; `None` if it is missing."""
    text = None if namespace is None else namespace.metadata.annotations.get(annotation)
    return None if text is None else text == "true"


_FILTERING: Final = "admissionController.filtering."
_ACCESS: Final = "admissionController.accessControl."
_READERS: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    f"{_FILTERING}processNamespaces": ("process_namespaces", Patterns.of),
    f"{_FILTERING}bypassNamespaces": ("bypass_namespaces", Patterns.of),
    f"{_FILTERING}labelNamespaces": ("label_namespaces", Patterns.of),
    f"{_FILTERING}noLabelNamespaces": ("no_label_namespaces", Patterns.of),
    f"{_FILTERING}generateUniqueAppId": ("generate_unique_app_id", parsed_flag),
    f"{_FILTERING}defaultQueue": ("default_queue", str),
    f"{_ACCESS}bypassAuth": ("bypass_auth", parsed_flag),
    f"{_ACCESS}unsignedUsers": ("unsigned_users", parsed_unsigned),
    f"{_ACCESS}trustControllers": ("trust_controllers", parsed_flag),
    f"{_ACCESS}systemUsers": ("system_users", Patterns.of),
    f"{_ACCESS}externalUsers": ("external_users", Patterns.of),
    f"{_ACCESS}externalGroups": ("external_groups", Patterns.of),
    "service.enableConfigHotRefresh": ("hot_reload", parsed_flag),
}
"""The field that each key sets, and the reader of its value."""
