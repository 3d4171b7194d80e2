"""Every order of what may happen in a small world, and the promises of preemption in each state.

States are not copied: a path of steps is repeated from its beginning. Breadth-first, so that a path to a
broken promise is one of the shortest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from typing import Final, NamedTuple

from support.model.builders import SECOND_NS, an_ask_submission
from support.model.harness import Harness
from support.proofs.accounts import Accounts, Asked, Claim, Ran
from support.proofs.worlds import AskIn, Size, World

from licorne.model.resources.resource import Resource
from licorne.model.scheduling.cycle import CycleOutcome, run_cycle
from licorne.model.state.preemption_log import PreemptionCause, PreemptionRecord
from licorne.model.values.messages import AllocationPlaced, AllocationsReleased, TerminationType

__all__ = ["Explored", "Step", "explore"]

_ROUNDS_MAX: Final = 12
"""In so many rounds of confirmations and time preemption has ended in these worlds."""
_CYCLES_MAX: Final = 100
_STEP_SECONDS: Final = 16
"""More than a failed attempt, a claim and a reservation for a preemptor wait."""


class Step(NamedTuple):
    """What happens next: `confirm KEY`, `withdraw KEY`, `submit KEY` or `wait`."""

    verb: str
    key: str = ""


@dataclass
class Explored:
    """What was found in one world."""

    states: int = 0
    preemptions: int = 0
    faults: list[tuple[World, tuple[Step, ...], str]] = field(default_factory=list)


class _Quick(Harness):
    """Without the invariants of the partition after every step: other tests have them."""

    def validate(self) -> None:
        pass


@cache
def _properties_of(
    world_queues: tuple[tuple[str, Size], ...], types: tuple[str, ...], maximum: tuple[str, int]
) -> str:
    """Return queues as YAML."""
    lines: list[str] = []
    paths = dict(world_queues)
    every = sorted({*paths} | ({"root.p"} if any(path.startswith("root.p.") for path in paths) else set()))
    for path in every:
        margin = "  " * (path.count(".") - 1)
        lines.append(f"{margin}- name: {path.rpartition('.')[2]}")
        lines.append(f"{margin}  properties: {{preemption.delay: 1s, quota.preemption.delay: 1s}}")
        named = {name: amount for name, amount in zip(types, paths.get(path, ()), strict=False) if amount}
        limits = [f"guaranteed: {_braced(named)}"] if named else []
        if path == maximum[0]:
            limits.append(f"max: {_braced({types[0]: maximum[1]})}")
        if limits:
            lines.append(f"{margin}  resources: {{{', '.join(limits)}}}")
        if path == "root.p":
            lines.append(f"{margin}  queues:")
    return "\n".join(lines)


def _braced(amounts: dict[str, int]) -> str:
    """Write amounts; a gpu is a number, memory too."""
    return "{" + ", ".join(f"{name}: {amount}" for name, amount in amounts.items()) + "}"


class _Run:
    """A world, and the steps made in it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.faults: list[str] = []
        self.preemptions = 0
        self.steps_left: list[Step] = []
        self._heard = 0
        self._asked: dict[str, Asked] = {}
        top = (world.lowered[0], 99) if world.lowered else ("", 0)
        queues = _properties_of(world.queues, world.types, top)
        self.harness = _Quick(queues, partition="preemption: {quotapreemptionenabled: true}")
        self.accounts = Accounts(world)
        for number, size in enumerate(world.nodes):
            self.harness.nodes(f"n{number}", capacity=self._resource(size))
        leaves = {ran.leaf for ran in world.running} | {ask.leaf for ask in world.asks}
        for leaf in sorted(leaves):
            self.harness.submit(leaf, leaf)
        for number, ran in enumerate(world.running):
            self._send(f"v{number}", ran.leaf, ran.size, node_id=f"n{ran.node}")
            self.accounts.running[f"v{number}"] = Ran(f"v{number}", *ran)
        self._late = {f"a{number}": ask for number, ask in enumerate(world.asks)}
        self._withdrawn = False
        for key in list(self._late)[: len(world.asks) - world.late]:
            self._submit(key, self._late.pop(key))
        if world.lowered:
            self.accounts.maximum = dict([world.lowered])
            self.harness.reload(
                _properties_of(world.queues, world.types, world.lowered),
                partition="preemption: {quotapreemptionenabled: true}",
            )
        self._settle()
        self.make(Step("wait"))

    def _resource(self, size: Size) -> Resource:
        return Resource(dict(zip(self.world.types, size, strict=True)))

    def _send(self, key: str, leaf: str, size: Size, *, node_id: str = "", required_node: str = "") -> None:
        positive = Resource({name: one for name, one in zip(self.world.types, size, strict=True) if one})
        submission = an_ask_submission(
            key,
            leaf,
            resource=positive,
            willing=True,
            may_preempt=True,
            node_id=node_id,
            required_node=required_node,
        )
        self.harness.partition.update_allocations([submission], [])
        self.harness.advance(milliseconds=10)

    def _submit(self, key: str, ask: AskIn) -> None:
        self.accounts.asks[key] = self._asked[key] = Asked(key, *ask)
        self._send(key, ask.leaf, ask.size, required_node=f"n{ask.node}" if ask.node >= 0 else "")

    # --------------------------------------------------------------------------------------- steps

    def next_steps(self) -> Iterator[Step]:
        """Yield what may happen next."""
        yield Step("wait")
        yield from (Step("confirm", ran.key) for ran in self.accounts.running.values() if ran.ending)
        yield from (Step("submit", key) for key in self._late)
        if not self._withdrawn:
            yield from (Step("withdraw", key) for key in self.accounts.asks)

    def make(self, step: Step) -> None:
        """Make a step, then run cycles until nothing changes."""
        if step.verb == "wait":
            self.harness.advance(_STEP_SECONDS)
            for claim in self.accounts.claims.values():
                claim.is_over = claim.is_over or not claim.ending
            self.harness.partition.preempt_over_quota()
            self._listen()
        elif step.verb == "submit":
            self._submit(step.key, self._late.pop(step.key))
        elif step.verb == "withdraw":
            self._withdrawn = True
            leaf = self.accounts.asks.pop(step.key).leaf
            self.accounts.claims.pop(step.key, None)
            self.harness.release(step.key, application_id=leaf)
        else:
            self.confirm(step.key)
        self._settle()

    def confirm(self, key: str, *, again: bool = False) -> None:
        """Confirm the end of a victim; `again`: its job asks for the same."""
        ran = self.accounts.running.pop(key)
        for claim in self.accounts.claims.values():
            claim.ending.discard(key)
        self.harness.release(key, application_id=ran.leaf, termination=TerminationType.PREEMPTED_BY_SCHEDULER)
        if again:
            self._submit(f"{key}'", AskIn(ran.leaf, ran.size))

    def _settle(self) -> None:
        for _ in range(_CYCLES_MAX):
            outcome = run_cycle(self.harness.state)
            self._listen()
            if outcome is CycleOutcome.NOTHING:
                self._check_held(self.accounts.claims)
                return
        raise AssertionError(f"the partition is still busy after {_CYCLES_MAX} cycles")

    # ------------------------------------------------------------------------------------- answers

    def _listen(self) -> None:
        """Judge and note what was announced since the last time."""
        records = list(self.harness.state.preemptions)[self.preemptions :]
        asks = [record.allocation_key for record in records]
        self.preemptions += len(records)
        for said in self.harness.announcements[self._heard :]:
            if isinstance(said, AllocationPlaced):
                self._note_placed(said.allocation.allocation_key, said.allocation.node_id)
            elif isinstance(said, AllocationsReleased):
                ended = {release.allocation_key for release in said.releases}
                for record in records:
                    if ended & {victim.allocation_key for victim in record.victims}:
                        self._judge(record)
                        records.remove(record)
                        break
        self._heard = len(self.harness.announcements)
        for record in records:  # They end nothing new, but take over what ends.
            self._judge(record)
        self._check_held(asks)

    def _note_placed(self, key: str, node_id: str) -> None:
        ask = self.accounts.asks.pop(key, None)
        if ask is None:
            return  # It exists from the beginning.
        node = int(node_id[1:])
        self.accounts.claims.pop(key, None)
        self.accounts.running[key] = Ran(key, ask.leaf, node, ask.size, needs_node=ask.node >= 0)
        if ask.node >= 0:
            for claim in self.accounts.claims.values():
                claim.is_over = claim.is_over or claim.node == node
        for claim in self.accounts.claims.values():
            self._check_room(claim, f"placed {key}")

    def _check_room(self, claim: Claim, what: str) -> None:
        if claim.is_over:
            return
        for index, wanted in enumerate(claim.ask.size):
            ending = (self.accounts.running[key] for key in claim.ending)
            coming = sum(ran.size[index] for ran in ending if ran.node == claim.node)
            if self.accounts.free(claim.node, index) + coming < wanted:
                self.faults.append(f"P-room: {what} in the room that ends for {claim.ask.key}")

    def _judge(self, record: PreemptionRecord) -> None:
        accounts = self.accounts
        victims = [accounts.running[victim.allocation_key] for victim in record.victims]
        if record.cause is PreemptionCause.QUOTA:
            self.faults += accounts.faults_for_maximum(record.queue_path, victims)
        else:
            ask, node = self._asked[record.allocation_key], int(record.node_id[1:])
            if record.cause is PreemptionCause.GUARANTEE:
                self.faults += accounts.faults_for_guarantee(ask, node, victims)
            else:
                self.faults += accounts.faults_for_node(ask, victims)
            taken_over = {ran.key for ran in accounts.unclaimed() if ran.node == node or not victims}
            accounts.claims[ask.key] = Claim(ask, node, {victim.key for victim in victims} | taken_over)
        for victim in victims:
            victim.ending = True

    def _check_held(self, keys: Iterable[str]) -> None:
        """Check that asks that have preempted have their node, unless an ask waits that needs it."""
        needed = {ask.node for ask in self.accounts.asks.values()}
        for key in keys:
            claim = self.accounts.claims.get(key)
            if claim is None or claim.node in needed:
                continue
            reserved = self.harness.state.reserved.get(key)
            if not claim.is_over and (reserved is None or reserved.node_id != f"n{claim.node}"):
                self.faults.append(f"P-reserved: {key} has not n{claim.node} reserved")

    # ------------------------------------------------------------------------------------ the ends

    def key(self) -> tuple[object, ...]:
        """Return what the future depends on; times only as far as a step of time changes them."""
        state, now_ns = self.harness.state, self.harness.clock.now_ns()

        def is_old(time_ns: int | None) -> bool:
            return time_ns is not None and now_ns - time_ns >= (_STEP_SECONDS - 1) * SECOND_NS

        waiting = []
        for key, ask in sorted(self.accounts.asks.items()):
            known = state.entries[ask.leaf].application.asks.record(key)
            assert known is not None
            checked_ns = known.preemption_checked_ns
            reserved = state.reserved.get(key)
            ages = (is_old(known.ask.created_at_ns), checked_ns is None, is_old(checked_ns))
            waiting.append((key, ages, known.preemption_triggered, reserved and reserved.node_id))
        return (
            tuple(sorted((ran.key, ran.node, ran.ending) for ran in self.accounts.running.values())),
            tuple(waiting),
            tuple((claim.ask.allocation_key, tuple(sorted(claim.ending))) for claim in state.claims),
            tuple((key, claim.is_over) for key, claim in sorted(self.accounts.claims.items())),
            tuple(
                (each.allocation_key, tuple(v.allocation_key for v in each.victims))
                for each in state.preemptions
            ),
            (self._withdrawn, tuple(self._late)),
        )

    def finish(self) -> None:
        """Confirm all and let time pass until nothing is preempted any more; victims are asked for again."""
        quiet = 0
        for _ in range(_ROUNDS_MAX):
            before = self.preemptions
            for key in [ran.key for ran in self.accounts.running.values() if ran.ending]:
                self.confirm(key, again=True)
            self.make(Step("wait"))
            quiet = quiet + 1 if self.preemptions == before else 0
            if quiet == 2:
                break
        else:
            self.faults.append(f"P-ends: preemption goes on after {_ROUNDS_MAX} rounds")
            return
        before = self.preemptions
        self.harness.advance(700)  # What would repeat an earlier preemption waits up to ten minutes.
        self._settle()
        if self.preemptions > before:
            self.faults.append("P-ends: preemption begins again after ten minutes")
        self._check_served()

    def _check_served(self) -> None:
        """Check that nobody waits to whom a guarantee is owed and for whom something may end on one node."""
        accounts = self.accounts
        for ask in accounts.asks.values():
            if ask.node >= 0:
                continue
            for node in range(len(self.world.nodes)):
                if self._is_kept_for_others(ask, node):
                    continue
                victims = self._enough(ask, node)
                if victims:
                    names = ", ".join(victim.key for victim in victims)
                    self.faults.append(f"P1: {ask.key} waits although {names} may end for it")

    def _is_kept_for_others(self, ask: Asked, node: int) -> bool:
        for reserved in self.harness.state.reserved.on_node(f"n{node}"):
            other = self._asked[reserved.ask.allocation_key]
            if other is not ask and (other.node >= 0 or self.accounts.is_entitled(other)):
                return True
        return False

    def _enough(self, ask: Asked, node: int) -> Sequence[Ran]:
        possible = [ran for ran in self.accounts.running.values() if not ran.ending and ran.node == node]
        for count in range(1, len(possible) + 1):
            for victims in combinations(possible, count):
                if not self.accounts.faults_for_guarantee(ask, node, victims):
                    return victims
        return ()


def _replayed(world: World, path: tuple[Step, ...]) -> _Run:
    run = _Run(world)
    for step in path:
        run.make(step)
    return run


def explore(world: World, depth: int) -> Explored:
    """Make every order of steps in a world, as many as `depth` after the first wait."""
    found = Explored()
    seen: set[tuple[object, ...]] = set()
    paths: list[tuple[Step, ...]] = [()]
    for length in range(depth + 1):
        following: list[tuple[Step, ...]] = []
        for path in paths:
            run = _replayed(world, path)
            key = run.key()
            if key in seen:
                continue
            seen.add(key)
            found.states += 1
            found.preemptions = max(found.preemptions, run.preemptions)
            if length < depth:
                following += [(*path, step) for step in run.next_steps()]
            if not run.faults:
                run.finish()
            if run.faults:
                found.faults += [(world, path, fault) for fault in run.faults]
                return found
        paths = following
    return found
