"""Rules and warnings about placement rules: names, filters, fixed queues, and rules that never place.

The recorded core checks only the syntax of names. When a partition is made, a list with one unusable rule is
ignored as a whole, the partition is made, and nothing can be placed in it; when a configuration is updated,
such a list makes the update fail. So these are warnings, and `unusable_rules` finds those that make an update
fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ..names import (
    QUEUE_NAME_RULE,
    PatternError,
    compile_pattern,
    did_you_mean,
    is_group_name,
    is_pattern,
    is_queue_name,
    is_rule_name,
    is_user_name,
)
from ..problems import Position, RuleFinding
from ..schema import PartitionConfig, QueueConfig, RuleConfig

_FILTER_TYPES: Final = ("allow", "deny")
_FIXED: Final = "fixed"
_ROOT: Final = "root"
RULE_NAMES: Final = ("provided", "user", "fixed", "tag")
"""Those that `licorne.model.placement.rules` builds, which this room cannot import."""
_RECOVERY: Final = "recovery"
_WITH_VALUE: Final = ("fixed", "tag")
_DENY: Final = "deny"


def chain(rule: RuleConfig) -> Iterator[RuleConfig]:
    """Yield a rule, its parent rule, and so on outwards."""
    link: RuleConfig | None = rule
    while link is not None:
        yield link
        link = link.parent


def is_fixed(rule: RuleConfig) -> bool:
    """Return whether a rule leads to a fixed queue; the case of rule names does not matter."""
    return rule.name.lower() == _FIXED


def rule_names_are_valid(rule: RuleConfig) -> Iterator[RuleFinding]:
    """Refuse names of rules that are not identifiers; whether the rule exists is checked elsewhere."""
    for link in chain(rule):
        if not is_rule_name(link.name):
            position = link.positions.get("name", link.position)
            yield RuleFinding(position, f"invalid rule name {link.name!r}, a name must be a valid identifier")


def filter_types_are_known(rule: RuleConfig) -> Iterator[RuleFinding]:
    """Refuse filters that neither allow nor deny."""
    for link in chain(rule):
        kind = link.filter.type
        if kind and kind.lower() not in _FILTER_TYPES:
            text = f"invalid rule filter type {kind}, filter type must be either '', allow or deny"
            yield RuleFinding(link.positions["filter.type"], f"{text}{did_you_mean(kind, _FILTER_TYPES)}")


def filter_entries_are_readable(rule: RuleConfig) -> Iterator[RuleFinding]:
    """Refuse a single entry that is neither a name nor a regular expression.

    Entries of longer lists are names, and invalid ones are ignored.
    """
    for link in chain(rule):
        yield from _single_entry("user", link.filter.users, is_user_name, link.positions)
        yield from _single_entry("group", link.filter.groups, is_group_name, link.positions)


def _single_entry(
    kind: str, entries: tuple[str, ...], is_name: Callable[[str], bool], positions: Mapping[str, Position]
) -> Iterator[RuleFinding]:
    if len(entries) != 1 or is_name(entries[0]):
        return
    text = f"invalid rule filter {kind} list is not a proper list or regexp: {entries[0]!r}"
    position = positions[f"filter.{kind}s[0]"]
    if not is_pattern(entries[0]):
        yield RuleFinding(position, text)
        return
    try:
        compile_pattern(entries[0])
    except PatternError as error:
        yield RuleFinding(position, f"{text}: {error}")


def fixed_queues_exist(number: int, rule: RuleConfig, root: QueueConfig) -> Iterator[RuleFinding]:
    """Refuse a rule whose fixed part leads where no application can go.

    The fixed part is the path of the outermost rules of the chain, as far as they are fixed; it is looked up
    in the configured queues by their exact spelling. Like the recorded core this takes a queue for a parent
    only where `parent: true` is written.

    Args:
        number: The place of the rule among the rules of the partition, from 0.
        rule: The rule.
        root: The root queue.
    """
    links = list(chain(rule))[::-1]
    fixed = _leading_fixed(links)
    for link in fixed[1:]:
        if link.value.startswith(_ROOT):
            position = link.positions.get("value", link.position)
            yield RuleFinding(position, f"illegal fully qualified 'fixed' rule with value {link.value}")
            return
    if not fixed:
        return
    path = ".".join(link.value for link in fixed)
    path = path if path.startswith(_ROOT) else f"{_ROOT}.{path}"
    problem = _walk(path, root, create=rule.create, is_whole=len(fixed) == len(links))
    if problem:
        names = "->".join(link.name for link in links)
        position = fixed[-1].positions.get("value", fixed[-1].position)
        yield RuleFinding(position, f"placement rule no. #{number} ({names}) {problem}")


def _leading_fixed(links: list[RuleConfig]) -> list[RuleConfig]:
    """Return the fixed rules that a chain begins with."""
    fixed = []
    for link in links:
        if not is_fixed(link):
            break
        fixed.append(link)
    return fixed


def _walk(path: str, root: QueueConfig, *, create: bool, is_whole: bool) -> str:
    """Follow a path through the configured queues.

    Args:
        path: The path, qualified; its case is that of the rule, queues are looked up in lower case.
        root: The root queue.
        create: Whether the rule makes queues that are missing.
        is_whole: Whether the path names the queue itself, and not a parent of it.

    Returns:
        The error, or the empty text.
    """
    missing = f"references non-existing queues ({path}) and create is 'false'"
    steps = path.lower().split(".")
    if steps[0] != root.name:
        return "" if create else missing
    queue = root
    for step in steps[1:]:
        if not queue.queues and not queue.parent:
            return _below_leaf(path, queue)
        child = next((child for child in queue.queues if child.name == step), None)
        if child is None:
            return "" if create else missing + did_you_mean(step, [child.name for child in queue.queues])
        queue = child
    if is_whole and queue.parent:
        return f"references a queue ({path}) which is not a leaf"
    return "" if is_whole or queue.parent else _below_leaf(path, queue)


def _below_leaf(path: str, queue: QueueConfig) -> str:
    return (
        f"references queues below ({path}) which cannot be created because the last queue ({queue.name}) "
        "in the hierarchy is a leaf"
    )


def unusable_rules(partition: PartitionConfig) -> Iterator[RuleFinding]:
    """Yield why the placement rules of a partition cannot be used, all of them together."""
    for rule in partition.placement_rules:
        for link in chain(rule):
            yield from _unusable(link)


def rule_effects(partition: PartitionConfig) -> Iterator[RuleFinding]:
    """Yield the warnings about all placement rules of a partition."""
    for finding in unusable_rules(partition):
        yield RuleFinding(finding.position, f"{finding.text}; the default rule is used instead")
    for rule in partition.placement_rules:
        for link in chain(rule):
            yield from value_is_used(link)
            yield from filter_names_match(link)
            yield from filter_denies_as_written(link)


def _unusable(rule: RuleConfig) -> Iterator[RuleFinding]:
    """Yield why one rule cannot be used."""
    name = rule.name.lower()
    position = rule.positions.get("name", rule.position)
    if name == _RECOVERY:
        yield RuleFinding(
            position, "recovery rule cannot be part of the config, failing placement rule config"
        )
    elif not is_rule_name(rule.name):
        return  # an error, not a warning
    elif name not in RULE_NAMES:
        text = f"unknown rule name specified {rule.name}, failing placement rule config"
        yield RuleFinding(position, f"{text}{did_you_mean(name, RULE_NAMES)}")
    elif is_fixed(rule):
        yield from _unusable_fixed(rule)
    elif name == "tag" and not rule.value:
        yield RuleFinding(rule.position, "a tag queue rule must have a tag name set")


def _unusable_fixed(rule: RuleConfig) -> Iterator[RuleFinding]:
    """Yield why a fixed rule leads to no queue."""
    position = rule.positions.get("value", rule.position)
    if not rule.value:
        yield RuleFinding(position, "a fixed queue rule must have a queue name set")
        return
    value = rule.value.lower()
    if (value == _ROOT or value.startswith(f"{_ROOT}.")) and rule.parent is not None:
        text = "cannot have a fixed queue rule with qualified queue name and a parent rule"
        yield RuleFinding(position, f"{text}: {rule.value}")
    if not all(is_queue_name(part) for part in value.split(".")):
        yield RuleFinding(position, f"{QUEUE_NAME_RULE}: {rule.value!r}")


def value_is_used(rule: RuleConfig) -> Iterator[RuleFinding]:
    """Warn of a value at a rule that takes no value."""
    name = rule.name.lower()
    if rule.value and name in RULE_NAMES and name not in _WITH_VALUE:
        yield RuleFinding(rule.positions.get("value", rule.position), f"value has no effect at a {name} rule")


def filter_names_match(rule: RuleConfig) -> Iterator[RuleFinding]:
    """Warn of entries in longer filter lists that are not names: there they are not expressions either."""
    kinds = (("user", rule.filter.users, is_user_name), ("group", rule.filter.groups, is_group_name))
    for kind, entries, is_name in kinds:
        for index, entry in enumerate(entries):
            if len(entries) > 1 and not is_name(entry):
                position = rule.positions.get(f"filter.{kind}s[{index}]", rule.position)
                yield RuleFinding(
                    position, f"{entry!r} is not a {kind} name and has no effect in a list of several"
                )


def filter_denies_as_written(rule: RuleConfig) -> Iterator[RuleFinding]:
    """Warn of filters that do not deny what they seem to."""
    kind = rule.filter.type
    position = rule.positions.get("filter.type", rule.position)
    if kind != _DENY and kind.lower() == _DENY:
        yield RuleFinding(position, f"the filter type {kind} is taken for allow: write 'deny' in lower case")
    elif kind == _DENY and not rule.filter.users and not rule.filter.groups:
        yield RuleFinding(position, "a deny filter without users and groups denies everyone")
