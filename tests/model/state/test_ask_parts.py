"""Which allocations the asks of a partition are for."""

from __future__ import annotations

from collections.abc import Sequence

from licorne.model.state.ask_parts import AskParts


class Used:
    """The keys that applications use."""

    def __init__(self) -> None:
        self.keys: set[tuple[str, str]] = set()
        self.parts = AskParts(self.among)

    def among(self, application_id: str, allocation_keys: Sequence[str]) -> list[str]:
        return [key for key in allocation_keys if (application_id, key) in self.keys]

    def further(self, count: int, ask_key: str = "k") -> list[str]:
        keys = self.parts.further("app", ask_key, count)
        self.keys |= {("app", key) for key in keys}
        return keys

    def end(self, *keys: str) -> None:
        self.keys -= {("app", key) for key in keys}

    def named(self, uuid: str) -> str:
        """Note an allocation of the ask `k` that the RM has named; return its key."""
        key = f"k#allocation:{uuid}"
        self.keys.add(("app", key))
        self.parts.note("app", key)
        return key


def test_an_ask_begins_with_its_own_key() -> None:
    """Others follow, by number."""
    used = Used()

    assert ["k", "k#allocation-2", "k#allocation-3"] == used.further(3)
    assert ["k", "k#allocation-2", "k#allocation-3"] == used.parts.of("app", "k")
    assert ["l"] == used.further(1, "l")


def test_a_number_is_not_given_again_while_a_part_is_left() -> None:
    """A late message about the part that has ended would be about another one."""
    used = Used()
    used.further(3)
    used.end("k", "k#allocation-3")

    assert ["k#allocation-4", "k#allocation-5"] == used.further(2)
    used.end("k#allocation-2", "k#allocation-4")
    assert ["k#allocation-6"] == used.further(1)


def test_an_ask_without_a_part_left_begins_anew() -> None:
    """As any key that is free."""
    used = Used()
    used.further(3)
    used.end("k", "k#allocation-2", "k#allocation-3")

    assert ([], False) == (used.parts.of("app", "k"), bool(used.further(0)))
    assert not used.parts.has_parts("app", "k")
    assert ["k", "k#allocation-2"] == used.further(2)


def test_parts_of_an_ask_that_has_ended_are_not_returned() -> None:
    """Only what is in use."""
    used = Used()
    used.further(2)
    used.end("k")

    assert ["k#allocation-2"] == used.parts.of("app", "k")
    assert [] == used.parts.of("other", "k")


def test_a_part_that_the_rm_has_named_is_found_by_its_uuid() -> None:
    """Others have the UUID as their key, or are not known."""
    used = Used()

    key = used.named("u")

    assert key == used.parts.with_uuid("app", "u")
    assert "v" == used.parts.with_uuid("app", "v")
    assert [key] == used.parts.of("app", "k")


def test_numbers_go_on_after_those_of_an_earlier_scheduler() -> None:
    """The RM has reported what it gave."""
    used = Used()
    used.keys.add(("app", "k#allocation-7"))
    used.parts.note("app", "k#allocation-7")

    assert ["k#allocation-8"] == used.further(1)


def test_an_ask_with_parts_is_found_without_its_application() -> None:
    """Also if the part with the ask's own key has ended; not if all have."""
    used = Used()
    used.further(2)
    used.end("k")
    found = used.parts.owner_of("k")
    used.end("k#allocation-2")

    assert ("app", "", "") == (found, used.parts.owner_of("k"), used.parts.owner_of("l"))


def test_what_has_ended_is_forgotten() -> None:
    """However many allocations an ask has had, and however many asks there were."""
    used = Used()
    used.further(1)
    for _ in range(10_000):
        (key,) = used.further(1)
        used.end(key)
    for number in range(10_000):
        used.end(used.named(str(number)))
    for number in range(5_000):
        used.end(*used.further(2, f"l{number}"))

    kept = sum(map(len, used.parts._parts.values()))
    assert kept == used.parts._noted <= 4_100
    assert len(used.parts._keys) <= kept
    assert ["k#allocation-10002"] == used.further(1)
