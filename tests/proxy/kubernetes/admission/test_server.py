"""The webhook on a port, with TLS: questions of an API server, changes while it runs, and replicas."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any, Final

import pytest
from support.kubernetes.reviews import a_review, patch_of
from support.kubernetes.stub_clients import client_of
from support.kubernetes.stub_server import StubApiServer
from support.kubernetes.webhooks import (
    MUTATING,
    ManualClock,
    ask,
    stub_with_registrations,
    trusting,
)
from support.waiting import wait_until

from licorne.actors.services.log import Log
from licorne.model.errors import LicorneError
from licorne.proxy.kubernetes.admission.cluster_objects import AdmissionObjects, UnlistedError
from licorne.proxy.kubernetes.admission.server import AdmissionServer, AdmissionServerOptions
from licorne.proxy.kubernetes.mapping.settings import ConfigMapError

MAPS: Final = "/api/v1/namespaces/yunikorn/configmaps"
CONFIGS: Final = f"{MAPS}/yunikorn-configs"
NAMESPACES: Final = "/api/v1/namespaces"
CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
BYPASS: Final = "admissionController.filtering.bypassNamespaces"
POD: Final = {"metadata": {"name": "p"}, "spec": {"containers": []}}
OPTIONS: Final = AdmissionServerOptions(
    namespace="yunikorn", registration="hook", extra_names=("127.0.0.1",), host="127.0.0.1", port=0
)


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    with stub_with_registrations() as server:
        server.add(NAMESPACES, {"metadata": {"name": "team"}})
        yield server


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def server(stub: StubApiServer, clock: ManualClock) -> Iterator[AdmissionServer]:
    with client_of(stub) as client, AdmissionServer(client, OPTIONS, now=clock) as running:
        yield running


def asked(
    stub: StubApiServer, server: AdmissionServer, path: str, body: bytes | dict[str, Any] | None
) -> tuple[int, dict[str, Any]]:
    """Ask as an API server does: over a new connection, trusting what the registration says."""
    return ask(server.port, trusting(stub.get(f"{MUTATING}/hook")), path, body)


def scheduler_of(stub: StubApiServer, server: AdmissionServer, namespace: str = "team") -> str:
    """Return the scheduler that a pod of a namespace gets; the empty text if it is not marked."""
    status, answer = asked(stub, server, "/mutate", a_review("Pod", POD, namespace=namespace))
    assert status == 200, answer
    names = [each["value"] for each in patch_of(answer) if each["path"] == "/spec/schedulerName"]
    return str(names[0]) if names else ""


def configure(stub: StubApiServer, **data: str) -> None:
    """Write the configuration, new or changed."""
    values = {key.replace("_", "."): value for key, value in data.items()}
    if stub.objects(MAPS):
        stub.change(CONFIGS, {"data": values})
    else:
        stub.add(MAPS, {"metadata": {"name": "yunikorn-configs"}, "data": values})


def test_a_pod_is_marked_over_tls(stub: StubApiServer, server: AdmissionServer) -> None:
    """The answer has the uid of the question."""
    status, answer = asked(stub, server, "/mutate", a_review("Pod", POD))

    paths = ["/spec/schedulerName", "/metadata/labels", "/metadata/annotations"]
    assert (200, paths) == (status, [each["path"] for each in patch_of(answer)])
    assert ("question-1", True) == (answer["response"]["uid"], answer["response"]["allowed"])


def test_a_bad_configuration_is_denied_over_tls(stub: StubApiServer, server: AdmissionServer) -> None:
    """With the reason."""
    document = {"metadata": {"name": "yunikorn-configs"}, "data": {"queues.yaml": "partitions: 1"}}

    _, answer = asked(stub, server, "/validate-conf", a_review("ConfigMap", document, namespace="yunikorn"))

    assert not answer["response"]["allowed"]
    assert "ConfigMap yunikorn-configs: queues.yaml:1" in answer["response"]["status"]["message"]


def test_answers_and_the_end_of_the_certificate_are_metrics(
    stub: StubApiServer, server: AdmissionServer, clock: ManualClock
) -> None:
    """A pod that is changed, one that is not, and a configuration that is denied."""
    bad = {"metadata": {"name": "yunikorn-configs"}, "data": {"queues.yaml": "partitions: 1"}}
    asked(stub, server, "/mutate", a_review("Pod", POD))
    asked(stub, server, "/validate-conf", a_review("ConfigMap", {"metadata": {}}, namespace="yunikorn"))
    asked(stub, server, "/validate-conf", a_review("ConfigMap", bad, namespace="yunikorn"))
    reviews, ends = server.metrics()

    assert {"allowed": 1, "changed": 1, "denied": 1} == {
        sample.labels["result"]: sample.value for sample in reviews.samples
    }
    assert (clock() + timedelta(days=90)).timestamp() == ends.samples[0].value


REFUSED: Final[dict[str, tuple[str, bytes | dict[str, Any] | None, int]]] = {
    "health": ("/health", None, 200),
    "a question that cannot be read": ("/mutate", b"{", 400),
    "an object that cannot be read": ("/mutate", a_review("Pod", {"metadata": 1}), 400),
    "another path": ("/other", b"{}", 404),
    "a question without body": ("/mutate", None, 405),
    "a body that is too large": ("/mutate", b" " * (16 << 20) + b"{}", 413),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_is_no_question_gets_a_status(
    stub: StubApiServer, server: AdmissionServer, case: tuple[str, bytes | dict[str, Any] | None, int]
) -> None:
    """The next question is answered."""
    path, body, expected = case

    assert asked(stub, server, path, body)[0] == expected
    assert scheduler_of(stub, server) == "yunikorn"


def test_a_client_that_trusts_others_does_not_ask(server: AdmissionServer) -> None:
    """It sees that the server is another one."""
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(server.port, ssl.create_default_context(), "/health", None)


# ---------------------------------------------------------------------------------- changes while it runs


def test_a_changed_configuration_takes_effect(stub: StubApiServer, server: AdmissionServer) -> None:
    """Also one that is deleted."""
    configure(stub, **{BYPASS: "team"})
    wait_until(lambda: scheduler_of(stub, server) == "")
    stub.remove(CONFIGS)

    wait_until(lambda: scheduler_of(stub, server) == "yunikorn")


def test_a_bad_value_leaves_the_settings_as_they_are(stub: StubApiServer, server: AdmissionServer) -> None:
    """The next good change takes effect."""
    configure(stub, **{BYPASS: "team"})
    wait_until(lambda: scheduler_of(stub, server) == "")
    configure(stub, **{BYPASS: "("})
    empty = a_review("ConfigMap", {"metadata": {"name": "yunikorn-defaults"}}, namespace="yunikorn")
    wait_until(lambda: "warnings" in asked(stub, server, "/validate-conf", empty)[1]["response"])
    assert scheduler_of(stub, server) == ""
    configure(stub, **{BYPASS: "none"})

    wait_until(lambda: scheduler_of(stub, server) == "yunikorn")


def test_without_hot_reload_a_change_waits_for_a_restart(stub: StubApiServer, clock: ManualClock) -> None:
    """The queues that are checked are those of the change nevertheless."""
    configure(stub, service_enableConfigHotRefresh="false")
    with client_of(stub) as client, AdmissionServer(client, OPTIONS, now=clock) as server:
        configure(stub, **{BYPASS: "team", "queues.yaml": "bad"})
        empty = a_review("ConfigMap", {"metadata": {"name": "yunikorn-defaults"}}, namespace="yunikorn")
        wait_until(lambda: not asked(stub, server, "/validate-conf", empty)[1]["response"]["allowed"])

        assert scheduler_of(stub, server) == "yunikorn"

    with client_of(stub) as client, AdmissionServer(client, OPTIONS, now=clock) as server:
        assert scheduler_of(stub, server) == ""


def test_a_changed_namespace_takes_effect(stub: StubApiServer, server: AdmissionServer) -> None:
    """So does one that is deleted and created anew."""
    annotations = {"yunikorn.apache.org/namespace.enableYuniKorn": "false"}
    stub.change(f"{NAMESPACES}/team", {"metadata": {"annotations": annotations}})
    wait_until(lambda: scheduler_of(stub, server) == "")
    stub.remove(f"{NAMESPACES}/team")
    stub.add(NAMESPACES, {"metadata": {"name": "team"}})

    wait_until(lambda: scheduler_of(stub, server) == "yunikorn")


def test_a_namespace_that_no_watch_has_brought_is_asked_for(stub: StubApiServer, clock: ManualClock) -> None:
    """A file may create a namespace and a pod at once."""
    stub.fail("GET", rf"{NAMESPACES}\?watch", status=503, times=None)
    with client_of(stub) as client, AdmissionServer(client, OPTIONS, now=clock) as server:
        annotations = {"yunikorn.apache.org/namespace.enableYuniKorn": "false"}
        stub.add(NAMESPACES, {"metadata": {"name": "new", "annotations": annotations}})

        assert ("", "yunikorn") == (scheduler_of(stub, server, "new"), scheduler_of(stub, server, "none"))


def test_a_class_that_no_watch_has_brought_is_asked_for(stub: StubApiServer, clock: ManualClock) -> None:
    """Its annotation becomes the pod's."""
    stub.fail("GET", rf"{CLASSES}\?watch", status=503, times=None)
    pod = {"metadata": {"name": "p"}, "spec": {"priorityClassName": "low"}}
    with client_of(stub) as client, AdmissionServer(client, OPTIONS, now=clock) as server:
        key = "yunikorn.apache.org/allow-preemption"
        stub.add(CLASSES, {"metadata": {"name": "low", "annotations": {key: "false"}}, "value": 1})

        _, answer = asked(stub, server, "/mutate", a_review("Pod", pod))

    (annotations,) = [each["value"] for each in patch_of(answer) if each["path"] == "/metadata/annotations"]
    assert annotations[key] == "false"


