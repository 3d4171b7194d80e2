"""Looking up the groups of the users of one request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from support.proxy.resolver_fakes import CountingResolver

from licorne.model.values.messages import ApplicationSubmission
from licorne.model.values.users import LookedUp, LookUpFailure
from licorne.proxy.resolvers.look_up import with_groups
from licorne.proxy.resolvers.resolver import UserResolver


def a_submission(user: str, *groups: str) -> ApplicationSubmission:
    return ApplicationSubmission(
        application_id="app",
        queue_name="root.leaf",
        partition="[rm]default",
        user=user,
        groups=groups,
        tags={},
        execution_timeout_ms=0,
        placeholder_ask=None,
        gang_scheduling_style="",
    )


class LookUps:
    """Looks up for an engine that counts its waits."""

    def __init__(self) -> None:
        self.waits = 0

    @contextmanager
    def blocking(self) -> Iterator[None]:
        self.waits += 1
        yield

    def look_up(self, resolver: UserResolver | None, *submissions: ApplicationSubmission) -> list[LookedUp]:
        return [entry.looked_up for entry in with_groups(submissions, resolver, self.blocking)]


class BrokenResolver:
    """A resolver with a bug."""

    def groups_of(self, user: str) -> tuple[str, ...]:
        raise ZeroDivisionError(user)


def test_who_came_without_groups_is_looked_up() -> None:
    """What was found goes along with the application."""
    source = CountingResolver({"bob": ("dev", "ops")})

    assert [("dev", "ops")] == LookUps().look_up(source, a_submission("bob"))


def test_what_an_rm_says_about_groups_is_not_checked() -> None:
    """The resolver is not asked about a user with groups, nor about no user at all."""
    source = CountingResolver({"bob": ("dev",)})

    assert [None, None] == LookUps().look_up(source, a_submission("bob", "admin"), a_submission(""))
    assert [] == source.questions


def test_named_groups_stand_beside_those_that_are_looked_up() -> None:
    """One user may come with groups and without, in one request."""
    source = CountingResolver({"bob": ("dev",)})

    assert [None, ("dev",)] == LookUps().look_up(source, a_submission("bob", "admin"), a_submission("bob"))


def test_each_user_of_a_request_is_looked_up_once() -> None:
    """However many applications the user has in it."""
    source = CountingResolver({"bob": ("dev",), "eve": ("ops",)})
    users = [a_submission(user) for user in ("bob", "eve", "bob", "bob")]

    assert [("dev",), ("ops",), ("dev",), ("dev",)] == LookUps().look_up(source, *users)
    assert ["bob", "eve"] == source.questions


def test_a_failure_goes_along_with_its_application_alone() -> None:
    """Others of the same request are looked up all the same."""
    source = CountingResolver({"bob": ("dev",)})

    found = LookUps().look_up(source, a_submission("zed"), a_submission("bob"))

    assert [LookUpFailure("user 'zed' is not in the list of users"), ("dev",)] == found


def test_a_broken_resolver_refuses_the_user_and_nothing_else() -> None:
    """What an embedder's resolver raises is the reason."""
    found = LookUps().look_up(BrokenResolver(), a_submission("bob"))

    assert [LookUpFailure("user 'bob': the resolver failed: ZeroDivisionError('bob')")] == found


def test_the_engine_learns_of_the_wait() -> None:
    """Once a request, and only if there is a user to look up."""
    look_ups, source = LookUps(), CountingResolver({"bob": ("dev",)})

    look_ups.look_up(source, a_submission("bob"), a_submission("zed"))
    look_ups.look_up(source, a_submission("bob", "dev"))
    look_ups.look_up(None, a_submission("bob"))

    assert 1 == look_ups.waits
