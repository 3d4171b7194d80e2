"""What a visit of a leaf may spend on attempts to preempt."""

from __future__ import annotations

from licorne.model.preemption.guarantee.attempt_budget import ATTEMPTS_MAX, AttemptBudget


def test_a_budget_is_ten_attempts() -> None:
    """And nothing is known yet of when to look again."""
    budget = AttemptBudget()

    assert (ATTEMPTS_MAX, None, None) == (budget.left, budget.retry_ns, budget.refused_to_ns)
