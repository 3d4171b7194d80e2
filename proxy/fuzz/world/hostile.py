"""A run of a plan on two schedulers: one also gets malformed entries, and must not be affected.

Each malformed entry is answered by the rejection that names it, or changes nothing silently. All other
messages to the resource manager (RM), and to another one, are the same on both sides, and so are all figures.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final, final

from ....model.errors import LicorneError
from ...core.scheduler.scheduler import Scheduler
from ...si import constants
from ...si import si_pb2 as si
from ...si.api import ResourceManager
from ..configurations import INVALID_CONFIGURATIONS
from ..manager.cluster_record import OVER, RecordError
from ..manager.malformed import (
    Entry,
    Identity,
    KnownPartition,
    Malformed,
    identities_rejected,
    malformed_entry,
    request_of,
    size_of,
)
from ..plans import Plan, one_of

_RM_ID: Final = "hostile"
_OTHER: Final = "other"
_PARTITION: Final = "default"
_TEXT: Final = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: "
    "[{name: leaf}, {name: small, resources: {max: {vcore: 9}}}]}]}]"
)
_LARGE: Final = 2**63 - 1
_SIZES: Final = (1, 1_000, 2_000, 3_000, 9_000, _LARGE)
_PAUSES_MS: Final = (0, 0, 0, 1, 3_000, 31_000)
_NODE_SIZES: Final = (4_000, 8_000, 16_000, _LARGE)


@final
class _Listener(ResourceManager):
    """The callback of one RM at one of the schedulers."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        """All messages except rejections, entry by entry."""
        self.rejected: list[tuple[Identity, str]] = []
        self.responses: list[Any] = []

    def _hear(self, response: Any) -> None:
        self.responses.append(response)
        self.rejected += identities_rejected(response)
        for field, entries in response.ListFields():
            if not field.name.startswith("rejected"):
                self.heard += [f"{field.name} {each}" for each in entries]

    update_allocation = update_application = update_node = _hear


@final
class _ComparedScheduler:
    """One of the two schedulers."""

    def __init__(self) -> None:
        self.scheduler = Scheduler(engine="direct")
        self.listeners = {name: _Listener() for name in (_RM_ID, _OTHER)}
        for name, listener in self.listeners.items():
            self.scheduler.register(name, listener, configuration=_TEXT)

    def send(self, rm_id: str, entries: Sequence[Entry]) -> None:
        """Send entries of an RM, and carry out their effects."""
        nodes, applications, allocations = request_of(rm_id, entries)
        if nodes.nodes:
            self.scheduler.update_node(nodes)
        if applications.new or applications.remove:
            self.scheduler.update_application(applications)
        if allocations.allocations or allocations.releases.allocationsToRelease:
            self.scheduler.update_allocation(allocations)
        self.scheduler.run_until_idle()

    def figures(self) -> Any:
        """Return all figures that it shows, without rejected applications."""
        snapshot: Any = self.scheduler.snapshot()
        for partition in snapshot["partitions"]:
            partition["applications"] = None
        for name, documents in snapshot["applications"].items():
            shown = [each for each in documents if each["applicationState"] != "Rejected"]
            snapshot["applications"][name] = shown
        return snapshot


@final
class HostileWorld:
    """The world of one plan.

    Args:
        plan: The plan; only its seed and its steps count.
        note: Records actions.
    """

    def __init__(self, plan: Plan, note: Callable[[str, Any], None]) -> None:
        self._plan = plan
        self._note = note
        self._hostile, self._honest = _ComparedScheduler(), _ComparedScheduler()
        self._around = KnownPartition(_PARTITION)
        self._serial = 0
        self._foreign: list[str] = []
        self._expected: list[Malformed] = []

    def run(self) -> None:
        """Carry out all steps.

        Raises:
            RecordError: The schedulers differ, or an entry has a wrong answer.
        """
        with self._hostile.scheduler, self._honest.scheduler:
            self._send_good(_RM_ID, [self._node(_NODE_SIZES[0]), self._application()])
            self._send_good(_OTHER, [_application(_OTHER, "root.leaf", "eve")])
            for step in self._plan.steps:
                rng = random.Random(step.draw)  # noqa: S311 - it plays, and keeps no secret
                getattr(self, step.action.replace(" ", "_"))(rng)
                self._pass(one_of(rng, _PAUSES_MS))
            self._pass(60_000)

    def _pass(self, milliseconds: int) -> None:
        """Let time pass on both sides, and compare them."""
        for side in (self._hostile, self._honest):
            side.scheduler.advance_to(side.scheduler.now_ns() + milliseconds * 1_000_000)
            side.scheduler.run_until_idle()
        self._check()

    def _check(self) -> None:
        """Compare both sides.

        Raises:
            RecordError: They differ.
        """
        self._hostile.scheduler.validate()
        for name, listener in self._hostile.listeners.items():
            honest = self._honest.listeners[name]
            if listener.heard != honest.heard:
                raise RecordError(
                    f"{name} hears {listener.heard}, and {honest.heard} without what is malformed"
                )
            for response in honest.responses:
                self._take(response, is_own=name == _RM_ID)
            for each in (listener, honest):
                each.heard.clear()
                each.responses.clear()
        self._check_rejections()
        shown, expected = self._hostile.figures(), self._honest.figures()
        if shown != expected:
            raise RecordError(f"without what is malformed it is otherwise: {_difference(shown, expected)}")

    def _check_rejections(self) -> None:
        rejected, honest = (side.listeners[_RM_ID].rejected for side in (self._hostile, self._honest))
        for each in honest:
            rejected.remove(each)
        honest.clear()
        for malformed in [each for each in self._expected if each.rejected is not None]:
            found = next((each for each in rejected if each[0] == malformed.rejected), None)
            if found is None:
                raise RecordError(f"{malformed.entry} is not rejected")
            rejected.remove(found)
            if malformed.named not in found[1]:
                raise RecordError(f"the rejection of {malformed.entry} does not name its fault: {found[1]}")
        if rejected:
            raise RecordError(f"these rejections answer nothing: {rejected}")
        self._expected.clear()

    def _take(self, response: Any, *, is_own: bool) -> None:
        """Record the messages on the honest side."""
        if not is_own:
            return
        match response:
            case si.AllocationResponse():
                self._end([each.allocationKey for each in response.released])
            case si.ApplicationResponse():
                for each in response.updated:
                    if each.state in OVER and each.applicationID in self._around.applications:
                        self._drop_application(each.applicationID)

    def _end(self, keys: Sequence[str]) -> None:
        for key in keys:
            if self._around.keys.pop(key, None) is not None:
                self._around.ended.append(key)

    def _drop_application(self, name: str) -> None:
        self._around.applications.remove(name)
        self._around.over.append(name)
        self._end([key for key, application in self._around.keys.items() if application == name])

    # -------------------------------------------------------------------------------------- entries

    def _name(self, kind: str) -> str:
        self._serial += 1
        return f"{kind}{self._serial}"

    def _node(self, size: int) -> si.NodeInfo:
        name = self._name("n")
        self._around.nodes.append(name)
        return si.NodeInfo(nodeID=name, action=si.NodeInfo.CREATE, schedulableResource=size_of(size))

    def _application(self, queue: str = "root.leaf") -> si.AddApplicationRequest:
        name = self._name("a")
        self._around.applications.append(name)
        return _application(name, queue, "bob", "builders")

    def _ask(self, rng: random.Random, key: str, application: str) -> si.Allocation:
        resource = size_of(one_of(rng, _SIZES))
        self._around.keys[key] = application
        return si.Allocation(
            allocationKey=key,
            applicationID=application,
            partitionName=_PARTITION,
            resourcePerAlloc=resource,
            priority=one_of(rng, (0, 0, 2**31 - 1, -(2**31))),
        )

    def _good(self, rng: random.Random) -> list[Entry]:
        """Return the next entries of an honest RM, all of one kind."""
        kind = rng.random()
        if kind < 0.15 or not self._around.nodes:
            return [self._node(one_of(rng, _NODE_SIZES))]
        if kind < 0.3 or not self._around.applications:
            return [self._application(one_of(rng, ("root.leaf", "root.leaf", "root.small")))]
        if kind < 0.6:
            application = one_of(rng, self._around.applications)
            return [self._ask(rng, self._name("k"), application) for _ in range(rng.randint(1, 3))]
        if kind < 0.65 and self._around.keys:  # An existing ask, perhaps with another size.
            key = one_of(rng, sorted(self._around.keys))
            return [self._ask(rng, key, self._around.keys[key])]
        if kind < 0.7:
            return [self._foreign_allocation(rng)]
        if kind < 0.75 and len(self._around.nodes) > 1:
            name = self._around.nodes.pop(int(rng.random() * len(self._around.nodes)))
            self._around.gone_nodes.append(name)
            return [si.NodeInfo(nodeID=name, action=si.NodeInfo.DECOMISSION)]
        if kind < 0.8 and len(self._around.applications) > 1:
            name = one_of(rng, self._around.applications)
            self._drop_application(name)
            return [si.RemoveApplicationRequest(applicationID=name, partitionName=_PARTITION)]
        return [self._release(rng, key) for key in sorted(self._around.keys) if rng.random() < 0.4]

    def _release(self, rng: random.Random, key: str) -> si.AllocationRelease:
        kinds = (si.STOPPED_BY_RM, si.STOPPED_BY_RM, si.PREEMPTED_BY_SCHEDULER, si.PLACEHOLDER_REPLACED)
        name = self._around.keys[key]
        self._end([key])
        kind = one_of(rng, kinds)  # Also confirmations of ends that were never requested.
        return si.AllocationRelease(
            applicationID=name, allocationKey=key, partitionName=_PARTITION, terminationType=kind
        )

    def _foreign_allocation(self, rng: random.Random) -> si.Allocation:
        key = one_of(rng, [*self._foreign, self._name("f")])
        self._foreign.append(key)
        return si.Allocation(
            allocationKey=key,
            partitionName=_PARTITION,
            resourcePerAlloc=size_of(one_of(rng, (0, 500, _LARGE))),
            nodeID=one_of(rng, self._around.nodes),
            allocationTags={constants.FOREIGN: "static"},
        )

    # -------------------------------------------------------------------------------------- actions

    def send_some(self, rng: random.Random) -> None:
        """Send good entries to both, with malformed ones in between to one of them."""
        self._around.coming = f"a{self._serial + 1}"
        count = int(rng.random() * 4) if self._around.applications else 0
        malformed = [malformed_entry(self._around, rng) for _ in range(count)]  # About the previous objects.
        good = self._good(rng) if rng.random() < 0.7 else []
        if good and malformed:  # One kind of request, which contains both.
            kind = _request_kind(good[0])
            malformed = [each for each in malformed if _request_kind(each.entry) == kind]
        entries: list[Entry] = [each.entry for each in malformed]
        removes = any(
            isinstance(each, si.NodeInfo) and each.action == si.NodeInfo.DECOMISSION for each in good
        )
        place = len(entries) if removes else int(rng.random() * (len(entries) + 1))
        entries[place:place] = good
        self._expected += malformed
        self._note(
            "says",
            si.AllocationRequest() if not entries else request_of(_RM_ID, entries)[_request_kind(entries[0])],
        )
        self._hostile.send(_RM_ID, entries)
        self._honest.send(_RM_ID, good)

    def send_again(self, rng: random.Random) -> None:
        """Send good entries to both, and again to one of them."""
        good = [each for each in self._good(rng) if not isinstance(each, si.Allocation) or each.applicationID]
        self._send_good(_RM_ID, good)
        if any(isinstance(each, si.Allocation) for each in good):
            return  # Its key may have ended meanwhile.
        for each in good:
            if isinstance(each, si.NodeInfo) and each.action == si.NodeInfo.CREATE:
                self._expected.append(Malformed(each, ("node", "", each.nodeID), each.nodeID))
            elif isinstance(each, si.AddApplicationRequest):
                self._expected.append(
                    Malformed(each, ("application", each.applicationID, ""), each.applicationID)
                )
        self._hostile.send(_RM_ID, good)

    def _send_good(self, rm_id: str, entries: Sequence[Entry]) -> None:
        for request in request_of(rm_id, entries):
            if request.ByteSize() > len(rm_id) + 2:
                self._note("says", request)
        for side in (self._hostile, self._honest):
            side.send(rm_id, entries)

    def send_what_is_refused(self, rng: random.Random) -> None:
        """Send requests that are refused completely."""
        scheduler = self._hostile.scheduler
        stranger = self._name("stranger")
        # A registration accepts unknown rules, like the core.
        text = one_of(rng, INVALID_CONFIGURATIONS[:4])
        registration = si.RegisterResourceManagerRequest(rmID=_RM_ID, policyGroup="queues", config=text)
        update = si.UpdateConfigurationRequest(rmID=_RM_ID, config=text)
        refused: tuple[tuple[Callable[[], object], str], ...] = (
            (lambda: scheduler.update_node(si.NodeRequest(rmID=stranger)), stranger),
            (lambda: scheduler.update_application(si.ApplicationRequest(rmID=stranger)), stranger),
            (lambda: scheduler.update_allocation(si.AllocationRequest(rmID=stranger)), stranger),
            (lambda: scheduler.register_resource_manager(registration, _Listener()), "registration"),
            (lambda: scheduler.update_configuration(update), "configuration"),
        )
        call, named = one_of(rng, refused)
        self._note("says what is refused", named)
        try:
            call()
        except LicorneError as error:
            if named not in str(error):
                raise RecordError(f"the refusal does not name {named!r}: {error}") from error
        else:
            raise RecordError(f"a request is not refused: {named}")

    def load_other(self, rng: random.Random) -> None:
        """Make the other RM act."""
        size, name = size_of(one_of(rng, _NODE_SIZES)), self._name("m")
        node = si.NodeInfo(nodeID=name, action=si.NodeInfo.CREATE, schedulableResource=size)
        ask = si.Allocation(
            allocationKey=self._name("o"),
            applicationID=_OTHER,
            partitionName=_PARTITION,
            resourcePerAlloc=size_of(one_of(rng, _SIZES)),
        )
        self._send_good(_OTHER, [node, ask])


def _application(name: str, queue: str, user: str, *groups: str) -> si.AddApplicationRequest:
    ugi = si.UserGroupInformation(user=user, groups=groups)
    return si.AddApplicationRequest(applicationID=name, queueName=queue, partitionName=_PARTITION, ugi=ugi)


def _difference(one: Any, other: Any) -> str:
    """Return the first place at which two documents differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
        return f"{keys[0]}: {_difference(one.get(keys[0]), other.get(keys[0]))}"
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        place = next(place for place, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])
        return f"{place}: {_difference(one[place], other[place])}"
    return f"{one}, not {other}"


def _request_kind(entry: Entry) -> int:
    """Return the request of `request_of` for an entry."""
    if isinstance(entry, si.NodeInfo):
        return 0
    return 1 if isinstance(entry, si.AddApplicationRequest | si.RemoveApplicationRequest) else 2
