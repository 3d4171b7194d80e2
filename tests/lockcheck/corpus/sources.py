"""Where the cases of the corpus are from: every id that issue 5 asks for, and those that have no case.

Numbers such as `19.6` are rows of the reference's history of bugs, each with the classes that a checker
should catch; the other ids are those of the lists of bugs and of false alarms that the issue names.
"""

from __future__ import annotations

from typing import Final

HISTORY: Final = (
    "19.1 REC", "19.2 BLK", "19.2 LEAK", "19.4 REC", "19.6 ORD", "19.7 LEAK", "19.8 ORD", "19.9 REC", "19.9 ORD",
    "19.14 ORD", "19.16 ORD", "19.17 ORD", "19.18 ORD", "19.19 REC", "19.19 ORD", "19.21 MODE", "19.23 LEAK",
    "19.23 REC", "19.24 BLK", "19.26 MODE", "19.35 MODE", "19.37 REC", "19.39 MODE", "19.40 MODE", "19.42 REC",
    "19.42 BLK", "19.43 REC", "19.43 ORD", "19.44 ORD", "19.45 ORD", "19.46 REC", "19.47 REC", "19.51 REC",
    "19.55 REC", "19.55 ORD", "19.58 MODE", "19.59 BLK",
)  # fmt: skip
"""The rows of classes REC, ORD, LEAK, MODE and BLK."""

BUGS: Final = (
    "core#50", "core#54", "core#91", "core#92", "core#94", "core#228", "core#253", "core#257", "core#299",
    "core#347", "core#377", "core#837", "core#839", "core#840", "core#841", "core#948", "k8shim#697",
    "YARN-11127", "parking_lot#212", "parking_lot#532", "go-deadlock#47", "cpython#83065", "pykka#48",
    "pykka#76", "orleans#5456", "pi-intercom#41", "rings", "RWR", "RWRW", "key inversions", "callbacks", "asks",
)  # fmt: skip
"""The list of ready-made bugs, and the kinds that it asks for besides."""

FALSE_ALARMS: Final = (
    "Deloxide's nine", "TSan#488", "TSan#814", "TSan#1163", "TSan#1620", "TSan#1668", "TSan#1717", "TSan#1798",
    "TSan#1862", "lkrg#47", "zfs#8984", "yunikorn#877", "node-v8#301", "filelock#675",
)  # fmt: skip
"""The list of patterns that other checkers object to without need."""

_UNREAD: Final = "its text cannot be read from where this was written, and guesses are no cases"

ABSENT: Final = {
    "19.40 MODE": "a write lock where a read lock would do is slow, and neither deadlocks nor breaks a contract",
    "Deloxide's nine": _UNREAD,
    **dict.fromkeys(("TSan#814", "TSan#1620", "TSan#1668", "TSan#1717", "TSan#1798", "TSan#1862"), _UNREAD),
}
"""Why there is no case of an id."""

ELSEWHERE: Final = {
    "node-v8#301": "tests/lockcheck/reports/test_never_met.py::test_what_two_tests_do_is_shown_as_never_ran_together",
}
"""Cases that are no single run, and thus tests of their own."""
