"""Build the package: pure Python, or with LICORNE_COMPILE=1 the hot modules compiled by mypyc.

What it needs for that is asked for by `setup_requires`, so that a pure build needs no compiler and no mypy.
See docs/compiled.md.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from contextlib import chdir
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

REQUIRES: Final = ["mypy~=2.4.1", "pydantic>=2.7", "types-PyYAML", "types-protobuf"]
"""What a compiled build needs besides a C compiler: mypyc, and the types of what the model imports."""
ROOMS: Final = (
    *("model/resources", "model/values", "model/applications", "model/nodes", "model/queues", "model/limits"),
    *(
        "model/state",
        "model/predicates",
        "model/scheduling",
        "model/requests",
        "model/planning",
        "model/preemption",
        "proxy/si",
    ),
)
"""The rooms whose modules are compiled."""
HOT: Final = (
    "actors/runtime/mailbox.py",
    "actors/services/rm_link.py",
    "model/identifiers.py",
)
"""Modules of other rooms that are compiled."""
PURE: Final = frozenset(
    {
        *("model/applications/handle.py", "model/nodes/handle.py", "model/values/facts.py"),
        *("proxy/si/api.py", "proxy/si/si_pb2.py", "proxy/si/licorne_v1_pb2.py"),
    }
)
"""What stays Python in them: protocols, generated modules, and a class with weak references to it."""
COPY: Final = Path("build/mypyc/licorne")
"""The checkout is the package; mypyc needs a folder of its name."""


class PackageModules(build_py):
    """Finds the modules of the package: this file lies in its folder, and is not one of them."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Return package, name and file of each module of a package."""
        found: list[tuple[str, str, str]] = super().find_package_modules(package, package_dir)
        return [row for row in found if row[:2] != ("licorne", "setup")]


COMMANDS: Final = {"build_py": PackageModules}
HERE: Final = Path(__file__).parent


def described() -> str:
    """Return the README with absolute links to this version, as an index of packages shows it."""
    project = tomllib.loads(HERE.joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]
    (version,) = re.findall(
        r'^__version__ = "(.+)"', HERE.joinpath("__init__.py").read_text("utf-8"), re.MULTILINE
    )
    source = project["urls"]["Source"]
    text = HERE.joinpath("README.md").read_text(encoding="utf-8")
    text = re.sub(r"(!\[[^]]*\]\()(?!https?:)", rf"\g<1>{source}/raw/v{version}/", text)
    text = text.replace("](#", f"]({source}/blob/v{version}/README.md#")
    return re.sub(r"\]\((?!https?:)", f"]({source}/blob/v{version}/", text)


README: Final = {"long_description": described(), "long_description_content_type": "text/markdown"}


def copied_modules(copy: Path) -> list[str]:
    """Copy what the hot modules import into a folder; return the hot ones as names from beside it."""
    shutil.rmtree(copy, ignore_errors=True)
    for folder in ("model", "proxy/si", "actors", "lockcheck"):
        shutil.copytree(folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for package in (copy, copy / "proxy"):
        package.joinpath("__init__.py").touch()
    found = {
        path.relative_to(copy).as_posix() for room in ROOMS for path in copy.joinpath(room).rglob("*.py")
    }
    modules = sorted(found - PURE | set(HOT))
    return [f"{copy.name}/{name}" for name in modules if not name.endswith("__init__.py")]


def compiled_modules() -> list[Extension]:
    """Translate the hot modules to C."""
    from mypyc.build import mypycify  # noqa: PLC0415 - a pure build has none

    files = copied_modules(COPY)
    options = ["--config-file=", "--explicit-package-bases", "--ignore-missing-imports"]
    target = str(Path("build/mypyc/c").absolute())
    with chdir(COPY.parent):
        return mypycify(
            [*options, *files],
            opt_level=os.environ.get("LICORNE_COMPILE_LEVEL", "2"),
            debug_level="0",
            multi_file=True,
            group_name="licorne",
            target_dir=target,
        )


if os.environ.get("LICORNE_COMPILE") == "1":
    # Without mypy this is the first of two runs, which only asks what has to be installed.
    modules = compiled_modules() if find_spec("mypyc") else []
    setup(cmdclass=COMMANDS, setup_requires=REQUIRES, ext_modules=modules, **README)
else:
    setup(cmdclass=COMMANDS, **README)
