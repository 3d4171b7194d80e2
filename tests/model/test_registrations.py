"""Registrations and configurations: what is taken, what is refused, and what that leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from licorne.model.cluster import Cluster
from licorne.model.configuration.reader import ConfigurationError
from licorne.model.errors import RequestError
from licorne.model.messages import Registration

if TYPE_CHECKING:
    from licorne.model.configuration.schema import PartitionConfig, SchedulerConfig
    from licorne.model.partition import Partition


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

    def reconfigure(self, config: PartitionConfig) -> None:
        assert not self.ended
        self.configs.append(config)

    def shut_down(self) -> None:
        assert not self.ended, "it ends twice"
        self.ended = True


class FakeMaker:
    """Makes fake partitions, in order; may refuse a configuration."""

    def __init__(self) -> None:
        self.made: list[FakePartition] = []
        self.released: list[str] = []
        self.refuses = False

    def prepare(self, rm_id: str, config: SchedulerConfig) -> None:
        if self.refuses:
            raise RequestError(f"{rm_id}: {len(config.partitions)} partitions cannot be made")

    def make(self, name: str, rm_id: str, config: PartitionConfig) -> Partition:
        assert name.startswith(f"[{rm_id}]")
        self.made.append(FakePartition(name, config))
        return self.made[-1]  # type: ignore[return-value]  # what a cluster asks of a partition

    def release(self, partition: Partition) -> None:
        self.released.append(partition.name)


class Driven:
    """A cluster with a maker that remembers."""

    def __init__(self) -> None:
        self.maker = FakeMaker()
        self.cluster = Cluster(self.maker)

    def register(self, text: str, rm_id: str = "rm") -> list[str]:
        return list(self.cluster.register(Registration(rm_id=rm_id, configuration=text)))

    def update(self, text: str, rm_id: str = "rm") -> list[str]:
        return list(self.cluster.update_configuration(rm_id, text))

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
    """Of the same short name; a look-up by that name gives the first."""
    driven.register(a_text("default"), "b")
    driven.register(a_text("default"), "a")
    first = driven.cluster.partition("default")

    assert ["[a]default", "[b]default"] == driven.names()
    assert first is not None
    assert ("[a]default", None) == (first.name, driven.cluster.partition("gpu"))


def test_a_second_registration_ends_what_the_first_had(driven: Driven) -> None:
    """Of this manager alone; all is made anew, also what is named the same."""
    driven.register(a_text("default"), "other")
    driven.register(a_text("default", "gpu"))
    driven.register(a_text("default"))

    assert [False, True, True, False] == [partition.ended for partition in driven.maker.made]
    assert ["[rm]default", "[rm]gpu"] == driven.maker.released
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
    """Without one its partitions could not be told apart."""
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
    assert ["[rm]old"] == driven.maker.released


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


def test_the_end_of_the_cluster_ends_everything_once(driven: Driven) -> None:
    """All partitions of all managers."""
    driven.register(a_text("default", "gpu"), "a")
    driven.register(a_text("default"), "b")

    driven.cluster.stop()
    driven.cluster.stop()

    assert [True, True, True] == [partition.ended for partition in driven.maker.made]
    assert [] == driven.names()
