"""The errors of the actor runtime that a caller can cause.

`pykka.Timeout` is raised as Pykka raises it and has no twin here.
"""

from __future__ import annotations

import pykka

from ...model.errors import LicorneError


class ActorEndedError(LicorneError, pykka.ActorDeadError):
    """A message to an actor that has stopped, or stops before it handles the message."""


class AskCycleError(LicorneError):
    """An ask that would have closed a cycle of waiting actors; its message was not handled."""


class AskDirectionError(LicorneError):
    """A blocking ask sideways or upwards, against cluster > partition > application > node."""


class MailboxFullError(LicorneError):
    """A message that a bounded mailbox had no room for; it was not queued."""


class DispatcherError(LicorneError):
    """A dispatcher that is missing, shut down, asked to wait for itself, or given impossible numbers."""
