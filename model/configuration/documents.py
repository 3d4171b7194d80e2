"""The configuration as a file has it: one strict model for each mapping of the YAML file.

Pydantic walks the nodes, refuses unknown keys and collects every error with its path. The models read the
nodes themselves, so that a field decides what a scalar means and each model keeps the positions of its
values. Values are checked beyond their kind in `rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from .names import did_you_mean
from .problems import NOWHERE, Position, RuleFinding
from .shares import ALL_TYPES
from .yaml_nodes import (
    MappingNode,
    Node,
    ScalarError,
    ScalarNode,
    ScalarTag,
    SequenceNode,
    key_path,
    kind_of,
    read_count,
    read_flag,
    read_number,
    read_text,
)

_Value = TypeVar("_Value")
_UNKNOWN_KEY: Final = "extra_forbidden"
_NOTHING: Final = ScalarNode("", ScalarTag.NULL, NOWHERE)


@dataclass(slots=True)
class Reading:
    """The collections of one reading besides the models: warnings, and the valid keys of each mapping."""

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


def _optional_amounts(value: object) -> dict[str, Node] | None:
    """Return quantities by type, or a percentage, which is of all types."""
    if isinstance(value, ScalarNode) and value.text.endswith("%"):
        return {ALL_TYPES: value}
    return _optional_entries(value)


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
_OptionalAmounts = Annotated[dict[str, _Text] | None, BeforeValidator(_optional_amounts)]
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
        _reading(info).known_keys[id(value)] = tuple(
            field.alias or name for name, field in cls.model_fields.items()
        )
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
            closed: Keys whose values have separate models: only the position of their start is returned.
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


class YamlQueueResources(YamlResources):
    """`resources` of a queue, of which two may be percentages of the maximum of the parent."""

    guaranteed: _OptionalAmounts = None
    max: _OptionalAmounts = None


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
    resources: YamlQueueResources = YamlQueueResources.model_construct()
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


class YamlPolicies(YamlNode):
    """`policies` of a partition: those that belong to no single queue."""

    admission: _TextList = ()
    filters: _TextList = ()
    protection: _TextList = ()


class YamlWindowHolders(YamlNode):
    """`for` of a window."""

    users: _TextList = ()
    groups: _TextList = ()
    applications: _TextList = ()
    queues: _TextList = ()


class YamlWindow(YamlNode):
    """One entry of `windows` of a partition."""

    name: _Text = ""
    nodes: _TextList = ()
    attributes: _Texts = {}
    begin: Annotated[_Text, Field(alias="from")] = ""
    end: Annotated[_Text, Field(alias="to")] = ""
    zone: _Text = ""
    every: _Text = ""
    drain: _Text = ""
    holders: Annotated[YamlWindowHolders, Field(alias="for")] = YamlWindowHolders.model_construct()


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
    topology: _TextList = ()
    windows: Annotated[tuple[YamlWindow, ...], BeforeValidator(_items)] = ()
    policies: YamlPolicies = YamlPolicies.model_construct()
    usergroupresolver: YamlUserGroupResolver = YamlUserGroupResolver.model_construct()


class YamlScheduler(YamlNode):
    """The whole file; a checksum written in it is not used."""

    partitions: Annotated[tuple[YamlPartition, ...], BeforeValidator(_items)] = ()
    checksum: _Text = ""


# The reader of all, made here, where Python lets one thread in: the models below it need no reader alone.
YamlScheduler.model_rebuild()


def read_document(node: Node | None, errors: list[RuleFinding], warnings: list[RuleFinding]) -> YamlScheduler:
    """Read the document of a file.

    A value of the wrong kind is noted in `errors` and read as null, an unknown key is noted and left out. So
    the rules about values can be applied to everything else.

    Args:
        node: The top node, or `None` for a file without a document.
        errors: Findings that make the configuration unusable are appended here.
        warnings: Findings about spellings are appended here.
    """
    top: Node = node or _NOTHING
    reading = Reading()
    try:
        document = YamlScheduler.model_validate(top, context=reading)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        errors.extend(_finding(top, detail, reading) for detail in details)
        top = _without(top, [(detail["loc"], detail["type"] == _UNKNOWN_KEY) for detail in details])
        reading = Reading()
        document = YamlScheduler.model_validate(top, context=reading)
    warnings.extend(reading.warnings)
    return document


def _finding(top: Node, detail: ErrorDetails, reading: Reading) -> RuleFinding:
    """Return the finding about an error, with its position."""
    way = detail["loc"]
    if detail["type"] != _UNKNOWN_KEY:
        return RuleFinding(_follow(top, way).position, detail["msg"])
    owner, key = _follow(top, way[:-1]), str(way[-1])
    known = reading.known_keys.get(id(owner), ())
    where = owner.entries[key].key_position if isinstance(owner, MappingNode) else owner.position
    position = Position(where.line, where.column, key_path(owner.position.path, key))
    return RuleFinding(position, f"unknown key {key!r}{did_you_mean(key, known)}")


def _follow(node: Node, way: Sequence[int | str]) -> Node:
    """Return the node at a path of keys and indices."""
    for step in way:
        if isinstance(node, SequenceNode):
            node = node.items[int(step)]
        elif isinstance(node, MappingNode):
            node = node.entries[str(step)].value
    return node


def _without(node: Node, ways: Sequence[tuple[Sequence[int | str], bool]]) -> Node:
    """Return a node in which the values at the paths are null, or removed when their keys are unknown."""
    if any(not way and not gone for way, gone in ways):
        return node.emptied()
    by_step: dict[int | str, list[tuple[Sequence[int | str], bool]]] = {}
    for way, gone in ways:
        by_step.setdefault(way[0], []).append((way[1:], gone))
    if isinstance(node, SequenceNode):
        items = (_without(item, by_step.get(index, ())) for index, item in enumerate(node.items))
        return replace(node, items=tuple(items))
    if isinstance(node, MappingNode):
        gone_keys = {step for step, rest in by_step.items() if any(not way and gone for way, gone in rest)}
        entries = {
            key: entry._replace(value=_without(entry.value, by_step.get(key, ())))
            for key, entry in node.entries.items()
            if key not in gone_keys
        }
        return replace(node, entries=entries)
    return node
