"""Resources are written and read in the forms that users see."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.model.identifiers import id_refusal
from licorne.model.resources.quantities import INT64_MAX, INT64_MIN, QuantityError
from licorne.model.resources.resource import (
    EMPTY,
    Resource,
    describe,
    resource_from_json,
    resource_from_texts,
)


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (None, "nil resource"),
        (EMPTY, "map[]"),
        (Resource({"b": 2, "a": 1}), "map[a:1 b:2]"),
        (Resource({"a": -1, "b": 0}), "map[a:-1 b:0]"),
    ],
)
def test_a_description_sorts_the_types(resource: Resource | None, expected: str) -> None:
    """Messages show resources in one form, whatever the order in which the types were named."""
    assert expected == describe(resource)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (None, {}),
        ({}, {}),
        ({"vcore": "10"}, {"vcore": 10_000}),
        ({"vcore": "500m", "memory": "1Gi"}, {"vcore": 500, "memory": 2**30}),
        ({"nvidia.com/gpu": "2", "pods": "0"}, {"nvidia.com/gpu": 2, "pods": 0}),
    ],
)
def test_configured_texts_use_the_parser_of_their_type(
    texts: dict[str, str] | None, expected: dict[str, int]
) -> None:
    """Only `vcore` is counted in thousandths; a missing map is the empty resource."""
    assert Resource(expected) == resource_from_texts(texts)


def test_the_first_failing_entry_fails_the_whole_map() -> None:
    """The error names the text and its type, and no resource is made of the rest."""
    with pytest.raises(QuantityError) as caught:
        resource_from_texts({"vcore": "1", "memory": "500m", "pods": "x"})

    assert "invalid suffix: '500m' for resource type 'memory'" == str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"resources":{"memory":{"value":100}}}', {"memory": 100}),
        ('{"resources":{"memory":{"value":"2000"}}}', {"memory": 2000}),
        ('{"resources":{"memory":{"value":-1},"vcore":{"value":0}}}', {"memory": -1, "vcore": 0}),
        ('{"Resources":{"Memory":{"VALUE":1}}}', {"Memory": 1}),
        ('{"resources":{"memory":{"value":1,"Value":2}}}', {"memory": 2}),
        ('{"resources":{"memory":{}}}', {"memory": 0}),
        ('{"resources":{"memory":{"value":null}}}', {"memory": 0}),
        ('{"resources":{"memory":{"value":1,"unit":"Gi"}},"more":[]}', {"memory": 1}),
        ('{"resources":{}}', {}),
        ('{"resources":null}', {}),
        ("{}", {}),
        ("null", {}),
    ],
)
def test_a_quota_tag_holds_raw_quantities(text: str, expected: dict[str, int]) -> None:
    """The values of a tag are taken as they are; a tag that says nothing is the empty resource."""
    assert Resource(expected) == resource_from_json(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "resources",
        '{"resources":{"x":{"value":10}}',
        '{"resources":{"x":{"value":"10m"}}}',
        '{"resources":{"x":{"value":""}}}',
        '{"resources":{"x":{"value":"9223372036854775808"}}}',
        '{"resources":{"x":{"value":1.0}}}',
        '{"resources":{"x":{"value":1e3}}}',
        '{"resources":{"x":{"value":true}}}',
        '{"resources":{"x":{"value":NaN}}}',
        '{"resources":{"x":{"value":9223372036854775808}}}',
        '{"resources":{"x":10}}',
        '{"resources":{"x":null}}',
        '{"resources":[]}',
        "[]",
        "0",
        "[" * 100_000,
        "9" * 10_000,
    ],
)
def test_a_malformed_quota_tag_is_refused(text: str) -> None:
    """Bad JSON, another shape, or a value that is no 64-bit integer is our error, never another one."""
    with pytest.raises(QuantityError):
        resource_from_json(text)


NAMES = st.text(max_size=5).filter(lambda name: id_refusal("a type", name) is None)


@pytest.mark.parametrize("name", ["gpu\x1b[31m", "gpu\u202e", "g" * 1_025])
def test_a_type_that_is_not_a_name_is_refused_in_a_quota_tag(name: str) -> None:
    """It would be shown wherever the quota of its queue is."""
    with pytest.raises(QuantityError, match="a resource type has"):
        resource_from_json(json.dumps({"resources": {name: {"value": 1}}}))


@given(st.dictionaries(NAMES, st.integers(INT64_MIN, INT64_MAX), max_size=4))
def test_a_quota_tag_gives_back_what_was_written(quantities: dict[str, int]) -> None:
    """Any resource can travel in a tag."""
    text = json.dumps({"resources": {name: {"value": value} for name, value in quantities.items()}})

    assert Resource(quantities) == resource_from_json(text)
