"""Policies under test, as the second scheduler asks them: at each decision anew, with views that it makes.

It asks for the order of nodes, queues and applications, filters, and starts. It keeps no answer
except the key of an application that depends on the submission alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, final

from ....model.configuration.durations import parse_duration_ns
from ....model.errors import error_text
from ....model.policies.interface import ApplicationView, AskView, NodeView, SiblingView
from ....model.resources.resource import Resource
from ....model.values.allocation import WALLTIME_TAG
from ..manager.cluster_record import RecordError, Size
from .queues import ReferenceApplication, ReferenceAsk, ReferenceNode, ReferenceQueue, add_to

_PREFIX: Final = "policy/"
_SUBMISSION: Final = {"submission"}


@final
class AskedPolicies:
    """The policies of one world.

    Args:
        factories: Their classes, or other factories, by the names that the configuration has for them.
    """

    def __init__(self, factories: Mapping[str, Callable[[], object]]) -> None:
        self._policies: dict[str, Any] = {name: factory() for name, factory in factories.items()}
        self._filters: list[str] = []
        self._admissions: list[str] = []

    def configure(self, partition: dict[str, Any]) -> None:
        """Ask the filters, and the policies about starts, that a partition names."""
        lists = partition.get("policies", {})
        self._filters = lists.get("filters", [])
        self._admissions = lists.get("admission", [])

    def node_key(self, word: str, node: ReferenceNode) -> float | None:
        """Return the place of a node, rounded to a float, `None` if no policy orders nodes."""
        if not word.startswith(_PREFIX):
            return None
        name, shown = word.removeprefix(_PREFIX), _node_view(node)
        key: float = self._answer(name, "node_key", shown, convert=float)
        return key

    def queue_key(self, parent: ReferenceQueue, queue: ReferenceQueue) -> Any:
        """Return the place of a queue among its siblings, `None` if no policy orders them."""
        word = parent.properties.get("queue.sort.policy", "")
        if not word.startswith(_PREFIX):
            return None
        shown = SiblingView(
            queue.path,
            MappingProxyType(queue.properties),
            _resource(queue.used),
            _waiting_in(queue.asks()),
            _resource(queue.guaranteed or {}),
            None if queue.maximum is None else _resource(queue.maximum),
            queue.priority(),
        )
        return self._key(word, "queue_key", shown)

    def application_key(self, application: ReferenceApplication) -> Any:
        """Return the place of an application in its leaf, `None` if no policy orders them."""
        word = application.queue.properties.get("application.sort.policy", "")
        if not word.startswith(_PREFIX):
            return None
        if application.fixed_key is not None:
            return application.fixed_key
        key = self._key(word, "application_key", _application_view(application))
        if getattr(self._policies[word.removeprefix(_PREFIX)], "depends_on", None) == _SUBMISSION:
            application.fixed_key = key
        return key

    def refuse(self, application: ReferenceApplication, ask: ReferenceAsk, node: ReferenceNode) -> bool:
        """Return whether a filter refuses a node to an ask."""
        shown = _ask_view(application, ask), _node_view(node)
        return any(self._answer(name, "refuses", *shown) is not None for name in self._filters)

    def hold(self, application: ReferenceApplication, now_ns: int) -> bool:
        """Return whether a policy holds an application that has not started."""
        if application.state != "Accepted" and not application.is_held:
            return False
        shown = _application_view(application), now_ns
        return any(self._answer(name, "may_start", *shown) is not None for name in self._admissions)

    def _key(self, word: str, method: str, shown: object) -> tuple[Any, ...]:
        key = self._answer(word.removeprefix(_PREFIX), method, shown)
        return key if isinstance(key, tuple) else (key,)

    def _answer(
        self, name: str, method: str, *shown: object, convert: Callable[[Any], Any] = lambda answer: answer
    ) -> Any:
        """Ask a policy.

        Raises:
            RecordError: It raises an error, or its answer cannot be converted.
        """
        try:
            return convert(getattr(self._policies[name], method)(*shown))
        except Exception as error:
            raise RecordError(f"policy {name}.{method}: {error_text(error)}") from error


def _resource(size: Size) -> Resource:
    return Resource({name: value for name, value in size.items() if value})


def _waiting_in(asks: Any) -> Resource:
    total: Size = {}
    for ask in asks:
        add_to(total, ask.size, 1)
    return _resource(total)


def _node_view(node: ReferenceNode) -> NodeView:
    shown = MappingProxyType(node.attributes)
    return NodeView(node.name, shown, _resource(node.size), _resource(node.available()))


def _ask_view(application: ReferenceApplication, ask: ReferenceAsk) -> AskView:
    walltime = ask.tags.get(WALLTIME_TAG)
    return AskView(
        ask.key,
        application.name,
        _resource(ask.size),
        ask.priority,
        ask.since_ns,
        MappingProxyType(ask.tags),
        ask.placeholder,
        ask.group,
        None if walltime is None else parse_duration_ns(walltime),
    )


def _application_view(application: ReferenceApplication) -> ApplicationView:
    return ApplicationView(
        application.name,
        application.queue.path,
        application.user,
        application.groups,
        MappingProxyType(application.tags),
        application.priority(),
        application.arrival,
        _waiting_in(application.asks.values()),
        _resource(application.used),
        gang=False,
        walltime_ns=None,
    )
