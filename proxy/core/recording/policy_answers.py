"""The answers of policies: their form in lines, and their replay.

A line has `policies`: by policy and method the answers of its turn, in the order of the questions. Numbers,
texts, lists of those, `true`, `false` and `null` are literal; `wait` with the reason, and `until` if it has a
time, is a `Wait`; and `failed` has the text of an error.

In a replay each policy is an object that returns the recorded answers, and raises the recorded failures. The
partition checks and uses them like any answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, final

from ....model.errors import LicorneError, error_text
from ....model.policies.answers import PolicyAnswerError
from ....model.policies.interface import Wait
from ....model.policies.policies import (
    GivenPolicies,
    GuardedPolicy,
    PolicyFacts,
    PolicyPoint,
)
from ....model.policies.watching import FAILURE_MAX
from ....model.values.documents import Document, Json

_LAST_MAX: Final = 100_000
"""The number of answers that are kept for explanations; the oldest one is dropped for a new one."""


@final
class TurnAnswers:
    """The answers of one turn."""

    def __init__(self) -> None:
        self._noted: dict[str, list[Json]] = {}

    def note(self, policy: str, method: str, answer: object) -> None:
        """Keep an answer."""
        self._noted.setdefault(f"{policy}.{method}", []).append(written_answer(answer))

    def take(self) -> Document:
        """Return the answers for the line of the turn, and forget them."""
        noted, self._noted = self._noted, {}
        return {"policies": {**noted}} if noted else {}


def joined(documents: Iterable[Document]) -> Document:
    """Return the answers for the line of a change, in which several partitions have asked in turn."""
    noted: dict[str, list[Json]] = {}
    for document in documents:
        for question, answers in read_turn(document).items():
            noted.setdefault(question, []).extend(answers)
    return {"policies": {**noted}} if noted else {}


def read_turn(document: Document) -> Mapping[str, Sequence[Json]]:
    """Return the answers in a line, by policy and method.

    Raises:
        LicorneError: The value has another form.
    """
    found = document.get("policies", {})
    if isinstance(found, dict):
        answers = {name: each for name, each in found.items() if isinstance(each, list)}
        if len(answers) == len(found):
            return answers
    raise LicorneError(f"policies: expected lists of answers by policy and method, got {found!r:.200}")


def written_answer(answer: object) -> Json:
    """Return an answer as JSON, or the reason why it is missing."""
    match answer:
        case Exception():
            return {"failed": error_text(answer)[:FAILURE_MAX]}
        case Wait(reason, until_ns):
            return {"wait": reason} if until_ns is None else {"wait": reason, "until": until_ns}
        case tuple():
            return [written_answer(part) for part in answer]
        case None | bool() | int() | float() | str():
            return answer
    raise TypeError(f"a {type(answer).__name__} cannot be recorded: please report")


def read_answer(answer: Json) -> object:
    """Return an answer in the form of a policy.

    Raises:
        PolicyAnswerError: The recorded question failed.
    """
    match answer:
        case {"failed": str() as text}:
            raise PolicyAnswerError(text)
        case {"wait": str() as reason, "until": int() as until_ns}:
            return Wait(reason, until_ns)
        case {"wait": str() as reason}:
            return Wait(reason)
        case list():
            return tuple([read_answer(part) for part in answer])
    return answer


# --------------------------------------------------------------------------------------------- the header


def written_policies(policies: GivenPolicies) -> Document:
    """Return the policies for the first line of a recording; empty without policies."""
    rows: Document = {}
    for name, facts in policies.facts.items():
        row: Document = {
            "class": facts.made_of,
            "methods": [*sorted(point.value for point in facts.points)],
            "dependsOn": [*sorted(facts.depends_on)],
        }
        if facts.version:
            row["version"] = facts.version
        if facts.every_ns is not None:
            row["everyNs"] = facts.every_ns
        rows[name] = row
    return {"policies": rows} if rows else {}


def read_policies(body: Document) -> Mapping[str, PolicyFacts]:
    """Return the policies in the first line of a recording.

    Raises:
        LicorneError: They cannot be read; a newer Licorne has written them.
    """
    rows = body.get("policies", {})
    if not isinstance(rows, dict):
        raise LicorneError(f"policies: expected an object, got {rows!r:.200}")
    return {name: _facts(name, row) for name, row in rows.items()}


def _facts(name: str, row: Json) -> PolicyFacts:
    points = {point.value: point for point in PolicyPoint}
    match row:
        case {"class": made_of, "methods": list() as methods, "dependsOn": list() as depends_on, **more}:
            every_ns = more.get("everyNs")
            if more.keys() <= {"everyNs", "version"} and all(method in points for method in methods):
                return PolicyFacts(
                    frozenset(points[str(method)] for method in methods),
                    frozenset(map(str, depends_on)),
                    every_ns if isinstance(every_ns, int) else None,
                    str(made_of),
                    str(more.get("version", "")),
                )
    raise LicorneError(
        f"policies: {name}: expected class, dependsOn, and methods of {', '.join(points)}, got {row!r:.200}"
    )


# --------------------------------------------------------------------------------------------- the replay


@final
class PlayedAnswers:
    """The policies of a replay, which return the recorded answers, one turn at a time.

    Args:
        recorded: The policies of the recording.
        code: Policies that are asked as well, and must give the same answers.

    Raises:
        LicorneError: The recording lacks a policy with code.
    """

    def __init__(self, recorded: Mapping[str, PolicyFacts], code: GivenPolicies) -> None:
        for name in code.facts:
            if name not in recorded:
                known = ", ".join(sorted(recorded)) or "none"
                raise LicorneError(f"the recording has no policy {name!r}; it has: {known}")
        self.given = GivenPolicies(
            {name: partial(_Played, self, name, facts, code) for name, facts in recorded.items()}
        )
        """The policies for the partitions of the replay."""
        self._answers: dict[str, deque[Json]] = {}
        self._last: dict[tuple[str, str], Json] = {}
        """The last answer to each question about a subject, for explanations between turns."""
        self._in_turn = False
        self._difference = ""
        """The first difference in the turn."""

    def begin(self, answers: Mapping[str, Sequence[Json]]) -> None:
        """Set the answers for the next questions."""
        self._answers = {question: deque(each) for question, each in answers.items()}
        self._in_turn, self._difference = True, ""

    def end(self) -> str:
        """End the turn, and return its first difference, the empty text without one."""
        self._in_turn = False
        if self._difference:
            return self._difference
        for question, left in self._answers.items():
            if left:
                return (
                    f"{len(left)} of the recorded answers of policy {question} were not asked for: "
                    f"the next one is {left[0]!r:.200}"
                )
        return ""

    def answer(self, question: str, subject: str, ask_code: Callable[[], object] | None) -> object:
        """Return the next answer to a question; between turns ask the code, or return the last answer.

        Args:
            question: The policy and its method.
            subject: The id of the subject.
            ask_code: Asks the code, if any; returns an answer, or the error instead.

        Raises:
            PolicyAnswerError: The answer is missing.
        """
        if not self._in_turn:
            if ask_code is not None:
                return read_answer(written_answer(ask_code()))
            if (question, subject) not in self._last:
                raise PolicyAnswerError("the recording has no answer to this")
            return read_answer(self._last[question, subject])
        left = self._answers.get(question)
        if not left:
            self._differs(f"no answer of policy {question} about {subject!r} was recorded")
            raise PolicyAnswerError("no answer was recorded")
        recorded = left.popleft()
        self._last.pop((question, subject), None)
        self._last[question, subject] = recorded
        if len(self._last) > _LAST_MAX:
            del self._last[next(iter(self._last))]
        if ask_code is not None:
            own = written_answer(ask_code())
            if not _same(recorded, own):
                self._differs(
                    f"policy {question} about {subject!r}: "
                    f"recorded is {recorded!r:.200}, its code answers {own!r:.200}"
                )
        return read_answer(recorded)

    def _differs(self, difference: str) -> None:
        self._difference = self._difference or difference


def _same(recorded: Json, own: Json) -> bool:
    """Return whether two answers are the same; texts of errors may contain different memory addresses."""
    failed = [isinstance(each, dict) and "failed" in each for each in (recorded, own)]
    return recorded == own if not any(failed) else all(failed)


class _Played:
    """A policy in a partition of a replay, with the recorded methods."""

    def __init__(self, answers: PlayedAnswers, name: str, facts: PolicyFacts, code: GivenPolicies) -> None:
        self.depends_on = facts.depends_on
        self.every_ns = facts.every_ns
        asked = code.make_one(name, lambda *_: None) if name in code.facts else None
        for point in facts.points:
            ask = None if asked is None else partial(_settled, asked, point)
            setattr(self, point.value, partial(_played, answers, f"{name}.{point.value}", ask))


def _played(
    answers: PlayedAnswers, question: str, ask: Callable[..., object] | None, *shown: object
) -> object:
    return answers.answer(question, _subject_of(shown), None if ask is None else partial(ask, *shown))


def _settled(asked: GuardedPolicy, point: PolicyPoint, *shown: object) -> object:
    """Ask the code of a policy; return its checked answer, or the error."""
    noted: list[object] = []
    asked.note = lambda _, __, answer: noted.append(answer)
    getattr(asked, point.value)(*shown)  # The methods have the names of those of policies.
    return noted[0]


def _subject_of(shown: Sequence[object]) -> str:
    """Return the ids of the subjects of a question: the first field of each view, or of the view in it."""
    ids = []
    for view in shown:
        first = view
        while isinstance(first, tuple):
            first = first[0]
        if first is not view:  # The time is not a view.
            ids.append(str(first))
    return " on ".join(ids)
