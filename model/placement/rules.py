"""The placement rules: each takes a name from somewhere and makes the path of a queue of it.

All but the recovery rule work the same way. The rule has a text to start from (the queue that was
submitted, the user, a fixed text, a tag), or there is no match. The filter must admit the user. The
text becomes a branch: the path of a queue, full or below a parent. The parent comes from the parent rule,
or is the root. Last, without `create` the queue must exist.

There are three ends: a path, no match (the next rule is tried), and a failure (the application is refused,
no other rule is tried).

The values at the top are the question to placement, what it may look up, and its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias, final

from ..configuration.names import (
    QUEUE_NAME_RULE,
    Pattern,
    PatternError,
    compile_pattern,
    is_group_name,
    is_pattern,
    is_queue_name,
    is_user_name,
)
from ..configuration.problems import NOWHERE, Position
from ..configuration.schema import FilterConfig, RuleConfig
from ..errors import LicorneError
from ..values.messages import RejectionCode, User


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRequest:
    """The application, as far as placement needs it.

    Attributes:
        queue_name: The queue the RM names, or the empty text.
        user: The user, resolved.
        tags: The tags of the application; their names count in any case.
        forced: The application must be accepted, in the recovery queue if nowhere else.
    """

    queue_name: str
    user: User
    tags: Mapping[str, str]
    forced: bool = False

    def tag(self, name: str) -> str:
        """Return the value of a tag whose lower-case name is given, or the empty text."""
        return next((value for key, value in self.tags.items() if key.lower() == name), "")


class PlacementQueue(Protocol):
    """An existing queue, as far as placement needs it."""

    @property
    def path(self) -> str:
        """The full path, lower case."""

    @property
    def is_leaf(self) -> bool:
        """Whether the queue holds applications, not queues."""

    @property
    def is_draining(self) -> bool:
        """Whether the queue takes no new applications."""


class QueueLookup(Protocol):
    """The queues of a partition, as far as placement needs them."""

    def find(self, path: str) -> PlacementQueue | None:
        """Return the queue with this lower-case path, `None` without one."""

    def submit_allowed(self, path: str, user: User) -> bool:
        """Return whether a user may submit to an existing queue."""


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """The outcome of one rule; rules are numbered from 0, as in the messages about the configuration."""

    rule: str
    number: int
    why: str
    position: Position | None = field(default=None, compare=False)
    """Where the rule stands in the configuration, `None` for one that is always there."""


@dataclass(frozen=True, slots=True)
class QueueChoice:
    """The queue for the application: a lower-case path, of a leaf or of a queue that is to be created.

    `tried` are the rules that were asked, last the one that found the queue; no part of comparisons.
    """

    queue_path: str
    tried: tuple[RuleOutcome, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class PlacementRefusal:
    """No place for the application: the message for the RM, and the outcomes of the rules that were tried."""

    reason: str
    tried: tuple[RuleOutcome, ...]
    code: RejectionCode = field(default=RejectionCode.NO_QUEUE, compare=False)


ROOT: Final = "root"
DEFAULT_QUEUE: Final = "root.default"
RECOVERY_QUEUE: Final = "root.@recovery@"


class PlacementRulesError(LicorneError):
    """A rule of the configuration cannot be built; `reason` is what is wrong, `position` where it stands."""

    def __init__(self, reason: str, position: Position) -> None:
        super().__init__(f"{reason} (placement rule at {position})")
        self.reason = reason
        self.position = position


@dataclass(frozen=True, slots=True)
class Found:
    """The path of a queue that exists or may be created, in the spelling the rule found."""

    path: str


@dataclass(frozen=True, slots=True)
class NoMatch:
    """The rule does not match the application; the next rule is tried."""

    why: str


@dataclass(frozen=True, slots=True)
class RuleRefusal:
    """The application is refused, and no other rule is tried."""

    reason: str


Outcome: TypeAlias = Found | NoMatch | RuleRefusal


class PlacementRule(Protocol):
    """A rule as the list of rules uses it."""

    @property
    def name(self) -> str:
        """The kind of rule."""

    @property
    def position(self) -> Position | None:
        """Where the rule stands in the configuration, `None` for one that is always there."""

    def place(self, request: PlacementRequest, queues: QueueLookup) -> Outcome:
        """Find the queue for an application."""


@dataclass(frozen=True, slots=True)
class _Branch:
    """The branch that a rule makes of its text: a full path, or one below a parent."""

    path: str
    qualified: bool


_NO_PARENT: Final = Found("")
_ROOT_FOUND: Final = Found(ROOT)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRule:
    """A rule of the configuration.

    Attributes:
        name: The kind of rule, lower case.
        create: The queue need not exist.
        text: Where the name comes from; the empty text means no match.
        absent: The message without a text.
        branch: Makes a branch of the text, `None` if no queue can have such a name.
        parameters: The fields of the document of the rule besides `create`.
        position: Where the rule stands in the configuration.
    """

    name: str
    create: bool
    filter: Filter
    parent: QueueRule | None
    text: Callable[[PlacementRequest], str]
    absent: str
    branch: Callable[[str], _Branch | None]
    parameters: Mapping[str, str]
    position: Position | None

    def place(self, request: PlacementRequest, queues: QueueLookup) -> Outcome:
        """Find the queue for an application."""
        text = self.text(request)
        if not text:
            return NoMatch(self.absent)
        if not self.filter.admits(request.user):
            return NoMatch(f"the filter does not let user {request.user.name} through")
        branch = self.branch(text)
        if branch is None:
            return RuleRefusal(QUEUE_NAME_RULE)
        parent = _NO_PARENT if branch.qualified else self._parent(request, queues)
        if not isinstance(parent, Found):
            return parent
        path = f"{parent.path}.{branch.path}" if parent.path else branch.path
        if not self.create and queues.find(path.lower()) is None:
            return NoMatch(f"queue {path} does not exist, and the rule may not create it")
        return Found(path)

    def _parent(self, request: PlacementRequest, queues: QueueLookup) -> Outcome:
        """Find the parent queue: the root without a parent rule."""
        if self.parent is None:
            return _ROOT_FOUND
        outcome = self.parent.place(request, queues)
        match outcome:
            case NoMatch(why):
                return NoMatch(f"parent rule {self.parent.name}: {why}")
            case Found(path):
                facts = queues.find(path.lower())
                if facts is not None and facts.is_leaf:
                    return RuleRefusal(f"parent rule returned a leaf queue: {path}")
        return outcome


@final
class _RecoveryRule:
    """The last rule of all, not in the configuration: forced applications go to the recovery queue."""

    __slots__ = ()

    name: Final = "recovery"
    position: Final = None

    def place(self, request: PlacementRequest, queues: QueueLookup) -> Outcome:  # noqa: ARG002 - a rule
        """Find the recovery queue for a forced application."""
        return Found(RECOVERY_QUEUE) if request.forced else NoMatch("the application is not forced")


RECOVERY_RULE: Final = _RecoveryRule()


def build_rule(config: RuleConfig) -> QueueRule:
    """Build a rule and its parent rules.

    Raises:
        PlacementRulesError: The rule does not exist, or its value or its parent does not suit it.
    """
    name = config.name.lower()
    if name == RECOVERY_RULE.name:
        raise PlacementRulesError(
            "recovery rule cannot be part of the config, failing placement rule config", config.position
        )
    builder = BUILDERS.get(name)
    if builder is None:
        raise PlacementRulesError(
            f"unknown rule name specified {config.name}, failing placement rule config", config.position
        )
    return builder(config, None if config.parent is None else build_rule(config.parent))


def _position(config: RuleConfig) -> Position | None:
    """Return where a rule stands; the rule by default stands nowhere."""
    return None if config.position is NOWHERE else config.position


def _named(text: str) -> _Branch | None:
    """Take a full path unchanged, and anything else as the name of one queue."""
    if is_qualified(text):
        return _Branch(text, qualified=True) if has_valid_parts(text) else None
    return _single(text)


def _single(text: str) -> _Branch | None:
    """Take a text as the name of one queue."""
    name = without_dots(text)
    return _Branch(name, qualified=False) if has_valid_parts(name) else None


def _provided(config: RuleConfig, parent: QueueRule | None) -> QueueRule:
    """Build the rule that takes the queue the application was submitted to."""
    return QueueRule(
        name="provided",
        create=config.create,
        filter=Filter.of(config.filter),
        parent=parent,
        text=lambda request: request.queue_name,
        absent="the application names no queue",
        branch=_named,
        parameters={},
        position=_position(config),
    )


def _user(config: RuleConfig, parent: QueueRule | None) -> QueueRule:
    """Build the rule that takes the name of the user."""
    return QueueRule(
        name="user",
        create=config.create,
        filter=Filter.of(config.filter),
        parent=parent,
        text=lambda request: request.user.name,
        absent="the application has no user",
        branch=_single,
        parameters={},
        position=_position(config),
    )


def _fixed(config: RuleConfig, parent: QueueRule | None) -> QueueRule:
    """Build the rule that takes the path in its value; dots in it separate queues.

    The recorded core takes any value that begins with `root` for a full path, also `rootfoo`, and crashes
    on it. Here only `root` itself and paths below it are full.
    """
    path = config.value.lower()
    if not path:
        raise PlacementRulesError("a fixed queue rule must have a queue name set", config.position)
    if not has_valid_parts(path):
        raise PlacementRulesError(f"{QUEUE_NAME_RULE}: {config.value!r}", config.position)
    qualified = path == ROOT or is_qualified(path)
    if qualified and parent is not None:
        raise PlacementRulesError(
            "cannot have a fixed queue rule with qualified queue getName and a parent rule: "
            f"{config.value!r} below {parent.name}",
            config.position,
        )
    branch = _Branch(path, qualified=qualified)
    return QueueRule(
        name="fixed",
        create=config.create,
        filter=Filter.of(config.filter),
        parent=parent,
        text=lambda _: path,
        absent="",
        branch=lambda _: branch,
        parameters={"queue": path, "qualified": str(qualified).lower()},
        position=_position(config),
    )


def _tag(config: RuleConfig, parent: QueueRule | None) -> QueueRule:
    """Build the rule that takes the value of a tag of the application."""
    tag = config.value.lower()
    if not tag:
        raise PlacementRulesError("a tag queue rule must have a tag name set", config.position)
    return QueueRule(
        name="tag",
        create=config.create,
        filter=Filter.of(config.filter),
        parent=parent,
        text=lambda request: request.tag(tag),
        absent=f"the application has no tag {tag}",
        branch=_named,
        parameters={"tagName": tag},
        position=_position(config),
    )


BUILDERS: Final[Mapping[str, Callable[[RuleConfig, QueueRule | None], QueueRule]]] = {
    "provided": _provided,
    "user": _user,
    "fixed": _fixed,
    "tag": _tag,
}
"""Every rule that a configuration may name."""


@dataclass(frozen=True, slots=True)
class FilterNames:
    """The users, or the groups, of a filter: names, or one expression that a part of the name matches."""

    names: frozenset[str] = frozenset()
    expression: Pattern | None = None

    @staticmethod
    def of(entries: tuple[str, ...], is_name: Callable[[str], bool]) -> FilterNames:
        """Read the entries; a single one may be an expression, and an invalid name matches no user."""
        if len(entries) == 1 and is_pattern(entries[0]):
            return FilterNames(expression=_compiled(entries[0]))
        return FilterNames(names=frozenset(entry for entry in entries if is_name(entry)))

    def match(self, name: str) -> bool:
        """Return whether a name is meant."""
        return name in self.names or (self.expression is not None and self.expression.search(name))


@dataclass(frozen=True, slots=True)
class Filter:
    """The users and groups that a rule applies to.

    Attributes:
        allow: The rule applies to users that match, and not to others; if false, the reverse.
        is_empty: No user and no group is listed: all users pass an allow filter and none a deny filter.
    """

    allow: bool = True
    is_empty: bool = True
    users: FilterNames = FilterNames()
    groups: FilterNames = FilterNames()

    @staticmethod
    def of(config: FilterConfig) -> Filter:
        """Read a filter of the configuration.

        Only the exact text `deny` denies. `Deny` passes the check of the configuration and allows: odd, but
        recorded (transcript placement/filter-odd), and rules below it may count on it.
        """
        return Filter(
            allow=config.type != "deny",
            is_empty=not (config.users or config.groups),
            users=FilterNames.of(config.users, is_user_name),
            groups=FilterNames.of(config.groups, is_group_name),
        )

    def admits(self, user: User) -> bool:
        """Return whether the rule applies to a user: by name or by any group."""
        if self.is_empty:
            return self.allow
        matched = self.users.match(user.name) or any(self.groups.match(group) for group in user.groups)
        return matched is self.allow


def _compiled(text: str) -> Pattern | None:
    """Return the expression; an invalid one matches no name, and the configuration refuses it."""
    try:
        return compile_pattern(text)
    except PatternError:
        return None


def is_qualified(name: str) -> bool:
    """Return whether a name is a full path, and not the name of a queue below some parent.

    The case counts: `ROOT.a` is not a path.
    """
    return name.startswith(f"{ROOT}.")


def without_dots(name: str) -> str:
    """Return the name of one queue for a text: dots separate queues, so they are spelled out."""
    return name.replace(".", "_dot_")


def has_valid_parts(path: str) -> bool:
    """Return whether each queue on a path, or a single name, has a name that a queue can have."""
    return all(is_queue_name(part) for part in path.split("."))
