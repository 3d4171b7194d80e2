"""Scheduling with the groups of a real directory server, on each engine."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from support.proxy.directory_server import Directory, serving
from support.proxy.ldap_folders import a_settings_folder
from support.proxy.listening import Listener
from support.proxy.manager_requests import (
    application_request,
    ask_request,
    configuration_request,
    node_request,
)

from licorne import Scheduler
from licorne.proxy.core.scheduler.engine_names import ENGINES, EngineName
from licorne.proxy.si import si_pb2 as si

LIMITED = """
partitions:
  - name: default
    usergroupresolver: {type: ldap}
    queues:
      - name: root
        submitacl: " dev,ops"
        queues: [{name: leaf}]
        limits: [{limit: developers, groups: [dev], maxresources: {memory: 2}}]
"""
OPEN = LIMITED.replace(" dev,ops", "*").replace("type: ldap", "type: ''")


def applications(*users: str) -> si.ApplicationRequest:
    """Return a request with an application for each user, called like the user."""
    request = application_request(*users)
    for new in request.new:
        new.ugi.user = new.applicationID
    return request


@pytest.mark.parametrize("engine", ENGINES)
def test_groups_of_the_directory_decide(directory: Directory, tmp_path: Path, engine: EngineName) -> None:
    """Who may submit, and how much all members of a group may have together."""
    listener, folder = Listener(), a_settings_folder(tmp_path, **directory.server.settings())
    with Scheduler(engine=engine, stepped=True, ldap_folder=folder) as scheduler:
        scheduler.register("rm", listener, configuration=LIMITED)
        scheduler.update_node(node_request("node"))
        scheduler.update_application(applications("ada", "bob", "lone"))
        scheduler.update_allocation(ask_request("a1", "a2", application="ada"))
        scheduler.run_until_idle()
        scheduler.update_allocation(ask_request("b1", application="bob"))
        scheduler.run_until_idle()
        snapshot: Any = scheduler.snapshot()
        scheduler.validate()

    assert {"accepted ada", "accepted bob", "placed a1", "placed a2"} < set(listener.heard)
    assert "placed b1" not in listener.heard
    assert [text for text in listener.heard if text.startswith("rejected lone")]
    assert ["dev"] == [group["groupName"] for group in snapshot["groups"]["default"]]


def test_a_scheduler_that_runs_by_itself_asks_too(directory: Directory, tmp_path: Path) -> None:
    """Several threads at once, each with users of its own."""
    listener, folder = Listener(), a_settings_folder(tmp_path, **directory.server.settings())
    with Scheduler(ldap_folder=folder) as scheduler:
        scheduler.register("rm", listener, configuration=LIMITED)
        threads = [
            threading.Thread(target=scheduler.update_application, args=(applications(user),))
            for user in ("ada", "bob", "lone", "zed")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        listener.wait_for("accepted ada", "accepted bob")
        listener.wait_for_count("rejected", 2)
        scheduler.validate()


def test_the_directory_is_asked_from_a_change_of_the_configuration_on(
    directory: Directory, tmp_path: Path
) -> None:
    """Before, each user was in the group of the same name."""
    listener, folder = Listener(), a_settings_folder(tmp_path, **directory.server.settings())
    with Scheduler(engine="direct", ldap_folder=folder) as scheduler:
        scheduler.register("rm", listener, configuration=OPEN)
        scheduler.update_application(applications("lone"))
        scheduler.update_configuration(configuration_request(LIMITED))
        scheduler.update_application(applications("bob"))
        snapshot: Any = scheduler.snapshot()
        scheduler.deliver()

    groups = {view["applicationID"]: view["groups"] for view in snapshot["applications"]["default"]}
    assert {"lone": ["lone"], "bob": ["bob", "dev"]} == groups


def test_a_directory_that_goes_down_is_a_reason_that_names_user_and_cause(
    directory: Directory, tmp_path: Path
) -> None:
    """Who is remembered is taken; of the others, one waits for the directory and the rest do not."""
    listener = Listener()
    down = tmp_path / "down"
    down.mkdir()
    (down / "server.pem").write_bytes((directory.authority.parent / "server.pem").read_bytes())
    with serving(down) as server:
        folder = a_settings_folder(tmp_path, **server.settings())
        scheduler = Scheduler(engine="direct", ldap_folder=folder)
        scheduler.register("rm", listener, configuration=LIMITED.replace(" dev,ops", "*"))
        scheduler.update_application(applications("ada"))
    with scheduler:
        again = applications("again", "bob", "eve")
        again.new[0].ugi.user = "ada"
        scheduler.update_application(again)
        scheduler.deliver()

    cause = f"user 'bob': ldap://127.0.0.1:{server.port} cannot be asked: "
    assert ["accepted ada", "accepted again"] == listener.heard[:2]
    assert listener.heard[2].startswith(f"rejected bob: {cause}")
    assert "Connection refused" in listener.heard[2]
    assert listener.heard[3].startswith(
        f"rejected eve: user 'eve' was not looked up after a failure: {cause}"
    )
