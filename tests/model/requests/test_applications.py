"""New applications, and applications that an RM takes away."""

from __future__ import annotations

import pytest
from support.model.builders import SECOND_NS, START_NS, TEN, a_resource
from support.model.harness import Harness, a_running_partition

from licorne.model.applications.gang import GangSettings
from licorne.model.resources.resource import EMPTY
from licorne.model.values.messages import ApplicationsAnswered, Rejection, TerminationType
from licorne.model.values.states import ObjectState

DYNAMIC = "- name: parent\n  parent: true\n- name: default"
CREATE = "placementrules: [{name: provided, create: true}]"
FORCE = {"application.create.force": "true"}
STOPPED = TerminationType.STOPPED_BY_RM


def quota(**quantities: int) -> str:
    """Return a namespace quota as the tags have it."""
    entries = ", ".join(f'"{name}": {{"value": {quantity}}}' for name, quantity in quantities.items())
    return f'{{"resources": {{{entries}}}}}'


def dynamic() -> Harness:
    """Return a partition that creates the queues that applications name."""
    return Harness(DYNAMIC, partition=CREATE)


@pytest.fixture
def h() -> Harness:
    """Return a partition with one leaf."""
    return Harness()


# -------------------------------------------------------------------------------------------- taking


def test_an_application_has_an_entry_in_its_queue(h: Harness) -> None:
    """It is New until something is asked for it, and no state is reported to the RM."""
    assert h.submit() is None

    assert (["app"], ["app"]) == (list(h.state.entries), list(h.queue().entries.by_id))
    assert ([], "New") == (h.states(), h.application().facts().state.value)


def test_an_active_id_is_taken_once(h: Harness) -> None:
    """The second application is rejected and kept to be looked at; the first is untouched."""
    h.submit()
    h.ask("a")

    rejection = h.submit()

    why = "adding application app to partition [rm]default, but application already existed"
    assert Rejection("app", why) == rejection
    assert ("Accepted", ["app"]) == (h.application().facts().state.value, list(h.state.rejected))


def test_ids_of_rejected_and_completed_applications_can_be_used_again(h: Harness) -> None:
    """Only those that are active are taken."""
    h.submit(queue_name="root.nowhere")
    first = h.submit()
    h.ask("a")
    h.release("a")
    h.advance(31)

    assert ["Accepted", "Completing", "Completed"] == h.states()
    assert (None, None) == (first, h.submit())


@pytest.mark.parametrize("state", [ObjectState.STOPPED, ObjectState.DRAINING])
def test_a_partition_that_goes_away_takes_no_application(h: Harness, state: ObjectState) -> None:
    """Neither a stopped one nor a draining one."""
    h.state.state = state

    why = "partition [rm]default is stopped cannot add a new application app"
    assert Rejection("app", why) == h.submit()


def test_an_application_without_a_user_is_rejected(h: Harness) -> None:
    """Unless its creation is forced."""
    rejection = h.submit(user="", groups=())

    assert rejection is not None
    assert "empty user" in rejection.reason
    assert h.submit("forced", user="", groups=(), tags=FORCE) is None
    assert "nobody" == h.entry("forced").user.name


@pytest.mark.parametrize(
    ("user", "stopped", "queue_name", "why"),
    [
        ("", True, "root.nowhere", "empty user cannot resolve"),
        ("bob", True, "root.nowhere", "partition [rm]default is stopped cannot add a new application app"),
        ("bob", False, "root.nowhere", "adding application app to partition [rm]default, but"),
    ],
)
def test_the_first_reason_to_reject_is_reported(
    h: Harness, user: str, queue_name: str, why: str, *, stopped: bool
) -> None:
    """The user, the partition, the id, and then the queue."""
    h.submit()
    if stopped:
        h.state.state = ObjectState.STOPPED

    rejection = h.submit(queue_name=queue_name, user=user, groups=())

    assert rejection is not None
    assert rejection.reason.startswith(why)


def test_a_rejection_is_no_change_of_state(h: Harness) -> None:
    """The RM hears of it as a rejection, and three days later that it has expired."""
    h.submit(queue_name="root.nowhere")
    before = h.states()

    h.advance(3 * 24 * 3600)

    assert ([], ["Expired"]) == (before, h.states())


