"""Looking up the groups of the users of one request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from support.proxy.resolver_fakes import CountingResolver

from licorne.model.values.messages import ApplicationSubmission, LookedUp, LookUpFailure
from licorne.proxy.core.resolvers.resolver import UserResolver, with_groups


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


BOB, OF_ADMIN = a_submission("bob"), a_submission("bob", "admin")
DEV: Final = ("dev", "ops")
ZED: Final = LookUpFailure("user 'zed' is not in the list of users")


@pytest.mark.parametrize(
    ("submissions", "found", "questions"),
    [
        pytest.param([BOB], [DEV], ["bob"], id="a user without groups is looked up"),
        pytest.param(
            [OF_ADMIN, a_submission("")], [None, None], [], id="groups are not checked, and no user is asked"
        ),
        pytest.param([OF_ADMIN, BOB], [None, DEV], ["bob"], id="one user comes with groups and without"),
        pytest.param(
            [BOB, a_submission("eve"), BOB], [DEV, (), DEV], ["bob", "eve"], id="each is looked up once"
        ),
        pytest.param(
            [a_submission("zed"), BOB], [ZED, DEV], ["zed", "bob"], id="others are looked up after a failure"
        ),
    ],
)
def test_users_without_groups_are_looked_up(
    submissions: list[ApplicationSubmission], found: list[LookedUp], questions: list[str]
) -> None:
    """What was found goes along with the application."""
    source = CountingResolver({"bob": DEV, "eve": ()})

    assert found == LookUps().look_up(source, *submissions)
    assert questions == source.questions


def test_a_broken_resolver_refuses_the_user_and_nothing_else() -> None:
    """What an embedder's resolver raises is the reason."""
    failure = LookUpFailure("user 'bob': the resolver failed: ZeroDivisionError('bob')")

    assert [failure] == LookUps().look_up(BrokenResolver(), BOB)


def test_the_engine_learns_of_the_wait() -> None:
    """Once a request, and only if there is a user to look up."""
    look_ups, source = LookUps(), CountingResolver({"bob": ("dev",)})

    look_ups.look_up(source, a_submission("bob"), a_submission("zed"))
    look_ups.look_up(source, a_submission("bob", "dev"))
    look_ups.look_up(None, a_submission("bob"))

    assert 1 == look_ups.waits
