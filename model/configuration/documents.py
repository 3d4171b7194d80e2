"""The configuration as it is written: one strict model for each mapping of the YAML file.

Pydantic walks the nodes, refuses unknown keys and collects every error with its path. The models read the
nodes themselves, so that a field decides what a scalar means and each model keeps the positions of its
values. What a value may be beyond its kind is checked in `rules`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticCustomError

from .positions import NOWHERE, Position
from .problems import RuleFinding
from .text.nodes import MappingNode, Node, ScalarNode, ScalarTag, SequenceNode
from .text.scalars import ScalarError, kind_of, read_count, read_flag, read_number, read_text

_Value = TypeVar("_Value")


@dataclass(slots=True)
class Reading:
    """What one reading collects besides the models: warnings, and which keys each mapping may have."""

    warnings: list[RuleFinding] = field(default_factory=list)
    known_keys: dict[int, tuple[str, ...]] = field(default_factory=dict)


def _reading(info: ValidationInfo) -> Reading:
    """Return the notes of the reading that a value is read in."""
    reading = info.context
    assert isinstance(reading, Reading), "documents are read with their notes: please report"
    return reading


def _refused(text: str) -> PydanticCustomError:
    # The text is passed as a value: in a template, braces in it would be taken for names.
    return PydanticCustomError("refused", "{text}", {"text": text})


def _read(reader: Callable[[Node], _Value], value: object) -> _Value:
    """Read a node, turning what is wrong with it into an error of pydantic."""
    assert isinstance(value, ScalarNode | SequenceNode | MappingNode), "only nodes are read: please report"
    try:
        return reader(value)
    except ScalarError as error:
        raise _refused(str(error)) from error


def _noted(
    reader: Callable[[Node], tuple[_Value, str | None]], value: object, info: ValidationInfo
) -> _Value:
    """Read a node with a reader that may also warn."""
    read, warning = _read(reader, value)
    if warning and isinstance(value, ScalarNode):
        _reading(info).warnings.append(RuleFinding(value.position, warning))
    return read


def _is_null(value: object) -> bool:
    return isinstance(value, ScalarNode) and value.tag is ScalarTag.NULL


def _text(value: object) -> str:
    return _read(read_text, value)


def _flag(value: object, info: ValidationInfo) -> bool:
    return _noted(read_flag, value, info)


def _optional_flag(value: object, info: ValidationInfo) -> bool | None:
    return None if _is_null(value) else _noted(read_flag, value, info)


def _count(value: object, info: ValidationInfo) -> int:
    return _noted(read_count, value, info)


def _number(value: object) -> float:
    return _read(read_number, value)


def _items(value: object) -> tuple[Node, ...]:
    if _is_null(value):
        return ()
    if not isinstance(value, SequenceNode):
        raise _refused(f"expected a list, not {_kind(value)}")
    return value.items


def _optional_items(value: object) -> tuple[Node, ...] | None:
    return None if _is_null(value) else _items(value)


def _entries(value: object) -> dict[str, Node]:
    if _is_null(value):
        return {}
    if not isinstance(value, MappingNode):
        raise _refused(f"expected a mapping, not {_kind(value)}")
    return {key: entry.value for key, entry in value.entries.items()}


def _optional_entries(value: object) -> dict[str, Node] | None:
    return None if _is_null(value) else _entries(value)


def _optional(value: object) -> object:
    return None if _is_null(value) else value


def _kind(value: object) -> str:
    return _read(kind_of, value)


_Text = Annotated[str, BeforeValidator(_text)]
_Flag = Annotated[bool, BeforeValidator(_flag)]
_OptionalFlag = Annotated[bool | None, BeforeValidator(_optional_flag)]
_Count = Annotated[int, BeforeValidator(_count)]
_Number = Annotated[float, BeforeValidator(_number)]
_TextList = Annotated[tuple[_Text, ...], BeforeValidator(_items)]
_Texts = Annotated[dict[str, _Text], BeforeValidator(_entries)]
_OptionalTexts = Annotated[dict[str, _Text] | None, BeforeValidator(_optional_entries)]
_Numbers = Annotated[dict[str, _Number], BeforeValidator(_entries)]


class YamlNode(BaseModel):
    """A mapping of the file; null stands for one without keys."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        revalidate_instances="never",
        defer_build=True,  # One validator, that of the whole file, is made: see `text.shapes`.
    )

    _node: MappingNode | ScalarNode | None = PrivateAttr(default=None)

    @model_validator(mode="wrap")
    @classmethod
    def _open(
        cls, value: object, read: ModelWrapValidatorHandler[YamlNode], info: ValidationInfo
    ) -> YamlNode:
        """Read the mapping and keep the node for its positions."""
        if isinstance(value, dict):
            # Pydantic wraps a model that refers to itself twice if another model refers to it: this is the
            # inner call, with what the outer one made of the node.
            return read(value)
        entries = _entries(value)
        _reading(info).known_keys[id(value)] = tuple(cls.model_fields)
        document = read(entries)
        if isinstance(value, MappingNode | ScalarNode):
            document._node = value  # noqa: SLF001 - the model made this document, which has no other user yet
        return document

    @property
    def position(self) -> Position:
        """Return the position of the mapping."""
        return self._node.position if self._node else NOWHERE

    def positions(self, *, closed: tuple[str, ...] = ()) -> dict[str, Position]:
        """Return the positions of all values below, by their path from here, except those of other models.

        Args:
            closed: Keys whose values have models of their own: only the position of their start is returned.
        """
        found: dict[str, Position] = {}
        if isinstance(self._node, MappingNode):
            _collect(self._node, "", closed, found)
        return found


