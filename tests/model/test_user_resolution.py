"""From the submitted user to the user of an application."""

from __future__ import annotations

import pytest

from licorne.model.user_resolution import (
    CachedResolver,
    NoResolver,
    StaticResolver,
    UserResolutionError,
    UserResolver,
    resolve,
)
from licorne.model.users import User

SECOND_NS = 1_000_000_000
KNOWN = StaticResolver({"alice": ["staff", "dev"], "DOMAIN\\carol": ["staff"]})
INVALID = "invalid username, it contains invalid characters"


def resolved(user: str, *groups: str, forced: bool = False, resolver: UserResolver = KNOWN) -> User | str:
    return resolve(user, groups, forced=forced, resolver=resolver)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns

    def advance(self, seconds: int) -> None:
        self.now_ns += seconds * SECOND_NS


class CountingResolver:
    """A resolver with a list that can change, and that counts the questions."""

    def __init__(self, groups: dict[str, tuple[str, ...]]) -> None:
        self.groups = groups
        self.questions = 0

    def groups_of(self, user: str) -> tuple[str, ...]:
        self.questions += 1
        return StaticResolver(self.groups).groups_of(user)


# ------------------------------------------------------------------------------------------ resolving


def test_submitted_groups_are_taken_as_they_are() -> None:
    """The resolver is not asked when the RM names the groups."""
    assert User("bob", ("b", "a")) == resolved("bob", "b", "a")


def test_a_user_without_groups_gets_those_of_the_resolver() -> None:
    """Without submitted groups the resolver decides."""
    assert User("alice", ("staff", "dev")) == resolved("alice")


def test_no_user_is_refused() -> None:
    """An application needs a user, groups or not."""
    assert ("empty user cannot resolve",) * 2 == (resolved(""), resolved("", "dev"))


def test_a_forced_application_without_user_runs_for_nobody() -> None:
    """A forced application gets a user; what groups came with no user is not believed."""
    assert User("nobody", ("nogroup",)) == resolved("", forced=True)
    assert User("nobody", ("nogroup",)) == resolved("", "admin", forced=True)


def test_a_user_whom_the_resolver_does_not_know_is_refused() -> None:
    """The words of the resolver are the words of the refusal."""
    assert resolved("zed") == "user 'zed' is not in the list of users"


def test_a_forced_application_of_an_unknown_user_has_no_group() -> None:
    """A forced application is not refused for want of groups."""
    assert User("zed", ("nogroup",)) == resolved("zed", forced=True)


def test_a_forced_application_has_its_groups_resolved() -> None:
    """Forced or not, known groups are used."""
    assert User("alice", ("staff", "dev")) == resolved("alice", forced=True)


@pytest.mark.parametrize("user", ["9digit", "with space", "a$b", "bob\n", "ünal"])
def test_a_submitted_name_must_look_like_one(user: str) -> None:
    """With submitted groups nobody vouches for the name, so its characters are checked."""
    assert resolved(user, "dev") == INVALID


@pytest.mark.parametrize("user", ["machine$", "a#b", "a/b", "_under", "al.ice", "system:account:x@y"])
def test_names_of_machines_and_services_are_names(user: str) -> None:
    """Names may have the characters of service accounts, and one dollar sign at the end."""
    assert User(user, ("dev",)) == resolved(user, "dev")


def test_whom_the_resolver_knows_may_have_any_name() -> None:
    """A name that a resolver vouches for is not checked."""
    assert User("DOMAIN\\carol", ("staff",)) == resolved("DOMAIN\\carol")


def test_a_forced_name_is_checked() -> None:
    """Only for forced applications is a resolved name checked too, as recorded."""
    assert resolved("DOMAIN\\carol", forced=True) == INVALID


# ------------------------------------------------------------------------------------------ resolvers


def test_without_a_resolver_each_user_is_a_group() -> None:
    """The default puts each user into the group of the same name."""
    assert User("nosuchuser", ("nosuchuser",)) == resolved("nosuchuser", resolver=NoResolver())


