"""What is said of a worker that cannot be used: its address leads elsewhere, or it is another version."""

from __future__ import annotations

from typing import Final

from .... import __version__
from ....model.errors import LicorneError, RequestError
from ..client.errors import ConnectionLostError
from .workers import LaunchedWorker, LaunchError

_PLAIN: Final = (
    ("Failed parsing HTTP/2", "a server answers there that is no `licorne serve`, such as one for HTTP/1.1"),
    ("Socket closed", "it closes connections without TLS; with TLS, give its authority as --worker-ca"),
)
"""What the errors of gRPC without TLS have in their texts, and what they mean."""
_SECURE: Final = (
    ("WRONG_VERSION_NUMBER", "what answers there does not use TLS, which --worker-ca and --worker-cert want"),
    ("CERTIFICATE_VERIFY_FAILED", "the authority in --worker-ca does not vouch for its certificate"),
    ("Hostname Verification", "its certificate is for another name than this address"),
    ("Socket closed", "it closes connections of who has no certificate that it trusts, see --worker-cert"),
)
_BOTH: Final = (
    ("Connection refused", "nothing listens there"),
    ("UNIMPLEMENTED", "a gRPC server answers there that is no `licorne serve`"),
    ("UNAUTHENTICATED", "it refuses whoever does not send its token, see --worker-token"),
    ("PERMISSION_DENIED", "its --access does not let this door speak for the resource manager"),
    ("errors resolving", "there is no host of that name"),
    ("did not answer", "something listens there, and does not answer"),
)


def unusable_worker(
    worker: LaunchedWorker, error: ConnectionLostError, *, with_tls: bool
) -> ConnectionLostError:
    """Return the error for operators that a worker could not be connected with.

    Args:
        worker: The worker.
        error: What the client of its server says.
        with_tls: Whether the door uses TLS towards workers.
    """
    said = str(error)
    signs = (*(_SECURE if with_tls else _PLAIN), *_BOTH)
    meaning = next((meaning for sign, meaning in signs if sign in said), said)
    return ConnectionLostError(f"{_named(worker)} cannot be used: {meaning}", is_passing=error.is_passing)


def check_build(worker: LaunchedWorker, version: str, build: str, own: str) -> None:
    """Refuse a worker of another build of Licorne: it may decide otherwise than those beside it.

    Args:
        worker: The worker.
        version: What it says in its answer to `hello`; empty for one that is too old to say it.
        build: The hash of its sources; empty for one that does not say it.
        own: That of this door.

    Raises:
        LaunchError: It is not the version or the build of this door.
    """
    if version == __version__ and build != own:
        raise LaunchError(
            f"{_named(worker)} cannot be used: it is build {build or 'unknown'} of Licorne {version}, and "
            f"this door is build {own or 'unknown'}"
        )
    if version != __version__:
        its = f"Licorne {version}" if version else "an older Licorne"
        raise LaunchError(f"{_named(worker)} cannot be used: it is {its}, and this door is {__version__}")


def lasts(error: BaseException) -> bool:
    """Return whether another worker, or another try, would end in the same way: no worker will ever run."""
    if isinstance(error, ConnectionLostError):
        return False
    return isinstance(error, RequestError | LaunchError) or not isinstance(error, LicorneError)


def _named(worker: LaunchedWorker) -> str:
    return f"the worker of partition {worker.partition!r} at {worker.address}"