def _collect(node: Node, path: str, closed: tuple[str, ...], found: dict[str, Position]) -> None:
    """Collect the positions of a node's values by path."""
    if isinstance(node, SequenceNode):
        steps = [(f"{path}[{index}]", item) for index, item in enumerate(node.items)]
    elif isinstance(node, MappingNode):
        prefix = f"{path}." if path else ""
        steps = [(f"{prefix}{key}", entry.value) for key, entry in node.entries.items()]
    else:
        return
    for step, value in steps:
        found[step] = value.position
        if step not in closed:
            _collect(value, step, closed, found)


class YamlResources(YamlNode):
    """`resources`: `None` for what is not there, which is not the same as an empty mapping at the root."""

    guaranteed: _OptionalTexts = None
    max: _OptionalTexts = None
    lend: _OptionalTexts = None


class YamlLimit(YamlNode):
    """One entry of `limits`."""

    limit: _Text = ""
    users: _TextList = ()
    groups: _TextList = ()
    maxresources: _Texts = {}
    maxapplications: _Count = 0
    weight: _Text = ""


class YamlChildTemplate(YamlNode):
    """`childtemplate` of a queue."""

    maxapplications: _Count = 0
    properties: _Texts = {}
    resources: YamlResources = YamlResources.model_construct()


class YamlQueue(YamlNode):
    """One queue with all below it."""

    name: _Text = ""
    parent: _Flag = False
    resources: YamlResources = YamlResources.model_construct()
    maxapplications: _Count = 0
    properties: _Texts = {}
    adminacl: _Text = ""
    submitacl: _Text = ""
    childtemplate: Annotated[YamlChildTemplate | None, BeforeValidator(_optional)] = None
    queues: Annotated[tuple[YamlQueue, ...], BeforeValidator(_items)] = ()
    limits: Annotated[tuple[YamlLimit, ...], BeforeValidator(_items)] = ()


class YamlFilter(YamlNode):
    """`filter` of a placement rule."""

    type: _Text = ""
    users: _TextList = ()
    groups: _TextList = ()


class YamlRule(YamlNode):
    """One placement rule, in its `parent` the next one."""

    name: _Text = ""
    create: _Flag = False
    value: _Text = ""
    filter: YamlFilter = YamlFilter.model_construct()
    parent: Annotated[YamlRule | None, BeforeValidator(_optional)] = None


class YamlPreemption(YamlNode):
    """`preemption` of a partition."""

    enabled: _OptionalFlag = None
    quotapreemptionenabled: _OptionalFlag = None
    victims: _Text = ""
    jobs: _Text = ""


class YamlNodeSortPolicy(YamlNode):
    """`nodesortpolicy` of a partition."""

    type: _Text = ""
    resourceweights: _Numbers = {}


class YamlUserGroupResolver(YamlNode):
    """`usergroupresolver` of a partition."""

    type: _Text = ""


class YamlPartition(YamlNode):
    """One partition; `queues` is `None` when it is not there, which is an error, unlike an empty list."""

    name: _Text = ""
    queues: Annotated[tuple[YamlQueue, ...] | None, BeforeValidator(_optional_items)] = None
    placementrules: Annotated[tuple[YamlRule, ...], BeforeValidator(_items)] = ()
    limits: Annotated[tuple[YamlLimit, ...], BeforeValidator(_items)] = ()
    preemption: YamlPreemption = YamlPreemption.model_construct()
    nodesortpolicy: YamlNodeSortPolicy = YamlNodeSortPolicy.model_construct()
    usergroupresolver: YamlUserGroupResolver = YamlUserGroupResolver.model_construct()


class YamlScheduler(YamlNode):
    """The whole file; a checksum written in it is not used."""

    partitions: Annotated[tuple[YamlPartition, ...], BeforeValidator(_items)] = ()
    checksum: _Text = ""
