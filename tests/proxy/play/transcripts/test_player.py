"""What is said to a scheduler for the resource managers of a transcript."""

from __future__ import annotations

from licorne.proxy.play.transcripts.player import PlayedManager, TranscriptPlayer
from licorne.proxy.play.transcripts.transcript import read_transcript
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.api import ResourceManagerCallback

TWO_MANAGERS = '{"register": {"rmID": "a", "config": "own"}}\n{"register": {"rmID": "b"}}\n'


class RecordingScheduler:
    """Writes down what it is asked, and does nothing."""

    def __init__(self) -> None:
        self.configurations: list[str] = []
        self.callbacks: dict[str, ResourceManagerCallback] = {}
        self.requests: list[si.AllocationRequest] = []

    def register_resource_manager(
        self, request: si.RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> si.RegisterResourceManagerResponse:
        self.configurations.append(request.config)
        self.callbacks[request.rmID] = callback
        return si.RegisterResourceManagerResponse()

    def update_allocation(self, request: si.AllocationRequest) -> None:
        self.requests.append(request)

    def update_application(self, request: si.ApplicationRequest) -> None:
        """Let it pass."""

    def update_node(self, request: si.NodeRequest) -> None:
        """Let it pass."""

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Let it pass."""

    def stop(self) -> None:
        """Let it pass."""


class ConfirmingManager(PlayedManager):
    """Confirms what it is asked to release."""

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.confirm_later(response.released)


def played(text: str, scheduler: RecordingScheduler, configuration: str | None = None) -> TranscriptPlayer:
    """Return a player that has said the lines."""
    player = TranscriptPlayer(scheduler, ConfirmingManager, configuration=configuration)
    for line in read_transcript(text, "transcript"):
        player.play(line)
    return player


def released(key: str, kind: si.TerminationType = si.TIMEOUT) -> si.AllocationResponse:
    """Return a message that wants an allocation released."""
    return si.AllocationResponse(released=[si.AllocationRelease(allocationKey=key, terminationType=kind)])


def test_who_heard_of_a_release_confirms_it() -> None:
    """Not the resource manager that has registered last."""
    scheduler = RecordingScheduler()
    player = played(TWO_MANAGERS, scheduler)

    for rm_id in ("b", "a"):
        scheduler.callbacks[rm_id].update_allocation(released(f"of {rm_id}"))
    while player.releases_to_confirm():
        player.confirm_next()

    confirmed = [(asked.rmID, asked.releases.allocationsToRelease[0]) for asked in scheduler.requests]
    assert [("b", "of b"), ("a", "of a")] == [(rm_id, release.allocationKey) for rm_id, release in confirmed]
    assert all(release.terminationType == si.TIMEOUT for _, release in confirmed)


def test_nothing_is_confirmed_that_the_manager_stopped_or_the_transcript_leaves_open() -> None:
    """The scheduler only answers the one, and the line `confirm` is for the other."""
    scheduler = RecordingScheduler()
    player = played(TWO_MANAGERS, scheduler)
    scheduler.callbacks["a"].update_allocation(released("stopped", si.STOPPED_BY_RM))
    for line in read_transcript('{"confirm": "manual"}', "transcript"):
        player.play(line)

    scheduler.callbacks["a"].update_allocation(released("left open"))

    assert 0 == player.releases_to_confirm()


def test_a_configuration_takes_the_place_of_every_registered_one() -> None:
    """Without one each keeps its own."""
    own, other = RecordingScheduler(), RecordingScheduler()

    played(TWO_MANAGERS, own)
    played(TWO_MANAGERS, other, "given")

    assert (["own", ""], ["given", "given"]) == (own.configurations, other.configurations)


def test_predicates_follow_the_table_of_all_managers() -> None:
    """It holds from its line on, for those that are registered already too."""
    scheduler = RecordingScheduler()
    played(TWO_MANAGERS + '{"predicates": {"deny": [{"allocationKey": "k", "nodeID": "n"}]}}', scheduler)
    asked = [si.PreemptionPredicatesArgs(allocationKey="k", nodeID=node) for node in ("n", "m")]

    answers = [scheduler.callbacks["a"].preemption_predicates(args) for args in asked]

    assert [False, True] == [answer.success for answer in answers if answer is not None]
