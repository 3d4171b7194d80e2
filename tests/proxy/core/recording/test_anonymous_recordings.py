"""Recordings without names: nothing of them is left, and the replay decides the same."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from support.proxy.manager_requests import configuration_request
from support.proxy.recorded_traffic import recorded_lines, replayed
from support.transcripts.preemption_transcripts import preemption_transcript
from support.transcripts.simulated_transcripts import simulated_transcript

from licorne import Recording, ResourceManager, Scheduler
from licorne.model.configuration.queue_properties import PROPERTIES
from licorne.model.configuration.reader import load
from licorne.proxy.core.recording.pseudonyms import Pseudonyms, anonymous_configuration
from licorne.proxy.core.recording.recorder import AnonymousLines, TurnRecorder
from licorne.proxy.core.resolvers.resolver import StaticResolver
from licorne.proxy.fuzz.configurations import random_configuration
from licorne.proxy.play.transcripts.replay import Replay
from licorne.proxy.play.transcripts.transcript import read_transcript
from licorne.proxy.si import si_pb2 as si

SEEDS: Final = [*range(5), *[pytest.param(seed, marks=pytest.mark.soak) for seed in range(5, 100)]]
CALLBACKS: Final = ("nodeResponse", "applicationResponse", "allocationResponse", "schedulingState")
SECRET_WORDS: Final = (
    *("turing", "lovelace", "science", "enigma", "bletchley", "rack-of-hut", "bombe", "colossus"),
    *("hut-eight", "cipher", "banburismus", "hopper", "wren", "codebook", "naval", "tunny"),
)
CONFIGURATION: Final = """
# the naval war
partitions:
  - name: default
    placementrules:
      - {name: fixed, value: root.science, create: true, filter: {users: ["^tunny"]}}
      - {name: tag, value: Unit, create: true, parent: {name: fixed, value: root.bletchley}}
      - {name: provided, create: true}
    queues:
      - name: root
        submitacl: "turing,hopper wren"
        queues:
          - name: bletchley
            parent: true
            properties: {codebook: naval, application.sort.policy: fair}
          - name: science
            adminacl: " wren"
            limits: [{limit: turing only, users: [turing], groups: [wren], maxapplications: 7}]
