"""The limit of time for resolvers."""

from __future__ import annotations

import pytest
from support.proxy.resolver_fakes import CountingResolver, WaitingResolver

from licorne.proxy.core.resolvers.partition_resolvers import TimedResolver
from licorne.proxy.core.resolvers.resolver import ResolverUnavailableError, UserResolutionError

AT_ONCE = 0.01


def test_an_answer_in_time_is_the_answer() -> None:
    """The limit is not felt by who is answered."""
    assert ("dev",) == TimedResolver(CountingResolver({"bob": ("dev",)})).groups_of("bob")


def test_a_failure_in_time_is_the_failure() -> None:
    """What the resolver raises on its thread is raised where it was asked."""
    with pytest.raises(UserResolutionError, match="user 'zed' is not in the list of users"):
        TimedResolver(CountingResolver()).groups_of("zed")


def test_who_gets_no_answer_in_time_waits_no_longer() -> None:
    """The error names the user and the time."""
    source = WaitingResolver()

    with pytest.raises(ResolverUnavailableError, match=r"^user 'bob': no answer within 0\.01 s$"):
        TimedResolver(source, timeout_seconds=AT_ONCE).groups_of("bob")

    source.may_answer.set()


def test_a_look_up_that_hangs_is_joined_and_not_repeated() -> None:
    """A second question for a user whose look-up hangs costs no second thread."""
    source = WaitingResolver()
    resolver = TimedResolver(source, timeout_seconds=AT_ONCE)
    for _ in range(3):
        with pytest.raises(ResolverUnavailableError):
            resolver.groups_of("bob")

    source.may_answer.set()

    assert ["bob"] == source.questions


def test_look_ups_that_hang_are_limited_in_number() -> None:
    """When all look-ups hang, no other user is looked up, and the error says why."""
    source = WaitingResolver()
    resolver = TimedResolver(source, timeout_seconds=AT_ONCE, look_ups_max=2)
    for user in ("ada", "bob"):
        with pytest.raises(ResolverUnavailableError):
            resolver.groups_of(user)

    with pytest.raises(
        ResolverUnavailableError,
        match=r"^user 'eve' was not looked up within 0\.01 s: 2 other look-ups are without an answer$",
    ):
        resolver.groups_of("eve")

    source.may_answer.set()
    assert ["ada", "bob"] == source.questions


def test_look_ups_that_end_make_room_for_others() -> None:
    """One after the other, any number of users can be looked up."""
    resolver = TimedResolver(CountingResolver(dict.fromkeys("abcde", ("dev",))), look_ups_max=1)

    assert [("dev",)] * 5 == [resolver.groups_of(user) for user in "abcde"]


def test_a_failure_gives_its_turn_back_too() -> None:
    """Unknown users do not use up the look-ups."""
    source = CountingResolver({"bob": ("dev",)})
    resolver = TimedResolver(source, look_ups_max=1)
    for _ in range(3):
        with pytest.raises(UserResolutionError):
            resolver.groups_of("zed")

    assert ("dev",) == resolver.groups_of("bob")
