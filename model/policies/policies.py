"""The policies of a partition: the only module that calls the code of a policy.

A policy is an object with one method for each point at which it decides, see `PolicyPoint`. A partition has
an object of its own for each name. Whatever the code does, the partition goes on: an order that raises or
answers with no key puts the object behind all others, a start that cannot be judged is held for a second.
Each failure is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeAlias, final

from ..errors import LicorneError, error_text
from .interface import ApplicationView, AskView, NodeView, VictimView, Wait

POLICY_PREFIX: Final = "policy/"
"""In a configuration it begins the name of a policy that the program has given."""

PolicyFactory: TypeAlias = "Callable[[], object]"
"""The class of a policy, or anything else that makes an object of it."""

FailureReport: TypeAlias = "Callable[[str, str, Exception], None]"
"""Called with each failure: the policy and method, the id of what it was asked about, what is wrong."""

PolicyKey: TypeAlias = "tuple[int | tuple[int | float | str, ...], ...]"
"""A key as orders compare it: `(0, KEY)`, or `(1,)`, behind all others, where the policy has failed."""

_NAME_MAX: Final = 64
_NAME_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-")
_KEY_PARTS_MAX: Final = 16
_TEXT_MAX: Final = 200
_COST_MAX: Final = 10**18
_BEHIND_ALL: Final[PolicyKey] = (1,)
HELD_NS: Final = 1_000_000_000
"""For how long a policy holds what it could not judge, and spares what it names no time for."""
_DEPENDENCIES: Final = frozenset({"submission", "object", "time", "outside"})
_EVERY_MIN_NS: Final = 1_000_000_000


class PolicyPoint(Enum):
    """Where a policy decides; the values are the names of the methods."""

    NODE_ORDER = "node_key"
    APPLICATION_ORDER = "application_key"
    ADMISSION = "may_start"
    FILTER = "refuses"
    VICTIM_ORDER = "victim_cost"
    PROTECTION = "spares"


@final
class GuardedPolicy:
    """A policy in one partition.

    Args:
        name: As a configuration names it.
        asked: The object of the program.
        report: Called with each failure.
    """

    def __init__(self, name: str, asked: object, report: FailureReport) -> None:
        self.name = name
        self._report = report
        self._methods: dict[PolicyPoint, Callable[..., object]] = {}
        for point in PolicyPoint:
            method = getattr(asked, point.value, None)
            if callable(method):
                self._methods[point] = method
        depends_on: Collection[str] = getattr(asked, "depends_on", ("object",))
        self.is_fixed = set(depends_on) == {"submission"}
        """Its key of an application is asked for once."""
        self.every_ns: int | None = None
        """After how long its keys are found anew, `None` if time does not change them."""
        if "time" in depends_on and self._methods.keys() - {PolicyPoint.ADMISSION}:
            self.every_ns = getattr(asked, "every_ns", None)
        self._shape = ""

    def node_key(self, node: NodeView) -> float:
        """Return the place of a node, the smallest first; where the policy fails it is infinite."""
        try:
            return _node_key(self._methods[PolicyPoint.NODE_ORDER](node))
        except Exception as error:  # noqa: BLE001 - whatever the code of a policy raises
            self._fail(PolicyPoint.NODE_ORDER, node.node_id, error)
            return math.inf

    def application_key(self, application: ApplicationView) -> PolicyKey:
        """Return the place of an application among those of its leaf."""
        try:
            parts = _key_parts(self._methods[PolicyPoint.APPLICATION_ORDER](application))
            self._check_shape(parts)
        except Exception as error:  # noqa: BLE001 - whatever the code of a policy raises
            self._fail(PolicyPoint.APPLICATION_ORDER, application.application_id, error)
            return _BEHIND_ALL
        return (0, parts)

    def may_start(self, application: ApplicationView, now_ns: int) -> Wait | None:
        """Return why an application may not start, `None` if it may."""
        try:
            return _wait_of(self._methods[PolicyPoint.ADMISSION](application, now_ns), now_ns)
        except Exception as error:  # noqa: BLE001 - whatever the code of a policy raises
            self._fail(PolicyPoint.ADMISSION, application.application_id, error)
            return Wait(f"it has failed: {error_text(error)[:_TEXT_MAX]}", now_ns + HELD_NS)

    def refuses(self, ask: AskView, node: NodeView) -> str | None:
        """Return why an ask may not run on a node, `None` if it may."""
        try:
            return _reason_of(self._methods[PolicyPoint.FILTER](ask, node))
        except Exception as error:  # noqa: BLE001 - whatever the code of a policy raises
            self._fail(PolicyPoint.FILTER, f"{ask.allocation_key} on {node.node_id}", error)
            return f"it has failed: {error_text(error)[:_TEXT_MAX]}"

    def victim_cost(self, victim: VictimView, now_ns: int) -> int:
        """Return what the end of a victim costs; more than any other where the policy fails."""
        try:
            return _cost_of(self._methods[PolicyPoint.VICTIM_ORDER](victim, now_ns))
        except Exception as error:  # noqa: BLE001 - whatever the code of a policy raises
            self._fail(PolicyPoint.VICTIM_ORDER, victim.ask.allocation_key, error)
            return _COST_MAX + 1

    def spares(self, victim: VictimView, now_ns: int) -> Wait | None:
        """Return why a victim may not end yet, `None` if it may."""
        try:
            return _wait_of(self._methods[PolicyPoint.PROTECTION](victim, now_ns), now_ns)
        except Exception as error:  # noqa: BLE001 - whatever the code of a policy raises
            self._fail(PolicyPoint.PROTECTION, victim.ask.allocation_key, error)
            return Wait(f"it has failed: {error_text(error)[:_TEXT_MAX]}", now_ns + HELD_NS)

    def decides(self, point: PolicyPoint) -> bool:
        """Return whether it has the method of a point."""
        return point in self._methods

    def _fail(self, point: PolicyPoint, subject: str, error: Exception) -> None:
        self._report(f"policy {self.name}.{point.value}", subject, error)

    def _check_shape(self, parts: tuple[int | float | str, ...]) -> None:
        """Refuse a key that cannot be compared with those before it."""
        shape = "".join(["text, " if isinstance(part, str) else "number, " for part in parts])
        if not self._shape:
            self._shape = shape
        if shape != self._shape:
            expected, got = self._shape.removesuffix(", "), shape.removesuffix(", ")
            raise PolicyAnswerError(
                f"expected a key like those before it ({expected}), got {parts!r:.{_TEXT_MAX}} ({got})"
            )


class PolicyAnswerError(LicorneError):
    """An answer of a policy is none: it has another type than the point wants, or cannot be compared."""


@final
class Policies:
    """The policies of one partition, by name."""

    def __init__(self, by_name: Mapping[str, GuardedPolicy]) -> None:
        self.by_name = by_name
        periods = [policy.every_ns for policy in by_name.values() if policy.every_ns is not None]
        self.every_ns = min(periods, default=None)
        """After how long all keys are found anew, `None` if time changes none."""

    def decide(self, point: PolicyPoint) -> bool:
        """Return whether one of them has the method of a point."""
        return any(policy.decides(point) for policy in self.by_name.values())

    def named(self, word: str) -> GuardedPolicy:
        """Return the policy that a configuration names; which there are was checked when it was read."""
        return self.by_name[word.removeprefix(POLICY_PREFIX)]


NO_POLICIES: Final = Policies(MappingProxyType({}))


@final
class GivenPolicies:
    """The policies that a program has given, of which each partition gets objects.

    Args:
        factories: The classes, or other factories, by name. One object of each is made at once, to see what
            it decides.

    Raises:
        LicorneError: A name or a factory cannot be one, or an object cannot be made or decides nothing.
    """

    def __init__(self, factories: Mapping[str, PolicyFactory]) -> None:
        self._factories = dict(factories)
        self.points: Mapping[str, frozenset[PolicyPoint]] = {
            _checked_name(name): _points_of(name, _made(name, factory)) for name, factory in factories.items()
        }
        """At which points each policy decides."""

    def make(self, report: FailureReport) -> Policies:
        """Make the policies of a partition, whose failures are reported.

        Raises:
            LicorneError: An object cannot be made.
        """
        return Policies(
            {
                name: GuardedPolicy(name, _made(name, factory), report)
                for name, factory in self._factories.items()
            }
        )


def is_policy_word(text: str) -> bool:
    """Return whether a word of a configuration names a policy, whether or not one was given."""
    return text.startswith(POLICY_PREFIX)


def refused_name(word: str, point: PolicyPoint, points: Mapping[str, Collection[PolicyPoint]]) -> str | None:
    """Return why a configuration may not name a policy at a point, `None` if it may.

    Args:
        word: What the configuration says, with the prefix.
        point: Where.
        points: The policies that the program has given, and at which points each decides.
    """
    name = word.removeprefix(POLICY_PREFIX)
    if name not in points:
        known = ", ".join(sorted(points)) or "none"
        return f"no policy {name!r:.100} was given to the scheduler; given: {known}"
    if point not in points[name]:
        has = ", ".join(sorted(each.value for each in points[name]))
        return f"the policy {name!r} has no method {point.value}; it has: {has}"
    return None


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
        raise LicorneError(f"the policy {name!r} cannot be made: {error_text(error)[:_TEXT_MAX]}") from error


def _points_of(name: str, made: object) -> frozenset[PolicyPoint]:
    points = frozenset(point for point in PolicyPoint if callable(getattr(made, point.value, None)))
    if not points:
        methods = ", ".join(point.value for point in PolicyPoint)
        raise LicorneError(
            f"the policy {name!r}: expected one of the methods {methods}, "
            f"got {type(made).__name__} without any"
        )
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


# ------------------------------------------------------------------------------------------------ answers


def _node_key(answer: object) -> float:
    if type(answer) is float and math.isfinite(answer):
        return answer
    part = _key_part(answer)
    if isinstance(part, str):
        raise PolicyAnswerError(f"expected a number, got {_shown(answer)}")
    return float(part)  # Of an integer that is too large this raises.


def _key_parts(answer: object) -> tuple[int | float | str, ...]:
    if type(answer) is not tuple:
        return (_key_part(answer),)
    if not 0 < len(answer) <= _KEY_PARTS_MAX:
        raise PolicyAnswerError(f"expected a key of 1 to {_KEY_PARTS_MAX} parts, got {len(answer)}")
    return tuple([_key_part(part) for part in answer])


def _key_part(part: object) -> int | float | str:
    """Return a number or text as one of Python's own types, which compare as they should."""
    if type(part) is int or type(part) is str:
        return part
    if isinstance(part, float):  # NumPy has numbers of this kind.
        number = float(part)
        if math.isfinite(number):
            return number
    raise PolicyAnswerError(f"expected a finite number or a text, got {_shown(part)}")


