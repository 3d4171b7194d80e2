"""Why an application waits, and where a new one would go: values, made when somebody asks.

Nothing here changes anything, and nothing here decides: each "no" comes from the check that the scheduling
cycle makes, put to every level, limit and node instead of up to the first that refuses.
"""

from __future__ import annotations

from ..applications.report import Noted, TaskGroupCounts
from .blockers import Blocker, Lack, SubjectKind
from .node_summary import NearMiss, NodeObstacle, NodeSummary, NodeTally
from .places import Place
from .values import AskExplanation, AskStatus, Explanation, Gang

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
    "SubjectKind",
    "TaskGroupCounts",
]
