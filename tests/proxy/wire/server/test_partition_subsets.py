"""A resource manager (RM) that has a part of its partitions made, in process and at a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from support.proxy.cutting_proxy import CuttingProxy
from support.proxy.listening import Listener
from support.proxy.manager_requests import (
    ONE,
    TWO,
    application_request,
    ask_request,
    configuration_request,
    node_request,
)
from support.waiting import wait_until

from licorne import RemoteScheduler, RequestError, Scheduler
from licorne.model.configuration.reader import checksum
from licorne.model.values.states import ManagerState
from licorne.proxy.wire.server.core import ConfigurationFile
from licorne.proxy.wire.server.server import ServerThread

from .conftest import Served

THIRD: Final = TWO.replace("name: second", "name: third")
BROKEN_DEFAULT: Final = TWO.replace("name: leaf", "name: 'no.dots'", 1)
Core = Scheduler | RemoteScheduler


@pytest.fixture(params=["in process", "at a server"])
def core(request: pytest.FixtureRequest) -> Iterator[Core]:
    scheduler = Scheduler(engine="direct")
    if request.param == "in process":
        with scheduler:
            yield scheduler
        return
    with ServerThread(scheduler) as server, RemoteScheduler(server.address) as client:
        yield client


def partitions(core: Core) -> list[str]:
    """Return the names of the partitions of the RM `rm`, none for one that has not registered."""
    return [name for status in core.resource_managers() for name in status.partitions]


def test_only_the_named_partitions_are_made(core: Core) -> None:
    """The text is whole, and requests for a partition that is not made are refused like any unknown one."""
    listener = Listener()
    core.register("rm", listener, configuration=TWO, partitions=["second"])
    core.update_node(node_request("n1", partition="second"))
    core.update_node(node_request("n2"))
    core.update_application(application_request("app", partition="second"))
    core.update_allocation(ask_request("ask", application="app", partition="second"))
    core.run_until_idle()

    assert ["second"] == partitions(core)
    assert TWO == core.configuration_text("rm")
    assert "accepted n1" in listener.heard
    assert "placed ask" in listener.heard
    assert "rejected n2: failed to find partition [rm]default for new node n2" in listener.heard


@pytest.mark.parametrize(
    "names", [["", "second"], ["default", "[rm]second"], ["second", "default", "second"]]
)
def test_partitions_are_named_as_in_requests(core: Core, names: list[str]) -> None:
    """The empty name is the default one, a full name has the RM, and a name may be repeated."""
    core.register("rm", Listener(), configuration=TWO, partitions=names)

    assert ["default", "second"] == partitions(core)


REFUSED: Final[dict[str, tuple[Any, str]]] = {
    "an empty list": ([], "the list of partitions to make is empty: name some, or leave it out for all"),
    "one text": ("second", "partitions='second' is one text: give a list of names"),
    "an unknown name": (
        ["default", "secnd"],
        "the configuration has no partition 'secnd', which `partitions` names; did you mean 'second'?",
    ),
    "the name of another RM": (["[other]second"], r"the configuration has no partition 'second', "),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_names_that_cannot_be_made_are_refused(core: Core, case: tuple[Any, str]) -> None:
    """Nothing is made, and an earlier registration stays as it was."""
    names, text = case
    core.register("rm", Listener(), configuration=ONE)

    with pytest.raises(RequestError) as caught:
        core.register("rm", Listener(), configuration=TWO, partitions=names)

    assert text in str(caught.value)
    assert ["default"] == partitions(core)


def test_what_is_not_made_is_checked_as_well(core: Core) -> None:
    """With its position in the whole text, also by an update."""
    with pytest.raises(RequestError, match=r"queues\.yaml:5:.*no\.dots"):
        core.register("rm", Listener(), configuration=BROKEN_DEFAULT, partitions=["second"])
    core.register("rm", Listener(), configuration=TWO, partitions=["second"])

    with pytest.raises(RequestError, match=r"queues\.yaml:5:.*no\.dots"):
        core.update_configuration(configuration_request(BROKEN_DEFAULT))
    assert TWO == core.configuration_text("rm")


def test_updates_make_only_the_named_partitions(core: Core) -> None:
    """One that a text leaves out ends, and comes back with a later text; all may be gone meanwhile."""
    core.register("rm", Listener(), configuration=TWO, partitions=["second"])
    found = []
    for text in (THIRD, ONE, TWO, TWO + THIRD.removeprefix(ONE)):
        core.update_configuration(configuration_request(text))
        assert text == core.configuration_text("rm")
        found.append(partitions(core))

    assert [[], [], ["second"], ["second"]] == found


def test_a_registration_that_names_none_has_all_made_again(core: Core) -> None:
    """The names belong to the registration, not to the RM."""
    core.register("rm", Listener(), configuration=TWO, partitions=["second"])
    core.register("rm", Listener(), configuration=TWO)

    assert ["default", "second"] == partitions(core)


# ------------------------------------------------------------------------------------ a server's own


def test_the_configuration_of_rest_is_the_whole_text() -> None:
    """Its checksum is that of the text which was sent."""
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", Listener(), configuration=TWO, partitions=["second"])
        ((rm_id, config),) = scheduler._cluster.configurations()

    assert ("rm", TWO, checksum(TWO)) == (rm_id, config.text, config.checksum)
    assert ["default", "second"] == [partition.name for partition in config.partitions]


def test_the_file_of_a_server_keeps_the_named_partitions(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    """Of an RM that sends no text: when it registers, and when it asks for the file again."""
    path = tmp_path / "queues.yaml"
    path.write_text(TWO, encoding="utf-8")
    served = serve(configuration=ConfigurationFile(path))
    with RemoteScheduler(served.address) as client:
        client.register("rm", Listener(), partitions=["second"])
        first = partitions(client)
        client.update_configuration(configuration_request(""))

        assert [["second"], ["second"]] == [first, partitions(client)]
        assert TWO == client.configuration_text("rm")


def test_a_connection_that_is_made_again_registers_the_same_partitions(served: Served) -> None:
    """Of an RM without `reconnected`, which is registered again with the same request."""
    with (
        CuttingProxy(int(served.address.rpartition(":")[2])) as proxy,
        RemoteScheduler(proxy.address) as client,
    ):
        client.register("rm", Listener(), configuration=TWO, partitions=["second"])
        (before,) = served.scheduler.resource_managers()
        proxy.cut()

        def is_back() -> bool:
            (now,) = served.scheduler.resource_managers()
            return now.state is ManagerState.RUNNING and now.since_ns > before.since_ns

        wait_until(is_back)

        assert ["second"] == partitions(served.scheduler)
