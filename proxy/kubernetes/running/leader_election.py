"""Which of several processes schedules: the one that holds a lease of the cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, final

import msgspec

from ....actors.services.log import Log
from ....model.errors import LicorneError
from ..client.api_calls import ApiCalls
from ..client.errors import ApiError
from ..objects import Lease, LeaseSpec, ObjectMeta

LEASE_SECONDS: Final = 10
"""After how long without a renewal another process may take the lease."""
_RENEWED_WITHIN_SECONDS: Final = 7.0
"""How long the holder acts after its last renewal: less than the lease lasts for others."""
_PAUSE_SECONDS: Final = 2.0


@final
class LeaderElection:
    """Takes part in the election until it is stopped.

    Every process measures by its own clock for how long the lease has not changed, so that clocks need not
    agree. At the end the lease is given back, and another process takes it within seconds.

    Args:
        calls: The API server.
        namespace: Where the lease is.
        name: Its name.
        identity: The name of this process; no other has it.
        on_lead: Is called once, when this process holds the lease.
        on_lost: Is called once, when it may not act any more. It cannot lead again: what it knew is too old.
        log: Where it is said who leads.
        clock: Tells seconds, and never goes back.
    """

    def __init__(
        self,
        calls: ApiCalls,
        *,
        namespace: str,
        name: str,
        identity: str,
        on_lead: Callable[[], None],
        on_lost: Callable[[], None],
        log: Log | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._calls = calls
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._on_lead = on_lead
        self._on_lost = on_lost
        self._log = log if log is not None else Log()
        self._clock = clock
        self._observed: tuple[str, str | None, int] | None = None
        """Holder, renewal and transitions of the lease as they were seen last."""
        self._observed_at = 0.0
        self._renewed_at: float | None = None
        """When this process has renewed the lease last; `None` while it does not hold it."""
        self._has_lost = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="licorne-kubernetes-lease", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and give the lease back if this process holds it."""
        self._stopped.set()
        self._thread.join()
        if self.leads():
            self._renewed_at = None
            try:
                self._write(self._calls.get_lease(self._namespace, self._name), holder="")
            except LicorneError as error:
                self._log.warning("the lease was not given back: {}", error)

    def is_alive(self) -> bool:
        """Return whether it takes part: its thread runs; from any thread."""
        return self._thread.is_alive()

    def leads(self) -> bool:
        """Return whether this process may act now; from any thread."""
        renewed_at = self._renewed_at
        return renewed_at is not None and self._clock() - renewed_at < _RENEWED_WITHIN_SECONDS

    def _run(self) -> None:
        while not (self._stopped.is_set() or self._has_lost):
            self.step()
            self._stopped.wait(_PAUSE_SECONDS)

    def step(self) -> None:
        """Take or renew the lease if that is possible now, and tell what has become of it."""
        was_leading = self._renewed_at is not None
        try:
            self._try(self._clock())
        except Exception as error:  # noqa: BLE001 - whatever it is, the lease was not renewed
            self._log.warning("the lease {}/{}: {}", self._namespace, self._name, error)
        if was_leading and not self.leads():
            self._renewed_at = None
            self._has_lost = True
            self._log.error("the lease is lost: another process schedules from now on")
            self._on_lost()
        elif not was_leading and self.leads():
            self._log.info("{} holds the lease {}/{}", self._identity, self._namespace, self._name)
            self._on_lead()

    def _try(self, began: float) -> None:
        """Take or renew the lease, if that is possible now.

        Raises:
            LicorneError: The API server does not answer, or another process was faster.
        """
        try:
            lease = self._calls.get_lease(self._namespace, self._name)
        except ApiError as error:
            if error.status != 404:
                raise
            self._calls.create_lease(self._lease(ObjectMeta(name=self._name, namespace=self._namespace), 0))
            self._renewed_at = began
            return
        spec = lease.spec
        is_own = spec.holder_identity == self._identity
        if is_own and self._renewed_at is None and self._has_not_expired(spec):
            return  # of an earlier process of this name, which may still run
        if not is_own:
            if self._renewed_at is not None:
                self._renewed_at = float("-inf")
                return
            if spec.holder_identity and self._has_not_expired(spec):
                return
        self._write(lease, holder=self._identity)
        self._renewed_at = began

    def _has_not_expired(self, spec: LeaseSpec) -> bool:
        """Return whether a lease has changed within its time, by the clock of this process."""
        seen = (spec.holder_identity, spec.renew_time, spec.lease_transitions)
        now = self._clock()
        if seen != self._observed:
            self._observed, self._observed_at = seen, now
        return now - self._observed_at < (spec.lease_duration_seconds or LEASE_SECONDS)

    def _write(self, lease: Lease, *, holder: str) -> None:
        """Replace a lease as it was read; the API server refuses if it has changed since."""
        is_new = lease.spec.holder_identity != holder
        transitions = lease.spec.lease_transitions + (is_new and bool(holder))
        new = self._lease(lease.metadata, transitions, holder=holder)
        if not is_new:
            spec = msgspec.structs.replace(new.spec, acquire_time=lease.spec.acquire_time)
            new = msgspec.structs.replace(new, spec=spec)
        self._calls.update_lease(new)

    def _lease(self, metadata: ObjectMeta, transitions: int, holder: str | None = None) -> Lease:
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
        return Lease(
            metadata=metadata,
            spec=LeaseSpec(
                holder_identity=self._identity if holder is None else holder,
                lease_duration_seconds=LEASE_SECONDS,
                acquire_time=now,
                renew_time=now,
                lease_transitions=transitions,
            ),
        )
