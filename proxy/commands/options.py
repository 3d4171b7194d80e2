"""The options that several commands have. To load them loads nothing of the scheduler."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from ..scheduler.engine_names import ENGINES

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "AccessOption",
    "AddressAsJsonOption",
    "AddressOption",
    "AsJsonOption",
    "ClientCaOption",
    "EngineOption",
    "ForgetAfterOption",
    "InsecurePublicOption",
    "LogFormatOption",
    "NoRestOption",
    "RestAddressOption",
    "RestTokenOption",
    "ServedConfigOption",
    "StopAfterOption",
    "ThreadsOption",
    "TlsCertOption",
    "TlsKeyOption",
    "TokenOption",
    "UiDirOption",
    "UsageFileOption",
    "UsersOption",
    "seconds_of",
    "whole_number",
]

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


def seconds_of(option: str, text: str) -> float:
    """Return the seconds of an option's duration.

    Raises:
        BadParameter: It is no duration.
    """
    from ...model.configuration.durations import DurationError, parse_duration_ns

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
    typer.Option(
        "--threads",
        metavar="NUMBER",
        parser=whole_number("--threads"),
        help="How many threads the engine `threads` has; the cycles of as many partitions run at once.",
    ),
]
AsJsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
RestAddressOption: TypeAlias = Annotated[
    str, typer.Option("--rest-address", metavar="HOST:PORT", help="Where the REST interface listens.")
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
    Path | None,
    typer.Option("--rest-token", metavar="FILE", help="The bearer token that readers over REST send."),
]
InsecurePublicOption: TypeAlias = Annotated[
    bool, typer.Option("--insecure-public", help="Listen without TLS on an address that others can reach.")
]
LogFormatOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--log-format", metavar="FORMAT", help="What standard error gets: text, or json with the log."
    ),
]
AddressAsJsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the address as JSON.")]
ServedConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="The queues of resource managers that send none."),
]
AddressOption: TypeAlias = Annotated[
    str, typer.Option("--address", metavar="HOST:PORT", help="Where to listen; port 0: one that is free.")
]
UiDirOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--ui-dir", metavar="DIR", help="A build of yunikorn-web, in place of the page."),
]
TlsCertOption: TypeAlias = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="FILE", help="The certificate of the server (PEM).")
]
TlsKeyOption: TypeAlias = Annotated[
    Path | None, typer.Option("--tls-key", metavar="FILE", help="The key of that certificate (PEM).")
]
ClientCaOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--client-ca", metavar="FILE", help="Who vouches for clients (PEM); each needs a certificate."
    ),
]
AccessOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--access", metavar="FILE", help="Tokens and certificates that are let in (.yaml)."),
]
StopAfterOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--stop-after", metavar="DURATION", help="How long a resource manager may be away, such as 5m."
    ),
]
ForgetAfterOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--forget-after",
        metavar="DURATION",
        help="How much later a stopped resource manager is forgotten; never unless given.",
    ),
]
UsageFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--usage-file",
        metavar="FILE",
        help="Keep there what queues with a half-life have used, every 5 minutes and at the end.",
    ),
]
