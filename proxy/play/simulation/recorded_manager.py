"""One resource manager of a transcript, with a record of its requests and callbacks.

Requests are recorded when they are sent, so a release that the scheduler requests counts when it is
confirmed. An allocation that the resource manager releases by itself counts as completed, one that leaves its
node in any other way as withdrawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, final

from ....model.requests.older_asks import ALLOCATIONS_MAX
from ....model.state.ask_parts import AskParts
from ....model.values.allocation import PART_MARK, part_key
from ...core.scheduler.answering.questions import QueueAndUser
from ...si import si_pb2 as si
from ...si.constants import FOREIGN
from ...si.older_generation import uses_uuids
from ..transcripts.player import PlayedManager, TranscriptRules
from .accounts import Account, Owner
from .record import AskEntry, SimulationRecord, without_names
from .si_messages import quantities

_NEW_NODE_ACTIONS: Final = frozenset({si.NodeInfo.CREATE, si.NodeInfo.CREATE_DRAIN})


@final
class RecordedManager(PlayedManager):
    """The callback of one resource manager; it writes the record.

    Args:
        rm_id: The id of the resource manager; keys in the record begin with it, since another resource
            manager may use the same keys.
        rules: The behaviour of the resource manager.
        record: The record that it writes.
        now_ns: The virtual time from the start.
        find: Returns the queue and the user of an application of a resource manager.
    """

    def __init__(
        self,
        rm_id: str,
        rules: TranscriptRules,
        record: SimulationRecord,
        now_ns: Callable[[], int],
        find: Callable[[str, str], QueueAndUser | None],
    ) -> None:
        super().__init__(rm_id, rules)
        self._record = record
        self._now_ns = now_ns
        self._find = find
        self._accounts: dict[str, Account] = {}
        self._nodes: dict[str, dict[str, int]] = {}
        self._offered_nodes: dict[str, dict[str, int]] = {}
        self._offered_keys: dict[str, list[str]] = {}
        """The keys of existing allocations on nodes that are being created."""
        self._keys = RecordedKeys(self._is_used)

    # ------------------------------------------------------------------------------- requests

    def note_node_request(self, request: si.NodeRequest) -> None:
        """Record changes of nodes; new ones count when they are accepted."""
        for node in request.nodes:
            resources = quantities(node.schedulableResource)
            if node.action in _NEW_NODE_ACTIONS:
                self._offered_nodes[node.nodeID] = resources
                self._offered_keys[node.nodeID] = self._note_allocations(node.existingAllocations)
            elif node.nodeID in self._nodes and node.action == si.NodeInfo.UPDATE:
                # A negative capacity is rejected: the node keeps its present capacity.
                if node.HasField("schedulableResource") and min(resources.values(), default=0) >= 0:
                    self._node_gone(node.nodeID)
                    self._node_there(node.nodeID, resources)
            elif node.nodeID in self._nodes and node.action == si.NodeInfo.DECOMISSION:
                self._node_gone(node.nodeID)

    def note_application_request(self, request: si.ApplicationRequest) -> None:
        """Open accounts for new applications; asks of removed ones are withdrawn."""
        for application in request.new:
            user = application.ugi
            asked = Owner(queue=application.queueName, user=user.user, groups=tuple(user.groups))
            self._accounts[application.applicationID] = self._record.accounts.opened(asked)
        for removed in request.remove:
            for key in self._keys_of(removed.applicationID):
                if key in self._record.waiting:
                    self._record.given_up(self._record.taken_back(key, self._now_ns()))

    def note_allocation_request(self, request: si.AllocationRequest) -> list[str]:
        """Record asks and releases; return the new keys in the record."""
        new_keys = []
        self._keys.is_older |= bool(request.asks) or uses_uuids(request)
        for ask in request.asks:
            wanted, surplus = self._keys.wanted(ask)
            self._give_up(surplus)
            new_keys += self._note_allocations([_as_allocation(ask, key) for key in wanted])
        new_keys += self._note_allocations(request.allocations)
        for release in request.releases.allocationsToRelease:
            self.note_release(release)
        for withdrawal in request.releases.allocationAsksToRelease:
            self._note_ask_release(withdrawal)
        return new_keys

    def _note_allocations(self, allocations: Iterable[si.Allocation]) -> list[str]:
        """Record asks of the current generation, and existing allocations; return the new keys."""
        new_keys = []
        for allocation in allocations:
            if FOREIGN in allocation.allocationTags:
                continue
            key = self._key(self._keys.of_allocation(allocation))
            resources = quantities(allocation.resourcePerAlloc)
            if key in self._record.waiting or key in self._record.running:
                self._record.resized(key, resources, self._now_ns())
                continue
            self._record.asked(key, self._entry(allocation, resources), self._now_ns())
            new_keys.append(key)
        return new_keys

    def note_release(self, release: si.AllocationRelease) -> None:
        """Record the end of an allocation or ask, or of all those of an application."""
        if release.allocationKey or release.UUID:
            keys = [self._key(key) for key in self._keys.of_release(release)]
        else:
            keys = self._keys_of(release.applicationID)
            if self._keys.is_older:
                keys = [key for key in keys if key in self._record.running]
        for one in keys:
            if one in self._record.waiting:
                self._record.given_up(self._record.taken_back(one, self._now_ns()))
            elif one in self._record.running:
                self._ends(one, release)

    def _note_ask_release(self, release: si.AllocationAskRelease) -> None:
        """Record the end of a waiting ask, or of all those of an application, whichever side ends them."""
        name, key = release.applicationID, release.allocationKey
        if key:
            self._give_up(self._keys.of_ask(name, key))
        else:
            self._give_up([one.removeprefix(f"{self.rm_id}/") for one in self._keys_of(name)])

    def _give_up(self, keys: Iterable[str]) -> None:
        """Record that the waiting ones of some keys are withdrawn."""
        for key in map(self._key, keys):
            if key in self._record.waiting:
                self._record.given_up(self._record.taken_back(key, self._now_ns()))

    def note_refused_request(self, keys: list[str], reason: str) -> None:
        """Record that the scheduler refused a request with new asks as a whole."""
        for key in keys:
            if key in self._record.waiting:
                self._record.rejected(key, self._now_ns(), reason)

    def note_registration(self) -> None:
        """Record that its whole state is gone: it registers again."""
        for key in self._keys_of(None):
            if key in self._record.waiting:
                self._record.given_up(self._record.taken_back(key, self._now_ns()))
            else:
                self._record.given_up(self._record.stopped(key, self._now_ns()))
        for node_id in list(self._nodes):
            self._node_gone(node_id)

    # ------------------------------------------------------------------------------ callbacks

    def update_node(self, response: si.NodeResponse) -> None:
        """Record the capacity of accepted nodes."""
        for accepted in response.accepted:
            self._node_there(accepted.nodeID, self._offered_nodes.pop(accepted.nodeID, {}))
            self._offered_keys.pop(accepted.nodeID, None)
        for rejected in response.rejected:
            reason = without_names(rejected.reason, rejected.nodeID)
            self._record.remarks.refusals[f"node rejected: {reason}"] += 1
            self.note_refused_request(self._offered_keys.pop(rejected.nodeID, []), "its node is rejected")

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Count accepted applications for the owner of their placement."""
        for accepted in response.accepted:
            found = self._find(accepted.applicationID, self.rm_id)
            if found is not None:
                self._record.accounts.assigned(self._account(accepted.applicationID), Owner.of(found))

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Record placements, ends and rejections; keep the due confirmations."""
        for allocation in response.new:
            key = self._key(self._keys.of_allocation(allocation))
            if key in self._record.waiting:
                self._record.placed(key, self._now_ns(), node_id=self._key(allocation.nodeID))
        for release in response.released:
            if release.terminationType == si.STOPPED_BY_RM:
                for key in self._keys.of_release(release):
                    self._is_gone(self._key(key))
        self.confirm_later(response.released)
        for given_up in response.releasedAsks:
            self._note_ask_release(given_up)
        for rejection in response.rejectedAllocations:
            name, ask_key = rejection.applicationID, rejection.allocationKey
            keys = [self._key(key) for key in self._keys.of_ask(name, ask_key)]
            self.note_refused_request(keys, without_names(rejection.reason, ask_key, name))

    # ----------------------------------------------------------------------------------- inside

    def _is_used(self, key: str) -> bool:
        """Return whether an ask or allocation with a key exists."""
        return self._key(key) in self._record.waiting or self._key(key) in self._record.running

    def _key(self, key: str) -> str:
        """Return the key in the record."""
        return f"{self.rm_id}/{key}"

    def _keys_of(self, application_id: str | None) -> list[str]:
        """Return the keys of the asks and allocations of one application or of all."""
        return [
            key
            for entries in (self._record.waiting, self._record.running)
            for key, entry in entries.items()
            if key.startswith(f"{self.rm_id}/") and application_id in {None, entry.application_id}
        ]

    def _entry(self, allocation: si.Allocation, resources: dict[str, int]) -> AskEntry:
        """Return the entry of an ask, or of an existing allocation."""
        return AskEntry(
            account=self._account(allocation.applicationID),
            application_id=allocation.applicationID,
            resources=resources,
            asked_at_ns=self._now_ns(),
            is_placeholder=allocation.placeholder,
            is_recovered=bool(allocation.nodeID),
        )

    def _account(self, application_id: str) -> Account:
        """Return the account of an application, one without an owner if it was never submitted."""
        account = self._accounts.get(application_id)
        if account is None:
            nobody = self._record.accounts.opened(Owner(queue="", user=""))
            account = self._accounts[application_id] = nobody
        return account

    def _ends(self, key: str, release: si.AllocationRelease) -> None:
        """Record the end of an allocation on a node."""
        if release.terminationType in {si.STOPPED_BY_RM, si.UNKNOWN_TERMINATION_TYPE}:
            self._record.completed(key, self._now_ns())
        elif release.terminationType == si.PREEMPTED_BY_SCHEDULER:
            entry = self._record.preempted(key, self._now_ns(), message=release.message)
            self._record.given_up(entry)
        else:
            self._is_gone(key)

    def _is_gone(self, key: str) -> None:
        """Record that an allocation was lost, with its node or its application."""
        if key in self._record.running:
            self._record.given_up(self._record.stopped(key, self._now_ns()))

    def _node_there(self, node_id: str, resources: dict[str, int]) -> None:
        """Record that a node exists."""
        self._nodes[node_id] = resources
        self._record.capacity_changed(self._now_ns(), resources, 1, node_id=self._key(node_id))

    def _node_gone(self, node_id: str) -> None:
        """Record that a node is gone."""
        resources = self._nodes.pop(node_id)
        self._record.capacity_changed(self._now_ns(), resources, -1, node_id=self._key(node_id))


def _as_allocation(ask: si.AllocationAsk, key: str) -> si.Allocation:
    """Return a part of an ask of the older generation as a current one, with the recorded fields."""
    return si.Allocation(
        allocationKey=key,
        applicationID=ask.applicationID,
        resourcePerAlloc=ask.resourceAsk,
        placeholder=ask.placeholder and bool(ask.taskGroupName),
    )


@final
class RecordedKeys:
    """The keys of one resource manager.

    Args:
        is_used: Returns whether an ask or allocation with a key exists.
    """

    def __init__(self, is_used: Callable[[str], bool]) -> None:
        def used_among(_: str, keys: Sequence[str]) -> list[str]:
            return [key for key in keys if is_used(key)]

        self._parts = AskParts(used_among)
        self.is_older = False
        """Whether it uses the older generation: then a release without a name keeps waiting asks."""

    def wanted(self, ask: si.AllocationAsk) -> tuple[list[str], list[str]]:
        """Return the present parts of an ask of the older generation, and then the surplus parts.

        Of the surplus parts only waiting ones end. An ask that is rejected for its number counts as before.
        """
        known = self.of_ask(ask.applicationID, ask.allocationKey)
        count = ask.maxAllocations or 1
        if not 0 < count <= ALLOCATIONS_MAX:
            return known or [ask.allocationKey], []
        further = self._parts.further(ask.applicationID, ask.allocationKey, max(0, count - len(known)))
        return known[:count] + further, known[count:]

    def of_ask(self, application_id: str, ask_key: str) -> list[str]:
        """Return the keys of the parts of an ask; its application may be empty."""
        return self._parts.of(application_id or self._parts.owner_of(ask_key), ask_key)

    def of_allocation(self, allocation: si.Allocation) -> str:
        """Return the key of an allocation, or of an ask of the current generation."""
        key = part_key(allocation.allocationKey, allocation.UUID)
        if PART_MARK in key:
            self._parts.note(allocation.applicationID, key)
        return key

    def of_release(self, release: si.AllocationRelease) -> list[str]:
        """Return the keys in a release; an empty list if it covers the whole application."""
        key, uuid, name = release.allocationKey, release.UUID, release.applicationID
        if uuid:
            return [part_key(key, uuid) if key else self._parts.with_uuid(name, uuid)]
        return self.of_ask(name, key) if key else []
