"""Reading a configuration: from a text to the frozen configuration, or to all problems of the text."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from ..errors import RequestError
from .names import did_you_mean
from .problems import NOWHERE, ConfigurationError, Problem, RuleFinding
from .rules.all_rules import validate_documents, validate_partition
from .rules.placement import rule_effects, unusable_rules
from .rules.queue_warnings import GivenPoints, policies_are_given, queue_effects, type_effects
from .schema import PartitionConfig, SchedulerConfig, build_partition
from .windows import past_windows

DEFAULT_SOURCE: Final = "queues.yaml"
DEFAULT_CONFIGURATION: Final = """\
partitions:
  - name: default
    placementrules:
      - name: tag
        value: namespace
        create: true
    queues:
      - name: root
        submitacl: "*"
"""
"""The configuration if the resource manager supplies none: a queue for each namespace."""
CONFIGURATION_BYTES_MAX: Final = 1 << 20
"""How large a configuration may be that is used: as large as a ConfigMap of Kubernetes."""
_ERRORS_MAX: Final = 1_000
"""How many errors are listed. Where more have been found, no further ones are looked for."""
_WARNINGS_MAX: Final = 1_000
"""How many warnings of one kind are listed for a partition: no further ones are looked for."""
_RESOLVERS: Final = ("os", "ldap")
_MARKER: Final = b"checksum: "
_LENGTH: Final = 64


@dataclass(frozen=True, slots=True)
class Report:
    """The result of reading a configuration, in order of the file; with errors there is no configuration."""

    config: SchedulerConfig | None
    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


def load(text: str, *, source: str = DEFAULT_SOURCE) -> SchedulerConfig:
    """Read a configuration that is to be used.

    Args:
        text: The YAML text, with one document in it.
        source: The name of the file, for messages.

    Raises:
        ConfigurationError: The configuration cannot be used; the error has all reasons. A text of more than
            `CONFIGURATION_BYTES_MAX` is not read.
    """
    _check_text(text)
    # No character is more than four bytes: most texts need not be encoded to be known as short enough.
    if (
        len(text) * 4 > CONFIGURATION_BYTES_MAX
        and len(text.encode(errors="replace")) > CONFIGURATION_BYTES_MAX
    ):
        most = f"{CONFIGURATION_BYTES_MAX:,} bytes at most"
        raise ConfigurationError((Problem(source, 1, 1, "", f"the configuration may have {most}"),))
    report = inspect(text, source)
    if report.config is None:
        raise ConfigurationError(report.errors)
    return report.config


def inspect(text: str, source: str = DEFAULT_SOURCE, *, node_types: Collection[str] | None = None) -> Report:
    """Read a configuration and report everything about it, also what is allowed and probably not meant.

    Args:
        text: The YAML text, with one document in it.
        source: The name of the file, for messages.
        node_types: The resource types that nodes have, if that is known; they are not spelling errors.
    """
    _check_text(text)
    errors: list[RuleFinding] = []
    warnings: list[RuleFinding] = []
    partitions = _read(text, errors, warnings)
    warnings.extend(type_effects(partitions, node_types))
    problems = _problems(warnings, source)
    config = None
    if not errors:
        config = SchedulerConfig(partitions=partitions, checksum=checksum(text), text=text, warnings=problems)
    return Report(config, _problems(_first(errors), source), problems)


def _check_text(text: str) -> None:
    """Refuse what is not a text.

    Raises:
        RequestError: It is something else; what reads files and mappings is not in the model.
    """
    if not isinstance(text, str):
        raise RequestError(
            f"a configuration: expected YAML text, got {type(text).__name__} {text!r:.100}; "
            "licorne.proxy.base.files.input_files takes paths and mappings"
        )


def unusable_rule_problems(config: SchedulerConfig, *, source: str = DEFAULT_SOURCE) -> tuple[Problem, ...]:
    """Return why placement rules cannot be used: a registration ignores them, an update is refused."""
    findings = [finding for partition in config.partitions for finding in unusable_rules(partition)]
    return _problems(findings, source)


def past_window_problems(
    config: SchedulerConfig, before: SchedulerConfig, now_ns: int, *, source: str = DEFAULT_SOURCE
) -> tuple[Problem, ...]:
    """Return which windows are new and in the past: a registration takes them, an update is refused.

    Args:
        config: The configuration.
        before: The configuration before it.
        now_ns: The time.
        source: The name of the file, for messages.
    """
    known = {partition.name: partition.windows for partition in before.partitions}
    findings = [
        finding
        for partition in config.partitions
        for finding in past_windows(partition.windows, known.get(partition.name, ()), now_ns)
    ]
    return _problems(findings, source)


def policy_problems(
    config: SchedulerConfig, points: GivenPoints, *, source: str = DEFAULT_SOURCE
) -> tuple[Problem, ...]:
    """Return the policies that a configuration names and that the program has not given.

    Args:
        config: The configuration.
        points: The policies that the program has given, with the points at which each decides.
        source: The name of the file, for messages.
    """
    findings = [found for partition in config.partitions for found in policies_are_given(partition, points)]
    return _problems(findings, source)


def _read(text: str, errors: list[RuleFinding], warnings: list[RuleFinding]) -> tuple[PartitionConfig, ...]:
    """Read the partitions as far as they can be read, and apply all rules to that."""
    # Only here, since Pydantic, its models and PyYAML take some 100 ms, and `Scheduler()` reads nothing.
    from .documents import read_document  # noqa: PLC0415 - likewise
    from .top_levels import with_partitions  # noqa: PLC0415 - likewise
    from .yaml_nodes import ScalarNode, ScalarTag  # noqa: PLC0415 - likewise
    from .yaml_text import compose  # noqa: PLC0415 - see above

    node = compose(text, errors)
    if node is None and errors:
        return ()
    if node is None or (isinstance(node, ScalarNode) and node.tag is ScalarTag.NULL):
        errors.append(RuleFinding(NOWHERE, "this is empty: a configuration has a list 'partitions'"))
        return ()
    document = read_document(with_partitions(node, text, errors), errors, warnings)
    # A value that could not be read counts as absent. A finding of the rules about that place, for example
    # that a name is missing, would only repeat it.
    unreadable = {(finding.position.line, finding.position.column) for finding in errors}
    found = list(validate_documents(document.partitions))
    if len(errors) + len(found) > _ERRORS_MAX:
        errors.extend(found)
        return ()
    partitions = tuple(build_partition(partition, found) for partition in document.partitions)
    for partition in partitions:
        found.extend(validate_partition(partition))
        warnings.extend(islice(queue_effects(partition), _WARNINGS_MAX))
        warnings.extend(islice(rule_effects(partition), _WARNINGS_MAX))
        warnings.extend(_resolver_is_known(partition))
    if not partitions and not errors:
        warnings.append(RuleFinding(NOWHERE, "there is no partition: nothing can be scheduled"))
    errors.extend(
        finding for finding in found if (finding.position.line, finding.position.column) not in unreadable
    )
    return partitions


def _first(errors: list[RuleFinding]) -> list[RuleFinding]:
    """Return the first errors in order of the file; if there are more, the last one states their number."""
    if len(errors) <= _ERRORS_MAX:
        return errors
    first = sorted(errors, key=lambda finding: (finding.position.line, finding.position.column))[:_ERRORS_MAX]
    text = f"there are more errors, of which {_ERRORS_MAX} are listed"
    return [*first, RuleFinding(first[-1].position, text)]


def _resolver_is_known(partition: PartitionConfig) -> Iterator[RuleFinding]:
    """Warn of a resolver of users and groups that does not exist: the default replaces it."""
    resolver = partition.user_group_resolver
    if resolver and resolver not in _RESOLVERS:
        position = partition.positions["usergroupresolver.type"]
        text = f"the user group resolver {resolver!r} is not known, the default is used"
        yield RuleFinding(position, f"{text}{did_you_mean(resolver, _RESOLVERS)}")


def _problems(findings: Iterable[RuleFinding], source: str) -> tuple[Problem, ...]:
    """Return each finding once, in order of the file."""
    problems = dict.fromkeys(Problem.of(finding, source) for finding in findings)
    return tuple(sorted(problems, key=lambda problem: (problem.line, problem.column)))


def checksum(text: str) -> str:
    """Return the SHA-256 of a configuration in upper-case hexadecimal digits.

    A checksum in the text itself is left out, so that a configuration can contain its own: the marker
    and up to 64 bytes after it are cut out, wherever the same bytes stand.
    """
    # A lone surrogate is in no file, but may come from a program: it is hashed rather than refused, because
    # the reader reports what is wrong with a text.
    content = text.encode("utf-8", errors="surrogatepass")
    parts = content.split(_MARKER)
    if len(parts) > 1:
        written = _MARKER + parts[1].rstrip(b"\n")[:_LENGTH]
        content = content.replace(written, b"")
    return hashlib.sha256(content).hexdigest().upper()
