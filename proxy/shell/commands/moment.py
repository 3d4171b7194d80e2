"""The common part of the commands `explain` and `dry-run`: the played input, its moment, and the output."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar, final

import typer

from ....model.errors import LicorneError
from ...base.terminal.bad_input import ends_on
from .input_options import DEFAULT_INPUT_SETTINGS, InputSettings, with_input_settings
from .options import (
    AsJsonOption,
    EngineOption,
    ThreadsOption,
    UsersOption,
    number_option,
    value_option,
    with_settings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ...core.explanation.sentences import Where
    from ...core.explanation.text import TextLine
    from ...core.scheduler.scheduler import Scheduler
    from ...play.simulation.played_input import PlayOptions

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class Moment:
    """The moment that is asked about, and how the answer is printed."""

    options: PlayOptions
    partition: str | None
    rm: str | None
    as_json: bool

    def show(
        self,
        ask: Callable[[Scheduler], T],
        document_of: Callable[[T, Where], Mapping[str, object]],
        lines_of: Callable[[T, Where], Iterable[TextLine]],
    ) -> None:
        """Play the input up to the moment, ask the scheduler, and print its answer."""
        from ...play.simulation.played_input import play_input
        from .printing import moment_document, print_document, print_lines

        with play_input(self.options) as played_input:
            answer = ask(played_input.scheduler)
            if self.as_json:
                print_document({**moment_document(played_input), **document_of(answer, played_input.where)})
            else:
                print_lines(played_input, lines_of(answer, played_input.where))


def moment_command(who: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator: the command has the options of a moment in place of its parameter `moment`.

    Args:
        who: What an error begins with: the name of the command.
    """
    with_moment = with_settings("moment", _moment)
    return lambda command: ends_on(LicorneError, who)(with_moment(command))


@with_input_settings
def _moment(
    *,
    input_path: Annotated[
        Path,
        value_option(
            "--input",
            "FILE",
            "A transcript (.jsonl), which is replayed, or what `simulate` takes, which is simulated.",
            short="-i",
        ),
    ],
    at: Annotated[
        str | None,
        value_option("--at", "DURATION", "Stop at this virtual time, such as 90s; else at the end."),
    ] = None,
    after: Annotated[
        int | None, number_option("--after", "Stop after this line of a transcript.", value="LINE")
    ] = None,
    partition: Annotated[
        str | None, typer.Option("--partition", help="The partition, where several have the application.")
    ] = None,
    rm: Annotated[
        str | None, typer.Option("--rm", help="The resource manager, where several have the application.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="The queues (queues.yaml) instead of those of the input.")
    ] = None,
    users: UsersOption = None,
    input_settings: InputSettings = DEFAULT_INPUT_SETTINGS,
    engine: EngineOption = "direct",
    threads: ThreadsOption = None,
    as_json: AsJsonOption = False,
) -> Moment:
    """Return the moment that the options say.

    Raises:
        LicorneError: The engine is unknown, or the time cannot be read.
    """
    from ...core.scheduler.engine_names import engine_named
    from ...play.simulation.played_input import PlayOptions, moment_ns

    options = PlayOptions(
        input=input_settings.of(input_path),
        config_path=config,
        users_path=users,
        engine=engine_named(engine),
        threads=threads,
        at_ns=None if at is None else moment_ns(at),
        after_line=after,
    )
    return Moment(options, partition, rm, as_json)
