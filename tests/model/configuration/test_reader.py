"""Reading whole configurations."""

from __future__ import annotations

import pickle
from typing import Final

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.configurations import below_root, errors_of

from licorne.model.configuration import documents, reader
from licorne.model.configuration.problems import ConfigurationError, Problem
from licorne.model.configuration.reader import DEFAULT_CONFIGURATION, checksum, inspect, load
from licorne.model.configuration.schema import LimitConfig, QueueConfig, RuleConfig
from licorne.model.errors import LicorneError
from licorne.model.resources.resource import Resource

TWO_PROBLEMS = "partitions:\n- queues:\n  - name: a b\n  - nam: c\n    name: c\n"


@pytest.mark.parametrize("text", ["{}", "partitions:\n", "partitions: []\n"])
def test_a_text_without_partitions_is_a_configuration(text: str) -> None:
    """As for the recorded core. That nothing can be scheduled then is a warning."""
    (warning,) = inspect(text).warnings

    assert load(text).partitions == ()
    assert "queues.yaml:1:1: document: there is no partition: nothing can be scheduled" == str(warning)


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "~", "\n"])
def test_an_empty_text_is_no_configuration(text: str) -> None:
    """A file that was cut off or never written: a registration without a text gets the default instead."""
    (error,) = inspect(text).errors

    assert "queues.yaml:1:1: document: this is empty: a configuration has a list 'partitions'" == str(error)


def test_the_default_configuration_makes_a_queue_for_each_namespace() -> None:
    """Everyone may submit."""
    (partition,) = load(DEFAULT_CONFIGURATION).partitions

    assert partition.name == "default"
    assert QueueConfig(name="root", parent=True, submit_acl="*") == partition.root
    assert (RuleConfig(name="tag", value="namespace", create=True),) == partition.placement_rules
    assert inspect(DEFAULT_CONFIGURATION).warnings == ()


def test_a_configuration_keeps_its_text_and_fingerprint() -> None:
    """A reload compares the fingerprints."""
    config = load(DEFAULT_CONFIGURATION)

    assert (DEFAULT_CONFIGURATION, checksum(DEFAULT_CONFIGURATION)) == (config.text, config.checksum)


def test_an_error_has_a_line_for_each_problem_in_order_of_the_file() -> None:
    """`file:line:column: path: text`, as compilers write it."""
    with pytest.raises(ConfigurationError) as refused:
        load(TWO_PROBLEMS, source="conf/queues.yaml")

    lines = str(refused.value).split("\n")
    assert lines[0].startswith("conf/queues.yaml:3:11: partitions[0].queues[0].name: invalid queue name")
    assert (
        lines[1]
        == "conf/queues.yaml:4:5: partitions[0].queues[1].nam: unknown key 'nam'; did you mean 'name'?"
    )


def test_an_error_has_its_problems_as_values() -> None:
    """For tools that show them in their own way."""
    with pytest.raises(ConfigurationError) as refused:
        load("partitions: 3")

    assert (Problem("queues.yaml", 1, 13, "partitions", "expected a list, not 3"),) == refused.value.problems
    assert isinstance(refused.value, LicorneError)


def test_a_problem_with_the_whole_file_is_one_of_the_document() -> None:
    """Where nothing has a path."""
    assert ["1:1: document: expected a mapping, not the text 'a'"] == errors_of("a\n")


def test_an_error_can_be_sent_elsewhere() -> None:
    """It survives pickling with all its problems."""
    with pytest.raises(ConfigurationError) as refused:
        load(TWO_PROBLEMS)

    assert str(refused.value) == str(pickle.loads(pickle.dumps(refused.value)))  # noqa: S301 - our own bytes


def test_a_report_on_a_good_configuration_has_it() -> None:
    """With warnings, if there are any."""
    report = inspect(below_root("- {name: a, properties: {colour: red}}"))

    assert report.config is not None
    assert report.errors == ()
    assert ["the property 'colour' is not known"] == [problem.text for problem in report.warnings]


def test_a_report_on_a_bad_configuration_has_errors_and_warnings() -> None:
    """Both, but no configuration."""
    report = inspect(below_root("- {name: a, properties: {colour: red}, parent: 7}"), "x.yaml")

    assert report.config is None
    assert ["x.yaml", "x.yaml"] == [problem.source for problem in report.errors + report.warnings]


def test_a_problem_in_a_value_used_twice_is_reported_once() -> None:
    """An alias repeats the value, not the error."""
    text = below_root("- {name: a, resources: {max: &m {memory: x}}}\n- {name: b, resources: {max: *m}}")

    assert [
        "6:46: partitions[0].queues[0].queues[0].resources.max.memory: invalid quantity: 'x'"
    ] == errors_of(text)


def test_queues_may_nest_deeply() -> None:
    """Ninety levels of queues are no trouble; nesting without end is an error like any other."""
    shallow = "{name: q, queues: [" * 90 + "]}" * 90
    deep = "{name: q, queues: [" * 5000 + "]}" * 5000

    assert errors_of(f"partitions: [{{queues: [{shallow}]}}]") == []
    assert "nest deeper than" in errors_of(f"partitions: [{{queues: [{deep}]}}]")[0]


def test_rules_may_nest_deeply() -> None:
    """A parent rule in a parent rule, and so on."""
    rules = "{name: user, parent: " * 150 + "{name: user}" + "}" * 150

    assert errors_of(f"partitions: [{{queues: [], placementrules: [{rules}]}}]") == []


# ------------------------------------------------------------------------------------- properties

