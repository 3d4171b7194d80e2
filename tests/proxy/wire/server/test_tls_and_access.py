"""Who is let in by a server, and for which resource manager (RM): over real channels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import grpc
import pytest
import trustme
from support.proxy.certificates import Certificates
from support.proxy.manager_requests import ONE, application_request, ask_request, node_request
from support.proxy.processes import serving
from support.proxy.wire_client import WireClient, refusal_of

from licorne import RemoteScheduler, ResourceManager, Scheduler
from licorne.model.errors import RequestError
from licorne.proxy.si import licorne_v1_pb2 as v1
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.server.access import AccessRules, server_credentials
from licorne.proxy.wire.server.server import ServerSettings, ServerThread

TOKEN_OF_A, TOKEN_OF_ANY, UNKNOWN = "the-token-of-cluster-a", "the-token-of-anybody", "no-token-known-here"
NOTHING_KNOWN: Final = "a bearer token (authorization: Bearer ...) or a certificate is required"
NOT_KNOWN: Final = "the bearer token is not known here"
OF_A_ALONE: Final = "this token or certificate speaks for RM 'a', not for 'b'"
RULES: Final = AccessRules(
    [(TOKEN_OF_A, "a"), (TOKEN_OF_ANY, None)], {"shim.cluster-a": "a", "operator.example": None}
)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Make an authority, and a certificate of it for the server."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def tls_server(certificates: Certificates) -> Iterator[str]:
    """Run a server with TLS that lets in everybody, and return its address."""
    credentials = server_credentials(certificates.server, certificates.server_key, None)
    with ServerThread(Scheduler(), ServerSettings(credentials=credentials)) as server:
        yield server.address


@pytest.fixture(scope="module")
def mutual_server(certificates: Certificates) -> Iterator[str]:
    """Run a server with mutual TLS and rules, and return its address."""
    credentials = server_credentials(certificates.server, certificates.server_key, certificates.authority)
    with ServerThread(Scheduler(), ServerSettings(credentials=credentials, access=RULES)) as server:
        yield server.address


@pytest.fixture(scope="module")
def token_server() -> Iterator[str]:
    """Run a server with rules and without TLS, and return its address."""
    with ServerThread(Scheduler(), ServerSettings(access=RULES)) as server:
        yield server.address


class Clients(NamedTuple):
    """Two clients of one server."""

    of_a: WireClient
    """May speak for the RM `a` alone."""
    of_any: WireClient
    """May speak for every RM."""


@pytest.fixture(params=["token", "certificate"])
def clients(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[Clients]:
    """Return clients that are known by token, then clients that are known by certificate."""
    if request.param == "token":
        with grpc.insecure_channel(request.getfixturevalue("token_server")) as channel:
            yield Clients(
                WireClient(channel, authorization=f"Bearer {TOKEN_OF_A}"),
                WireClient(channel, authorization=f"Bearer {TOKEN_OF_ANY}"),
            )
        return
    address = request.getfixturevalue("mutual_server")
    of_a, of_any = map(certificates.channel_credentials, ("shim.cluster-a", "operator.example"))
    with grpc.secure_channel(address, of_a) as first, grpc.secure_channel(address, of_any) as second:
        yield Clients(WireClient(first), WireClient(second))


@pytest.fixture
def client_of_a(clients: Clients) -> WireClient:
    """Return a client that may speak for the RM `a` alone."""
    return clients.of_a


def registration(rm_id: str) -> v1.ManagerMessage:
    request = si.RegisterResourceManagerRequest(rmID=rm_id, config=ONE)
    return v1.ManagerMessage(call=2, register=v1.Registration(request=request))


# ------------------------------------------------------------------------------------------------- TLS


def test_a_client_that_trusts_the_authority_is_served(tls_server: str, certificates: Certificates) -> None:
    """Server TLS: no client certificate is asked for."""
    with grpc.secure_channel(tls_server, certificates.channel_credentials()) as channel:
        client = WireClient(channel)
        client.register("tls")
        (answer,) = client.update_node(node_request("n", rm_id="tls"))

    assert ["n"] == [node.nodeID for node in answer.accepted]


def test_a_client_without_tls_is_not_served_by_a_server_with_it(tls_server: str) -> None:
    """Nothing is said in the clear, in neither direction."""
    with grpc.insecure_channel(tls_server) as channel:
        code, _ = refusal_of(lambda: WireClient(channel).register("tls"))

    assert grpc.StatusCode.UNAVAILABLE == code


def distrusting(_: Certificates) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(trustme.CA().cert_pem.bytes())


def certified_elsewhere(certificates: Certificates) -> grpc.ChannelCredentials:
    return certificates.channel_credentials_with(trustme.CA().issue_cert("shim.cluster-a"))


@pytest.mark.parametrize(
    ("server", "credentials"),
    [
        pytest.param("tls_server", distrusting, id="the client trusts another authority, and ends it"),
        pytest.param("mutual_server", Certificates.channel_credentials, id="the client has no certificate"),
        # The name in it is one of those that are let in, but nobody vouches for it.
        pytest.param("mutual_server", certified_elsewhere, id="a certificate of another authority"),
    ],
)
def test_a_handshake_without_trust_is_ended(
    request: pytest.FixtureRequest,
    certificates: Certificates,
    server: str,
    credentials: Callable[[Certificates], grpc.ChannelCredentials],
) -> None:
    """On one side or the other."""
    address = request.getfixturevalue(server)
    with grpc.secure_channel(address, credentials(certificates)) as channel:
        code, _ = refusal_of(lambda: WireClient(channel).register("a"))

    assert grpc.StatusCode.UNAVAILABLE == code


@pytest.mark.parametrize(
    ("names", "common_name", "refusal"),
    [
        pytest.param(
            ["other.example"],
            None,
            (grpc.StatusCode.UNAUTHENTICATED, "no rule lets in the certificate of other.example"),
            id="no rule names it: the text does, so that a rule can be written",
        ),
        pytest.param(
            ["10.0.0.7", "ann@operator.example"],
            None,
            (grpc.StatusCode.UNAUTHENTICATED, NOTHING_KNOWN),
            id="the address of a mailbox is no DNS name",
        ),
        pytest.param(
            ["other.example"],
            "shim.cluster-a",
            (grpc.StatusCode.PERMISSION_DENIED, OF_A_ALONE),
            id="a common name, which older tools write alone, counts as well as a DNS name",
        ),
    ],
)
def test_the_names_in_a_certificate_count(
    mutual_server: str,
    certificates: Certificates,
    names: list[str],
    common_name: str | None,
    refusal: tuple[grpc.StatusCode, str],
) -> None:
    """Those of its DNS names, and its common name."""
    certificate = certificates.issue(*names, common_name=common_name)
    credentials = certificates.channel_credentials_with(certificate)
    with grpc.secure_channel(mutual_server, credentials) as channel:
        assert refusal == refusal_of(lambda: WireClient(channel).register("b"))


def test_a_certificate_counts_before_a_token(mutual_server: str, certificates: Certificates) -> None:
    """A token does not widen what the certificate is bound to."""
    with grpc.secure_channel(mutual_server, certificates.channel_credentials("shim.cluster-a")) as channel:
        client = WireClient(channel, authorization=f"Bearer {TOKEN_OF_ANY}")
        code, _ = refusal_of(lambda: client.register("b"))

    assert grpc.StatusCode.PERMISSION_DENIED == code


# ------------------------------------------------------------------------- one RM, or all of them


def test_who_is_bound_to_an_rm_may_speak_for_it(client_of_a: WireClient) -> None:
    """On both services."""
    client_of_a.register("a")
    (answer,) = client_of_a.update_node(node_request("n", rm_id="a"))
    (registered,) = client_of_a.session(registration("a"))

    assert ["n"] == [node.nodeID for node in answer.accepted]
    assert "answer" == registered.WhichOneof("body")


def test_who_is_bound_to_an_rm_may_not_speak_for_another(client_of_a: WireClient) -> None:
    """Whether the other one has registered or not; each message is checked, not only the first."""
    node_of_b = node_request("m", rm_id="b")
    client_of_a.register("a")
    calls = (
        lambda: client_of_a.register("b"),
        lambda: client_of_a.update_node(node_of_b),
        lambda: client_of_a.update_node(node_request("n", rm_id="a"), node_of_b),
    )
    refusals = [refusal_of(call) for call in calls]

    assert [grpc.StatusCode.PERMISSION_DENIED] * 3 == [code for code, _ in refusals]
    assert OF_A_ALONE == refusals[0][1]


_B = "b"
QUESTIONS_OF_B: Final = {
    "explain": v1.Question(explain=v1.Explain(application_id="app", rm_id=_B)),
    "queue and user": v1.Question(queue_and_user=v1.Explain(application_id="app", rm_id=_B)),
    "dry run": v1.Question(dry_run=v1.DryRun(rm_id=_B)),
    "snapshot": v1.Question(snapshot=v1.Snapshot(rm_id=_B)),
    "settings": v1.Question(extra_configuration=v1.ExtraConfiguration(rm_id=_B)),
    "invariants": v1.Question(validate=v1.Empty()),
    "quarantine": v1.Question(quarantined=v1.Empty()),
}
FOREIGN: Final = {
    "registration": registration(_B),
    "configuration": v1.ManagerMessage(
        call=2, update_configuration=si.UpdateConfigurationRequest(rmID=_B, config=ONE)
    ),
    "preparation": v1.ManagerMessage(
        call=2, prepare_configuration=si.UpdateConfigurationRequest(rmID=_B, config=ONE)
    ),
    "commit": v1.ManagerMessage(call=2, commit_configuration=v1.ConfigurationChange(rm_id=_B, number=1)),
    "abandonment": v1.ManagerMessage(
        call=2, abandon_configuration=v1.ConfigurationChange(rm_id=_B, number=1)
    ),
    "node": v1.ManagerMessage(call=2, update_node=node_request("n", rm_id=_B)),
    "application": v1.ManagerMessage(call=2, update_application=application_request("app", rm_id=_B)),
    "allocation": v1.ManagerMessage(call=2, update_allocation=ask_request("ask", rm_id=_B)),
    "goodbye": v1.ManagerMessage(call=2, goodbye=v1.Goodbye(rm_id=_B)),
    **{name: v1.ManagerMessage(call=2, question=each) for name, each in QUESTIONS_OF_B.items()},
    "step": v1.ManagerMessage(call=2, step=v1.Step(method=v1.Step.RUN_UNTIL_IDLE)),
}


@pytest.mark.parametrize("message", FOREIGN.values(), ids=FOREIGN)
def test_who_is_bound_to_an_rm_says_and_asks_nothing_of_another_in_a_session(
    client_of_a: WireClient, message: v1.ManagerMessage
) -> None:
    """The session ends with the status."""
    code, _ = refusal_of(lambda: client_of_a.session(message))

    assert grpc.StatusCode.PERMISSION_DENIED == code


def test_who_is_bound_to_an_rm_sees_the_partitions_of_that_rm_alone(clients: Clients) -> None:
    """Also where a question names no RM."""
    clients.of_a.register("a")
    clients.of_any.register("b")
    question = v1.ManagerMessage(call=2, question=v1.Question(snapshot=v1.Snapshot()))
    shown = [client.session(question)[0].answer.json for client in clients]

    assert [{"a"}, {"a", "b"}] == [
        {partition["clusterId"] for partition in json.loads(each)["partitions"]} for each in shown
    ]


def test_who_is_bound_to_no_rm_may_speak_for_each(clients: Clients) -> None:
    """A token or certificate without an RM."""
    for rm_id in ("a", "b"):
        clients.of_any.register(rm_id)
        (answer,) = clients.of_any.update_node(node_request("n", rm_id=rm_id))

        assert ["n"] == [node.nodeID for node in answer.accepted]


# ----------------------------------------------------------------------------------------------- tokens


@pytest.mark.parametrize(
    ("authorization", "text"),
    [
        (None, NOTHING_KNOWN),
        (f"Bearer {UNKNOWN}", NOT_KNOWN),
        ("Bearer ", NOT_KNOWN),
        (f"Bearer {TOKEN_OF_A}x", NOT_KNOWN),
        (f"Basic {TOKEN_OF_A}", NOTHING_KNOWN),
        (TOKEN_OF_A, NOTHING_KNOWN),
    ],
)
def test_a_call_without_a_known_token_is_unauthenticated(
    token_server: str, authorization: str | None, text: str
) -> None:
    """The same on both services, and the text shows no token."""
    with grpc.insecure_channel(token_server) as channel:
        client = WireClient(channel, authorization=authorization)
        calls = (
            lambda: client.register("a"),
            lambda: client.update_node(node_request("n", rm_id="a")),
            client.session,
        )
        refusals = [refusal_of(call) for call in calls]

    assert [(grpc.StatusCode.UNAUTHENTICATED, text)] * 3 == refusals


def test_the_word_bearer_is_read_in_every_case(token_server: str) -> None:
    """As HTTP has it."""
    with grpc.insecure_channel(token_server) as channel:
        code, _ = refusal_of(lambda: WireClient(channel, authorization=f"bearer {TOKEN_OF_A}").register("b"))

    assert grpc.StatusCode.PERMISSION_DENIED == code


# ---------------------------------------------------------------------------------- our own client


def test_our_client_uses_tls_and_its_certificate(mutual_server: str, certificates: Certificates) -> None:
    """By the arguments of `RemoteScheduler`."""
    certificate, key = certificates.write("client", certificates.issue("shim.cluster-a"))
    with RemoteScheduler(
        mutual_server, root_certificates=certificates.authority, certificate=certificate, key=key
    ) as scheduler:
        scheduler.register("a", ResourceManager(), configuration=ONE)

        assert isinstance(scheduler.snapshot(rm_id="a"), dict)


def test_our_client_uses_its_token(token_server: str) -> None:
    """It may register the RM that the token is for."""
    with RemoteScheduler(token_server, token=TOKEN_OF_A) as scheduler:
        scheduler.register("a", ResourceManager(), configuration=ONE)
        with pytest.raises(RequestError, match="speaks for RM 'a', not for 'b'"):
            scheduler.register("b", ResourceManager(), configuration=ONE)


def test_our_client_says_that_its_token_is_not_known(token_server: str) -> None:
    """It gives up at once; the text has the reason, and not the token."""
    with pytest.raises(RequestError, match="is not known here") as refused:
        RemoteScheduler(token_server, token=UNKNOWN)

    assert UNKNOWN not in str(refused.value)


# -------------------------------------------------------------------------------------- the command


def test_the_command_serves_by_its_files_and_writes_no_token(
    certificates: Certificates, tmp_path: Path
) -> None:
    """TLS, client certificates and rules, as options."""
    rules, errors = tmp_path / "access.yaml", tmp_path / "errors.txt"
    rules.write_text(
        f"tokens:\n  - {{token: {TOKEN_OF_A}, rm: a}}\ncertificates:\n  - {{name: shim.cluster-a, rm: a}}\n",
        encoding="utf-8",
    )
    files = {
        "--tls-cert": certificates.server,
        "--tls-key": certificates.server_key,
        "--client-ca": certificates.authority,
        "--access": rules,
    }
    options = [text for option, path in files.items() for text in (option, str(path))]
    credentials = certificates.channel_credentials("other.example")
    with (
        serving(*options, errors=errors) as server,
        grpc.secure_channel(server.address, credentials) as channel,
    ):
        WireClient(channel, authorization=f"Bearer {TOKEN_OF_A}").register("a")
        code, _ = refusal_of(lambda: WireClient(channel, authorization=f"Bearer {UNKNOWN}").register("a"))

    said = errors.read_text(encoding="utf-8")
    assert (grpc.StatusCode.UNAUTHENTICATED, False, False) == (code, TOKEN_OF_A in said, UNKNOWN in said)


def test_a_token_that_is_added_lets_in_for_any_rm() -> None:
    """The rules that were there before stay, those for certificates, too."""
    rules = AccessRules([("a-token-of-one-rm", "one")], {"shim": "two"}).with_token("a-token-of-a-door")

    peers = [rules.peer({"authorization": f"Bearer {token}"}, []).rm_id for token in rules.tokens]
    assert ["one", None, "two"] == [*peers, rules.peer({}, ["shim"]).rm_id]
