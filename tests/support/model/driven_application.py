"""An application in the hands of a test: what it answers is kept, and it is validated after each step."""

from __future__ import annotations

from support.model.builders import SECOND_NS, START_NS, TEN, a_resource, an_application, an_ask

from licorne.model.applications.effects import (
    Answer,
    ApplicationState,
    Effect,
    ReleaseWanted,
    StateEntered,
    TimerKind,
    TimerSet,
)
from licorne.model.applications.gang import GangSettings
from licorne.model.resources.resource import EMPTY, Resource
from licorne.model.values.allocation import Allocation, Ask
from licorne.model.values.messages import TerminationType


class DrivenApplication:
    """An application without a partition: the test plays the partition, the nodes and the clock."""

    def __init__(self, *, announced: Resource = EMPTY, hard: bool = False, timeout_seconds: int = 60) -> None:
        settings = GangSettings(placeholder_ask=announced, hard=hard, timeout_ms=timeout_seconds * 1000)
        self.application = an_application(gang_settings=settings)
        self.now_ns = START_NS
        self.effects: list[Effect] = []

    def take(self, answer: Answer | None) -> Answer:
        """Keep what an answer brings; the application must have given one."""
        assert answer is not None, "the application declined"
        self.application.validate()
        self.effects.extend(answer.effects)
        return answer

    # -------------------------------------------------------------------------------------- steps

    def ask(self, *keys: str, group: str = "", placeholder: bool = False, resource: Resource = TEN) -> None:
        """Add asks."""
        for key in keys:
            self.add(an_ask(key, task_group_name=group, placeholder=placeholder, resource=resource))

    def add(self, *asks: Ask) -> tuple[Ask, ...]:
        """Add asks that were made before; return those whose keys are known."""
        answer, known = self.application.asks.add(asks, self.now_ns)
        self.take(answer)
        return known

    def place(self, *keys: str, node_id: str = "node") -> None:
        """Place asks that wait."""
        for key in keys:
            self.take(self.application.allocations.try_place(self.allocation(key, node_id), self.now_ns))

    def run(self, *keys: str) -> None:
        """Add real asks and place them."""
        self.ask(*keys)
        self.place(*keys)

    def gang(self, *keys: str) -> None:
        """Add placeholders of the group `g` and place them."""
        self.ask(*keys, group="g", placeholder=True)
        self.place(*keys)

    def end(self, key: str, termination: TerminationType = TerminationType.STOPPED_BY_RM) -> Answer:
        """End an allocation."""
        return self.take(self.application.allocations.remove(key, termination, self.now_ns))

    def swap(self, member: str, placeholder: str, node_id: str = "node") -> Answer:
        """Begin a swap."""
        return self.take(self.application.swaps.begin(self.allocation(member, node_id), placeholder))

    def confirm(self, placeholder: str) -> Answer:
        """Complete a swap."""
        replaced = TerminationType.PLACEHOLDER_REPLACED
        return self.take(self.application.swaps.end(placeholder, replaced, self.now_ns))

    def fire(self, kind: TimerKind) -> Answer:
        """Let the timer of a kind that was set last come due."""
        timer = self.timers(kind)[-1]
        self.now_ns = timer.due_ns
        return self.take(self.application.on_timer(kind, timer.generation, self.now_ns))

    def wait(self, seconds: int) -> None:
        """Let time pass; no timer fires."""
        self.now_ns += seconds * SECOND_NS

    def allocation(self, key: str, node_id: str = "node") -> Allocation:
        """Make the allocation of a known ask."""
        record = self.application.asks.record(key)
        assert record is not None, f"ask {key} is unknown"
        return Allocation(record.ask, node_id, self.now_ns)

    # -------------------------------------------------------------------------------------- looks

    @property
    def state(self) -> ApplicationState:
        """Where it is in its life."""
        return self.application.facts().state

    @property
    def states(self) -> list[str]:
        """The states it has entered."""
        return [effect.entered.value for effect in self.effects if isinstance(effect, StateEntered)]

    @property
    def wanted(self) -> list[tuple[str, str]]:
        """The releases it has asked for: key and text."""
        return [
            (effect.allocation_key, effect.text)
            for effect in self.effects
            if isinstance(effect, ReleaseWanted)
        ]

    def timers(self, kind: TimerKind) -> list[TimerSet]:
        """Return the timers of a kind that were set."""
        return [effect for effect in self.effects if isinstance(effect, TimerSet) and effect.kind is kind]

    def sums(self) -> tuple[int, int, int]:
        """Return the memory that waits, that is allocated, and that placeholders hold."""
        facts = self.application.facts()
        resources = (facts.pending, facts.allocated, facts.placeholder_allocated)
        pending, allocated, held = (resource.get("memory") for resource in resources)
        return pending, allocated, held

    def keys(self) -> list[str]:
        """Return the keys of the allocations."""
        return [placed.allocation.allocation_key for placed in self.application.allocations.all()]


def running(*keys: str) -> DrivenApplication:
    """Return an application whose asks are placed."""
    app = DrivenApplication()
    app.run(*keys)
    return app


def a_gang(*placeholders: str, members: tuple[str, ...] = ()) -> DrivenApplication:
    """Return an application of the gang `g` that is complete, and whose members wait."""
    app = DrivenApplication(announced=a_resource(memory=10 * len(placeholders)))
    app.gang(*placeholders)
    app.ask(*members, group="g")
    return app
