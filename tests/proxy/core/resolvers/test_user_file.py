"""Files that say who is in which groups, and the commands that take them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.proxy.command_runs import run
from support.proxy.simulation_builders import written

from licorne.model.errors import LicorneError
from licorne.proxy.core.resolvers.resolver import StaticResolver, UserResolutionError, read_users

CONFIGURATION = """
partitions:
  - name: default
    usergroupresolver: {type: ldap}
    queues: [{name: root, submitacl: " dev", queues: [{name: leaf}]}]
"""
USERS = "ada: [dev, ops]\nbob: []\n"


@pytest.mark.parametrize("text", [USERS, '{"ada": ["dev", "ops"], "bob": []}'])
def test_a_file_names_the_groups_of_users(tmp_path: Path, text: str) -> None:
    """As YAML or as JSON; the order is that of the file, and a user may be in no group."""
    users = read_users(written(tmp_path / "users.yaml", text))

    assert (("dev", "ops"), ()) == (users.groups_of("ada"), users.groups_of("bob"))
    with pytest.raises(UserResolutionError, match=r"^user 'zed' is not in the list of users$"):
        users.groups_of("zed")


def test_a_static_list_does_not_follow_the_list_it_was_made_from() -> None:
    """The resolver keeps a copy."""
    source = {"bob": ["staff", "dev"]}
    resolver = StaticResolver(source)

    source["bob"].append("admin")

    assert ("staff", "dev") == resolver.groups_of("bob")


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", ["1:1: document: expected users with lists of groups"]),
        ("- ada", ["1:1: document: expected users with lists of groups"]),
        (
            "ada: dev\nbob: [1, x, '']",
            [
                "1:6: ada: expected a list of groups, not 'dev'",
                "2:7: bob[0]: expected the name of a group, in quotes if need be, not 1",
                "2:13: bob[2]: expected the name of a group, in quotes if need be, not ''",
            ],
        ),
    ],
)
def test_what_is_no_such_list_is_refused_with_its_place(
    tmp_path: Path, text: str, problems: list[str]
) -> None:
    """All at once."""
    path = written(tmp_path / "users.yaml", text)
    with pytest.raises(LicorneError) as caught:
        read_users(path)

    assert [f"{path}:{problem}" for problem in problems] == str(caught.value).splitlines()


def test_a_replay_asks_the_file_instead_of_who_is_configured(tmp_path: Path) -> None:
    """So a transcript can be replayed where its directory server is not."""
    new = [
        {"applicationID": user, "queueName": "root.leaf", "ugi": {"user": user}} for user in ("ada", "zed")
    ]
    lines = [
        {"register": {"rmID": "rm", "config": CONFIGURATION}},
        {"application": {"rmID": "rm", "new": new}},
    ]
    transcript = written(tmp_path / "t.jsonl", "\n".join(map(json.dumps, lines)))

    status, output, _ = run("replay", transcript, "--users", written(tmp_path / "users.yaml", USERS))

    answer: Any = json.loads(output.splitlines()[1])["applicationResponse"]
    assert (0, ["ada"]) == (status, [entry["applicationID"] for entry in answer["accepted"]])
    assert ["user 'zed' is not in the list of users"] == [entry["reason"] for entry in answer["rejected"]]


def test_a_simulation_asks_the_file_instead_of_who_is_configured(tmp_path: Path) -> None:
    """Applications of a scenario without groups get those of the file."""
    scenario = """
nodes: [{prefix: n, resources: {vcore: 4}}]
applications:
  - {name: one, queue: root.leaf, user: ada, tasks: [{resources: {vcore: 1}, duration: 1s}]}
"""
    config = written(tmp_path / "queues.yaml", CONFIGURATION)
    users = written(tmp_path / "users.yaml", USERS)

    status, output, _ = run(
        "simulate", written(tmp_path / "s.yaml", scenario), "--config", config, "--users", users, "--json"
    )

    assert (0, 1) == (status, json.loads(output)["total"]["completed"])


@pytest.mark.parametrize("command", ["replay", "simulate"])
def test_a_bad_file_ends_a_command_before_it_begins(tmp_path: Path, command: str) -> None:
    """With the status of bad input."""
    users = written(tmp_path / "users.yaml", "ada: 1")

    status, output, errors = run(command, written(tmp_path / "t.jsonl", ""), "--users", users)

    assert (2, "") == (status, output)
    assert f"licorne {command}: {users}:1:6: ada: expected a list of groups, not 1" in errors