def test_it_answers_while_the_api_server_is_away(stub: StubApiServer, server: AdmissionServer) -> None:
    """With what it knows."""
    stub.fail("GET", ".*", status=503, times=None)
    stub.cut_watches()

    context = trusting(stub.get(f"{MUTATING}/hook"))
    assert ask(server.port, context, "/mutate", a_review("Pod", POD))[0] == 200


# ----------------------------------------------------------------------------------- start, renewal, replicas


def test_with_a_bad_configuration_it_does_not_start(stub: StubApiServer) -> None:
    """The error names object, key and value."""
    configure(stub, **{BYPASS: "("})

    with client_of(stub) as client:
        server = AdmissionServer(client, OPTIONS)
        with pytest.raises(ConfigMapError, match=f"yunikorn-configs: {BYPASS}: '\\('"):
            server.start()
        server.stop()

    assert [] == [each.name for each in threading.enumerate() if each.name.startswith("watch ")]


def test_with_a_port_of_another_program_it_does_not_start(stub: StubApiServer) -> None:
    """The error names the address."""
    with client_of(stub) as client, socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        options = AdmissionServerOptions(namespace="yunikorn", host="127.0.0.1", port=port)

        with pytest.raises(LicorneError, match=f"cannot listen on 127.0.0.1:{port} for admission"):
            AdmissionServer(client, options).start()