@pytest.mark.parametrize(
    ("name", "value", "forces"),
    [
        ("application.create.force", "true", True),
        ("APPLICATION.Create.Force", "T", True),
        ("application.create.force", "1", True),
        ("application.create.force", "yes", False),
        ("application.create.force", "", False),
        ("application.create.forced", "true", False),
    ],
)
def test_creation_is_forced_by_a_tag(name: str, value: str, *, forces: bool) -> None:
    """In any case of its letters; its value is a flag as Go writes it."""
    h = Harness(partition=CREATE)

    rejection = h.submit(queue_name="", tags={name: value})

    assert forces is (rejection is None)


def test_a_rejected_application_does_not_take_the_place_of_one_that_is_active(h: Harness) -> None:
    """Not even when it expires, nor does the end of the active one touch it."""
    h.submit()
    h.ask("a")
    h.submit()
    h.advance(3 * 24 * 3600)

    assert ({}, ["app"]) == (h.state.rejected, list(h.state.entries))


def test_an_application_that_no_rule_places_is_rejected() -> None:
    """With the words of the interface."""
    rejection = Harness().submit(queue_name="root.unknown")

    assert rejection is not None
    assert rejection.reason.startswith("failed to place application app: ")


def test_a_queue_that_cannot_be_made_rejects_its_application() -> None:
    """Below a leaf there are no queues."""
    rejection = dynamic().submit(queue_name="root.default.x.y")

    assert rejection is not None
    assert (
        "failed to create rule based queue root.default.x.y for application app\n"
        "creation of queue root.default.x.y failed parent is already a leaf: root.default"
    ) == rejection.reason


def test_a_forced_application_goes_to_the_recovery_queue() -> None:
    """Where no rule places it; others may not name that queue, whether or not it is there."""
    h = Harness(partition=CREATE)

    assert h.submit("early", "root.@recovery@") is not None
    assert h.submit("forced", "", tags=FORCE) is None
    assert h.submit("late", "root.@recovery@") is not None
    assert ["forced"] == list(h.queue("root.@recovery@").entries.by_id)


def test_a_rejected_application_expires_after_three_days(h: Harness) -> None:
    """The latest of each id is kept until then."""
    h.submit(queue_name="root.nowhere")

    h.advance(3 * 24 * 3600 - 1)
    kept = list(h.state.rejected)
    h.advance(2)

    assert (["app"], {}) == (kept, h.state.rejected)


# ---------------------------------------------------------------------------------------- quota tags


def test_the_tags_of_a_namespace_are_quotas_of_a_dynamic_leaf() -> None:
    """Maximum, guarantee, and the number of applications, whatever the case of their names."""
    h = dynamic()

    h.submit(
        queue_name="root.parent.x",
        tags={
            "Namespace.ResourceQuota": quota(memory=10),
            "namespace.resourceguaranteed": quota(memory=5),
            "namespace.resourcemaxapps": "3",
        },
    )

    leaf = h.queue("root.parent.x")
    assert (TEN, a_resource(memory=5), 3) == (leaf.maximum, leaf.guaranteed, leaf.max_applications)


def test_the_last_application_has_the_say() -> None:
    """Both quotas are set together: one that it does not name is gone."""
    h = dynamic()
    both = {
        "namespace.resourcequota": quota(memory=10),
        "namespace.resourceguaranteed": quota(memory=5),
    }
    h.submit("one", "root.parent.x", tags=both)

    h.submit("two", "root.parent.x", tags={"namespace.resourcequota": quota(memory=7)})

    leaf = h.queue("root.parent.x")
    assert (a_resource(memory=7), None) == (leaf.maximum, leaf.guaranteed)


@pytest.mark.parametrize("text", ["", "nonsense", quota(memory=0), quota(memory=-1), quota(memory=5, gpu=-1)])
def test_a_quota_that_is_none_is_ignored(text: str) -> None:
    """It must be readable and strictly greater than zero."""
    h = dynamic()

    h.submit(queue_name="root.parent.x", tags={"namespace.resourcequota": text})

    assert h.queue("root.parent.x").maximum is None


