"""The routes of the configuration: the one in effect, and whether a new one could be used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import yaml
from anyio.to_thread import run_sync
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from .....model.configuration.problems import ConfigurationError
from .....model.configuration.reader import DEFAULT_CONFIGURATION, load
from .....model.configuration.schema import SchedulerConfig
from ....core.documents.configurations import ConfigurationDocument, configuration_document
from ....core.documents.monitoring import ValidationDocument
from ....core.documents.operations import JSON, YAML, Operation
from ..requests import checks_of, scheduler_of, views_of
from ..responses import JSON_TYPE, json_response

_YAML_TYPE = "application/x-yaml; charset=UTF-8"


def _config(request: Request) -> Response:
    """Return the configuration of the first resource manager."""
    configurations = views_of(request).configurations()
    rm_id, config = configurations[0] if configurations else ("", SchedulerConfig())
    extra = scheduler_of(request).extra_configuration(rm_id).texts if configurations else {}
    return config_response(request, config, extra)


def config_response(request: Request, config: SchedulerConfig, extra: Mapping[str, str]) -> Response:
    """Return the answer with a configuration, as JSON or YAML, whichever the request wants.

    Args:
        request: The request.
        config: The configuration of the queues.
        extra: The extra configuration, as it came.
    """
    if request.headers.get("accept") == JSON_TYPE.partition(";")[0]:
        return json_response(configuration_document(config, extra, yaml=False))
    document = configuration_document(config, extra, yaml=True)
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, indent=4)
    return Response(text, headers={"Content-Type": _YAML_TYPE})


async def validate_configuration(request: Request) -> Response:
    """Return whether the configuration in the body could be used; one is checked at a time."""
    body = await request.body()
    return json_response(await run_sync(_outcome, body, limiter=checks_of(request)))


def _outcome(body: bytes) -> ValidationDocument:
    try:
        load(body.decode() or DEFAULT_CONFIGURATION, source="configuration")
    except UnicodeDecodeError as error:
        return {"allowed": False, "reason": f"no text in UTF-8: {error}"}
    except ConfigurationError as error:
        return {"allowed": False, "reason": str(error)}
    return {"allowed": True}


OPERATIONS = [
    Operation(
        "/ws/v1/config",
        _config,
        "configuration",
        "The configuration of the first resource manager",
        "The configuration in effect",
        {
            JSON: ConfigurationDocument,
            YAML: Annotated[dict[str, object], Field(description="The same in the names of the YAML file")],
        },
        description="JSON if the header `Accept` is exactly `application/json`, otherwise YAML.",
    ),
    Operation(
        "/ws/v1/validate-conf",
        validate_configuration,
        "configuration",
        "Say whether a configuration could be used; it does not come into effect",
        "Whether it could be used, and if not, why",
        {JSON: ValidationDocument},
        body={YAML: Any},
        body_note="The configuration as YAML, whatever its type is said to be; anything is checked",
    ),
]
