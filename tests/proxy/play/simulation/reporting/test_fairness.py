from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.proxy.play.simulation.reporting.figure_building import Claim, fair_shares, fairness_permille

_CLAIMS = st.lists(
    st.builds(
        lambda share, more, guaranteed: Claim(share, share + more, guaranteed),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize(
    ("claims", "shares", "index"),
    [
        pytest.param([Claim(900, 900, 0), Claim(100, 100, 0)], [900, 100], 1000, id="nobody waits"),
        pytest.param([Claim(500, 900, 0), Claim(500, 900, 0)], [500, 500], 1000, id="equal parts"),
        # x = 1.8 and 0.2: (2.0)² / (2 * 3.28).
        pytest.param([Claim(900, 900, 0), Claim(100, 900, 0)], [500, 500], 610, id="unequal parts"),
        pytest.param([Claim(1000, 1000, 0), Claim(0, 1000, 0)], [500, 500], 500, id="one has everything"),
        # The first gets its 600 and half of what is left, the second the other half.
        pytest.param([Claim(800, 900, 600), Claim(200, 900, 0)], [800, 200], 1000, id="by its guarantee"),
        # The small one wants 100 only: the others share the rest.
        pytest.param(
            [Claim(100, 100, 0), Claim(450, 900, 0), Claim(450, 900, 0)], [100, 450, 450], 1000, id="small"
        ),
        # Guarantees of 1,500 in 1,000: shared in their proportion.
        pytest.param(
            [Claim(1000, 1000, 1000), Claim(0, 500, 500)], [666, 333], 500, id="too many guarantees"
        ),
    ],
)
def test_what_is_there_is_shared_by_guarantee_and_then_equally(
    claims: list[Claim], shares: list[int], index: int
) -> None:
    """Each case was computed by hand."""
    assert (shares, index) == (fair_shares(claims), fairness_permille(claims))


def test_fairness_has_no_value_where_nobody_has_anything() -> None:
    """Nothing was shared."""
    assert fairness_permille([]) is None
    assert fairness_permille([Claim(0, 0, 100)]) is None
    assert fairness_permille([Claim(0, 500, 0)]) is None


@given(_CLAIMS)
def test_fair_shares_give_nobody_more_than_wanted(claims: list[Claim]) -> None:
    """And not more than there is; the index is between 1/n and 1."""
    shares = fair_shares(claims)
    index = fairness_permille(claims)

    assert sum(shares) <= sum(claim.share for claim in claims)
    assert all(0 <= share <= claim.wanted for share, claim in zip(shares, claims, strict=True))
    assert index is None or 1000 // len(claims) <= index <= 1000
