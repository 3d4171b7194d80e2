"""New applications, carried out on a partition."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ..applications.application import Application
from ..applications.effects import ApplicationState
from ..configuration.names import flag_of, is_user_name
from ..configuration.policies import GangPlacing
from ..errors import LicorneError
from ..identifiers import id_refusal, names_refusal
from ..placement.rules import PlacementRefusal, PlacementRequest, QueueChoice, RuleOutcome
from ..queues.queue import Queue
from ..queues.quota import settle
from ..queues.tree import RECOVERY_QUEUE
from ..resources.comparisons import is_zero
from ..resources.resource import EMPTY, Resource, resource_from_json, strictly_greater_than_zero
from ..state.applying import apply
from ..state.gang_domains import keep_domain
from ..state.partition_state import PartitionState
from ..values.events import ChangeDetail, ChangeType
from ..values.messages import (
    ApplicationChanged,
    ApplicationsAnswered,
    ApplicationSubmission,
    LookedUp,
    LookUpFailure,
    Rejection,
    RejectionCode,
    RejectionReason,
    User,
    invalid,
)
from ..values.states import ObjectState
from .older_asks import timeout_ns
from .reconfiguring import quota_of, report_quota
from .submission_terms import (
    change_application_walltime,
    domains_refusal,
    gang_refusal,
    gang_settings,
    gang_sum_refusal,
    names_another,
    waits_refusal,
    walltime_refusal,
)

CREATE_FORCE_TAG: Final = "application.create.force"
QUOTA_TAG: Final = "namespace.resourcequota"
GUARANTEED_TAG: Final = "namespace.resourceguaranteed"
APPLICATIONS_TAG: Final = "namespace.resourcemaxapps"
CREATE_IF_MISSING_TAG: Final = "licorne/create-if-missing"
"""With `true` an application that exists already is accepted, and stays unchanged."""
_QUOTA_TAGS: Final = frozenset({QUOTA_TAG, GUARANTEED_TAG, APPLICATIONS_TAG})
_UINT64_MAX: Final = 2**64 - 1


def add_applications(
    state: PartitionState,
    submissions: Sequence[ApplicationSubmission],
) -> ApplicationsAnswered:
    """Add new applications, in order; return which were accepted and why others were not."""
    accepted: list[str] = []
    rejected: list[Rejection] = []
    warnings: list[ApplicationChanged] = []
    for submission in submissions:
        outcome = _update(state, submission)
        if outcome is None:
            outcome = _add(state, submission)
        if isinstance(outcome, RejectionReason):
            rejected.append(Rejection(submission.application_id, outcome.text, outcome.code))
            continue
        accepted.append(submission.application_id)
        warnings += outcome
    return ApplicationsAnswered(tuple(accepted), tuple(rejected), tuple(warnings))


def _update(
    state: PartitionState, submission: ApplicationSubmission
) -> RejectionReason | list[ApplicationChanged] | None:
    """Change the walltime of an application that is there, if it is submitted again with another one.

    One that was to be created if it is missing is accepted without a change, too. If it names quotas of its
    namespace, its queue has these from now on.

    Returns:
        Why it is refused; the empty list; `None` for an application that is to be added.
    """
    entry = state.entries.get(submission.application_id)
    if entry is None or entry.facts.state is ApplicationState.FAILING:
        return None
    stays = _tag(submission, CREATE_IF_MISSING_TAG) == "true"
    known = entry.submission
    is_same = known is not None and (known.user, known.queue_name) == (
        submission.user,
        submission.queue_name,
    )
    changes = names_another(submission.tags, entry.tags) and (stays or is_same)
    if not (changes or stays):
        return None
    if changes:
        whose = f"application {submission.application_id}"
        refusal = walltime_refusal(whose, submission.tags, entry.queue)
        if refusal is not None:
            return refusal
        change_application_walltime(state, entry, submission.tags)
    if stays and not _QUOTA_TAGS.isdisjoint(map(str.lower, submission.tags)):
        quotas = quota_tags(submission, entry.queue)
        if quotas is not _NO_QUOTAS:
            _apply_quotas(state, entry.queue, quotas)
    apply(state, entry, entry.application.stay(state.now_ns()))
    return []


def _add(
    state: PartitionState, submission: ApplicationSubmission
) -> RejectionReason | list[ApplicationChanged]:
    """Add an application; return why it is rejected, or the warnings about its tags."""
    decision = decide(state, submission)
    if state.state is ObjectState.ACTIVE:
        state.events.note(ChangeType.ADD, ChangeDetail.APP_NEW, submission.application_id)
    if isinstance(decision, RefusedSubmission):
        return _reject(state, submission, decision)
    user, placed = decision
    queue = _queue_at(state, placed.queue_path)
    quotas = quota_tags(submission, queue)
    if quotas is not _NO_QUOTAS:
        _apply_quotas(state, queue, quotas)
    reason = queue_refusal(state, submission, user, queue)
    if reason is not None:
        return _reject(state, submission, RefusedSubmission(user, queue.path, *reason, placed.tried))
    application = make_application(state, submission, user, queue.path, queue.settings.gang_placing)
    facts = application.facts()  # Nothing else knows it yet.
    entry = state.add_entry(application, state.host.adopt_application(application), facts, queue)
    entry.submission = submission
    keep_domain(state, entry)
    state.dependencies.enter(entry)
    if not quotas.warnings:
        return []
    state_text, now_ns = ApplicationState.NEW.value, state.now_ns()
    return [
        ApplicationChanged(submission.application_id, state_text, now_ns, warning)
        for warning in quotas.warnings
    ]


# --------------------------------------------------------------------------------------- the decision


class RefusedSubmission(NamedTuple):
    """No queue for an application: how far the decision came, and why it ended there."""

    user: User
    path: str
    code: RejectionCode
    reason: str
    rules: tuple[RuleOutcome, ...] = ()

    def message(self) -> str:
        """Return the message for the RM; where no queue was found, with the outcome of each rule."""
        if self.path or not self.rules:
            return self.reason
        tried = "; ".join(f"{outcome.rule}: {outcome.why}" for outcome in self.rules)
        return f"{self.reason} ({tried})"


class Decided(NamedTuple):
    """The user of an application, and the queue that it goes to, which may have to be created."""

    user: User
    placed: QueueChoice


def decide(state: PartitionState, submission: ApplicationSubmission) -> Decided | RefusedSubmission:
    """Decide for which user an application runs and where it goes; changes nothing."""
    forced = flag_of(_tag(submission, CREATE_FORCE_TAG)) is True
    user = resolve(
        submission.user,
        submission.groups,
        forced=forced,
        looked_up=submission.looked_up,
    )
    if isinstance(user, str):
        return RefusedSubmission(User(""), submission.queue_name, RejectionCode.INVALID, user)
    reason = _closed(state, submission, user)
    if reason is not None:
        return RefusedSubmission(user, submission.queue_name, reason.code, reason.text)
    return _decide_queue(state, submission, user, forced=forced)


def _closed(state: PartitionState, submission: ApplicationSubmission, user: User) -> RejectionReason | None:
    """Return why the partition accepts no application of that id and user, `None` if it does."""
    name = submission.application_id
    if not name:
        return RejectionReason(RejectionCode.INVALID, "the application id is empty")
    bad = invalid(
        id_refusal("the application id", name)
        or id_refusal("the name of the user", user.name)
        or id_refusal("the name of the queue", submission.queue_name)
        or names_refusal("the name of a group", user.groups)
        or names_refusal("a tag of the application", submission.tags)
        or names_refusal("a resource type of the placeholder ask", submission.placeholder_ask or EMPTY)
    )
    if bad is not None:
        return bad
    if state.state is not ObjectState.ACTIVE:
        return RejectionReason(
            RejectionCode.PARTITION_STOPPED,
            f"partition {state.name} is stopped cannot add a new application {name}",
        )
    if name in state.entries or name in state.quarantine.applications:
        return RejectionReason(
            RejectionCode.APPLICATION_EXISTS,
            f"adding application {name} to partition {state.name}, but application already existed",
        )
    return None


def _decide_queue(
    state: PartitionState,
    submission: ApplicationSubmission,
    user: User,
    *,
    forced: bool,
) -> Decided | RefusedSubmission:
    name = submission.application_id
    request = PlacementRequest(
        queue_name=submission.queue_name,
        user=user,
        tags=submission.tags,
        forced=forced,
    )
    placed = state.rules.place(request, state.tree)
    if isinstance(placed, PlacementRefusal):
        text = f"failed to place application {name}: {placed.reason}"
        return RefusedSubmission(user, "", placed.code, text, placed.tried)
    path = placed.queue_path
    queue = state.tree.find(path)
    if queue is None:
        preview = state.tree.preview(path)
        if isinstance(preview, str):
            text = f"failed to create rule based queue {path} for application {name}\n{preview}"
            return RefusedSubmission(user, path, RejectionCode.NO_QUEUE, text, placed.tried)
    elif not queue.is_leaf:
        text = f"failed to find queue {path} for application {name}"
        return RefusedSubmission(user, path, RejectionCode.NO_QUEUE, text, placed.tried)
    return Decided(user, placed)


def queue_refusal(
    state: PartitionState, submission: ApplicationSubmission, user: User, queue: Queue
) -> RejectionReason | None:
    """Return why a queue does not take an application, `None` if it does.

    One whose creation is forced may have a walltime of any length, a gang of any size that the queue can
    hold, and wait for whatever its tags name: it has run before.
    """
    forced = flag_of(_tag(submission, CREATE_FORCE_TAG)) is True
    whose = f"application {submission.application_id}"
    too_long = None if forced else walltime_refusal(whose, submission.tags, queue)
    refusal = (
        too_long
        or gang_refusal(submission, queue)
        or domains_refusal(submission, state.topology.levels, queue.settings.gang_placing)
        or (None if forced else waits_refusal(state, submission))
    )
    if refusal is not None:
        return refusal
    if forced or is_zero(submission.placeholder_ask):
        return None
    settings = gang_settings(submission, None, queue.settings.gang_placing)
    if not settings.whole:
        return None
    return gang_sum_refusal(state, submission.application_id, user, queue, settings.placeholder_ask)


class QuotaTags(NamedTuple):
    """The settings of a namespace in the tags of an application; `None` for what they do not name.

    A tag that cannot be read is a warning, and counts as one that is not there.
    """

    guaranteed: Resource | None = None
    maximum: Resource | None = None
    applications: int | None = None
    warnings: tuple[str, ...] = ()

    def apply(self, queue: Queue) -> bool:
        """Give a queue these quotas; return whether they limit its resources."""
        if self.applications is not None:
            queue.max_applications = self.applications
        if self.maximum is None and self.guaranteed is None:
            return False
        queue.set_quota(self.guaranteed, self.maximum)
        queue.positions = {}  # The positions of the template no longer apply.
        return True


_NO_QUOTAS: Final = QuotaTags()


def _apply_quotas(state: PartitionState, queue: Queue, quotas: QuotaTags) -> None:
    """Give a queue the quotas of its namespace, and report what has changed by them."""
    before = quota_of(queue)
    was_guaranteed = queue.guaranteed is not None
    if quotas.apply(queue):
        state.tree.limits_changed()
        settle(queue)
        state.changes += 1
        if queue.guaranteed is not None and not was_guaranteed:
            queue.entries.rebuild()  # Those that rest may be entitled to preempt now.
        report_quota(state, queue, before)


def quota_tags(submission: ApplicationSubmission, queue: Queue) -> QuotaTags:
    """Return the quotas of the namespace of a dynamic leaf; the application that comes last decides.

    The tags of an application are all settings of its namespace: a quota that it no longer names is removed.
    """
    if queue.managed or queue.path == RECOVERY_QUEUE:
        return _NO_QUOTAS
    warnings: list[str] = []
    guaranteed, maximum = (_quota(submission, tag, warnings) for tag in (GUARANTEED_TAG, QUOTA_TAG))
    count = _tag(submission, APPLICATIONS_TAG)
    valid = re.fullmatch(r"[0-9]{1,20}", count) and int(count) <= _UINT64_MAX
    if count and not valid:
        warnings.append(_ignored(APPLICATIONS_TAG, f"{count!r} is not a whole number below 2^64"))
    return QuotaTags(guaranteed, maximum, int(count) if valid else None, tuple(warnings))


def _quota(submission: ApplicationSubmission, tag: str, warnings: list[str]) -> Resource | None:
    text = _tag(submission, tag)
    if not text:
        return None
    try:
        resource = resource_from_json(text)
    except LicorneError as error:
        warnings.append(_ignored(tag, str(error)))
        return None
    if strictly_greater_than_zero(resource):
        return resource
    warnings.append(_ignored(tag, f"no quantity of {text!r} may be zero or less"))
    return None


def _ignored(tag: str, why: str) -> str:
    return f"tag {tag} is ignored: {why}"


def _queue_at(state: PartitionState, path: str) -> Queue:
    """Return the queue that an application goes to, made now if it is not there."""
    queue = state.tree.find(path)
    if queue is None and path == RECOVERY_QUEUE:
        return state.tree.recovery_queue()
    if queue is None:
        created = state.tree.create(path)
        assert not isinstance(created, str), f"{created}: please report"
        queue = created
        state.timers.clean_later()
    return queue


def make_application(
    state: PartitionState,
    submission: ApplicationSubmission,
    user: User,
    queue_path: str,
    placing: GangPlacing = GangPlacing.STEPWISE,
) -> Application:
    """Make an application of a submission; it is not in the partition yet.

    `placing` is how its queue places gangs that do not choose it themselves.
    """
    limit_ns = timeout_ns(submission.execution_timeout_ms)
    return Application(
        submission.application_id,
        partition=state.name,
        queue_path=queue_path,
        user=user,
        tags=submission.tags,
        submitted_at_ns=state.now_ns(),
        gang_settings=gang_settings(submission, limit_ns, placing),
        running_limit_ns=limit_ns if is_zero(submission.placeholder_ask) else None,
    )


def _reject(
    state: PartitionState, submission: ApplicationSubmission, refused: RefusedSubmission
) -> RejectionReason:
    """Keep a rejected application, unless the partition has ended; return the message for the RM."""
    reason = RejectionReason(refused.code, refused.message())
    if state.state is ObjectState.STOPPED:
        return reason
    application = make_application(state, submission, refused.user, refused.path)
    handle = state.host.adopt_application(application)
    state.keep_rejected(application, handle, refused.reason, refused.rules)
    state.endings.counts[refused.path, ApplicationState.REJECTED] += 1
    return reason


def _tag(submission: ApplicationSubmission, name: str) -> str:
    """Return a tag whatever the case of its name."""
    if not submission.tags:
        return ""
    return next((text for key, text in submission.tags.items() if key.lower() == name), "")


_NOBODY: Final = "nobody"
_NO_GROUP: Final = "nogroup"


def resolve(
    submitted_user: str,
    submitted_groups: Sequence[str],
    *,
    forced: bool,
    looked_up: LookedUp,
) -> User | str:
    """Make the user of an application of what was submitted and what was looked up.

    Submitted groups are taken unchanged, and the name must then be a valid one. Without groups
    those count that were looked up, and a name that the look-up has found may have any form. Without a
    look-up a user is in one group, which has the name of the user. A forced application is never refused
    because it has no user or no groups: it gets `nobody` or `nogroup`.

    Args:
        submitted_user: The name of the user; empty if the RM sent none.
        submitted_groups: The groups of the user; empty if the RM leaves them to be looked up.
        forced: The application must be accepted (tag `application.create.force`).
        looked_up: The result of the look-up.

    Returns:
        The user, or the reason to refuse the application.
    """
    user, groups = submitted_user, tuple(submitted_groups)
    if not user:
        if not forced:
            return "empty user cannot resolve"
        user, groups = _NOBODY, (_NO_GROUP,)
    if not groups:
        if isinstance(looked_up, LookUpFailure):
            if not forced:
                return looked_up.reason
            groups = (_NO_GROUP,)
        else:
            groups = (user,) if looked_up is None else looked_up
        if not forced:
            return User(user, groups)
    if not is_user_name(user):
        return "invalid username, it contains invalid characters"
    return User(user, groups)
