"""Options and output that several commands share. Importing this module loads nothing of the scheduler.

Output is answers to people and programs, and reports and the log on standard error. A line of JSON is an
object with `time` (RFC 3339, UTC), `level` and `message`, then where it belongs as far as that is known:
`rmID`, `partition`, `queue`, `application`, `allocationKey`, `node`. `logger` is the name that levels are set
for; `error` is the traceback of an error.
"""

from __future__ import annotations

import inspect
import json
import logging
import re
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, TypeVar, cast, final, get_args

import typer
from typer.core import TyperGroup

from ....model.errors import LicorneError
from ...base.terminal.standard_output import write_error, write_line
from ...core.scheduler.engine_names import ENGINES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from loguru import Message, Record

    from ....model.policies.policies import PolicyFactory
    from ...core.explanation.text import TextLine
    from ...play.simulation.played_input import PlayedInput
    from ...play.simulation.workloads.inputs import InputOptions

T = TypeVar("T")
_WHOLE_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")
_OPTIONS: Final = {
    "begin": "--from",
    "end": "--to",
    "scale_rate": "--scale-rate",
    "scale_size": "--scale-size",
    "scale_nodes": "--scale-nodes",
}
"""The name of the settings of an input in messages."""


class CommandGroup(TyperGroup):
    """Lists commands by their `rich_help_panel` in a pipe too, and shows no types of Python."""

    def get_params(self, ctx: Any) -> Any:
        """Return the options of the group; typer's reader of their values would load pydantic."""
        parameters = super().get_params(ctx)
        for parameter in parameters:
            vars(parameter)["get_runtime_param"] = _OptionReader
        return parameters

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; the help shows an argument or a flag by its name alone."""
        command = super().get_command(ctx, cmd_name)
        for parameter in () if command is None else command.params:
            if parameter.param_type_name == "argument" or getattr(parameter, "is_flag", False):
                vars(parameter)["display_type_rich"] = lambda **_: None
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - click passes it
        """Write each group with the first paragraph of the help of its commands."""
        rows: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            text = (command.help or "").partition("\n\n")[0].replace("\n", " ")
            title = getattr(command, "rich_help_panel", None) or "Commands"
            rows.setdefault(title, []).append((name, text))
        for title, group in rows.items():
            with formatter.section(title):
                formatter.write_dl(group)


@final
class _OptionReader:
    """Reads the value of an option as typer does, but without pydantic if there is nothing to convert."""

    def coerce(self, value: object, *, param: Any, ctx: Any) -> object:
        if value is None:
            return () if param.multiple else None
        described = param.type_descriptor
        if type(value) is described.annotation and described.parameter_info.parser is None:
            return value
        return type(param).get_runtime_param(param).coerce(value, param=param, ctx=ctx)


def whole_number(option: str, at_least: int | None = None) -> Callable[[str | int], int]:
    """Return the reader of an option's value: the errors of typer's own reader are meant for programmers."""

    def read(value: str | int) -> int:
        text = str(value)
        number = int(text) if _WHOLE_NUMBER.fullmatch(text) else None
        if number is None or (at_least is not None and number < at_least):
            least = "" if at_least is None else f" from {at_least:,} on"
            raise typer.BadParameter(
                f"expected a whole number{least}, not {text!r}", param_hint=f"'{option}'"
            )
        return number

    return read


def value_option(name: str, value: str, text: str, *, other: str | None = None, **settings: Any) -> Any:
    """Return an option that has a value, as typer takes it.

    Args:
        name: The option.
        value: The name of its value in the help.
        text: Its description in the help.
        other: Its other name.
        settings: Further settings for typer.
    """
    names = (name,) if other is None else (name, other)
    return typer.Option(*names, metavar=value, help=text, **settings)


def number_option(name: str, text: str, *, at_least: int | None = None, value: str = "NUMBER") -> Any:
    """Return an option that is a whole number, from the least one on that it may be; see `value_option`."""
    return value_option(name, value, text, parser=whole_number(name, at_least))


def with_settings(
    parameter: str, settings: Callable[..., object]
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Return a decorator: the command has the options of the settings in place of one of its parameters.

    Args:
        parameter: The name of that parameter.
        settings: Makes the settings: each of its own parameters is an option.
    """

    def decorated(command: Callable[..., T]) -> Callable[..., T]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())
        common = list(inspect.signature(settings, eval_str=True).parameters.values())
        place = [each.name for each in own].index(parameter)

        def run(**values: Any) -> T:  # Typer has read them by the signature.
            made = settings(**{each.name: values.pop(each.name) for each in common})
            return command(**values, **{parameter: made})

        run.__doc__ = command.__doc__
        run.__signature__ = inspect.Signature([*own[:place], *common, *own[place + 1 :]])  # type: ignore[attr-defined] # typer reads it
        return run

    return decorated


