"""Write output files as a whole: after a failure the file is as it was before."""

from __future__ import annotations

import os
from pathlib import Path

from ...model.errors import LicorneError

__all__ = ["UnwritableFileError", "check_writable", "write_whole"]


class UnwritableFileError(LicorneError):
    """An output file that cannot be written; its text begins with the path."""


def check_writable(path: Path) -> None:
    """Refuse a path that no file can be written to, before there is anything to write.

    Raises:
        UnwritableFileError: It is a directory, or its directory does not exist or may not be written to.
    """
    if path.is_dir():
        raise UnwritableFileError(f"{path}: cannot be written: it is a directory")
    if not path.parent.is_dir():
        raise UnwritableFileError(f"{path}: cannot be written: there is no directory {path.parent}")
    place = path if path.exists() and not path.is_file() else path.parent
    if not os.access(place, os.W_OK):
        raise UnwritableFileError(f"{path}: cannot be written: no permission to write to {place}")


def write_whole(path: Path, text: str) -> None:
    """Write a UTF-8 file that is there as a whole or as it was before; a device or pipe is just written to.

    That also holds if the power is lost.

    Raises:
        UnwritableFileError: It cannot be written.
    """
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")
            return
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            with part.open("w", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())  # Else the new name may be on the disk before the text is.
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise UnwritableFileError(f"{path}: cannot be written: {error.strerror or error}") from error