def test_what_is_not_listed_in_time_is_an_error(stub: StubApiServer) -> None:
    """With what the API server says."""
    stub.fail("GET", CLASSES, status=403, reason="Forbidden", message="no role", times=None)

    with client_of(stub) as client:
        objects = AdmissionObjects(client, "yunikorn", Log())
        with pytest.raises(UnlistedError, match=r"within 0.3 s: 403 Forbidden: no role"):
            objects.start(0.3)
        objects.stop()


def test_a_renewed_certificate_is_presented_once_its_authority_is_known(
    stub: StubApiServer, server: AdmissionServer, clock: ManualClock
) -> None:
    """API servers may go on with the authorities that they know meanwhile."""
    before = trusting(stub.get(f"{MUTATING}/hook"))
    clock.add(timedelta(days=61))

    server.check_certificate()
    assert ask(server.port, before, "/health", None)[0] == 200
    clock.add(timedelta(minutes=1))
    server.check_certificate()

    assert asked(stub, server, "/health", None)[0] == 200
    with pytest.raises(ssl.SSLCertVerificationError):
        ask(server.port, before, "/health", None)


def is_longer(items: list[object], count: int) -> bool:
    return len(items) > count


def test_no_question_is_lost_while_certificates_are_renewed(
    stub: StubApiServer, server: AdmissionServer, clock: ManualClock
) -> None:
    """Each is asked over a new connection, with the authorities that are registered then."""
    statuses: list[object] = []
    enough = threading.Event()

    def ask_always() -> None:
        while not enough.is_set():
            try:
                statuses.append(asked(stub, server, "/mutate", a_review("Pod", POD))[0])
            except OSError as error:
                statuses.append(error)

    thread = threading.Thread(target=ask_always)
    thread.start()
    for _ in range(10):
        clock.add(timedelta(days=61))
        server.check_certificate()
        wait_until(partial(is_longer, statuses, len(statuses) + 1))
        clock.add(timedelta(minutes=1))
        server.check_certificate()
    enough.set()
    thread.join()

    assert {200} == set(statuses)


