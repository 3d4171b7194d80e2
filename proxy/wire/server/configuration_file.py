"""The server's own queue configuration: a file that is read again when it changes."""

from __future__ import annotations

from pathlib import Path
from typing import final

from ....model.configuration.problems import ConfigurationError
from ....model.configuration.reader import load
from ....model.errors import LicorneError
from ...base.files.input_files import read_text


class FileRefusedError(LicorneError):
    """The file cannot be read, or is no valid configuration; each error is a line with its position."""


@final
class ConfigurationFile:
    """The configuration of the RMs that send none.

    Raises:
        FileRefusedError: The file is refused; there is no earlier text.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = self._stamp()
        self.text = ""
        """The last text that was valid."""
        self.text = self._read()

    def has_changed(self) -> bool:
        """Return whether the file is another one than when it was last looked at."""
        before, self._seen = self._seen, self._stamp()
        return before != self._seen

    def reload(self) -> bool:
        """Read the file again; return whether its text is another one.

        Raises:
            FileRefusedError: It is refused; the earlier text stays.
        """
        before, self.text = self.text, self._read()
        return before != self.text

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> str:
        try:
            if self.text and not self.path.is_file():
                raise FileRefusedError(f"{self.path}: it is no file any more")
            text = read_text(self.path)
        except LicorneError as error:
            raise FileRefusedError(str(error)) from error
        try:
            config = load(text, source=str(self.path))
        except ConfigurationError as error:
            raise FileRefusedError("\n".join(map(str, error.problems))) from error
        if not config.partitions:  # An editor may have emptied the file to write it anew.
            raise FileRefusedError(f"{self.path}: there is no partition in it")
        return text
