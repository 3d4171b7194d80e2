"""The reasons for a difference of two runs: the first differing step, its settings, and the consequences.

The input is simulated again for this: once under A and under B, to ask both at the important moments, and
under configurations between the two, to find which of the differing settings are needed.

Of the configurations, partitions and queues are compared by name, entries of limits by their users and
groups, other lists as a whole. An item of only one of the two, such as a queue, is one setting. The smallest
set of changes that has an effect is found by leaving out needless ones (delta debugging): it begins with all
changes, and continues with a part of them as long as that part has the effect as well, halves first, then
smaller parts. The result is smallest in that no single change of it can be left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Generic, Protocol, TypeAlias, TypeVar, final

from ....model.configuration.problems import Position
from ....model.configuration.yaml_nodes import item_path, key_path
from ....model.errors import LicorneError
from ...base.files.input_files import LocatedYaml, YamlValue, read_located_yaml
from ...base.terminal.standard_output import counted
from ..simulation.record import Decision, Decisions
from ..simulation.report import JsonDocument
from ..simulation.simulation import GivenQueues
from .effects import Consequence, JobEffects, consequences, moments_of
from .first_difference import FirstDifference, FirstStep, Probes, first_difference, first_step

RUNS_MAX: Final = 60
"""The largest number of simulations to find the needed settings."""
_Entry: TypeAlias = "dict[str, YamlValue]"
_Way: TypeAlias = "tuple[str, ...]"
_NAMED_LISTS: Final = ("partitions", "queues")
_LIMITS: Final = "limits"
T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DifferingSetting:
    """One differing setting: its values in A and in B, and its place in both files.

    `way` leads to it, with names instead of indexes. A place is `file:line:column`; if a file does not have
    the setting (`in_a` or `in_b` is `None`), it is the place of the enclosing value.
    """

    way: tuple[str, ...]
    name: str
    in_a: str | None
    in_b: str | None
    place_a: str
    place_b: str

    def text(self) -> str:
        """Return the setting with its values and places, as one line."""
        sides = (self.in_a, self.place_a), (self.in_b, self.place_b)
        a, b = (f"{'not set' if value is None else value} ({place})" for value, place in sides)
        return f"{self.name}: {a} in A, {b} in B"


@final
class _Side:
    """The values of one file by their ways: each value that is not a mapping or list with compared parts."""

    def __init__(self, file: LocatedYaml) -> None:
        self._file = file
        self.paths: dict[_Way, str] = {}
        """The paths in the file of the values, and of all enclosing values."""
        self.values: dict[_Way, YamlValue] = {}
        self._walk(file.value, (), "")

    def place(self, way: _Way) -> str:
        """Return the place of a value, or of the enclosing value if it is missing."""
        position = self.position(way)
        return f"{self._file.path}:{position.line}:{position.column}"

    def position(self, way: _Way) -> Position:
        """Return the position of a value, or of the enclosing value if it is missing."""
        while way not in self.paths:
            way = way[:-1]
        path = self.paths[way]
        return self._file.positions.get(path, Position(1, 1))

    def _walk(self, value: YamlValue, way: _Way, path: str) -> None:
        self.paths[way] = path
        self.values[way] = value
        for name, child, child_path in _children(value, way, path):
            self._walk(child, (*way, name), child_path)


def differing_settings(a: LocatedYaml, b: LocatedYaml) -> tuple[DifferingSetting, ...]:
    """Return the differing settings in the order of the file of B; those of only A by the enclosing value."""
    sides = _Side(a), _Side(b)
    ways = list(_differing(*sides, ()))
    ways.sort(key=lambda way: (sides[1].position(way)[:2], sides[0].position(way)[:2]))
    return tuple(
        DifferingSetting(
            way=way,
            name=_name(way),
            in_a=_shown(sides[0], way),
            in_b=_shown(sides[1], way),
            place_a=sides[0].place(way),
            place_b=sides[1].place(way),
        )
        for way in ways
    )


def places_in_both(own: LocatedYaml, other: LocatedYaml) -> Callable[[Position], str]:
    """Return the function that finds a setting of one file by its position there: its place in both files."""
    own_side, other_side = _Side(own), _Side(other)
    ways = {path: way for way, path in own_side.paths.items()}

    def find(position: Position) -> str:
        place = f"{own.path}:{position.line}:{position.column}"
        way = ways.get(position.path)
        if way is None:
            return place
        value = _shown(other_side, way)
        return f"{place}; {other_side.place(way)}, {'not set' if value is None else f'{value} there'}"

    return find


def changed_text(a: LocatedYaml, b: LocatedYaml, settings: Iterable[DifferingSetting]) -> str:
    """Return the configuration A with some settings of B, as JSON, which is YAML as well."""
    value = json.loads(json.dumps(a.value))
    values = _Side(b).values
    for setting in settings:
        value = _with(value, setting.way, values.get(setting.way), is_there=setting.way in values)
    return json.dumps(value)


def _differing(a: _Side, b: _Side, way: _Way) -> Iterator[_Way]:
    """Walk the ways at which the values differ, the longest ones that show the difference."""
    if way not in a.values or way not in b.values:
        there = a if way in a.values else b
        value = there.values[way]
        if len(way) > 1 and way[-2] not in (*_NAMED_LISTS, _LIMITS) and isinstance(value, dict) and value:
            # In a mapping such as `resources`, each value is a setting; a queue is one as a whole.
            for name in value:
                yield from _differing(a, b, (*way, name))
        else:
            yield way
        return
    names = list(
        dict.fromkeys(name for side in (a, b) for name, _, _ in _children(side.values[way], way, ""))
    )
    if names and _is_walked(a.values[way], way) and _is_walked(b.values[way], way):
        for name in names:
            yield from _differing(a, b, (*way, name))
    elif a.values[way] != b.values[way]:
        yield way


def _is_walked(value: YamlValue, way: _Way) -> bool:
    """Return whether a value is compared part by part."""
    return isinstance(value, dict) or (isinstance(value, list) and _names_of(value, way) is not None)


def _children(value: YamlValue, way: _Way, path: str) -> Iterator[tuple[str, YamlValue, str]]:
    """Walk the parts of a value with their names and paths; empty for a value that is compared whole."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield key, child, key_path(path, key)
    elif isinstance(value, list):
        names = _names_of(value, way)
        for index, name in enumerate(names or ()):
            yield name, value[index], item_path(path, index)


