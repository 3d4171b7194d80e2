"""Judges a preemption: each figure of its record, and each promise about its victims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from .accounts import RecordedAccounts, RecordedAllocation, RecordedAsk, RecordedClaim, less
from .queues import RecordedQueue, Size, positive, text_of, total

_DELAY_NS: Final = 30 * 10**9


class PreemptionCheck:
    """One preemption and the accounts at the moment of its decision: its victims are not marked yet.

    Args:
        accounts: The accounts.
        now_ns: The time.
        record: The record of the preemption, whose asks wait and whose victims run.
        unjudged: Counts the decisions that are not judged.
    """

    def __init__(
        self, accounts: RecordedAccounts, now_ns: int, record: Mapping[str, Any], unjudged: Counter[str]
    ) -> None:
        figures = record["justification"]
        self.cause = str(record["cause"])
        self._accounts = accounts
        self._now_ns = now_ns
        self._record = record
        self._unjudged = unjudged
        self._nodes = {str(each["allocationKey"]): str(each["nodeID"]) for each in figures["preemptors"]}
        self._asks = [accounts.asks[key] for key in self._nodes]
        self._ask = _as_one(self._asks)
        self._asked = positive(self._ask.size) if self._ask else {}
        self._victims = [accounts.running[str(each["allocationKey"])] for each in record["victims"]]
        self._needs = [str(each["neededFor"]) for each in record["victims"]]
        self._taken = [run for run in accounts.unclaimed() if run.ask.key in figures["takenOver"]]
        self._enforced = accounts.settings.queue(str(record["queueName"]))
        self._inside = self._ask.path if self._ask else tuple(self._enforced.up)
        """The queues from which the ask, or the maximum, considers victims."""
        others = accounts.others(self._ask) if self._ask else []
        self._is_unclear = accounts.has_hidden_claims or any(claim.is_unclear for claim in others)

    def begin_claims(self, line: int) -> None:
        """Start the claims of the asks, and count the losses of queues."""
        if self._ask is not None:
            ending = {run.ask.key for run in (*self._victims, *self._taken)}
            nodes = [*dict.fromkeys(self._nodes.values())]
            since = None if ending else self._now_ns
            claim = RecordedClaim(self._ask, [*self._nodes], nodes, line, ending, since)
            self._accounts.claims = [*self._accounts.others(self._ask), claim]
        if self.cause in ("GUARANTEE", "PRIORITY"):
            self._accounts.losses += [(self._now_ns, run.ask.path) for run in self._victims]

    def reasons(self) -> Iterator[str]:
        """Yield the reasons against the preemption."""
        for run in self._victims:
            yield from self._against_victim(run)
        yield from self._against_order()
        if self._ask is None:
            yield from self._against_quota()
        else:
            if self.cause == "REQUIRED_NODE":
                yield from self._against_required_node(self._ask)
            else:
                yield from self._against_ask(self._ask)
            yield from self._needless(self._ask)
        yield from _differences(self._record, self._expected())

    # ------------------------------------------------------------------------------------- figures

    def _used(self, queue: RecordedQueue) -> Size:
        return self._accounts.used(queue, self._ask)

    def _gone(self, queue: RecordedQueue) -> Size:
        return total(run.ask.size for run in self._victims if queue in run.ask.path)

    def _after(self, queue: RecordedQueue) -> Size:
        placed = total(ask.size for ask in self._asks if queue in ask.path)
        return less(total([self._used(queue), placed]), self._gone(queue))

    def _room(self, node: str, spared: RecordedAllocation | None = None) -> Size:
        """Return the room of a node after all victims, or all but one, have ended, and the asks run."""
        ending = [run for run in (*self._victims, *self._taken) if run.node == node and run is not spared]
        placed = total(ask.size for ask in self._asks if self._nodes[ask.key] == node)
        free = self._accounts.free(self._accounts.nodes[node])
        return less(total([free, *(run.ask.size for run in ending)]), placed)

    def _expected(self) -> dict[str, Any]:
        """Return the expected record, without the parts that the lines do not show."""
        paths = [each.path for each in (*self._asks, *(run.ask for run in self._victims))]
        queues = {level.path: level for path in paths for level in path}
        known = [q for _, q in sorted(queues.items()) if not (self._is_unclear and q in self._inside)]
        if len(known) < len(queues):
            self._unjudged["figures of queues beside a claim that may have ended"] += 1
        if self._accounts.swaps:
            self._unjudged["room of a node while placeholders are replaced"] += 1
        nodes = {} if self._accounts.swaps else dict.fromkeys(self._nodes.values())
        free, places = self._accounts.free, self._accounts.nodes
        return {
            "victims": {run.ask.key: self._expected_victim(run) for run in self._victims},
            "justification": {
                "preemptors": {
                    ask.key: _place(ask, self._nodes[ask.key]) | {"resource": ask.size} for ask in self._asks
                },
                "queues": {queue.path: self._expected_queue(queue) for queue in known},
                "nodes": {each: {"before": free(places[each]), "after": self._room(each)} for each in nodes},
            },
        }

    def _expected_victim(self, run: RecordedAllocation) -> dict[str, Any]:
        expected = _place(run.ask, run.node) | {"resource": run.ask.size, "priorities": None}
        if self._ask is not None:
            frame, mine, theirs = self._priorities(self._ask, run)
            expected["priorities"] = {"frame": frame, "ask": mine, "victim": theirs}
        return expected | {"gives": self._gives(run)}

    def _expected_queue(self, queue: RecordedQueue) -> dict[str, Any]:
        promised, expected = queue.guaranteed, {"guaranteed": queue.guaranteed or None}
        for when, used in (("Before", self._used(queue)), ("After", self._after(queue))):
            owed = {name: one for name, one in positive(less(promised, used)).items() if name in promised}
            expected |= {f"owed{when}": owed, f"above{when}": positive(less(used, promised))}
        return expected

    def _priorities(self, ask: RecordedAsk, run: RecordedAllocation) -> tuple[str, int, int]:
        """Return the frame of an ask and a victim, and the priority of each there."""
        if self.cause == "REQUIRED_NODE":
            return "", ask.priority, run.ask.priority
        frame = next(level for level in run.ask.path if level in ask.path)
        found = []
        for each in (ask, run.ask):
            priority = each.priority
            for level in each.path[: each.path.index(frame)]:
                priority = level.counts_as(priority)
            found.append(priority)
        return frame.path, found[0], found[1]

    # ------------------------------------------------------------------------------------- victims

    def _outside(self, run: RecordedAllocation) -> list[RecordedQueue]:
        """Return the queues of a victim that do not contain the ask, from its leaf up."""
        return [level for level in run.ask.path if level not in self._inside]

    def _against_victim(self, run: RecordedAllocation) -> Iterator[str]:
        key, leaf, is_for_ask = run.ask.key, run.ask.path[0], self.cause in ("GUARANTEE", "PRIORITY")
        if run.ask.required_node:
            yield f"{key} ended, and can run on {run.ask.required_node} only"
        if run.is_leaving or run.is_preempted:
            yield f"{key} was asked to end already"
        if is_for_ask and leaf.says("preemption.policy") == "disabled":
            yield f"{key} ended, and {leaf.path} has preemption.policy: disabled"
        around = (self._outside(run) or [leaf])[-1]
        floor_ns = around.ns("preemption.min-runtime")
        is_bound = is_for_ask or around.says("preemption.min-runtime.scope") != "guarantee"
        ran_ns = self._now_ns - run.since_ns
        if ran_ns < floor_ns and is_bound:
            if run.ask.task_group or run.ask.application.is_gang:
                self._unjudged["minimum run times of gangs"] += 1
            else:
                yield f"{key} ended after {ran_ns / 1e9:g} s of the min-runtime of {around.path}"
        for level in run.ask.path if is_for_ask else ():
            most, _, within = level.says("preemption.victims-max").partition("/")
            span_ns = level.ns("preemption.victims-max")
            lost = [at for at, path in self._accounts.losses if level in path and self._now_ns - at < span_ns]
            now = sum(level in each.ask.path for each in self._victims)
            if most.isdecimal() and len(lost) + now > int(most):
                yield f"{key} ended, and {level.path} loses {len(lost) + now} in {within} of at most {most}"

    def _against_order(self) -> Iterator[str]:
        """Yield a reason if victims are not in their order; a maximum is enforced in several rounds."""
        if not self._accounts.settings.orders_by_age or len(self._asks) != 1:
            self._unjudged["orders of victims by lost work, for maxima, of and for whole gangs"] += 1
            return
        for need in dict.fromkeys(self._needs):
            keys = [run.ask.key for run, each in zip(self._victims, self._needs, strict=True) if each == need]
            asks = [self._accounts.running[key].ask for key in keys]
            ranked = [sorted(asks, key=lambda ask: self._rank(ask, sizes)) for sizes in (0, 1)]
            orders = [[ask.key for ask in each] for each in ranked]
            if keys not in orders and need != "PREDICATES":
                yield f"the victims stand as {', '.join(keys)}, expected {', '.join(orders[0])}"

    def _rank(self, ask: RecordedAsk, sizes: int) -> tuple[object, ...]:
        """Return the place of a victim; with `sizes` the largest comes first among equally willing ones."""
        if self.cause == "REQUIRED_NODE":
            reluctance = 2 if ask.is_originator else not ask.is_willing
            return reluctance, ask.priority, -ask.created_ns, sum(ask.size.values()), ask.key
        size = sum(ask.size.get(name, 0) * 10**6 // one for name, one in self._asked.items())
        rank = ask.priority if self.cause == "PRIORITY" else 0
        return not ask.is_willing, ask.is_originator, rank, -size * sizes, -ask.created_ns, ask.key

    # -------------------------------------------------------------------------------------- causes

    def _against_ask(self, ask: RecordedAsk) -> Iterator[str]:
        """Yield the reasons against a preemption for a guarantee, or for a priority in a leaf."""
        leaf, age_ns = ask.path[0], self._now_ns - ask.created_ns
        if not ask.preempts or ask.required_node:
            yield f"{ask.key} preempts, and may not preempt others"
        if age_ns < leaf.ns("preemption.delay", _DELAY_NS):
            yield f"{ask.key} preempts after {age_ns / 1e9:g} s, before the preemption.delay of {leaf.path}"
        for run in self._victims:
            key, (_, mine, theirs) = run.ask.key, self._priorities(ask, run)
            if theirs > mine or (theirs == mine and self.cause == "PRIORITY"):
                yield f"{key} of priority {theirs} ended for {ask.key} of priority {mine}"
            if (leaf in run.ask.path) != (self.cause == "PRIORITY"):
                yield f"{key} of {run.ask.path[0].path} ended for {ask.key} of {leaf.path}"
        if self.cause == "GUARANTEE":
            yield from self._against_guarantee(ask)
        elif leaf.says("preemption.within") != "lower-priority":
            yield f"{ask.key} preempts in {leaf.path}, which does not let it"

    def _serving(self) -> dict[str, RecordedQueue]:
        """Return the serving queue of each type that is served."""
        levels = self._ask.path[::-1] if self._ask is not None and self.cause == "GUARANTEE" else ()
        return {name: level for level in levels for name in self._asked if name in level.guaranteed}

    def _gives(self, run: RecordedAllocation) -> list[str]:
        """Return the types that a victim gives to a guarantee."""
        given = []
        for name, serving in sorted(self._serving().items()):
            naming = [level for level in self._outside(run) if name in level.guaranteed]
            above = all(self._used(level).get(name, 0) > level.guaranteed[name] for level in naming)
            if run.ask.size.get(name, 0) > 0 and (above if naming else serving not in run.ask.path):
                given.append(name)
        return given

    def _against_guarantee(self, ask: RecordedAsk) -> Iterator[str]:
        serving = self._serving()
        if not self._accounts.settings.preempts or not serving:
            why = "preemption is off" if serving else "nothing that it asks for is guaranteed to it"
            yield f"{ask.key} preempts, and {why}"
        for name, queue in {} if self._is_unclear else serving.items():
            would = self._after(queue).get(name, 0)
            if would > queue.guaranteed[name]:
                yield f"{ask.key} preempts, but {queue.path} would use {_of(name, would, queue)}"
        fence = next((level for level in ask.path if level.says("preemption.policy") == "fence"), None)
        for run in self._victims:
            if fence is not None and fence not in run.ask.path:
                yield f"{run.ask.key} ended for {ask.key}, and is outside of the fence {fence.path}"
            if not self._gives(run):
                named = [(level, name) for level in self._outside(run) for name in level.guaranteed]
                uses = [
                    f"{level.path} uses {_of(n, self._used(level).get(n, 0), level)}" for level, n in named
                ]
                why = "; ".join(uses) or "nothing that it gives is guaranteed"
                yield f"{run.ask.key} of {run.ask.application.name} ended for {ask.key}, but {why}"
        levels = {level.path: level for run in self._victims for level in self._outside(run)}
        for level in levels.values():
            for name in {*self._asked} & {*level.guaranteed}:
                before, gone = self._used(level).get(name, 0), self._gone(level).get(name, 0)
                is_broken = before > level.guaranteed[name] or name not in serving
                if gone > 0 and before - gone < level.guaranteed[name] and is_broken:
                    yield f"{level.path} falls from {name} {before} to {_of(name, before - gone, level)}"

    def _against_required_node(self, ask: RecordedAsk) -> Iterator[str]:
        node = self._nodes[ask.key]
        if ask.required_node != node:
            yield f"{ask.key} preempts on {node}, and does not need that node"
        for run in self._victims:
            if run.node != node:
                yield f"{run.ask.key} ended for {ask.key}, and runs on {run.node}, not on {node}"
            if run.ask.priority > ask.priority:
                yield f"{run.ask.key} of priority {run.ask.priority} ended for {ask.key} of {ask.priority}"

    def _against_quota(self) -> Iterator[str]:
        queue, maximum = self._enforced, self._enforced.maximum or {}
        if not self._accounts.settings.preempts_for_quota or not queue.says("quota.preemption.delay"):
            yield f"the maximum of {queue.path} is enforced, and may not be"
        used, gone = self._used(queue), self._gone(queue)
        over = positive({name: used.get(name, 0) - most for name, most in maximum.items()})
        for name in over:
            if gone.get(name, 0) > over[name]:
                yield f"{queue.path} gives back {name} {gone[name]}, and is {over[name]} above its maximum"
        for run in self._victims:
            if queue not in run.ask.path or not {*over} & {*positive(run.ask.size)}:
                yield f"{run.ask.key} ended for the maximum of {queue.path}, and uses nothing above it"
            for level in run.ask.path:
                for name in {*over} & {*level.guaranteed}:
                    before, lost = self._used(level).get(name, 0), self._gone(level).get(name, 0)
                    if lost > max(0, before - level.guaranteed[name]):
                        yield f"{level.path} falls from {name} {before} to {_of(name, before - lost, level)}"

    # ------------------------------------------------------------------------------------- needless

    def _needless(self, ask: RecordedAsk) -> Iterator[str]:
        """Yield the victims that could be spared, and a reason if all of them together are not enough."""
        accounts = self._accounts
        if self._is_unclear or accounts.swaps or any(q.lends_part for q in accounts.settings.queues.values()):
            self._unjudged["whether each victim was needed, where room is kept for others"] += 1
            return
        lack = self._lack(ask)
        if not self._is_enough(ask, lack, None):
            yield f"{ask.key} has no room although all victims have ended"
        for run, need in zip(self._victims, self._needs, strict=True):
            if need == "PREDICATES":
                self._unjudged["victims that predicates demand"] += 1
            elif self._is_enough(ask, lack, run):
                yield f"{run.ask.key} ended for {ask.key}, which has room without its end"

    def _is_enough(self, ask: RecordedAsk, lack: Size, spared: RecordedAllocation | None) -> bool:
        """Return whether nodes and queues have room, possibly with one victim spared."""
        for node in {*self._nodes.values()}:
            claims = [each for each in self._accounts.others(ask) if each.ask.required_node == node]
            kept = [self._accounts.needed(each, lambda run: run.node == node) for each in claims]  # noqa: B023
            room = less(self._room(node, spared), total(kept if ask.required_node else ()))
            if any(room.get(name, 0) < 0 for name in self._asked):
                return False
        given = total(run.ask.size for run in self._victims if run is not spared)
        return all(given.get(name, 0) >= one for name, one in lack.items())

    def _lack(self, ask: RecordedAsk) -> Size:
        """Return how much of each type queues have to get back, and limits if victims ended for one."""
        lack: Size = {}
        coming = {run.ask.key: run.ask for run in (*self._accounts.unclaimed(), *self._taken)}
        for bound in () if self.cause == "REQUIRED_NODE" else self._accounts.bounds(ask):
            if bound.is_limit and "LIMIT" not in self._needs:
                continue
            most = self._accounts.allocated(bound) if bound.is_limit else self._accounts.most(bound, ask)
            back = total(each.size for each in coming.values() if bound.counts(each))
            for name in {*self._asked} & {*bound.most}:
                above = most.get(name, 0) - bound.most[name]
                short = self._asked[name] + (above if bound.is_root else max(0, above)) - back.get(name, 0)
                if above + self._asked[name] > 0:
                    lack[name] = max(lack.get(name, 0), short)
        return lack


def _as_one(asks: Sequence[RecordedAsk]) -> RecordedAsk | None:
    """Return a single ask, or the members of a gang as the one ask of its promises."""
    if len(asks) < 2:
        return asks[0] if asks else None
    priority, created_ns = min(ask.priority for ask in asks), max(ask.created_ns for ask in asks)
    may = all(ask.preempts and not ask.required_node for ask in asks)
    size = total(ask.size for ask in asks)
    return replace(asks[0], size=size, priority=priority, created_ns=created_ns, preempts=may)


def _of(name: str, used: int, queue: RecordedQueue) -> str:
    return f"{name} {used} of a guarantee of {name} {queue.guaranteed[name]}"


def _place(ask: RecordedAsk, node: str) -> dict[str, Any]:
    return {"applicationID": ask.application.name, "queueName": ask.path[0].path, "nodeID": node}


def _differences(noted: Any, expected: Any, place: str = "") -> Iterator[str]:
    """Yield the differences of a record from the expected one; unexpected keys may have any value."""
    if isinstance(noted, list) and isinstance(expected, dict):
        names = ("allocationKey", "queueName", "nodeID")
        noted = {str(next(each[name] for name in names if name in each)): each for each in noted}
    if not isinstance(noted, dict) or not isinstance(expected, dict):
        if noted != expected:
            yield f"{place}: expected {_plain(expected)}, got {_plain(noted)}"
    elif all(isinstance(one, int) for one in (*noted.values(), *expected.values())):
        kept = [{name: one for name, one in each.items() if one} for each in (noted, expected)]
        if kept[0] != kept[1]:
            yield f"{place}: expected {text_of(kept[1])}, got {text_of(kept[0])}"
    else:
        for name, one in expected.items():
            yield from _differences(noted.get(name), one, f"{place} {name}".strip())


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return text_of(value)
    return (", ".join(map(str, value)) or "nothing") if isinstance(value, list) else str(value)
