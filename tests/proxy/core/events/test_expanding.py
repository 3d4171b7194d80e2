"""The records of facts: their number, and messages that are too long."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from support.proxy.event_rows import records_of, replayed

from licorne.model.resources.resource import Resource
from licorne.model.values.allocation import Ask
from licorne.model.values.events import ChangeDetail, ChangeType, EventRecord, EventType
from licorne.model.values.facts import HeadroomFact, UnschedulableFact
from licorne.proxy.core.events.ring import expand, message_text

CONFORMANCE: Final = Path(__file__).parents[3] / "conformance"
UNUSED: Final = {ChangeDetail.NODE_OCCUPIED, ChangeDetail.APP_EXPIRED}
"""In no transcript here; `test_log` has them."""
SCENARIOS: Final = (
    *("limits/*", "reload/*", "nodes/*", "dynamic-queues/*", "quotas/*", "gang/*", "reservations/*"),
    *("max-applications/*", "preemption/basic", "preemption/quota-guaranteed"),
)


def ask(key: str = "ask") -> Ask:
    """Return an ask of ten."""
    return Ask(allocation_key=key, application_id="app", resource=Resource({"vcore": 10}), created_at_ns=0)


def request_event(text: str) -> EventRecord:
    """Return the event of the ask with a message."""
    kinds = (EventType.REQUEST, ChangeType.NONE, ChangeDetail.NONE)
    return EventRecord(*kinds, "ask", "app", text, Resource({"vcore": 10}), 7)


def test_each_detail_occurs_and_each_fact_has_as_many_records_as_it_says() -> None:
    """In the recorded transcripts."""
    details: set[ChangeDetail] = set()
    for scenario in SCENARIOS:
        for path in sorted(CONFORMANCE.glob(f"{scenario}.jsonl")):
            if path.name.endswith(".expected.jsonl"):
                continue
            with replayed(path.read_text(encoding="utf-8")) as scheduler:
                facts, _, _ = scheduler.events.facts_since(0)
                assert all(fact.records == len(expand(fact)) for fact in facts)
                details |= {record.detail for record in records_of(scheduler)}

    assert set() == set(ChangeDetail) - UNUSED - details


@pytest.mark.parametrize(
    ("queue_path", "available", "text"),
    [
        (
            "root.a",
            Resource({"vcore": 5}),
            "Request 'ask' does not fit in queue 'root.a' (requested map[vcore:10], available map[vcore:5])",
        ),
        ("root.a", None, "Request 'ask' has become schedulable in queue 'root.a'"),
        (
            None,
            Resource({"vcore": 5}),
            (
                "Request 'ask' exceeds the available user quota "
                "(requested map[vcore:10], available map[vcore:5])"
            ),
        ),
        (None, None, "Request 'ask' fits in the available user quota"),
    ],
)
def test_an_ask_says_what_it_does_not_fit(
    queue_path: str | None, available: Resource | None, text: str
) -> None:
    """And that it fits again."""
    fact = HeadroomFact(1, "rm", 7, ask(), queue_path, available)

    assert [request_event(text)] == expand(fact)


def test_refusals_of_predicates_are_one_message() -> None:
    """With how often each came."""
    fact = UnschedulableFact(1, "rm", 7, ask(), (("no gpu", 3), ("taint", 1)))

    assert [request_event("Unschedulable request 'ask': no gpu (3x); taint (1x); ")] == expand(fact)


@pytest.mark.parametrize("text", ["", "x" * 1024, "é" * 512, "€" * 341])
def test_a_message_of_1024_bytes_is_as_it_is(text: str) -> None:
    """Counted in UTF-8."""
    assert text == message_text(text)


@pytest.mark.parametrize(
    ("text", "kept"), [("x" * 1025, "x" * 1021), ("é" * 513, "é" * 510), ("€" * 342, "€" * 340)]
)
def test_a_longer_message_is_cut(text: str, kept: str) -> None:
    """Not inside of a character."""
    assert f"{kept}..." == message_text(text)
    assert len(message_text(text).encode()) <= 1024
