"""What engines refuse on a build with compiled modules."""

from __future__ import annotations

import pytest

from licorne import LicorneError, Scheduler
from licorne.proxy.core.scheduler import parts


def test_a_compiled_build_says_at_the_start_that_it_shares_no_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its classes cannot be given locks."""
    monkeypatch.setattr(parts, "is_compiled", lambda: True)

    with pytest.raises(LicorneError, match="needs pure Python, and this build of licorne is compiled"):
        Scheduler(engine="threads", threads=2, share_partitions=True)
