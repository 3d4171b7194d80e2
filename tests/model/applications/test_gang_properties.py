"""What holds for gangs whatever happens: nothing is counted twice, and no member is lost."""

from __future__ import annotations

from random import Random
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import FakePredicates, a_resource
from support.model.harness import Harness

from licorne.model.applications.holdings import HeldAllocation
from licorne.model.values.messages import NodeAction, TerminationType

GROUPS: Final = ("g", "h")
STEPS: Final = 40


class Fickle(FakePredicates):
    """An RM that refuses every third ask the nodes with odd names."""

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        odd = int(node_id[1:]) % 2 and not int(allocation_key[1:]) % 3
        return "not there" if odd else super().refuse(allocation_key, node_id, allocate=allocate)


class GangStory:
    """A gang to which things happen at random; what the RM knows of it is kept beside."""

    def __init__(self, seed: int) -> None:
        self._draw = Random(seed)  # noqa: S311 - nothing is secret
        self.h = Harness(predicates=Fickle())
        self._serial = 0
        self.asked = dict.fromkeys(GROUPS, 0)
        """How many placeholders each group was asked for."""
        self.taken_back = dict.fromkeys(GROUPS, 0)
        """How many of them the RM took back before they were placed: these are still waited for."""
        self.members: set[str] = set()
        """Members that the RM has not ended, and has not been asked to end."""
        self._heard = 0
        self._new_node()
        style = self._draw.choice(("Soft", "Hard"))
        announced = a_resource(memory=10 * self._draw.randint(1, 6))
        self.h.submit(placeholder_ask=announced, style=style, timeout_seconds=60)

    def _new_node(self) -> None:
        self._serial += 1
        self.h.nodes(f"n{self._serial}", capacity=a_resource(memory=self._draw.choice((10, 20, 50))))

    @property
    def goes_on(self) -> bool:
        return "app" in self.h.state.entries

    def placed(self) -> list[HeldAllocation]:
        return list(self.h.application().allocations.all())

    def step(self) -> None:
        """Let one thing happen."""
        things = [
            self._ask,
            self._ask,
            self._cycles,
            self._cycles,
            self._confirm,
            self._end,
            self._change_nodes,
        ]
        self._draw.choice([*things, self._wait])()
        self._listen()

    def _ask(self) -> None:
        self._serial += 1
        group = self._draw.choice(GROUPS)
        placeholder = self._draw.random() < 0.5
        key = f"{'p' if placeholder else 'm'}{self._serial}"
        size = 10 if placeholder else self._draw.choice((4, 10, 10, 12))
        resource = a_resource(memory=size)
        if self.h.ask(key, resource=resource, task_group_name=group, placeholder=placeholder):
            return  # It is Failing: the RM has the message.
        if placeholder:
            self.asked[group] += 1
        else:
            self.members.add(key)

    def _cycles(self) -> None:
        for _ in range(self._draw.randint(1, 4)):
            self.h.cycle()

    def _confirm(self) -> None:
        self.h.confirm()

    def _end(self) -> None:
        """Have the RM end something, in any way and perhaps twice."""
        application = self.h.application()
        known = [record.ask for record in application.asks.waiting()]
        known += [entry.allocation.ask for entry in self.placed()]
        if not known:
            return
        ask = self._draw.choice(known)
        termination = self._draw.choice(list(TerminationType))
        waits = application.allocations.get(ask.allocation_key) is None
        for _ in range(self._draw.randint(1, 2)):
            self.h.release(ask.allocation_key, termination=termination)
        if termination is TerminationType.SCHEDULING_FAILED_ON_RM and application.asks.knows(
            ask.allocation_key
        ):
            return  # It waits, as before or again.
        if ask.placeholder and waits and termination is not TerminationType.TIMEOUT:
            self.taken_back[ask.task_group_name] += 1
        self.members.discard(ask.allocation_key)

    def _change_nodes(self) -> None:
        nodes = [entry.node_id for entry in self.h.state.nodes]
        if len(nodes) > 2 and self._draw.random() < 0.5:
            self.h.update_node(self._draw.choice(nodes), NodeAction.DECOMISSION)
        else:
            self._new_node()

    def _wait(self) -> None:
        self.h.advance(self._draw.choice((1, 5, 61)))

    def _listen(self) -> None:
        for key, _ in self.h.releases[self._heard :]:
            self.members.discard(key)
        self._heard = len(self.h.releases)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_every_placeholder_is_counted_once(seed: int) -> None:
    """It waits, is placed, was replaced, or ended unused."""
    story = GangStory(seed)
    for _ in range(STEPS):
        story.step()
        if not story.goes_on:
            return
        held = [entry.allocation.ask for entry in story.placed()]
        held += [record.ask for record in story.h.application().asks.waiting()]
        for name, group in story.h.application()._core.task_groups.by_name.items():
            left = sum(ask.placeholder and ask.task_group_name == name for ask in held)
            counted = left + group.replaced + group.timed_out + story.taken_back[name]
            assert (story.asked[name], story.asked[name]) == (group.count, counted)


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_no_member_is_lost(seed: int) -> None:
    """What the RM asks for is known until the RM ends it or gets the message that it ends."""
    story = GangStory(seed)
    for _ in range(STEPS):
        story.step()
        if not story.goes_on:
            return

        assert [] == sorted(key for key in story.members if not story.h.application().asks.knows(key))
