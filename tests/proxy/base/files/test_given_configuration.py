"""A configuration is given as a text, as a path or as a mapping, wherever a program gives one."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml

from licorne import LicorneError, Recovery, ResourceManager, Scheduler
from licorne.proxy.base.files.input_files import configuration_text, inspect_configuration
from licorne.proxy.si import si_pb2 as si

LEAF = {
    "name": "research",
    "resources": {"max": {"vcore": 4, "memory": "8Gi"}},
    "properties": {"priority.offset": "2"},
}
MAPPING: dict[str, Any] = {
    "partitions": [{"name": "default", "queues": [{"name": "root", "submitacl": "*", "queues": [LEAF]}]}]
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "queues.yaml"
    file.write_text(configuration_text(MAPPING), encoding="utf-8")
    return file


def given_forms(path: Path) -> list[Any]:
    frozen = MappingProxyType(OrderedDict(partitions=tuple(MAPPING["partitions"])))
    return [path, MAPPING, frozen, configuration_text(MAPPING)]


def leaves(scheduler: Scheduler) -> list[str]:
    queues: Any = scheduler.snapshot()["queues"]
    tree = queues["default"]
    return [child["queuename"] for child in tree["children"]]


def test_each_form_registers_reloads_and_recovers(path: Path) -> None:
    """The queues are the same."""
    for given in given_forms(path):
        with Scheduler(engine="direct") as scheduler:
            scheduler.register("rm", ResourceManager(), configuration=given)
            assert leaves(scheduler) == ["root.research"]
        with Scheduler(engine="direct") as scheduler:
            scheduler.register("rm", ResourceManager(), configuration="")
            scheduler.reconfigure("rm", given)
            assert leaves(scheduler) == ["root.research"]
        with Scheduler(engine="direct") as scheduler:
            registration = si.RegisterResourceManagerRequest(rmID="rm")
            Recovery(scheduler, registration, ResourceManager(), configuration=given).start()
            assert leaves(scheduler) == ["root.research"]
            assert registration.config == ""


def test_each_form_is_inspected(path: Path) -> None:
    """As `licorne validate` does it, with the name of a file in the errors."""
    for given in given_forms(path):
        assert inspect_configuration(given).config is not None
    path.write_text("partitions: [{name: default, quees: []}]\n", encoding="utf-8")

    assert {str(path)} == {problem.source for problem in inspect_configuration(path).errors}


def test_the_errors_of_a_file_name_it_when_it_is_registered(path: Path) -> None:
    """Otherwise they would be those of a text without a name."""
    path.write_text("partitions:\n- name: default\n  quees: []\n", encoding="utf-8")
    with Scheduler(engine="direct") as scheduler, pytest.raises(LicorneError) as raised:
        scheduler.register("rm", ResourceManager(), configuration=path)

    assert f"{path}:3:3: partitions[0].quees" in str(raised.value)


def test_texts_of_a_mapping_stay_texts() -> None:
    """Those that YAML would read as a number, as true or as a reference are quoted."""
    names = ["007", "yes", "~", "a: b", "&x", "é", "1e3", ""]
    text = configuration_text(
        {"partitions": [{"name": "default", "statedumpfilepath": name} for name in names]}
    )

    for name in names:
        assert name == "" or name in text
    for kept, name in zip(yaml_partitions(text), names, strict=True):
        assert kept["statedumpfilepath"] == name


def test_what_is_shared_in_a_mapping_is_written_twice() -> None:
    """The text is what others see of it: an anchor in it would be of nobody."""
    shared = {"max": {"vcore": 4}}
    queues = [{"name": name, "resources": shared} for name in ("a", "b")]
    text = configuration_text(
        {"partitions": [{"name": "default", "queues": [{"name": "root", "queues": queues}]}]}
    )

    assert "&" not in text
    assert text.count("vcore: 4") == 2


def test_a_mapping_inside_of_itself_is_refused() -> None:
    """It has no end as a text."""
    endless: dict[str, object] = {}
    endless["partitions"] = [endless]

    with pytest.raises(LicorneError, match="nested more than 100 deep"):
        configuration_text(endless)


def yaml_partitions(text: str) -> Any:
    return yaml.safe_load(text)["partitions"]
