"""Which mutants of the locks can deadlock, and why: judged by hand, since no tool should judge itself.

A mutant can deadlock if in some schedule a thread waits for ever: for itself, in a deadlock, for a lock that
is never released, or for a wake-up that is lost. All others race, raise an error at once, or
change nothing.
"""

from __future__ import annotations

from typing import Final

from support.actors.lock_mutants import NESTED, Mutant

_CIRCLE: Final = "a circle with whoever takes them in order"
_ITSELF: Final = "whoever takes it waits for itself"
_KEPT: Final = "held for reading, it is never released"
_JOINED: Final = "who is waited for needs the lock to end"

REASONS: Final[dict[tuple[str, str, str], str]] = {
    **{(f"{outer} and {inner}", "exchange", ""): _CIRCLE for outer, inner in NESTED},
    **{
        ("GuardedPartition._place_concurrently", operator, "release"): _KEPT
        for operator in ("drop", "exchange", "other mode of")
    },
    ("SchedulingThreads.close", "hold longer", ""): _JOINED,
    (
        "SchedulingThreads._run",
        "take earlier",
        "",
    ): "the RM is asked under it, and what it does may need that",
    ("RmLink._begin_burst", "drop", ""): "the link falls asleep between the look and the wake-up",
    ("RmLink._run", "drop", ""): "a successor is added after the last look at them, and never begins",
    ("RmLink._run", "take earlier", ""): "it waits to begin, and who would let it needs the lock",
    (
        "RmLink._add_successor",
        "drop",
        "",
    ): "a successor is added after the last look at them, and never begins",
    ("RealClock.close", "hold longer", ""): _JOINED,
    ("TimedResolver._look_up", "take earlier", ""): "who asks waits without limit for a resolver that hangs",
}
"""By function, operator, and a word of the acquisition where there are several."""


def can_deadlock(mutant: Mutant) -> str:
    """Return why a mutant can deadlock, nothing if it cannot."""
    if mutant.operator in {"twice", "upgrade"} and "release" not in mutant.lock:
        return _ITSELF
    for (function, operator, word), reason in REASONS.items():
        if (function, operator) == (mutant.function, mutant.operator) and word in mutant.lock:
            return reason
    return ""
