"""`licorne explain`: why an application waits, at a moment of a replay or of a simulation."""

from __future__ import annotations

from typing import Annotated

import typer

from ...model.errors import LicorneError
from ..terminal.bad_input import ends_on
from .options import (
    AfterOption,
    AsJsonOption,
    AtOption,
    ConfigOption,
    EngineOption,
    InputOption,
    NodesOption,
    OwnTimesOption,
    PartitionOption,
    RmOption,
    SeedOption,
    ThreadsOption,
    UsersOption,
)

__all__ = ["explain"]


def explain(
    application: Annotated[str, typer.Argument(metavar="APPLICATION", help="The id of an application.")],
    *,
    input_path: InputOption,
    ask: Annotated[str | None, typer.Option("--ask", metavar="KEY", help="Explain this ask alone.")] = None,
    at: AtOption = None,
    after: AfterOption = None,
    partition: PartitionOption = None,
    rm: RmOption = None,
    nodes: NodesOption = None,
    config: ConfigOption = None,
    users: UsersOption = None,
    engine: EngineOption = "direct",
    threads: ThreadsOption = None,
    own_times: OwnTimesOption = False,
    seed: SeedOption = 1,
    as_json: AsJsonOption = False,
) -> None:
    """Say why an application waits: everything that stands in its way, and what would have to change."""
    from ..explanation.documents import document_of
    from ..explanation.stage import stage_for, stage_options
    from ..explanation.text import lines_of
    from .printing import moment_document, print_document, print_lines

    with ends_on(LicorneError, "licorne explain"):
        options = stage_options(
            input_path,
            at=at,
            after=after,
            nodes=nodes,
            config=config,
            users=users,
            engine=engine,
            threads=threads,
            own_times=own_times,
            seed=seed,
        )
        with stage_for(options) as stage:
            scheduler = stage.scheduler
            if ask is None:
                explanation = scheduler.explain(application, rm_id=rm, partition=partition)
            else:
                explanation = scheduler.explain_ask(application, ask, rm_id=rm, partition=partition)
            if as_json:
                print_document(moment_document(stage) | document_of(explanation, stage.where))
            else:
                print_lines(stage, lines_of(explanation, stage.where))
