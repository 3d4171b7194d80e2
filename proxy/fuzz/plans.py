"""Plans: the events of a simulated world, and the interleaving of its threads."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Self, TypeVar, final

from ...model.errors import LicorneError
from ..core.scheduler.engine_names import engine_named

T = TypeVar("T")

REFERENCE: Final = "reference"
"""Instead of an engine: `direct`, together with the second scheduler, which has to decide the same."""
DOOR: Final = "door"
"""Instead of an engine: a door, with schedulers on threads as workers."""
HOSTILE: Final = "hostile"
"""Instead of an engine: `direct`, once with malformed requests and once without."""
FILES: Final = "files"
"""Instead of an engine: files on disks that fail."""
PROCESS, SESSION, STREAMS = "process", "session", "streams"
"""The place of a manager: in the scheduler's process, or behind its server, by `licorne.v1` or `si.v1`."""
OPERATOR: Final = -1
"""The author of actions that do not belong to a manager."""


def by_weight(weights: dict[str, int]) -> tuple[str, ...]:
    """Return each action as often as its weight."""
    return tuple(action for action, weight in weights.items() for _ in range(weight))


_MANAGER_WEIGHTS: Final = {
    "ask": 30,
    "submit": 10,
    "finish": 12,
    "withdraw": 4,
    "fail starts": 4,
    "confirm": 8,
    "report foreign": 3,
    "add node": 6,
    "change node": 4,
    "remove node": 2,
    "remove application": 3,
    "reload": 3,
    "change partitions": 1,
    "crash": 1,
    "stumble": 3,
    "save": 4,
    "resize": 5,
}
_OPERATOR_WEIGHTS: Final = {
    "validate": 12,
    "reconsider": 3,
    "cut": 4,
    "slow": 3,
    "jump": 2,
    "kill": 1,
    "break": 1,
}
_MANAGER_ACTIONS: Final = by_weight(_MANAGER_WEIGHTS)
_OPERATOR_ACTIONS: Final = by_weight(_OPERATOR_WEIGHTS)
_REFERENCE_ACTIONS: Final = by_weight(
    {
        "ask": 36,
        "schedule": 20,
        "finish": 12,
        "submit": 8,
        "wait": 6,
        "resize": 5,
        "change node": 5,
        "add node": 4,
        "report foreign": 4,
        "withdraw": 3,
        "reload": 3,
        "remove node": 1,
        "remove application": 1,
    }
)
BEGIN: Final = "begin"
"""The step with which another world begins in a plan for the second scheduler."""
_WORLDS: Final = 4
"""The number of worlds in one plan, each with as many steps as another plan: their steps are quick."""
_ALONE: Final = {
    REFERENCE: (_WORLDS, (BEGIN, *("add node",) * 3), _REFERENCE_ACTIONS),
    HOSTILE: (
        1,
        (),
        by_weight({"send some": 12, "send again": 2, "send what is refused": 1, "load other": 1}),
    ),
    FILES: (
        1,
        (),
        by_weight({"use": 4, "write usage": 5, "write dump": 5, "start again": 2, "set clock": 2}),
    ),
}
"""Engines without managers of the plan: the number of worlds, the first steps, and the actions."""
_DOOR_ACTIONS: Final = by_weight(
    {
        "validate": 6,
        "reconsider": 2,
        "cut": 3,
        "slow": 3,
        "jump": 1,
        "kill": 1,
        "end worker": 6,
        "silence": 4,
        "part": 4,
        "end at commit": 4,
        "reload at recovery": 4,
        "end at request": 4,
        "lie": 4,
    }
)
_AT_DOOR: Final = by_weight(_MANAGER_WEIGHTS | {"reload": 6, "crash": 4, "confirm": 3})
_OF_OPERATOR: Final = 0.1
"""The share of the operator's steps; at a door twice as many."""
_UNSETTLING: Final = frozenset(
    {
        *("reload", "change partitions", "crash", "cut", "kill", "break", "resize"),
        *("end worker", "silence", "part", "end at commit", "reload at recovery", "end at request", "lie"),
    }
)
"""Actions after which the usage may exceed a maximum."""
_CALM: Final = 0.3
"""How many plans have none of these actions."""
_NARROW: Final = 0.3
_RECORDED: Final = 0.1
_LARGE: Final = 0.03
"""How many plans begin with hundreds of nodes."""
_LEAVING_OUT: Final = 0.15
"""How likely a plan omits an action: some faults show only without interference."""
_LEFT_OUT_MAX: Final = 12
"""If more actions than this are omitted, the plan omits none."""
_DOORS: Final = (PROCESS, PROCESS, PROCESS, SESSION, SESSION, STREAMS)
_DOORS_AT_DOOR: Final = (PROCESS, PROCESS, SESSION, STREAMS)
_PAUSES_MS: Final = (0, 0, 0, 0, 1, 1, 20, 200, 1_000, 3_000, 11_000)
_LONG_PAUSES_MS: Final = (*_PAUSES_MS, 40_000, 1_000_000)
"""Pauses longer than placeholders wait."""
_LONG: Final = 0.15
"""How many plans for a stepped scheduler have such pauses."""


