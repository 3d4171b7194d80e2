"""The errors a caller can cause: one base class, each error names the offending value."""

from __future__ import annotations

__all__ = ["LicorneError", "RequestError"]


class LicorneError(Exception):
    """Misuse by a caller or bad input; the state is as it was before the call."""


class RequestError(LicorneError):
    """A request that the scheduler refuses as a whole: an unknown resource manager, for example."""
