"""`licorne explain`: why an application waits, at a moment of a replay or of a simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .moment import Moment, moment_command
from .options import value_option

if TYPE_CHECKING:
    from ....model.explanation import Explanation
    from ...core.scheduler.scheduler import Scheduler


@moment_command("licorne explain")
def explain(
    application: Annotated[str, typer.Argument(metavar="APPLICATION", help="The id of an application.")],
    *,
    ask: Annotated[str | None, value_option("--ask", "KEY", "Explain this ask alone.")] = None,
    moment: Moment,
) -> None:
    """Say why an application waits: everything that blocks it, and what would have to change."""
    from ...core.explanation.documents import document_of
    from ...core.explanation.text import lines_of

    def explanation(scheduler: Scheduler) -> Explanation:
        where = {"rm_id": moment.rm, "partition": moment.partition}
        if ask is None:
            return scheduler.explain(application, **where)
        return scheduler.explain_ask(application, ask, **where)

    moment.show(explanation, document_of, lines_of)
