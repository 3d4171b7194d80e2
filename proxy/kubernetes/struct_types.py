"""Works out how the structs of a module are decoded, before two threads decode them."""

from __future__ import annotations

import sys

import msgspec


def resolve_structs(module_name: str) -> None:
    """Resolve the fields of every struct that a module defines; call it as the last statement of that module.

    msgspec does it when a type is first decoded and holds no lock meanwhile. A second thread that decodes the
    type then reads fields that are not there yet, which ends the process with a segmentation fault.
    """
    for kind in tuple(vars(sys.modules[module_name]).values()):
        if isinstance(kind, msgspec.StructMeta) and kind.__module__ == module_name:
            msgspec.json.Decoder(kind)
