"""The resource managers of a scheduler, their partitions, and reloads of their configurations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from support.model.builders import a_host

from licorne.model.cluster import Cluster
from licorne.model.configuration.problems import ConfigurationError
from licorne.model.configuration.schema import PartitionConfig, SchedulerConfig
from licorne.model.errors import RequestError
from licorne.model.partition import Partition
from licorne.model.values.messages import (
    Announcement,
    ApplicationSubmission,
    Registration,
)
from licorne.model.views.shown import shown_partition

ONE = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: a}]}]}]"
OTHER = ONE.replace("name: a}", "name: b}")
TWO = ONE.replace("]}]}]", "]}]}, {name: gpu, queues: [{name: g}]}]")
BROKEN = TWO.replace("name: a}", "name: b}").replace("name: g}", "name: 'no.dots'}")
UNUSABLE = OTHER.replace("name: default,", "name: default, placementrules: [{name: unheard}],")


class Maker:
    """Makes partitions, and remembers which were made and dropped."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.committed: list[list[str]] = []
        self.dropped: list[str] = []
        self.announced: list[Announcement] = []
        self.refuses = False

    def prepare(self, config: SchedulerConfig) -> None:
        if self.refuses:
            raise RequestError(f"rm cannot have {len(config.partitions)} partitions")

    def make(self, name: str, config: PartitionConfig) -> Partition:
        self.made.append(name)
        host = a_host(announce=self.announced.append)
        return Partition(name, name[1 : name.index("]")], config, host)

    def commit(self, partitions: Mapping[str, Partition]) -> None:
        self.committed.append([*partitions])

    def drop(self, partition: Partition) -> None:
        self.dropped.append(partition.name)


def a_cluster(text: str = ONE) -> tuple[Cluster, Maker]:
    """Return a cluster with the RM `rm`."""
    maker = Maker()
    cluster = Cluster()
    cluster.register(a_registration(text), maker)
    return cluster, maker


def a_registration(text: str, rm_id: str = "rm") -> Registration:
    return Registration(rm_id=rm_id, configuration=text, extra_configuration={})


def submit(partition: Partition, **tags: str) -> None:
    """Submit an application to the queue `root.a`."""
    submission = ApplicationSubmission(
        application_id="app",
        queue_name="root.a",
        partition=partition.name,
        user="bob",
        groups=("dev",),
        tags=tags,
        execution_timeout_ms=0,
        placeholder_ask=None,
        gang_scheduling_style="",
    )
    partition.update_applications([submission], [])


def queues_of(partition: Partition) -> list[str]:
    children = partition.read(shown_partition).root.children
    return [f"{child.path} {child.state.value}" for child in children]


# --------------------------------------------------------------------------------------- registration


def test_a_registration_makes_the_partitions_of_its_configuration() -> None:
    """Their full names begin with the id of the RM, so that two RMs may have the same."""
    cluster, maker = a_cluster(TWO)
    cluster.register(a_registration(ONE, "other"), maker)

    assert ["[rm]default", "[rm]gpu", "[other]default"] == maker.made
    assert maker.made == [entry.name for entry in cluster.partitions()]


def test_without_a_configuration_there_is_a_queue_for_each_namespace() -> None:
    """The default has one rule: the tag `namespace`, with a queue made where there is none."""
    cluster, _ = a_cluster("")
    (partition,) = cluster.partitions()
    submit(partition, namespace="dev")

    assert ("[rm]default", ["root.dev Active"]) == (partition.name, queues_of(partition))


def test_a_registration_without_an_id_is_refused() -> None:
    """No message could be delivered."""
    with pytest.raises(RequestError, match="rmID is empty"):
        Cluster().register(a_registration(ONE, ""), Maker())


def test_an_rm_that_registers_again_starts_afresh() -> None:
    """What it had fails and goes; the recorded core hangs here."""
    cluster, maker = a_cluster(TWO)
    before = cluster.partitions()[0]
    submit(before)

    done = cluster.register(a_registration(ONE), maker)

    assert ["[rm]default", "[rm]gpu"] == [partition.name for partition in done.ended]
    assert ["[rm]default"] == [partition.name for partition in cluster.partitions()]
    assert cluster.partitions()[0] is not before


@pytest.mark.parametrize("text", [BROKEN, "partitions: 7"])
def test_a_registration_that_is_refused_leaves_the_earlier_one(text: str) -> None:
    """Also where only the last partition is wrong."""
    cluster, maker = a_cluster()
    (before,) = cluster.partitions()

    with pytest.raises(ConfigurationError):
        cluster.register(a_registration(text), maker)

    assert ([before], [["[rm]default"]]) == (cluster.partitions(), maker.committed)


# --------------------------------------------------------------------------------------------- reload


