"""The asks and allocations of one partition of one resource manager (RM), and those that are about to end.

An ask is kept as the bytes from the RM, and becomes an allocation when a worker reports its node. An
allocation that the RM ends is *ending* until the worker has confirmed it. An allocation that a worker wants
to end stays until the RM confirms it, with the session of that request: the worker of a later session does
not know it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from sys import intern
from typing import Final, TypeAlias, final

from ....model.applications.life import walltime_of
from ....model.resources.comparisons import has_negative
from ....model.resources.resource import strictly_greater_than_zero
from ....model.values.allocation import WALLTIME_TAG
from ...si import si_pb2 as si
from ...si.messages import message_batches
from ...si.older_generation import termination_of
from ...si.reading import RequestReader
from ..client.recovery_parts import is_foreign
from ..client.recovery_progress import RecoveryRejection, RejectedKind
from .entries import (
    UNANSWERED,
    ForeignAllocations,
    HeldAllocations,
    HeldEntry,
    RecentNames,
    has_size,
    placed_again,
    without_node,
)

_Identity: TypeAlias = "tuple[str, str]"
"""An application and a key."""
_NODES_GONE_MAX: Final = 4_096
"""The number of removed nodes that are kept: when one comes back, its old allocations are still ending."""
BATCH_MAX: Final = 1_000
"""The largest number of entries in a message that repeats known entries."""
_RELEASED_TEXT: Final = "allocation remove as per RM request"
_TO_CONFIRM: Final = frozenset({si.TIMEOUT, si.PREEMPTED_BY_SCHEDULER, si.PLACEHOLDER_REPLACED})
"""The releases that a worker announces before the end: the RM ends the allocation, and confirms it."""
_ECHOED: Final = frozenset({si.UNKNOWN_TERMINATION_TYPE, si.STOPPED_BY_RM})
"""The releases of the RM that the worker answers."""
_TERMINATIONS: Final = frozenset(si.TerminationType.values())
_SILENT: Final = ""


@final
class AllocationRecord:
    """The asks and allocations; its owner guards it.

    Args:
        partition: The full name of the partition.
        has_node: Returns whether the RM has a node of this id in the partition.
    """

    def __init__(self, partition: str, has_node: Callable[[str], bool]) -> None:
        self._partition = partition
        self._has_node = has_node
        self._reader = RequestReader()
        self._held: dict[str, dict[str, HeldEntry]] = {}
        """The entries by application and key."""
        self._ending: dict[_Identity, str] = {}
        """The entries that the RM has ended and no worker has confirmed, each with the message of the
        release; `_SILENT` if the RM had been asked to end it, and waits for nothing."""
        self._refusals: dict[_Identity, list[bytes]] = {}
        """Requests of one entry that will be rejected, and change nothing."""
        self._nodes_gone: dict[str, None] = {}
        self._gone = RecentNames()
        """The identities that are not held any longer: a worker may still mention them."""
        self._foreign = ForeignAllocations(self._gone)
        self._changed: set[_Identity] = set()
        """The entries that the RM has changed later: the worker may still answer for their old form."""

    def has_any(self, application_id: str) -> bool:
        """Return whether an application has asks or allocations."""
        return application_id in self._held

    # ------------------------------------------------------------------------------------- requests

    def note(self, request: si.AllocationRequest, session: int) -> si.AllocationRequest:
        """Note a request before it is sent; return the request to send instead."""
        held = self._held
        for message in request.allocations:
            if message.nodeID or message.allocationTags:
                self._note_special(message)
                continue
            name, key = message.applicationID, message.allocationKey
            of_application = held.get(name)
            if of_application is None:
                if not name:
                    self._refuse(message)
                    continue
                of_application = held[name] = {}
            if key in of_application:
                self._change(message, of_application[key])
                continue
            of_application[key] = HeldEntry(message.SerializeToString(), "", 0)
        rewritten = [
            place
            for place, release in enumerate(request.releases.allocationsToRelease)
            if self._note_release(release, session)
        ]
        if not rewritten:
            return request
        instead = si.AllocationRequest()
        instead.CopyFrom(request)
        for place in rewritten:
            instead.releases.allocationsToRelease[place].terminationType = si.STOPPED_BY_RM
        return instead

    def _note_special(self, message: si.Allocation) -> None:
        """Note an allocation that the RM has placed, an allocation of others, or an ask with tags."""
        name, key, node = message.applicationID, message.allocationKey, message.nodeID
        if is_foreign(message):
            self._note_foreign(message)
        elif not name:
            self._refuse(message)
        elif (known := self._held.get(name, {}).get(key)) is not None:
            self._change(message, known)
        else:
            ask = message.SerializeToString()
            entry = HeldEntry(ask, intern(node), UNANSWERED if node else 0)
            self._held.setdefault(name, {})[key] = entry

    def _note_foreign(self, message: si.Allocation) -> None:
        key, node = message.allocationKey, message.nodeID
        if key in self._foreign:
            size = self._reader.resource(message.resourcePerAlloc)
            if has_negative(size) or not self._has_node(node):
                self._refuse(message)
                return
            self._foreign.drop(key)
        self._foreign.add(key, intern(node), message.SerializeToString())

    def _change(self, message: si.Allocation, known: HeldEntry) -> None:
        """Note a change of the size or walltime of an entry, or that the RM has placed its ask."""
        node = message.nodeID
        if not strictly_greater_than_zero(self._reader.resource(message.resourcePerAlloc)) or (
            node and not self._has_node(node)
        ):
            self._refuse(message)
            return
        _update(known, message)
        self._changed.add((message.applicationID, message.allocationKey))
        if node and not known.node:
            known.node, known.session = intern(node), UNANSWERED

    def _refuse(self, message: si.Allocation) -> None:
        """Note an entry that will be rejected, and changes nothing."""
        identity = (message.applicationID, message.allocationKey)
        request = si.AllocationRequest(allocations=[message])
        self._refusals.setdefault(identity, []).append(request.SerializeToString())

    def _drop(self, name: str, key: str) -> None:
        """Forget an ask or allocation of the record."""
        self._gone.add((name, key))
        self._changed.discard((name, key))
        of_application = self._held[name]
        del of_application[key]
        if not of_application:
            del self._held[name]

    # ------------------------------------------------------------------------------ releases of the RM

    def _note_release(self, release: si.AllocationRelease, session: int) -> bool:
        """Note a release of the RM; return whether it has to be sent as `STOPPED_BY_RM`."""
        name, key = release.applicationID, release.allocationKey
        if termination_of(release).refusal:
            request = si.AllocationRequest()
            request.releases.allocationsToRelease.add().CopyFrom(release)
            self._refusals.setdefault((name, key), []).append(request.SerializeToString())
            return False
        if not name:
            self._foreign.drop(key)
            return False
        if not key:
            for each in [*self._held.get(name, ())]:
                self._end(name, each, release.terminationType, session, is_rewritten=False)
            return False
        return self._end(name, key, release.terminationType, session, is_rewritten=True)

    def _end(self, name: str, key: str, kind: int, session: int, *, is_rewritten: bool) -> bool:
        """Note that the RM ends an entry; return whether to send the release as `STOPPED_BY_RM`."""
        entry = self._held.get(name, {}).get(key)
        if entry is None:
            return False
        if not entry.node:
            if kind not in (si.TIMEOUT, si.SCHEDULING_FAILED_ON_RM):
                self._drop(name, key)
            else:
                self._changed.add((name, key))  # The worker may have placed it before it reads the release.
            return False
        if kind == si.SCHEDULING_FAILED_ON_RM and (entry.session <= 0 or entry.session != session):
            entry.ask, entry.node, entry.session = without_node(entry.ask), "", 0
            return False
        self._drop(name, key)
        if kind in _ECHOED:
            self._ending[name, key] = _RELEASED_TEXT
        elif is_rewritten and kind in _TO_CONFIRM and 0 < entry.session < session:
            self._ending[name, key] = _SILENT
            return True
        return False

    def end_application(self, name: str) -> None:
        """Note that the RM removes an application with all its asks and allocations."""
        for key, entry in [*self._held.get(name, {}).items()]:
            if entry.node:
                self._ending[name, key] = f"Application {name} Removed"
            self._drop(name, key)

    def end_node(self, node_id: str) -> None:
        """Note that the RM removes a node; the worker reports which allocations end with it."""
        self._foreign.drop_node(node_id)
        self._nodes_gone.pop(node_id, None)
        self._nodes_gone[node_id] = None
        if len(self._nodes_gone) > _NODES_GONE_MAX:
            del self._nodes_gone[next(iter(self._nodes_gone))]

    def begin_node(self, node_id: str) -> None:
        """Note that the RM has a new node: old allocations on a node of this id are still ending."""
        if node_id not in self._nodes_gone:
            return
        del self._nodes_gone[node_id]
        for name, key, entry in [*self._all()]:
            if entry.node == node_id:
                self._ending[name, key] = f"Node {node_id} Removed"
                self._drop(name, key)

    def _all(self) -> Iterator[tuple[str, str, HeldEntry]]:
        for name, of_application in self._held.items():
            for key, entry in of_application.items():
                yield name, key, entry

    # -------------------------------------------------------------------------------------- answers

    def expect_rejections(self, request: si.AllocationRequest) -> None:
        """Note that a request without a partition is sent: its asks and allocations will be rejected."""
        for message in request.allocations:
            self._refuse(message)

    def doubt(self, response: si.AllocationResponse) -> str:
        """Return the part of a response that contradicts the requests sent, as a text; empty without one."""
        held, nodes = self._held, set[str]()
        keys: list[str] = []
        for each in response.new:  # The expected case must be fast.
            name, key, node = each.applicationID, each.allocationKey, each.nodeID
            entry = held[name].get(key) if name in held else None
            keys.append(key)
            if (
                entry is None
                or entry.node
                or each.partitionName
                or (node not in nodes and not self._has_node(node))
                or not has_size(entry, each.resourcePerAlloc)
            ):
                why = self._doubt_placement(each, entry)
                if why:
                    return f"it placed ask {key!r:.100} of {name!r:.100}{why}"
            else:
                nodes.add(node)
        if len(set(keys)) < len(keys):
            placed = Counter((each.applicationID, each.allocationKey) for each in response.new)
            if any(count > 1 and not self._is_unsure(identity) for identity, count in placed.items()):
                return "it placed an ask twice in one response"
        return self._doubt_ends(response)

    def _doubt_ends(self, response: si.AllocationResponse) -> str:
        """Return the impossible part of the releases and rejections in a response, empty without one."""
        for released in response.released:
            if not self.may_have(released.applicationID, released.allocationKey) or (
                released.partitionName not in ("", self._partition)
            ):
                where = f"of {released.applicationID!r:.100} in partition {released.partitionName!r:.100}"
                return f"it ended {released.allocationKey!r:.100} {where}, which was never there"
            if released.terminationType not in _TERMINATIONS:
                return f"it ended {released.allocationKey!r:.100} for a reason that si.v1 does not have"
        for rejected in response.rejectedAllocations:
            name, key = rejected.applicationID, rejected.allocationKey
            if not (self.may_have(name, key) or self.may_have("", key)):
                return f"it rejected {key!r:.100} of {name!r:.100}, which was never sent"
        if response.releasedAsks or response.rejected:
            return "it used fields of the older generation of si.v1"
        return ""

    def _doubt_placement(self, placed: si.Allocation, entry: HeldEntry | None) -> str:
        """Return the impossible part of a placement, empty without one."""
        name, key, node = placed.applicationID, placed.allocationKey, placed.nodeID
        if placed.partitionName not in ("", self._partition):
            return f" in partition {placed.partitionName!r:.100}: that is not its own"
        is_known = self._has_node(node) or node in self._nodes_gone
        if not is_known and len(self._nodes_gone) < _NODES_GONE_MAX:
            return f" on node {node!r:.100}: there is no such node"
        if entry is None:
            return "" if self.may_have(name, key) else ", which was never asked"
        if self._is_unsure((name, key)):
            return ""
        if entry.node and entry.session != UNANSWERED:
            return f" on node {node!r:.100}: it is on {entry.node!r:.100} already"
        if not has_size(entry, placed.resourcePerAlloc):
            return f" on node {node!r:.100} with another size than it was asked with"
        return ""

    def _is_unsure(self, identity: _Identity) -> bool:
        """Return whether a placement may be of an earlier ask with this key, or of an earlier form."""
        return identity in self._changed or identity in self._refusals or self._gone.may_have(identity)

    def may_have(self, name: str, key: str) -> bool:
        """Return whether there is an ask or allocation, or was one recently."""
        return (
            key in self._held.get(name, ())
            or (name, key) in self._ending
            or (name, key) in self._refusals
            or (not name and key in self._foreign)
            or self._gone.may_have((name, key))
        )

    def take(self, response: si.AllocationResponse, session: int) -> si.AllocationResponse:
        """Note a response of a worker; return the part that the RM gets."""
        for placed in response.new:
            name, key = placed.applicationID, placed.allocationKey
            entry = self._held.get(name, {}).get(key)
            if entry is None:
                # The RM has withdrawn it in the meantime: its release follows.
                self._ending.setdefault((name, key), _RELEASED_TEXT)
                continue
            entry.node, entry.session = intern(placed.nodeID), 0
        rejected, released = response.rejectedAllocations, response.released
        for rejection in rejected:
            self._take_rejection(rejection)
        unheard = [place for place, each in enumerate(released) if not self._take_release(each, session)]
        if not unheard:
            return response
        rest = si.AllocationResponse()
        rest.CopyFrom(response)
        for place in reversed(unheard):
            del rest.released[place]
        return rest

    def _take_rejection(self, rejected: si.RejectedAllocation) -> None:
        """Forget an entry that a worker has rejected, unless the rejection is of a change."""
        name, key = rejected.applicationID, rejected.allocationKey
        expected = self._refusals.get((name, key))
        if expected is not None:
            expected.pop(0)
            self._gone.add((name, key))
            if not expected:
                del self._refusals[name, key]
        elif key in self._held.get(name, ()):
            self._drop(name, key)
        else:
            self._foreign.drop(key)

    def _take_release(self, released: si.AllocationRelease, session: int) -> bool:
        """Note an entry that ends, or will end; return whether the RM gets the release."""
        name, key = released.applicationID, released.allocationKey
        entry = self._held.get(name, {}).get(key)
        asks_rm = released.terminationType in _TO_CONFIRM
        text = self._ending.get((name, key))
        if text is not None and not (asks_rm and entry is not None):
            if not asks_rm:
                del self._ending[name, key]
            return text != _SILENT
        if entry is None:
            return True
        if not asks_rm or not entry.node:
            self._drop(name, key)
            return True
        before, entry.session = entry.session, session
        return before <= 0 or before == session

    # ------------------------------------------------------------------------------------- recovery

    def begin_recovery(self, has_application: Callable[[str], bool]) -> HeldAllocations:
        """Return the contents for another worker; entries that were ending on the old worker have ended."""
        ending = self._ending.items()
        released = [
            _release(self._partition, *identity, text) for identity, text in ending if text != _SILENT
        ]
        allocations, late = self._foreign.split(self._has_node)
        asks: list[bytes] = []
        for name, key, entry in [*self._all()]:
            if not entry.node:
                asks.append(placed_again(entry))
            elif entry.session == UNANSWERED:
                late.append(placed_again(entry))
            elif not self._has_node(entry.node):
                released.append(_release(self._partition, name, key, f"Node {entry.node} Removed"))
                self._drop(name, key)
            elif not has_application(name):
                released.append(_release(self._partition, name, key, f"Application {name} Removed"))
                self._drop(name, key)
            else:
                allocations.append(placed_again(entry))
        refused = (request for requests in self._refusals.values() for request in requests)
        messages = [*map(si.Allocation.FromString, late)]
        again = [si.AllocationRequest(allocations=batch) for batch in message_batches(messages, BATCH_MAX)]
        again += map(si.AllocationRequest.FromString, refused)
        self._ending.clear()
        self._nodes_gone.clear()
        self._gone.clear()
        self._changed.clear()
        return HeldAllocations(tuple(allocations), tuple(asks), tuple(again), tuple(released))

    def leave_out(self, rejections: Iterable[RecoveryRejection]) -> list[si.RejectedAllocation]:
        """Forget the entries that could not be recovered; return their releases that the RM has not got."""
        rejected: list[si.RejectedAllocation] = []
        for rejection in rejections:
            name, key = rejection.application_id, rejection.name
            if rejection.kind is not RejectedKind.ALLOCATION:
                continue
            if key in self._held.get(name, ()):
                self._drop(name, key)
            elif not name and key in self._foreign:
                self._foreign.drop(key)
            else:
                continue
            rejected.append(
                si.RejectedAllocation(
                    applicationID=name, allocationKey=key, reason=rejection.reason, code=rejection.code
                )
            )
        return rejected


def _update(known: HeldEntry, message: si.Allocation) -> None:
    """Give an entry the size of a message, and its walltime if it has one."""
    entry = si.Allocation.FromString(known.ask)
    entry.resourcePerAlloc.CopyFrom(message.resourcePerAlloc)
    if walltime_of(message.allocationTags) is not None:
        entry.allocationTags[WALLTIME_TAG] = message.allocationTags[WALLTIME_TAG]
    known.ask = entry.SerializeToString()


def _release(partition: str, name: str, key: str, text: str) -> si.AllocationRelease:
    return si.AllocationRelease(
        partitionName=partition,
        applicationID=name,
        allocationKey=key,
        terminationType=si.STOPPED_BY_RM,
        message=text,
    )
