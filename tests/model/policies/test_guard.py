"""What a partition makes of the answers of a policy: good ones, errors, and what is no answer."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pytest

from licorne.model.configuration.rules.queue_warnings import refused_name
from licorne.model.errors import LicorneError
from licorne.model.policies.interface import ApplicationView, AskView, JobView, NodeView, VictimView, Wait
from licorne.model.policies.policies import (
    GivenPolicies,
    GuardedPolicy,
    PolicyPoint,
)
from licorne.model.resources.resource import EMPTY, Resource

NODE = NodeView("n1", {}, Resource({"vcore": 8000}), Resource({"vcore": 2000}))

ASK = AskView("key", "app-1", Resource({"vcore": 1000}), 0, 0, {}, False, "", None)

VICTIM = VictimView(ASK, "n1", "root.q", "ada", 0, None)


def application(application_id: str = "app-1") -> ApplicationView:
    """Return an application that has nothing."""
    return ApplicationView(application_id, "root.q", "ada", (), {}, 0, 0, EMPTY, EMPTY, False, None)


JOB = JobView("key", application(), (EMPTY,), None, 0)


class Failure(NamedTuple):
    """What is reported of a failure."""

    method: str
    subject: str
    error: Exception


class Asked:
    """A policy whose methods return what the test says, or raise it."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)

    def _next(self) -> Any:
        answer = self._answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def node_key(self, _: NodeView) -> Any:
        return self._next()

    def application_key(self, _: ApplicationView) -> Any:
        return self._next()

    def may_start(self, _: ApplicationView, __: int) -> Any:
        return self._next()

    def victim_cost(self, _: VictimView, __: int) -> Any:
        return self._next()

    def spares(self, _: VictimView, __: int) -> Any:
        return self._next()

    def refuses(self, _: AskView, __: NodeView) -> Any:
        return self._next()

    def promises(self, _: JobView) -> Any:
        return self._next()

    def expected_run_time_ns(self, _: AskView, __: ApplicationView) -> Any:
        return self._next()


def policy(failures: list[Failure], *answers: Any) -> GuardedPolicy:
    """Return a policy that answers so."""
    made = iter([Asked(1), Asked(*answers)])  # The first one is looked at only.
    given = GivenPolicies({"p": made.__next__})
    return given.make(lambda *args: failures.append(Failure(*args))).named("policy/p")


class BrokenEquality(float):
    """A number whose comparisons raise."""

    __hash__ = float.__hash__

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    def __lt__(self, other: object) -> bool:
        raise RuntimeError("compared")


