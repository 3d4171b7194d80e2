"""Read input files as text; every failure is an input error."""

from __future__ import annotations

import re
import sys
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Final

from ....model.resources.quantities import INT64_MAX
from .input_errors import InputError
from .packed_files import PACKING_ERRORS, unpacked

NANOSECONDS_IN_SECOND: Final = 10**9
NODES_MAX: Final = 1_000_000
"""How many nodes a simulation has at most, whatever file they come from."""

# Only these digits: `int` would also take underscores, blanks and the digits of other scripts.
_WHOLE_NUMBER: Final = re.compile(r"[0-9]{1,40}")
_FILE_SIZE_MAX_BYTES: Final = 2**30
_PIECE_BYTES: Final = 2**20
_UNPACKED_MAX_BYTES: Final = 2**29
_UNPACKED_MIN_BYTES: Final = 2**24
"""How much any packed file may unpack to."""
_UNPACKED_RATIO: Final = 100
"""How many times as much as has been read of it a packed file may unpack to besides."""


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file, with or without a byte order mark and with any line ends.

    A file that gzip, bzip2 or xz has made is unpacked, whatever its name is.

    Raises:
        InputError: The file cannot be read or unpacked, has more than 1 GiB of text, or is not UTF-8; or it
            is packed, and has more than 512 MiB, or unpacks to far more than its size.
    """
    try:
        with path.open("rb") as file, unpacked(file) as text:
            return _text(text, path, file if text is not file else None)
    except PACKING_ERRORS as error:
        raise InputError(path, f"cannot be unpacked: {error}") from error
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from error


def read_standard_input() -> str:
    """Return the text that is piped in, read like that of a file; its path in errors is `-`.

    Raises:
        InputError: There is no standard input, or a file with this content would be refused.
    """
    path = Path("-")
    try:
        if sys.stdin is None:
            raise InputError(path, "cannot be read: standard input is closed")
        return _text(sys.stdin.buffer, path)
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror or error}") from error


def _text(file: BinaryIO, path: Path, packed: BufferedReader | None = None) -> str:
    """Return the text of an open file, which is unpacked from another one if that is given."""
    content = bytearray()
    # In pieces: not every file says its size, and some have no end.
    while piece := file.read(_PIECE_BYTES):
        content += piece
        if len(content) > _FILE_SIZE_MAX_BYTES:
            raise InputError(path, f"there are more than {_FILE_SIZE_MAX_BYTES:,} bytes")
        if packed is not None:
            # A pipe does not say how much has been read of it.
            read = packed.tell() if packed.seekable() else _UNPACKED_MAX_BYTES
            _check_unpacked(len(content), read, path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The position is counted from the end of the byte order mark.
        raw = error.object
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - (raw.rfind(b"\n", 0, error.start) + 1) + 1
        message = f"byte 0x{raw[error.start]:02x} is no UTF-8 text"
        raise InputError(path, message, line=line, column=column) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _check_unpacked(size: int, packed_size: int, path: Path) -> None:
    """Refuse a file that would fill the memory of this process: logs unpack to 5 to 40 times their size.

    Raises:
        InputError: It has unpacked to too much.
    """
    if size > min(_UNPACKED_MAX_BYTES, _UNPACKED_MIN_BYTES + _UNPACKED_RATIO * packed_size):
        raise InputError(
            path,
            f"{packed_size:,} bytes of it unpack to more than {size - _PIECE_BYTES:,}: unpack it, "
            "and read what is in it, if that is meant",
        )


def whole_number(text: str, *, path: Path, line: int, name: str, scale: int = 1) -> int:
    """Return an unsigned whole number times a scale.

    Args:
        text: The digits, and nothing else.
        path: The file with the number.
        line: The line with the number.
        name: The name of the number, for the error.
        scale: The factor; the product must be a signed 64-bit integer.

    Raises:
        InputError: It is no whole number or it is too large.
    """
    if _WHOLE_NUMBER.fullmatch(text) is None:
        raise InputError(path, f"{name}: {text!r} is not a whole number", line=line)
    value = int(text) * scale
    if value > INT64_MAX:
        raise InputError(path, f"{name}: {text!r} is too large", line=line)
    return value


def check_node_count(path: Path, count: int) -> None:
    """Refuse more nodes than a simulation has, before any of them is made.

    Raises:
        InputError: There are too many.
    """
    if count > NODES_MAX:
        raise InputError(path, f"there are {count:,} nodes, more than {NODES_MAX:,}")


def virtual_ns(text: str, *, path: Path, line: int, name: str) -> int:
    """Return whole seconds as nanoseconds of virtual time.

    Raises:
        InputError: It is no whole number or it is too large.
    """
    return whole_number(text, path=path, line=line, name=name, scale=NANOSECONDS_IN_SECOND)
