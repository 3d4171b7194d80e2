"""The routes of the cluster, its partitions, its configuration, its queues, and users and groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Final

import yaml
from anyio.to_thread import run_sync
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from .....model.configuration.names import is_group_name, is_user_name
from .....model.configuration.problems import ConfigurationError
from .....model.configuration.reader import DEFAULT_CONFIGURATION, load
from .....model.configuration.schema import SchedulerConfig
from .....model.limits.limits import HolderKind
from .....model.limits.usage_tree import UsageView
from .....model.values.messages import short_partition_name
from ....core.documents.clusters import (
    ClusterDocument,
    PartitionDocument,
    WorkerDocument,
    cluster_document,
    partition_document,
)
from ....core.documents.configurations import ConfigurationDocument, configuration_document
from ....core.documents.declarations import JSON, YAML, Operation, Parameter
from ....core.documents.monitoring import ValidationDocument
from ....core.documents.queues import (
    GroupUsageDocument,
    QueueDocument,
    RuleDocument,
    UserUsageDocument,
    group_document,
    queue_document,
    rule_document,
    user_document,
)
from ....core.scheduler.answering.views import UnknownPartitionError
from ..requests import checks_of, partition_of, queue_path_of, scheduler_of, unescaped, views_of
from ..responses import JSON_TYPE, RestError, json_response

_BELOW = "/ws/v1/partition/{partition}"
_YAML_TYPE = "application/x-yaml; charset=UTF-8"


def _queues(request: Request) -> Response:
    partition = partition_of(request)
    path = views_of(request).queue(partition, "root", subtree=True)
    shown_partition = short_partition_name(partition)
    return json_response(queue_document(path, partition=shown_partition, own_maximum=True))


def _queue(request: Request) -> Response:
    partition, name = partition_of(request), queue_path_of(request)
    path = views_of(request).queue(partition, name, subtree="subtree" in request.query_params)
    if not path:
        raise RestError(HTTPStatus.NOT_FOUND, "Queue not found")
    return json_response(queue_document(path, own_maximum=True))


def _placement_rules(request: Request) -> Response:
    rules = views_of(request).placement_rules(partition_of(request))
    return json_response([*map(rule_document, rules)])


def _users(request: Request) -> Response:
    return json_response([*map(user_document, _usages(request, "user", None))])


def _user(request: Request) -> Response:
    name = unescaped(request, "user")
    if not is_user_name(name):
        raise RestError(HTTPStatus.BAD_REQUEST, "Invalid user name")
    for found in _usages(request, "user", name):
        return json_response(user_document(found))
    raise RestError(HTTPStatus.NOT_FOUND, "User not found")


def _groups(request: Request) -> Response:
    return json_response([*map(group_document, _usages(request, "group", None))])


def _group(request: Request) -> Response:
    name = unescaped(request, "group")
    if not is_group_name(name):
        raise RestError(HTTPStatus.BAD_REQUEST, "Invalid group name")
    for found in _usages(request, "group", name):
        return json_response(group_document(found))
    raise RestError(HTTPStatus.NOT_FOUND, "Group not found")


def _usages(request: Request, kind: HolderKind, name: str | None) -> Iterator[UsageView]:
    views = views_of(request)
    return (usage for partition in _whose(request) for usage in views.usages(partition, kind, name))


def _whose(request: Request) -> Sequence[str]:
    """Return the partitions whose use a request is about: that of the path, or all if it is unknown.

    The recorded core ignores the partition here, even an unknown one: it counts over all of them.
    """
    views = views_of(request)
    try:
        return [views.find(request.path_params["partition"])]
    except UnknownPartitionError:
        return views.partition_names()


_ALL: Final = "Its short or its full name; an unknown one means all partitions"
_PARTITION_OR_ALL: Final = Parameter("partition", _ALL, {"type": "string"}, "path", required=True)
_SUBTREE: Final = "With it, whatever its value, all queues below are shown as well"
_QUEUES = [
    Operation(
        f"{_BELOW}/queues",
        _queues,
        "partition",
        "The root queue with all queues below it",
        "The root",
        {JSON: QueueDocument},
    ),
    Operation(
        f"{_BELOW}/queue/{{queue}}",
        _queue,
        "partition",
        "A queue",
        "The queue",
        {JSON: QueueDocument},
        parameters=[
            Parameter("subtree", _SUBTREE, {"type": "string"}, further={"allowEmptyValue": True}),
        ],
        refusals=[400],
    ),
    Operation(
        f"{_BELOW}/placementrules",
        _placement_rules,
        "partition",
        "The placement rules, in order",
        "The rules",
        {JSON: list[RuleDocument]},
    ),
    Operation(
        f"{_BELOW}/usage/users",
        _users,
        "partition",
        "The usage and limits of users, queue by queue",
        "The users, by name",
        {JSON: list[UserUsageDocument]},
        parameters=[_PARTITION_OR_ALL],
    ),
    Operation(
        f"{_BELOW}/usage/user/{{user}}",
        _user,
        "partition",
        "The usage and limits of a user, queue by queue",
        "The user",
        {JSON: UserUsageDocument},
        parameters=[_PARTITION_OR_ALL],
        refusals=[400],
    ),
    Operation(
        f"{_BELOW}/usage/groups",
        _groups,
        "partition",
        "The usage and limits of groups, queue by queue",
        "The groups that have a limit, by name",
        {JSON: list[GroupUsageDocument]},
        parameters=[_PARTITION_OR_ALL],
    ),
    Operation(
        f"{_BELOW}/usage/group/{{group}}",
        _group,
        "partition",
        "The usage and limits of a group, queue by queue",
        "The group",
        {JSON: GroupUsageDocument},
        parameters=[_PARTITION_OR_ALL],
        refusals=[400],
    ),
]


def _clusters(request: Request) -> Response:
    views = views_of(request)
    builds = views.builds()
    return json_response(
        [cluster_document(name, views.started_at_ns, builds) for name in views.partition_names()]
    )


def _partitions(request: Request) -> Response:
    return json_response([partition_document(values) for values in views_of(request).partitions()])


def _workers(_: Request) -> Response:
    """Return nothing: the partitions of a scheduler of this process have no workers."""
    return json_response([])


_CLUSTERS = [
    Operation(
        "/ws/v1/clusters",
        _clusters,
        "cluster",
        "The partitions, with the resource managers and the descriptions of their programs",
        "One entry a partition",
        {JSON: list[ClusterDocument]},
    ),
    Operation(
        "/ws/v1/partitions",
        _partitions,
        "cluster",
        "The partitions with their capacity, their use, and how many applications are in each state",
        "The partitions, by resource manager and name",
        {JSON: list[PartitionDocument]},
    ),
    Operation(
        "/licorne/v1/workers",
        _workers,
        "questions",
        "Where each partition runs, and how it is",
        "One entry a partition behind a door; none where all run in the process that answers",
        {JSON: list[WorkerDocument]},
    ),
]


def _config(request: Request) -> Response:
    """Return the configuration of the first resource manager."""
    configurations = views_of(request).configurations()
    rm_id, config = configurations[0] if configurations else ("", SchedulerConfig())
    extra = scheduler_of(request).extra_configuration(rm_id).texts if configurations else {}
    return config_response(request, config, extra)


def config_response(request: Request, config: SchedulerConfig, extra: Mapping[str, str]) -> Response:
    """Return the answer with a configuration, as JSON or YAML, whichever the request accepts.

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


_CONFIGURATIONS = [
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
        "Whether a configuration could be used; it does not come into effect",
        "Whether it could be used, and if not, why",
        {JSON: ValidationDocument},
        body={YAML: Any},
        body_note="The configuration as YAML, whatever its media type; anything is checked",
    ),
]
OPERATIONS = [*_CLUSTERS, *_CONFIGURATIONS, *_QUEUES]
