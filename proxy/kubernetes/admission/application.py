"""The webhook as an ASGI application: `/mutate`, `/validate-conf` and `/health`.

What cannot be read, and what meets a bug of ours, is answered with a status of HTTP: then the failure policy
of the registration decides what becomes of the write.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from anyio.to_thread import run_sync
from loguru import logger
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ...rest.limits import LimitsSettings, RequestLimits
from .reviews import AdmissionRequest, AdmissionVerdict, UnreadableReviewError, encoded_review, request_of

__all__ = ["MUTATE_PATH", "VALIDATE_PATH", "Judge", "admission_app"]

MUTATE_PATH: Final = "/mutate"
VALIDATE_PATH: Final = "/validate-conf"
_LIMITS: Final = LimitsSettings(
    body_bytes_max=16 << 20,  # Twice an object, before and after: each has less than 3 MiB.
    per_second_max=100_000.0,  # All questions of a cluster come from the one host of the API server.
)

Judge = Callable[[AdmissionRequest], AdmissionVerdict]
"""Says what is answered; may wait for the API server."""


def admission_app(mutate: Judge, validate: Judge) -> Starlette:
    """Return the application.

    Args:
        mutate: Judges pods and workloads.
        validate: Judges the configuration.
    """
    return Starlette(
        routes=[
            Route(MUTATE_PATH, _endpoint(mutate), methods=["POST"]),
            Route(VALIDATE_PATH, _endpoint(validate), methods=["POST"]),
            Route("/health", _health),
        ],
        middleware=[Middleware(RequestLimits, settings=_LIMITS)],
        exception_handlers={UnreadableReviewError: _unreadable, Exception: _broken},
    )


def _endpoint(judge: Judge) -> Callable[[Request], object]:
    def answer(body: bytes) -> bytes:
        request = request_of(body)
        verdict = judge(request)
        if not verdict.is_allowed:
            logger.info(
                "denied {} {} in namespace {} by {}: {}",
                request.operation,
                request.kind.kind,
                request.namespace,
                request.user_info.username,
                verdict.reason,
            )
        return encoded_review(request.uid, verdict)

    async def endpoint(request: Request) -> Response:
        body = await request.body()
        return Response(await run_sync(answer, body), media_type="application/json")

    return endpoint


def _health(_: Request) -> Response:
    return PlainTextResponse("ok\n")


def _unreadable(_: Request, error: Exception) -> Response:
    logger.warning("a question of the API server cannot be answered: {}", error)
    return PlainTextResponse(f"{error}\n", HTTPStatus.BAD_REQUEST)


def _broken(_: Request, error: Exception) -> Response:
    """Return the answer to a question that met a bug of ours, and log that."""
    logger.opt(exception=error).error("a question of the API server met an internal error, please report")
    return PlainTextResponse(f"internal error: {error!r}\n", HTTPStatus.INTERNAL_SERVER_ERROR)
