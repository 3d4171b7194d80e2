"""The records that a fact stands for, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ....model.resources.resource import Resource
from ....model.resources.texts import describe
from ....model.values.allocation import Allocation, Ask
from ....model.values.events import ChangeDetail, ChangeType, EventRecord, EventType
from ....model.values.facts import (
    AsksAddedFact,
    AsksDroppedFact,
    EndedFact,
    Fact,
    HeadroomFact,
    LeftFact,
    PlacedFact,
    SingleFact,
    SwappedFact,
    UnschedulableFact,
    UsageFact,
)
from ....model.values.messages import TerminationType
from .ring import Span

MESSAGE_BYTES_MAX: Final = 1024
_CUT: Final = "..."
_ENDS: Final = {
    TerminationType.UNKNOWN_TERMINATION_TYPE: ChangeDetail.ALLOC_NODEREMOVED,
    TerminationType.STOPPED_BY_RM: ChangeDetail.ALLOC_CANCEL,
    TerminationType.TIMEOUT: ChangeDetail.ALLOC_TIMEOUT,
    TerminationType.PREEMPTED_BY_SCHEDULER: ChangeDetail.ALLOC_PREEMPT,
    TerminationType.PLACEHOLDER_REPLACED: ChangeDetail.ALLOC_REPLACED,
    TerminationType.SCHEDULING_FAILED_ON_RM: ChangeDetail.ALLOC_CANCEL,
}
_ADD: Final = ChangeType.ADD
_REMOVE: Final = ChangeType.REMOVE


def message_text(text: str) -> str:
    """Return a message that is no longer than 1024 bytes of UTF-8: one that is ends with `...`."""
    if len(text) * 4 <= MESSAGE_BYTES_MAX:
        return text
    encoded = text.encode(errors="replace")
    if len(encoded) <= MESSAGE_BYTES_MAX:
        return text
    return encoded[: MESSAGE_BYTES_MAX - len(_CUT)].decode(errors="ignore") + _CUT


def expand(fact: Fact) -> Sequence[EventRecord]:
    """Return the records of a fact: as many as it says."""
    match fact:
        case PlacedFact():
            records = _placed(fact)
        case EndedFact():
            records = _ended(fact)
        case AsksAddedFact():
            records = [_of_ask(ask, _ADD, ChangeDetail.APP_REQUEST, fact.time_ns) for ask in fact.asks]
        case AsksDroppedFact():
            detail = ChangeDetail.REQUEST_TIMEOUT if fact.timed_out else ChangeDetail.REQUEST_CANCEL
            records = [_of_ask(ask, _REMOVE, detail, fact.time_ns) for ask in fact.asks]
        case SingleFact():
            records = [
                EventRecord(
                    *(fact.type, fact.change, fact.detail, fact.object_id, fact.reference_id),
                    *(message_text(fact.message), fact.resource, fact.time_ns),
                )
            ]
        case _:
            records = _rare(fact)
    return records


def records_from(span: Span, start: int, count: int) -> list[EventRecord]:
    """Return up to `count` records of a part of the ring, from an id on."""
    records: list[EventRecord] = []
    end = start - span.first + count
    for fact in span.facts:
        records += expand(fact)
        if len(records) >= end:
            break
    return records[start - span.first : end]


def _rare(fact: SwappedFact | UsageFact | LeftFact | HeadroomFact | UnschedulableFact) -> list[EventRecord]:
    match fact:
        case SwappedFact():
            records = _swapped(fact)
        case UsageFact():
            records = _usages(fact, _REMOVE, fact.before) + _usages(fact, _ADD, fact.after)
        case LeftFact():
            records = _left(fact)
        case HeadroomFact():
            records = [_of_request(fact.ask, _headroom_text(fact), fact.time_ns)]
        case UnschedulableFact():
            texts = "".join(f"{text} ({times}x); " for text, times in fact.refusals)
            text = f"Unschedulable request '{fact.ask.allocation_key}': {texts}"
            records = [_of_request(fact.ask, text, fact.time_ns)]
    return records


def _placed(fact: PlacedFact) -> list[EventRecord]:
    allocation = fact.allocation
    ask = allocation.ask
    return [
        _on_node(allocation, _ADD, fact.time_ns),
        *_usages(fact, _ADD, ask.resource),
        _of_ask(ask, _ADD, ChangeDetail.APP_ALLOC, fact.time_ns),
    ]


def _ended(fact: EndedFact) -> list[EventRecord]:
    allocation = fact.allocation
    records = [_of_ask(allocation.ask, _REMOVE, _ENDS[fact.termination], fact.time_ns)]
    if fact.on_node:
        records.append(_on_node(allocation, _REMOVE, fact.time_ns))
    return records + _usages(fact, _REMOVE, allocation.ask.resource)


def _swapped(fact: SwappedFact) -> list[EventRecord]:
    placeholder, real = fact.placeholder, fact.real
    records = [
        _of_ask(placeholder.ask, _REMOVE, ChangeDetail.ALLOC_REPLACED, fact.time_ns),
        _of_ask(real.ask, _ADD, ChangeDetail.APP_ALLOC, fact.time_ns),
    ]
    if fact.leaves_node:
        records.append(_on_node(placeholder, _REMOVE, fact.time_ns))
    records += _usages(fact, _REMOVE, placeholder.ask.resource)
    return records + _usages(fact, _ADD, real.ask.resource)


def _left(fact: LeftFact) -> list[EventRecord]:
    name, path = fact.application_id, fact.queue_path
    return [
        EventRecord(EventType.APP, _REMOVE, ChangeDetail.NONE, name, time_ns=fact.time_ns),
        EventRecord(EventType.QUEUE, _REMOVE, ChangeDetail.QUEUE_APP, path, name, time_ns=fact.time_ns),
    ]


def _of_ask(ask: Ask, change: ChangeType, detail: ChangeDetail, time_ns: int) -> EventRecord:
    """Return an event of the application of an ask."""
    return EventRecord(
        EventType.APP, change, detail, ask.application_id, ask.allocation_key, "", ask.resource, time_ns
    )


def _of_request(ask: Ask, text: str, time_ns: int) -> EventRecord:
    return EventRecord(
        *(EventType.REQUEST, ChangeType.NONE, ChangeDetail.NONE, ask.allocation_key, ask.application_id),
        *(message_text(text), ask.resource, time_ns),
    )


def _on_node(allocation: Allocation, change: ChangeType, time_ns: int) -> EventRecord:
    ask = allocation.ask
    return EventRecord(
        *(EventType.NODE, change, ChangeDetail.NODE_ALLOC, allocation.node_id, ask.allocation_key),
        *("", ask.resource, time_ns),
    )


def _usages(
    fact: PlacedFact | EndedFact | SwappedFact | UsageFact, change: ChangeType, resource: Resource
) -> list[EventRecord]:
    """Return the events of the user and of the group."""
    path, time_ns = fact.queue_path, fact.time_ns
    kind, detail = EventType.USERGROUP, ChangeDetail.UG_USER_RESOURCE
    records = [EventRecord(kind, change, detail, fact.user, path, "", resource, time_ns)]
    if fact.group is not None:
        detail = ChangeDetail.UG_GROUP_RESOURCE
        records.append(EventRecord(kind, change, detail, fact.group, path, "", resource, time_ns))
    return records


def _headroom_text(fact: HeadroomFact) -> str:
    ask = fact.ask
    request = f"Request '{ask.allocation_key}'"
    if fact.available is None:
        if fact.queue_path is None:
            return f"{request} fits in the available user quota"
        return f"{request} has become schedulable in queue '{fact.queue_path}'"
    compared = f"(requested {describe(ask.resource)}, available {describe(fact.available)})"
    if fact.queue_path is None:
        return f"{request} exceeds the available user quota {compared}"
    return f"{request} does not fit in queue '{fact.queue_path}' {compared}"
