"""What worlds of the second scheduler have: one mode, and a few of the features that go with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MODES: Final = (
    *("plain", "plain", "preempts", "reserves", "gangs"),
    *("gangs", "promises", "promises", "daemons", "quotas"),
)
"""What the second scheduler does not know together with each other."""
FEATURES: Final[Mapping[str, tuple[str, ...]]] = {
    "users": ("plain", "reserves", "gangs", "daemons"),
    "counts": ("plain", "reserves", "gangs", "daemons"),
    "reloads": ("plain", "reserves", "gangs", "daemons"),
    "rules": ("plain", "gangs"),
    "types": ("plain", "reserves", "gangs"),
    "large": ("plain", "reserves"),
    "weights": ("quotas", "plain", "reserves", "gangs", "promises", "daemons"),
    "resizes": ("plain", "reserves", "gangs"),
    "foreign": ("plain", "reserves", "promises"),
    "nodes": ("plain", "reserves", "gangs", "promises"),
    "times": ("plain", "gangs", "promises"),
    "pauses": ("plain",),
    "ages": ("plain", "reserves", "gangs", "daemons"),
    "late": ("gangs",),
    "overruns": ("plain",),
}
"""With which modes each feature goes."""
LIKELY: Final = 0.35
WAITS: Final = {
    "times": (0.5, 3.0, 10.0, 29.0, 31.0, 400.0, 901.0, 250_000.0),
    "reserves": (0.5, 3.0),
    "pauses": (0.5, 3.0, 10.0),
    "quotas": (0.5, 3.0, 6.0),
    "overruns": (0.5, 6.0, 21.0),
    "promises": (3.0, 10.0, 61.0),
}
"""How many seconds pass in a step that waits, by what a world has."""
