"""The templates of pods in workloads: where they are, and the changes that set annotations in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, final

import msgspec

from licorne.proxy.kubernetes.decoding import resolve_structs

from ..mapping.pod_groups import GROUP_KINDS, TemplatePath
from ..objects import ObjectMeta
from .reviews import added_entries, object_of

_TEMPLATE: Final = ("spec", "template")
_RAY: Final = next(each.templates for each in GROUP_KINDS if each.name == "RayCluster")
_OF_OPERATORS: Final[Mapping[str, tuple[TemplatePath, ...]]] = {
    **{each.name: each.templates for each in GROUP_KINDS if each.templates},
    "RayJob": (
        *(("spec", "rayClusterSpec", *path[1:]) for path in _RAY),
        ("spec", "submitterPodTemplate"),
    ),
    "RayService": tuple(("spec", "rayClusterConfig", *path[1:]) for path in _RAY),
}
OPERATED_KINDS: Final = frozenset(_OF_OPERATORS)
"""The workloads whose pods an operator creates that is not a part of Kubernetes."""
_TEMPLATES: Final[Mapping[str, tuple[TemplatePath, ...]]] = {
    **dict.fromkeys(
        ("Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Job", "ReplicationController"),
        (_TEMPLATE,),
    ),
    "CronJob": (("spec", "jobTemplate", *_TEMPLATE),),
    "PodTemplate": (("template",),),
    **_OF_OPERATORS,
}
WORKLOAD_KINDS: Final = frozenset(_TEMPLATES)
"""The kinds of workloads."""


class Labelled(msgspec.Struct, frozen=True):
    """Any object of which only the metadata are read."""

    metadata: ObjectMeta | None = None


class _Element(msgspec.Struct, frozen=True, rename="camel"):
    """An element of a list of Jobs or workers, with its name."""

    name: str = ""
    group_name: str = ""


@final
class PodTemplate(NamedTuple):
    """A template of pods in a workload."""

    path: tuple[str, ...] = ()
    """The fields and positions from the workload to the template."""
    raw: msgspec.Raw = msgspec.Raw(b"{}")
    metadata: ObjectMeta | None = None

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""
        return (self.metadata or ObjectMeta()).annotations

    def patch(self, annotations: Mapping[str, str]) -> tuple[Mapping[str, object], ...]:
        """Return the operations that set annotations."""
        if self.metadata is None and annotations:
            pointer = "/" + "/".join((*self.path, "metadata"))
            return ({"op": "add", "path": pointer, "value": {"annotations": annotations}},)
        return added_entries((*self.path, "metadata", "annotations"), self.annotations, annotations)


def templates_of(kind: str, workload: msgspec.Raw) -> dict[tuple[str, ...], PodTemplate]:
    """Return the templates of a workload by their fields and names, which stay when others come or go.

    Raises:
        UnreadableReviewError: The workload cannot be read.
    """
    templates: dict[tuple[str, ...], PodTemplate] = {}
    for way in _TEMPLATES[kind]:
        for key, path, raw in _found(workload, way, (), ()):
            # Elements of a list may have equal names; no key ends like this.
            unique = (*path, "again") if key in templates else key
            templates[unique] = PodTemplate(path, raw, object_of(raw, Labelled).metadata)
    return templates


def _found(
    raw: msgspec.Raw, way: TemplatePath, key: tuple[str, ...], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], msgspec.Raw]]:
    if bytes(raw) == b"null":
        return
    if not way:
        yield key, path, raw
    elif way[0] == "*":
        for number, element in enumerate(object_of(raw, list[msgspec.Raw])):
            named = object_of(element, _Element)
            name = named.name or named.group_name or str(number)
            yield from _found(element, way[1:], (*key, name), (*path, str(number)))
    else:
        inner = object_of(raw, dict[str, msgspec.Raw]).get(way[0], msgspec.Raw(b"null"))
        yield from _found(inner, way[1:], (*key, way[0]), (*path, way[0]))


resolve_structs(__name__)
