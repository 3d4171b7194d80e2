"""Splits requests by the partitions of their entries, and reads the partitions of a configuration."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, TypeAlias, TypeVar

from ....model.configuration.names import did_you_mean
from ....model.configuration.problems import ConfigurationError
from ....model.configuration.reader import DEFAULT_CONFIGURATION, load, unusable_rule_problems
from ....model.errors import LicorneError, RequestError
from ....model.values.messages import full_partition_name, short_partition_name
from ...si import constants
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from ...si.messages import BATCH_BYTES_MAX, MESSAGE_BYTES_MAX, SiRequest, entry_beyond

LinkRequest: TypeAlias = "si.NodeRequest | si.ApplicationRequest | si.AllocationRequest | v1.Reconsideration"
"""The requests that a link sends."""
_Entry = TypeVar("_Entry")
ENTRY_BYTES_MAX: Final = BATCH_BYTES_MAX
"""The largest size of a node, an application, an ask or an allocation, in bytes. Later changes of its size
are added in its record: three times as much still fits in a message."""
_REQUEST_BYTES_MAX: Final = MESSAGE_BYTES_MAX - 64
"""The largest size of a request for a partition, in bytes: a session adds some to it."""
_OLDER: Final = "the door does not speak the older generation of si.v1: {} is of that one"


def short_name(name: str, rm_id: str) -> str:
    """Return the name of a partition in the configuration; for a partition of another RM its full name."""
    full = full_partition_name(name, rm_id)
    short = short_partition_name(full)
    return short if full == f"[{rm_id}]{short}" else full


def nodes_by_partition(request: si.NodeRequest) -> Mapping[str, si.NodeRequest]:
    """Return the parts of a request by the name of the partition.

    Raises:
        RequestError: The request has a field of the older generation of `si.v1`.
    """
    for node in request.nodes:
        if node.existingAllocations or node.HasField("occupiedResource"):
            raise RequestError(_OLDER.format(f"what node {node.nodeID!r} has besides its size"))
    parts = _split(
        request.nodes, lambda node: node.attributes.get(constants.NODE_PARTITION, ""), request.rmID
    )
    if len(parts) == 1:
        return dict.fromkeys(parts, request)
    return {name: si.NodeRequest(rmID=request.rmID, nodes=nodes) for name, nodes in parts.items()}


def applications_by_partition(request: si.ApplicationRequest) -> Mapping[str, si.ApplicationRequest]:
    """Return the parts of a request by the name of the partition."""
    new = _split(request.new, lambda entry: entry.partitionName, request.rmID)
    gone = _split(request.remove, lambda entry: entry.partitionName, request.rmID)
    names = dict.fromkeys([*new, *gone])
    if len(names) == 1:
        return dict.fromkeys(names, request)
    return {
        name: si.ApplicationRequest(rmID=request.rmID, new=new.get(name, ()), remove=gone.get(name, ()))
        for name in names
    }


def allocations_by_partition(request: si.AllocationRequest) -> Mapping[str, si.AllocationRequest]:
    """Return the parts of a request by the name of the partition.

    Raises:
        RequestError: The request has a field of the older generation of `si.v1`.
    """
    if request.asks or request.releases.allocationAsksToRelease:
        raise RequestError(_OLDER.format("a separate field for asks"))
    new = _split(request.allocations, lambda entry: entry.partitionName, request.rmID)
    gone = _split(request.releases.allocationsToRelease, lambda entry: entry.partitionName, request.rmID)
    names = dict.fromkeys([*new, *gone])
    if len(names) == 1:
        return dict.fromkeys(names, request)
    return {
        name: si.AllocationRequest(
            rmID=request.rmID,
            allocations=new.get(name, ()),
            releases=si.AllocationReleasesRequest(allocationsToRelease=gone[name]) if name in gone else None,
        )
        for name in names
    }


def _split(
    entries: Iterable[_Entry], partition_of: Callable[[_Entry], str], rm_id: str
) -> dict[str, list[_Entry]]:
    """Return the entries by the name of their partition, each in order."""
    found: dict[str, list[_Entry]] = {}
    names: dict[str, str] = {}  # Most requests name few partitions.
    for entry in entries:
        written = partition_of(entry)
        name = names.get(written)
        if name is None:
            name = names[written] = short_name(written, rm_id)
        found.setdefault(name, []).append(entry)
    return found


def check_size(request: SiRequest) -> None:
    """Refuse a request that no worker would accept now or in a recovery, before it is noted.

    Raises:
        RequestError: The request or an entry is too large; the text names it.
    """
    size_bytes = request.ByteSize()
    if size_bytes <= ENTRY_BYTES_MAX:
        return
    beyond = entry_beyond(request, ENTRY_BYTES_MAX)
    if beyond is not None:
        text = f"{beyond}, more than the {ENTRY_BYTES_MAX:,} that the door recovers"
        raise RequestError(f"{type(request).__name__} is refused: {text}")
    if size_bytes > _REQUEST_BYTES_MAX:
        text = f"it has {size_bytes:,} bytes, and a worker takes {_REQUEST_BYTES_MAX:,} at once"
        raise RequestError(f"{type(request).__name__} is refused: {text}")


def partition_names(
    configuration: str, what: str, wanted: Collection[str] | None, *, refuse_rules: bool = False
) -> list[str]:
    """Return the names of the partitions of a configuration, or a selection of them.

    Args:
        configuration: The text of the configuration, empty for the default.
        what: The action that needs it, for the error.
        wanted: The selected names, `None` for all.
        refuse_rules: Whether unusable placement rules are refused: a worker may be missing to do so.

    Raises:
        RequestError: The configuration is refused, or lacks a selected partition.
    """
    try:
        config = load(configuration or DEFAULT_CONFIGURATION)
        if refuse_rules and (problems := unusable_rule_problems(config)):
            raise ConfigurationError(problems)
        names = [each.name for each in config.partitions]
    except LicorneError as error:
        raise RequestError(f"{what} failed: {error}") from error
    for name in wanted or ():
        if name not in names:
            hint = did_you_mean(name, names)
            raise RequestError(
                f"{what} failed: the configuration has no partition {name!r:.100}, "
                f"which `partitions` names{hint}"
            )
    return names if wanted is None else [name for name in names if name in wanted]