@pytest.mark.parametrize(
    ("tags", "why"),
    [
        ({"namespace.resourcequota": "nonsense"}, "resourcequota is ignored: invalid resource JSON"),
        ({"namespace.resourceguaranteed": quota(memory=0)}, "no quantity of"),
        ({"namespace.resourcemaxapps": "many"}, "'many' is not a whole number below 2^64"),
        ({"namespace.resourcemaxapps": "9" * 5_000}, "is not a whole number below 2^64"),
    ],
)
def test_a_quota_that_is_ignored_is_a_warning_in_the_answer(tags: dict[str, str], why: str) -> None:
    """The application is accepted; the warning stands where its changes of state do."""
    h = dynamic()

    h.submit("app", "root.parent.x", tags=tags)

    (answer,) = [entry for entry in h.announcements if isinstance(entry, ApplicationsAnswered)]
    (warning,) = answer.warnings
    assert (("app",), "app", "New") == (answer.accepted, warning.application_id, warning.state)
    assert why in warning.message


@pytest.mark.parametrize("text", ["", "-1", "many", "1.5", str(2**64)])
def test_a_number_of_applications_that_is_none_is_ignored(text: str) -> None:
    """What was said before stays."""
    h = dynamic()
    h.submit("one", "root.parent.x", tags={"namespace.resourcemaxapps": "3"})

    h.submit("two", "root.parent.x", tags={"namespace.resourcemaxapps": text})

    assert 3 == h.queue("root.parent.x").max_applications


def test_quota_tags_count_from_the_next_cycle() -> None:
    """An ask that the former quota has barred is placed when the next application brings a larger one."""
    h = dynamic()
    h.nodes("node", capacity=a_resource(memory=100))
    h.submit("one", "root.parent.x", tags={"namespace.resourcequota": quota(memory=10)})
    h.ask("a", "b", application_id="one")
    first = h.run_until_idle()

    h.submit("two", "root.parent.x", tags={"namespace.resourcequota": quota(memory=20)})

    assert (1, 1) == (first, h.run_until_idle())


def test_an_application_that_is_sent_again_brings_the_quotas_that_it_names() -> None:
    """It stays as it is; without the tags of quotas its queue does too."""
    again = {"licorne/create-if-missing": "true"}
    h = dynamic()
    h.submit("one", "root.parent.x", tags={"namespace.resourcequota": quota(memory=7)})

    h.submit("one", "root.parent.x", tags=again)
    kept = h.queue("root.parent.x").maximum
    h.submit("one", "root.parent.x", tags={**again, "namespace.resourcequota": quota(memory=9)})

    assert (a_resource(memory=7), a_resource(memory=9)) == (kept, h.queue("root.parent.x").maximum)


def test_configured_queues_and_the_recovery_queue_take_no_quota_tags() -> None:
    """Only what placement has made does."""
    h = dynamic()
    tags = {"namespace.resourcequota": quota(memory=1), "namespace.resourcemaxapps": "1"}

    h.submit("one", "root.default", tags=tags)
    h.submit("two", "", tags=tags | FORCE)

    for path in ("root.default", "root.@recovery@"):
        assert (None, 0) == (h.queue(path).maximum, h.queue(path).max_applications)


# --------------------------------------------------------------------------------------------- gangs


def test_a_gang_needs_a_queue_that_is_first_in_first_out() -> None:
    """Other applications do not."""
    h = Harness("- name: leaf\n  properties: {application.sort.policy: fair}")

    rejection = h.submit("gang", placeholder_ask=TEN)

    why = "queue root.leaf cannot run application gang with task group request: unsupported sort type"
    assert Rejection("gang", why) == rejection
    assert h.submit("plain") is None


def test_a_gang_cannot_announce_less_than_nothing() -> None:
    """The rejection names the type and the quantity."""
    rejection = Harness("- name: leaf").submit("gang", placeholder_ask=a_resource(memory=-3))

    assert rejection is not None
    assert "the placeholder ask of application gang is negative: memory is -3" == rejection.reason


def test_a_gang_must_fit_the_maximum_of_its_queues() -> None:
    """That of the leaf and of all queues below the root; the size of the cluster does not count."""
    h = Harness("- name: p\n  resources: {max: {memory: 15}}\n  queues:\n  - name: leaf")

    rejection = h.submit("big", "root.p.leaf", placeholder_ask=a_resource(memory=16))

    assert rejection is not None
    assert "queue root.p.leaf cannot fit application big: task group request" in rejection.reason
    assert h.submit("fits", "root.p.leaf", placeholder_ask=a_resource(memory=15, gpu=99)) is None


