"""Every ask is answered, whatever state its application is in: the whole table of states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import pytest
from support.proxy.wire_manager import amount

from licorne import ResourceManager, Scheduler
from licorne.model.applications.effects import ACTIVE_STATES, ApplicationState
from licorne.proxy.si import si_pb2 as si

if TYPE_CHECKING:
    from licorne.proxy.core.scheduler.engine_names import EngineName

S: Final = ApplicationState
ENGINES: Final[tuple[EngineName, ...]] = ("direct", "actors")
SECOND_NS: Final = 1_000_000_000
DAY: Final = 24 * 3600
HUGE: Final = 10_000
CONFIGURATION: Final = """
partitions:
  - name: default
    queues:
      - {name: root, submitacl: "*", queues: [{name: leaf}]}
"""
SUBMISSIONS: Final[dict[str, dict[str, Any]]] = {
    "ask": {},
    "member": {"taskGroupName": "g"},
    "placeholder": {"taskGroupName": "g", "placeholder": True},
    "restored": {"nodeID": "n"},
    "restored placeholder": {"taskGroupName": "g", "placeholder": True, "nodeID": "n"},
}
TAKEN: Final = ACTIVE_STATES - {S.FAILING}
"""In these states an application takes what is asked for; in the others it is turned away."""


class Manager(ResourceManager):
    """A resource manager of one application: it notes each answer, and confirms when the test says so."""

    def __init__(self, engine: EngineName) -> None:
        self.scheduler = Scheduler(engine=engine, stepped=True)
        self.answers: list[tuple[str, str]] = []
        self.state = ""
        self._to_confirm: list[si.AllocationRelease] = []
        self.scheduler.register("rm", self, configuration=CONFIGURATION)
        node = {"nodeID": "n", "action": si.NodeInfo.CREATE, "schedulableResource": amount(100)}
        self.scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[node]))

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Note what was placed, turned away and ended."""
        self.answers += [(new.allocationKey, "placed") for new in response.new]
        self.answers += [(no.allocationKey, "rejected") for no in response.rejectedAllocations]
        for release in response.released:
            self.answers.append((release.allocationKey, "released"))
            if release.terminationType != si.STOPPED_BY_RM:
                self._to_confirm.append(release)

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Note the state."""
        for rejected in response.rejected:
            self.state = "Rejected"
            assert rejected.reason
        for updated in response.updated:
            self.state = updated.state

    # ----------------------------------------------------------------------------------- what it says

    def submit(self, queue: str = "root.leaf", **more: Any) -> None:
        new = {"applicationID": "app", "queueName": queue, "ugi": {"user": "u"}, **more}
        self.scheduler.update_application(si.ApplicationRequest(rmID="rm", new=[new]))
        self.scheduler.deliver()

    def ask(self, key: str, vcore: int = 1, **more: Any) -> None:
        ask = {"allocationKey": key, "applicationID": "app", "resourcePerAlloc": amount(vcore), **more}
        self.scheduler.update_allocation(si.AllocationRequest(rmID="rm", allocations=[ask]))
        self.scheduler.deliver()

    def release(self, key: str, termination: si.TerminationType = si.STOPPED_BY_RM) -> None:
        release = {"allocationKey": key, "applicationID": "app", "terminationType": termination}
        request = si.AllocationRequest(rmID="rm", releases={"allocationsToRelease": [release]})
        self.scheduler.update_allocation(request)
        self.scheduler.deliver()

    def run(self, seconds: int = 0) -> None:
        """Let everything be placed that can be, and then some time pass."""
        self.scheduler.run_until_idle()
        self.scheduler.advance_to(self.scheduler.now_ns() + seconds * SECOND_NS)
        self.scheduler.deliver()

    def confirm(self) -> bool:
        """Confirm what the scheduler wants ended; return whether there was anything."""
        confirmed, self._to_confirm = self._to_confirm, []
        for release in confirmed:
            self.release(release.allocationKey, release.terminationType)
        return bool(confirmed)

    def run_until_idle(self) -> None:
        """Confirm what there is until nothing more happens."""
        self.run()
        while self.confirm():
            self.run()
        self.scheduler.validate()

    # ------------------------------------------------------------------------------------- what it hears

    def heard_of(self, key: str) -> list[str]:
        return [answer for known, answer in self.answers if known == key]

    def shown(self) -> dict[str, int]:
        """Return what the documents say is placed or waits, with its size."""
        found: dict[str, int] = {}
        snapshot: Any = self.scheduler.snapshot()
        for document in snapshot["applications"].get("default", []):
            for entry in (*document.get("allocations", []), *document.get("requests", [])):
                size = entry.get("resource", {}) or entry.get("pendingResource", {})
                found[entry["allocationKey"]] = size.get("vcore", 0)
        return found


# -------------------------------------------------------------------------------- the way to each state


def _gang(manager: Manager, style: str) -> None:
    """One of two placeholders that were announced is placed."""
    gang: dict[str, Any] = {
        "placeholderAsk": amount(2),
        "executionTimeoutMilliSeconds": 60_000,
        "gangSchedulingStyle": style,
    }
    manager.submit(**gang)
    manager.ask("has", taskGroupName="g", placeholder=True)
    manager.run()


def _accepted(manager: Manager) -> None:
    _gang(manager, "Soft")


def _resuming(manager: Manager) -> None:
    _gang(manager, "Soft")
    manager.run(61)


def _failing(manager: Manager) -> None:
    _gang(manager, "Hard")
    manager.run(61)


def _failed(manager: Manager) -> None:
    _failing(manager)
    manager.confirm()


def _running(manager: Manager) -> None:
    manager.submit()
    manager.ask("has")
    manager.run()


def _completing(manager: Manager) -> None:
    _running(manager)
    manager.release("has")


def _completed(manager: Manager) -> None:
    _completing(manager)
    manager.run(31)


def _expired(manager: Manager) -> None:
    _completed(manager)
    manager.run(4 * DAY)


WAYS: Final[dict[ApplicationState, Callable[[Manager], None]]] = {
    S.NEW: Manager.submit,
    S.ACCEPTED: _accepted,
    S.RUNNING: _running,
    S.REJECTED: lambda manager: manager.submit("root.none"),
    S.COMPLETING: _completing,
    S.COMPLETED: _completed,
    S.FAILING: _failing,
    S.FAILED: _failed,
    S.EXPIRED: _expired,
    S.RESUMING: _resuming,
}


@pytest.fixture(params=product(WAYS, ENGINES), ids=lambda param: f"{param[0].value}-{param[1]}")
def case(request: pytest.FixtureRequest) -> Iterator[tuple[Manager, ApplicationState]]:
    """Give a resource manager whose application is in a state."""
    state, engine = request.param
    manager = Manager(engine)
    with manager.scheduler:
        WAYS[state](manager)
        assert state.value == (manager.state or "New")
        yield manager, state


def test_no_state_is_left_out() -> None:
    """There is a way to each of the table."""
    assert set(WAYS) == set(ApplicationState)


# --------------------------------------------------------------------------------------- the answers


def _is_taken(state: ApplicationState, kind: str) -> bool:
    """Return whether an application in a state takes an ask; a gang that resumes takes no placeholder."""
    return state in TAKEN and (state, kind) != (S.RESUMING, "placeholder")


@pytest.mark.parametrize("kind", SUBMISSIONS)
def test_whatever_is_asked_for_is_placed_or_rejected(
    case: tuple[Manager, ApplicationState], kind: str
) -> None:
    """There is room: where the application takes it, it is placed, and otherwise turned away at once."""
    manager, state = case
    manager.ask("x", **SUBMISSIONS[kind])
    at_once = manager.heard_of("x")
    manager.run_until_idle()
    manager.run(DAY)
    manager.run_until_idle()

    if _is_taken(state, kind):
        assert "placed" == manager.heard_of("x")[0]
    else:
        assert ["rejected"] == at_once == manager.heard_of("x")
    assert ("x" in manager.shown()) == (manager.heard_of("x") == ["placed"])


@pytest.mark.parametrize("kind", ["ask", "member", "placeholder"])
def test_an_ask_that_is_changed_is_placed_or_rejected(
    case: tuple[Manager, ApplicationState], kind: str
) -> None:
    """It waits until it is small enough."""
    manager, state = case
    manager.ask("x", HUGE, **SUBMISSIONS[kind])
    manager.run()
    waited = manager.heard_of("x")
    manager.ask("x", **SUBMISSIONS[kind])
    manager.run_until_idle()

    taken = _is_taken(state, kind)
    assert ([] if taken else ["rejected"]) == waited
    assert [*waited, "placed" if taken else "rejected"] == manager.heard_of("x")


def test_what_is_placed_may_change_its_size(case: tuple[Manager, ApplicationState]) -> None:
    """Also in an application that is going to fail; what has ended is asked for anew."""
    manager, state = case
    had = "has" in manager.shown()
    heard = len(manager.answers)
    manager.ask("has", 3)
    manager.run()

    if had or state in TAKEN:
        assert 3 == manager.shown()["has"]
    expected = [] if had else ["placed" if state in TAKEN else "rejected"]
    assert expected == [answer for key, answer in manager.answers[heard:] if key == "has"]


@pytest.mark.parametrize("kind", SUBMISSIONS)
def test_what_is_released_ends(case: tuple[Manager, ApplicationState], kind: str) -> None:
    """The end of what was placed is confirmed; what waited is placed no more."""
    manager, _ = case
    manager.ask("x", **SUBMISSIONS[kind])
    manager.ask("waits", HUGE)
    manager.run()
    if manager.heard_of("has")[-1:] == ["released"] and kind == "member":
        manager.confirm()  # It takes the place of a placeholder, and is not there before.
    before = manager.heard_of("x")
    heard = len(manager.answers)
    manager.release("x")
    manager.release("waits")
    manager.run_until_idle()
    after = [answer for key, answer in manager.answers[heard:] if key == "x"]

    assert (["released"] if before == ["placed"] else []) == after
    assert not {"x", "waits"} & manager.shown().keys()


@pytest.mark.parametrize("termination", [si.STOPPED_BY_RM, si.TIMEOUT, si.PREEMPTED_BY_SCHEDULER])
def test_a_release_of_everything_leaves_no_ask_without_an_answer(
    case: tuple[Manager, ApplicationState], termination: si.TerminationType
) -> None:
    """What is asked for afterwards is answered, also by a gang that waited for these ends."""
    manager, _ = case
    manager.release("", termination)
    assert "Failing" != manager.state
    assert "Resuming" != manager.state
    manager.ask("x", taskGroupName="g")
    manager.run_until_idle()

    assert [manager.heard_of("x")[-1]] == manager.heard_of("x")
    assert manager.heard_of("x")[0] in {"placed", "rejected"}
