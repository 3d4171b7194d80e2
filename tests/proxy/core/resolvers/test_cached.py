"""The memory of resolvers: how long it lasts, and how little it asks."""

from __future__ import annotations

import pytest
from support.proxy.resolver_fakes import CountingResolver, StandingClock

from licorne.proxy.core.resolvers.resolver import CachedResolver, UserResolutionError


class Scene:
    """A cache with a clock, and a resolver that knows `bob`."""

    def __init__(self, *users: str, capacity: int = 10) -> None:
        self.clock = StandingClock()
        self.source = CountingResolver(dict.fromkeys(users or ("bob",), ("dev",)))
        self.cache = CachedResolver(self.source, self.clock, capacity=capacity)

    def ask(self, user: str, after_seconds: int = 0) -> tuple[str, ...] | str:
        """Return the groups, or the words of the failure."""
        self.clock.advance(after_seconds)
        try:
            return self.cache.groups_of(user)
        except UserResolutionError as error:
            return str(error)


def test_an_answer_is_kept_for_five_minutes() -> None:
    """A fresh answer comes from memory, an old one from the resolver."""
    scene = Scene()
    answers = [scene.ask("bob")]
    scene.source.groups["bob"] = ("ops",)

    answers += [scene.ask("bob", after_seconds=299), scene.ask("bob", after_seconds=1)]

    assert [("dev",), ("dev",), ("ops",)] == answers


def test_a_failure_is_kept_for_half_a_minute() -> None:
    """Within half a minute it is repeated, with a word that it is an old one; then the resolver is asked."""
    scene = Scene()
    failure = "user 'zed' is not in the list of users"

    answers = [scene.ask("zed"), scene.ask("zed", after_seconds=29)]
    scene.source.groups["zed"] = ("new",)

    assert [failure, f"user resolution failed, cached data returned: {failure}"] == answers
    assert ["zed"] == scene.source.questions
    assert ("new",) == scene.ask("zed", after_seconds=1)


def test_a_user_may_be_known_to_be_in_no_group() -> None:
    """No groups is an answer like others, and no failure."""
    scene = Scene()
    scene.source.groups["bob"] = ()

    assert [(), ()] == [scene.ask("bob"), scene.ask("bob")]
    assert ["bob"] == scene.source.questions


def test_the_oldest_answer_makes_room() -> None:
    """Beyond its capacity the cache forgets what it has known longest."""
    scene = Scene(*"abc", capacity=2)

    for user in "abcbca":
        scene.ask(user)

    assert list("abca") == scene.source.questions
    assert 2 == len(scene.cache)


def test_an_answer_given_anew_is_the_youngest() -> None:
    """A user who is asked for again outlasts one who was asked for in between."""
    scene = Scene(*"abcd", capacity=3)
    for user, seconds in (("a", 0), ("b", 0), ("a", 300), ("c", 0), ("d", 0)):
        scene.ask(user, after_seconds=seconds)

    scene.ask("a")

    assert list("abacd") == scene.source.questions


def test_once_a_minute_answers_past_their_time_are_cleared_away() -> None:
    """A failure that has been stale for half a minute goes when anybody is looked up."""
    scene = Scene("bob", "eve")
    scene.ask("zed")

    sizes = []
    for user, seconds in (("bob", 59), ("eve", 1)):
        scene.ask(user, after_seconds=seconds)
        sizes.append(len(scene.cache))

    assert [2, 2] == sizes


def test_a_clock_that_is_set_back_keeps_no_answer_for_longer() -> None:
    """An answer from the future is none; otherwise it would hold until the clock is there again."""
    scene = Scene()
    scene.ask("bob", after_seconds=1000)
    scene.source.groups["bob"] = ("ops",)

    assert ("ops",) == scene.ask("bob", after_seconds=-900)


def test_after_an_outage_users_are_refused_for_five_seconds_without_a_try() -> None:
    """A request with many users waits for a directory that is down only once; what is in memory is given."""
    scene = Scene("bob", "eve", "joe")
    scene.ask("joe")
    scene.source.is_down = True

    answers = [scene.ask("bob"), scene.ask("eve", after_seconds=4), scene.ask("joe")]

    assert "the directory is down" == answers[0]
    assert "user 'eve' was not looked up after a failure: the directory is down" == answers[1]
    assert ("dev",) == answers[2]
    assert ["joe", "bob"] == scene.source.questions


def test_five_seconds_after_an_outage_the_resolver_is_tried_again() -> None:
    """A user who was refused without a try is not remembered as unknown."""
    scene = Scene("bob", "eve")
    scene.source.is_down = True
    scene.ask("bob")
    scene.ask("eve")
    scene.source.is_down = False

    assert ("dev",) == scene.ask("eve", after_seconds=5)


def test_an_answer_ends_an_outage() -> None:
    """As soon as the resolver answers any look-up, also one that began before, others are looked up."""
    scene = Scene("bob", "eve", "joe")
    scene.source.is_down = True

    def come_back() -> None:
        scene.ask("eve")
        scene.source.is_down = False

    scene.source.meanwhile = come_back
    answers = [scene.ask("bob"), scene.ask("joe")]

    assert [("dev",), ("dev",)] == answers
    assert ["bob", "eve", "joe"] == scene.source.questions


def test_a_user_who_is_not_known_is_no_outage() -> None:
    """The directory answered: the next user is looked up."""
    scene = Scene()
    scene.ask("zed")

    assert ("dev",) == scene.ask("bob")


def test_a_cache_must_keep_something() -> None:
    """A capacity of nothing is a mistake."""
    with pytest.raises(ValueError, match="a cache of 0 users keeps nothing"):
        Scene(capacity=0)
