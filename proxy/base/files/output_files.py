"""Write output files as a whole: after a failure the file has its old content."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ....model.errors import LicorneError

_ASIDE_MAX: Final = 1_000


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


def set_aside(path: Path) -> Path:
    """Give a file a name beside its own that no other file has, so that a new one does not replace it.

    Returns:
        The new path, `NAME.refused` or `NAME.refused-NUMBER`; the same path for a device or a pipe.

    Raises:
        UnwritableFileError: It cannot be renamed, or there are a thousand already.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        return path
    names = [
        f"{target.name}.refused",
        *(f"{target.name}.refused-{number}" for number in range(2, _ASIDE_MAX)),
    ]
    aside = next((place for name in names if not (place := target.with_name(name)).exists()), None)
    if aside is None:
        raise UnwritableFileError(f"{path}: cannot be kept: there are {names[0]} to {names[-1]} beside it")
    try:
        return target.rename(aside)
    except OSError as error:
        raise UnwritableFileError(
            f"{path}: cannot be renamed to {aside}: {error.strerror or error}"
        ) from error


def write_whole(path: Path, text: str) -> None:
    """Write a UTF-8 file as a whole, or leave its old content; a device or pipe is just written to.

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
