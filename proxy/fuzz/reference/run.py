"""One world in which both schedulers receive the same messages: time, decisions and figures must agree."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from ....model.errors import error_text
from ...core.scheduler.managers.callbacks import CallbackFailure
from ...core.scheduler.scheduler import Scheduler
from ...si import si_pb2 as si
from ...si.api import ResourceManager
from ..manager.cluster_record import RecordError
from ..plans import one_of
from ..tried_policies import TriedPolicies
from .asked import AskedPolicies
from .configurations import ReferenceConfigurations
from .figures import compare_figures, compare_reasons
from .queues import ReferenceDecision
from .scheduler import ReferenceScheduler

RM_ID: Final = "rm"
PARTITION: Final = "default"
MILLISECOND_NS: Final = 1_000_000
SECOND_NS: Final = 1_000 * MILLISECOND_NS
_ATTEMPT_NS: Final = 31 * SECOND_NS
"""Longer than any delay of preemption, and than the wait of an ask after an attempt."""
_VISITS_MAX: Final = 30
"""The maximum number of visits for a decision that needs more attempts to preempt than one visit makes."""
_DECISIONS_MAX: Final = 400
_MOMENTS_MAX: Final = 200
_TERMINATIONS: Final[dict[str, si.TerminationType]] = {
    "cancelled": si.TIMEOUT,
    "timeout": si.TIMEOUT,
    "preempted": si.PREEMPTED_BY_SCHEDULER,
}
"""The type with which the RM is asked for an end."""
MODES: Final = (
    *("plain", "plain", "preempts", "reserves", "gangs"),
    *("gangs", "promises", "promises", "daemons", "quotas"),
)
"""Features that the second scheduler does not support together."""
FEATURES: Final[Mapping[str, tuple[str, ...]]] = {
    "users": ("plain", "reserves", "gangs", "daemons"),
    "counts": ("plain", "reserves", "gangs", "daemons"),
    "reloads": ("plain", "reserves", "gangs", "daemons"),
    "rules": ("plain", "gangs"),
    "types": ("plain", "reserves", "gangs"),
    "large": ("plain", "reserves"),
    "weights": ("quotas", "plain", "reserves", "gangs", "promises", "daemons"),
    "resizes": ("plain", "reserves", "gangs"),
    "foreign": ("plain", "reserves", "promises"),
    "nodes": ("plain", "reserves", "gangs", "promises"),
    "times": ("plain", "gangs", "promises"),
    "pauses": ("plain",),
    "ages": ("plain", "reserves", "gangs", "daemons"),
    "late": ("gangs",),
    "overruns": ("plain",),
}
"""The modes that each feature supports."""
_WITH_WINDOWS: Final = ("plain", "reserves", "promises", "daemons")
"""The modes that support windows, with separate dice."""
LIKELY: Final = 0.35
WAITS: Final = {
    "times": (0.5, 3.0, 10.0, 29.0, 31.0, 400.0, 901.0, 250_000.0),
    "reserves": (0.5, 3.0),
    "pauses": (0.5, 3.0, 10.0),
    "quotas": (0.5, 3.0, 6.0),
    "overruns": (0.5, 6.0, 21.0),
    "promises": (3.0, 10.0, 61.0),
    "windows": (3.0, 10.0, 30.0, 61.0),
}
"""The seconds that pass in a step that waits, by features of the world."""


class ReferenceRun(ResourceManager):
    """One scheduler together with the second one.

    Args:
        text: Determines its features and its first configuration.
        policies: The policies under test; with any, only worlds of the mode `plain` are played.
        note: Records actions and decisions.
    """

    def __init__(self, text: str, policies: TriedPolicies, note: Callable[[str, Any], None]) -> None:
        self.note = note
        self.text = text
        self._policies = policies
        rng = random.Random(text)  # noqa: S311 - it plays, and keeps no secret
        mode = one_of(rng, MODES)
        if policies.factories:
            mode = "plain"
        self.features = {mode} | {
            name for name, modes in FEATURES.items() if rng.random() < LIKELY and mode in modes
        }
        dice = random.Random(f"windows {text}")  # noqa: S311 - without it all other choices are the same
        if mode in _WITH_WINDOWS and not policies.factories and dice.random() < LIKELY:
            self.features.add("windows")
        links = random.Random(f"links {text}")  # noqa: S311 - it plays; the other features stay the same
        if mode != "promises" and links.random() < LIKELY:
            self.features.add("links")
        self.preempts = mode == "preempts"
        self.one_size = mode in ("preempts", "daemons", "quotas")
        self.configurations = ReferenceConfigurations(rng, self.features)
        self.partition = policies.named_below(self.configurations.draw(rng))
        self.reference = ReferenceScheduler(
            self.partition, policies=AskedPolicies(policies.given), reserves=mode == "reserves"
        )
        self._failures: list[CallbackFailure] = []
        self._placed: list[tuple[str, str]] = []
        self._asked_to_end: list[tuple[str, int]] = []
        self._gone: set[str] = set()
        self.to_confirm: list[str] = []
        """Placeholders that members replace, and that have not ended yet."""
        self._refused: set[str] = set()
        self.serial = 0
        with _with_reservations(on=mode == "reserves"):
            self.scheduler = Scheduler(
                engine="direct", policies=policies.factories, on_error=self._failures.append
            )

    # --------------------------------------------------------------------------------- messages received

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Record placements, requested ends, ends and rejections."""
        self._placed += [(each.allocationKey, each.nodeID) for each in response.new]
        for release in response.released:
            if release.terminationType == si.STOPPED_BY_RM:
                self._gone.add(release.allocationKey)
            else:
                self._asked_to_end.append((release.allocationKey, release.terminationType))
        self._asked_to_end += [(each.allocationKey, each.terminationType) for each in response.releasedAsks]
        self._refused |= {each.allocationKey for each in response.rejectedAllocations}

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Record rejections."""
        self._refused |= {each.applicationID for each in response.rejected}

    # ------------------------------------------------------------------------------------- time

    def wait(self, nanoseconds: int) -> None:
        """Let time pass for both, from one due moment to the next."""
        _check_policies(self._policies, self._failures)
        scheduler, reference = self.scheduler, self.reference
        end_ns = scheduler.now_ns() + nanoseconds
        for _ in range(_MOMENTS_MAX):
            due_ns = scheduler.next_deadline_ns()
            if due_ns is None or due_ns > end_ns:
                break
            scheduler.advance_to(max(due_ns, scheduler.now_ns() + 1))
        scheduler.advance_to(end_ns)
        if "quotas" in self.features:  # Without a request it may do so a second later.
            scheduler.preempt_over_quota()
        scheduler.deliver()
        asked = [(key, _TERMINATIONS[why]) for key, why in reference.advance(end_ns)]
        _compare("is asked to end", {*self._asked_to_end}, {*asked})
        self._asked_to_end.clear()
        for key, why in asked:
            if key in reference.running:
                self.release(key, why)

    def expect_gone(self, keys: list[str]) -> None:
        """Check that the RM is asked for exactly these ends."""
        self.scheduler.deliver()
        _compare("has ended", self._gone, {*keys})
        self._gone.clear()

    def expect_refused(self, names: set[str]) -> None:
        """Check that exactly these were rejected."""
        self.scheduler.deliver()
        _compare("is refused", self._refused, names)
        self._refused.clear()

    def release(self, key: str, why: si.TerminationType) -> None:
        """End a running task."""
        self.say_ended(self.reference.running[key].application.name, key, why)
        self.reference.end(key)
        self.expect_gone([key] if why == si.STOPPED_BY_RM else [])

    def say_ended(self, application: str, key: str, why: si.TerminationType) -> None:
        """Report that a task has ended, or no longer waits."""
        request = si.AllocationRequest(rmID=RM_ID)
        request.releases.allocationsToRelease.add(
            applicationID=application, allocationKey=key, terminationType=why
        )
        self.note("says", request)
        self.scheduler.update_allocation(request)

    # --------------------------------------------------------------------------------- decisions

    def schedule(self, _: random.Random | None = None) -> None:
        """Make both decide until both are idle, one decision after the other; then compare all figures.

        In worlds with preemption, enough time passes before each decision for every attempt.
        """
        for _decision in range(_DECISIONS_MAX):
            if self.preempts:
                self.wait(_ATTEMPT_NS)
                self.reference.forget_attempts()
            expected = self._next_decision()
            if expected is None:
                break
            self._follow(expected)
        self._compare_all()

    def _next_decision(self) -> ReferenceDecision | None:
        """Make both decide once, or until no attempts to preempt are left; compare the decisions."""
        for _ in range(_VISITS_MAX):
            self._placed.clear()
            self.scheduler.schedule(1)
            self.scheduler.deliver()
            _check_policies(self._policies, self._failures)
            self.note("decides", [self._placed[:], self._asked_to_end[:]])
            expected = self.reference.step()
            besides = [*self.reference.to_end]
            self.reference.to_end.clear()
            placed = (
                [(expected.key, expected.node)] if expected is not None and expected.kind == "place" else []
            )
            ending = [
                *(key for key, _ in besides),
                *([expected.victim] if expected is not None and expected.victim else []),
            ]
            self._compare_decision(placed, ending)
            self._asked_to_end.clear()
            for key, why in besides:
                self.release(key, _TERMINATIONS[why])
            if expected is not None or not (self.reference.is_exhausted or besides):
                return expected
        raise RecordError(f"nothing is decided in {_VISITS_MAX} cycles, and there are attempts left")

    def _follow(self, decision: ReferenceDecision) -> None:
        """Carry out the ends of a decision, and check that its ask runs then."""
        self._placed.clear()
        if decision.kind == "preempt":
            self.release(decision.victim, si.PREEMPTED_BY_SCHEDULER)
            self.scheduler.schedule(1)
            self.scheduler.deliver()
            self.note("decides", self._placed[:])
            self._compare_decision([(decision.key, decision.node)], [])
            self.reference.place(decision.key, decision.node)
        elif decision.kind == "replace":
            self.to_confirm.append(decision.victim)
            if "late" not in self.features:
                self.confirm(decision.victim)

    def confirm(self, placeholder: str) -> None:
        """Report the end of a placeholder, if it has not ended; then the member that replaces it runs."""
        self.to_confirm.remove(placeholder)
        task = self.reference.running.get(placeholder)
        if task is None:
            return
        self._placed.clear()
        self.say_ended(task.application.name, placeholder, si.PLACEHOLDER_REPLACED)
        self.scheduler.deliver()
        if placeholder in self.reference.swaps:
            self._compare_decision([(self.reference.replace(placeholder), task.node.name)], [])
        else:
            self.reference.end(placeholder)
            self._compare_decision([], [])

    def _compare_decision(self, placed: list[tuple[str, str]], ending: list[str]) -> None:
        """Compare the last decision with the right one.

        Raises:
            RecordError: They differ.
        """
        ours = [key for key, _ in self._asked_to_end]
        if (self._placed, ours) != (placed, ending):
            raise RecordError(
                f"the scheduler places {self._placed} and ends {ours}, "
                f"and the second one places {placed} and ends {ending}"
            )

    def _compare_all(self) -> None:
        """Compare all figures, and why each ask waits."""
        self.scheduler.validate()
        compare_figures(self.reference, self.scheduler.snapshot(rm_id=RM_ID))
        if self.preempts or "promises" in self.features:
            return
        for name, application in self.reference.applications.items():
            if application.asks:
                found = self.scheduler.explain(name, rm_id=RM_ID, partition=PARTITION)
                compare_reasons(self.reference, application, found)


def _check_policies(policies: TriedPolicies, failures: list[CallbackFailure]) -> None:
    """Check that no policy has failed, and that their last answers hold.

    Raises:
        RecordError: A policy has failed.
        ImpureAnswerError: A policy answers the same question otherwise than before.
    """
    for failure in failures:
        raise RecordError(f"{failure.callback} about {failure.subject}: {error_text(failure.error)}")
    policies.check(())


def _compare(what: str, heard: set[Any], expected: set[Any]) -> None:
    if heard != expected:
        raise RecordError(f"what {what}: {sorted(heard)}, and by the second scheduler {sorted(expected)}")


@contextmanager
def _with_reservations(*, on: bool) -> Iterator[None]:
    """Make new schedulers reserve nodes, or none."""
    before = os.environ.get("DISABLE_RESERVATION")
    os.environ["DISABLE_RESERVATION"] = str(not on).lower()
    try:
        yield
    finally:
        if before is None:
            del os.environ["DISABLE_RESERVATION"]
        else:
            os.environ["DISABLE_RESERVATION"] = before
