"""Certificates of the webhook: who trusts them, when they are replaced, and where they are kept."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from support.kubernetes.stub_clients import client_of
from support.kubernetes.stub_server import StubApiServer
from support.kubernetes.stub_store import StatusError
from support.kubernetes.webhooks import (
    MUTATING,
    REGISTRATIONS,
    VALIDATING,
    ManualClock,
    stub_with_registrations,
)

from licorne.actors.services.log import Log
from licorne.proxy.kubernetes.admission.certificates import (
    BadCertificateError,
    CertificateKeeper,
    ServingCertificate,
    joined_bundle,
    new_certificate,
    read_certificate,
)
from licorne.proxy.kubernetes.client.errors import ApiError

NAMES: Final = ("hook.yunikorn.svc", "hook.yunikorn", "127.0.0.1")
SECRETS: Final = "/api/v1/namespaces/yunikorn/secrets"
SECRET: Final = f"{SECRETS}/hook"
START: Final = datetime(2026, 1, 1, tzinfo=UTC)


def today() -> datetime:
    return datetime.now(UTC)


def shakes_hands(certificate: ServingCertificate, bundle: bytes, name: str) -> bool:
    """Return whether a client that trusts some authorities takes a server with a certificate for a name."""
    here, there = socket.socketpair()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.load_into(server)

    def serve() -> None:
        with there, server.wrap_socket(there, server_side=True, do_handshake_on_connect=False) as stream:
            try:
                stream.do_handshake()
            except (ssl.SSLError, OSError):
                return
            stream.recv(1)

    thread = threading.Thread(target=serve)
    thread.start()
    client = ssl.create_default_context(cadata=bundle.decode())
    try:
        with here, client.wrap_socket(here, server_hostname=name) as stream:
            stream.send(b"x")
    except ssl.SSLCertVerificationError:
        return False
    finally:
        thread.join()
    return True


@pytest.mark.parametrize("name", NAMES)
def test_a_client_that_trusts_the_authority_takes_the_certificate(name: str) -> None:
    """For each of its names, and for its address."""
    made = new_certificate(NAMES, today())

    assert shakes_hands(made, made.bundle, name)


def test_a_client_does_not_take_it_for_another_name() -> None:
    """Nor with another authority."""
    made, other = new_certificate(NAMES, today()), new_certificate(NAMES, today())

    assert not shakes_hands(made, made.bundle, "other.yunikorn.svc")
    assert not shakes_hands(made, other.bundle, NAMES[0])


def test_with_the_new_bundle_both_certificates_are_taken() -> None:
    """So replicas may change at different times."""
    old = new_certificate(NAMES, today())
    new = new_certificate(NAMES, today(), old.bundle)

    assert shakes_hands(old, new.bundle, NAMES[0])
    assert shakes_hands(new, new.bundle, NAMES[0])
    assert not shakes_hands(new, old.bundle, NAMES[0])


def test_a_certificate_lasts_90_days_and_is_replaced_after_60() -> None:
    """Its authority lasts as long."""
    made = new_certificate(NAMES, START)

    assert START + timedelta(days=90) == made.ends_at
    assert START + timedelta(days=60) == made.renewed_at
    assert (frozenset(NAMES), START) == (made.names, made.made_at)
    assert (made.bundle, b"") == tuple(
        joined_bundle((made.bundle,), START + timedelta(days=90, seconds=seconds)) for seconds in (-1, 0)
    )


def test_a_bundle_has_each_authority_once_and_nothing_else() -> None:
    """In order of the bundles."""
    first, second = new_certificate(NAMES, START).bundle, new_certificate(NAMES, START).bundle
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

    assert second + first == joined_bundle((b"\n", second, broken + first, b"text" + second), START)


MADE: Final = new_certificate(NAMES, START)
OTHER: Final = new_certificate(NAMES, START)
BAD_PARTS: Final = {
    "no certificate": (replace(MADE, certificate=b""), "cannot be read"),
    "no key": (replace(MADE, key=b"x"), "cannot be read"),
    "an authority as certificate": (replace(MADE, certificate=MADE.bundle), "cannot be read"),
    "the key of another one": (replace(MADE, key=OTHER.key), "the key is not that of the certificate"),
    "the authority of another one": (replace(MADE, bundle=OTHER.bundle), "is not among those to be trusted"),
}


@pytest.mark.parametrize("case", BAD_PARTS.values(), ids=BAD_PARTS)
def test_parts_that_do_not_belong_together_are_no_certificate(case: tuple[ServingCertificate, str]) -> None:
    """A person may have edited the secret."""
    parts, problem = case

    with pytest.raises(BadCertificateError, match=problem):
        read_certificate(parts.certificate, parts.key, parts.bundle)


# --------------------------------------------------------------------------------------------- what is kept


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    with stub_with_registrations() as server:
        yield server


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def keeper(stub: StubApiServer, clock: ManualClock) -> Iterator[CertificateKeeper]:
    with client_of(stub) as client:
        yield CertificateKeeper(
            client,
            namespace="yunikorn",
            secret="hook",  # noqa: S106 - the name of an object
            registration="hook",
            names=NAMES,
            log=Log(),
            now=clock,
        )


def kept(stub: StubApiServer) -> ServingCertificate:
    """Return what the secret has."""
    data = {key: base64.b64decode(text) for key, text in stub.get(SECRET)["data"].items()}
    return read_certificate(data["tls.crt"], data["tls.key"], data["ca.crt"])


def test_the_first_replica_makes_the_secret(stub: StubApiServer, keeper: CertificateKeeper) -> None:
    """And takes what it has made the next time."""
    made = keeper.certificate()

    assert made == kept(stub) == keeper.certificate()
    assert stub.get(SECRET)["type"] == "kubernetes.io/tls"


def test_the_slower_of_two_replicas_takes_the_certificate_of_the_other(
    stub: StubApiServer, keeper: CertificateKeeper
) -> None:
    """Both have found no secret."""
    data = {"tls.crt": MADE.certificate, "tls.key": MADE.key, "ca.crt": MADE.bundle}
    document = {"metadata": {"name": "hook"}, "data": {key: text(part) for key, part in data.items()}}
    stub.before("POST", SECRETS, lambda: stub.add(SECRETS, document), times=1)

    assert keeper.certificate() == MADE


def text(part: bytes) -> str:
    return base64.b64encode(part).decode()


def test_the_slower_of_two_replicas_takes_the_renewed_certificate_of_the_other(
    stub: StubApiServer, keeper: CertificateKeeper, clock: ManualClock
) -> None:
    """The version of the secret says that it was changed."""
    old = keeper.certificate()
    clock.add(timedelta(days=60))
    new = new_certificate(NAMES, clock(), old.bundle)
    data = {"tls.crt": text(new.certificate), "tls.key": text(new.key), "ca.crt": text(new.bundle)}
    stub.before("PATCH", SECRET, lambda: stub.change(SECRET, {"data": data}), times=1)

    assert keeper.certificate() == new


def test_a_certificate_is_renewed_when_its_time_has_come(
    stub: StubApiServer, keeper: CertificateKeeper, clock: ManualClock
) -> None:
    """Its authority stays trusted; nothing else of the secret changes."""
    old = keeper.certificate()
    stub.change(SECRET, {"metadata": {"labels": {"team": "x"}}})
    clock.add(timedelta(days=60, seconds=-1))
    assert keeper.certificate() == old
    clock.add(timedelta(seconds=1))

    new = keeper.certificate()

    assert new == kept(stub) != old
    assert new.bundle.endswith(old.bundle)
    assert {"team": "x"} == stub.get(SECRET)["metadata"]["labels"]


def test_authorities_that_have_ended_leave_the_bundle(keeper: CertificateKeeper, clock: ManualClock) -> None:
    """Two are trusted at most."""
    bundles = []
    for _ in range(4):
        bundles.append(keeper.certificate().bundle.count(b"BEGIN"))
        clock.add(timedelta(days=60))

    assert [1, 2, 2, 2] == bundles


REPLACED: Final = {
    "an empty secret": {},
    "an unreadable certificate": {"tls.crt": "AAAA", "tls.key": "AAAA", "ca.crt": "AAAA"},
    "no base64": {"tls.crt": "?"},
    "a certificate for other names": {
        key: text(part)
        for made in (new_certificate(NAMES[:1], START),)
        for key, part in {"tls.crt": made.certificate, "tls.key": made.key, "ca.crt": made.bundle}.items()
    },
}


@pytest.mark.parametrize("data", REPLACED.values(), ids=REPLACED)
def test_a_secret_that_cannot_be_used_is_replaced(
    stub: StubApiServer, keeper: CertificateKeeper, data: dict[str, str]
) -> None:
    """A deployment may have made it empty, so that the webhook need not be allowed to create secrets."""
    stub.add(SECRETS, {"metadata": {"name": "hook"}, "data": data})

    assert keeper.certificate() == kept(stub)


def test_a_lost_answer_is_no_second_certificate(stub: StubApiServer, keeper: CertificateKeeper) -> None:
    """The secret is read again, and is there."""
    stub.lose_answer("POST", SECRETS)

    assert keeper.certificate() == kept(stub)
    assert len(stub.asked("POST", SECRETS)) == 1


def test_a_secret_that_must_not_be_read_is_an_error(stub: StubApiServer, keeper: CertificateKeeper) -> None:
    """Roles are missing."""
    stub.fail("GET", SECRET, status=403, reason="Forbidden", times=None)

    with pytest.raises(ApiError, match="403 Forbidden"):
        keeper.certificate()


# ---------------------------------------------------------------------------------------------- registrations


def trusted(stub: StubApiServer, collection: str) -> bytes:
    """Return the authorities in a registration."""
    (hook,) = stub.get(f"{collection}/hook")["webhooks"]
    return base64.b64decode(hook["clientConfig"].get("caBundle", ""))


def test_both_registrations_get_the_authorities(stub: StubApiServer, keeper: CertificateKeeper) -> None:
    """Nothing else in them changes, and nothing is written twice."""
    assert keeper.publish(MADE.bundle)
    assert keeper.publish(MADE.bundle)

    assert [MADE.bundle] * 2 == [trusted(stub, collection) for collection in REGISTRATIONS]
    (hook,) = stub.get(f"{MUTATING}/hook")["webhooks"]
    assert ("https://127.0.0.1:1/mutate", "Ignore") == (hook["clientConfig"]["url"], hook["failurePolicy"])
    assert [1, 1] == [len(stub.asked("PATCH", f"{collection}/hook")) for collection in REGISTRATIONS]


def test_authorities_stay_until_they_have_ended(
    stub: StubApiServer, keeper: CertificateKeeper, clock: ManualClock
) -> None:
    """A replica that knows an older bundle takes nothing back."""
    keeper.publish(MADE.bundle)
    clock.add(timedelta(days=60))
    later = new_certificate(NAMES, clock())

    keeper.publish(later.bundle)
    keeper.publish(MADE.bundle)
    assert trusted(stub, MUTATING) == MADE.bundle + later.bundle
    clock.add(timedelta(days=30))
    keeper.publish(later.bundle)

    assert trusted(stub, MUTATING) == later.bundle


def test_each_webhook_of_a_registration_gets_them(stub: StubApiServer, keeper: CertificateKeeper) -> None:
    """They are joined by their names."""
    (first,) = stub.get(f"{MUTATING}/hook")["webhooks"]
    stub.change(f"{MUTATING}/hook", {"webhooks": [{**first, "name": "second"}]})

    assert keeper.publish(MADE.bundle)

    hooks = stub.get(f"{MUTATING}/hook")["webhooks"]
    assert [text(MADE.bundle)] * 2 == [hook["clientConfig"]["caBundle"] for hook in hooks]


HINDRANCES: Final = {
    "one is missing": ("GET", StatusError(404, "NotFound", "no")),
    "one must not be read": ("GET", StatusError(403, "Forbidden", "no")),
    "one must not be written": ("PATCH", StatusError(403, "Forbidden", "no")),
    "one was changed meanwhile": ("PATCH", StatusError(409, "Conflict", "no")),
}


@pytest.mark.parametrize("case", HINDRANCES.values(), ids=HINDRANCES)
def test_the_other_registration_gets_them_whatever_hinders_the_one(
    stub: StubApiServer, keeper: CertificateKeeper, case: tuple[str, StatusError]
) -> None:
    """The next check tries again."""
    method, error = case
    stub.fail(method, f"{MUTATING}/hook", status=error.status, reason=error.document["reason"])

    assert not keeper.publish(MADE.bundle)
    assert (b"", MADE.bundle) == (trusted(stub, MUTATING), trusted(stub, VALIDATING))
    assert keeper.publish(MADE.bundle)
    assert MADE.bundle == trusted(stub, MUTATING)
