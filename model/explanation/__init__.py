"""Why an application waits, and where a new one would go: values, made on request.

Nothing here changes anything, and nothing here decides: each refusal comes from the check that the
scheduling cycle makes, applied to every level, limit and node instead of up to the first that refuses. It
may import `model.planning`, `model.preemption`, `model.state` and the rooms below; `model.scheduling` stands
beside it.
"""

from __future__ import annotations

from ..applications.report import Noted, TaskGroupCounts
from .blockers import Blocker, Lack, NearMiss, NodeObstacle, NodeSummary, NodeTally, SubjectKind
from .planned_starts import PlannedStart
from .values import AskExplanation, AskStatus, Explanation, Gang, Place

__all__ = [
    "AskExplanation",
    "AskStatus",
    "Blocker",
    "Explanation",
    "Gang",
    "Lack",
    "NearMiss",
    "NodeObstacle",
    "NodeSummary",
    "NodeTally",
    "Noted",
    "Place",
    "PlannedStart",
    "SubjectKind",
    "TaskGroupCounts",
]
