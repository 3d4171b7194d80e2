"""What the admission webhook does with which pods, and how two objects of the cluster say it.

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
    """A list of regular expressions, of which one has to be found in a text."""

    expressions: tuple[Pattern, ...] = ()

    @classmethod
    def of(cls, text: str) -> Patterns:
        """Read a list with commas between the expressions.

        Raises:
            ValueError: One of them is no expression; the text goes on behind "is".
        """
        parts = [part.strip() for part in text.split(",")]
        try:
            return cls(tuple(compile_pattern(part) for part in parts if part))
        except PatternError as error:
            raise ValueError(f"no list of regular expressions: {error}") from error

    def match(self, text: str) -> bool:
        """Return whether one of them is found in a text; an empty list is found in none."""
        return any(expression.search(text) for expression in self.expressions)

    def match_if_any(self, text: str) -> bool:
        """Return whether one of them is found in a text; an empty list is found in all."""
        return not self.expressions or self.match(text)


_NO_PATTERNS: Final = Patterns()
_SYSTEM_NAMESPACE: Final = Patterns.of("^kube-system$")
_CONTROLLERS: Final = Patterns.of("^system:serviceaccount:kube-system:")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionSettings:
    """Which pods the webhook marks, and who may say for whom a pod runs.

    The annotations of a namespace, where it has them, override the lists of namespaces.
    """

    process_namespaces: Patterns = _NO_PATTERNS
    """The namespaces whose pods are given to the scheduler; all if the list is empty."""
    bypass_namespaces: Patterns = _SYSTEM_NAMESPACE
    """The exceptions from that."""
    label_namespaces: Patterns = _NO_PATTERNS
    """The namespaces whose pods get the id of an application if they have none; all if the list is empty."""
    no_label_namespaces: Patterns = _NO_PATTERNS
    """The exceptions from that."""
    generate_unique_app_id: bool = False
    """Whether each pod without an application id is an application, not each namespace."""
    default_queue: str = ""
    """The queue of pods that name none; empty leaves it to the placement rules."""
    bypass_auth: bool = False
    """Whether everybody may say for whom a pod runs; then nothing is added either."""
    trust_controllers: bool = True
    """Whether what system users create for a workload runs for the user of the workload."""
    system_users: Patterns = _CONTROLLERS
    external_users: Patterns = _NO_PATTERNS
    """Further users who may say it."""
    external_groups: Patterns = _NO_PATTERNS
    """The groups whose members may say it."""
    unsigned_users: UnsignedUsers | None = None
    """What becomes of pods of a controller whose workload has no signed user; `None` is `nobody`."""
    hot_reload: bool = True
    """Whether a change of these settings takes effect without a restart."""

    def processes(self, name: str, namespace: Namespace | None) -> bool:
        """Return whether the pods of a namespace are given to the scheduler.

        Args:
            name: The name of the namespace.
            namespace: The namespace, `None` if nothing is known about it.
        """
        said = _said(namespace, NAMESPACE_ENABLED)
        if said is not None:
            return said
        return self.process_namespaces.match_if_any(name) and not self.bypass_namespaces.match(name)

    def labels(self, name: str, namespace: Namespace | None) -> bool:
        """Return whether the pods of a namespace get the id of an application.

        Args:
            name: The name of the namespace.
            namespace: The namespace, `None` if nothing is known about it.
        """
        said = _said(namespace, NAMESPACE_GENERATES_ID)
        if said is not None:
            return said
        return self.label_namespaces.match_if_any(name) and not self.no_label_namespaces.match(name)

    def may_name_user(self, user: str, groups: tuple[str, ...]) -> bool:
        """Return whether a user may say for whom a pod runs."""
        return self.external_users.match(user) or any(map(self.external_groups.match, groups))

    def is_trusted_controller(self, user: str) -> bool:
        """Return whether a user creates pods for the users of workloads."""
        return self.trust_controllers and self.system_users.match(user)


def admission_settings(defaults: ConfigMap | None, configs: ConfigMap | None) -> AdmissionSettings:
    """Read the settings of the webhook.

    Args:
        defaults: `yunikorn-defaults`, `None` if there is none.
        configs: `yunikorn-configs`, whose values override those of the defaults.

    Raises:
        ConfigMapError: A value cannot be read; the text names object, key and value.
    """
    values = values_of_config_maps(defaults, configs)
    found: dict[str, Any] = {
        field: values[key].parsed(parse) for key, (field, parse) in _READERS.items() if key in values
    }
    return AdmissionSettings(**found)


def _said(namespace: Namespace | None, annotation: str) -> bool | None:
    """Return what an annotation says: anything but `true` is no; `None` without it."""
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
"""What each key sets, and how its value is read."""
