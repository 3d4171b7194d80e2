"""The directory server of these tests; one for all tests of a process, and none of them changes it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from support.actors.shared_fields import fields_watched
from support.proxy.directory_server import BASE, Directory, serving, slapd_path

PERSON = ("inetOrgPerson",)
PERSONS = {
    f"uid=ada,ou=people,{BASE}": "ada",
    f"uid=bob,ou=people,{BASE}": "bob",
    f"uid=lone,ou=people,{BASE}": "lone",
    f"uid=twin,ou=people,{BASE}": "twin",
    f"uid=twin,ou=guests,{BASE}": "twin",
    f"uid=odd\\28\\2a\\29,ou=people,{BASE}": "odd(*)",
}
GROUPS = {
    f"cn=ops,ou=groups,{BASE}": ("ada",),
    f"CN=dev,ou=groups,{BASE}": ("ada", "bob"),
    f"cn=Smith\\, Joe,ou=groups,{BASE}": ("ada",),
    f"cn=Müller,ou=groups,{BASE}": ("ada", "odd\\28\\2a\\29"),
}


@pytest.fixture(autouse=True)
def shared_fields() -> Iterator[list[str]]:
    """Have what threads share touched under its lock only; return what is not."""
    with fields_watched() as violations:
        yield violations


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Directory]:
    """Start a server for `localhost` with a few people and groups; in CI it must be there."""
    if slapd_path() is None and "CI" not in os.environ:
        pytest.skip("slapd is not installed: make slapd")
    folder = tmp_path_factory.mktemp("slapd")
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "authority.pem")
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    with serving(folder) as server:
        server.add(
            *(
                (f"ou={name},{BASE}", ("organizationalUnit",), {"ou": name})
                for name in ("people", "guests", "groups", "empty")
            ),
            *((name, PERSON, {"uid": uid, "cn": uid, "sn": uid}) for name, uid in PERSONS.items()),
            *(
                (name, ("groupOfNames",), {"member": [f"uid={uid},ou=people,{BASE}" for uid in members]})
                for name, members in GROUPS.items()
            ),
        )
        yield Directory(server, folder / "authority.pem")