class BrokenText:
    """An object that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no representation")


NO_NUMBERS = [None, math.nan, math.inf, -math.inf, True, "text", (1,), [1], 10**400, 1j, BrokenText()]


@pytest.mark.parametrize("answer", NO_NUMBERS, ids=lambda each: type(each).__name__)
def test_a_node_without_a_number_goes_last(answer: object) -> None:
    """And the failure names the policy, the method and the node."""
    failures: list[Failure] = []

    assert policy(failures, answer).node_key(NODE) == math.inf
    assert [each[:2] for each in failures] == [("policy p.node_key", "n1")]


@pytest.mark.parametrize(
    "answer", [None, math.nan, math.inf, False, [1], (), (1, (2,)), (1, None), {1}, (0,) * 17]
)
def test_an_application_without_a_key_goes_last(answer: object) -> None:
    failures: list[Failure] = []
    asked = policy(failures, 3, answer)

    assert asked.application_key(application()) < asked.application_key(application("app-2"))
    assert [each.subject for each in failures] == ["app-2"]


def test_a_key_of_another_shape_goes_last() -> None:
    """Text beside numbers, or more parts than before: they could not be compared."""
    failures: list[Failure] = []
    asked = policy(failures, (1, "a"), ("a", 1), 7, (2, "b"))
    keys = [asked.application_key(application(f"app-{number}")) for number in range(4)]

    assert keys == [(0, (1, "a")), (1,), (1,), (0, (2, "b"))]
    assert "expected a key like those before it (number, text), got ('a', 1) (text, number)" in str(
        failures[0].error
    )


def test_numbers_of_other_types_become_plain_ones() -> None:
    """Whatever their comparisons do."""
    failures: list[Failure] = []
    key = policy(failures, (BrokenEquality(2.5), 1)).application_key(application())

    assert key == (0, (2.5, 1))
    assert not failures


@pytest.mark.parametrize("error", [RuntimeError("a bug"), KeyError("x"), RecursionError()])
def test_what_raises_goes_last_and_is_held(error: Exception) -> None:
    failures: list[Failure] = []
    asked = policy(failures, error, error, error)

    assert asked.node_key(NODE) == math.inf
    assert asked.application_key(application()) == (1,)
    held = asked.may_start(application(), 5)
    assert held is not None
    assert (held.until_ns, "it has failed" in held.reason) == (1_000_000_005, True)
    assert len(failures) == 3
    assert [failure.subject for failure in failures] == ["n1", "app-1", "app-1"]


def test_what_ends_the_process_is_not_kept_from_doing_so() -> None:
    with pytest.raises(KeyboardInterrupt):
        policy([], KeyboardInterrupt()).node_key(NODE)


@pytest.mark.parametrize("answer", [True, "later", Wait(""), Wait("later", 1.5), Wait(5), 0])  # type: ignore[arg-type]
def test_a_start_that_is_not_judged_is_held(answer: object) -> None:
    failures: list[Failure] = []
    held = policy(failures, answer).may_start(application(), 0)

    assert held is not None
    assert held.until_ns == 1_000_000_000
    assert "expected" in str(failures[0].error)


def test_starts_are_judged() -> None:
    asked = policy([], None, Wait("after ten", 10))

    assert asked.may_start(application(), 0) is None
    assert asked.may_start(application(), 0) == Wait("after ten", 10)


@pytest.mark.parametrize("answer", [False, True, "", 0, ["no"], Wait("no"), RuntimeError("a bug")])
def test_a_filter_without_an_answer_refuses(answer: object) -> None:
    """And the failure names the ask and the node."""
    failures: list[Failure] = []
    refusal = policy(failures, answer).refuses(ASK, NODE)

    assert refusal is not None
    assert refusal.startswith("it has failed: ")
    assert [each[:2] for each in failures] == [("policy p.refuses", "key on n1")]


def test_filters_refuse_and_let_through() -> None:
    asked = policy([], None, "no licence", "x" * 1000)

    assert asked.refuses(ASK, NODE) is None
    assert asked.refuses(ASK, NODE) == "no licence"
    assert asked.refuses(ASK, NODE) == "x" * 200


@pytest.mark.parametrize("answer", [None, -1, 1.0, True, "5", 10**18 + 1, math.nan, RuntimeError("a bug")])
def test_a_victim_without_a_cost_goes_last(answer: object) -> None:
    failures: list[Failure] = []
    asked = policy(failures, 10**18, answer)

    assert asked.victim_cost(VICTIM, 0) < asked.victim_cost(VICTIM, 0)
    assert [each[:2] for each in failures] == [("policy p.victim_cost", "key")]


@pytest.mark.parametrize("answer", [False, "later", Wait(""), Wait("past", -1), RuntimeError("a bug")])
def test_a_victim_that_is_not_judged_is_spared(answer: object) -> None:
    """For a second."""
    failures: list[Failure] = []
    spared = policy(failures, answer).spares(VICTIM, 0)

    assert spared is not None
    assert spared.until_ns == 1_000_000_000
    assert [each[:2] for each in failures] == [("policy p.spares", "key")]


@pytest.mark.parametrize("answer", [0, -1, True, 1.0, math.nan, "5", 10**18 + 1, RuntimeError("a bug")])
def test_without_a_run_time_there_is_the_walltime(answer: object) -> None:
    failures: list[Failure] = []
    asked = policy(failures, 10**18, None, answer)

    assert [asked.expected_run_time_ns(ASK, application()) for _ in range(3)] == [10**18, None, None]
    assert [each[:2] for each in failures] == [("policy p.expected_run_time_ns", "key")]


@pytest.mark.parametrize("answer", [None, 0, 1, "True", [True], RuntimeError("a bug")])
def test_a_job_that_is_not_judged_may_be_promised_a_start(answer: object) -> None:
    failures: list[Failure] = []
    asked = policy(failures, False, answer)

    assert [asked.promises(JOB), asked.promises(JOB)] == [False, True]
    assert [each[:2] for each in failures] == [("policy p.promises", "key")]


# ------------------------------------------------------------------------------------------ what is given


class NoMethods:
    """Decides nothing."""


class Hourly:
    """Depends on time."""

    depends_on = frozenset({"time"})

    def node_key(self, _: NodeView) -> float:
        return 1.0


class Unreadable:
    """Its method is code that raises."""

    @property
    def node_key(self) -> object:
        raise RuntimeError("no licence")


def refuses_to_be_made() -> object:
    raise ValueError("no licence")


@pytest.mark.parametrize(
    ("name", "factory", "message"),
    [
        ("A", Asked, "expected up to 64 small letters"),
        ("", Asked, "expected up to 64 small letters"),
        ("a/b", Asked, "expected up to 64 small letters"),
        (5, Asked, "expected up to 64 small letters"),
        ("p", 5, "expected a class or a function without arguments, got 5"),
        ("p", NoMethods, "expected one of the methods node_key, application_key, may_start"),
        ("p", Hourly, "expected every_ns, 1,000,000,000 or more, got None"),
        ("p", type("P", (Asked,), {"depends_on": "time"}), "expected depends_on to be a set"),
        ("p", type("P", (Asked,), {"depends_on": {"moon"}}), "got {'moon'}"),
        ("p", Unreadable, "the policy 'p' cannot be read: RuntimeError: no licence"),
        ("p", type("P", (Asked,), {"depends_on": [["x"]]}), "the policy 'p' cannot be read: TypeError"),
        ("p", refuses_to_be_made, "the policy 'p' cannot be made: ValueError: no licence"),
    ],
)
def test_what_is_no_policy_is_refused(name: Any, factory: Any, message: str) -> None:
    with pytest.raises(LicorneError) as refused:
        GivenPolicies({name: factory})

    assert message in str(refused.value)


def test_each_partition_has_an_object() -> None:
    made: list[object] = []

    def make() -> object:
        made.append(Asked(1))
        return made[-1]

    given = GivenPolicies({"p": make})
    given.make(lambda *_: None)
    given.make(lambda *_: None)

    assert len(made) == 3


@pytest.mark.parametrize(
    ("word", "point", "message"),
    [
        ("policy/p", PolicyPoint.NODE_ORDER, None),
        ("policy/q", PolicyPoint.NODE_ORDER, "no policy 'q' was given to the scheduler; given: hourly, p"),
        (
            "policy/hourly",
            PolicyPoint.ADMISSION,
            "the policy 'hourly' has no method may_start; it has: node_key",
        ),
    ],
)
def test_a_name_is_refused_where_it_decides_nothing(
    word: str, point: PolicyPoint, message: str | None
) -> None:
    points = {"p": frozenset(PolicyPoint), "hourly": frozenset({PolicyPoint.NODE_ORDER})}

    assert refused_name(word, point, points) == message


def test_each_answer_is_noted_as_it_was_checked() -> None:
    """And an error where there is none, so that a recording has both."""
    asked = policy([], 3, (1, "a"), None, ValueError("a bug"))
    noted: list[tuple[str, str, object]] = []
    asked.note = lambda *args: noted.append(args)
    asked.node_key(NODE)
    asked.application_key(application())
    asked.may_start(application(), 0)
    asked.node_key(NODE)

    error = noted.pop()[2]
    assert isinstance(error, ValueError)
    assert noted == [("p", "node_key", 3.0), ("p", "application_key", (1, "a")), ("p", "may_start", None)]


def test_a_number_that_has_no_text_is_no_key() -> None:
    """Python writes none of more than 4,300 digits, and a recording would need it."""
    failures: list[Failure] = []

    assert policy(failures, 10**5000).application_key(application()) == (1,)
    assert len(failures) == 1
