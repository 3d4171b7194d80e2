"""Faults of preemption that the proofs alone find: python -m support.proofs.planted [NAME...]."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from support.fuzz.fault import Fault
from support.fuzz.planting import ROOT, copied_package, plant

_LEDGER: Final = "model/preemption/guarantee/ledger.py"
_ATTEMPT: Final = "model/preemption/guarantee/attempt.py"
_GANG_NODES: Final = "model/preemption/guarantee/gang_nodes.py"
_CANDIDATES: Final = "model/preemption/guarantee/candidate_victims.py"
_NODES: Final = "model/preemption/guarantee/candidate_nodes.py"
_DECISION: Final = "model/preemption/guarantee/decision.py"
_NODE_CHOICE: Final = "model/preemption/guarantee/nodes.py"
_REQUIRED: Final = "model/preemption/required_node.py"
_VICTIMS: Final = "model/preemption/victims.py"
_QUOTA: Final = "model/preemption/quota.py"
_PROTECTION: Final = "model/preemption/protection.py"
_CLAIMS: Final = "model/state/claims.py"
_CHARGES: Final = "model/state/charges.py"
_EVERY: Final = (31, 5, 1)
"""A fault is looked for in a thirty-first of its family, then in a fifth, then in all."""
_SECONDS_MAX: Final = 3600


class PlantedFault(NamedTuple):
    """A fault, and the family of worlds that finds it."""

    family: str
    fault: Fault


def _in(family: str, path: str, name: str, old: str, new: str) -> PlantedFault:
    return PlantedFault(family, Fault(name, path, old, new))


PREEMPTION_FAULTS: Final = (
    # ------------------------------------------------------------------------------- who is entitled
    _in(
        *("two types", _LEDGER, "a guarantee of one type gives all types"),
        "entitled = self._asked if self.ask_leaf.is_unbound else self._serving",
        "entitled = self._asked",
    ),
    _in(
        *("two types", _LEDGER, "a type that the ask is not entitled to is taken from guarantees"),
        "less.get(name) + quantity and (above > 0 or name not in self._serving)",
        "less.get(name) + quantity and above > 0",
    ),
    _in(
        *("guarantees above guarantees", _LEDGER, "the least that any queue of the path is owed counts"),
        "return serving.guaranteed[name] - self.used(serving).get(name)",
        "return min(\n            (level.guaranteed or EMPTY)[name] - self.used(level).get(name)\n"
        "            for level in self.ask_leaf.path_up\n            if level.names(name)\n        )",
    ),
    _in(
        *("guarantees above guarantees", _LEDGER, "a guarantee of the leaf hides those above it"),
        "            serving = ask_leaf.serving(name)\n",
        "            serving = ask_leaf if ask_leaf.guaranteed else ask_leaf.serving(name)\n"
        "            serving = None if serving is not None and not serving.names(name) else serving\n",
    ),
    _in(
        *("two preemptors", _LEDGER, "what other asks have preempted for does not count"),
        "(self.committed if above_ask else NOTHING_COMMITTED).use_of(queue)",
        "NOTHING_COMMITTED.use_of(queue)",
    ),
    _in(
        *("limits of users", _ATTEMPT, "an ask at the limit of its user preempts for a guarantee"),
        "facts_of = None if is_limited else _facts_if_entitled(state, entry, ask)",
        "facts_of = _facts_if_entitled(state, entry, ask)",
    ),
    # -------------------------------------------------------------------------------- what may end
    _in(
        *("two preemptors", _LEDGER, "a victim takes its queue below its guarantee"),
        "if above < less.get(name) + quantity and",
        "if above < less.get(name) and",
    ),
    _in(
        *("daemons", _VICTIMS, "no victim is spared"),
        "    rooms = [need.given for need in needs]\n",
        "    return tuple(victims)\n    rooms = [need.given for need in needs]\n",
    ),
    _in(
        *("objections", _VICTIMS, "what opted out ends as if it were willing"),
        "        *(not ask.allow_preempt_self, ask.originator),\n        *(victim.rank",
        "        *(victim.rank",
    ),
    _in(
        *("objections", _VICTIMS, "an originator stands before a smaller victim for ever"),
        "    if len({order(victim)[:3] for victim in ordered}) > 1:\n",
        "    if not ordered:\n",
    ),
    _in(
        *("priorities", _CANDIDATES, "an offset counts inside its own queue"),
        "        priorities[level.path] = priority\n        if settings",
        "        priorities[level.path] = priority + settings.priority_offset\n        if settings",
    ),
    _in(
        *("priorities", _CANDIDATES, "a fence of priorities lets them through"),
        "            elif settings.priority_policy.is_fence:\n                if settings",
        "            elif settings.priority_policy.is_fence and settings.priority_offset > 0:\n"
        "                if settings",
    ),
    _in(
        *("fences", _CANDIDATES, "a fence of preemption lets asks through"),
        "if settings.preemption_policy.is_fence or not _has_room(",
        "if not _has_room(",
    ),
    _in(
        *("fences", _CANDIDATES, "a queue that has no victims has some"),
        "        if queue.settings.preemption_policy.is_disabled:\n            return\n        facts",
        "        facts",
    ),
    _in(
        *("inside a queue", _CANDIDATES, "equal priorities end inside a queue"),
        "ask.priority - 1, fenced=False)",
        "ask.priority, fenced=False)",
    ),
    _in(
        *("inside a queue", "model/preemption/guarantee/limited.py", "another user pays for a limit"),
        "    if not limits:\n        return candidates\n",
        "    if limits:\n        return candidates\n",
    ),
    _in(
        *("time and number", _PROTECTION, "no minimum run time protects"),
        "            if until_ns > self._now_ns:\n",
        "            if until_ns < self._now_ns:\n",
    ),
    _in(
        *("time and number", _PROTECTION, "the narrowest queue around a victim protects it"),
        "            around = level\n",
        "            around = leaf\n",
    ),
    _in(
        *("time and number", _ATTEMPT, "what has ended does not count for a budget"),
        "    state.disruption.note((victim.queue for victim in plan.victims), now_ns)\n",
        "",
    ),
    # ------------------------------------------------------------------------------ what is reserved
    _in(
        *("a shared guarantee", _NODES, "an ask drops its own reservation"),
        "record = None if key == ask.allocation_key else reserved",
        "record = reserved",
    ),
    _in(
        *("reserved nodes", _NODES, "the reservation of an ask that may not preempt stays"),
        "        if holder.priority > ask.priority or not holder.allow_preempt_other:\n",
        "        if holder.priority > ask.priority:\n",
    ),
    _in(
        *("reserved nodes", _NODES, "the reservation of an ask that is not entitled stays"),
        "        return not entitlement.covers(holder.resource)\n",
        "        return False\n",
    ),
    _in(
        *("daemons", _NODES, "an ask that nothing can serve keeps the node that it needs"),
        "return node is None or not can_be_served(state, entry, holder, node)",
        "return node is None",
    ),
    _in(
        *("an ask that needs its node", _ATTEMPT, "a node that an ask needed is not reserved again"),
        "    if lost is not None:\n        return lost\n",
        "",
    ),
    _in(
        *("an ask that needs its node", _ATTEMPT, "any reservation of the node is taken for the claim"),
        "    return node is None or not fits(node.available, ask.resource)\n",
        "    return node is None\n",
    ),
    # ------------------------------------------------------------------------------------ what is held
    _in(
        *("a maximum", _CLAIMS, "queues hold nothing for a claim"),
        "            level.change_held(prune(subtract(needed, self.held_in(level))))\n",
        "            needed = EMPTY\n",
    ),
    _in(
        *("limits of users", _CHARGES, "limits hold nothing for a claim"),
        "    if not state.claims.by_key:\n        return state.limits.headroom(*of_entry)\n",
        "    if state.claims.by_key:\n        return state.limits.headroom(*of_entry)\n",
    ),
    _in(
        *("daemons", _REQUIRED, "an ask that needs a node takes what ended there for another"),
        "    return subtract(node.available, state.claims.held_on(node.node_id, ask.allocation_key))\n",
        "    return node.available\n",
    ),
    _in(
        *("two preemptors", _CHARGES, "the claim of an ask that was dropped is held on"),
        "        end_claim(state, record.ask.allocation_key)\n        if not record.placed:",
        "        if not record.placed:",
    ),
    _in(
        *("two preemptors", _CLAIMS, "what ends for no ask is not taken over"),
        "        return tuple(self._unclaimed.values())\n",
        "        return ()\n",
    ),
    _in(
        *("two preemptors", _CHARGES, "what was preempted counts as being preempted for ever"),
        "        level.change_preempting(back)",
        "        pass",
    ),
    # ----------------------------------------------------------------------------------------- gangs
    _in(
        *("a gang of two", _CLAIMS, "the claim of a gang ends before a cycle has run"),
        "        self.is_counted = not ends_reservations\n",
        "        self.is_counted = True\n",
    ),
    _in(
        *("a gang of two", _CLAIMS, "one node of a gang is reserved"),
        "{key: node_id for node_id, key in by_node.items()}",
        "{key: node_id for node_id, key in [*by_node.items()][:1]}",
    ),
    _in(
        *(
            "a gang of two",
            "model/preemption/guarantee/gang_nodes.py",
            "a gang is entitled if its first member is",
        ),
        "        total_of(ask.resource for ask in members),\n",
        "        first.resource,\n",
    ),
    # ------------------------------------------------------------------------- where the node is given
    _in(
        *("daemons", _REQUIRED, "what has the same priority does not end for an ask that needs the node"),
        "    return victim.allocation.ask.priority <= ask.priority and",
        "    return victim.allocation.ask.priority < ask.priority and",
    ),
    _in(
        *("daemons", _REQUIRED, "what has a higher priority ends for an ask that needs the node"),
        "    return victim.allocation.ask.priority <= ask.priority and",
        "    return",
    ),
    _in(
        *("daemons", _VICTIMS, "what needs its node ends as well"),
        "return not (self.preempted or self.released or self.allocation.ask.required_node)",
        "return not (self.preempted or self.released)",
    ),
    _in(
        *("predicates", _NODE_CHOICE, "what the predicates demand ends in vain"),
        "    return NodeChoice(solution.node_id, needed, victims[enough + 1 : index + 1])\n",
        "    return NodeChoice(solution.node_id, solution.victims, ())\n",
    ),
    _in(
        *("predicates", _NODE_CHOICE, "the predicates are not asked about a node with victims"),
        "    if index is None or index >= len(keys):\n        return None\n",
        "    if index is None or index >= len(keys):\n        index = solution.start_index\n",
    ),
    # ------------------------------------------------------------------------------ a lowered maximum
    _in(
        *("a lowered maximum", _QUOTA, "shares of a lowered maximum are rounded once"),
        "    while enforced.end_shares(shared_out(queue, over_maximum(queue))):\n        pass\n"
        "    while any(enforced.end_shares([share]) for share in _undivided(queue, over_maximum(queue))):\n"
        "        pass\n",
        "    enforced.end_shares(shared_out(queue, over_maximum(queue)))\n",
    ),
    _in(
        *("a lowered maximum", _QUOTA, "a lowered maximum takes more than is above it"),
        "        if helps and fits_undefined_unlimited(left, resource) and",
        "        if helps and",
    ),
    _in(
        *("a lowered maximum", _QUOTA, "a lowered maximum takes what is guaranteed"),
        "            left = max(0, used.get(name) - quantity)\n",
        "            left = used.get(name)\n",
    ),
    _in(
        *("a maximum", _DECISION, "a full queue lacks nothing"),
        "                if above + quantity > 0 and wanted > 0:\n",
        "                if above + quantity > 0 and wanted > 0 and position == last:\n",
    ),
)


def _looked_for(planted: PlantedFault) -> str:
    """Plant a fault in a copy and prove there; return what was found, empty for nothing."""
    with tempfile.TemporaryDirectory(prefix="licorne-proofs-") as folder:
        plant(copied_package(Path(folder)), planted.fault)
        for every in _EVERY:
            ran = subprocess.run(  # noqa: S603 - our own interpreter
                [sys.executable, "-m", "support.proofs.run", "--stop", f"--every={every}", planted.family],
                env={**os.environ, "PYTHONPATH": f"{folder}:{ROOT / 'tests'}"},
                capture_output=True,
                text=True,
                timeout=_SECONDS_MAX,
                check=False,
            )
            lines = [line.strip() for line in ran.stdout.splitlines() if line.startswith("  ")]
            if lines or ran.returncode:
                return lines[0] if lines else ran.stderr.strip().rpartition("\n")[2]
    return ""


def main(names: Sequence[str]) -> int:
    """Plant faults, all unless they or families are named; return how many are not found."""
    missed = 0
    for planted in PREEMPTION_FAULTS:
        name = planted.fault.name
        if names and not any(part in (name, planted.family) for part in names):
            continue
        found = _looked_for(planted)
        missed += not found
        sys.stdout.write(f"{'found' if found else 'NOT FOUND'}  {name}  [{planted.family}: {found}]\n")
        sys.stdout.flush()
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
