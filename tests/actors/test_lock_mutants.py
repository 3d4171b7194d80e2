"""The mutants of the locks, before any of them is run: what operators make, and what is judged of them."""

from __future__ import annotations

import ast

import pytest
from support.actors.lock_mutant_table import REASONS, can_deadlock
from support.actors.lock_mutants import Mutant, exchanged, mutants, mutants_of

SOURCE = '''
class Door:
    def enter(self):
        """Enter."""
        first()
        with self._changed:
            second()
            third()
        fourth()

    def read(self, exclusive):
        lock = self.lock
        with before, lock.write() if exclusive else lock.read():
            return second()

    def leave(self):
        first()
        self.lock.release_write()
        second()
'''
EITHER = "lock.write() if exclusive else lock.read()"
SWAPPED = "lock.read() if exclusive else lock.write()"


def bodies(operator: str, function: str) -> list[str]:
    """Return what an operator makes of a function of the source above, line by line, `>` for each level."""
    (mutant,) = [
        one
        for one in mutants_of(SOURCE, "door.py")
        if (one.operator, one.function) == (operator, f"Door.{function}")
    ]
    (door,) = ast.parse(mutant.source).body
    assert isinstance(door, ast.ClassDef)
    (changed,) = [one for one in door.body if isinstance(one, ast.FunctionDef) and one.name == function]
    text = [ast.unparse(statement) for statement in changed.body]
    lines = [line for statement in text for line in statement.splitlines() if "Enter" not in line]
    return [line.replace("    ", "> ") for line in lines]


@pytest.mark.parametrize(
    ("operator", "function", "expected"),
    [
        ("drop", "enter", "first() second() third() fourth()"),
        ("twice", "read", f"lock = self.lock with before, {EITHER}, {EITHER}: > return second()"),
        ("take earlier", "enter", "with self._changed: > first() > second() > third() fourth()"),
        ("take later", "enter", "first() second() with self._changed: > third() fourth()"),
        ("hold longer", "enter", "first() with self._changed: > second() > third() > fourth()"),
        ("hold shorter", "enter", "first() with self._changed: > second() third() fourth()"),
        ("upgrade", "read", f"lock = self.lock with before, lock.read(), {EITHER}: > return second()"),
        ("exchange", "read", f"lock = self.lock with {EITHER}, before: > return second()"),
        ("other mode of", "read", f"lock = self.lock with before, {SWAPPED}: > return second()"),
        ("always read", "read", "lock = self.lock with before, lock.read(): > return second()"),
        ("always write", "read", "lock = self.lock with before, lock.write(): > return second()"),
        ("drop", "leave", "first() pass second()"),
        ("exchange", "leave", "first() self.lock.acquire_write() second()"),
        ("other mode of", "leave", "first() self.lock.release_read() second()"),
        ("take earlier", "leave", "self.lock.release_write() first() second()"),
        ("take later", "leave", "first() second() self.lock.release_write()"),
    ],
)
def test_an_operator_changes_one_acquisition(operator: str, function: str, expected: str) -> None:
    """And nothing else."""
    assert expected == " ".join(bodies(operator, function))


def test_what_is_moved_keeps_its_names() -> None:
    """A lock that the line before gives a name to is not taken before that line."""
    earlier = [one.function for one in mutants_of(SOURCE, "door.py") if one.operator == "take earlier"]

    assert ["Door.enter", "Door.leave"] == earlier


@pytest.fixture(scope="module")
def made() -> list[Mutant]:
    return list(mutants())


def test_each_mutant_has_a_name_of_its_own_and_can_be_compiled(made: list[Mutant]) -> None:
    """Every acquisition has some."""
    assert len(made) == len({one.name for one in made}) > 90
    for one in made:
        compile(one.source, one.path, "exec")


def test_every_reason_is_one_of_a_mutant(made: list[Mutant]) -> None:
    """Who changes the engine judges its mutants anew."""
    unused = [
        (function, operator, word)
        for function, operator, word in REASONS
        if not any((function, operator) == (m.function, m.operator) and word in m.lock for m in made)
    ]

    assert [] == unused


def test_to_take_what_is_held_can_deadlock_and_is_no_mutant_of_a_re_entrant_lock() -> None:
    """The first needs no table, and the second would change nothing."""
    twice = {one.lock: can_deadlock(one) for one in mutants_of(SOURCE, "door.py") if one.operator == "twice"}

    assert {EITHER, "self.lock.release_write()"} == set(twice)
    assert twice[EITHER]
    assert "" == twice["self.lock.release_write()"]


def test_an_exchange_needs_guards_that_make_their_locks_as_they_do_now() -> None:
    """Otherwise nothing would be exchanged, without a sign."""
    with pytest.raises(AssertionError, match="in some other way"):
        exchanged("class Guard: ...", "partition", "node")
