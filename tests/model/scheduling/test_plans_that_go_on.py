"""A walk that goes on with the plan of the one before decides as one that plans anew."""

from __future__ import annotations

import random
from typing import Final

import pytest
from support.model.builders import a_resource
from support.model.harness import Harness

from licorne.model.planning import kept_plan
from licorne.model.scheduling.cycle import CycleOutcome
from licorne.model.values.messages import NodeAction

QUEUES: Final = """\
- name: one
- name: two
  properties: {application.sort.policy: priority}
- name: three
"""
MAXIMUM: Final = "  resources: {max: {vcore: 12}}\n"
ROOT: Final = 'properties: {backfill.reservations: "all", backfill.passes: "%d"}'
WALLTIMES: Final = (3, 5, 8, 8, 20, 20, None)


class RandomDay:
    """The events of a day, decided by one number, on one partition.

    Args:
        seed: The number.
        goes_on: Plans go on; otherwise each walk plans anew, from all that waits.
    """

    def __init__(self, seed: int, *, goes_on: bool) -> None:
        self._dice = random.Random(seed)  # noqa: S311 - not for secrets
        self._goes_on = goes_on
        queues = QUEUES + self._dice.choice(("", "", "", MAXIMUM))
        self._harness = Harness(queues, root=ROOT % self._dice.choice((0, 3, 1000)))
        self._ends: dict[str, int | None] = {}
        """When the work of applications that run or wait ends by itself, after its start, in seconds."""
        self._started: dict[str, int] = {}
        self._now = 0
        self._count = 0
        self.went_on = 0
        for number in range(self._dice.choice((1, 2, 4))):
            self._harness.nodes(f"n{number}", capacity=a_resource(vcore=10_000))

    def run(self) -> list[object]:
        """Let sixty events happen, and return what there was after each."""
        return [self._after(self._happen()) for _ in range(60)]

    def _happen(self) -> str:
        dice, harness = self._dice, self._harness
        event = dice.choices(
            ("submit", "pass", "end", "withdraw", "ask", "drain", "none"), (8, 5, 2, 1, 2, 1, 1)
        )[0]
        waiting = sorted(self._ends.keys() - self._started)
        if event == "submit":
            self._submit()
        elif event == "pass":
            self._pass(dice.randint(1, 6))
        elif event == "end" and self._started:
            self._end(dice.choice(sorted(self._started)))
        elif event == "withdraw" and waiting:
            name = dice.choice(waiting)
            del self._ends[name]
            harness.withdraw(name)
        elif event == "ask" and waiting:
            self._ask(dice.choice(waiting), f"{self._count}-more")
        elif event == "drain":
            action = dice.choice(
                (NodeAction.DRAIN_NODE, NodeAction.DRAIN_TO_SCHEDULABLE, NodeAction.DRAIN_TO_SCHEDULABLE)
            )
            harness.update_node("n0", action)
        return event

    def _submit(self) -> None:
        name = f"{self._dice.choice('abc')}{self._count}"  # The order of one moment is that of names.
        self._ends[name] = self._dice.choice((2, 4, 8, 20, 90))
        self._harness.submit(name, f"root.{self._dice.choice(('one', 'two', 'three'))}", user=self._user())
        self._ask(name, name)

    def _ask(self, name: str, key: str) -> None:
        walltime = self._dice.choice(WALLTIMES)
        self._count += 1
        self._harness.ask(
            key,
            application_id=name,
            resource=a_resource(vcore=1000 * self._dice.choice((1, 2, 5, 8, 11))),
            tags={} if walltime is None else {"walltime": f"{walltime}s"},
            priority=self._dice.choice((0, 0, 0, 0, 5)),
        )

    def _user(self) -> str:
        return self._dice.choice(("ann", "bob", "eve"))

    def _pass(self, seconds: int) -> None:
        for _ in range(seconds):
            self._now += 1
            self._harness.advance(1)
            for name, since in sorted(self._started.items()):
                if self._now - since >= (self._ends[name] or 0):
                    self._end(name)
            self._run()

    def _end(self, name: str) -> None:
        self._started.pop(name)
        self._ends.pop(name)
        self._harness.release("", application_id=name)

    def _run(self) -> None:
        state = self._harness.state
        before = dict(state.ends.plans)
        while self._harness.cycle() is not CycleOutcome.NOTHING:
            self._forget()
        self.went_on += any(state.ends.plans.get(path) is plan for path, plan in before.items())
        self._forget()
        for name in self._ends.keys() - self._started:
            if state.entries[name].facts.allocated:
                self._started[name] = self._now

    def _forget(self) -> None:
        if not self._goes_on:
            self._harness.state.ends.plans.clear()
            self._harness.state.ends.collected.clear()

    def _after(self, event: str) -> object:
        self._run()
        ends = self._harness.state.ends
        return event, self._harness.placements, dict(ends.kept), dict(ends.passed)


@pytest.mark.parametrize("most", [1000, 3], ids=["all have promises", "few have promises"])
@pytest.mark.parametrize("seed", range(8))
def test_a_day_is_the_same_if_each_walk_plans_anew(
    seed: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_plan, "PROMISES_MAX", most)
    if most < 1000:
        monkeypatch.setattr(kept_plan, "_FEW", 2)
        monkeypatch.setattr(kept_plan, "_FURTHER_OF_ONE_MAX", 3)
    day = RandomDay(seed, goes_on=True)
    assert RandomDay(seed, goes_on=False).run() == day.run()


def test_plans_go_on() -> None:
    """Otherwise the comparison would show nothing."""
    days = [RandomDay(seed, goes_on=True) for seed in range(4)]
    for day in days:
        day.run()
    assert sum(day.went_on for day in days) > 20
