"""The description of the REST interface: all of it is there, and nothing else is described."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from jsonschema import Draft202012Validator
from starlette.applications import Starlette
from starlette.testclient import TestClient
from support.proxy.described import described, operations, resolved, route_of, undescribed
from support.proxy.golden_bodies import GoldenAnswer, golden_answers

from licorne import Scheduler, rest_app

_TEXTS = {"InstanceUUID", "reason", "message", "description"}
"""What is a text where recordings leave a value out; all others are times."""
ANSWERS = {answer.name: answer for answer in golden_answers()}
TOKEN = "a-token-of-the-tests"  # noqa: S105 - no secret


@pytest.fixture(scope="module")
def application() -> Iterator[Starlette]:
    with Scheduler(engine="direct") as scheduler:
        yield rest_app(scheduler)


def test_every_path_and_method_is_described_and_no_other(application: Starlette) -> None:
    """The routes are the truth; OPTIONS, which every path has, is described for all of them together."""
    routes: Any = application.routes
    served = {(route.path, method) for route in routes for method in route.methods}

    assert served == {(path, method) for path, method, _ in operations()}


def test_the_description_is_served_to_everybody() -> None:
    """A program that is to use the interface may read it before it has a token."""
    with Scheduler(engine="direct") as scheduler:
        client = TestClient(rest_app(scheduler, tokens=(TOKEN,)))
        answer = client.get("/openapi.yaml")

        assert (200, "application/yaml") == (answer.status_code, answer.headers["content-type"])
        assert "openapi: 3.1.0" in answer.text
        assert 401 == client.get("/licorne/v1/next-asks").status_code


def references(part: Any) -> Iterator[str]:
    """Yield what a part of the description refers to."""
    if isinstance(part, dict):
        if "$ref" in part:
            yield part["$ref"]
        for entry in part.values():
            yield from references(entry)
    elif isinstance(part, list):
        for entry in part:
            yield from references(entry)


def test_what_is_referred_to_is_there_and_all_of_it_is_used() -> None:
    """Nothing is left of what was described once."""
    found = set(references(described()))
    for reference in found:
        assert resolved({"$ref": reference})

    components = described()["components"]
    there = {f"#/components/{kind}/{name}" for kind in components for name in components[kind]}
    assert {"#/components/securitySchemes/token"} == there - found


def test_every_schema_is_one() -> None:
    """By the rules of JSON schemas; each object says which keys it may have."""
    schemas = described()["components"]["schemas"]
    for name, schema in schemas.items():
        Draft202012Validator.check_schema(schema)
        for part in objects(schema):
            assert "properties" in part or "additionalProperties" in part or "description" in part, name
            assert set(part.get("required", ())) <= {*part.get("properties", ()), "application", "ask"}, name


def objects(part: Any) -> Iterator[Any]:
    """Yield the schemas of objects in a schema."""
    if isinstance(part, dict):
        if part.get("type") == "object":
            yield part
        for entry in part.values():
            yield from objects(entry)
    elif isinstance(part, list):
        for entry in part:
            yield from objects(entry)


def test_every_operation_says_what_it_is_for() -> None:
    """And so does each of its parameters; those of the path are needed."""
    names = [operation["operationId"] for _, _, operation in operations()]
    assert len(names) == len(set(names))
    for path, _, operation in operations():
        assert operation["summary"]
        given = [*described()["paths"][path].get("parameters", ()), *operation.get("parameters", ())]
        parameters = [resolved(each) for each in given]
        assert all(each["description"] for each in parameters), path
        in_path = {each["name"] for each in parameters if each["in"] == "path" and each["required"]}
        assert in_path == {step[1:-1] for step in path.split("/") if step.startswith("{")}, path


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_a_recorded_answer_is_as_described(application: Starlette, name: str) -> None:
    """Its status, its type and its document."""
    golden = ANSWERS[name]
    path = route_of(application, unquote(urlsplit(golden.url).path))
    if path is None:
        assert golden.status in {301, 404}, f"{golden.url} is not described"
        return
    if golden.method.lower() not in described()["paths"][path]:
        assert golden.status == (200 if golden.method == "OPTIONS" else 405)
        return

    content = recorded_text(golden)
    assert [] == undescribed(path, golden.method, golden.status, golden.content_type, content)


def recorded_text(golden: GoldenAnswer) -> str:
    """Return the body of a recorded answer with numbers where recordings have no times."""
    text = golden.file.read_text(encoding="utf-8")
    if not golden.content_type.startswith("application/json"):
        return text
    if golden.name == "events_stream":
        text = text.splitlines()[-1]
    return json.dumps(timed(json.loads(text)))


def timed(document: Any, key: str = "") -> Any:
    if document in ("<time>", "<unstable>"):
        return "text" if key in _TEXTS else 1
    if isinstance(document, dict):
        return {name: timed(entry, name) for name, entry in document.items()}
    return [timed(entry, key) for entry in document] if isinstance(document, list) else document


@pytest.mark.parametrize(
    ("status", "kind", "text", "said"),
    [
        (418, "application/json", "[]", "answers 418"),
        (200, "text/html", "", "'text/html', described are application/json"),
        (200, "application/json", "{}", "is not of type 'array'"),
        (200, "application/json", '[{"partition": "p"}]', "'clusterName' is a required property"),
        (200, "application/json", '[{"clusterName": 1}]', "1 is not of type 'string'"),
        (200, "application/json", '[{"other": 1}]', "'other' was unexpected"),
    ],
)
def test_an_answer_that_is_not_as_described_is_found(status: int, kind: str, text: str, said: str) -> None:
    """By its status, its type, its keys and its values."""
    assert any(said in each for each in undescribed("/ws/v1/clusters", "GET", status, kind, text))


def test_without_a_token_every_path_but_the_description_is_refused_as_described() -> None:
    """Where the server has tokens; also paths that would be redirected."""
    with Scheduler(engine="direct") as scheduler:
        client = TestClient(rest_app(scheduler, tokens=(TOKEN,)), follow_redirects=False)
        for path, method, operation in operations():
            if operation.get("security") == [{}]:
                assert 200 == client.request(method, path).status_code
                continue
            answer = client.request(method, path.replace("{", "").replace("}", ""))
            assert (401, "Bearer") == (answer.status_code, answer.headers["www-authenticate"]), path
            assert [] == undescribed(path, method, 401, answer.headers["content-type"], answer.text)
