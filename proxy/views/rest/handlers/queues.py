"""The routes of queues, of placement rules, and of what users and groups have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from .....model.configuration.names import is_group_name, is_user_name
from .....model.limits.limits import HolderKind
from .....model.limits.usage_tree import UsageView
from .....model.values.messages import short_partition_name
from ....core.documents.operations import JSON, Operation, Parameter
from ....core.documents.queues import QueueDocument, queue_document
from ....core.documents.rules import RuleDocument, rule_document
from ....core.documents.usages import GroupUsageDocument, UserUsageDocument, group_document, user_document
from ....core.scheduler.answering.views import UnknownPartitionError
from ..errors import RestError
from ..requests import partition_of, queue_path_of, unescaped, views_of
from ..responses import json_response

_BELOW = "/ws/v1/partition/{partition}"


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


_ALL: Final = "Its short or its full name; one that is unknown stands for all partitions"
_PARTITION_OR_ALL: Final = Parameter("partition", _ALL, {"type": "string"}, "path", required=True)
_SUBTREE: Final = "With it, whatever its value, all queues below are shown as well"

OPERATIONS = [
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
        "What users have and may have, queue by queue",
        "The users, by name",
        {JSON: list[UserUsageDocument]},
        parameters=[_PARTITION_OR_ALL],
    ),
    Operation(
        f"{_BELOW}/usage/user/{{user}}",
        _user,
        "partition",
        "What a user has and may have, queue by queue",
        "The user",
        {JSON: UserUsageDocument},
        parameters=[_PARTITION_OR_ALL],
        refusals=[400],
    ),
    Operation(
        f"{_BELOW}/usage/groups",
        _groups,
        "partition",
        "What groups have and may have, queue by queue",
        "The groups that have a limit, by name",
        {JSON: list[GroupUsageDocument]},
        parameters=[_PARTITION_OR_ALL],
    ),
    Operation(
        f"{_BELOW}/usage/group/{{group}}",
        _group,
        "partition",
        "What a group has and may have, queue by queue",
        "The group",
        {JSON: GroupUsageDocument},
        parameters=[_PARTITION_OR_ALL],
        refusals=[400],
    ),
]
