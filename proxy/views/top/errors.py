"""What goes wrong when a server is read."""

from __future__ import annotations

from typing import final

from ....model.errors import LicorneError


class ServerReadError(LicorneError):
    """A server could not be read: it cannot be reached, refuses, or answers what cannot be understood."""


@final
class MissingDocumentError(ServerReadError):
    """A server does not have what was asked for, or has switched it off: status 404, 500 or 503."""
