"""The policies of a partition: the only module that calls the code of a policy.

A policy is an object with one method for each point at which it decides, see `PolicyPoint`. Each partition
has one object for each name. A partition continues whatever the code does: if an order raises an error or
returns an invalid key, the object is placed behind all others; if a question about a start has no valid
answer, the start is held for a second. Each failure is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar, final

from ..errors import LicorneError, error_text
from .answers import (
    TEXT_MAX,
    KeyParts,
    PolicyAnswerError,
    checked_choice,
    checked_class,
    checked_cost,
    checked_nothing,
    checked_number,
    checked_reason,
    checked_run_time,
    checked_wait,
    chosen,
    dearest,
    held,
    key_parts,
    no_class,
    no_key,
    no_number,
    no_run_time,
    nothing,
    refused,
)
from .interface import ApplicationView, AskView, JobView, NodeView, SiblingView, VictimView, Wait
from .watching import AnswerNote, AnyThread, AskedThread, PolicyCounts

POLICY_PREFIX: Final = "policy/"
"""The prefix, in a configuration, of the name of a policy that the program has given."""

PolicyFactory: TypeAlias = "Callable[[], object]"
"""The class of a policy, or any other function that returns a policy."""

FailureReport: TypeAlias = "Callable[[str, str, Exception], None]"
"""Called with each failure: the policy and method, the id of the subject, and the error."""

PolicyKey: TypeAlias = "tuple[int | tuple[int | float | str, ...], ...]"
"""A key in the form that orders compare: `(0, KEY)`, or `(1,)`, behind all others, after a failure."""

Clock: TypeAlias = "Callable[[], int]"
T = TypeVar("T")


class _HasWord(Protocol):
    word: str


R = TypeVar("R", bound=_HasWord)
_NAME_MAX: Final = 64
_NAME_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-")
_BEHIND_ALL: Final[PolicyKey] = (1,)
_DEPENDENCIES: Final = frozenset({"submission", "object", "time", "outside"})
_EVERY_MIN_NS: Final = 1_000_000_000


class PolicyPoint(Enum):
    """A point at which a policy decides; the values are the names of the methods."""

    __hash__ = object.__hash__  # Each answer looks one up: the one of `Enum` is written in Python.

    NODE_ORDER = "node_key"
    APPLICATION_ORDER = "application_key"
    ADMISSION = "may_start"
    FILTER = "refuses"
    VICTIM_ORDER = "victim_cost"
    PROTECTION = "spares"
    QUEUE_ORDER = "queue_key"
    RUN_TIME = "expected_run_time_ns"
    BACKFILL_ORDER = "backfill_key"
    PROMISES = "promises"
    ASK_CLASS = "ask_class"
    CLASS_NODE_ORDER = "node_key_for"
    FILTER_CLASS = "filter_class"
    CLASS_VERSION = "class_version"
    PLACED = "placed"


_NODE_ORDER: Final = PolicyPoint.NODE_ORDER
_NEEDED: Final = {
    PolicyPoint.ASK_CLASS: {PolicyPoint.CLASS_NODE_ORDER},
    PolicyPoint.CLASS_NODE_ORDER: {PolicyPoint.ASK_CLASS, PolicyPoint.NODE_ORDER},
    PolicyPoint.FILTER_CLASS: {PolicyPoint.FILTER},
    PolicyPoint.CLASS_VERSION: {PolicyPoint.CLASS_NODE_ORDER},
    PolicyPoint.PLACED: {PolicyPoint.CLASS_NODE_ORDER},
}
"""The points that have no use without others."""


@final
class GuardedPolicy:
    """A policy in one partition.

    Args:
        name: Its name in a configuration.
        asked: The policy of the program.
        report: Called with each failure.
        counts: The counts of the policy, shared by all partitions.
        now_ns: Returns nanoseconds since 1970, for the failures to show.
        stopwatch_ns: Returns nanoseconds since any moment: no decision depends on it.
        thread: The state of the current thread: while it answers, calls that wait for partitions are refused.
    """

    def __init__(
        self,
        name: str,
        asked: object,
        report: FailureReport,
        counts: PolicyCounts,
        *,
        now_ns: Clock,
        stopwatch_ns: Clock,
        thread: AskedThread,
    ) -> None:
        self.name = name
        self._thread = thread
        self.note: AnswerNote | None = None
        """Called with each answer, if answers are recorded."""
        self._report = report
        self.counts = counts
        self._now_ns = now_ns
        self._stopwatch_ns = stopwatch_ns
        self._methods: dict[PolicyPoint, Callable[..., object]] = {}
        for point in PolicyPoint:
            method = getattr(asked, point.value, None)
            if callable(method):
                self._methods[point] = method
        self.points: Final = frozenset(self._methods)
        """The points whose method the policy has."""
        depends_on: Collection[str] = getattr(asked, "depends_on", ("object",))
        self.is_fixed = set(depends_on) == {"submission"}
        """Whether its key of an application is asked for only once."""
        self.every_ns: int | None = None
        """The time after which its keys are computed anew, `None` if they do not depend on time."""
        if "time" in depends_on and self._methods.keys() - {PolicyPoint.ADMISSION}:
            self.every_ns = getattr(asked, "every_ns", None)
        self._shapes: dict[PolicyPoint, tuple[bool, ...]] = {}
        """For each point, which parts of the first key are texts."""

    def node_key(self, node: NodeView) -> float:
        """Return the place of a node; infinite where the policy fails."""
        return self._answer(_NODE_ORDER, node.node_id, (node,), checked_number, no_number)

    def application_key(self, application: ApplicationView) -> PolicyKey:
        """Return the place of an application among those of its leaf."""
        return self._key(PolicyPoint.APPLICATION_ORDER, application.application_id, application)

    def queue_key(self, queue: SiblingView) -> PolicyKey:
        """Return the place of a queue among its siblings."""
        return self._key(PolicyPoint.QUEUE_ORDER, queue.path, queue)

    def may_start(self, application: ApplicationView, now_ns: int) -> Wait | None:
        """Return why an application may not start, `None` if it may."""
        return self._wait(PolicyPoint.ADMISSION, application.application_id, application, now_ns)

    def _answer(
        self,
        point: PolicyPoint,
        subject: str,
        shown: tuple[object, ...],
        checked: Callable[[object], T],
        failed: Callable[[Exception], T],
    ) -> T:
        """Ask the code of the program; each answer of each policy passes through here.

        Args:
            point: The point of the question.
            subject: The id of the subject of the question.
            shown: The arguments of the method.
            checked: Returns the answer in the form of the partition: `None`, a truth value, a number, a
                text, a tuple of those, or a `Wait`, which a recording can hold. A replay passes its answers
                through `checked` as well. Raises an error for any other answer.
            failed: Returns the value to use where the method or `checked` has raised an error.
        """
        noted: object
        began_ns = self._stopwatch_ns()
        thread = self._thread
        thread.questions += 1
        try:
            answer = noted = checked(self._methods[point](*shown))
        except Exception as error:  # noqa: BLE001 - whatever the code of a policy raises
            answer, noted = failed(error), error
            self.counts.count_failure(point.value, subject, error, self._now_ns())
            self._report(f"policy {self.name}.{point.value}", subject, error)
        finally:
            thread.questions -= 1
        took_ns = self._stopwatch_ns() - began_ns
        counts = self.counts  # Counted inline: a call would cost as much as the rest.
        counts.answers += 1
        counts.total_ns += took_ns
        if took_ns > counts.longest_ns:  # noqa: PLR1730 - `max` takes twice the time
            counts.longest_ns = took_ns
        if self.note is not None:
            self.note(self.name, point.value, noted)
        return answer

    def refuses(self, ask: AskView, node: NodeView) -> str | None:
        """Return why an ask may not run on a node, `None` if it may."""
        subject = f"{ask.allocation_key} on {node.node_id}"
        return self._answer(PolicyPoint.FILTER, subject, (ask, node), checked_reason, refused)

    def victim_cost(self, victim: VictimView, now_ns: int) -> int:
        """Return the cost of ending a victim; the highest possible where the policy fails."""
        key = victim.ask.allocation_key
        return self._answer(PolicyPoint.VICTIM_ORDER, key, (victim, now_ns), checked_cost, dearest)

    def spares(self, victim: VictimView, now_ns: int) -> Wait | None:
        """Return why a victim may not end yet, `None` if it may."""
        return self._wait(PolicyPoint.PROTECTION, victim.ask.allocation_key, victim, now_ns)

    def expected_run_time_ns(self, ask: AskView, application: ApplicationView) -> int | None:
        """Return how long an ask is expected to run, `None` for its walltime."""
        shown = ask, application
        return self._answer(PolicyPoint.RUN_TIME, ask.allocation_key, shown, checked_run_time, no_run_time)

    def backfill_key(self, job: JobView) -> PolicyKey:
        """Return the place of a job among those behind promises."""
        return self._key(PolicyPoint.BACKFILL_ORDER, job.allocation_key, job)

    def promises(self, job: JobView) -> bool:
        """Return whether a job may be promised a start; it may if the policy fails."""
        return self._answer(PolicyPoint.PROMISES, job.allocation_key, (job,), checked_choice, chosen)

    def ask_class(self, ask: AskView) -> str:
        """Return the class of an ask for the order of nodes; empty for the order of the partition."""
        return self._answer(PolicyPoint.ASK_CLASS, ask.allocation_key, (ask,), checked_class, no_class)

    def node_key_for(self, ask_class: str, node: NodeView) -> float:
        """Return the place of a node for a class of asks; infinite where the policy fails."""
        shown = ask_class, node
        return self._answer(PolicyPoint.CLASS_NODE_ORDER, node.node_id, shown, checked_number, no_number)

    def class_version(self, ask_class: str) -> str:
        """Return a text that changes with the keys for a class; empty without the method."""
        if PolicyPoint.CLASS_VERSION not in self.points:
            return ""
        return self._answer(PolicyPoint.CLASS_VERSION, ask_class, (ask_class,), checked_class, no_class)

    def placed(self, ask: AskView, node_id: str) -> None:
        """Report a placement, if the policy has the method."""
        if PolicyPoint.PLACED in self.points:
            shown = ask, node_id
            self._answer(PolicyPoint.PLACED, ask.allocation_key, shown, checked_nothing, nothing)

    def filter_class(self, ask: AskView) -> str:
        """Return the class of an ask for a filter; empty if each ask is a question of its own."""
        return self._answer(PolicyPoint.FILTER_CLASS, ask.allocation_key, (ask,), checked_class, no_class)

    def _wait(self, point: PolicyPoint, subject: str, view: object, now_ns: int) -> Wait | None:
        """Ask whether something has to wait; after a failure it has to, for a while."""
        return self._answer(
            point, subject, (view, now_ns), partial(checked_wait, now_ns), partial(held, now_ns)
        )

    def _key(self, point: PolicyPoint, subject: str, view: object) -> PolicyKey:
        """Ask for a key of one or several parts; after a failure it is behind all others."""
        parts = self._answer(point, subject, (view,), partial(self._checked_key, point), no_key)
        return _BEHIND_ALL if parts is None else (0, parts)

    def _checked_key(self, point: PolicyPoint, answer: object) -> KeyParts | None:
        """Return the parts of a key after checking that earlier keys can be compared with it."""
        parts = key_parts(answer)
        shape = tuple([type(part) is str for part in parts])
        first = self._shapes.setdefault(point, shape)
        if shape != first:
            expected, got = (", ".join("text" if each else "number" for each in of) for of in (first, shape))
            raise PolicyAnswerError(
                f"expected a key like those before it ({expected}), got {parts!r:.{TEXT_MAX}} ({got})"
            )
        return parts


@final
class Policies:
    """The policies of one partition, by name."""

    def __init__(self, by_name: Mapping[str, GuardedPolicy]) -> None:
        self.by_name = by_name
        periods = [policy.every_ns for policy in by_name.values() if policy.every_ns is not None]
        self.every_ns = min(periods, default=None)
        """The time after which all keys are computed anew, `None` if no key depends on time."""

    def decide(self, point: PolicyPoint) -> bool:
        """Return whether one of the policies has the method of a point."""
        return any(point in policy.points for policy in self.by_name.values())

    def named(self, word: str) -> GuardedPolicy:
        """Return the policy with the name in a configuration, which was checked when it was read."""
        return self.by_name[word.removeprefix(POLICY_PREFIX)]

    def rule(self, word: str, built_in: Mapping[str, T], by_policy: Callable[[str, GuardedPolicy], T]) -> T:
        """Return the rule that a configuration names.

        Args:
            word: The word of a built-in rule, or the name of a policy with its prefix.
            built_in: The built-in rules by their words.
            by_policy: Returns the rule that asks a policy, from the word and the policy.
        """
        return by_policy(word, self.named(word)) if is_policy_word(word) else built_in[word]


NO_POLICIES: Final = Policies(MappingProxyType({}))


class PolicyFacts(NamedTuple):
    """The properties of a policy that are read once, besides its answers."""

    points: frozenset[PolicyPoint]
    depends_on: frozenset[str]
    every_ns: int | None
    made_of: str
    """The class of the policy, `module:Class`."""
    version: str
    """The attribute `version` of the policy; empty if that is not a text."""


def _no_time() -> int:
    return 0


@final
class GivenPolicies:
    """The policies that a program has given; each partition gets its own objects.

    Args:
        factories: The classes, or other factories, by name. One object of each is made at once, to find the
            points at which it decides.

    Raises:
        LicorneError: A name or a factory is invalid, or an object cannot be made or has no point.
    """

    def __init__(self, factories: Mapping[str, PolicyFactory]) -> None:
        self._factories = dict(factories)
        self.facts: Mapping[str, PolicyFacts] = {
            _checked_name(name): _read_facts(name, _made(name, factory))
            for name, factory in factories.items()
        }
        """The facts of each policy."""
        self.points: Mapping[str, frozenset[PolicyPoint]] = {
            name: facts.points for name, facts in self.facts.items()
        }
        """The points at which each policy decides."""
        self.counts: Mapping[str, PolicyCounts] = {name: PolicyCounts() for name in factories}
        """The counts of the answers of each policy in all partitions."""

    def make(
        self,
        report: FailureReport,
        *,
        now_ns: Clock = _no_time,
        stopwatch_ns: Clock = _no_time,
        thread: AskedThread | None = None,
    ) -> Policies:
        """Make the policies of a partition.

        Args:
            report: Called with each failure.
            now_ns: Returns nanoseconds since 1970.
            stopwatch_ns: Returns nanoseconds since any moment, to time answers.
            thread: The state of the current thread, see `GuardedPolicy`.

        Raises:
            LicorneError: An object cannot be made.
        """
        return Policies(
            {
                name: self.make_one(name, report, now_ns=now_ns, stopwatch_ns=stopwatch_ns, thread=thread)
                for name in self._factories
            }
        )

    def make_one(
        self,
        name: str,
        report: FailureReport,
        *,
        now_ns: Clock = _no_time,
        stopwatch_ns: Clock = _no_time,
        thread: AskedThread | None = None,
    ) -> GuardedPolicy:
        """Make one of the policies of a partition; see `make`."""
        made = _made(name, self._factories[name])
        clocks = {"now_ns": now_ns, "stopwatch_ns": stopwatch_ns}
        return GuardedPolicy(name, made, report, self.counts[name], **clocks, thread=thread or AnyThread())


def by_word(words: Sequence[str], *rules: R) -> Mapping[str, R]:
    """Return the built-in rules of a kind by their words, which are those that a configuration may have."""
    found = {rule.word: rule for rule in rules}
    assert tuple(found) == tuple(words), "a rule without a word, or a word without a rule"
    return MappingProxyType(found)


def is_policy_word(text: str) -> bool:
    """Return whether a word of a configuration names a policy, given or not."""
    return text.startswith(POLICY_PREFIX)


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= _NAME_MAX or not _NAME_CHARACTERS.issuperset(name):
        raise LicorneError(
            f"the name of a policy: expected up to {_NAME_MAX} small letters, digits, '-' and '.', "
            f"got {name!r:.100}"
        )
    return name


def _made(name: str, factory: object) -> object:
    if not callable(factory):
        raise LicorneError(
            f"the policy {name!r}: expected a class or a function without arguments, got {factory!r:.100}"
        )
    try:
        return factory()
    except Exception as error:
        raise LicorneError(f"the policy {name!r} cannot be made: {error_text(error)[:TEXT_MAX]}") from error


def _read_facts(name: str, made: object) -> PolicyFacts:
    """Return the facts of a policy; its attributes may be code as well."""
    try:
        return _facts_of(name, made)
    except LicorneError:
        raise
    except Exception as error:
        raise LicorneError(f"the policy {name!r} cannot be read: {error_text(error)[:TEXT_MAX]}") from error


def _facts_of(name: str, made: object) -> PolicyFacts:
    points, kind, version = _points_of(name, made), type(made), getattr(made, "version", "")
    depends_on: Collection[str] = getattr(made, "depends_on", ("object",))
    return PolicyFacts(
        points,
        frozenset(depends_on),
        getattr(made, "every_ns", None) if "time" in depends_on else None,
        f"{kind.__module__}:{kind.__qualname__}",
        version if isinstance(version, str) else "",
    )


def _points_of(name: str, made: object) -> frozenset[PolicyPoint]:
    points = frozenset(point for point in PolicyPoint if callable(getattr(made, point.value, None)))
    if not points:
        methods = ", ".join(point.value for point in PolicyPoint)
        raise LicorneError(
            f"the policy {name!r}: expected one of the methods {methods}, "
            f"got {type(made).__name__} without any"
        )
    for point, needed in _NEEDED.items():
        if point in points and not needed <= points:
            methods = ", ".join(sorted(each.value for each in needed))
            raise LicorneError(f"the policy {name!r} has {point.value}: expected {methods} as well")
    depends_on = getattr(made, "depends_on", {"object"})
    if (
        isinstance(depends_on, str)
        or not isinstance(depends_on, Collection)
        or not _DEPENDENCIES.issuperset(depends_on)
    ):
        known = ", ".join(sorted(_DEPENDENCIES))
        raise LicorneError(
            f"the policy {name!r}: expected depends_on to be a set of {known}, got {depends_on!r:.100}"
        )
    every_ns = getattr(made, "every_ns", None)
    if "time" in depends_on and (not isinstance(every_ns, int) or every_ns < _EVERY_MIN_NS):
        raise LicorneError(
            f"the policy {name!r} depends on time: expected every_ns, {_EVERY_MIN_NS:,} or more, "
            f"got {every_ns!r:.100}"
        )
    return points
