"""Random clusters with much preemption: both engines decide the same, and the contract with the RM holds."""

from __future__ import annotations

from typing import Final

import pytest
from support.transcripts.preemption_transcripts import preemption_transcript
from support.transcripts.transcript_witness import Witness, output_of

SEEDS: Final = range(12)
SOAK_SEEDS: Final = range(1_000, 1_300)
KINDS: Final = ("to run ask", "to run daemon set ask", "to enforce new max quota")


@pytest.mark.parametrize(
    "seed", [*SEEDS, *[pytest.param(seed, marks=pytest.mark.soak) for seed in SOAK_SEEDS]]
)
def test_engines_agree_where_much_is_preempted(seed: int) -> None:
    """Byte for byte; and for all that is placed or ended, the RM had one callback."""
    lines = preemption_transcript(seed)
    with Witness() as witness:
        witness.watch(lines)

    assert witness.output == output_of("\n".join(lines), "actors", check_direction=True)


def test_every_kind_of_preemption_occurs() -> None:
    """Transcripts in which nothing is preempted would show nothing."""
    said = "\n".join(
        line for seed in SEEDS for line in output_of("\n".join(preemption_transcript(seed)), "direct")
    )

    assert [True, True, True] == [kind in said for kind in KINDS]
