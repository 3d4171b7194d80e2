"""What the routes read of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import Request

    from ..scheduler.scheduler import Scheduler
    from ..scheduler.views import Views

__all__ = ["scheduler_of", "views_of"]


def scheduler_of(request: Request) -> Scheduler:
    """Return the scheduler that a request is about."""
    scheduler: Scheduler = request.app.state.scheduler
    return scheduler


def views_of(request: Request) -> Views:
    """Return the views of that scheduler."""
    return scheduler_of(request).views
