"""The tables of the health checks, and of how far the nodes are used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .tables import Bar, Cell, Column, ViewRow, ViewTable, name_cell

if TYPE_CHECKING:
    from .documents import HealthDocument, UtilizationDocument

__all__ = ["health_table", "utilization_table"]

_CHECKS: Final = (
    Column("check", "check", 32),
    Column("result", "result", 7),
    Column("diagnosis", "what it found"),
)
_UTILIZATION: Final = (
    Column("type", "type", 20),
    Column("bucket", "used", 9),
    Column("nodes", "nodes", 6, is_number=True),
    Column("bar", "share of nodes", is_bar=True),
)


def health_table(health: HealthDocument) -> ViewTable:
    """Return a row for each check, in the order of the server; names may stand twice."""
    rows = []
    for number, check in enumerate(health.checks):
        result = Cell("ok", "ok") if check.succeeded else Cell("failed", "failed", style="bold red")
        rows.append(ViewRow(str(number), (name_cell(check.name), result, name_cell(check.diagnosis))))
    return ViewTable(_CHECKS, tuple(rows))


def utilization_table(document: UtilizationDocument | None) -> ViewTable:
    """Return a row for each type of resource and tenth of use, with how many nodes use as much."""
    rows = []
    for kind in document.utilizations if document else ():
        total = sum(bucket.num_of_nodes for bucket in kind.utilization)
        for bucket in kind.utilization:
            count = bucket.num_of_nodes
            cells = (
                name_cell(kind.type),
                name_cell(bucket.bucket_name),
                Cell(count, str(count)),
                Cell(None, "", Bar(count, maximum=total)),
            )
            rows.append(ViewRow(f"{kind.type}\n{bucket.bucket_name}", cells))
    return ViewTable(_UTILIZATION, tuple(rows))
