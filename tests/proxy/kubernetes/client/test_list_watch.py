"""Following the objects of a kind: lists, changes, and what happens when a watch is cut or too old."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pytest
from support.kubernetes.stub_clients import PODS, a_pod
from support.kubernetes.stub_server import StubApiServer
from support.waiting import wait_until

from licorne.actors.services.log import Log
from licorne.model.configuration.extra import LogLevel
from licorne.proxy.kubernetes.client.api_client import ApiClient
from licorne.proxy.kubernetes.client.errors import ApiUnreachable
from licorne.proxy.kubernetes.client.list_watch import (
    ListWatch,
    Read,
    UnreadableObject,
    WatchChange,
    WatchedResource,
)
from licorne.proxy.kubernetes.objects import Pod

ALL_PODS: Final = "/api/v1/pods"
WATCH: Final = r"/api/v1/pods\?watch"


class Follower:
    """Keeps what a list and its changes say, as a cache does.

    Attributes:
        names: The pods that there are.
        lists: The names in each list.
        changes: All changes, as type and name.
        batches: How many changes came at a time.
        unreadable: The names of those that could not be read.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.lists: list[list[str]] = []
        self.versions: list[str] = []
        self.changes: list[tuple[str, str]] = []
        self.batches: list[int] = []
        self.pods: dict[str, Pod] = {}
        self.unreadable: list[str] = []

    def on_list(self, pods: Sequence[Read[Pod]], version: str) -> None:
        self.unreadable += [pod.metadata.name for pod in pods if isinstance(pod, UnreadableObject)]
        self.pods = {pod.metadata.name: pod for pod in pods if isinstance(pod, Pod)}
        self.names = set(self.pods)
        self.lists.append(sorted(self.names))
        self.versions.append(version)

    def on_events(self, changes: Sequence[tuple[WatchChange, Read[Pod]]]) -> None:
        self.batches.append(len(changes))
        for change, pod in changes:
            if isinstance(pod, UnreadableObject):
                self.unreadable.append(pod.metadata.name)
                continue
            self.pods[pod.metadata.name] = pod
            (self.names.discard if change is WatchChange.DELETED else self.names.add)(pod.metadata.name)
            self.changes.append((change.value, pod.metadata.name))


@contextmanager
def following(
    client: ApiClient, *, page_size: int = 500, idle_seconds: float = 60.0, **selectors: str
) -> Iterator[tuple[Follower, ListWatch[Pod]]]:
    """Follow pods until the end of the block."""
    follower = Follower()
    watch = ListWatch(
        client,
        WatchedResource(ALL_PODS, Pod, **selectors),
        on_list=follower.on_list,
        on_events=follower.on_events,
        page_size=page_size,
        idle_timeout_seconds=idle_seconds,
        backoff_limits_seconds=(0.01, 0.05),
    )
    watch.start()
    try:
        wait_until(lambda: follower.lists or watch.failure)
        yield follower, watch
    finally:
        watch.stop()


def watches(stub: StubApiServer) -> int:
    """Return how many watches were asked for."""
    return len([each for each in stub.asked("GET", ALL_PODS) if "watch" in each.query])


def wait_for_watch(stub: StubApiServer, number: int = 1) -> None:
    wait_until(lambda: watches(stub) >= number and stub.streams > 0, f"watch {number}")


def test_a_list_is_handed_over_then_each_change(stub: StubApiServer, client: ApiClient) -> None:
    """A pod comes, changes and leaves."""
    stub.add(PODS, a_pod("old"))

    with following(client) as (follower, _):
        stub.add(PODS, a_pod("new"))
        stub.change(f"{PODS}/new", {"spec": {"nodeName": "n1"}})
        stub.remove(f"{PODS}/old")
        wait_until(lambda: len(follower.changes) == 3)

    changes = [("ADDED", "new"), ("MODIFIED", "new"), ("DELETED", "old")]
    assert ([["old"]], changes, "n1") == (
        follower.lists,
        follower.changes,
        follower.pods["new"].spec.node_name,
    )


def test_a_long_list_is_asked_for_in_pages(stub: StubApiServer, client: ApiClient) -> None:
    """It is handed over at once, when the last page is there."""
    for number in range(7):
        stub.add(PODS, a_pod(f"p{number}"))

    with following(client, page_size=3) as (follower, _):
        pages = [each for each in stub.asked("GET", ALL_PODS) if "watch" not in each.query]

    assert ([[f"p{number}" for number in range(7)]], 3) == (follower.lists, len(pages))