@pytest.mark.parametrize(("style", "hard"), [("Hard", True), ("Soft", False), ("", False), ("hard", False)])
def test_the_style_of_a_gang_is_soft_unless_it_is_hard(h: Harness, style: str, *, hard: bool) -> None:
    """The word must be exact."""
    h.submit(style=style)

    assert hard is h.application().gang_settings.hard


@pytest.mark.parametrize(
    ("seconds", "timeout_ms"), [(0, 900_000), (-5, 900_000), (5, 5000), (2**63, 900_000)]
)
def test_a_timeout_that_is_none_is_a_quarter_of_an_hour(h: Harness, seconds: int, timeout_ms: int) -> None:
    """Neither nothing nor what does not fit into nanoseconds is a timeout."""
    h.submit(timeout_seconds=seconds)

    assert timeout_ms == h.application().gang_settings.timeout_ms


def test_the_tag_of_the_age_is_spelled_exactly(h: Harness) -> None:
    """Unlike other tags."""
    h.submit(tags={"Yunikorn.apache.org/creationTime": "946684790"})

    assert h.application().gang_settings.created_at_ns is None


@pytest.mark.parametrize(("text", "seconds"), [("946684790", 946_684_790), ("soon", None), ("", None)])
def test_the_age_of_an_application_is_a_tag(h: Harness, text: str, seconds: int | None) -> None:
    """In seconds since 1970; it shortens the timeout of placeholders."""
    h.submit(tags={"yunikorn.apache.org/creationTime": text})

    created_at_ns = None if seconds is None else seconds * SECOND_NS
    assert created_at_ns == h.application().gang_settings.created_at_ns
    if seconds is not None:
        due_ns = GangSettings(created_at_ns=created_at_ns).placeholder_due_ns(START_NS)
        assert START_NS + 890 * SECOND_NS == due_ns


# ------------------------------------------------------------------------------------------- removal


def test_an_application_that_is_taken_away_leaves_nothing() -> None:
    """Its allocations are reported as ended, its asks and reservations are gone."""
    h = a_running_partition(
        "a", "b", "c", queues="- name: p\n  queues:\n  - name: leaf", queue_name="root.p.leaf"
    )

    h.withdraw()

    assert [("a", STOPPED), ("b", STOPPED)] == h.releases
    assert {EMPTY} == {level.allocated for level in h.queue("root.p.leaf").above}
    assert {EMPTY} == {level.pending for level in h.queue("root.p.leaf").above}
    assert {0} == {level.running for level in h.queue("root.p.leaf").above}
    assert ({}, {}, EMPTY) == (h.state.entries, h.state.completed, h.user_usage())


def test_an_application_that_ran_is_reported_as_completing() -> None:
    """Before it is gone; it is in no list afterwards, and its timers do nothing."""
    h = a_running_partition("a", nodes=("one",))

    h.withdraw()
    h.advance(7200)

    assert ["Completing"] == h.states()


def test_an_application_that_only_asked_completes_at_once(h: Harness) -> None:
    """Two states one after the other, and it is not kept."""
    h.submit()
    h.ask("a")
    h.forget()

    h.withdraw()

    assert (["Completing", "Completed"], {}) == (h.states(), h.state.completed)


def test_an_unknown_application_is_gone_already(h: Harness) -> None:
    """There is no message."""
    h.withdraw("unknown")

    assert [] == h.announcements


def test_a_gang_that_is_taken_away_gives_its_place_back() -> None:
    """In its leaf and in every queue above, though it never ran."""
    h = Harness("- name: p\n  maxapplications: 1\n  queues:\n  - name: leaf\n    maxapplications: 1")
    h.nodes("one", "two")
    h.submit("gang", "root.p.leaf", placeholder_ask=a_resource(memory=20))
    h.ask_and_run("p", application_id="gang", task_group_name="g", placeholder=True)

    h.withdraw("gang")
    h.submit("next", "root.p.leaf")
    h.ask("a", application_id="next")

    assert 1 == h.run_until_idle()


def test_a_queue_that_is_no_longer_used_is_removed() -> None:
    """At the next turn of the cleaner, every ten seconds since the partition was made."""
    h = dynamic()
    h.advance(3)
    h.submit(queue_name="root.parent.x")
    h.withdraw()

    h.advance(6)
    before = h.state.tree.find("root.parent.x")
    h.advance(1)

    assert before is not None
    assert h.state.tree.find("root.parent.x") is None
    assert h.state.tree.find("root.parent") is not None
