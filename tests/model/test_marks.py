"""The marks that tell engines what a method does to its object."""

from __future__ import annotations

from types import FunctionType

import pytest

from licorne.model.applications.allocations import ApplicationAllocations, ApplicationSwaps
from licorne.model.applications.application import Application
from licorne.model.applications.asks import ApplicationAsks
from licorne.model.applications.handle import (
    AllocationsHandle,
    ApplicationHandle,
    AsksHandle,
    ReservationsHandle,
    SwapsHandle,
)
from licorne.model.applications.pending_asks import ApplicationReservations
from licorne.model.cluster import Cluster
from licorne.model.marks import Marks, marked_methods
from licorne.model.nodes.handle import NodeHandle
from licorne.model.nodes.node import Node
from licorne.model.partition import Partition


class Lamp:
    """Something with a state."""

    MARKS = Marks(reads=("shines",), writes=("switch",))

    def __init__(self) -> None:
        self.is_on = False

    def shines(self) -> bool:
        """Return whether it is on."""
        return self.is_on

    def switch(self, *, on: bool) -> None:
        """Switch it."""
        self.is_on = on

    def flash(self) -> bool:
        """Do something made of marked steps."""
        self.switch(on=True)
        return self.shines()


class DimmedLamp(Lamp):
    """A lamp that overrides a method and has one more."""

    MARKS = Marks(reads=("dimming",), writes=("shines",))

    def shines(self) -> bool:
        """Look, which wears it out."""
        return self.is_on

    def dimming(self) -> int:
        """Tell how far it is dimmed."""
        return 5


class BrokenLamp(Lamp):
    """A lamp whose marks name a method that only its base has."""

    MARKS = Marks(writes=("switch",))


def test_the_marked_methods_of_a_class_are_found() -> None:
    """Those that read and those that write; methods without a mark are not among them."""
    found = marked_methods(Lamp)

    assert {"shines": "reads", "switch": "writes"} == found
    assert Lamp().flash()


def test_marks_are_inherited_and_can_be_changed() -> None:
    """A subclass has the marked methods of its base; its own mark counts where it overrides one."""
    found = marked_methods(DimmedLamp)

    assert {"shines": "writes", "switch": "writes", "dimming": "reads"} == found


def test_a_mark_for_no_method_of_the_class_is_an_error() -> None:
    """It names the class and the method."""
    with pytest.raises(TypeError, match="BrokenLamp marks 'switch', which is not a method of it"):
        marked_methods(BrokenLamp)


@pytest.mark.parametrize("entity", [Node, Application, Partition, Cluster])
def test_every_public_method_of_an_entity_is_marked(entity: type) -> None:
    """Entities are used from outside through marked methods alone; `flush` is for a partition's owner."""
    public = {name for name in dir(entity) if callable(getattr(entity, name)) and not name.startswith("_")}

    assert public - {"flush"} == {name for name in marked_methods(entity) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("entity", "handle"),
    [
        (Node, NodeHandle),
        (Application, ApplicationHandle),
        (ApplicationAsks, AsksHandle),
        (ApplicationAllocations, AllocationsHandle),
        (ApplicationSwaps, SwapsHandle),
        (ApplicationReservations, ReservationsHandle),
    ],
)
def test_a_handle_has_all_marked_methods(entity: type, handle: type) -> None:
    """A partition can ask whatever an engine offers."""
    methods = {name for name, member in vars(handle).items() if isinstance(member, FunctionType)}

    assert set(marked_methods(entity)) == {name for name in methods if not name.startswith("_")}
