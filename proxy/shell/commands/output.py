"""Output of commands: answers to people and programs, and reports and the log on standard error.

A line of JSON is an object with `time` (RFC 3339, UTC), `level` and `message`, then what is known of where
it belongs: `rmID`, `partition`, `queue`, `application`, `allocationKey`, `node`. `logger` is the name that
levels are set for; `error` is the traceback of an error.
"""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast, final, get_args

from ....model.errors import LicorneError
from ...base.terminal.standard_output import write_error, write_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from loguru import Message, Record

    from ...core.explanation.text import TextLine
    from ...play.simulation.played_input import PlayedInput

LogFormat: TypeAlias = Literal["text", "json"]
_LIVES: Final = frozenset({"core.rmproxy", "kubernetes"})
"""The loggers for the lives of resource managers."""
_FIELDS: Final = {
    "logger": "logger",
    "rm_id": "rmID",
    "partition": "partition",
    "queue": "queue",
    "application": "application",
    "allocation_key": "allocationKey",
    "node": "node",
}
"""What records have in their `extra`, and the field that it is written to."""


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
    """Print lines, as far indented as they say."""
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
        LicorneError: There is none.
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
        who: What a line of text begins with: the name of the command.
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
    """Return the function that reports what a command has to say while it runs."""

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
        # What loguru has formatted is the message, then the traceback.
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
