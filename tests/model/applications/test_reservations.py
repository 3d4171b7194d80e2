"""The reservations of one application."""

from __future__ import annotations

import pytest
from support.model.builders import START_NS

from licorne.model.applications.pending_asks import Reservation, Reservations


def a_reservation(allocation_key: str = "ask", node_id: str = "node") -> Reservation:
    return Reservation(allocation_key, node_id, START_NS, required=False)


def test_reservations_are_in_the_order_they_were_made() -> None:
    """The oldest comes first, whatever the keys."""
    reservations = Reservations()
    made = [a_reservation("b", "one"), a_reservation("a", "two"), a_reservation("c", "three")]

    for reservation in made:
        reservations.add(reservation)

    assert tuple(made) == reservations.all()
    assert 3 == len(reservations)


def test_the_node_of_an_ask_is_known() -> None:
    """An ask with a reservation has a node, one without has none."""
    reservations = Reservations()
    reservations.add(a_reservation())

    assert ("node", "") == (reservations.node_of("ask"), reservations.node_of("other"))


def test_an_ask_has_one_reservation_at_most() -> None:
    """A second reservation of one ask is a mistake of ours, also on another node, and changes nothing."""
    reservations = Reservations()
    reservations.add(a_reservation())

    with pytest.raises(AssertionError, match="ask has a reservation"):
        reservations.add(a_reservation(node_id="other"))

    assert "node" == reservations.node_of("ask")


def test_a_removed_reservation_is_given_back_once() -> None:
    """Who removes a reservation gets it; a second time there is nothing."""
    reservations = Reservations()
    reservations.add(a_reservation())

    assert a_reservation() == reservations.remove("ask")
    assert reservations.remove("ask") is None
    assert (0, "") == (len(reservations), reservations.node_of("ask"))
