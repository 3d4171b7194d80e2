"""Registrations and configurations: what is taken, what is refused, and what that leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pytest

from licorne.model.cluster import Cluster, Reconfigured
from licorne.model.configuration.problems import ConfigurationError
from licorne.model.configuration.schema import PartitionConfig, SchedulerConfig
from licorne.model.errors import RequestError
from licorne.model.partition import Partition
from licorne.model.values.messages import Registration


def a_text(*partitions: str, queue: str = "q", rules: str = "") -> str:
    """Return a configuration with these partitions."""
    rows = [
        f"{{name: {name}, {rules} queues: [{{name: root, queues: [{{name: {queue}}}]}}]}}"
        for name in partitions
    ]
    return f"partitions: [{', '.join(rows)}]"


class FakePartition:
    """Remembers what becomes of it."""

    def __init__(self, name: str, config: PartitionConfig) -> None:
        self.name = name
        self.configs = [config]
        self.ended = False

    def reconfigure(self, config: PartitionConfig) -> int:
        assert not self.ended
        self.configs.append(config)
        return len(self.configs) - 1

    def restore(self, before: int) -> None:
        del self.configs[before:]


class FakeMaker:
    """Makes fake partitions, in order; may refuse a configuration."""

    def __init__(self) -> None:
        self.made: list[FakePartition] = []
        self.dropped: list[str] = []
        self.refuses = False
        self.fails_to_commit = False

    def prepare(self, config: SchedulerConfig) -> None:
        if self.refuses:
            raise RequestError(f"{len(config.partitions)} partitions cannot be made")

    def make(self, name: str, config: PartitionConfig) -> Partition:
        self.made.append(FakePartition(name, config))
        return self.made[-1]  # type: ignore[return-value]  # what a cluster asks of a partition

    def commit(self, partitions: Mapping[str, Partition]) -> None:
        if self.fails_to_commit:
            raise ZeroDivisionError(f"{len(partitions)} partitions")

    def drop(self, partition: Partition) -> None:
        self.dropped.append(partition.name)


class Driven:
    """A cluster with a maker that remembers."""

    def __init__(self) -> None:
        self.maker = FakeMaker()
        self.cluster = Cluster()

    def register(self, text: str, rm_id: str = "rm") -> list[str]:
        registration = Registration(rm_id=rm_id, configuration=text)
        return self._end(self.cluster.register(registration, self.maker))

    def update(self, text: str, rm_id: str = "rm") -> list[str]:
        return self._end(self.cluster.update_configuration(rm_id, text, self.maker))

    def _end(self, done: Reconfigured) -> list[str]:
        for partition in done.ended:
            fake = cast("FakePartition", partition)
            assert not fake.ended, "it ends twice"
            fake.ended = True
        return list(done.partitions)

    def names(self) -> list[str]:
        return [partition.name for partition in self.cluster.partitions()]


@pytest.fixture
def driven() -> Driven:
    """Give an empty cluster."""
    return Driven()


# --------------------------------------------------------------------------------------- registration


def test_a_registration_makes_its_partitions(driven: Driven) -> None:
    """By their full names."""
    assert ["[rm]default", "[rm]gpu"] == driven.register(a_text("default", "gpu")) == driven.names()


def test_an_empty_text_is_the_default_configuration(driven: Driven) -> None:
    """One partition; at registration and in an update."""
    registered = driven.register("")
    updated = driven.update(a_text("default", "gpu"))

    assert (["[rm]default"], ["[rm]default", "[rm]gpu"]) == (registered, updated)
    assert ["[rm]default"] == driven.update("")


def test_several_managers_have_partitions_of_their_own(driven: Driven) -> None:
    """Of the same short name; those of the manager that registered first are listed first."""
    driven.register(a_text("default"), "b")
    driven.register(a_text("default"), "a")

    assert ["[b]default", "[a]default"] == driven.names()


def test_a_second_registration_ends_what_the_first_had(driven: Driven) -> None:
    """Of this manager alone; all is made anew, also what is named the same."""
    driven.register(a_text("default"), "other")
    driven.register(a_text("default", "gpu"))
    driven.register(a_text("default"))

    assert [False, True, True, False] == [partition.ended for partition in driven.maker.made]
    assert ["[other]default", "[rm]default"] == driven.names()


@pytest.mark.parametrize(
    "text", ["partitions: 7", a_text("same", "same"), a_text("default", queue="'no.dots'")]
)
def test_a_refused_registration_ends_nothing(driven: Driven, text: str) -> None:
    """The manager goes on with what it had."""
    driven.register(a_text("default"))

    with pytest.raises(ConfigurationError):
        driven.register(text)

    assert [False] == [partition.ended for partition in driven.maker.made]


def test_a_registration_that_cannot_be_prepared_ends_nothing(driven: Driven) -> None:
    """What its partitions need is looked at before anything ends."""
    driven.register(a_text("default"))
    driven.maker.refuses = True

    with pytest.raises(RequestError, match="cannot be made"):
        driven.register(a_text("default", "gpu"))

    assert [False] == [partition.ended for partition in driven.maker.made]


def test_a_manager_has_a_name(driven: Driven) -> None:
    """Without one its partitions could not be distinguished."""
    with pytest.raises(RequestError, match="the rmID is empty"):
        driven.register(a_text("default"), "")


def test_a_registration_passes_over_rules_that_cannot_be_used(driven: Driven) -> None:
    """The partition works with the default rule."""
    rules = "placementrules: [{name: unheard}],"

    assert ["[rm]default"] == driven.register(a_text("default", rules=rules))


# --------------------------------------------------------------------------------------------- update


@pytest.mark.parametrize("registers", [True, False])
def test_an_update_needs_a_partition(driven: Driven, *, registers: bool) -> None:
    """A manager that never registered has none, nor one whose configuration has none."""
    if registers:
        driven.register("partitions: []")

    with pytest.raises(RequestError, match="RM rm has no active partitions, make sure it is registered"):
        driven.update(a_text("default"))


def test_an_update_of_one_manager_leaves_the_others(driven: Driven) -> None:
    """Their partitions hear nothing."""
    driven.register(a_text("default"), "a")
    driven.register(a_text("default"), "b")

    driven.update(a_text("default", queue="other"), "b")

    assert [1, 2] == [len(partition.configs) for partition in driven.maker.made]


def test_the_same_text_changes_nothing(driven: Driven) -> None:
    """Not even with rules that an update would be refused for: they are in use already."""
    text = a_text("default", rules="placementrules: [{name: unheard}],")
    driven.register(text)

    assert ["[rm]default"] == driven.update(text)
    assert [1] == [len(partition.configs) for partition in driven.maker.made]


def test_the_text_that_was_used_last_is_the_one_that_is_compared(driven: Driven) -> None:
    """To go back to an earlier one is a change."""
    first, second = a_text("default"), a_text("default", queue="other")
    driven.register(first)
    for text in (second, second, first):
        driven.update(text)

    assert [3] == [len(partition.configs) for partition in driven.maker.made]


def test_a_refused_text_is_not_the_one_in_use(driven: Driven) -> None:
    """Sent again it is refused again, and the former one still changes nothing."""
    broken = a_text("default", queue="'no.dots'")
    driven.register(a_text("default"))

    for _ in range(2):
        with pytest.raises(ConfigurationError):
            driven.update(broken)
    driven.update(a_text("default"))

    assert [1] == [len(partition.configs) for partition in driven.maker.made]


def test_an_update_adds_changes_and_removes_partitions(driven: Driven) -> None:
    """Those that stay go on with another configuration."""
    driven.register(a_text("default", "old"))

    names = driven.update(a_text("new", "default", queue="other"))

    default, old, new = driven.maker.made
    assert ["[rm]default", "[rm]new"] == sorted(names) == driven.names()
    assert (2, False, True, "[rm]new") == (len(default.configs), default.ended, old.ended, new.name)


def test_a_partition_that_comes_back_is_a_new_one(driven: Driven) -> None:
    """Nothing of the one before is left."""
    driven.register(a_text("default", "gpu"))
    driven.update(a_text("default"))
    driven.update(a_text("default", "gpu"))

    assert [False, True, False] == [partition.ended for partition in driven.maker.made]


def test_an_update_with_rules_that_cannot_be_used_is_refused(driven: Driven) -> None:
    """At none of its partitions anything has changed."""
    driven.register(a_text("default", "gpu"))

    with pytest.raises(ConfigurationError, match="unheard"):
        driven.update(a_text("default", "gpu", queue="other", rules="placementrules: [{name: unheard}],"))

    assert [1, 1] == [len(partition.configs) for partition in driven.maker.made]


def test_an_update_that_cannot_be_prepared_changes_nothing(driven: Driven) -> None:
    """And the next one is compared with the text that is in use."""
    driven.register(a_text("default"))
    driven.maker.refuses = True
    with pytest.raises(RequestError, match="cannot be made"):
        driven.update(a_text("default", "gpu"))

    assert ["[rm]default"] == driven.update(a_text("default")) == driven.names()


def test_all_partitions_may_go(driven: Driven) -> None:
    """Then only another registration helps."""
    driven.register(a_text("default"))

    assert [] == driven.update("partitions: []")
    with pytest.raises(RequestError, match="no active partitions"):
        driven.update(a_text("default"))
    assert ["[rm]default"] == driven.register(a_text("default"))


def test_an_update_that_fails_late_gives_back_what_the_partitions_had(driven: Driven) -> None:
    """Whatever fails, those that have changed change back, and those that were made go."""
    driven.register(a_text("default"))
    driven.maker.fails_to_commit = True

    with pytest.raises(ZeroDivisionError, match="2 partitions"):
        driven.update(a_text("default", "gpu"))

    assert (["[rm]default"], ["[rm]gpu"]) == (driven.names(), driven.maker.dropped)
    assert [1, 1] == [len(partition.configs) for partition in driven.maker.made]


def test_a_registration_that_fails_late_leaves_the_one_before(driven: Driven) -> None:
    """The partitions that were made for it go."""
    driven.register(a_text("default"))
    driven.maker.fails_to_commit = True

    with pytest.raises(ZeroDivisionError, match="1 partitions"):
        driven.register(a_text("gpu"))

    assert (["[rm]default"], ["[rm]gpu"]) == (driven.names(), driven.maker.dropped)
    assert [False, False] == [partition.ended for partition in driven.maker.made]