def _wait_of(answer: object, now_ns: int) -> Wait | None:
    if answer is None:
        return None
    if not isinstance(answer, Wait) or type(answer.reason) is not str or not answer.reason:
        raise PolicyAnswerError(f"expected None or Wait(reason), got {_shown(answer)}")
    until_ns = answer.until_ns
    if until_ns is not None and (type(until_ns) is not int or until_ns <= now_ns):
        raise PolicyAnswerError(f"expected until_ns in nanoseconds, after {now_ns}, got {_shown(until_ns)}")
    return Wait(answer.reason[:_TEXT_MAX], until_ns)


def _cost_of(answer: object) -> int:
    if type(answer) is not int or not 0 <= answer <= _COST_MAX:
        raise PolicyAnswerError(f"expected an integer from 0 to {_COST_MAX:,}, got {_shown(answer)}")
    return answer


def _reason_of(answer: object) -> str | None:
    if answer is not None and (type(answer) is not str or not answer):
        raise PolicyAnswerError(f"expected None or a reason, got {_shown(answer)}")
    return None if answer is None else answer[:_TEXT_MAX]


def _shown(answer: object) -> str:
    """Return an answer for a message: its representation may be code of the policy as well."""
    return f"{type(answer).__name__} {answer!r:.{_TEXT_MAX}}"