"""


class Refusing(ResourceManager):
    """Refuses a node, and says so with its name."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        """Refuse the one called `colossus`."""
        if args.nodeID == "colossus":
            raise ValueError(f"no {args.allocationKey} on colossus")


def traffic(scheduler: Scheduler) -> None:
    """Say something with a name in every place that has one."""
    scheduler.register(
        "rm", Refusing(), configuration=CONFIGURATION, extra_configuration={"naval": "codebook"}
    )
    nodes = si.NodeRequest(rmID="rm")
    for name in ("colossus", "enigma"):
        node = nodes.nodes.add(nodeID=name, action=si.NodeInfo.CREATE)
        node.attributes["si/hostname"] = "rack-of-hut"
        node.schedulableResource.resources["memory"].value = 10
    scheduler.update_node(nodes)
    applications = si.ApplicationRequest(rmID="rm")
    new = applications.new.add(applicationID="bombe", queueName="root.science", tags={"unit": "hut-eight"})
    new.ugi.user = "lovelace"
    other = applications.new.add(applicationID="banburismus", queueName="root.science")
    other.ugi.user = "turing"
    other.ugi.groups.append("wren")
    scheduler.update_application(applications)
    asks = si.AllocationRequest(rmID="rm")
    ask = asks.allocations.add(allocationKey="cipher", applicationID="banburismus", taskGroupName="hopper")
    ask.resourcePerAlloc.resources["memory"].value = 1
    ask.allocationTags["pod"] = "naval"
    asks.releases.allocationsToRelease.add(applicationID="bombe", allocationKey="cipher", message="tunny")
    scheduler.update_allocation(asks)
    scheduler.run_until_idle()
    missing = si.ApplicationRequest(rmID="rm")
    missing.new.add(applicationID="bombe", partitionName="other")
    scheduler.update_application(missing)
    scheduler.update_configuration(configuration_request(CONFIGURATION.replace("7", "8")))


def test_none_of_the_names_is_in_the_recording(tmp_path: Path) -> None:
    """Neither in requests nor in the configuration, nor in answers and reasons."""
    resolver = StaticResolver({"lovelace": ("hopper",)})
    with Scheduler(
        engine="direct", record=Recording(tmp_path, anonymize=True), resolver=resolver
    ) as scheduler:
        traffic(scheduler)
    written = json.dumps(recorded_lines(tmp_path))

    assert [] == [word for word in SECRET_WORDS if word in written]
    assert "answer" in written
    assert "refused" in written


def test_without_being_asked_a_recording_has_names(tmp_path: Path) -> None:
    """All but those that no decision needs, so the test above looks for the right words."""
    with Scheduler(engine="direct", record=tmp_path) as scheduler:
        traffic(scheduler)
    written = json.dumps(recorded_lines(tmp_path))

    assert [] == [word for word in SECRET_WORDS if word not in written]
    assert "extraConfig" not in written


def without_texts(document: Any) -> Any:
    """Return a callback without what is said for people."""
    if isinstance(document, dict):
        return {
            key: "" if key in {"message", "reason"} else without_texts(value)
            for key, value in document.items()
            if key not in {"line", "rmID", "registeredAt"}
        }
    return [without_texts(entry) for entry in document] if isinstance(document, list) else document


def one_at_a_time(lines: list[str]) -> Iterator[str]:
    """Yield a transcript with a moment for each application and allocation: then no name decides an order."""
    for line in lines:
        (kind, body), *_ = json.loads(line).items()
        field = {"application": "new", "allocation": "allocations"}.get(kind)
        if field is None:
            yield line
            continue
        *first, last = body.get(field) or [None]
        for each in first:
            yield json.dumps({kind: {"rmID": body["rmID"], field: [each]}})
            yield '{"advance": "1ms"}'
        yield json.dumps({kind: body if last is None else body | {field: [last]}})
        yield '{"advance": "1ms"}'


@pytest.mark.parametrize("make", [simulated_transcript, preemption_transcript])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_replay_makes_the_same_decisions(
    make: Callable[[int], list[str]], seed: int, tmp_path: Path
) -> None:
    """With the pseudonyms of the names; what is said for people is not there."""
    output: list[str] = []
    scheduler = Scheduler(engine="direct", record=Recording(tmp_path, anonymize=True))
    with scheduler:
        Replay(scheduler, output.append).run(
            read_transcript("\n".join(one_at_a_time(make(seed))), "transcript")
        )
    assert isinstance(scheduler._observer, TurnRecorder)
    anonymous = scheduler._observer._anonymous
    assert anonymous is not None
    documents = [document for row in output if any(key in (document := json.loads(row)) for key in CALLBACKS)]

    assert documents
    assert [without_texts(anonymous.hidden(document)) for document in documents] == [
        without_texts(document) for document in replayed(tmp_path)
    ]


@pytest.mark.parametrize("seed", range(60))
def test_every_configuration_is_one_without_names(seed: int) -> None:
    """It has as many queues, and is read without an error."""
    text = random_configuration(random.Random(seed), ("default", "gpu")[: 1 + seed % 2]).text  # noqa: S311 - it plays
    pseudonyms = Pseudonyms(b"key")
    hidden = anonymous_configuration(text, pseudonyms)

    assert [entry.root.name for entry in load(hidden).partitions] == ["root"] * len(load(text).partitions)
    assert hidden == anonymous_configuration(text, pseudonyms)
    assert hidden != anonymous_configuration(f"{text} ", pseudonyms)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("", ""),
        ("{partitions: [{name: default, preemption: {enabled: false}, limits: ~}]}", '"enabled": false'),
        (
            "partitions: [{queues: [{resources: {max: {vcore: 010, users: 5}}}]}]",
            '{"vcore": 010, "users": 5}',
        ),
        ("partitions: [{placementrules: [{name: tag, value: Unit}]}]", '"value": "Unit"'),
        ("partitions: [{placementrules: [{filter: {users: [^a]}}]}]", '"users": ["^$"]'),
        ("partitions: [{queues: [{limits: [{limit: mine, users: ['*']}]}]}]", '[{"users": ["*"]}]'),
        ("checksum: ABC", "{} #"),
    ],
)
def test_what_is_no_name_is_as_it_was(text: str, hidden: str) -> None:
    """Quantities, flags, and the names of tags."""
    assert hidden in anonymous_configuration(text, Pseudonyms(b"key"))


@pytest.mark.parametrize("name", PROPERTIES)
def test_each_property_that_means_something_keeps_its_value(name: str) -> None:
    """Without one the replay would decide otherwise; others are left out."""
    text = json.dumps({"queues": [{"name": "a", "properties": {name: "7d", "secret": "x"}}]})

    assert f'"properties": {{"{name}": "7d"}}' in anonymous_configuration(text, Pseudonyms(b"key"))


def test_tags_that_steer_the_scheduler_keep_what_they_say() -> None:
    """Others have a hash, and a queue that a rule takes from a tag is that of the configuration."""
    lines = AnonymousLines(Pseudonyms(b"key"))
    lines.hidden({"config": CONFIGURATION})
    said = {
        "namespace.resourcequota": '{"memory": "1G"}',
        "application.create.force": "true",
        "creationTime": "1700000000",
        "yunikorn.apache.org/creationTime": "1700000000",
        "checkpointTime": "1700000000",
        "licorne/start-time": "1700000000",
        "walltime": "90m",
        "gangSize": "8",
        "gangPlacing": "whole",
        "gangWait": "30m",
        "foreign": "static",
    }
    names = {"yunikorn.apache.org/requiredNode": "n1", "UNIT": "bletchley", "other": "bletchley"}
    hidden: Any = lines.hidden({"tags": {**said, **names}})["tags"]
    queue: Any = lines.hidden({"queueName": "bletchley"})["queueName"]
    node: Any = lines.hidden({"nodeID": "n1"})["nodeID"]

    assert said == {name: hidden[name] for name in said}
    assert (node, queue) == (hidden["yunikorn.apache.org/requiredNode"], hidden["UNIT"])
    assert hidden["other"].startswith("tag-")


def test_tags_that_name_applications_name_the_same_ones() -> None:
    """With the pseudonyms of these applications; how many of an array run at once is kept."""
    lines = AnonymousLines()
    hidden: Any = lines.hidden(
        {
            "new": [
                {"applicationID": "ultra", "tags": {"array": "ultra", "arrayLimit": "2"}},
                {"applicationID": "b", "tags": {"after": "ultra, b", "afterOk": "ultra", "afterFailed": "b"}},
            ],
            "remove": [{"applicationID": "ultra", "outcome": "failed"}],
        }
    )
    first, second = hidden["new"]
    ultra, b = first["applicationID"], second["applicationID"]
    assert {"ultra", "b"}.isdisjoint({ultra, b})
    assert first["tags"] == {"array": ultra, "arrayLimit": "2"}
    assert second["tags"] == {"after": f"{ultra},{b}", "afterOk": ultra, "afterFailed": b}
    assert hidden["remove"] == [{"applicationID": ultra, "outcome": "failed"}]


@pytest.mark.parametrize("name", ["tags", "groups", "refused", "attributes", "memory"])
def test_a_resource_may_have_the_name_of_anything(name: str) -> None:
    """Its quantity stays, and its name."""
    line: Any = {"schedulableResource": {"resources": {name: {"value": "1"}}}}

    assert line == AnonymousLines().hidden(line)


def test_what_was_quarantined_has_the_pseudonym_of_its_kind() -> None:
    """The reason is a text for people."""
    lines = AnonymousLines()
    for kind, key in (("node", "nodeID"), ("application", "applicationID")):
        hidden = lines.hidden({"quarantine": {"kind": kind, "name": "x", "reason": "x"}})

        assert {"kind": kind, "name": lines.hidden({key: "x"})[key], "reason": ""} == hidden["quarantine"]
