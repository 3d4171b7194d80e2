"""The requests of each view of the official web UI, against a real server with nothing, little or much.

The UI goes through lists, splits texts and divides numbers without looking whether they are any, and shows
its error page for any status but 2xx. So each document is compared with the types that it relies on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE
from support.proxy.page_cluster import GIB, ask, fetch, fill, submit
from support.proxy.rest_scenario import rest_scenario
from support.waiting import wait_until

from licorne import Scheduler
from licorne.proxy.views.rest.running import RestServer

MANY = 300
BUCKETS = [f"{tens}-{tens + 10}%" for tens in range(0, 100, 10)]
NANOSECONDS = range(9 * 10**17, 9 * 10**18)
"""A time between 1998 and 2255."""
MILLISECONDS = range(9 * 10**11, 9 * 10**12)


def empty() -> Scheduler:
    return Scheduler()


def registered() -> Scheduler:
    """One whose resource manager has nothing yet."""
    scheduler = Scheduler()
    scheduler.register("rm", Listener(), configuration=ONE)
    return scheduler


def recorded() -> Scheduler:
    """Give the state in which the golden bodies were recorded."""
    scheduler = rest_scenario()
    scheduler.check_health()
    scheduler.record_history()
    return scheduler


def many() -> Scheduler:
    """One with some hundred nodes and applications, of which some wait."""
    scheduler = Scheduler()
    fill(scheduler, Listener(), nodes=MANY)
    for at in range(MANY):
        submit(scheduler, f"many-{at}", "root.batch")
        ask(scheduler, f"many-{at}", f"ask-{at}", memory=4 * GIB if at % 3 else 999 * GIB)
    wait_until(lambda: scheduler.explain("many-0").waiting[0].blockers, "what is too large was tried")
    return scheduler


STATES: list[Callable[[], Scheduler]] = [empty, registered, recorded, many]


@pytest.fixture(scope="module", params=STATES, ids=lambda state: state.__name__)
def origin(request: pytest.FixtureRequest) -> Iterator[str]:
    with request.param() as scheduler, RestServer(scheduler) as server:
        yield f"http://127.0.0.1:{server.port}"


def read(origin: str, path: str) -> Any:
    answer = fetch(origin, f"/ws/v1/{path}")
    assert (path, 200) == (path, answer.status)
    return answer.document


def partitions(origin: str) -> list[str]:
    return [each["name"] for each in read(origin, "partitions")]


def queues(tree: Any) -> Iterator[Any]:
    """Yield all queues of a tree; one without any below it has no list of them, or an empty one."""
    yield tree
    children = tree.get("children", [])
    assert isinstance(children, list)
    for child in children:
        yield from queues(child)


@pytest.mark.parametrize("path", ["clusters", "partitions", "scheduler/node-utilizations"])
def test_the_first_views_read_lists(origin: str, path: str) -> None:
    """A list without entries is `[]`, never null; before a resource manager registers there are none."""
    document = read(origin, path)

    assert isinstance(document, list)
    assert bool(document) == bool(partitions(origin))


def check(document: dict[str, Any], **wanted: Any) -> None:
    """Assert that members have the types; a dict stands for a map from names to numbers."""
    for name, kind in wanted.items():
        value = document[name]
        if isinstance(kind, dict):
            assert all(type(each) is int for each in value.values()), (name, value)
        else:
            assert type(value) is kind, (name, value)


def check_known(document: dict[str, Any], **wanted: Any) -> None:
    """Assert likewise of members that are left out where they are zero or empty: they are never null."""
    check(document, **{name: kind for name, kind in wanted.items() if name in document})


def test_the_head_reads_clusters(origin: str) -> None:
    """Of each it splits the name, and shows the build."""
    for cluster in read(origin, "clusters"):
        check(cluster, startTime=int, rmBuildInformation=list, partition=str, clusterName=str)
        assert cluster["startTime"] in NANOSECONDS


def test_the_dashboard_reads_partitions_with_the_number_of_applications(origin: str) -> None:
    """`total` is there, whatever else is not."""
    for partition in read(origin, "partitions"):
        check(partition, name=str, clusterId=str, state=str, applications={}, lastStateTransitionTime=int)
        check(partition, capacity=dict, nodeSortingPolicy=dict)
        check_known(partition, totalNodes=int, totalContainers=int)
        counts = dict(partition["applications"])
        assert counts.pop("total") == sum(counts.values())
        check_known(partition["capacity"], capacity={}, usedCapacity={}, utilization={})


@pytest.mark.parametrize(
    ("path", "count"), [("history/apps", "totalApplications"), ("history/containers", "totalContainers")]
)
def test_the_dashboard_reads_histories_whose_totals_are_texts(origin: str, path: str, count: str) -> None:
    """Their times are nanoseconds; a history without points is an empty list."""
    history = read(origin, path)

    assert isinstance(history, list)
    for point in history:
        check(point, timestamp=int, **{count: str})
        assert point["timestamp"] in NANOSECONDS
        assert int(point[count]) >= 0


def test_the_dashboard_reads_ten_classes_of_nodes_for_each_type(origin: str) -> None:
    """`utilizations` is a list, also without nodes."""
    for entry in read(origin, "scheduler/node-utilizations"):
        check(entry, clusterId=str, partition=str, utilizations=list)
        for kind in entry["utilizations"]:
            check(kind, type=str, utilization=list)
            assert BUCKETS == [bucket["bucketName"] for bucket in kind["utilization"]]
            for bucket in kind["utilization"]:
                check_known(bucket, nodeNames=list, numOfNodes=int)


def test_the_dashboard_reads_the_health_in_capitalised_words(origin: str) -> None:
    health = read(origin, "scheduler/healthcheck")

    check(health, Healthy=bool, HealthChecks=list)
    for each in health["HealthChecks"]:
        check(each, Name=str, Succeeded=bool, Description=str, DiagnosisMessage=str)


def test_the_view_of_queues_reads_a_tree(origin: str) -> None:
    """Of each queue its resources are maps, where they are there at all."""
    for name in partitions(origin):
        for queue in queues(read(origin, f"partition/{quote(name, safe='')}/queues")):
            check(queue, queuename=str, status=str, isLeaf=bool, isManaged=bool)
            check_known(
                queue, maxResource={}, guaranteedResource={}, allocatedResource={}, pendingResource={}
            )
            check_known(queue, absUsedCapacity={}, properties=dict, children=list)


def test_the_view_of_applications_reads_those_of_each_leaf(origin: str) -> None:
    """Allocations are a list or not there; a submission is in nanoseconds, a start in milliseconds."""
    for name in partitions(origin):
        tree = read(origin, f"partition/{quote(name, safe='')}/queues")
        leaves = [each for each in queues(tree) if each["isLeaf"]]
        assert leaves
        for leaf in leaves:
            for application in applications_of(origin, name, leaf):
                check(application, applicationID=str, queueName=str, applicationState=str, submissionTime=int)
                check(application, user=str, startTime=int)
                check_known(application, usedResource={}, pendingResource={}, maxUsedResource={})
                assert application["submissionTime"] in NANOSECONDS
                assert application["startTime"] < 0 or application["startTime"] in MILLISECONDS
                assert application["startTime"] < 0 or application["startTime"] in _possible_starts(
                    application
                )
                _check_allocations(application)


def applications_of(origin: str, partition: str, queue: Any) -> Any:
    """Read the applications of a queue, whose name is a component of the address."""
    path = f"partition/{quote(partition, safe='')}/queue/{quote(queue['queuename'], safe='')}/applications"
    return read(origin, path)


def test_each_queue_of_the_tree_can_be_chosen(origin: str) -> None:
    """All active applications are found by the queues that they are in."""
    for name in partitions(origin):
        below = f"partition/{quote(name, safe='')}"
        active = read(origin, f"{below}/applications/active")
        chosen = [
            (queue["queuename"], application["applicationID"])
            for queue in queues(read(origin, f"{below}/queues"))
            for application in applications_of(origin, name, queue)
        ]
        assert sorted((each["queueName"], each["applicationID"]) for each in active) == sorted(chosen)


def _possible_starts(application: dict[str, Any]) -> range:
    """Return when it may have started: neither before its submission nor before it was accepted."""
    states = [entry["time"] // 10**6 for entry in application["stateLog"]]
    return range(max(application["submissionTime"] // 10**6, states[0]), states[-1] + 1)


def _check_allocations(application: dict[str, Any]) -> None:
    allocations = application.get("allocations", [])
    assert isinstance(allocations, list)
    for allocation in allocations:
        check(allocation, allocationKey=str, nodeId=str, resource={}, priority=str, applicationId=str)
        check_known(allocation, allocationTags=dict)


def test_the_view_of_nodes_reads_a_list(origin: str) -> None:
    """Of each node its allocations are a list or not there, its resources maps."""
    for name in partitions(origin):
        nodes = read(origin, f"partition/{quote(name, safe='')}/nodes")
        assert isinstance(nodes, list)
        for node in nodes:
            check(node, nodeID=str, schedulable=bool, isReserved=bool)
            check_known(node, hostName=str, rackName=str, attributes=dict, allocations=list)
            check_known(node, capacity={}, allocated={}, available={}, occupied={}, utilized={})