def test_a_list_whose_next_page_is_too_old_begins_anew(stub: StubApiServer, client: ApiClient) -> None:
    """The server forgets the version of a list after some minutes."""
    for number in range(4):
        stub.add(PODS, a_pod(f"p{number}"))
    pages: list[None] = []

    def forget() -> None:
        pages.append(None)
        if len(pages) == 2:
            stub.forget_history()

    stub.before("GET", ALL_PODS, forget)
    with following(client, page_size=3) as (follower, _):
        wait_until(lambda: follower.lists)

    assert [["p0", "p1", "p2", "p3"]] == follower.lists


BREAKS: Final[dict[str, Callable[[StubApiServer], object]]] = {
    "a watch that is cut goes on where it was": StubApiServer.cut_watches,
    "a watch that ends goes on where it was": StubApiServer.end_watches,
}


@pytest.mark.parametrize("interrupt", BREAKS.values(), ids=BREAKS)
def test_no_change_is_lost_between_two_watches(
    stub: StubApiServer, client: ApiClient, interrupt: Callable[[StubApiServer], object]
) -> None:
    """What happens meanwhile comes with the next watch, and nothing is listed."""
    with following(client) as (follower, watch):
        wait_for_watch(stub)
        stub.add(PODS, a_pod("first"))
        wait_until(lambda: follower.changes)
        stub.fail("GET", WATCH, times=2)
        interrupt(stub)
        stub.add(PODS, a_pod("second"))
        wait_until(lambda: len(follower.changes) == 2)

        assert ([[]], {"first", "second"}, None) == (follower.lists, follower.names, watch.failure)


def test_a_version_that_the_server_has_forgotten_is_listed_anew(
    stub: StubApiServer, client: ApiClient
) -> None:
    """A pod that was removed meanwhile is missing in the new list."""
    stub.add(PODS, a_pod("gone"))
    with following(client) as (follower, _):
        wait_for_watch(stub)
        stub.delay("GET", WATCH, 0.1)
        stub.cut_watches()
        stub.remove(f"{PODS}/gone")
        stub.forget_history()
        wait_until(lambda: len(follower.lists) == 2)

    assert [["gone"], []] == follower.lists


def test_an_error_event_of_a_version_that_is_too_old_lists_anew(
    stub: StubApiServer, client: ApiClient
) -> None:
    """The server can notice it while the watch runs. Changes before it are handed over."""
    with following(client) as (follower, watch):
        wait_for_watch(stub)
        with stub.store.changed:
            stub.add(PODS, a_pod("p"))
            stub.send_error(410, "Expired")
        wait_until(lambda: len(follower.lists) == 2)

    assert ([[], ["p"]], [("ADDED", "p")], 2) == (follower.lists, follower.changes, watch.list_count)


def test_another_error_event_is_no_reason_to_list(stub: StubApiServer, client: ApiClient) -> None:
    """The watch goes on after a pause."""
    with following(client) as (follower, _):
        wait_for_watch(stub)
        stub.send_error(500, "InternalError")
        wait_for_watch(stub, 2)
        stub.add(PODS, a_pod("p"))
        wait_until(lambda: follower.changes)

    assert [[]] == follower.lists


def test_a_bookmark_moves_the_version(stub: StubApiServer, client: ApiClient) -> None:
    """After it a watch goes on from there, also if the versions before are forgotten."""
    with following(client, label_selector="app=a") as (follower, watch):
        wait_for_watch(stub)
        stub.add(PODS, a_pod("other", labels={"app": "b"}))
        stub.bookmark()
        wait_until(lambda: watch.resource_version == str(stub.store.version))
        stub.cut_watches()
        wait_for_watch(stub, 2)

        assert (1, []) == (len(follower.lists), follower.changes)


def test_selectors_choose_the_objects(stub: StubApiServer, client: ApiClient) -> None:
    """A pod that ceases to match leaves, as if it were deleted."""
    stub.add(PODS, a_pod("bound", node="n1"))

    with following(client, field_selector="spec.nodeName=") as (follower, _):
        stub.add(PODS, a_pod("free"))
        stub.change(f"{PODS}/free", {"spec": {"nodeName": "n1"}})
        wait_until(lambda: len(follower.changes) == 2)

    assert ([[]], [("ADDED", "free"), ("DELETED", "free")]) == (follower.lists, follower.changes)


def test_changes_that_arrive_together_are_handed_over_together(
    stub: StubApiServer, client: ApiClient
) -> None:
    """A burst makes few calls."""
    with following(client) as (follower, _):
        wait_for_watch(stub)
        with stub.store.changed:
            for number in range(200):
                stub.add(PODS, a_pod(f"p{number}"))
        wait_until(lambda: len(follower.changes) == 200)

    assert len(follower.batches) < 50


