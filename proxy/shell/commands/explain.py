"""`licorne explain` and `licorne dry-run`: questions about a moment of a replay or of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar, final

import typer

from ....model.errors import LicorneError
from ...base.terminal.standard_output import ends_on
from .options import (
    DEFAULT_INPUT_SETTINGS,
    AsJsonOption,
    EngineOption,
    InputSettings,
    PolicyOptions,
    ThreadsOption,
    UsersOption,
    number_option,
    value_option,
    with_input_settings,
    with_settings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ....model.explanation import Explanation
    from ...core.explanation.text import TextLine, Where
    from ...play.simulation.forecasts import StartForecast
    from ...play.simulation.played_input import PlayedInput, PlayOptions

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class Moment:
    """The moment that is asked about, and how the answer is printed."""

    options: PlayOptions
    partition: str | None
    rm: str | None
    as_json: bool

    def with_forecasts(self, are_requested: bool) -> Moment:  # noqa: FBT001 - the value of an option
        """Return the moment with forecasts of the starts of jobs, if they are requested."""
        return replace(self, options=replace(self.options, with_forecasts=are_requested))

    def show(
        self,
        ask: Callable[[PlayedInput], T],
        document_of: Callable[[T, Where], Mapping[str, object]],
        lines_of: Callable[[T, Where], Iterable[TextLine]],
    ) -> None:
        """Play the input up to the moment, ask the scheduler, and print its answer."""
        from ...play.simulation.played_input import play_input
        from .options import moment_document, print_document, print_lines

        with play_input(self.options) as played_input:
            answer = ask(played_input)
            if self.as_json:
                print_document({**moment_document(played_input), **document_of(answer, played_input.where)})
            else:
                print_lines(played_input, lines_of(answer, played_input.where))


def moment_command(who: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator: the command has the options of a moment in place of its parameter `moment`.

    Args:
        who: The name of the command, with which an error begins.
    """
    with_moment = with_settings("moment", _moment)
    return lambda command: ends_on(LicorneError, who)(with_moment(command))


@with_settings("policies", PolicyOptions)
@with_input_settings
def _moment(
    *,
    input_path: Annotated[
        Path,
        value_option(
            "--input",
            "FILE",
            "A transcript (.jsonl), which is replayed, or what `simulate` takes, which is simulated.",
            other="-i",
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
        str | None,
        value_option("--partition", "NAME", "The partition, where several have the application."),
    ] = None,
    rm: Annotated[
        str | None, value_option("--rm", "ID", "The resource manager, where several have the application.")
    ] = None,
    config: Annotated[
        Path | None,
        value_option("--config", "FILE", "The queues (queues.yaml) instead of those of the input."),
    ] = None,
    users: UsersOption = None,
    input_settings: InputSettings = DEFAULT_INPUT_SETTINGS,
    engine: EngineOption = "direct",
    threads: ThreadsOption = None,
    policies: PolicyOptions,
    as_json: AsJsonOption = False,
) -> Moment:
    """Return the moment that the options name.

    Raises:
        LicorneError: The engine is unknown, the time cannot be read, or a policy cannot be given.
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
        policies=policies.given(),
    )
    return Moment(options, partition, rm, as_json)


@moment_command("licorne explain")
def explain(
    application: Annotated[str, typer.Argument(metavar="APPLICATION", help="The id of an application.")],
    *,
    ask: Annotated[str | None, value_option("--ask", "KEY", "Explain this ask alone.")] = None,
    forecast: Annotated[
        bool, typer.Option("--forecast", help="Forecast when a job of a simulation starts.")
    ] = False,
    moment: Moment,
) -> None:
    """Say why an application waits: everything that blocks it, and what would have to change."""
    from ...core.explanation.documents import document_of
    from ...core.explanation.text import TextLine, lines_of

    def answered(played_input: PlayedInput) -> tuple[Explanation, StartForecast | None]:
        scheduler, where = played_input.scheduler, {"rm_id": moment.rm, "partition": moment.partition}
        found = (
            scheduler.explain(application, **where)
            if ask is None
            else scheduler.explain_ask(application, ask, **where)
        )
        return found, played_input.forecast(application)

    def lines(answer: tuple[Explanation, StartForecast | None], where: Where) -> Iterable[TextLine]:
        yield from lines_of(answer[0], where)
        if answer[1] is not None:
            yield TextLine(answer[1].sentence())

    def document(answer: tuple[Explanation, StartForecast | None], where: Where) -> Mapping[str, object]:
        found = document_of(answer[0], where)
        return found if answer[1] is None else {**found, "forecast": answer[1].document()}

    moment.with_forecasts(forecast).show(answered, document, lines)


@moment_command("licorne dry-run")
def dry_run(
    *,
    of: Annotated[
        str | None, value_option("--of", "APPLICATION", "An ask of this application, no new one.")
    ] = None,
    user: Annotated[str | None, value_option("--user", "NAME", "The user of a new application.")] = None,
    group: Annotated[
        list[str] | None, value_option("--group", "NAME", "A group of that user; may be repeated.")
    ] = None,
    queue: Annotated[str, value_option("--queue", "PATH", "The queue that a new application names.")] = "",
    tag: Annotated[
        list[str] | None, value_option("--tag", "NAME=VALUE", "A tag of a new application.")
    ] = None,
    resource: Annotated[
        list[str] | None,
        value_option(
            "--resource", "TYPE=QUANTITY", "A resource that the ask requests, such as vcore=500m.", other="-r"
        ),
    ] = None,
    priority: Annotated[int, number_option("--priority", "The priority of the ask.")] = 0,
    required_node: Annotated[str, value_option("--required-node", "ID", "The one node for the ask.")] = "",
    moment: Moment,
) -> None:
    """Say where a new application or ask would go: the queue by every rule tried, then the node."""
    from ...core.explanation.documents import dry_run_document, dry_run_lines, new_application, new_ask

    _check(of, user=user, details=[queue, *(group or []), *(tag or [])], resource=resource)
    partition = moment.partition or ""
    application = None
    if of is None:
        application = new_application(user or "", group or [], queue, tag or [], partition)
    new = new_ask(of, resource, priority, required_node, partition) if resource else None
    moment.show(
        lambda played_input: played_input.scheduler.dry_run(
            application=application, ask=new, rm_id=moment.rm
        ),
        dry_run_document,
        dry_run_lines,
    )


def _check(of: str | None, *, user: str | None, details: list[str], resource: list[str] | None) -> None:
    """Refuse options that do not belong together; `details` are those of a new application."""
    if of is None and user is None:
        raise LicorneError("name the user of a new application (--user), or an application (--of)")
    if of is not None and (user is not None or any(details)):
        raise LicorneError(f"application {of} has its user, queue and tags: leave --user and the like out")
    if of is not None and not resource:
        raise LicorneError(
            f"expected the resources of an ask of application {of}, such as --resource vcore=1, got none"
        )
