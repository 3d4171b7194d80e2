"""Files that gzip, bzip2 or xz has made, read as what is in them."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Mapping
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Final, cast

PACKING_ERRORS: Final = (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError)
"""What reading a damaged packed file raises; bzip2 raises `OSError`."""

_SUFFIXES: Final = frozenset({".gz", ".bz2", ".xz"})
_FIRST_BYTES_MAX: Final = 6
_READERS: Final[Mapping[bytes, Callable[[BufferedReader], object]]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
"""How what begins with some bytes is read."""


def unpacked(file: BufferedReader) -> BinaryIO:
    """Return a reader of what is in a file, which is the file itself if it is not packed."""
    first = file.peek(_FIRST_BYTES_MAX)
    reader = next((kind(file) for start, kind in _READERS.items() if first.startswith(start)), file)
    return cast("BinaryIO", reader)


def unpacked_name(path: Path) -> Path:
    """Return the path that a file would have if it was not packed: `log.swf` for `log.swf.gz`."""
    return path.with_suffix("") if path.suffix.lower() in _SUFFIXES else path
