"""Any request to a real server: no bug of ours, and each answer as the description says.

Requests are made from the description: some that it allows, and some that it does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import load_all_checks
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from support.proxy.described import described, operations, undescribed
from support.proxy.rest_scenario import rest_scenario
from support.waiting import WAIT_SECONDS

from licorne.proxy.views.rest import limits
from licorne.proxy.views.rest.running import RestServer

EXAMPLES: Final = 8
KNOWN: Final = {
    "partition": ["default", "[rm]default"],
    "queue": ["root", "root.a", "ROOT.b.static", "root.b"],
    "application": ["app-1", "app-gang", "app-2"],
    "node": ["node-1", "node-2"],
    "user": ["alice", "bob"],
    "group": ["dev"],
    "rm": ["rm"],
    "ask": ["a1-huge"],
    "parent": ["root", "root.a"],
}
"""What there is in the scheduler, by the names of parameters: texts that are made up are hardly ever any."""
EXCLUDED: Final = {
    # A body of the right form may mean nothing: an ask of an application that there is not.
    "dryRun": [positive_data_acceptance],
    # The status is ignored where applications are not active, as in the recorded core.
    "applications": [negative_data_rejection],
}
STREAMS: Final = {"eventStream", "serverSentEvents", "live"}
CLOSED: Final = ("/debug/pprof/",)
"""What is described as an error for all requests."""
NAMES: Final = sorted(
    operation["operationId"] for path, _, operation in operations() if not path.startswith(CLOSED)
)


class Server(NamedTuple):
    """A real server, and a session with it."""

    address: str
    session: requests.Session

    @property
    def host(self) -> str:
        return self.address.removeprefix("http://")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Serve nodes, queues, applications, asks, limits and events."""
    with pytest.MonkeyPatch.context() as patch, rest_scenario("threads") as scheduler:
        patch.setattr(limits, "SHARE", 1.0)  # Nothing is scheduled here that requests could slow down.
        scheduler.check_health()
        scheduler.record_history()
        with RestServer(scheduler) as rest, requests.Session() as session:
            yield Server(f"http://127.0.0.1:{rest.port}", session)


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """Return what makes requests, by operation."""
    load_all_checks()
    read: Any = schemathesis.openapi.from_dict(described()).get_all_operations()
    found = [entry.ok() for entry in read]
    return {operation.definition.raw["operationId"]: operation for operation in found}


def sent(server: Server, case: Any) -> None:
    """Send a request; check the answer against the description."""
    name = case.operation.definition.raw["operationId"]
    if name in STREAMS:
        check_stream(server, case)
        return
    answer = case.call(
        base_url=server.address, session=server.session, timeout=WAIT_SECONDS, allow_redirects=False
    )
    case.validate_response(answer, excluded_checks=EXCLUDED.get(name, []))
    kind = answer.headers.get("content-type", [""])[0]
    assert [] == undescribed(case.operation.path, case.method, answer.status_code, kind, answer.text)


def check_stream(server: Server, case: Any) -> None:
    """Send a request for a stream; check what comes first."""
    wanted = case.as_transport_kwargs(base_url=server.address)
    with server.session.request(stream=True, timeout=WAIT_SECONDS, **wanted) as answer:
        kind = answer.headers["Content-Type"]
        text = next(answer.iter_lines()).decode() if answer.status_code == 200 else answer.text
        said = undescribed(case.operation.path, case.method, answer.status_code, kind, text)
        assert [] == said


def examined(server: Server, operation: Any, mode: schemathesis.GenerationMode) -> int:
    """Send requests to a path; return how many."""
    count = 0

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(generation_mode=mode), st.data())
    def run(case: Any, data: st.DataObject) -> None:
        nonlocal count
        for given_parameters in (case.path_parameters, case.query):
            for name in given_parameters if isinstance(given_parameters, dict) else ():
                if name in KNOWN and data.draw(st.booleans()):
                    given_parameters[name] = data.draw(st.sampled_from(KNOWN[name]))
        sent(server, case)
        count += 1

    run()
    return count


@pytest.mark.parametrize("name", NAMES)
def test_a_request_that_is_described_is_answered_as_described(
    server: Server, made: dict[str, Any], name: str
) -> None:
    """By status, headers and document; none of them fails by a bug of ours."""
    assert examined(server, made[name], schemathesis.GenerationMode.POSITIVE)


@pytest.mark.parametrize("name", NAMES)
def test_a_request_that_is_not_described_is_refused_as_described(
    server: Server, made: dict[str, Any], name: str
) -> None:
    """Those without a parameter or body that could be wrong are refused for other reasons alone."""
    operation = made[name]
    try:
        examined(server, operation, schemathesis.GenerationMode.NEGATIVE)
    except Unsatisfiable:
        taken = [each for each in operation.iter_parameters() if has_rule(each.definition["schema"])]
        assert taken == [] or name == "validateConfiguration"


def has_rule(schema: Any) -> bool:
    """Return whether not every text is allowed."""
    return set(schema) - {"default"} != {"type"} or bool(schema["type"] != "string")


@pytest.mark.parametrize(("path", "method"), [(path, method) for path, method, _ in operations()])
def test_other_methods_are_refused_with_those_that_are_described(
    server: Server, path: str, method: str
) -> None:
    """OPTIONS says the same."""
    allowed = ", ".join(sorted({method, "OPTIONS"}))
    target = path.replace("{", "").replace("}", "")
    for other in {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} - {method}:
        status, allow = status_of(server, other, target)
        assert (200 if other == "OPTIONS" else 405, allowed) == (status, allow), other


def status_of(server: Server, method: str, target: str) -> tuple[int, str]:
    """Send a request as it is written; return its status, and the header with the methods."""
    connection = HTTPConnection(server.host, timeout=WAIT_SECONDS)
    try:
        connection.request(method, target)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Allow", "")
    finally:
        connection.close()


@settings(max_examples=60, derandomize=True, database=None)
@given(
    start=st.sampled_from(["", "/ws/v1", "/licorne/v1", "/debug", "/ws/v1/partition/default"]),
    steps=st.lists(st.text(max_size=6) | st.sampled_from(["..", ".", "%2F", "\x00", "\u202e"]), max_size=4),
    method=st.sampled_from(["GET", "POST", "PUT", "OPTIONS"]),
)
def test_a_path_that_is_not_described_is_unknown(
    server: Server, start: str, steps: list[str], method: str
) -> None:
    """Whatever stands in it; what differs from a known one by slashes or case is redirected."""
    target = "/".join([start, "unknown", *(quote(step.encode(errors="replace"), safe="%") for step in steps)])
    status, _ = status_of(server, method, target)

    assert 404 == status, target


def test_a_request_that_has_no_answer_is_found(server: Server, made: dict[str, Any]) -> None:
    """The checks above can fail: here the description wants another document."""
    case = made["clusters"].Case()
    answer = case.call(base_url=server.address, session=server.session, timeout=WAIT_SECONDS)
    document = json.dumps([{**answer.json()[0], "startTime": "today"}])

    (said,) = undescribed("/ws/v1/clusters", "GET", 200, "application/json", document)
    assert "'today' is not of type 'integer'" in said
