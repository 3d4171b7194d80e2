"""Simulated doors, malformed requests and failing disks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.fuzz.planted_faults import FAULTS
from support.fuzz.planted_outer_faults import OUTER_FAULTS
from support.fuzz.planting import ROOT, planted_text

from licorne.model.requests import allocations
from licorne.proxy.base.files import output_files
from licorne.proxy.fuzz.runs import run_seeds
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.door.allocation_record import AllocationRecord
from licorne.proxy.wire.door.link import PartitionLink
from licorne.proxy.wire.server.remote_managers import RemoteManagers

STEPS = {"door": 12, "hostile": 30, "files": 30}
SEEDS = {"door": 2, "hostile": 4, "files": 8}


@pytest.mark.parametrize("world", STEPS)
def test_nothing_is_found_in_any_world(world: str) -> None:
    """The seeds are the same on every run; `make soak` takes others."""
    summary = run_seeds(1, SEEDS[world], steps=STEPS[world], engines=[world], until=lambda: False, jobs=1)

    assert [] == summary.failures
    assert SEEDS[world] == summary.runs[world]


def test_a_seed_does_the_same_in_another_process() -> None:
    """Whatever the order of its sets, and wherever its objects are in memory."""
    program = (
        "from licorne.proxy.fuzz.world.cluster import run_plan\n"
        "from licorne.proxy.fuzz.plans import drawn_plan\n"
        f"for world, steps in {STEPS}.items():\n"
        "    print(run_plan(drawn_plan(7, steps, world)).trace)\n"
    )

    def traces(hash_seed: str) -> list[str]:
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "LOGURU_LEVEL": "CRITICAL"}
        command = [sys.executable, "-c", program]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603 - our own
        return ran.stdout.split()

    found = traces("42")

    assert len(STEPS) == len(found)
    assert found == traces("7")


def test_a_door_that_loses_an_ask_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the loss of a worker the record alone says what waits."""
    real = AllocationRecord.note

    def note(record: AllocationRecord, request: si.AllocationRequest, session: int) -> si.AllocationRequest:
        kept = si.AllocationRequest()
        kept.CopyFrom(request)
        if len(kept.allocations) > 1:
            del kept.allocations[-1]
        real(record, kept, session)
        return request

    monkeypatch.setattr(AllocationRecord, "note", note)
    summary = run_seeds(1, 8, steps=30, engines=["door"], until=lambda: False, jobs=1)

    assert summary.failures


def test_a_worker_that_keeps_its_configuration_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The door gives another one to those that recover meanwhile, or could not commit."""
    monkeypatch.setattr(PartitionLink, "configure", lambda _: None)
    summary = run_seeds(1, 12, steps=60, engines=["door"], until=lambda: False, jobs=1)

    assert "'held', 'configuration'" in summary.failures[0].failure


def test_what_a_worker_says_after_a_lie_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The door passes on what it says, as if the number of its session was still the present one."""
    real = PartitionLink._hear

    def hear(link: Any, _: int, name: str, said: Any) -> None:
        real(link, link._number, name, said)

    monkeypatch.setattr(PartitionLink, "_hear", hear)
    summary = run_seeds(1, 16, steps=60, engines=["door"], until=lambda: False, jobs=1)

    assert "hears what a worker says after a lie" in summary.failures[0].failure


def test_a_request_of_a_process_that_is_replaced_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its node comes to the process that has taken its place."""
    monkeypatch.setattr(RemoteManagers, "check_current", lambda *_: None)
    summary = run_seeds(1, 40, steps=60, engines=["door"], until=lambda: False, jobs=1)

    assert "is accepted, and was never reported" in summary.failures[0].failure


def test_an_ask_that_is_taken_though_it_is_malformed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It differs from the scheduler that has not got it."""
    monkeypatch.setattr(allocations, "_size_refusal", lambda _: None)
    summary = run_seeds(1, 20, steps=30, engines=["hostile"], until=lambda: False, jobs=1)

    assert summary.failures


def test_a_file_that_is_torn_by_a_full_disk_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was written where it is."""

    def write(path: Path, text: str) -> None:
        try:
            with path.open("w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise output_files.UnwritableFileError(str(error)) from error

    monkeypatch.setattr("licorne.proxy.views.dumps.write_whole", write)
    summary = run_seeds(1, 20, steps=30, engines=["files"], until=lambda: False, jobs=1)

    assert "the usage file" in summary.failures[0].failure


def test_each_fault_of_the_simulator_can_be_planted() -> None:
    """`make planted-faults` plants them; what they change stands once in its file."""
    for fault in (*FAULTS, *OUTER_FAULTS):
        assert planted_text(ROOT, fault)