@final
@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step of a plan."""

    who: int
    """The number of a manager, or `OPERATOR`."""
    action: str
    draw: int
    """The seed of the details."""
    pause_ms: int
    """How long the author waits before the step."""


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """All choices of a run."""

    seed: int
    engine: str
    """The name of an engine, or `REFERENCE`."""
    shares: bool
    """Whether threads share partitions."""
    doors: tuple[str, ...]
    """For each manager `PROCESS`, `SESSION` or `STREAMS`."""
    picker: str
    """How threads are interleaved: `random` or `priority`."""
    chance: float
    """How likely a point changes the running thread."""
    is_recorded: bool
    """Whether the scheduler is recorded, and the recording replayed."""
    is_narrow: bool
    """Whether queues hold few entries before writers wait; some queues of a compiled build keep their
    size."""
    steps: tuple[PlannedStep, ...]
    policies: tuple[str, ...] = ()
    """The policies that configurations name, as `--policy` takes them."""

    @property
    def is_calm(self) -> bool:
        """Whether nothing is recovered and no configuration changes, so that all maxima hold."""
        return not any(step.action in _UNSETTLING for step in self.steps)

    def with_steps(self, steps: Sequence[PlannedStep]) -> Plan:
        """Return the plan with other steps."""
        return replace(self, steps=tuple(steps))

    def text(self) -> str:
        """Return the plan as JSON, a line for each step."""
        head = asdict(self)
        steps = head.pop("steps")
        rows = ",\n".join(f"  {json.dumps([*step.values()])}" for step in steps)
        return f'{{"plan": {json.dumps(head)},\n "steps": [\n{rows}\n ]}}\n'

    @classmethod
    def read(cls, text: str, source: str) -> Self:
        """Read a plan.

        Raises:
            LicorneError: It is not a plan.
        """
        try:
            document: Any = json.loads(text)
            head = dict(document["plan"])
            head["doors"] = tuple(head["doors"])
            head["policies"] = tuple(head.get("policies", ()))
            steps = tuple(PlannedStep(*row) for row in document["steps"])
            return cls(**head, steps=steps)
        except (ValueError, TypeError, KeyError) as error:
            raise LicorneError(f"{source}: this is not a plan of licorne fuzz: {error}") from error


def drawn_plan(seed: int, steps: int, engine: str, policies: Sequence[str] = ()) -> Plan:
    """Draw a plan.

    Args:
        seed: The seed.
        steps: How many steps it has.
        engine: An engine, or `REFERENCE`.
        policies: The policies under test, only with an engine or `REFERENCE`.

    Raises:
        LicorneError: The engine does not exist, or it is another world and policies are given.
    """
    if policies:
        tried = drawn_plan(seed, steps, engine if engine == REFERENCE else engine_named(engine))
        return replace(tried, policies=tuple(policies))
    rng = random.Random(f"plan {seed}")  # noqa: S311 - it plays, and keeps no secret
    if engine in _ALONE:
        worlds, first, actions = _ALONE[engine]
        drawn = []
        for _ in range(worlds):
            drawn += [PlannedStep(0, action, _draw(rng), 0) for action in first]
            others = range(sum(action != BEGIN for action in first), steps)
            drawn += [PlannedStep(0, one_of(rng, actions), _draw(rng), 0) for _ in others]
        return Plan(
            seed,
            engine,
            shares=False,
            doors=(),
            picker="random",
            chance=0.0,
            is_recorded=False,
            is_narrow=False,
            steps=tuple(drawn),
        )
    if engine != DOOR:
        engine = engine_named(engine)
    managers = 1 + int(rng.random() ** 2 * 3)
    steppable = engine == "direct"
    places = _DOORS_AT_DOOR if engine == DOOR else _DOORS
    doors = tuple(PROCESS if steppable else one_of(rng, places) for _ in range(managers))
    shares = engine == "threads" and rng.random() < 0.4
    picker = "random" if rng.random() < 0.5 else "priority"
    chance = one_of(rng, (0.5, 0.1, 0.02) if picker == "random" else (0.02, 0.002))
    drawn = [PlannedStep(who, "add node", _draw(rng), 0) for who in range(managers) for _ in range(3)]
    if rng.random() < _LARGE:
        drawn.append(PlannedStep(0, "add many nodes", _draw(rng), 0))
    left_out = {action for action in (*_MANAGER_WEIGHTS, *_OPERATOR_WEIGHTS) if rng.random() < _LEAVING_OUT}
    if rng.random() < _CALM:
        left_out |= _UNSETTLING
    dice = random.Random(f"pauses {seed}")  # noqa: S311 - as above; all other choices are the same without it
    pauses_ms = _LONG_PAUSES_MS if steppable and dice.random() < _LONG else _PAUSES_MS
    while len(drawn) < steps:
        step = _drawn_step(rng, managers, pauses_ms, at_door=engine == DOOR)
        if step.action not in left_out or len(left_out) > _LEFT_OUT_MAX:
            drawn.append(step)
    is_narrow = rng.random() < _NARROW
    is_recorded = engine not in ("threads", DOOR) and PROCESS in doors and rng.random() < _RECORDED
    return Plan(seed, engine, shares, doors, picker, chance, is_recorded, is_narrow, tuple(drawn))


def _drawn_step(rng: random.Random, managers: int, pauses_ms: Sequence[int], *, at_door: bool) -> PlannedStep:
    is_operator = rng.random() < _OF_OPERATOR * (1 + at_door)
    who = OPERATOR if is_operator else int(rng.random() * managers)
    if is_operator:
        actions = _DOOR_ACTIONS if at_door else _OPERATOR_ACTIONS
    else:
        actions = _AT_DOOR if at_door else _MANAGER_ACTIONS
    return PlannedStep(who, one_of(rng, actions), _draw(rng), one_of(rng, pauses_ms))


def one_of(rng: random.Random, choices: Sequence[T]) -> T:
    """Return one of some choices, the same one in each version of Python."""
    return choices[int(rng.random() * len(choices))]


def _draw(rng: random.Random) -> int:
    return int(rng.random() * 2**32)
