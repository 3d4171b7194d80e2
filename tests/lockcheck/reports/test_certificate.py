"""The certificate, and what breaks it."""

from __future__ import annotations

from dataclasses import replace

from support.lockcheck.lock_reports import a_cycle, a_sound_program

from licorne.lockcheck import excludes, leaf, session
from licorne.lockcheck.order.order import Order
from licorne.lockcheck.reports.certificate import certify
from licorne.lockcheck.reports.documents import from_json, to_json
from licorne.lockcheck.sessions.summaries import Declaration, Summary, merged


def test_it_holds_where_all_that_was_observed_is_declared() -> None:
    """And lists what was declared and never exercised."""
    certificate = certify(a_sound_program().summary())

    assert certificate.holds
    assert ["partition[R] -> queue[W]", "queue[W] -> application[W]"] == sorted(
        map(str, certificate.exercised)
    )
    assert "queue[R] -> application[R]" in map(str, certificate.unexercised)
    assert "Declared edges exercised: 2 of 24 (8 %)" in certificate.text()


def test_it_breaks_at_what_was_observed_outside_and_at_findings() -> None:
    """Both are named."""
    certificate = certify(a_cycle().summary())

    assert not certificate.holds
    assert "application[W] -> queue[W]" in map(str, certificate.outside)
    assert 2 == len(certificate.findings)
    assert "DOES NOT HOLD" in certificate.text()


def test_orders_that_close_a_path_only_together_break_it() -> None:
    """Each test may declare its own; the program has all of them."""
    orders = [Order("a < b"), Order("b < a")]
    declared = tuple(Declaration(order.text, order.steps, ()) for order in orders)
    certificate = certify(Summary("full", orders=declared))

    assert not certificate.holds
    assert "What is declared allows a deadlock: " in certificate.text()


def test_nothing_declared_faults_and_a_lower_level_prove_nothing() -> None:
    """Each by itself."""
    sound = a_sound_program().summary()
    nothing = certify(Summary("full"))

    assert not nothing.holds
    assert nothing.text().endswith("exercised: 0 of 0 (none).\nContracts checked: 0 of 0.")
    assert not certify(replace(sound, faults=("KeyError: 1",))).holds
    assert not certify(replace(sound, level="order")).holds


def test_contracts_are_counted_and_those_that_nobody_checked_are_listed() -> None:
    """Of all that were declared while a session was open."""
    with session() as checked:

        @leaf
        def quiet() -> None:
            pass

        @excludes()
        def idle() -> None:
            pass

        quiet()
        quiet()
    summary = merged([checked.summary(), checked.summary()])
    text = certify(summary).text()

    assert [0, 4] == sorted(contract.checked for contract in summary.contracts)
    assert summary == from_json(to_json(summary), "here")
    assert "Contracts checked: 1 of 2; never checked:\n  " in text
    assert text.endswith(f"{idle.__qualname__}: excludes all locks")
