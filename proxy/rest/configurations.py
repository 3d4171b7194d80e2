"""The routes of the configuration: the one in effect, and whether a new one could be used."""

from __future__ import annotations

import yaml
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...model.configuration.reader import ConfigurationError, load
from ...model.configuration.schema import SchedulerConfig
from ..documents.configurations import configuration_document
from ..documents.monitoring import ValidationDocument
from .requests import checks_of, scheduler_of, views_of
from .responses import JSON_TYPE, json_response

__all__ = ["ROUTES"]

_YAML_TYPE = "application/x-yaml; charset=UTF-8"


def _config(request: Request) -> Response:
    """Return the configuration of the first resource manager."""
    configurations = views_of(request).configurations()
    rm_id, config = configurations[0] if configurations else ("", SchedulerConfig())
    extra = scheduler_of(request).extra_configuration(rm_id).texts if configurations else {}
    if request.headers.get("accept") == JSON_TYPE.partition(";")[0]:
        return json_response(configuration_document(config, extra, yaml=False))
    document = configuration_document(config, extra, yaml=True)
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, indent=4)
    return Response(text, headers={"Content-Type": _YAML_TYPE})


async def _validate(request: Request) -> Response:
    """Return whether the configuration in the body could be used; one is checked at a time."""
    body = await request.body()
    return json_response(await run_sync(_outcome, body, limiter=checks_of(request)))


def _outcome(body: bytes) -> ValidationDocument:
    try:
        load(body.decode(), source="configuration")
    except UnicodeDecodeError as error:
        return {"allowed": False, "reason": f"no text in UTF-8: {error}"}
    except ConfigurationError as error:
        return {"allowed": False, "reason": str(error)}
    return {"allowed": True}


ROUTES = [
    Route("/ws/v1/config", _config),
    Route("/ws/v1/validate-conf", _validate, methods=["POST"]),
]
