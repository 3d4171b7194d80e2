"""A scheduler that remembers nothing of what failed: the definition of what is right, at any cost."""

from __future__ import annotations

import pytest

from licorne.model.queues.sleep import AwakeLeaves, Sleep
from licorne.model.queues.waiting import WaitingApplications
from licorne.model.scheduling import cycle, reserved_pass


def forget_failures(patch: pytest.MonkeyPatch) -> None:
    """Let each cycle visit each leaf, each application and each reserved ask, whatever failed before.

    What remains are rules, such as how long a failed attempt to preempt holds for other asks.
    """
    patch.setattr(WaitingApplications, "rest", lambda *_: None)
    patch.setattr(WaitingApplications, "is_unreservable", lambda *_: False)
    patch.setattr(cycle, "may_skip", lambda *_: False)
    patch.setattr(AwakeLeaves, "sleeps_on", lambda *_: False)
    patch.setattr(Sleep, "holds", lambda *_: False)
    patch.setattr(reserved_pass._WorthTrying, "__bool__", lambda _: True)
    patch.setattr(reserved_pass._WorthTrying, "has", lambda *_: True)
