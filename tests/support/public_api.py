"""The public interface as text: `python -m support.public_api` writes it anew.

Names with their signatures, and the paths of the REST interface with the fields of its documents: a
difference shows what users lose or gain.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

import licorne
from licorne.lockcheck import __all__ as lockcheck_names
from licorne.proxy.views.rest.application import description

_PLAIN: Final = (str, int, float, type(None), type(inspect.Parameter.empty))
"""The types of defaults that are shown; others, such as sets, have no order."""
FOLDER: Final = Path(__file__).parents[1] / "data" / "api"


@cache
def texts() -> dict[str, str]:
    """Return the texts by the names of their files."""
    names = [f"licorne.{name}" for name in licorne.__all__]
    names += [f"licorne.lockcheck.{name}" for name in lockcheck_names]
    lines = [line for name in sorted(names) for line in _lines(name)]
    return {"names.txt": "\n".join(lines) + "\n", "rest.txt": "\n".join(_rest_lines()) + "\n"}


def _rest_lines() -> Iterator[str]:
    """Yield a line for each operation, with its statuses, and one for each field of each document."""
    described = yaml.safe_load(description())
    for path, operations in described["paths"].items():
        for method in sorted({"get", "post"} & {*operations}):
            yield f"{method.upper()} {path} {' '.join(sorted(operations[method]['responses']))}"
    for name, schema in described["components"]["schemas"].items():
        for field, kind in schema.get("properties", {}).items():
            mark = "" if field in schema.get("required", ()) else "?"
            yield f"{name}.{field}{mark}: {_kind(kind)}"


def _kind(schema: dict[str, Any]) -> str:
    """Return the type of a field in short."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " | ".join(map(_kind, schema["anyOf"]))
    if schema["type"] == "array":
        return f"[{_kind(schema['items'])}]"
    if schema["type"] == "object":
        values = schema.get("additionalProperties")
        return f"{{{_kind(values) if isinstance(values, dict) else 'any'}}}"
    return "/".join(schema["enum"]) if "enum" in schema else str(schema["type"])


def _lines(name: str) -> Iterator[str]:
    """Yield a line for a name, and one for each public member if it is a class."""
    module, _, last = name.rpartition(".")
    value: Any = getattr(licorne if module == "licorne" else licorne.lockcheck, last)
    yield f"{name}{_signature(value)}"
    if not inspect.isclass(value) or issubclass(value, BaseException):
        return
    for member in sorted(each for each in dir(value) if not each.startswith("_")):
        found = inspect.getattr_static(value, member)
        found = found.__func__ if isinstance(found, staticmethod | classmethod) else found
        if found is not None and not hasattr(object, member):
            yield f"{name}.{member}{_signature(found)}"


def _signature(value: Any) -> str:
    if not callable(value) or _has_no_signature(value):
        return ""
    try:
        signature = inspect.signature(value)
    except ValueError:
        return "(...)"
    plain = [
        parameter if isinstance(parameter.default, _PLAIN) else parameter.replace(default=...)
        for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=plain)).replace("'", "")


def _has_no_signature(value: Any) -> bool:
    """Return whether it takes what exceptions or enums take, which versions of Python say in several ways."""
    if not isinstance(value, type) or "__init__" in value.__dict__:
        return False
    return issubclass(value, BaseException | enum.Enum)


def _write() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in texts().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    _write()