def seconds_of(option: str, text: str) -> float:
    """Return the seconds of an option's duration.

    Raises:
        BadParameter: The text is not a duration.
    """
    from ....model.configuration.durations import DurationError, parse_duration_ns

    try:
        return parse_duration_ns(text) / 1e9
    except DurationError as error:
        raise typer.BadParameter(str(error), param_hint=f"'{option}'") from error


UsersOption: TypeAlias = Annotated[
    Path | None,
    value_option(
        "--users", "FILE", "Users with lists of groups (.yaml), asked instead of who is configured."
    ),
]
EngineOption: TypeAlias = Annotated[
    str, value_option("--engine", "ENGINE", f"The engine: {' or '.join(ENGINES)}.")
]
ThreadsOption: TypeAlias = Annotated[
    int | None,
    number_option(
        "--threads",
        "How many threads the engine `threads` has; the cycles of as many partitions run at once.",
    ),
]
PolicyOption: TypeAlias = Annotated[
    list[str] | None,
    value_option(
        "--policy", "NAME=MODULE:CLASS", "A policy that the queues name as policy/NAME; may be repeated."
    ),
]
AsJsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
RestAddressOption: TypeAlias = Annotated[
    str, value_option("--rest-address", "HOST:PORT", "Where the REST interface listens.")
]
NoRestOption: TypeAlias = Annotated[bool, typer.Option("--no-rest", help="Serve no REST interface.")]
TokenOption: TypeAlias = Annotated[
    str | None,
    value_option(
        "--token",
        "TOKEN",
        "The bearer token; other users of this machine can read options, but not the environment.",
        envvar="LICORNE_TOKEN",
        show_envvar=True,
    ),
]
RestTokenOption: TypeAlias = Annotated[
    Path | None, value_option("--rest-token", "FILE", "The bearer token that readers over REST send.")
]
RestHostOption: TypeAlias = Annotated[
    list[str] | None,
    value_option(
        "--rest-host",
        "NAME",
        "A name by which readers without a token may ask; may be repeated.",
    ),
]
InsecurePublicOption: TypeAlias = Annotated[
    bool, typer.Option("--insecure-public", help="Listen without TLS on an address that others can reach.")
]
LogFormatOption: TypeAlias = Annotated[
    str, value_option("--log-format", "FORMAT", "The format of standard error: text, or json with the log.")
]
AddressAsJsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the address as JSON.")]
ServedConfigOption: TypeAlias = Annotated[
    Path | None, value_option("--config", "FILE", "The queues of resource managers that send none.")
]
UsageFileOption: TypeAlias = Annotated[
    Path | None,
    value_option(
        "--usage-file",
        "FILE",
        "Keep there what queues with a half-life have used, every 5 minutes and at the end.",
    ),
]