def test_a_static_list_does_not_follow_the_list_it_was_made_from() -> None:
    """The resolver keeps a copy."""
    source = {"bob": ["dev"]}
    resolver = StaticResolver(source)

    source["bob"].append("admin")

    assert resolver.groups_of("bob") == ("dev",)


# ---------------------------------------------------------------------------------------------- cache


def test_an_answer_is_kept_for_five_minutes() -> None:
    """A fresh answer comes from memory, an old one from the resolver."""
    clock, source = Clock(), CountingResolver({"bob": ("dev",)})
    cache = CachedResolver(source, clock)

    answers = [cache.groups_of("bob")]
    source.groups["bob"] = ("ops",)
    clock.advance(299)
    answers.append(cache.groups_of("bob"))
    clock.advance(1)
    answers.append(cache.groups_of("bob"))

    assert ([("dev",), ("dev",), ("ops",)], 2) == (answers, source.questions)


def test_a_failure_is_kept_for_half_a_minute() -> None:
    """Within half a minute the failure is repeated, with a word that it is an old one."""
    clock, source = Clock(), CountingResolver({})
    cache = CachedResolver(source, clock)

    with pytest.raises(UserResolutionError, match=r"^user 'bob' is not in the list of users$"):
        cache.groups_of("bob")
    clock.advance(29)
    with pytest.raises(
        UserResolutionError, match=r"^user resolution failed, cached data returned: user 'bob'"
    ):
        cache.groups_of("bob")

    assert source.questions == 1


def test_after_a_failure_the_user_is_asked_for_again() -> None:
    """A failure past its time is not repeated: the resolver is asked at once."""
    clock, source = Clock(), CountingResolver({})
    cache = CachedResolver(source, clock)
    with pytest.raises(UserResolutionError):
        cache.groups_of("bob")

    source.groups["bob"] = ("dev",)
    clock.advance(30)

    assert cache.groups_of("bob") == ("dev",)


def test_a_user_may_be_known_to_be_in_no_group() -> None:
    """No groups is an answer like others, and no failure."""
    source = CountingResolver({"bob": ()})
    cache = CachedResolver(source, Clock())

    assert [(), ()] == [cache.groups_of("bob"), cache.groups_of("bob")]
    assert source.questions == 1


def test_submitted_groups_do_not_get_into_the_cache() -> None:
    """What an RM says about one application is not believed for the next."""
    cache = CachedResolver(KNOWN, Clock())

    resolved("alice", "admin", resolver=cache)

    assert User("alice", ("staff", "dev")) == resolved("alice", resolver=cache)


def test_the_oldest_answer_makes_room() -> None:
    """Beyond its capacity the cache forgets what it has known longest."""
    clock, source = Clock(), CountingResolver(dict.fromkeys("abc", ("x",)))
    cache = CachedResolver(source, clock, capacity=2)

    for user in "abcbca":
        cache.groups_of(user)

    assert (4, 2) == (source.questions, len(cache))


def test_an_answer_given_anew_is_the_youngest() -> None:
    """A user who is asked for again outlasts one who was asked for in between."""
    clock, source = Clock(), CountingResolver(dict.fromkeys("abcd", ("x",)))
    cache = CachedResolver(source, clock, capacity=3)
    for user, seconds in (("a", 0), ("b", 300), ("a", 0), ("c", 0), ("d", 0)):
        cache.groups_of(user)
        clock.advance(seconds)

    cache.groups_of("a")

    assert source.questions == 5


def test_stale_answers_can_be_cleared_away() -> None:
    """Answers past their time go, fresh ones stay."""
    clock = Clock()
    cache = CachedResolver(KNOWN, clock)
    cache.groups_of("alice")
    clock.advance(200)
    cache.groups_of("DOMAIN\\carol")

    clock.advance(100)
    cache.forget_stale()

    assert len(cache) == 1


def test_a_cache_must_keep_something() -> None:
    """A capacity of nothing is a mistake."""
    with pytest.raises(ValueError, match="a cache of 0 users keeps nothing"):
        CachedResolver(KNOWN, Clock(), capacity=0)
