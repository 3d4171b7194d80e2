"""The options of an input from commands and programs: plain values that are checked here."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Final, cast

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from .....model.configuration.durations import DurationError, parse_duration_ns
from .....model.configuration.names import did_you_mean
from .....model.errors import RequestError
from ....base.files.input_files import yaml_of
from .inputs import InputOptions
from .scenario_documents import UNKNOWN_KEY, text_of
from .swf import JobOptions
from .workload import WorkloadCut

_FACTOR: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_SCENARIO: Final = Path("scenario")
"""The name, in messages, of a scenario that is not in a file."""
_AtLeastOne = Annotated[int, Field(ge=1)]


@with_config(ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True))
class ReadingOptions(TypedDict, total=False):
    """The options of an input, each under its name in `licorne simulate`.

    `begin` and `end` are its `--from` and `--to`: a text such as `1h30m`, or a number of seconds.
    """

    nodes: str | Path | None
    csv_mapping: str | Path | None
    own_times: bool
    seed: int
    gang: bool
    task_processors: _AtLeastOne | None
    estimate_factor: _AtLeastOne | None
    begin: str | float | None
    end: str | float | None
    first: _AtLeastOne | None
    scale_rate: str | float
    scale_size: str | float
    scale_nodes: str | float


_READER: Final = TypeAdapter(ReadingOptions)


def input_options(
    given: str | os.PathLike[str] | Mapping[str, object],
    reading: Mapping[str, object],
    names: Mapping[str, str] | None = None,
) -> InputOptions:
    """Return an input with its reading options.

    Args:
        given: The path of a file, or a scenario as a mapping, as read from its text.
        reading: The options, `ReadingOptions`.
        names: The names of options in messages, where they differ.

    Raises:
        RequestError: An option is unknown or has an invalid value, or the input has another type.
    """
    if not isinstance(given, str | os.PathLike | Mapping):
        raise RequestError(
            f"an input: expected a path or a scenario as a mapping, got {type(given).__name__} {given!r:.100}"
        )
    options = _Options(_checked(reading), names or {})
    cut = WorkloadCut(
        from_ns=options.time_ns("begin"),
        to_ns=options.time_ns("end"),
        first=options.values.get("first"),
        rate=options.factor("scale_rate"),
        size=options.factor("scale_size"),
        nodes=options.factor("scale_nodes"),
    )
    if cut.to_ns is not None and cut.to_ns <= (cut.from_ns or 0):
        begin = options.values.get("begin", "0s")
        end = f"{options.name('end')} {options.values['end']}"
        raise RequestError(f"{end} is not after {options.name('begin')} {begin}")
    values = options.values
    is_scenario = isinstance(given, Mapping)
    return InputOptions(
        path=_SCENARIO if is_scenario else Path(cast("str", given)),
        nodes_path=options.path("nodes"),
        own_times=values.get("own_times", False),
        seed=values.get("seed", 1),
        jobs=JobOptions(
            whole=values.get("gang", False),
            task_processors=values.get("task_processors"),
            estimate_factor=values.get("estimate_factor"),
        ),
        csv_mapping_path=options.path("csv_mapping"),
        cut=cut,
        scenario=yaml_of(given, "scenario") if isinstance(given, Mapping) else None,
    )


def _checked(reading: Mapping[str, object]) -> ReadingOptions:
    """Return options of which each is known, and has a value of its type."""
    try:
        return _READER.validate_python(dict(reading))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    name = str(first["loc"][0])
    if first["type"] == UNKNOWN_KEY:
        raise RequestError(
            f"unknown option {name!r}{did_you_mean(name, tuple(ReadingOptions.__annotations__))}"
        )
    raise RequestError(f"{name}: {text_of(first)}")


class _Options:
    """Options with their names in messages."""

    def __init__(self, values: ReadingOptions, names: Mapping[str, str]) -> None:
        self.values = values
        self._names = names

    def name(self, option: str) -> str:
        """Return the name of an option in messages."""
        return self._names.get(option, option)

    def path(self, option: str) -> Path | None:
        """Return the path of an option, `None` without one."""
        path = cast("str | Path | None", self.values.get(option))
        return None if path is None else Path(path)

    def time_ns(self, option: str) -> int | None:
        """Return a time from the start of the input."""
        value = cast("str | float | None", self.values.get(option))
        if value is None:
            return None
        try:
            time_ns = parse_duration_ns(value if isinstance(value, str) else f"{value:f}s")
        except DurationError as error:
            raise RequestError(f"{self.name(option)}: {error}") from error
        if time_ns < 0:
            raise RequestError(f"{self.name(option)} {value}: a time before the start")
        return time_ns

    def factor(self, option: str) -> Fraction:
        """Return a factor, by default one."""
        value = self.values.get(option, 1)
        factor = Fraction(str(value)) if _FACTOR.fullmatch(str(value)) is not None else Fraction(0)
        if factor <= 0:
            name = self.name(option)
            raise RequestError(f"{name}: expected a number above 0 such as 1.5, not {value!r}")
        return factor
