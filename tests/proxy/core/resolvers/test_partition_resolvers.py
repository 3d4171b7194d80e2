"""Which resolver a partition has, and when it starts afresh."""

from __future__ import annotations

import pwd
import sys
from pathlib import Path

import pytest
from support.proxy.ldap_folders import a_settings_folder
from support.proxy.resolver_fakes import CountingResolver, StandingClock

from licorne.model.configuration.problems import ConfigurationError
from licorne.model.configuration.reader import load
from licorne.model.configuration.schema import SchedulerConfig
from licorne.proxy.core.resolvers.partition_resolvers import PartitionResolver, ResolverMaker
from licorne.proxy.core.resolvers.resolver import UserResolver

ROOT = pwd.getpwuid(0).pw_name


def a_config(**kinds: str) -> SchedulerConfig:
    """Return a configuration of partitions with their kinds of resolvers."""
    partitions = [
        f"- {{name: {name}, queues: [{{name: root}}], usergroupresolver: {{type: {kind!r}}}}}"
        for name, kind in kinds.items()
    ]
    return load("partitions:\n" + "\n".join(partitions))


def made(
    folder: Path,
    config: SchedulerConfig,
    present: dict[str, PartitionResolver] | None = None,
    instead: UserResolver | None = None,
) -> dict[str, PartitionResolver]:
    return ResolverMaker(instead, folder / "ldap", StandingClock()).make("rm", config, present or {})


@pytest.mark.parametrize("kind", ["", "none", "test", "OS"])
def test_without_a_known_kind_no_resolver_is_asked(tmp_path: Path, kind: str) -> None:
    """Each user is then in the group of the same name."""
    assert made(tmp_path, a_config(one=kind))["[rm]one"].resolver is None


def test_the_operating_system_can_be_asked(tmp_path: Path) -> None:
    """The kind is `os`."""
    resolver = made(tmp_path, a_config(one="os"))["[rm]one"].resolver

    assert resolver is not None
    assert resolver.groups_of(ROOT)


def test_each_partition_has_a_memory_of_its_own(tmp_path: Path) -> None:
    """Two partitions of one kind, and the same partition of two schedulers, share nothing."""
    config = a_config(one="os", two="os")
    resolvers = [entry.resolver for _ in range(2) for entry in made(tmp_path, config).values()]

    assert 4 == len(set(map(id, resolvers)))


def test_an_embedders_resolver_is_asked_whatever_is_configured(tmp_path: Path) -> None:
    """Then the settings of the directory server need not even be there."""
    source = CountingResolver()

    resolvers = made(tmp_path, a_config(one="ldap", two=""), instead=source)

    assert [source, source] == [entry.resolver for entry in resolvers.values()]


def test_a_resolver_of_the_same_kind_stays_with_what_it_remembers(tmp_path: Path) -> None:
    """The configuration may change as often as it likes."""
    a_settings_folder(tmp_path)
    before = made(tmp_path, a_config(one="os", two="ldap"))

    assert before == made(tmp_path, a_config(one="os", two="ldap"), before)


def test_a_resolver_of_another_kind_is_a_new_one(tmp_path: Path) -> None:
    """From one kind to the other, and to none."""
    a_settings_folder(tmp_path)
    before = made(tmp_path, a_config(one="os", two="ldap"))

    after = made(tmp_path, a_config(one="ldap", two=""), before)

    assert ["ldap", ""] == [entry.kind for entry in after.values()]


def test_new_settings_make_a_new_resolver(tmp_path: Path) -> None:
    """What another directory said is forgotten."""
    folder = a_settings_folder(tmp_path)
    before = made(tmp_path, a_config(one="ldap"))
    (folder / "Host").write_text("ldap.example.com")

    after = made(tmp_path, a_config(one="ldap"), before)

    settings = after["[rm]one"].settings
    assert settings is not None
    assert "ldap://ldap.example.com:389" == settings.url
    assert before["[rm]one"].resolver is not after["[rm]one"].resolver


def test_bad_settings_are_reported_for_each_partition_with_its_place(tmp_path: Path) -> None:
    """Each problem has a line of its own, with the place of the kind in the configuration."""
    folder = a_settings_folder(tmp_path, Port="0", Host=None)
    with pytest.raises(ConfigurationError) as caught:
        made(tmp_path, a_config(one="ldap", two="ldap"))

    said = "the user group resolver 'ldap' cannot be used"
    assert [
        f"queues.yaml:{line}:65: partitions[{line - 2}].usergroupresolver.type: {said}: {folder}/{problem}"
        for line in (2, 3)
        for problem in (
            "Host: the file is missing",
            "Port: '0' is not a port, which is a number from 1 to 65535",
        )
    ] == str(caught.value).splitlines()


def test_without_the_extra_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings are not even looked at."""
    monkeypatch.setitem(sys.modules, "ldap3", None)

    with pytest.raises(
        ConfigurationError, match=r"ldap3 is not installed; it comes with the extra licorne\[ldap\]$"
    ):
        made(tmp_path, a_config(one="ldap"))
