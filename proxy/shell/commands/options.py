"""The options that several commands have. To load them loads nothing of the scheduler."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, TypeVar

import typer

from ...core.scheduler.engine_names import ENGINES

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_WHOLE_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")


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


def value_option(name: str, value: str, text: str, *, short: str | None = None, **settings: Any) -> Any:
    """Return an option that has a value, as typer takes it.

    Args:
        name: What it is called.
        value: What its value is called in the help.
        text: What the help says of it.
        short: Its other name, of one letter.
        settings: What else typer has to know.
    """
    names = (name,) if short is None else (name, short)
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

        def run(**values: Any) -> T:  # Typer has read them as the signature says.
            made = settings(**{each.name: values.pop(each.name) for each in common})
            return command(**values, **{parameter: made})

        run.__doc__ = command.__doc__
        run.__signature__ = inspect.Signature([*own[:place], *common, *own[place + 1 :]])  # type: ignore[attr-defined] # typer reads it
        return run

    return decorated


def seconds_of(option: str, text: str) -> float:
    """Return the seconds of an option's duration.

    Raises:
        BadParameter: It is no duration.
    """
    from ....model.configuration.durations import DurationError, parse_duration_ns

    try:
        return parse_duration_ns(text) / 1e9
    except DurationError as error:
        raise typer.BadParameter(str(error), param_hint=f"'{option}'") from error


UsersOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--users", help="Users with lists of groups (.yaml), asked instead of who is configured."),
]
EngineOption: TypeAlias = Annotated[
    str, typer.Option("--engine", help=f"What it runs on: {' or '.join(ENGINES)}.")
]
ThreadsOption: TypeAlias = Annotated[
    int | None,
    number_option(
        "--threads",
        "How many threads the engine `threads` has; the cycles of as many partitions run at once.",
    ),
]
AsJsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
RestAddressOption: TypeAlias = Annotated[
    str, value_option("--rest-address", "HOST:PORT", "Where the REST interface listens.")
]
NoRestOption: TypeAlias = Annotated[bool, typer.Option("--no-rest", help="Serve no REST interface.")]
TokenOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar="LICORNE_TOKEN",
        show_envvar=True,
        help="The bearer token; other users of this machine can read options, but not the environment.",
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
    str, value_option("--log-format", "FORMAT", "What standard error gets: text, or json with the log.")
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
