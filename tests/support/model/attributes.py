"""All that an object has, whether its class is Python or compiled."""

from __future__ import annotations


def attributes_of(item: object) -> dict[str, object]:
    """Return the attributes of an object, by name.

    Python has them in the object's dict or in the slots of its class; a class that mypyc compiled has
    neither, and names them.
    """
    kind = type(item)
    names = getattr(kind, "__mypyc_attrs__", None) or getattr(kind, "__slots__", None) or vars(item)
    return {name: getattr(item, name) for name in names}
