"""Rules about how a partition preempts; `§` marks where an error is reported."""

from __future__ import annotations

import pytest
from support.model.configurations import below_root, errors_at_marks


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("Youngest", "; did you mean 'youngest'?"),
        ("least_work", "; did you mean 'least-work'?"),
        ("oldest", ""),
    ],
)
def test_an_order_of_victims_that_does_not_exist_is_refused(written: str, hint: str) -> None:
    """Case matters; the order that was meant is named."""
    text = below_root("", f"preemption: {{victims: §{written}}}")
    said = f"preemption.victims is {written!r}, and must be 'youngest' or 'least-work'{hint}"

    assert [said] == errors_at_marks(text)


def test_victims_are_taken_by_whole_jobs_or_by_parts_and_by_nothing_else() -> None:
    """With the position of the value."""
    text = below_root("", "preemption: {jobs: §hole}")
    said = "preemption.jobs is 'hole', and must be 'parts' or 'whole'; did you mean 'whole'?"

    assert [said] == errors_at_marks(text)
