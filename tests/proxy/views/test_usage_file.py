"""The usage file: written, read again, and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import application_request, ask_request, node_request
from support.waiting import wait_until

from licorne import RemoteScheduler, Scheduler
from licorne.model.errors import LicorneError, RequestError
from licorne.model.queues.use_order import KeptUse
from licorne.model.resources.decayed_use import DecayedUse, TypeUse, decayed_means
from licorne.proxy.core.scheduler.answering.state_documents import read_use, use_document
from licorne.proxy.views.dumps import UsageFile, begun_at, read_usage, usage_from, usage_text
from licorne.proxy.wire.server.server import ServerThread

HOUR: Final = 3600 * 10**9
DAY: Final = 24 * HOUR
NOW: Final = 20_000 * DAY
LONG_AGO: Final = 10_950 * DAY
QUEUES: Final = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        properties: {fair.half-life: 1d}
        queues: [{name: leaf, properties: {application.sort.policy: users, fair.half-life: 1d}}]
"""
USAGE: Final = {
    "[rm]default": KeptUse(
        NOW,
        {
            "root.a": DecayedUse(DAY, 312, {"memory": TypeUse(10, -(3**100)), "vcore": TypeUse(0, 2**90)}),
            "root.a|ada": DecayedUse(2 * DAY, 156, {"vcore": TypeUse(7, 0)}),
        },
    ),
    "[rm]gpu": KeptUse(NOW - HOUR, {}),
}


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """To the last bit, each partition with its own moment."""
    path = tmp_path / "usage.json"
    path.write_text(usage_text(USAGE, NOW), encoding="utf-8")

    assert (NOW, USAGE) == read_usage(path)


def a_row(**changes: Any) -> dict[str, Any]:
    row = {"path": "root.a", "user": None, "half_life": DAY, "span": 312, "type": "vcore"}
    return {**row, "amount": 1, "kept": 2, **changes}


def a_file(*rows: dict[str, Any], at: int = NOW, **changes: Any) -> str:
    partition = {"name": "[rm]default", "at": at, "rows": [*rows]}
    return json.dumps({"kind": "licorne usage", "version": 1, "at": at, "partitions": [partition], **changes})


class Bad(NamedTuple):
    """A text that is refused, and what is said."""

    text: str
    said: str