_NAMES = st.from_regex(r"[a-z_:#/@-]{1,8}|on|no|null|true|0x1|1e3|12", fullmatch=True)
_TEXTS = st.text(alphabet="abé1 :#'\"{}[]-*&!|>%@`,?\n~", max_size=8)


@st.composite
def _queues(draw: st.DrawFn, depth: int = 3) -> dict[str, object]:
    """Draw a queue as it stands in a file, with settings that no rule can refuse."""
    queue: dict[str, object] = {"name": draw(_NAMES)}
    if draw(st.booleans()):
        queue["parent"] = draw(st.booleans())
    if draw(st.booleans()):
        queue["resources"] = {"max": {"vcore": "9000", "memory": f"{draw(st.integers(10**6, 10**7))}k"}}
    if draw(st.booleans()):
        queue["properties"] = draw(st.dictionaries(_TEXTS, _TEXTS, max_size=3))
    if draw(st.booleans()):
        queue["limits"] = [{"limit": draw(_TEXTS), "users": ["bob"], "maxresources": {"pods": 3}}]
    children = draw(st.lists(_queues(depth - 1), max_size=2, unique_by=lambda q: q["name"])) if depth else []
    if children:
        queue["queues"] = children
    for child in children:
        child.pop("resources", None)
    return queue


def _expected(queue: dict[str, object]) -> QueueConfig:
    """Return what must be read of a queue."""
    children, limits = queue.get("queues", []), queue.get("limits", [])
    resources = queue.get("resources", {})
    properties = queue.get("properties", {})
    assert isinstance(children, list)
    assert isinstance(limits, list)
    assert isinstance(resources, dict)
    assert isinstance(properties, dict)
    memory = resources["max"]["memory"] if resources else ""
    return QueueConfig(
        name=str(queue["name"]),
        parent=bool(queue.get("parent", False)),
        max=Resource({"vcore": 9_000_000, "memory": int(memory[:-1]) * 1000} if memory else {}),
        properties=properties,
        queues=tuple(_expected(child) for child in children),
        limits=tuple(
            LimitConfig(
                description=limit["limit"], users=("bob",), resources={"maxresources": Resource({"pods": 3})}
            )
            for limit in limits
        ),
    )


@settings(max_examples=40)
@given(st.lists(_queues(), max_size=3, unique_by=lambda queue: queue["name"]), st.booleans())
def test_random_queues_come_out_as_they_went_in(queues: list[dict[str, object]], flow: bool) -> None:  # noqa: FBT001 - drawn
    """Whatever the names and texts look like, and in both styles of YAML."""
    text = yaml.safe_dump(
        {"partitions": [{"queues": [{"name": "root", "queues": queues}]}]}, default_flow_style=flow
    )

    (partition,) = load(text).partitions

    assert tuple(_expected(queue) for queue in queues) == partition.root.queues


_KINDS: Final = (
    documents.YamlScheduler,
    documents.YamlPartition,
    documents.YamlQueue,
    documents.YamlResources,
    documents.YamlLimit,
    documents.YamlRule,
    documents.YamlFilter,
    documents.YamlNodeSortPolicy,
    documents.YamlPreemption,
)
_KEYS: Final = dict.fromkeys(key for kind in _KINDS for key in kind.model_fields)
_WORDS = st.sampled_from([*_KEYS, "root", "memory", "vcore", "fixed"])
_SCALARS = st.one_of(_WORDS, _TEXTS, st.integers(-3, 2**70), st.floats(), st.booleans(), st.none())
_DOCUMENTS = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_WORDS, inner, max_size=4)),
    max_leaves=20,
)


def _problems_of(text: str) -> tuple[Problem, ...]:
    """Load a text; any error but the one that is expected comes through."""
    try:
        load(text)
    except ConfigurationError as error:
        return error.problems
    return ()


@settings(max_examples=120)
@given(_DOCUMENTS)
def test_any_document_is_read_or_refused(document: object) -> None:
    """Nothing but the one error comes out, whatever stands where, and its problems are in order."""
    for partition in (document, {"queues": document, "placementrules": document}):
        problems = _problems_of(yaml.safe_dump({"partitions": [partition]}))

        assert list(problems) == sorted(problems, key=lambda problem: (problem.line, problem.column))


@settings(max_examples=120)
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Also what is no YAML at all; what is refused has a report without a configuration."""
    for whole in (text, f"partitions:\n- queues:\n  - name: {text}\n"):
        assert (inspect(whole).config is None) is bool(_problems_of(whole))


@pytest.mark.parametrize(
    "text",
    [
        f"partitions: [{'{},' * 5_000}]",
        f"partitions: [{{queues: [{{name: root, queues: [{'1,' * 5_000}]}}]}}]",
        f"partitions: [{{queues: [{{name: root, queues: [{'{},' * 5_000}]}}]}}]",
    ],
    ids=["before", "shapes", "rules"],
)
def test_of_thousands_of_errors_the_first_are_listed(text: str) -> None:
    """The last line says that there are more."""
    report = inspect(text)

    assert (None, 1_001) == (report.config, len(report.errors))
    assert "there are more errors, of which 1000 are listed" == report.errors[-1].text
    assert sorted(error.column for error in report.errors) == [error.column for error in report.errors]


def test_where_thousands_of_errors_have_been_found_no_further_are_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each costs time, and nobody reads them."""
    built: list[object] = []
    monkeypatch.setattr(reader, "build_partition", lambda *given: built.append(given))
    inspect(f"partitions: [{'{},' * 5_000}]")

    assert [] == built
