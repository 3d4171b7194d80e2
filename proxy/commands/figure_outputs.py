"""The files with figures that `licorne simulate` writes: what is wanted, checked before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...model.errors import LicorneError

if TYPE_CHECKING:
    from pathlib import Path

    from ..simulation.report import SimulationReport
    from ..simulation.reporting.figures import RunFigures

__all__ = ["FigureOutputs", "report_outputs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureOutputs:
    """The files to write, `None` where one is not wanted; `other` are the figures to compare with."""

    page: Path | None
    json: Path | None
    csv: Path | None
    other: RunFigures | None

    def is_anything_wanted(self) -> bool:
        """Return whether figures have to be collected."""
        return not (self.page is None and self.json is None and self.csv is None)

    def write(self, report: SimulationReport) -> None:
        """Write all files; each is there as a whole, or as it was before.

        Raises:
            UnwritableFileError: One cannot be written; those before it have been.
        """
        if report.figures is None:
            return
        from ..files.output_files import write_whole
        from ..simulation.reporting.figure_files import to_csv, to_json
        from ..simulation.reporting.page import to_html

        if self.json is not None:
            write_whole(self.json, to_json(report.figures))
        if self.csv is not None:
            write_whole(self.csv, to_csv(report.figures))
        if self.page is not None:
            write_whole(self.page, to_html(report.figures, self.other))


def report_outputs(
    page: Path | None, json: Path | None, csv: Path | None, compare: Path | None
) -> FigureOutputs:
    """Check the options, and read the figures to compare with.

    Raises:
        LicorneError: Two options name one file, one cannot be written, or a comparison has no page.
        InputError: The figures to compare with cannot be read.
    """
    if compare is not None and page is None:
        raise LicorneError("--compare shows two runs on a page: --report FILE has to say which")
    other = None
    if compare is not None:
        from ..simulation.reporting.figure_files import read_figures

        other = read_figures(compare)
    named = [
        (option, path)
        for option, path in (("--report", page), ("--report-json", json), ("--report-csv", csv))
        if path is not None
    ]
    if named:
        from ..files.output_files import check_writable

        seen: dict[Path, str] = {}
        for option, path in named:
            before = seen.setdefault(path.resolve(), option)
            if before != option:
                raise LicorneError(f"{before} and {option} name the same file, {path}")
            check_writable(path)
    return FigureOutputs(page=page, json=json, csv=csv, other=other)