BAD: Final = {
    "no JSON": Bad("{", "is not JSON"),
    "nothing": Bad("", "is not JSON"),
    "a list": Bad("[]", "is not a usage file: its kind is not 'licorne usage'"),
    "another document": Bad('{"kind": "figures"}', "is not a usage file"),
    "another version": Bad(a_file(version=2), "has the version 2; this program reads 1"),
    "cut off": Bad(a_file(a_row())[:-9], "is not JSON"),
    "an amount that is no number": Bad(a_file(a_row(amount="x")), "partitions.0.rows.0.amount: "),
    "a negative amount": Bad(a_file(a_row(amount=-1)), "not '-1'"),
    "no half-life": Bad(a_file(a_row(half_life=0)), "partitions.0.rows.0.half_life: "),
    "a number without end": Bad(a_file(a_row(kept=2**300)), "partitions.0.rows.0.kept: "),
    "a field too many": Bad(a_file(a_row(more=1)), "partitions.0.rows.0.more: "),
    "one row twice": Bad(a_file(a_row(), a_row()), "root.a: its row of vcore does not fit those before it"),
    "two half-lives of one": Bad(a_file(a_row(), a_row(type="memory", half_life=HOUR)), "does not fit"),
    "a partition after the file": Bad(a_file().replace(f'"at": {NOW}', '"at": 5', 1), "is after that of"),
    "the future": Bad(a_file(a_row(), at=NOW + DAY), f"is from the future: its time is {NOW + DAY}"),
    "more than 20 half-lives": Bad(a_file(a_row(), at=NOW - 21 * DAY), "more than 20 half-lives of 86400 s"),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_a_bad_file_is_refused(case: Bad, tmp_path: Path) -> None:
    """By one line that names the file and what is wrong."""
    path = tmp_path / "usage.json"
    path.write_text(case.text, encoding="utf-8")
    with pytest.raises(LicorneError) as refused:
        usage_from(path, NOW)

    said = str(refused.value)
    assert (True, True, 1) == (said.startswith(f"{path}: "), case.said in said, len(said.splitlines())), said


@pytest.mark.parametrize("ahead", [1, 10**9, DAY - 1])
def test_a_file_that_is_ahead_by_less_than_a_half_life_is_taken(ahead: int, tmp_path: Path) -> None:
    """What it has counts as of now: a clock that was set right by half a second loses nothing."""
    path = tmp_path / "usage.json"
    use = DecayedUse(DAY, (NOW + ahead) // (64 * DAY), {"vcore": TypeUse(8, 0)})
    path.write_text(usage_text({"[rm]default": KeptUse(NOW + ahead, {"root.a": use})}, NOW), encoding="utf-8")
    kept = usage_from(path, NOW)["[rm]default"]

    assert (NOW, 0) == (kept.at_ns, kept.uses["root.a"].types["vcore"].amount)
    assert pytest.approx(8) == decayed_means(kept.uses["root.a"], NOW)["vcore"]


def test_a_file_without_use_is_taken_whatever_its_time(tmp_path: Path) -> None:
    """There is nothing that could count wrongly."""
    path = tmp_path / "usage.json"
    path.write_text(usage_text({"[rm]default": KeptUse(NOW + DAY, {})}, NOW), encoding="utf-8")

    assert {"[rm]default": KeptUse(NOW, {})} == usage_from(path, NOW)


def test_a_simulation_begins_with_the_means_of_the_file() -> None:
    """What was in use then has ended, and a partition has it by its short name as well."""
    use = DecayedUse(DAY, 20_000 // 64, {"vcore": TypeUse(8, 0)})
    begun = begun_at(LONG_AGO, NOW, {"[rm]default": KeptUse(NOW, {"root.a": use})})

    assert {"[rm]default", "default"} == begun.keys()
    kept = begun["default"]
    means = [decayed_means(kept.uses["root.a"], kept.at_ns + days * DAY)["vcore"] for days in (0, 1, 2)]
    assert [8.0, 4.0, 2.0] == means


def test_a_name_that_two_partitions_have_stands_for_neither() -> None:
    """Which of them is meant cannot be known."""
    begun = begun_at(LONG_AGO, NOW, {"[a]default": KeptUse(NOW), "[b]default": KeptUse(NOW)})

    assert {"[a]default", "[b]default"} == begun.keys()


def test_it_is_written_from_time_to_time(tmp_path: Path) -> None:
    """What is there has the queue and the user of what runs, and of what was kept before."""
    path = tmp_path / "usage.json"
    listener = Listener()
    with (
        Scheduler(kept_use={"[other]default": USAGE["[rm]default"]}) as scheduler,
        UsageFile(scheduler, path, interval_seconds=0.01),
    ):
        scheduler.register("rm", listener, configuration=QUEUES)
        scheduler.update_node(node_request("n1"))
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(ask_request("task"))
        listener.wait_for("placed task")
        wait_until(path.exists)
        wait_until(lambda: len(read_usage(path)[1].get("[rm]default", KeptUse()).uses) == 2)
        usage = read_usage(path)[1]

    assert USAGE["[rm]default"] == usage["[other]default"]
    assert ["root.leaf", "root.leaf|bob"] == [*usage["[rm]default"].uses]


TAKEN: Final[dict[str, tuple[Any, str]]] = {
    "a list": ([], "the use of RM 'rm': is not a usage file: its kind is not 'licorne usage'"),
    "a row too little": (
        {"kind": "licorne usage", "version": 1, "at": 0},
        "the use of RM 'rm': partitions: Field required",
    ),
}


@pytest.mark.parametrize("case", TAKEN.values(), ids=TAKEN)
def test_what_is_no_use_is_not_taken(case: tuple[Any, str]) -> None:
    """A client hears what a scheduler in process says."""
    document, said = case
    with Scheduler(engine="direct") as core, ServerThread(core) as server:
        with RemoteScheduler(server.address) as client, pytest.raises(RequestError) as of_client:
            client.take_kept_use("rm", document)
        with pytest.raises(RequestError) as of_core:
            core.take_kept_use("rm", document)

    assert str(of_core.value) == str(of_client.value)
    assert str(of_core.value).startswith(said), str(of_core.value)


def test_a_recorded_scheduler_takes_no_use(tmp_path: Path) -> None:
    """A replay of the recording would not have it."""
    document = use_document(USAGE, NOW)
    with Scheduler(record=tmp_path) as scheduler, pytest.raises(RequestError, match="a replay"):
        scheduler.take_kept_use("rm", document)


def test_only_the_use_of_the_named_manager_is_taken() -> None:
    """Who speaks for one cannot change the shares of another."""
    usage = {"[rm]default": USAGE["[rm]default"], "[other]default": USAGE["[rm]default"]}
    with Scheduler(engine="direct") as scheduler:
        scheduler.take_kept_use("rm", use_document(usage, NOW))

        assert {"[rm]default": USAGE["[rm]default"]} == read_use(scheduler.kept_use())[1]
