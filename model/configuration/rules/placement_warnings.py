"""Warnings about placement rules, and rules that cannot be used for placement.

The recorded core checks only the syntax of names. When a partition is made, a list with one unusable rule is
ignored as a whole, the partition is made, and nothing can be placed in it; when a configuration is updated,
such a list makes the update fail. So these are warnings, and `unusable_rules` finds those that make an update
fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..names import QUEUE_NAME_RULE, is_group_name, is_queue_name, is_rule_name, is_user_name
from ..problems import RuleFinding
from ..schema import PartitionConfig, RuleConfig
from ..words import did_you_mean
from .placement import chain, is_fixed

RULE_NAMES: Final = ("provided", "user", "fixed", "tag")
"""Those that `licorne.model.placement.rules` builds, which this room cannot import."""
_RECOVERY: Final = "recovery"
_WITH_VALUE: Final = ("fixed", "tag")
_ROOT: Final = "root"
_DENY: Final = "deny"


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
    """Warn of a value at a rule that has none."""
    name = rule.name.lower()
    if rule.value and name in RULE_NAMES and name not in _WITH_VALUE:
        yield RuleFinding(rule.positions.get("value", rule.position), f"value has no effect at a {name} rule")


def filter_names_match(rule: RuleConfig) -> Iterator[RuleFinding]:
    """Warn of entries in longer filter lists that are no names: there they are no expressions either."""
    kinds = (("user", rule.filter.users, is_user_name), ("group", rule.filter.groups, is_group_name))
    for kind, entries, is_name in kinds:
        for index, entry in enumerate(entries):
            if len(entries) > 1 and not is_name(entry):
                position = rule.positions.get(f"filter.{kind}s[{index}]", rule.position)
                yield RuleFinding(
                    position, f"{entry!r} is no {kind} name and has no effect in a list of several"
                )


def filter_denies_as_written(rule: RuleConfig) -> Iterator[RuleFinding]:
    """Warn of filters that do not deny what they seem to."""
    kind = rule.filter.type
    position = rule.positions.get("filter.type", rule.position)
    if kind != _DENY and kind.lower() == _DENY:
        yield RuleFinding(position, f"the filter type {kind} is taken for allow: write 'deny' in lower case")
    elif kind == _DENY and not rule.filter.users and not rule.filter.groups:
        yield RuleFinding(position, "a deny filter without users and groups denies everyone")
