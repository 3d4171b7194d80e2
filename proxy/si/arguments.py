"""Checks of what a program hands over: its arguments, and the methods of its callback.

Checked values are `object` here: the compiled build would refuse another type by its own error.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Final, TypeAlias

from google.protobuf.message import Message

from ...model.errors import RequestError
from . import si_pb2 as si
from .api import ResourceManager, ResourceManagerCallback

_Request: TypeAlias = (
    "si.NodeRequest | si.ApplicationRequest | si.AllocationRequest | si.UpdateConfigurationRequest"
)
_REQUIRED: Final = (
    *("update_allocation", "update_application", "update_node", "update_container_scheduling_state"),
    *("predicates", "preemption_predicates", "send_event"),
)
"""The methods of `ResourceManagerCallback`; each takes one argument."""
_DEFERRED: Final = {
    "predicates": "ask_predicates",
    "preemption_predicates": "ask_preemption_predicates",
}
"""The methods of `DeferredPredicates`, by those that they replace; each takes two arguments."""
_OPTIONAL: Final = {"get_state_dump": 0, "reconnected": 0, "refused_nodes": 1, "replaced": 1}
"""The methods that a callback may have besides, with the number of their arguments."""


def check_message(what: str, given: object, kind: type[Message]) -> None:
    """Refuse what is not a message of a kind; one of another program's copy of `si.v1` is of the kind.

    Raises:
        RequestError: It is something else.
    """
    if type(given) is kind:
        return
    wanted = kind.DESCRIPTOR.full_name
    name = getattr(getattr(type(given), "DESCRIPTOR", None), "full_name", None)
    if name == wanted:
        return
    hint = f"; make it with {kind.__name__}(...)" if name is None else ""
    raise RequestError(f"{what}: expected a message {wanted}, got {name or _shown(given)}{hint}")


def rm_id_of(request: _Request, kind: type[Message]) -> str:
    """Return the id of the resource manager that makes a request.

    Raises:
        RequestError: It is not a request of this kind.
    """
    if type(request) is not kind:
        check_message(kind.__name__, request, kind)
    return request.rmID


def check_messages(what: str, given: object, kind: type[Message]) -> None:
    """Refuse what is not a number of messages; each of them is checked when it is read.

    Raises:
        RequestError: It is one message, a text, or nothing to iterate over.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        wanted = kind.DESCRIPTOR.full_name
        raise RequestError(f"{what}: expected a list of messages {wanted}, got {_shown(given)}")


def check_type(what: str, given: object, *kinds: type) -> None:
    """Refuse a value of another type; `bool` does not count as `int`.

    Raises:
        RequestError: It is of none of these types.
    """
    if not isinstance(given, kinds) or (isinstance(given, bool) and bool not in kinds):
        wanted = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
        raise RequestError(f"{what}: expected {wanted}, got {_shown(given)}")


def check_names(what: str, given: object) -> None:
    """Refuse what is not a list of texts: one text would be read as a list of letters.

    Raises:
        RequestError: It is one text, or something in it is not a text.
    """
    if isinstance(given, str | bytes):
        raise RequestError(f"{what}={given!r:.100} is one text: give a list of names")
    check_type(what, given, Iterable)
    assert isinstance(given, Iterable), "it has been checked"
    for name in given:
        check_type(f"{what}: a name", name, str)


def check_seconds(what: str, given: object, *, may_be_zero: bool = False) -> None:
    """Refuse what is not a time to wait; it may be without end.

    Raises:
        RequestError: It is not a number, or below zero, or zero where it may not be.
    """
    check_type(what, given, int, float)
    assert isinstance(given, int | float), "it has been checked"
    if not (given > 0 or (may_be_zero and given == 0)):
        raise RequestError(f"{what}={given} is {'below 0' if may_be_zero else 'not above 0'}")


def check_texts(what: str, given: object) -> None:
    """Refuse what is not a mapping of texts to texts; `None` stands for an empty one.

    Raises:
        RequestError: It is something else, or has another key or value in it.
    """
    check_type(what, given, Mapping, type(None))
    if not isinstance(given, Mapping):
        return
    for key, value in given.items():
        check_type(f"{what}: the key", key, str)
        check_type(f"{what}[{key!r:.100}]", value, str)


def _shown(value: object) -> str:
    """Return a value with its type, in one line; the text of a message has several."""
    return "None" if value is None else f"{type(value).__name__} {' '.join(repr(value).split())[:100]}"


