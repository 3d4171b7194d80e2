"""Placement: which queue an application goes to, decided by the rules in their order.

A rule only proposes. Whether the application may go there is the same question for all: the user must be
allowed to submit to the queue, or to the deepest queue above that exists, and an existing queue must be a
leaf that still takes applications. If not, the next rule is tried. When no rule is left, the queue
`root.default` is the last resort, if there is one; forced applications go to the recovery queue before it. A
rule that fails, since no queue can have the name or the parent is a leaf, ends the search for all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from ..configuration.schema import RuleConfig
from ..values.messages import RejectionCode, RejectionReason
from .rules import (
    DEFAULT_QUEUE,
    RECOVERY_QUEUE,
    RECOVERY_RULE,
    Found,
    NoMatch,
    PlacementRefusal,
    PlacementRequest,
    PlacementRule,
    PlacementRulesError,
    QueueChoice,
    QueueLookup,
    RuleOutcome,
    build_rule,
)

_NO_RULE_MATCHED: Final = "application rejected: no placement rule matched"
_RULES_BY_DEFAULT: Final = (RuleConfig(name="provided"),)


@final
class PlacementRules:
    """The placement rules of a partition; a value, replaced as a whole when the configuration changes.

    Args:
        rules: The rules of the configuration, in order. Without any, applications go to the existing queue
            that they name.

    Raises:
        PlacementRulesError: A rule cannot be built.
    """

    __slots__ = ("_rules",)

    def __init__(self, rules: Sequence[RuleConfig]) -> None:
        built = (build_rule(rule) for rule in rules or _RULES_BY_DEFAULT)
        self._rules: tuple[PlacementRule, ...] = (*built, RECOVERY_RULE)

    def place(self, request: PlacementRequest, queues: QueueLookup) -> QueueChoice | PlacementRefusal:
        """Decide where an application goes; nothing is created."""
        tried: list[RuleOutcome] = []
        code = RejectionCode.NO_QUEUE
        for number, rule in enumerate(self._rules):
            outcome = rule.place(request, queues)
            if isinstance(outcome, Found):
                path = outcome.path.lower()
                obstacle = _obstacle(path, request, queues)
                if obstacle is None:
                    tried.append(RuleOutcome(rule.name, number, f"it leads to queue {path}", rule.position))
                    return QueueChoice(path, tuple(tried))
                why = obstacle.text
                code = _worse(code, obstacle)
            elif isinstance(outcome, NoMatch):
                why = outcome.why
            elif request.forced:  # Its running work has to be counted, whatever its name or the rules are.
                why = outcome.reason
            else:
                tried.append(RuleOutcome(rule.name, number, outcome.reason, rule.position))
                return PlacementRefusal(outcome.reason, tuple(tried))
            tried.append(RuleOutcome(rule.name, number, why, rule.position))
        return _last_resort(request, queues, tried, code)

    def all(self) -> tuple[PlacementRule, ...]:
        """Return all rules in order, the recovery rule last."""
        return self._rules


def usable_rules(rules: Sequence[RuleConfig]) -> PlacementRules:
    """Return the rules of a configuration, the default ones where they cannot be used.

    The recorded core accepts a registration with such rules and then rejects every application.
    """
    try:
        return PlacementRules(rules)
    except PlacementRulesError:
        return PlacementRules(())


def _last_resort(
    request: PlacementRequest, queues: QueueLookup, tried: list[RuleOutcome], code: RejectionCode
) -> QueueChoice | PlacementRefusal:
    """Place an application that no rule has placed in the default queue, if that is possible."""
    if queues.find(DEFAULT_QUEUE) is not None:
        obstacle = _obstacle(DEFAULT_QUEUE, request, queues)
        why = "it takes what no rule places" if obstacle is None else obstacle.text
        tried.append(RuleOutcome("default queue", len(tried), why))
        if obstacle is None:
            return QueueChoice(DEFAULT_QUEUE, tuple(tried))
        code = _worse(code, obstacle)
    return PlacementRefusal(_NO_RULE_MATCHED, tuple(tried), code)


def _worse(code: RejectionCode, obstacle: RejectionReason) -> RejectionCode:
    """Return the code after another obstacle: a permission is more specific than a missing queue."""
    return obstacle.code if obstacle.code is RejectionCode.NO_PERMISSION else code


def _obstacle(path: str, request: PlacementRequest, queues: QueueLookup) -> RejectionReason | None:
    """Return why an application may not go to a queue, `None` if it may.

    The recovery queue takes forced applications and no others. The recorded core let others in by a rule
    that may create queues, as long as the queue was not there yet.
    """
    if path == RECOVERY_QUEUE and request.forced:
        return None
    if path == RECOVERY_QUEUE or path.startswith(f"{RECOVERY_QUEUE}."):
        return RejectionReason(RejectionCode.NO_QUEUE, f"queue {path} is for forced applications only")
    user = request.user
    facts = queues.find(path)
    if facts is None:
        above = _deepest_existing(path, queues)
        if above is None or not queues.submit_allowed(above, user):
            text = f"user {user.name} may not submit to {above or path}, below which {path} would be created"
            return RejectionReason(RejectionCode.NO_PERMISSION, text)
        return _creation_obstacle(path, above, queues) if request.forced else None
    if not facts.is_leaf:
        return RejectionReason(RejectionCode.NO_QUEUE, f"queue {path} is not a leaf")
    if not queues.submit_allowed(path, user):
        text = f"user {user.name} may not submit to queue {path}"
        return RejectionReason(RejectionCode.NO_PERMISSION, text)
    if facts.is_draining:
        return RejectionReason(RejectionCode.NO_QUEUE, f"queue {path} is draining")
    return None


def _creation_obstacle(path: str, above: str, queues: QueueLookup) -> RejectionReason | None:
    """Return why no queue can be created below an existing one, `None` if one can.

    Only for forced applications the next rule is tried then. Others are rejected with this reason later.
    """
    facts = queues.find(above)
    if facts is None or not (facts.is_leaf or facts.is_draining):
        return None
    kind = "a leaf" if facts.is_leaf else "draining"
    return RejectionReason(RejectionCode.NO_QUEUE, f"queue {path} cannot be created: {above} is {kind}")


def _deepest_existing(path: str, queues: QueueLookup) -> str | None:
    """Return the path of the deepest existing queue above a path; the root always exists."""
    while "." in path:
        path = path.rpartition(".")[0]
        if queues.find(path) is not None:
            return path
    return None
