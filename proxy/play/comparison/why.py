"""The reasons for a difference of two runs: the first differing step, its settings, and the consequences.

The input is simulated again for this: once under A and under B, to ask both at the important moments, and
under configurations between the two, to find which of the differing settings are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Protocol, final

from ....model.errors import LicorneError
from ...base.files.input_files import LocatedYaml, read_located_yaml
from ...base.terminal.standard_output import counted
from ..simulation.record import Decision, Decisions
from ..simulation.report import JsonDocument
from ..simulation.simulation import GivenQueues
from .effects import Consequence, JobEffects, consequences, moments_of
from .first_difference import FirstDifference, FirstStep, Probes, first_difference, first_step
from .settings import (
    DifferingSetting,
    SmallestSet,
    changed_text,
    differing_settings,
    places_in_both,
    smallest_set,
)

RUNS_MAX: Final = 60
"""The largest number of simulations to find the needed settings."""


@final
class InterruptedRunError(LicorneError):
    """The user has interrupted a simulation."""


class Rerun(Protocol):
    """Simulates the input once more."""

    def __call__(
        self,
        configuration: str,
        decisions: Decisions,
        *,
        probes: Probes | None = None,
        is_done: Callable[[], bool] | None = None,
    ) -> None:
        """Simulate the input under a configuration.

        Args:
            configuration: The queue YAML.
            decisions: The list for its decisions.
            probes: The questions to the scheduler on the way.
            is_done: Returns whether the rest is not needed.

        Raises:
            InterruptedRunError: The simulation was interrupted.
            LicorneError: The scheduler refuses the configuration.
        """
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The reasons for the difference of the decisions of A and B.

    `settings` are all differing settings, in the order of the file of B. `needed` are those that make the
    first decision differ, `None` if even all of them together, taken over from B to A, do not.
    """

    step: FirstStep
    settings: tuple[DifferingSetting, ...]
    needed: SmallestSet[DifferingSetting] | None
    consequences: tuple[Consequence, ...]


def explained(
    difference: FirstDifference,
    effects: JobEffects,
    decisions: tuple[Sequence[Decision], Sequence[Decision]],
    queues: tuple[GivenQueues, GivenQueues],
    rerun: Rerun,
) -> Why:
    """Explain a first difference.

    Args:
        difference: The first difference.
        effects: The effects on all jobs.
        decisions: All decisions under A and under B.
        queues: The configurations A and B.
        rerun: Simulates the input once more.

    Raises:
        InterruptedRunError: The simulation was interrupted.
    """
    asked = [decision for decision in (difference.a, difference.b) if decision is not None]
    moments = moments_of(effects)
    probes = [
        Probes(number=difference.number, at_ns=difference.at_ns, decisions=asked, moments=moments[side])
        for side in (0, 1)
    ]
    for probe, given in zip(probes, queues, strict=True):
        rerun(given.text, Decisions(), probes=probe)
    a, b = (read_located_yaml(given.path, given.text) for given in queues)
    files = a, b
    where = places_in_both(files[0], files[1]), places_in_both(files[1], files[0])
    settings = differing_settings(*files)
    return Why(
        step=first_step(difference, (probes[0].before, probes[1].before), where),
        settings=settings,
        needed=_needed(difference, decisions[0], files, settings, rerun),
        consequences=consequences(effects, decisions, (probes[0].lines, probes[1].lines)),
    )


def _needed(
    difference: FirstDifference,
    decisions: Sequence[Decision],
    files: tuple[LocatedYaml, LocatedYaml],
    settings: Sequence[DifferingSetting],
    rerun: Rerun,
) -> SmallestSet[DifferingSetting] | None:
    """Return the settings that are needed for the first difference."""

    def has_effect(changed: Sequence[DifferingSetting]) -> bool:
        tried = Decisions()
        try:
            rerun(changed_text(*files, changed), tried, is_done=lambda: len(tried) >= difference.number)
        except InterruptedRunError:
            raise
        except LicorneError:
            return False  # Some settings need others: without them the configuration is refused.
        found = first_difference(decisions, tuple(tried))
        return found is not None and _sign(found) == _sign(difference)

    if not settings or not has_effect(settings):
        return None
    return smallest_set(settings, has_effect, runs_max=RUNS_MAX)


def _sign(difference: FirstDifference) -> tuple[object, ...]:
    """Return the identity of a first difference: its number, its moment, and the decisions of both runs."""
    sides = (None if each is None else each[:5] for each in (difference.a, difference.b))
    return (difference.number, difference.at_ns, *sides)


# ---------------------------------------------------------------------------------- as text and document


def why_lines(why: Why) -> Iterator[str]:
    """Yield the reasons as lines of text."""
    yield "why:"
    yield from (f"  {line}" for line in why.step.lines)
    yield settings_line(why)
    yield from (f"  {setting.text()}" for setting in (why.needed.changes if why.needed else why.settings))
    if why.consequences:
        yield "what follows:"
        yield from (f"  {consequence.text()}" for consequence in why.consequences)


def settings_line(why: Why) -> str:
    """Return how many of the differing settings are needed for the first difference."""
    differing = f"{counted(len(why.settings), 'setting')} {'differs' if len(why.settings) == 1 else 'differ'}"
    needed = why.needed
    if needed is None:
        return f"{differing}; taken over from B to A they do not make this decision differ:"
    count = len(needed.changes)
    bound = "" if needed.is_proved else f", or fewer: the bound of {needed.runs} runs was reached"
    return f"{differing}, {count} of them {'makes' if count == 1 else 'make'} this decision differ{bound}:"


def why_document(why: Why | None) -> JsonDocument:
    """Return the reasons as a JSON document, null without any."""
    if why is None:
        return None
    needed = why.needed
    return {
        "step": {"kind": why.step.kind, "lines": [*why.step.lines]},
        "settings": [_setting(setting) for setting in why.settings],
        "needed": None if needed is None else [_setting(setting) for setting in needed.changes],
        "needed_is_proved": needed is not None and needed.is_proved,
        "runs": 0 if needed is None else needed.runs,
        "consequences": [asdict(each) for each in why.consequences],
    }


def _setting(setting: DifferingSetting) -> JsonDocument:
    """Return a setting as a document."""
    return {
        "name": setting.name,
        "a": setting.in_a,
        "b": setting.in_b,
        "place_a": setting.place_a,
        "place_b": setting.place_b,
    }
