"""`licorne dry-run`: where a new application or ask would go, at a moment of a replay or of a simulation."""

from __future__ import annotations

from typing import Annotated

import typer

from ....model.errors import LicorneError
from .moment import Moment, moment_command
from .options import number_option, value_option


@moment_command("licorne dry-run")
def dry_run(
    *,
    of: Annotated[
        str | None, value_option("--of", "APPLICATION", "An ask of this application, no new one.")
    ] = None,
    user: Annotated[str | None, typer.Option("--user", help="The user of a new application.")] = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", help="A group of that user; may be repeated.")
    ] = None,
    queue: Annotated[str, typer.Option("--queue", help="The queue that a new application names.")] = "",
    tag: Annotated[
        list[str] | None, value_option("--tag", "NAME=VALUE", "A tag of a new application.")
    ] = None,
    resource: Annotated[
        list[str] | None,
        value_option("--resource", "TYPE=QUANTITY", "What an ask wants, such as vcore=500m.", short="-r"),
    ] = None,
    priority: Annotated[int, number_option("--priority", "The priority of the ask.")] = 0,
    required_node: Annotated[str, typer.Option("--required-node", help="The one node for the ask.")] = "",
    moment: Moment,
) -> None:
    """Say where a new application or ask would go: the queue by every rule tried, then the node."""
    from ...core.explanation.dry_run import dry_run_document, dry_run_lines, new_application, new_ask

    _check(of, user=user, details=[queue, *(group or []), *(tag or [])], resource=resource)
    partition = moment.partition or ""
    application = None
    if of is None:
        application = new_application(user or "", group or [], queue, tag or [], partition)
    new = new_ask(of, resource, priority, required_node, partition) if resource else None
    moment.show(
        lambda scheduler: scheduler.dry_run(application=application, ask=new, rm_id=moment.rm),
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
        raise LicorneError(f"an ask of application {of} wants something: name it (--resource vcore=1)")
