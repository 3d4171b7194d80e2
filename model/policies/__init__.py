"""Policies that programs give: what each is shown and may answer, and how a partition asks it.

It owns the interface of policies, and the only calls of foreign code that decides. It imports resources and
errors alone, so that every room above can ask a policy. Programs import this as `from licorne import
policies`.
"""

from .interface import (
    AdmissionPolicy,
    ApplicationPolicy,
    ApplicationView,
    AskView,
    Key,
    NodeFilter,
    NodePolicy,
    NodeView,
    ProtectionPolicy,
    QueuePolicy,
    SiblingView,
    VictimPolicy,
    VictimView,
    Wait,
)

__all__ = [
    "AdmissionPolicy",
    "ApplicationPolicy",
    "ApplicationView",
    "AskView",
    "Key",
    "NodeFilter",
    "NodePolicy",
    "NodeView",
    "ProtectionPolicy",
    "QueuePolicy",
    "SiblingView",
    "VictimPolicy",
    "VictimView",
    "Wait",
]
