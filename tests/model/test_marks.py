"""The marks that tell engines what a method does to its object."""

from __future__ import annotations

import pytest

from licorne.model.applications.application import Application
from licorne.model.cluster import Cluster
from licorne.model.marks import MARK, marked_methods, reads, writes
from licorne.model.nodes.node import Node
from licorne.model.partition import Partition


class Lamp:
    """Something with a state."""

    def __init__(self) -> None:
        self.is_on = False

    @reads
    def shines(self) -> bool:
        """Return whether it is on."""
        return self.is_on

    @writes
    def switch(self, *, on: bool) -> None:
        """Switch it."""
        self.is_on = on

    def flash(self) -> bool:
        """Do something made of marked steps."""
        self.switch(on=True)
        return self.shines()


class DimmedLamp(Lamp):
    """A lamp that overrides a method and has one more."""

    @writes
    def shines(self) -> bool:
        """Look, which wears it out."""
        return self.is_on

    @reads
    def dimming(self) -> int:
        """Tell how far it is dimmed."""
        return 5


def test_marked_methods_are_listed_in_order_of_their_definition() -> None:
    """Readers and writers are found, unmarked methods are not."""
    found = marked_methods(Lamp)

    assert [("shines", "reads"), ("switch", "writes")] == list(found.items())


def test_a_mark_changes_nothing_about_the_method() -> None:
    """The marked function is the very function, with an attribute."""

    def plain() -> int:
        return 7

    assert plain is reads(plain)
    assert "reads" == getattr(plain, MARK)
    assert plain is writes(plain)
    assert "writes" == getattr(plain, MARK)
    assert Lamp().flash()


def test_marks_are_inherited_and_can_be_changed() -> None:
    """A subclass has the marked methods of its base; its own mark counts where it overrides one."""
    found = marked_methods(DimmedLamp)

    assert {"shines": "writes", "switch": "writes", "dimming": "reads"} == found


@pytest.mark.parametrize("entity", [Node, Application, Partition, Cluster])
def test_every_public_method_of_an_entity_is_marked(entity: type) -> None:
    """Entities are used from outside through marked methods alone; `flush` is for a partition's owner."""
    public = {name for name in dir(entity) if callable(getattr(entity, name)) and not name.startswith("_")}

    assert public - {"flush"} == {name for name in marked_methods(entity) if not name.startswith("_")}