def test_an_authority_that_cannot_be_published_is_not_used(
    stub: StubApiServer, server: AdmissionServer, clock: ManualClock
) -> None:
    """Until the old certificate has ended: then nothing is lost by it."""
    before = trusting(stub.get(f"{MUTATING}/hook"))
    stub.fail("PATCH", ".*configurations/hook", status=403, reason="Forbidden", times=None)
    for days in (61, 28):
        clock.add(timedelta(days=days))
        server.check_certificate()

    assert ask(server.port, before, "/health", None)[0] == 200
    clock.add(timedelta(days=2))
    server.check_certificate()

    with pytest.raises(ssl.SSLCertVerificationError):
        ask(server.port, before, "/health", None)


def test_two_replicas_share_a_certificate(
    stub: StubApiServer, server: AdmissionServer, clock: ManualClock
) -> None:
    """Also a renewed one, which either of them makes."""
    with client_of(stub) as client, AdmissionServer(client, OPTIONS, now=clock) as other:
        clock.add(timedelta(days=61))
        for each in (other, server, other, server):
            each.check_certificate()
            clock.add(timedelta(minutes=1))

        bundle = trusting(stub.get(f"{MUTATING}/hook"))
        assert [200, 200] == [ask(each.port, bundle, "/health", None)[0] for each in (server, other)]
        assert len(bundle.get_ca_certs()) == 2


def test_a_question_that_is_under_way_is_answered_before_the_end(
    stub: StubApiServer, clock: ManualClock
) -> None:
    """Here one that waits for the API server."""
    stub.delay("GET", f"{NAMESPACES}/new", 0.5)
    statuses: list[int] = []
    with client_of(stub) as client:
        server = AdmissionServer(client, OPTIONS, now=clock)
        server.start()
        context = trusting(stub.get(f"{MUTATING}/hook"))
        review = a_review("Pod", POD, namespace="new")
        port = server.port
        thread = threading.Thread(target=lambda: statuses.append(ask(port, context, "/mutate", review)[0]))
        thread.start()
        wait_until(lambda: bool(stub.asked("GET", f"{NAMESPACES}/new")))

        server.stop()
        thread.join()

        assert [200] == statuses
        with pytest.raises(ConnectionRefusedError):
            ask(port, context, "/health", None)
