"""The error of bad simulation input, with the place and the wrong value."""

from __future__ import annotations

from pathlib import Path

from ....model.errors import LicorneError


class InputError(LicorneError):
    """An input file that cannot be used; nothing of it has been applied.

    Its text is `file:line:column: what is wrong`, without the parts that are not known.

    Args:
        path: The file.
        message: What is wrong, with the offending value.
        line: The line, from 1.
        column: The column in that line, from 1.
    """

    def __init__(
        self, path: Path, message: str, *, line: int | None = None, column: int | None = None
    ) -> None:
        self.path = path
        self.message = message
        self.line = line
        self.column = column
        place = ":".join(str(part) for part in (path, line, column) if part is not None)
        super().__init__(f"{place}: {message}")
