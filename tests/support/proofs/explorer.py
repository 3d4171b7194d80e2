"""Every order of what may happen in a small world, and the promises of preemption in each state.

States are not copied: a path of steps is repeated from its beginning. Breadth-first, so that a path to a
broken promise is one of the shortest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from support.model.builders import SECOND_NS, an_ask_submission
from support.model.harness import Harness
from support.proofs.accounts import Accounts, Asked, Claim, Ran
from support.proofs.configured import PARTITION_LINES, SmallPredicates, queues_text
from support.proofs.waiting import OPTED_OUT, ORIGINATOR, Waiting
from support.proofs.worlds import AskIn, QueueIn, RunningIn, Size, World, path_of

from licorne.model.resources.resource import Resource
from licorne.model.scheduling.cycle import CycleOutcome, run_cycle
from licorne.model.state.preemption_log import PreemptionCause, PreemptionRecord
from licorne.model.values.messages import (
    AllocationPlaced,
    AllocationsReleased,
    NodeAction,
    TerminationType,
)

_ROUNDS_MAX: Final = 12
"""In so many rounds of confirmations and time preemption has ended in these worlds."""
_CYCLES_MAX: Final = 100
_STEP_SECONDS: Final = 16
"""More than a failed attempt, a claim and a reservation for a preemptor wait."""


class Step(NamedTuple):
    """What happens next: `confirm KEY`, `withdraw KEY`, `submit KEY`, `reload`, `lose` or `wait`."""

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


class _Run:
    """A world, and the steps made in it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.faults: list[str] = []
        self.preemptions = 0
        self.steps_left: list[Step] = []
        self._heard = 0
        self._asked: dict[str, Asked] = {}
        self.harness = _Quick(
            self._configuration(world.queues, lowered=99),
            partition=PARTITION_LINES,
            predicates=SmallPredicates(frozenset(f"n{node}" for node in world.refused), world.demands)
            if world.refused or world.demands
            else None,
        )
        self.accounts = Accounts(world)
        self._waiting = Waiting(self.accounts, self.harness.state, self._asked)
        for number, size in enumerate(world.nodes):
            self.harness.nodes(f"n{number}", capacity=self._resource(size))
        users = {(ran.leaf, ran.user, 0) for ran in world.running}
        users |= {(ask.leaf, ask.user, ask.gang) for ask in world.asks}
        for leaf, user, gang in sorted(users):
            tags = {"gangSize": str(gang)} if gang else {}
            self.harness.submit(_application(leaf, user), leaf, user=user, tags=tags)
        for number, ran in enumerate(world.running):
            self.accounts.running[f"v{number}"] = Ran(
                *(f"v{number}", ran.leaf, ran.node, ran.size),
                needs_node=ran.needs_node,
                priority=ran.priority,
                objection=ran.objection,
                user=ran.user,
                since=self._seconds(),
            )
            self._send(f"v{number}", ran)
        self._late = {f"a{number}": ask for number, ask in enumerate(world.asks)}
        self._withdrawn = False
        self._pending = [
            verb for verb, is_there in (("reload", world.reloaded), ("lose", world.lost >= 0)) if is_there
        ]
        for key in list(self._late)[: len(world.asks) - world.late]:
            self._submit(key, self._late.pop(key))
        if world.lowered:
            self._load(world.queues, lowered=world.lowered[1])
        self._settle()
        self.make(Step("wait"))
        if world.lowered:
            more = self.accounts.could_end_for_maximum(world.lowered[0])
            self.faults += [f"P-maximum: {key} could end as well" for key in more]

    def _configuration(self, queues: tuple[QueueIn, ...], *, lowered: int = 0) -> str:
        world = self.world
        if world.lowered is not None:
            queues = _with_maximum(queues, world.lowered[0], lowered)
        return queues_text(queues, world.types, world.limits)

    def _load(self, queues: tuple[QueueIn, ...], *, lowered: int = 0) -> None:
        """Load other queues."""
        if self.world.lowered is not None:
            queues = _with_maximum(queues, self.world.lowered[0], lowered)
        self.harness.reload(self._configuration(queues, lowered=lowered), partition=PARTITION_LINES)
        self.accounts.load(queues)

    def _seconds(self) -> float:
        return self.harness.clock.now_ns() / SECOND_NS

    def _resource(self, size: Size) -> Resource:
        return Resource(dict(zip(self.world.types, size, strict=True)))

    def _send(self, key: str, each: AskIn | RunningIn) -> None:
        positive = Resource({name: one for name, one in zip(self.world.types, each.size, strict=True) if one})
        if isinstance(each, RunningIn):
            needed, objection, may_preempt = each.node if each.needs_node else -1, each.objection, True
        else:
            needed, objection, may_preempt = each.node, 0, each.may_preempt
        submission = an_ask_submission(
            key,
            _application(each.leaf, each.user),
            resource=positive,
            willing=objection != OPTED_OUT,
            originator=objection == ORIGINATOR,
            may_preempt=may_preempt,
            priority=each.priority,
            node_id=f"n{each.node}" if isinstance(each, RunningIn) else "",
            required_node=f"n{needed}" if needed >= 0 else "",
        )
        self.harness.partition.update_allocations([submission], [])
        self.harness.advance(milliseconds=10)

    def _submit(self, key: str, ask: AskIn) -> None:
        self.accounts.asks[key] = self._asked[key] = Asked(key, *ask)
        self._send(key, ask)

    # --------------------------------------------------------------------------------------- steps

    def next_steps(self) -> Iterator[Step]:
        """Yield what may happen next."""
        yield Step("wait")
        yield from (Step("confirm", ran.key) for ran in self.accounts.running.values() if ran.ending)
        yield from (Step("submit", key) for key in self._late)
        yield from (Step(verb) for verb in self._pending)
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
            ask = self.accounts.asks.pop(step.key)
            self.accounts.end_claim(step.key)
            self.harness.release(step.key, application_id=_application(ask.leaf, ask.user))
        elif step.verb == "reload":
            self._pending.remove("reload")
            self._load(self.world.reloaded)
            self.accounts.rules.replace(self.world.reloaded)
            for claim in self.accounts.claims.values():
                claim.is_excused = True
        elif step.verb == "lose":
            self._pending.remove("lose")
            self._lose(self.world.lost)
        else:
            self.confirm(step.key)
        self._settle()

    def confirm(self, key: str, *, again: bool = False) -> None:
        """Confirm the end of a victim; `again`: its job asks for the same."""
        ran = self.accounts.running.pop(key)
        self._note_ended(key)
        self.harness.release(
            key,
            application_id=_application(ran.leaf, ran.user),
            termination=TerminationType.PREEMPTED_BY_SCHEDULER,
        )
        if again:
            self._submit(f"{key}'", AskIn(ran.leaf, ran.size, priority=ran.priority, user=ran.user))

    def _note_ended(self, key: str) -> None:
        for claim in self.accounts.claims.values():
            claim.ending.discard(key)
            is_gone = any(node in self.accounts.lost for node in claim.nodes)
            claim.is_over = claim.is_over or (not claim.ending and is_gone)

    def _lose(self, node: int) -> None:
        accounts = self.accounts
        accounts.lost.add(node)
        for key in [ran.key for ran in accounts.running.values() if ran.node == node]:
            del accounts.running[key]
            self._note_ended(key)
        for key in [ask.key for ask in accounts.asks.values() if ask.node == node]:
            del accounts.asks[key]
        self.harness.update_node(f"n{node}", NodeAction.DECOMISSION)

    def _settle(self) -> None:
        self.accounts.now = self._seconds()
        for _ in range(_CYCLES_MAX):
            outcome = run_cycle(self.harness.state)
            self._listen()
            if outcome is CycleOutcome.NOTHING:
                self._check_held(self.accounts.claims)
                self._check_quiet()
                return
        raise AssertionError(f"the partition is still busy after {_CYCLES_MAX} cycles")

    # ------------------------------------------------------------------------------------- answers

    def _listen(self) -> None:
        """Judge and note what was announced since the last time."""
        self.accounts.now = self._seconds()
        records = list(self.harness.state.preemptions)[self.preemptions :]
        asks = [record.allocation_key for record in records]
        self.preemptions += len(records)
        recorded = sorted(victim.allocation_key for record in records for victim in record.victims)
        released: list[str] = []
        waiting = {ask.key for ask in self.accounts.asks.values() if ask.gang}
        for said in self.harness.announcements[self._heard :]:
            if isinstance(said, AllocationPlaced):
                self._note_placed(said.allocation.allocation_key, said.allocation.node_id)
            elif isinstance(said, AllocationsReleased):
                ended = {
                    release.allocation_key
                    for release in said.releases
                    if release.termination is TerminationType.PREEMPTED_BY_SCHEDULER
                    and release.allocation_key in self.accounts.running
                }
                released += ended
                for record in records:
                    if ended & {victim.allocation_key for victim in record.victims}:
                        self._judge(record)
                        records.remove(record)
                        break
        self._heard = len(self.harness.announcements)
        placed = waiting - self.accounts.asks.keys()
        if placed and (waiting - placed or len(placed) < self._asked[min(placed)].gang):
            self.faults.append(f"P-one: of a gang only {', '.join(sorted(placed))} is placed")
        if recorded != sorted(released):
            self.faults.append(f"P-one: {recorded} are chosen, and the RM hears of {sorted(released)}")
        for record in records:  # They end nothing new, but take over what ends.
            self._judge(record)
        self._check_held(asks)

    def _note_placed(self, key: str, node_id: str) -> None:
        ask = self.accounts.asks.pop(key, None)
        if ask is None:
            return  # It exists from the beginning.
        node = int(node_id[1:])
        self.accounts.end_claim(key)
        self.accounts.running[key] = Ran(
            *(key, ask.leaf, node, ask.size),
            needs_node=ask.node >= 0,
            priority=ask.priority,
            user=ask.user,
            since=self.accounts.now,
        )
        if ask.node >= 0:
            for claim in self.accounts.claims.values():
                claim.is_over = claim.is_over or (node in claim.nodes and claim.ask.node < 0)
        for claim in self.accounts.claims.values():
            self._check_room(claim, f"placed {key}", ask.leaf)

    def _check_room(self, claim: Claim, what: str, leaf: str) -> None:
        """Check that the room of a claim is kept, on its node and below the maxima that a placement used."""
        accounts = self.accounts
        if claim.is_over or claim.is_excused:
            return
        for limit in self.world.limits:
            ends = [accounts.running[key] for key in claim.ending]
            if limit.queue in path_of(leaf) and accounts.lacks_of_limit(claim.ask, limit, ends) > 0:
                self.faults.append(f"P-room: {what} in what {limit.user} may use for {claim.ask.key}")
        for queue in path_of(leaf):
            if queue in accounts.maximum and queue in path_of(claim.ask.leaf):
                ends = [accounts.running[key] for key in claim.ending]
                gone = sum(ran.size[0] for ran in ends if queue in path_of(ran.leaf))
                most = accounts.most(queue, 0, claim.ask.key) - gone
                if most + claim.ask.size[0] > accounts.maximum[queue]:
                    self.faults.append(f"P-room: {what} in the room of {queue} for {claim.ask.key}")
        if accounts.lost.intersection(claim.nodes):
            return
        if not accounts.nodes_fit(claim.ask, claim.nodes, [accounts.running[key] for key in claim.ending]):
            self.faults.append(f"P-room: {what} in the room that ends for {claim.ask.key}")

    def _judge(self, record: PreemptionRecord) -> None:
        accounts = self.accounts
        victims = [accounts.running[victim.allocation_key] for victim in record.victims]
        if record.cause is PreemptionCause.QUOTA:
            self.faults += accounts.faults_for_maximum(record.queue_path, victims)
        else:
            ask = accounts.whole(self._asked[record.allocation_key])
            preemptors = record.justification.preemptors
            nodes = tuple(sorted({int(each.node_id[1:]) for each in preemptors}))
            if ask.keys != tuple(each.allocation_key for each in preemptors):
                self.faults.append(f"P-one: {ask.key} preempts without all members of its gang")
            if record.cause is PreemptionCause.GUARANTEE:
                self.faults += accounts.faults_for_guarantee(ask, nodes, victims)
            elif record.cause is PreemptionCause.PRIORITY:
                self.faults += accounts.faults_inside(ask, nodes, victims)
            else:
                self.faults += accounts.faults_for_node(ask, victims)
            self.faults += self._waiting.unwilling(ask, record.cause, victims)
            self.faults += self._waiting.too_many(ask, victims)
            ending = {victim.key for victim in victims} | accounts.taken_over(ask, nodes)
            accounts.claims[ask.key] = Claim(ask, nodes, ending)
            if record.cause is not PreemptionCause.REQUIRED_NODE:
                for victim in victims:
                    accounts.rules.note(victim.leaf, accounts.now)
        for victim in victims:
            victim.ending = True

    def _check_quiet(self) -> None:
        """Check what holds once nothing more can be done."""
        accounts = self.accounts
        for reserved in self.harness.state.reserved.all():
            key = reserved.ask.allocation_key
            if self._asked[key].gang and self.harness.state.claims.find(key) is None:
                self.faults.append(f"P-reserved: {key} has {reserved.node_id} reserved without a claim")
        for claim in accounts.claims.values():
            others = (ask for ask in accounts.asks.values() if ask.key not in claim.ask.keys)
            is_open = not (claim.is_over or claim.is_excused or claim.ending)
            if is_open and all(ask.node not in claim.nodes for ask in others):
                self.faults.append(f"P-effect: all has ended for {claim.ask.key}, and it waits")
        for queue in self.harness.state.tree:
            ending = [
                ran for ran in accounts.running.values() if ran.ending and queue.path in path_of(ran.leaf)
            ]
            for index, name in enumerate(self.world.types):
                counted, ends = queue.preempting.get(name), sum(ran.size[index] for ran in ending)
                if counted != ends:
                    self.faults.append(f"P-one: {queue.path} counts {counted} as ending, and {ends} ends")

    def _check_held(self, keys: Iterable[str]) -> None:
        """Check that asks that have preempted have their node, unless an ask waits that needs it."""
        needed = {ask.node for ask in self.accounts.asks.values()}
        for key in keys:
            claim = self.accounts.claims.get(key)
            if claim is None or claim.is_over:
                continue
            reserved = [self.harness.state.reserved.get(each) for each in claim.ask.keys]
            kept = {each.node_id for each in reserved if each is not None}
            for node in claim.nodes:
                if node not in needed and f"n{node}" not in kept:
                    self.faults.append(f"P-reserved: {key} has not n{node} reserved")

    # ------------------------------------------------------------------------------------ the ends

    def key(self) -> tuple[object, ...]:
        """Return what the future depends on; times only as far as a step of time changes them."""
        state, now_ns = self.harness.state, self.harness.clock.now_ns()

        def is_old(time_ns: int | None) -> bool:
            return time_ns is not None and now_ns - time_ns >= (_STEP_SECONDS - 1) * SECOND_NS

        waiting = []
        for key, ask in sorted(self.accounts.asks.items()):
            known = state.entries[_application(ask.leaf, ask.user)].application.asks.record(key)
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
            (self._withdrawn, tuple(self._late), tuple(self._pending)),
            self._ages(),
        )

    def _ages(self) -> tuple[object, ...]:
        """Return how long everything has run, and what counts for budgets, where that decides."""
        now, rules = self._seconds(), self.accounts.rules
        if not rules.count_time:
            return ()
        ages = sorted((ran.key, min(int(now - ran.since) // 8, 8)) for ran in self.accounts.running.values())
        return (*ages, *rules.recent(now))

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
        self.faults += self._waiting.faults()


def _application(leaf: str, user: str) -> str:
    """Return the application of a user in a leaf."""
    return f"{leaf}-{user}"


def _with_maximum(queues: tuple[QueueIn, ...], path: str, maximum: int) -> tuple[QueueIn, ...]:
    return tuple(each._replace(maximum=maximum) if each.path == path else each for each in queues)


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