def test_an_object_that_cannot_be_read_is_handed_over_as_such(stub: StubApiServer, client: ApiClient) -> None:
    """With its name, beside the others, from the list and as changes."""
    stub.add(PODS, a_pod("good"))
    stub.add(PODS, {"metadata": {"name": "bad"}, "spec": {"containers": 7}})

    with following(client) as (follower, watch):
        stub.add(PODS, {"metadata": {"name": "worse"}, "spec": {"containers": 7}})
        stub.add(PODS, a_pod("better"))
        wait_until(lambda: follower.changes)

        assert ({"good", "better"}, None) == (follower.names, watch.failure)
        assert ["bad", "worse"] == follower.unreadable


def test_a_server_that_is_away_is_noted_until_it_is_back(stub: StubApiServer, client: ApiClient) -> None:
    """What is known stays, and the program can see why it gets old."""
    stub.add(PODS, a_pod("p"))
    with following(client) as (follower, watch):
        wait_for_watch(stub)
        stub.drop("GET", WATCH, times=None)
        stub.cut_watches()
        wait_until(lambda: watch.failure)
        failure = watch.failure
        stub.heal()
        wait_until(lambda: watch.failure is None)

    assert (ApiUnreachable, [["p"]]) == (type(failure), follower.lists)


def test_a_silent_watch_counts_as_lost(stub: StubApiServer, client: ApiClient) -> None:
    """A server that is alive sends bookmarks."""
    with following(client, idle_seconds=0.05) as (follower, _):
        wait_for_watch(stub, 3)

    assert [[]] == follower.lists


def test_an_answer_that_is_no_watch_is_a_failure(stub: StubApiServer, client: ApiClient) -> None:
    """A server that does not know watches answers with a list."""
    stub.fail("GET", WATCH, status=200, times=None)
    with following(client) as (_, watch):
        wait_until(lambda: watch.failure)
        failure = str(watch.failure)

    assert failure.endswith("the answer has a length, so it is not a watch")


def test_a_server_that_ends_each_watch_at_once_is_asked_after_pauses(
    stub: StubApiServer, client: ApiClient
) -> None:
    """Two pauses of half the time at least lie between three watches."""

    def asked_thrice() -> bool:
        stub.end_watches()
        return watches(stub) >= 3

    watch = ListWatch(
        client,
        WatchedResource(ALL_PODS, Pod),
        on_list=lambda *_: None,
        on_events=lambda _: None,
        backoff_limits_seconds=(0.1, 0.1),
    )
    began = time.monotonic()
    watch.start()
    try:
        wait_until(asked_thrice)
    finally:
        watch.stop()

    assert time.monotonic() - began >= 0.1


def test_a_list_that_is_refused_is_tried_again(stub: StubApiServer, client: ApiClient) -> None:
    """For example until the program has the right."""
    stub.fail("GET", ALL_PODS, status=403, reason="Forbidden", message="no right", times=None)

    with following(client) as (follower, watch):
        noted = str(watch.failure)
        stub.heal()
        wait_until(lambda: follower.lists)

    assert ("403 Forbidden: no right", [[]]) == (noted, follower.lists)


def test_stopping_ends_a_watch_at_once(stub: StubApiServer, client: ApiClient) -> None:
    """The thread has ended then, though nothing arrives."""
    with following(client) as (_, watch):
        wait_for_watch(stub)
        watch.stop(5.0)

        assert [] == [each for each in threading.enumerate() if each.name == f"watch {ALL_PODS}"]


def test_stopping_ends_a_pause_at_once(stub: StubApiServer, client: ApiClient) -> None:
    """Also one after many failures."""
    stub.fail("GET", ALL_PODS, status=403, times=None)
    watch = ListWatch(
        client,
        WatchedResource(ALL_PODS, Pod),
        on_list=lambda *_: None,
        on_events=lambda _: None,
        backoff_limits_seconds=(3600.0, 3600.0),
    )
    watch.start()
    wait_until(lambda: watch.failure)

    watch.stop(5.0)

    assert [] == [each for each in threading.enumerate() if each.name == f"watch {ALL_PODS}"]


@pytest.mark.parametrize(("status", "warnings"), [(404, 0), (403, 1)])
def test_a_kind_that_not_every_cluster_has_may_be_missing(
    stub: StubApiServer, client: ApiClient, status: int, warnings: int
) -> None:
    """That is reported once, and logged if it is not granted; later it is listed."""
    follower, missing = Follower(), list[int]()
    levels: list[LogLevel] = []

    def is_logged(level: LogLevel) -> bool:
        levels.append(level)
        return False

    stub.fail("GET", ALL_PODS, status=status, reason="x", times=3)
    watch = ListWatch(
        client,
        WatchedResource(ALL_PODS, Pod),
        on_list=follower.on_list,
        on_events=follower.on_events,
        on_missing=lambda: missing.append(len(follower.lists)),
        log=Log(is_logged),
        missing_seconds=0.01,
    )
    watch.start()
    wait_until(lambda: len(follower.lists))
    watch.stop()

    assert ([0], [LogLevel.WARN] * warnings) == (missing, levels)