def check_callback(callback: object) -> None:
    """Refuse an object that is not a callback; warn of a method whose name is probably misspelt.

    Raises:
        RequestError: It lacks methods, which the text names; or one of them cannot be called as it will be.
    """
    if isinstance(callback, type):
        raise RequestError(
            f"the callback of a resource manager is the class {callback.__name__}: "
            f"give an instance, {callback.__name__}(...)"
        )
    required: tuple[str, ...] = _REQUIRED
    if any(_has(callback, name) for name in _DEFERRED.values()):
        required = tuple(_DEFERRED.get(name, name) for name in _REQUIRED)
    missing = [name for name in required if not _has(callback, name)]
    if missing:
        raise RequestError(
            f"the callback {callback!r:.200} of a resource manager has no method {', '.join(missing)}: "
            "extend licorne.ResourceManager"
        )
    counts = {name: 2 if name in _DEFERRED.values() else 1 for name in required} | _OPTIONAL
    for name, count in counts.items():
        if _has(callback, name):
            _check_method(callback, name, count)
    _warn_of_names(callback, counts)


def ask_predicate(callback: ResourceManagerCallback, args: si.PredicatesArgs) -> None:
    """Ask the predicate of a resource manager; what it raises is its answer.

    Raises:
        RequestError: It has returned `False`, by which a program means to refuse.
        TypeError: It has returned something else, such as the reason for which it means to refuse.
    """
    predicates: Callable[[si.PredicatesArgs], object] = callback.predicates
    answer = predicates(args)
    if answer is False:
        raise RequestError("predicates returned False")
    if answer is not None and answer is not True:
        raise TypeError(
            f"predicates returned {type(answer).__name__} {answer!r:.200}: expected None or True; "
            "raise the reason to refuse a node"
        )


def ask_preemption_predicate(
    callback: ResourceManagerCallback, args: si.PreemptionPredicatesArgs
) -> si.PreemptionPredicatesResponse | None:
    """Ask the predicate of preemption; `None` and what it raises refuse.

    Raises:
        RequestError: It has returned something else than its answer.
    """
    answer = callback.preemption_predicates(args)
    if answer is not None:
        check_message("the answer of preemption_predicates", answer, si.PreemptionPredicatesResponse)
    return answer


def _check_method(callback: object, name: str, count: int) -> None:
    """Refuse a method that does nothing when it is called, or that cannot be called with its arguments.

    Raises:
        RequestError: It is a coroutine or a generator, or it takes another number of arguments.
    """
    method = getattr(callback, name)
    what = f"{name} of the callback {type(callback).__name__}"
    if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
        raise RequestError(
            f"{what} is `async def`, and callbacks are not awaited: write `def`, "
            "and hand over to your loop by loop.call_soon_threadsafe(...)"
        )
    if inspect.isgeneratorfunction(method):
        raise RequestError(f"{what} has `yield`, so a call would not run it: write it without")
    try:
        inspect.signature(method).bind(*range(count))
    except TypeError as error:
        takes = "no argument" if not count else "one argument" if count == 1 else f"{count} arguments"
        raise RequestError(f"{what} is called with {takes} besides self: {error}") from error
    except ValueError:
        pass  # Functions written in C may not tell.


def _warn_of_names(callback: object, known: dict[str, int]) -> None:
    """Warn of methods that are not callbacks, and have almost the name of one that is not overridden."""
    kind = type(callback)
    ignored = [
        name for name in known if getattr(kind, name, None) is getattr(ResourceManager, name, callback)
    ]
    for name in vars(kind):
        if name in known or name.startswith("_") or not _has(callback, name):
            continue
        for near in get_close_matches(name, ignored, n=1, cutoff=0.85):
            logging.getLogger("licorne").warning(
                "%s.%s is not a callback and is never called: did you mean %s?", kind.__name__, name, near
            )


def replaced_hook(before: object, now: object = None) -> Callable[[str], object] | None:
    """Return the method `replaced` of a callback that another one has replaced, if it has one.

    One that is replaced by itself, or by another one of the same speaker (its attribute `speaks_for`), has
    none: it has registered again by itself, and hears the end of what it had.
    """
    if _speaker(before) is _speaker(now):
        return None
    found: Callable[[str], object] | None = getattr(before, "replaced", None)
    return found


def _speaker(callback: object) -> object:
    """Return for whom a callback speaks in the end: itself by default."""
    while (behind := getattr(callback, "speaks_for", None)) is not None:
        callback = behind
    return callback


def _has(callback: object, name: str) -> bool:
    return callable(getattr(callback, name, None))