def _names_of(entries: Sequence[YamlValue], way: _Way) -> list[str] | None:
    """Return the names of the entries of a list, `None` for a list that is compared whole."""
    kind = way[-1] if way else ""
    if kind not in (*_NAMED_LISTS, _LIMITS):
        return None
    names = [_entry_name(entry, kind) for entry in entries if isinstance(entry, dict)]
    return names if len(set(names)) == len(entries) else None


def _entry_name(entry: _Entry, kind: str) -> str:
    """Return the name of a partition, a queue, or an entry of limits."""
    if kind in _NAMED_LISTS:
        return str(entry.get("name", ""))
    holders = [f"{key} {_text(entry[key])}" for key in ("users", "groups") if entry.get(key)]
    return " ".join(holders)


def _with(value: YamlValue, way: _Way, new: YamlValue, *, is_there: bool, done: int = 0) -> YamlValue:
    """Return a value in which the part at the end of a way is replaced, added or removed."""
    if done == len(way):
        return new
    name, is_last = way[done], done + 1 == len(way)
    if value is None or isinstance(value, dict):
        changed = dict(value or {})
        if is_last and not is_there:
            changed.pop(name, None)
        else:
            changed[name] = _with(changed.get(name), way, new, is_there=is_there, done=done + 1)
        return changed
    assert isinstance(value, list), "a way leads through mappings and lists"
    names = _names_of(value, way[:done]) or []
    entries = list(value)
    if name not in names:
        return [*entries, new]
    index = names.index(name)
    if is_last and not is_there:
        return entries[:index] + entries[index + 1 :]
    entries[index] = _with(entries[index], way, new, is_there=is_there, done=done + 1)
    return entries


def _name(way: _Way) -> str:
    """Return the name of a setting: the path of its queue, and its key there."""
    queue, rest = [], list(way)
    partition = ""
    while len(rest) > 1 and rest[0] in _NAMED_LISTS:
        kind, name = rest[:2]
        rest = rest[2:]
        if kind == "queues":
            queue.append(name)
        else:
            partition = name
    if queue and queue[0] != "root":
        queue.insert(0, "root")
    owner = ".".join(queue) or (f"partition {partition}" if partition else "the configuration")
    return f"{'.'.join(rest)} of {owner}" if rest else owner


def _shown(side: _Side, way: _Way) -> str | None:
    """Return a value as text, `None` if it is missing."""
    return _text(side.values[way]) if way in side.values else None


def _text(value: YamlValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@final
@dataclass(frozen=True, slots=True)
class SmallestSet(Generic[T]):
    """The remaining changes, in their order.

    `runs` is the number of tests of the effect; `is_proved` is whether none of the changes can be left out,
    which is not known if the limit of runs was reached.
    """

    changes: tuple[T, ...]
    runs: int
    is_proved: bool


def smallest_set(
    changes: Sequence[T], has_effect: Callable[[Sequence[T]], bool], *, runs_max: int
) -> SmallestSet[T]:
    """Return a smallest set of changes with the effect.

    Args:
        changes: All changes, which together have the effect; at least one.
        has_effect: Returns whether some of them have the effect, in the order of `changes`.
        runs_max: The largest number of tests.
    """
    left, parts, runs = list(changes), 2, 0
    while len(left) > 1:
        for smaller in _smaller(left, parts):
            if runs == runs_max:
                return SmallestSet(tuple(left), runs, is_proved=False)
            runs += 1
            if has_effect(smaller):
                parts = 2 if len(smaller) * 2 <= len(left) else max(parts - 1, 2)
                left = smaller
                break
        else:
            if parts >= len(left):
                break
            parts = min(2 * parts, len(left))
    return SmallestSet(tuple(left), runs, is_proved=True)


def _smaller(changes: list[T], parts: int) -> Iterator[list[T]]:
    """Walk the parts of some changes, then the rest without each of the parts."""
    parts = min(parts, len(changes))
    bounds = [len(changes) * at // parts for at in range(parts + 1)]
    cuts = [(bounds[at], bounds[at + 1]) for at in range(parts)]
    for begin, end in cuts:
        yield changes[begin:end]
    if parts > 2:
        for begin, end in cuts:
            yield changes[:begin] + changes[end:]


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
