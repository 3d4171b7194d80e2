"""The application and the ask of `licorne dry-run`, as a resource manager would send them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...model.errors import LicorneError
from ...model.resources.quantities import QuantityError
from ...model.resources.texts import resource_from_texts
from ...model.values.allocation import REQUIRED_NODE_TAG
from ..si import si_pb2 as si

__all__ = ["new_application", "new_ask"]

_NAME: Final = "dry-run"
"""The name of a new application and of a new ask."""


def new_application(
    user: str, groups: Sequence[str], queue: str, tags: Sequence[str], partition: str
) -> si.AddApplicationRequest:
    """Return a new application; tags are texts of the form `NAME=VALUE`.

    Raises:
        LicorneError: A tag is of another form.
    """
    return si.AddApplicationRequest(
        applicationID=_NAME,
        queueName=queue,
        partitionName=partition,
        ugi=si.UserGroupInformation(user=user, groups=groups),
        tags=_pairs("--tag", tags),
    )


def new_ask(
    of: str | None, resources: Sequence[str], priority: int, required_node: str, partition: str
) -> si.Allocation:
    """Return a new ask of an application.

    Args:
        of: The id of the application; `None` for that of `new_application`.
        resources: What it wants, texts of the form `TYPE=QUANTITY`.
        priority: Its priority.
        required_node: The one node that it may run on; empty for any.
        partition: The partition of the application; empty for `default`.

    Raises:
        LicorneError: A resource is of another form, or no quantity.
    """
    try:
        wanted = resource_from_texts(_pairs("--resource", resources))
    except QuantityError as error:
        raise LicorneError(f"--resource: {error}") from error
    quantities = {name: si.Quantity(value=quantity) for name, quantity in wanted.items()}
    return si.Allocation(
        allocationKey=_NAME,
        applicationID=of or _NAME,
        partitionName=partition,
        resourcePerAlloc=si.Resource(resources=quantities),
        priority=priority,
        allocationTags={REQUIRED_NODE_TAG: required_node} if required_node else {},
    )


def _pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise LicorneError(f"{option} {text}: a name and a value with = between are wanted")
        pairs[name] = value
    return pairs
