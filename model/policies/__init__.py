"""The policies of a program: their interface, and the guarded calls by which a partition asks them.

This package owns the interface of policies, and the only calls of foreign code that decides. It imports only
resources and errors, so that every package above can ask a policy. Programs import this as
`from licorne import policies`.
"""

from .interface import (
    AdmissionPolicy,
    ApplicationPolicy,
    ApplicationView,
    AskView,
    BackfillPolicy,
    ChangingNodePolicy,
    ClassNodeFilter,
    JobView,
    Key,
    NodeFilter,
    NodePolicy,
    NodePolicyByClass,
    NodeView,
    PromisePolicy,
    ProtectionPolicy,
    QueuePolicy,
    RunTimePolicy,
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
    "BackfillPolicy",
    "ChangingNodePolicy",
    "ClassNodeFilter",
    "JobView",
    "Key",
    "NodeFilter",
    "NodePolicy",
    "NodePolicyByClass",
    "NodeView",
    "PromisePolicy",
    "ProtectionPolicy",
    "QueuePolicy",
    "RunTimePolicy",
    "SiblingView",
    "VictimPolicy",
    "VictimView",
    "Wait",
]
