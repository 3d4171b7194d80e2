"""Verifies a recording: its lines one after the other, each turn of each partition."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from .accounts import (
    REPLACED,
    RecordedAccounts,
    RecordedAllocation,
    RecordedAsk,
    RecordedClaim,
    RecordedNode,
    Turn,
    carry_out,
)
from .preemptions import PreemptionCheck
from .queues import UnreadableError, duration_ns, positive, size_of, text_of

_CLAIM_NS: Final = 15 * 10**9
"""The time for which a claim lasts after its last victim has ended."""
_ENDED: Final = frozenset({"Failing", "Failed", "Completed", "Expired", "Rejected"})
_PREEMPTED: Final = "PREEMPTED_BY_SCHEDULER"


class Refutation(NamedTuple):
    """A decision that breaks a promise or a bound, or a wrong figure."""

    line: int
    text: str


@dataclass
class Findings:
    """The results for one recording."""

    confirmed: Counter[str] = field(default_factory=Counter)
    unjudged: Counter[str] = field(default_factory=Counter)
    """The kinds of decisions that were not judged, with their numbers."""
    refuted: list[Refutation] = field(default_factory=list)

    def judge(self, what: str, line: int, reasons: Iterable[str]) -> None:
        """Note a decision: confirmed without reasons against it, otherwise refuted for each reason."""
        found = [Refutation(line, reason) for reason in reasons]
        self.refuted += found
        self.confirmed[what] += not found


def verify_lines(lines: Iterable[str]) -> Findings:
    """Verify the lines of a recording, all files in order.

    Raises:
        UnreadableError: A line cannot be read, or the recording has no outcomes.
    """
    verifier = _Verifier()
    for number, text in enumerate(lines, start=1):
        if not text.strip() or text.startswith("#"):
            continue
        try:
            verifier.take(number, json.loads(text))
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError, UnreadableError) as error:
            if isinstance(error, json.JSONDecodeError) and not text.endswith("\n"):
                break  # The process was killed while it wrote the last line.
            raise UnreadableError(f"line {number}: {error}") from error
    return verifier.finish()


class _Verifier:
    """All partitions of a recording."""

    def __init__(self) -> None:
        self._findings = Findings()
        self._partitions: dict[int, _Partition] = {}
        self._has_outcomes = False

    def take(self, number: int, document: Mapping[str, Any]) -> None:
        """Process a line; a line without a time was not recorded."""
        if "recording" in document:
            self._has_outcomes = bool(document["recording"].get("outcomes"))
        elif not self._has_outcomes:
            raise UnreadableError("expected a recording with outcomes, got another line")
        elif "register" in document or "configuration" in document:
            self._configure(number, document)
        elif "at" in document:
            self._take(number, document)

    def finish(self) -> Findings:
        """Return the results."""
        if not self._has_outcomes:
            raise UnreadableError("expected a recording with outcomes, got no line of one")
        for partition in self._partitions.values():
            partition.close()
        return self._findings

    def _configure(self, number: int, document: Mapping[str, Any]) -> None:
        body = document.get("register") or document["configuration"]
        for name, identifier in document.get("partitions", {}).items():
            self._partitions[identifier] = _Partition(self._findings, str(body["rmID"]), name)
        for each in self._partitions.values():
            if each.rm_id == body["rmID"]:
                each.reload(number, document["at"], body["config"])

    def _take(self, number: int, document: Mapping[str, Any]) -> None:
        partition = self._partitions.get(document.get("partition", 0))
        if partition is None:  # A change of a resource manager, or a callback without a partition.
            for each in self._partitions.values():
                each.is_disturbed = True
        elif "retire" in document:
            partition.close()
            del self._partitions[document["partition"]]
        elif "outcome" in document:
            partition.hear(number, document["outcome"])
        else:
            partition.begin(Turn(number, document["at"], document))


class _Partition:
    """One partition: its accounts, and its present turn."""

    def __init__(self, findings: Findings, rm_id: str, name: str) -> None:
        self.rm_id = rm_id
        self.is_disturbed = False
        """Whether room has changed by more than the end of work."""
        self._findings = findings
        self._name = name.partition("]")[2] or name
        self._accounts = RecordedAccounts()
        self._turn: Turn | None = None
        self._ending: dict[str, int] = {}
        """The keys of allocations to end since the last record of a preemption, with their lines."""
        self._unknown = ""
        """The reason why nothing of it can be judged any longer."""

    def reload(self, line: int, at_ns: int, text: str) -> None:
        """Process a configuration."""
        self.begin(Turn(line, at_ns, {}))
        self.is_disturbed = True
        try:
            self._accounts.settings.take(text, self._name)
        except UnreadableError as error:
            self._unknown = str(error)

    def begin(self, turn: Turn) -> None:
        """Start the next turn."""
        self.close()
        self._turn = turn
        if turn.document.get("older"):
            self._unknown = "turns of resource managers of the older generation"
        elif {"failed", "quarantine"} & turn.document.keys():
            self._unknown = "turns of partitions in which something broke"

    def hear(self, line: int, outcome: Mapping[str, Any]) -> None:
        """Process an outcome of the turn."""
        if self._turn is not None:
            self._turn.outcomes.append((line, outcome))

    def close(self) -> None:
        """Judge the turn: its request with its outcomes."""
        turn, self._turn = self._turn, None
        if turn is None or self._unknown:
            self._findings.unjudged.update({self._unknown: 1} if self._unknown else {})
            return
        over = self._end_claims(turn) if turn.schedules else ()
        carry_out(self._accounts, turn)
        for claim in self._accounts.claims if turn.disturbs or self.is_disturbed else ():
            claim.is_unclear = True
        self.is_disturbed = False
        for line, outcome in turn.outcomes:
            self._hear(turn, line, outcome)
        for key, line in self._ending.items():
            self._refute(line, f"{key} is ended, and no record of a preemption names it")
        self._ending.clear()
        self._note_claims(turn)
        for claim in over:
            if claim.ask.key in self._accounts.asks:
                self._judge_lost(turn, claim)

    def _refute(self, line: int, text: str) -> None:
        self._findings.refuted.append(Refutation(line, text))

    def _hear(self, turn: Turn, line: int, outcome: Mapping[str, Any]) -> None:
        accounts = self._accounts
        if "preemption" in outcome:
            self._preempt(turn, line, outcome["preemption"])
        response = outcome.get("allocationResponse", {})
        for entry in response.get("new", ()):
            self._place(turn, line, entry)
        for entry in response.get("released", ()):
            self._release(turn, line, entry)
        for entry in response.get("rejectedAllocations", ()) if "allocation" not in turn.document else ():
            accounts.withdraw(str(entry["allocationKey"]))
        for entry in outcome.get("applicationResponse", {}).get("updated", ()):
            waiting = accounts.asks.items() if entry.get("state") in _ENDED else ()
            for key in [key for key, ask in waiting if ask.application.name == entry["applicationID"]]:
                accounts.withdraw(key)

    def _release(self, turn: Turn, line: int, entry: Mapping[str, Any]) -> None:
        key, why = str(entry["allocationKey"]), entry.get("terminationType", "")
        run = self._accounts.running.get(key)
        if why not in (_PREEMPTED, REPLACED, "TIMEOUT"):
            if run is not None or key not in turn.ended:
                self._refute(line, f"{key} is ended, and {'it was not asked for' if run else 'does not run'}")
            self._accounts.end(key, turn.at_ns)
            self._findings.confirmed["ends that were asked for"] += run is None and key in turn.ended
        elif why == _PREEMPTED:
            if run is None or run.is_preempted:
                self._refute(line, f"{key} is preempted, and {'ends already' if run else 'does not run'}")
                return
            run.is_preempted = True
            self._ending[key] = line
        elif run is None:
            self._accounts.withdraw(key)
        else:
            run.is_leaving = True
            self._accounts.swaps |= {key} if why == REPLACED else set()
            self._findings.unjudged["whether time limits and swaps were due"] += 1

    # ---------------------------------------------------------------------------------- placements

    def _place(self, turn: Turn, line: int, entry: Mapping[str, Any]) -> None:
        """Judge an allocation that the resource manager is informed of, and add it to the accounts."""
        accounts, key, node = self._accounts, str(entry["allocationKey"]), str(entry.get("nodeID"))
        reported = turn.reported.pop(key, None)
        ask = accounts.asks.get(key) or (accounts.withdrawn.pop(key, None) if turn.swapped else None)
        if reported is not None and reported.node == node:
            ask = reported.ask
            self._findings.confirmed["allocations that exist"] += 1
        elif ask is None or key in accounts.running:
            why = "a second time" if key in accounts.running else "and is not asked for"
            self._refute(line, f"{key} is placed, {why}")
            return
        else:
            self._findings.judge("placements", line, self._against_placement(turn, ask, entry))
        accounts.withdraw(key)
        accounts.running[key] = reported or RecordedAllocation(ask, node, turn.at_ns)

    def _against_placement(self, turn: Turn, ask: RecordedAsk, entry: Mapping[str, Any]) -> Iterator[str]:
        name, size = str(entry.get("nodeID")), size_of(entry.get("resourcePerAlloc"))
        node = self._accounts.nodes.get(name)
        if entry.get("applicationID") != ask.application.name:
            yield f"{ask.key} is placed for {entry.get('applicationID')}, an ask of {ask.application.name}"
        if positive(size) != positive(ask.size):
            yield f"{ask.key} gets {text_of(size)}, and asks for {text_of(ask.size)}"
        whose = (ask.application, ask.task_group)
        asks = {key: run.ask for key, run in turn.swapped.items()}
        swapped = (key for key, each in asks.items() if (each.application, each.task_group) == whose)
        swap = None if ask.is_placeholder or not ask.task_group else next(swapped, None)
        if node is None:
            yield f"{ask.key} is placed on {name}, which is not a node"
        elif swap is None:
            yield from self._against_node(ask, node)
            yield from self._against_windows(ask, node, turn.at_ns)
        elif any(one > turn.swapped[swap].ask.size.get(kind, 0) for kind, one in ask.size.items()):
            yield f"{ask.key} takes the place of {swap}, which is smaller"
        turn.swapped.pop(swap or "", None)

    def _against_node(self, ask: RecordedAsk, node: RecordedNode) -> Iterator[str]:
        accounts, full = self._accounts, self._accounts.lack_of_room(ask)
        free = accounts.free(node)
        if ask.required_node and ask.required_node != node.name:
            yield f"{ask.key} is placed on {node.name}, and can run on {ask.required_node} only"
        if node.is_drained and not ask.required_node:
            yield f"{ask.key} is placed on {node.name}, which is drained"
        sizes = positive(ask.size).items()
        short = {kind: free.get(kind, 0) for kind, one in sizes if free.get(kind, 0) < one}
        if short:
            yield f"{ask.key} is placed on {node.name}, which has {text_of(short)} left"
        if full:
            yield f"{ask.key} is placed, and exceeds {full}"
        for claim in accounts.others(ask):
            if node.name in claim.nodes and not ask.required_node and not claim.is_unclear:
                yield f"{ask.key} is placed on {node.name}, kept for {claim.ask.key} since line {claim.line}"

    def _against_windows(self, ask: RecordedAsk, node: RecordedNode, at_ns: int) -> Iterator[str]:
        application, windows = ask.application, self._accounts.settings.windows
        if windows and application.leaf.says("runtime.expected"):
            self._findings.unjudged["windows, where a policy expects run times"] += 1
            return
        levels = [level.path for level in ask.path]
        mine = {
            "users": [application.user],
            "groups": application.groups,
            "applications": [application.name],
            "queues": levels,
        }
        run_ns = next(filter(None, map(duration_ns, (ask.walltime, application.walltime))), 0)
        run_ns = run_ns or application.leaf.ns("runtime.default") or application.leaf.ns("runtime.max")
        for window in windows:
            is_for = any(
                not {*window.holders.get(kind, ())}.isdisjoint(names) for kind, names in mine.items()
            )
            has_node = window.has(node.name, node.attributes)
            if has_node and not is_for and window.is_met(at_ns, run_ns or window.drain_ns):
                yield f"{ask.key} is placed on {node.name}, and runs into window {window.name}"

    # --------------------------------------------------------------------------------- preemptions

    def _preempt(self, turn: Turn, line: int, record: Mapping[str, Any]) -> None:
        """Judge a record, whose victims the resource manager was asked to end just before."""
        accounts, ending = self._accounts, {*self._ending}
        keys = [str(victim["allocationKey"]) for victim in record["victims"]]
        figures = record["justification"]["preemptors"]
        preemptors = [str(each["allocationKey"]) for each in figures]
        places = {str(each["nodeID"]) for each in figures}
        self._ending.clear()
        wrong = [f"{key} is a victim, and was not asked to end" for key in keys if key not in ending]
        wrong += [f"{key} ends as well, and the record omits it" for key in sorted(ending - {*keys})]
        wrong += [f"{key} preempts, and does not wait" for key in preemptors if key not in accounts.asks]
        wrong += [f"{name} is not known as a node" for name in sorted(places - {*accounts.nodes})]
        if len({*keys}) < len(keys) or bool(preemptors) == (record["cause"] == "QUOTA"):
            wrong.append("a victim is listed twice, or the record has no ask, or one for a maximum")
        if record["time"] != turn.at_ns:
            wrong.append(f"its time is {turn.at_ns}, and the record has {record['time']}")
        if not wrong:
            for key in keys:
                accounts.running[key].is_preempted = False  # This is the state at the decision.
            check = PreemptionCheck(accounts, turn.at_ns, record, self._findings.unjudged)
            wrong = [*check.reasons()]
            for key in keys:
                accounts.running[key].is_preempted = True
            check.begin_claims(line)
        self._findings.judge(f"preemptions ({record['cause'].lower().replace('_', ' ')})", line, wrong)

    def _end_claims(self, turn: Turn) -> list[RecordedClaim]:
        """End the claims whose time is over, and return them."""
        claims = self._accounts.claims
        for claim in claims:
            if claim.waits_for_cycle and claim.ended_ns is not None and not claim.had_cycle:
                claim.ended_ns = turn.at_ns
        due_ns = turn.at_ns - _CLAIM_NS
        over = [each for each in claims if each.ended_ns is not None and each.ended_ns <= due_ns]
        self._accounts.claims = [claim for claim in claims if claim not in over]
        return over

    def _judge_lost(self, turn: Turn, claim: RecordedClaim) -> None:
        """Judge a claim whose time is over, and whose ask still waits."""
        if claim.is_unclear or not claim.had_cycle:
            self._findings.unjudged["claims that ended unused, where something had changed"] += 1
            return
        text = f"15 s after all has ended that it preempted in line {claim.line}"
        self._refute(turn.line, f"{claim.ask.key} still waits for {', '.join(claim.nodes)}, {text}")

    def _note_claims(self, turn: Turn) -> None:
        """Note the causes that may end a claim (an ask that needs its node, a predicate), and cycles."""
        accounts = self._accounts
        needed = {ask.required_node: key for key, ask in accounts.asks.items() if ask.required_node}
        hides = any(run.node in needed for run in accounts.unclaimed())
        accounts.has_hidden_claims = bool(needed) and (accounts.has_hidden_claims or hides)
        answers = turn.document.get("answers", ())
        is_refused = "taken" in turn.document or any(isinstance(answer, str) for answer in answers)
        for claim in accounts.claims:
            claim.is_unclear |= is_refused
            claim.is_unclear |= any(needed.get(node, claim.ask.key) != claim.ask.key for node in claim.nodes)
            claim.had_cycle |= turn.schedules and claim.ended_ns is not None
