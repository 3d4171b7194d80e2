"""Every struct is resolved when its module is imported: two threads that decode it first would crash."""

from __future__ import annotations

import json

from support.programs import run_python

_COUNT = """
import gc, importlib, json, pkgutil, msgspec
from licorne.proxy import kubernetes
names = [each.name for each in pkgutil.walk_packages(kubernetes.__path__, kubernetes.__name__ + ".")]
found = [value for name in names for value in vars(importlib.import_module(name)).values()]
structs = {each for each in found if isinstance(each, msgspec.StructMeta) and each.__module__ in names}
# msgspec says how the fields of a struct are decoded to the garbage collector alone.
parts = {each: [type(part).__name__ for part in gc.get_referents(each)] for each in structs}
unresolved = [each for each in structs if "StructInfo" not in parts[each]]
print(json.dumps([len(structs), sorted(f"{each.__module__}.{each.__name__}" for each in unresolved)]))
"""


def test_every_struct_is_resolved_when_its_module_is_imported() -> None:
    """In a fresh process no struct of any module of this room waits for its first use."""
    done = run_python("-c", _COUNT)
    count, unresolved = json.loads(done.stdout)
    assert (True, []) == (count > 60, unresolved)
