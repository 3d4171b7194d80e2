"""Whose allocation key it is."""

from __future__ import annotations

from collections.abc import Sequence

from licorne.model.state.partition_state import KeyClaims


class Applications:
    """What applications use, and how often they were asked."""

    def __init__(self) -> None:
        self.used: dict[str, set[str]] = {}
        self.questions = 0

    def used_among(self, application_id: str, allocation_keys: Sequence[str]) -> Sequence[str]:
        self.questions += 1
        return [key for key in allocation_keys if key in self.used.get(application_id, ())]


def test_a_key_has_an_owner_while_it_is_used() -> None:
    """The one that claimed it last is known also afterwards."""
    applications = Applications()
    keys = KeyClaims(applications.used_among)
    applications.used["app"] = {"key"}
    keys.claim("key", "app")

    assert ("app", "app") == (keys.owner_of("key"), keys.claimant_of("key"))
    applications.used["app"].clear()
    assert ("", "app") == (keys.owner_of("key"), keys.claimant_of("key"))


def test_a_key_without_a_claim_has_no_owner() -> None:
    """No application is asked for that."""
    applications = Applications()
    keys = KeyClaims(applications.used_among)

    assert ("", "", 0) == (keys.owner_of("key"), keys.claimant_of("key"), applications.questions)


def test_unused_keys_are_forgotten_at_times() -> None:
    """Those in use are kept, and each application is asked once, not once a key."""
    applications = Applications()
    keys = KeyClaims(applications.used_among)
    applications.used = {"a": {"a0"}, "b": {"b1"}}

    for number in range(4097):
        keys.claim(f"{'ab'[number % 2]}{number}", "ab"[number % 2])

    assert 2 == applications.questions
    assert ("a", "b", "") == tuple(keys.claimant_of(key) for key in ("a0", "b1", "a2"))
