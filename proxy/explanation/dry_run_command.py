"""`licorne dry-run`: where a new application or ask would go, at a moment of a replay or of a simulation."""

from __future__ import annotations

from typing import Annotated

import typer

from ...model.allocation import REQUIRED_NODE_TAG
from ...model.errors import LicorneError
from ...model.quantities import QuantityError
from ...model.resource_texts import resource_from_texts
from ..bad_input import ends_on
from ..si import si_pb2 as si
from .dry_run_text import dry_run_document, dry_run_lines
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
    stage_options,
)
from .printing import moment_document, print_document, print_lines
from .stage import stage_for

__all__ = ["dry_run"]

_NAME = "dry-run"
"""What a new application and a new ask are called."""


def dry_run(
    *,
    input_path: InputOption,
    of: Annotated[
        str | None,
        typer.Option("--of", metavar="APPLICATION", help="An ask of this application, no new one."),
    ] = None,
    user: Annotated[str | None, typer.Option("--user", help="The user of a new application.")] = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", help="A group of that user; may be repeated.")
    ] = None,
    queue: Annotated[str, typer.Option("--queue", help="The queue that a new application names.")] = "",
    tag: Annotated[
        list[str] | None, typer.Option("--tag", metavar="NAME=VALUE", help="A tag of a new application.")
    ] = None,
    resource: Annotated[
        list[str] | None,
        typer.Option(
            "--resource", "-r", metavar="TYPE=QUANTITY", help="What an ask wants, such as vcore=500m."
        ),
    ] = None,
    priority: Annotated[int, typer.Option("--priority", help="The priority of the ask.")] = 0,
    required_node: Annotated[str, typer.Option("--required-node", help="The one node for the ask.")] = "",
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
    """Say where a new application or ask would go: the queue by every rule tried, then the node."""
    with ends_on(LicorneError, "licorne dry-run"):
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
        _check(of, user=user, details=[queue, *(group or []), *(tag or [])], resource=resource)
        application = None
        if of is None:
            application = _application(user or "", group or [], queue, tag or [], partition or "")
        ask = None
        if resource:
            ask = _ask(of or _NAME, resource, priority, required_node, partition or "")
        with stage_for(options) as stage:
            run = stage.scheduler.dry_run(application=application, ask=ask, rm_id=rm)
            if as_json:
                print_document(moment_document(stage) | dry_run_document(run, stage.where))
            else:
                print_lines(stage, dry_run_lines(run, stage.where))


def _check(of: str | None, *, user: str | None, details: list[str], resource: list[str] | None) -> None:
    """Refuse options that do not belong together; `details` are those of a new application."""
    if of is None and user is None:
        raise LicorneError("name the user of a new application (--user), or an application (--of)")
    if of is not None and (user is not None or any(details)):
        raise LicorneError(f"application {of} has its user, queue and tags: leave --user and the like out")
    if of is not None and not resource:
        raise LicorneError(f"an ask of application {of} wants something: name it (--resource vcore=1)")


def _application(
    user: str, groups: list[str], queue: str, tags: list[str], partition: str
) -> si.AddApplicationRequest:
    return si.AddApplicationRequest(
        applicationID=_NAME,
        queueName=queue,
        partitionName=partition,
        ugi=si.UserGroupInformation(user=user, groups=groups),
        tags=_pairs("--tag", tags),
    )


def _ask(
    application_id: str, resources: list[str], priority: int, required_node: str, partition: str
) -> si.Allocation:
    try:
        wanted = resource_from_texts(_pairs("--resource", resources))
    except QuantityError as error:
        raise LicorneError(f"--resource: {error}") from error
    quantities = {name: si.Quantity(value=quantity) for name, quantity in wanted.items()}
    return si.Allocation(
        allocationKey=_NAME,
        applicationID=application_id,
        partitionName=partition,
        resourcePerAlloc=si.Resource(resources=quantities),
        priority=priority,
        allocationTags={REQUIRED_NODE_TAG: required_node} if required_node else {},
    )


def _pairs(option: str, texts: list[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise LicorneError(f"{option} {text}: a name and a value with = between are wanted")
        pairs[name] = value
    return pairs