HistoryOption: TypeAlias = Annotated[
    Path | None,
    value_option("--history", "FILE", "Keep there what was used and what has happened, for `licorne usage`."),
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOptions:
    """The policies that queues may name: each field is an option."""

    policy: PolicyOption = None
    policy_package: Annotated[
        str,
        value_option("--policy-package", "PACKAGE", "An installed package, all of whose policies are given."),
    ] = ""

    def given(self) -> Mapping[str, PolicyFactory]:
        """Return the policies by name.

        Raises:
            LicorneError: One cannot be given.
        """
        from ...base.files.plugins import given_policies

        return given_policies(self.policy or (), self.policy_package)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InputSettings:
    """The options of an input: each field is one."""

    nodes: Annotated[
        Path | None,
        value_option("--nodes", "FILE", "The nodes of openb pods (.csv), or the machines of a log."),
    ] = None
    csv_mapping: Annotated[
        Path | None,
        value_option("--csv-mapping", "FILE", "A description of the columns of a CSV file of jobs (.yaml)."),
    ] = None
    own_times: Annotated[
        bool,
        typer.Option("--own-times", help="Replay openb pods by their own times, instead of packing them."),
    ] = False
    seed: Annotated[int, number_option("--seed", "The seed of the random durations of a scenario.")] = 1
    gang: Annotated[
        bool, typer.Option("--gang", help="Start each job of a log as a whole, instead of task by task.")
    ] = False
    task_processors: Annotated[
        int | None,
        number_option(
            "--task-processors",
            "The most processors of a task of a log; by default those of its request or of a node.",
            at_least=1,
        ),
    ] = None
    estimate_factor: Annotated[
        int | None,
        number_option(
            "--estimate-factor",
            "The walltime of jobs of a log without a requested time, in run times; by default none.",
            at_least=1,
        ),
    ] = None
    begin: Annotated[
        str | None, value_option("--from", "DURATION", "Leave out jobs that are submitted before this time.")
    ] = None
    end: Annotated[
        str | None, value_option("--to", "DURATION", "Leave out jobs that are submitted from this time on.")
    ] = None
    first: Annotated[
        int | None,
        number_option("--first", "Use only this many jobs, in the order of submission.", at_least=1),
    ] = None
    scale_rate: Annotated[
        str | None, value_option("--scale-rate", "FACTOR", "Submit jobs this many times as fast.")
    ] = None
    scale_size: Annotated[
        str | None, value_option("--scale-size", "FACTOR", "Multiply the requests of tasks by this.")
    ] = None
    scale_nodes: Annotated[
        str | None, value_option("--scale-nodes", "FACTOR", "Multiply the number of nodes by this.")
    ] = None

    def of(self, path: Path) -> InputOptions:
        """Return how an input is read.

        Raises:
            LicorneError: A time is not a duration, or a factor is not a number above zero.
        """
        from ...play.simulation.workloads.reading import input_options

        values = {each.name: getattr(self, each.name) for each in fields(self)}
        given = {name: value for name, value in values.items() if value is not None}
        return input_options(path, given, _OPTIONS)


DEFAULT_INPUT_SETTINGS: Final = InputSettings()
"""Print nothing."""
with_input_settings: Final = with_settings("input_settings", InputSettings)
"""Gives a command the options of `InputSettings` in place of its parameter `input_settings`."""


LogFormat: TypeAlias = Literal["text", "json"]
_LIVES: Final = frozenset({"core.rmproxy", "kubernetes"})
"""The loggers for the lives of resource managers."""
_FIELDS: Final = {
    "logger": "logger",
    "rm_id": "rmID",
    "partition": "partition",
    "queue": "queue",
    "namespace": "namespace",
    "pod": "pod",
    "reason": "reason",
    "application": "application",
    "allocation_key": "allocationKey",
    "node": "node",
}
"""The keys of `extra` in records, and the field that each is written to."""


def print_lines(played_input: PlayedInput, lines: Iterable[TextLine]) -> None:
    """Print the moment, and below it the lines about it."""
    from rich.text import Text

    from ....model.configuration.durations import short_duration_text
    from ...base.terminal.standard_output import output_console

    console = output_console()
    played = f", after line {played_input.line}" if played_input.line is not None else ""
    console.print(
        Text(f"at {short_duration_text(played_input.elapsed_ns)}{played}", style="dim"), soft_wrap=True
    )
    print_text_lines(lines)


def print_text_lines(lines: Iterable[TextLine]) -> None:
    """Print lines with their indentation."""
    from rich.text import Text

    from ...base.terminal.standard_output import output_console

    console = output_console()
    for line in lines:
        console.print(Text("  " * line.depth + line.text, style=line.style), soft_wrap=True)


def print_document(document: Mapping[str, object]) -> None:
    """Print one JSON document."""
    write_line(json.dumps(document, indent=2, ensure_ascii=False))


def moment_document(played_input: PlayedInput) -> dict[str, object]:
    """Return the moment as a document."""
    return {"elapsed": played_input.elapsed_ns, "line": played_input.line}


def log_format_named(name: str) -> LogFormat:
    """Return the format of that name.

    Raises:
        LicorneError: The file does not exist.
    """
    if name not in get_args(LogFormat):
        raise LicorneError(f"--log-format is one of {', '.join(get_args(LogFormat))}, not {name!r}")
    return cast("LogFormat", name)


@contextmanager
def log_written(log_format: LogFormat, who: str) -> Iterator[None]:
    """Write the log of this process to standard error while the body runs.

    As JSON lines it is all of it, with what goes through Python's `logging`; as text it is what an operator
    has to know: warnings, errors, and the lives of resource managers.

    Args:
        log_format: The format.
        who: The name of the command, with which a line of text begins.
    """
    from loguru import logger

    logger.remove()
    if log_format == "text":
        handler = logger.add(
            partial(_write_text, who), level="INFO", format="{message}", filter=_is_for_operators, catch=True
        )
    else:
        handler = logger.add(write_record, level="DEBUG", format="{message}", catch=True)
        logging.basicConfig(handlers=[JsonHandler()], level=logging.WARNING, force=True)
    logger.enable("licorne")
    try:
        yield
    finally:
        logger.disable("licorne")
        logger.remove(handler)


def reporter(log_format: LogFormat, who: str) -> Callable[[str], None]:
    """Return the function with which a command reports while it runs."""

    def report(text: str) -> None:
        if log_format == "text":
            write_error(f"{who}: {text}")
        else:
            _write_line(datetime.now(UTC), "info", text, {}, "")

    return report


def write_record(message: Message) -> None:
    """Write a record of loguru."""
    record = message.record
    error = ""
    if record["exception"] is not None:
        # loguru has formatted the message, then the traceback.
        error = str(message).removeprefix(record["message"]).strip()
    _write_line(record["time"], record["level"].name.lower(), record["message"], record["extra"], error)


def _is_for_operators(record: Record) -> bool:
    return record["level"].no >= logging.WARNING or record["extra"].get("logger") in _LIVES


def _write_text(who: str, message: Message) -> None:
    record = message.record
    write_error(f"{who}: {record['level'].name.lower()}: {str(message).rstrip()}")


@final
class JsonHandler(logging.Handler):
    """Writes what goes through Python's `logging`."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        error = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
        at = datetime.fromtimestamp(record.created, UTC)
        _write_line(at, record.levelname.lower(), record.getMessage(), vars(record), error)


def _write_line(at: datetime, level: str, text: str, extra: Mapping[str, object], error: str) -> None:
    """Write one object to standard error, if that is still there."""
    document = {
        "time": at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "level": level,
        "message": text,
    }
    known = {field: str(extra[name]) for name, field in _FIELDS.items() if extra.get(name)}
    partition = known.get("partition", "")
    if partition.startswith("["):
        # Inside, the name of a partition begins with its RM: `[rm]default`.
        rm_id, _, known["partition"] = partition[1:].partition("]")
        known.setdefault("rmID", rm_id)
    document |= known
    if error:
        document["error"] = error
    write_error(json.dumps(document))
