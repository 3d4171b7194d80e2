"""What a namespace says about the queue that is made for its applications: tags of applications.

The annotations hold quantities of Kubernetes as JSON; the tags hold amounts of the scheduler as JSON. What
cannot be read gives no tag and a warning, since the pods of the namespace can run without.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

import msgspec

from ....model.resources.quantities import QuantityError
from ...si import constants
from ..objects import Namespace
from .names import (
    NAMESPACE_GUARANTEED,
    NAMESPACE_MAX_APPLICATIONS,
    NAMESPACE_MAX_CPU,
    NAMESPACE_MAX_MEMORY,
    NAMESPACE_PARENT_QUEUE,
    NAMESPACE_QUOTA,
    PARENT_QUEUE_TAG,
)
from .quantities import amounts, quantity_nano

__all__ = ["NamespaceTags", "namespace_tags"]

_TEXTS: Final = msgspec.json.Decoder(dict[str, str])


class NamespaceTags(NamedTuple):
    """The tags that an application has from its namespace, and what was left out."""

    tags: dict[str, str]
    warnings: tuple[str, ...]
    """A sentence for each annotation that cannot be read."""


def namespace_tags(namespace: Namespace) -> NamespaceTags:
    """Return the tags that the applications of a namespace get."""
    annotations = namespace.metadata.annotations
    tags: dict[str, str] = {}
    warnings: list[str] = []
    quota_tag = constants.APP_TAG_NAMESPACE_RESOURCE_QUOTA
    if annotations.get(NAMESPACE_QUOTA):
        _put_quota(tags, warnings, quota_tag, NAMESPACE_QUOTA, annotations[NAMESPACE_QUOTA])
    else:
        older = {"cpu": NAMESPACE_MAX_CPU, "memory": NAMESPACE_MAX_MEMORY}
        texts = {name: annotations[key] for name, key in older.items() if annotations.get(key)}
        _put_quota(tags, warnings, quota_tag, " and ".join(older.values()), json.dumps(texts))
    if annotations.get(NAMESPACE_GUARANTEED):
        guaranteed_tag = constants.APP_TAG_NAMESPACE_RESOURCE_GUARANTEED
        _put_quota(tags, warnings, guaranteed_tag, NAMESPACE_GUARANTEED, annotations[NAMESPACE_GUARANTEED])
    count = annotations.get(NAMESPACE_MAX_APPLICATIONS, "")
    if re.fullmatch(r"[0-9]{1,19}", count):
        tags[constants.APP_TAG_NAMESPACE_RESOURCE_MAX_APPS] = count
    elif count:
        warnings.append(f"annotation {NAMESPACE_MAX_APPLICATIONS} is ignored: {count!r} is no whole number")
    if annotations.get(NAMESPACE_PARENT_QUEUE):
        tags[PARENT_QUEUE_TAG] = annotations[NAMESPACE_PARENT_QUEUE]
    return NamespaceTags(tags, tuple(warnings))


def _put_quota(tags: dict[str, str], warnings: list[str], tag: str, annotation: str, text: str) -> None:
    """Set a tag from the JSON of an annotation, unless it is zero throughout."""
    try:
        resource = _quota(text)
    except (msgspec.DecodeError, QuantityError) as error:
        warnings.append(f"annotation {annotation} is ignored: {text!r}: {error}")
        return
    if any(resource.values()):
        values = {name: {"value": amount} for name, amount in resource.items()}
        tags[tag] = json.dumps({"resources": values}, separators=(",", ":"))


def _quota(text: str) -> dict[str, int]:
    nanos = {name: quantity_nano(quantity) for name, quantity in _TEXTS.decode(text).items()}
    resource = amounts(nanos)
    for name, amount in resource.items():
        if amount < 0:
            raise QuantityError(f"{name} is negative")
    return resource
