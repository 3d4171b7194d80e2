"""Commands with transcripts: `licorne replay`, `licorne verify` and `licorne save`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ....model.errors import LicorneError, RequestError
from ...base.terminal.standard_output import BAD_INPUT, ends_on, write_line
from ...core.scheduler.engine_names import EngineName, engine_named
from .options import (
    AsJsonOption,
    EngineOption,
    PolicyOptions,
    ThreadsOption,
    TokenOption,
    UsersOption,
    print_document,
    seconds_of,
    value_option,
    with_settings,
)

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Mapping

    from ....model.policies.policies import PolicyFactory
    from ...core.resolvers.resolver import UserResolver

_REFUTED = 1
_NO_QUESTION = "a question without a body"
"""The answer of a server to a question that it does not know."""


@with_settings("policies", PolicyOptions)
def replay(
    transcript: Annotated[
        Path,
        typer.Argument(
            metavar="TRANSCRIPT",
            help="The transcript (.jsonl), `-` for standard input, or the folder of a recording.",
        ),
    ],
    *,
    engine: EngineOption = "direct",
    threads: ThreadsOption = None,
    users: UsersOption = None,
    record: Annotated[
        Path | None,
        value_option("--record", "DIR", "Record it with its outcomes, in a new folder below: see `verify`."),
    ] = None,
    policies: PolicyOptions,
) -> None:
    """Replay the requests of a resource manager, and write the scheduler's decisions as JSON lines.

    A recording has what its policies answered. With --policy their code is asked as well: the first answer
    that differs ends the replay.
    """
    from ...core.resolvers.resolver import read_users

    with ends_on(LicorneError, "licorne replay"):
        resolver = None if users is None else read_users(users)
        replay_input(
            transcript,
            engine_named(engine),
            write_line,
            resolver,
            threads=threads,
            record=record,
            policies=policies.given(),
        )


def replay_input(
    path: Path,
    engine: EngineName,
    write_line: Callable[[str], None],
    resolver: UserResolver | None,
    *,
    threads: int | None,
    record: Path | None = None,
    policies: Mapping[str, PolicyFactory] | None = None,
) -> None:
    """Replay what a path names, and write the output line by line.

    Args:
        path: A transcript, a folder with a recording, or `-` for standard input.
        engine: The engine.
        write_line: Takes the output.
        resolver: Finds the groups of users, in place of what the transcript configures; `None` for that.
        threads: How many threads the engine `threads` has; `None` for one.
        record: Where a transcript is recorded, with its outcomes; `None` for nowhere.
        policies: Those that decide in a transcript, and that are asked as well in a recording.

    Raises:
        LicorneError: The input cannot be read or replayed.
    """
    from ...base.files.input_files import read_standard_input, read_text
    from ...base.process import prepare_process
    from ...play.transcripts.replay import replay as replay_transcript
    from ...play.transcripts.replay import replay_recording
    from ...play.transcripts.transcript import (
        is_recording,
        read_recording,
        recording_files,
        rows_of_files,
        rows_of_text,
    )

    prepare_process()
    if path.is_dir():
        rows = rows_of_files(recording_files(path))
    else:
        text = read_standard_input() if str(path) == "-" else read_text(path)
        if not is_recording(text):
            source = str(path)
            replay_transcript(
                *(text, source, engine, write_line, resolver),
                threads=threads,
                record=record,
                policies=policies,
            )
            return
        rows = rows_of_text(text, str(path))
    if record is not None:
        raise LicorneError("--record is for a transcript: this is a recording already")
    if threads is not None:
        raise LicorneError(f"threads={threads}: a recording is replayed with the engines direct and actors")
    replay_recording(read_recording(rows, _note), engine, write_line, resolver, policies)


def _note(text: str) -> None:
    """Tell the user of a line that is left out; the output of the replay goes to standard output."""
    typer.echo(f"licorne replay: {text}", err=True)


def verify(
    recordings: Annotated[
        list[Path],
        typer.Argument(metavar="RECORDING", help="Recordings with outcomes: folders, or files (.jsonl)."),
    ],
) -> None:
    """Check each placement, preemption and promise of recorded days, without the scheduler.

    Ends with status 0 if all hold, 1 if one is refuted, and 2 if a recording cannot be read.
    """
    from ...play.transcripts.transcript import recording_files, rows_of_files
    from ...play.verify.queues import UnreadableError
    from ...play.verify.verifier import verify_lines

    statuses = [0]
    for path in recordings:
        with ends_on((LicorneError, UnreadableError), f"licorne verify: {path}", BAD_INPUT):
            files = recording_files(path) if path.is_dir() else [path]
            findings = verify_lines(row.text for row in rows_of_files(files))
        for line, text in findings.refuted:
            write_line(f"{path}: line {line}: {text}")
        write_line(f"{path}: {len(findings.refuted)} refuted; confirmed: {_counts(findings.confirmed)}")
        if findings.unjudged:
            write_line(f"{path}: not judged: {_counts(findings.unjudged)}")
        statuses.append(_REFUTED if findings.refuted else 0)
    raise typer.Exit(max(statuses))


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counter.items()) if count) or "nothing"


def _seconds(text: str) -> float:
    """Return the seconds of a duration.

    Raises:
        BadParameter: It is not one, or not above zero.
    """
    seconds = seconds_of("--timeout", text)
    if seconds <= 0:
        raise typer.BadParameter(
            f"expected a number of seconds above 0, got {text!r}", param_hint="'--timeout'"
        )
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
        Path | None,
        value_option("--ca", "FILE", "Certificates of the authorities for the server (PEM), with TLS."),
    ] = None,
    timeout: Annotated[
        float,
        value_option(
            "--timeout", "DURATION", "How long to wait for the server, and for its answer.", parser=_seconds
        ),
    ] = "30s",  # type: ignore[assignment]  # typer gives it to the parser
    as_json: AsJsonOption = False,
) -> None:
    """Save the state of a server at this moment: `explain`, `dry-run` and `simulate` start from the file."""
    with ends_on(LicorneError, "licorne save"):
        from .serve import check_installed

        check_installed("server")
        from ...base.files.output_files import check_writable, write_whole
        from ...play.transcripts.saved_moment import saved_lines
        from ...wire.client.remote_scheduler import RemoteScheduler

        check_writable(file)
        with RemoteScheduler(address, token=token, root_certificates=ca, timeout=timeout) as scheduler:
            try:
                saved: Mapping[str, Any] = scheduler.saved(rm_id=rm)
            except RequestError as error:
                if str(error) == _NO_QUESTION:
                    raise LicorneError(
                        f"the server at {address} cannot be saved: it is of an older version"
                    ) from error
                raise
        if not saved["managers"]:
            raise LicorneError(
                f"the server at {address} has nothing to save: no resource manager has registered"
            )
        write_whole(file, "".join(f"{line}\n" for line in saved_lines(saved)))
        if as_json:
            print_document({"file": str(file), "managers": [*saved["managers"]]})
        else:
            write_line(str(file))