def test_a_reload_changes_makes_and_ends_partitions() -> None:
    """The one that stays keeps what it has: its queue drains while an application is in it."""
    cluster, maker = a_cluster(ONE.replace("name: default", "name: old") + "\n")
    cluster.update_configuration("rm", TWO, maker)
    default, gpu = cluster.partitions()
    submit(default)

    done = cluster.update_configuration("rm", OTHER, maker)

    assert [default] == cluster.partitions()
    assert (gpu,) == done.ended
    assert gpu not in cluster.partitions()
    assert ["root.a Draining", "root.b Active"] == queues_of(default)


@pytest.mark.parametrize("text", [BROKEN, UNUSABLE, "partitions: 7"])
def test_a_reload_that_is_refused_changes_nothing(text: str) -> None:
    """Not even the partitions that are right: rules that cannot be built count as well."""
    cluster, maker = a_cluster()
    made = [*maker.made]

    with pytest.raises(ConfigurationError):
        cluster.update_configuration("rm", text, maker)

    assert ["root.a Active"] == queues_of(cluster.partitions()[0])
    assert (made, [["[rm]default"]]) == (maker.made, maker.committed)


def test_a_reload_whose_partitions_cannot_be_had_changes_nothing() -> None:
    """The maker is asked before anything is changed."""
    cluster, maker = a_cluster()
    maker.refuses = True

    with pytest.raises(RequestError, match="rm cannot have 1 partitions"):
        cluster.update_configuration("rm", OTHER, maker)

    assert ["root.a Active"] == queues_of(cluster.partitions()[0])


def test_a_reload_without_a_configuration_means_the_default_one() -> None:
    """As at registration."""
    cluster, maker = a_cluster()

    cluster.update_configuration("rm", "", maker)

    assert ["root.a Draining"] == queues_of(cluster.partitions()[0])


def test_the_same_text_again_changes_nothing() -> None:
    """What a namespace has set on its own queue stays as well; a line with a checksum does not count."""
    cluster, maker = a_cluster()

    done = cluster.update_configuration("rm", f"{ONE}\nchecksum: {'0' * 64}\n", maker)

    assert (["[rm]default"], ["[rm]default"]) == ([*done.partitions], maker.made)


@pytest.mark.parametrize("rm_id", ["nobody", ""])
def test_a_reload_for_an_unknown_rm_is_refused(rm_id: str) -> None:
    """With the words of the interface."""
    cluster, maker = a_cluster()

    with pytest.raises(RequestError) as refused:
        cluster.update_configuration(rm_id, OTHER, maker)

    assert f"RM {rm_id} has no active partitions, make sure it is registered" == str(refused.value)


def test_an_rm_without_partitions_has_to_register_again() -> None:
    """A configuration may have none; from then on a reload is refused, as recorded."""
    cluster, maker = a_cluster()
    (ended,) = cluster.update_configuration("rm", "partitions: []", maker).ended

    with pytest.raises(RequestError, match="has no active partitions"):
        cluster.update_configuration("rm", ONE, maker)

    assert ([], "[rm]default") == (cluster.partitions(), ended.name)


# ------------------------------------------------------------------------------- a part of the partitions


def a_part(text: str, *names: str) -> Registration:
    """Return the registration of the RM `rm` that has only these partitions made."""
    return replace(a_registration(text), partitions=tuple(f"[rm]{name}" for name in names))


def test_only_the_named_partitions_are_asked_of_the_maker() -> None:
    """What the others need need not be there."""
    cluster, maker = Cluster(), Maker()
    maker.refuses = True

    with pytest.raises(RequestError, match="rm cannot have 1 partitions"):
        cluster.register(a_part(TWO, "gpu"), maker)


def test_a_part_of_the_partitions_is_changed_as_a_whole() -> None:
    """A reload that fails leaves those that were there, and drops those that it made."""
    cluster, maker = Cluster(), Maker()
    done = cluster.register(a_part(TWO, "gpu", "default"), maker)
    cluster.update_configuration("rm", ONE, maker)
    with pytest.raises(ConfigurationError):
        cluster.update_configuration("rm", BROKEN, maker)

    assert ["[rm]default", "[rm]gpu"] == [*done.partitions]
    assert ["[rm]default"] == [partition.name for partition in cluster.partitions()]
    assert (ONE, ["root.a Active"]) == (cluster.configuration_text("rm"), queues_of(cluster.partitions()[0]))


def test_a_text_that_means_the_same_keeps_the_part() -> None:
    """Nothing is made, and nothing ends."""
    cluster, maker = Cluster(), Maker()
    cluster.register(a_part(TWO, "gpu"), maker)
    done = cluster.update_configuration("rm", TWO, maker)

    assert (["[rm]gpu"], ()) == ([*done.partitions], done.ended)
    assert [["[rm]gpu"], ["[rm]gpu"]] == maker.committed
