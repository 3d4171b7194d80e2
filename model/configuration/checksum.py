"""The fingerprint of a configuration: equal fingerprints mean that a reload has nothing to do."""

from __future__ import annotations

import hashlib
from typing import Final

_MARKER: Final = b"checksum: "
_LENGTH: Final = 64


def checksum(text: str) -> str:
    """Return the SHA-256 of a configuration in upper-case hexadecimal digits.

    A checksum in the text itself is left out, so that a configuration can contain its own: the marker
    and up to 64 bytes after it are cut out, wherever the same bytes stand.
    """
    # A lone surrogate is in no file, but may come from a program: it is hashed rather than refused, because
    # the reader reports what is wrong with a text.
    content = text.encode("utf-8", errors="surrogatepass")
    parts = content.split(_MARKER)
    if len(parts) > 1:
        written = _MARKER + parts[1].rstrip(b"\n")[:_LENGTH]
        content = content.replace(written, b"")
    return hashlib.sha256(content).hexdigest().upper()
