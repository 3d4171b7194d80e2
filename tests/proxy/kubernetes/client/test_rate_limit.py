"""Tokens in a bucket: how long each request waits."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.proxy.kubernetes.client.api_client import TokenBucket

CASES: Final[dict[str, tuple[list[float], list[float]]]] = {
    "what is in the bucket is not waited for": ([0, 0], [0.0, 0.0]),
    "each request more waits for its token": ([0, 0, 0, 0], [0.0, 0.0, 0.5, 1.0]),
    "the bucket fills with time": ([0, 0, 0, 1], [0.0, 0.0, 0.5, 0.0]),
    "it is never fuller than its capacity": ([0, 100, 100, 100], [0.0, 0.0, 0.0, 0.5]),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_request_waits_until_it_has_its_token(case: tuple[list[float], list[float]]) -> None:
    """The bucket holds two tokens, and two come in a second."""
    times, waits = case
    clock = iter([0.0, *times])
    bucket = TokenBucket(2.0, 2, now=lambda: next(clock))

    assert waits == [bucket.take() for _ in times]


@given(pauses=st.lists(st.integers(min_value=0, max_value=3_000), min_size=1, max_size=60))
def test_in_no_second_there_are_more_requests_than_allowed(pauses: list[int]) -> None:
    """At most the capacity and what comes in a second."""
    clock = [0.0]
    bucket = TokenBucket(4.0, 3, now=lambda: clock[0])
    made = []
    for pause_ms in pauses:
        clock[0] += pause_ms / 1000
        made.append(clock[0] + bucket.take())

    assert all(len([time for time in made if begin <= time < begin + 1.0 - 1e-6]) <= 3 + 4 for begin in made)
