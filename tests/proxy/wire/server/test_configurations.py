"""Which configuration counts: what the resource manager sends, else the file of the server."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, configuration_request
from support.proxy.processes import serving
from support.proxy.wire_client import WireClient
from support.waiting import WAIT_SECONDS, wait_until

from licorne import RemoteScheduler, RequestError, Scheduler
from licorne.model.configuration.extra import LogLevel
from licorne.model.configuration.reader import load
from licorne.model.configuration.schema import SchedulerConfig
from licorne.proxy.core.scheduler.managers import registrations
from licorne.proxy.wire.server.core import ConfigurationFile, FileRefusedError
from licorne.proxy.wire.server.server import Server, ServerSettings

from .conftest import Served

FILE = ONE.replace("name: leaf", "name: from-file")
OTHER = ONE.replace("name: leaf", "name: changed")


def _leaves(scheduler: RemoteScheduler, rm_id: str) -> list[str]:
    queues: Any = scheduler.snapshot(rm_id=rm_id)["queues"]
    (root,) = queues.values()
    return [child["queuename"] for child in root.get("children", ())]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "queues.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_the_text_of_the_rm_counts_else_the_file(serve: Callable[..., Served], file: Path) -> None:
    """The same rule holds for a registration and for an update."""
    served = serve(configuration=ConfigurationFile(file))
    with RemoteScheduler(served.address) as scheduler:
        scheduler.register("own", Listener(), configuration=ONE)
        scheduler.register("none", Listener())
        assert _leaves(scheduler, "own") == ["root.leaf"]
        assert _leaves(scheduler, "none") == ["root.from-file"]

        scheduler.update_configuration(configuration_request("", rm_id="own"))
        scheduler.update_configuration(configuration_request(OTHER, rm_id="none"))
        assert "root.from-file" in _leaves(scheduler, "own")
        assert "root.changed" in _leaves(scheduler, "none")


def test_a_client_sees_the_extra_configuration(serve: Callable[..., Served]) -> None:
    """As it is read, and as it came."""
    extra = {"log.core.level": "warn", "event.maxStreams": "7", "service.policyGroup": "queues"}
    served = serve()
    with RemoteScheduler(served.address) as scheduler:
        scheduler.register("rm", Listener(), configuration=ONE, extra_configuration=extra)
        found = scheduler.extra_configuration("rm")

    assert (7, LogLevel.WARN, extra) == (found.event_max_streams, found.level_of("core"), dict(found.texts))


def test_without_a_file_the_default_counts(served: Served) -> None:
    """A queue for each namespace, as for a scheduler in process."""
    with RemoteScheduler(served.address) as scheduler:
        scheduler.register("rm", Listener())
        assert _leaves(scheduler, "rm") == []


def test_a_file_that_changes_is_read_again(file: Path, tmp_path: Path) -> None:
    """RMs that run on it get it, others keep theirs; a bad one is refused with all positions."""
    errors = tmp_path / "errors.txt"
    with (
        serving("--config", str(file), errors=errors) as server,
        RemoteScheduler(server.address) as scheduler,
    ):
        scheduler.register("own", Listener(), configuration=ONE)
        scheduler.register("none", Listener())
        file.write_text(OTHER, encoding="utf-8")
        wait_until(lambda: "root.changed" in _leaves(scheduler, "none"), "the new file counts")
        assert _leaves(scheduler, "own") == ["root.leaf"]

        bad = "partitions:\n  - name: default\n    queues: 7\n  - name: 8\n"
        file.write_text(bad, encoding="utf-8")
        wait_until(lambda: "is refused" in errors.read_text(encoding="utf-8"), "the bad file is refused")
        scheduler.register("late", Listener())
        assert _leaves(scheduler, "late") == ["root.changed"]
    told = errors.read_text(encoding="utf-8")
    assert f"{file}:3:" in told


def test_a_server_does_not_start_with_a_bad_file(tmp_path: Path) -> None:
    """The error has each position."""
    path = tmp_path / "queues.yaml"
    path.write_text("partitions:\n  - name: default\n    queues: 7\n", encoding="utf-8")
    with pytest.raises(FileRefusedError, match=r"queues\.yaml:3:"):
        ConfigurationFile(path)
    with pytest.raises(FileRefusedError, match="cannot be read"):
        ConfigurationFile(tmp_path / "missing.yaml")


@pytest.mark.parametrize("how", ["empty", "comment", "pipe", "folder"])
def test_a_file_that_has_become_something_else_leaves_what_was_there(file: Path, how: str) -> None:
    """An editor empties a file before it writes; a pipe would be read for ever."""
    configuration = ConfigurationFile(file)
    file.unlink()
    if how == "pipe":
        os.mkfifo(file)
    elif how == "folder":
        file.mkdir()
    else:
        file.write_text("# nothing yet\n" if how == "comment" else "", encoding="utf-8")

    assert configuration.has_changed()
    with pytest.raises(FileRefusedError, match=r"this is empty|no longer exists"):
        configuration.reload()
    assert FILE == configuration.text


def test_a_file_system_that_does_not_answer_keeps_no_server_from_serving_and_ending(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what looks at the file waits."""
    configuration = ConfigurationFile(file)
    begun, never = threading.Event(), threading.Event()

    def look_for_ever(_: ConfigurationFile) -> bool:
        begun.set()
        return never.wait()

    monkeypatch.setattr(ConfigurationFile, "has_changed", look_for_ever)

    async def look() -> None:
        scheduler = Scheduler()
        server = Server(scheduler, ServerSettings(configuration=configuration))
        await server.start()
        looking = asyncio.ensure_future(server.file_has_changed())
        assert await asyncio.to_thread(begun.wait, WAIT_SECONDS)
        assert not looking.done()
        looking.cancel()
        await server.stop()

    asyncio.run(look())
    never.set()


def test_large_configurations_are_read_one_at_a_time(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Registrations with others go on meanwhile; one that is too large is refused."""
    large = ONE + "#" * (64 << 10)
    may_go_on, at_once, most = threading.Event(), 0, 0

    def slow(text: str) -> SchedulerConfig:
        nonlocal at_once, most
        if len(text) >= len(large):
            at_once += 1
            most = max(most, at_once)
            may_go_on.wait(WAIT_SECONDS)
            at_once -= 1
        return load(text)

    monkeypatch.setattr(registrations, "load", slow)
    served = serve()
    channel = served.channel()
    with futures.ThreadPoolExecutor(10) as pool:
        waiting = [pool.submit(WireClient(channel).register, f"large-{each}", large) for each in range(10)]
        with RemoteScheduler(served.address) as scheduler:
            scheduler.register("small", Listener(), configuration=ONE)
            wait_until(lambda: at_once, "a large one is read")
            may_go_on.set()
            with pytest.raises(RequestError, match="may have 1,048,576 bytes at most"):
                scheduler.register("too-large", Listener(), configuration=ONE + "#" * (1 << 20))
        for each in waiting:
            each.result()
    assert 1 == most


def test_a_refused_registration_names_all_positions(served: Served) -> None:
    """As in process."""
    bad = "partitions:\n- name: default\n  queues:\n  -\n    name: root\n    unknown: 1\n    other: 2\n"
    with RemoteScheduler(served.address) as scheduler, pytest.raises(RequestError) as refused:
        scheduler.register("rm", Listener(), configuration=bad)
    assert "queues.yaml:6:" in str(refused.value)
    assert "queues.yaml:7:" in str(refused.value)
