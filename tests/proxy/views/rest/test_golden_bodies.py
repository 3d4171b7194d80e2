"""All recorded answers of the REST interface, key by key: names, types, units, statuses and headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from support.proxy.golden_bodies import GoldenAnswer, differences, golden_answers, parsed
from support.proxy.rest_clients import Reader
from support.proxy.rest_scenario import rest_scenario

DIFFERENT: Final = {
    r"\.allocationLog": "an ask is tried again only when something has changed: there are fewer entries",
    r"\.reason: .*configuration:\d+:\d+:": "why a configuration is refused is in our words, with a position",
}
"""Deliberate differences: how a difference reads, with its reason; docs/deviations.md has them, too."""
ELSEWHERE: Final = {
    "metrics",
    *("events_batch", "events_batch_count", "events_batch_count_start", "events_batch_start_high"),
    *("events_stream", "err_stream_count"),
    *("err_events_count0", "err_events_count_text", "err_events_start_text", "err_events_negative"),
}
"""The answers of other parts of the interface."""
ANSWERS: Final = {answer.name: answer for answer in golden_answers()}


@pytest.fixture(scope="module")
def recorded() -> Iterator[Reader]:
    """Give the recorded state behind the REST interface."""
    with rest_scenario() as scheduler:
        for _ in range(2):  # The first one finds the request that was refused; it was recorded before that.
            scheduler.check_health()
        scheduler.record_history()
        yield Reader(scheduler)


def answered(recorded: Reader, golden: GoldenAnswer) -> Any:
    headers = {"accept": golden.accept} if golden.accept else {}
    return recorded.client.request(golden.method, golden.url, headers=headers, content=golden.body or None)


@pytest.mark.parametrize("name", sorted(ANSWERS.keys() - ELSEWHERE))
def test_an_answer_is_as_it_was_recorded(recorded: Reader, name: str) -> None:
    """But for the deliberate differences, which must differ."""
    golden = ANSWERS[name]
    answer = answered(recorded, golden)

    assert golden.status == answer.status_code
    assert golden.content_type == answer.headers.get("content-type", "")
    assert golden.allow == answer.headers.get("allow", "")
    assert golden.location == answer.headers.get("location", "")
    if golden.method == "HEAD":
        return
    found = differences(golden.document(), parsed(answer.text, golden.content_type))
    assert [] == [text for text in found if not any(re.search(pattern, text) for pattern in DIFFERENT)]


def test_each_deliberate_difference_is_one(recorded: Reader) -> None:
    """What no longer differs is taken off the table; and no exception names an answer that there is not."""
    found = [
        text
        for name in sorted(ANSWERS.keys() - ELSEWHERE)
        for golden in [ANSWERS[name]]
        if golden.method != "HEAD"
        for text in differences(
            golden.document(), parsed(answered(recorded, golden).text, golden.content_type)
        )
    ]

    assert [] == [pattern for pattern in DIFFERENT if not any(re.search(pattern, text) for text in found)]
    assert (82, set()) == (len(ANSWERS), ELSEWHERE - ANSWERS.keys())


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"a": 1}, {}),
        ({}, {"a": 1}),
        ({"a": 1}, {"a": "1"}),
        ({"a": 1}, {"a": True}),
        ({"a": "<time>"}, {"a": "1s"}),
        ([1], [1, 1]),
        ([{"nodeID": "a", "x": 1}], [{"nodeID": "a", "x": 2}]),
        (None, []),
    ],
)
def test_a_difference_of_keys_types_and_values_is_found(wanted: object, found: object) -> None:
    """An empty list is no null, and a text no number."""
    assert differences(wanted, found)
    assert not differences(wanted, wanted if wanted != {"a": "<time>"} else {"a": 1})
