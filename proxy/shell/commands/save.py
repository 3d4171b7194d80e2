"""`licorne save`: what a running server has, as a transcript from which other commands go on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ....model.errors import LicorneError, RequestError
from ...base.terminal.bad_input import ends_on
from ...base.terminal.standard_output import write_line
from .options import TokenOption, seconds_of, value_option

_NO_QUESTION = "a question without a body"
"""What a server answers to a question that it does not know."""


def _seconds(text: str) -> float:
    """Return the seconds of a duration.

    Raises:
        BadParameter: It is not one, or not above zero.
    """
    seconds = seconds_of("--timeout", text)
    if seconds <= 0:
        raise typer.BadParameter(f"{text!r} is no time to wait", param_hint="'--timeout'")
    return seconds


def save(
    address: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="Where the server listens for resource managers.")
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The transcript (.jsonl) that is written.")],
    *,
    rm: Annotated[str | None, value_option("--rm", "ID", "Only what this resource manager has.")] = None,
    token: TokenOption = None,
    ca: Annotated[
        Path | None, value_option("--ca", "FILE", "Who vouches for the server (PEM), with TLS.")
    ] = None,
    timeout: Annotated[
        float,
        value_option(
            "--timeout", "DURATION", "How long to wait for the server, and for its answer.", parser=_seconds
        ),
    ] = "30s",  # type: ignore[assignment]  # typer gives it to the parser
) -> None:
    """Save what a server has at this moment: `explain`, `dry-run` and `simulate` go on from the file."""
    with ends_on(LicorneError, "licorne save"):
        from .serve import check_installed

        check_installed("server")
        from ...base.files.output_files import check_writable, write_whole
        from ...play.transcripts.saved_moment import saved_lines
        from ...wire.client.remote_scheduler import RemoteScheduler

        check_writable(file)
        with RemoteScheduler(address, token=token, root_certificates=ca, timeout=timeout) as scheduler:
            try:
                saved = scheduler.saved(rm_id=rm)
            except RequestError as error:
                if str(error) == _NO_QUESTION:
                    raise LicorneError(
                        f"the server at {address} cannot be saved: it is of an older version"
                    ) from error
                raise
        if not saved["managers"]:
            raise LicorneError(f"the server at {address} has nothing to save: no resource manager is there")
        write_whole(file, "".join(f"{line}\n" for line in saved_lines(saved)))
        write_line(str(file))
