"""A check of the contract between a resource manager and a scheduler, from its requests and callbacks.

The book knows nothing of the scheduler but its messages. Whatever the scheduler shows in its documents has
to agree with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from licorne.model.applications.effects import (
    ApplicationEvent,
    ApplicationState,
    IllegalTransitionError,
    next_state,
)
from licorne.model.configuration.reader import DEFAULT_CONFIGURATION, load

Entry: TypeAlias = tuple[str, str]
"""An application and a key of it."""

CONFIRMED: Final = ("TIMEOUT", "PREEMPTED_BY_SCHEDULER", "PLACEHOLDER_REPLACED")
"""Ends that the RM is asked for and confirms; all others are only reported."""
_OVER: Final = ("Completed", "Failed", "Rejected", "Expired")
_PARTITION_ENDS: Final = "PartitionRemoved"
_REPLACING: Final = "replacing allocationKey: "


class ContractError(AssertionError):
    """The scheduler did what it must never do."""


class ContractChecker:
    """What one resource manager knows of its applications and their keys."""

    def __init__(self) -> None:
        self.confirms = True
        """Whether the RM answers releases by itself, at once."""
        self.placed: set[Entry] = set()
        """What has been announced and has not ended."""
        self.to_confirm: dict[Entry, str] = {}
        """What the scheduler wants ended, by termination type, until the RM says that it has."""
        self._ended: set[Entry] = set()
        """What has ended and has not been asked for again."""
        self._asked: set[Entry] = set()
        """All that was ever asked for."""
        self._open: set[Entry] = set()
        """Asks that were not rejected, have not ended, and wait or are placed."""
        self._swaps: dict[Entry, Entry] = {}
        """The members that are to take the place of a placeholder, by the placeholder."""
        self._partitions: dict[str, str] = {}
        """The partition of each application, as the RM writes it."""
        self._states: dict[str, str] = {}
        """The last state that was heard of each application."""
        self.living: dict[str, None] = {}
        """Applications that were accepted, and have neither ended nor been removed."""

    # ----------------------------------------------------------------------------- what the RM says

    def note_said(self, verb: str, body: Any) -> None:
        """Note what the RM says, before it is heard."""
        if verb == "confirm":
            self.confirms = body == "auto"
        if verb == "application":
            for new in body.get("new", []):
                self._partitions[new.get("applicationID", "")] = new.get("partitionName") or "default"
            for removal in body.get("remove", []):
                self._forget_application(removal.get("applicationID", ""))
        if verb != "allocation":
            return
        asked = {
            (allocation.get("applicationID", ""), allocation.get("allocationKey", ""))
            for allocation in (*body.get("asks", []), *body.get("allocations", []))
            if "foreign" not in allocation.get("allocationTags", {})
        }
        self._ended -= asked
        self._open |= asked
        self._asked |= asked
        for release in body.get("releases", {}).get("allocationsToRelease", []):
            self._note_release(release)

    def _note_release(self, release: dict[str, str]) -> None:
        """Note what the RM ends; an end that it says is its own will be echoed."""
        name, key = release.get("applicationID", ""), release.get("allocationKey", "")
        termination = release.get("terminationType")
        ended = {entry for entry in self.placed if entry[0] == name and key in ("", entry[1])}
        if termination in CONFIRMED:
            self.placed -= ended
        if termination != "TIMEOUT":
            self._close(entry for entry in [*self._open] if entry[0] == name and key in ("", entry[1]))
        self._close(ended)
        self._ended |= ended
        for entry in [*self.to_confirm]:
            if entry[0] == name and key in ("", entry[1]):
                del self.to_confirm[entry]

    def _close(self, entries: Iterable[Entry]) -> None:
        for entry in [*entries]:
            self._open.discard(entry)

    def _forget_application(self, name: str) -> None:
        self.living.pop(name, None)
        self._close(entry for entry in [*self._open] if entry[0] == name)
        for book in (self.to_confirm, self._swaps):
            for entry in [entry for entry in book if entry[0] == name]:
                del book[entry]

    # ---------------------------------------------------------------------------- what the RM hears

    def note_heard(self, answer: dict[str, Any]) -> None:
        """Note one callback.

        Raises:
            ContractError: it says what cannot be.
        """
        applications = answer.get("applicationResponse", {})
        for accepted in applications.get("accepted", []):
            self._states[accepted["applicationID"]] = "New"
            self.living[accepted["applicationID"]] = None
        for update in applications.get("updated", []):
            self._note_state(update["applicationID"], update["state"])
            if update.get("message") == _PARTITION_ENDS:
                self._close(entry for entry in [*self._open] if entry[0] == update["applicationID"])
        response = answer.get("allocationResponse", {})
        for rejection in response.get("rejectedAllocations", []):
            entry = (rejection.get("applicationID", ""), rejection.get("allocationKey", ""))
            self._close([entry])
        for allocation in response.get("new", []):
            self._note_placed((allocation["applicationID"], allocation["allocationKey"]))
        for release in response.get("released", []):
            self._note_released(release)
        # An RM of the older generation hears of asks that the scheduler drops apart from allocations.
        for release in response.get("releasedAsks", []):
            self._open.discard((release["applicationID"], release["allocationKey"]))

    def _note_placed(self, entry: Entry) -> None:
        if entry in self.placed:
            raise ContractError(f"{entry} is announced twice")
        if entry in self._ended:
            raise ContractError(f"{entry} is announced after its end")
        if entry not in self._asked:
            raise ContractError(f"{entry} is announced and was never asked for")
        self.placed.add(entry)

    def _note_released(self, release: dict[str, str]) -> None:
        entry = (release["applicationID"], release["allocationKey"])
        termination = release.get("terminationType", "")
        if termination in CONFIRMED and not self.confirms:
            self.to_confirm[entry] = termination
        else:
            if entry in self.placed:
                self._ended.add(entry)
            self.placed.discard(entry)
        if termination == "PLACEHOLDER_REPLACED":
            self._swaps[entry] = (entry[0], release["message"].removeprefix(_REPLACING))
        self._open.discard(entry)

    def _note_state(self, name: str, state: str) -> None:
        before = ApplicationState(self._states.get(name, "New"))
        after = ApplicationState(state)
        if after not in _followers(before) and before is not after:
            raise ContractError(f"{name} went from {before} to {after}")
        self._states[name] = state
        if state in _OVER:
            self.living.pop(name, None)  # What it asked for is to be answered all the same.

    def forget_partitions(self, config: str, *, note_registration: bool) -> None:
        """Forget what was in partitions that a new configuration has no more, or begins anew."""
        kept = {partition.name for partition in load(config or DEFAULT_CONFIGURATION).partitions}
        for name, partition in self._partitions.items():
            if note_registration or partition not in kept:
                self._forget_application(name)
                self.placed = {entry for entry in self.placed if entry[0] != name}

    # --------------------------------------------------------------------------------- what must be

    def check(self, applications: list[Any]) -> None:
        """Check the documents of all applications.

        Raises:
            ContractError: they do not agree with what was said and heard.
        """
        shown = _entries(applications, "allocations")
        if shown != self.placed:
            raise ContractError(
                f"{sorted(self.placed - shown)} are placed for the RM alone, "
                f"{sorted(shown - self.placed)} for the scheduler alone"
            )
        lost = self._open - shown - _entries(applications, "requests") - {*self._swaps.values()}
        if lost:
            raise ContractError(f"{sorted(lost)} neither wait nor are placed nor were rejected")
        self._check_states(applications)

    def _check_states(self, applications: list[Any]) -> None:
        """Check that each living application is there, in the state that was heard last."""
        shown = {(document["applicationID"], document["applicationState"]) for document in applications}
        for name in self.living:
            if (name, self._states[name]) not in shown:
                raise ContractError(f"{name} is not {self._states[name]}, which is what the RM has heard")


def _entries(applications: list[Any], part: str) -> set[Entry]:
    """Return what documents of applications list under `allocations` or `requests`."""
    return {
        (document["applicationID"], entry["allocationKey"])
        for document in applications
        for entry in document.get(part, [])
    }


def _followers(state: ApplicationState) -> set[ApplicationState]:
    followers = set()
    for event in ApplicationEvent:
        try:
            followers.add(next_state(state, event))
        except IllegalTransitionError:
            continue
    return followers
