"""Locks that a program made before its locks were adopted are checked where that is safe, else named."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from support.lockcheck.pytest_runs import run_module

from licorne.lockcheck import Session, adopt, session
from licorne.lockcheck.adoption.adopted import is_adopted
from licorne.lockcheck.sessions.session import text_report

pytestmark = pytest.mark.lockcheck(off=True)
"""Sessions are opened here."""

SHOP: Final = """
import threading
PLAIN, REENTRANT = threading.Lock(), threading.RLock()
class Store:
    OF_CLASS = threading.Lock()
    def __init__(self):
        self.of_instance = threading.Lock()
store = Store()
"""
WATCHED: Final = ("PLAIN", "REENTRANT", "Store.OF_CLASS", "store.of_instance")
NOT_WATCHED: Final = {
    "held": ("LOCK = threading.Lock(); LOCK.acquire()", ("LOCK",)),
    "held, re-entrant": ("LOCK = threading.RLock(); LOCK.acquire()", ("LOCK",)),
    "in a list": ("LOCK = threading.Lock(); ALL = [LOCK]", ("LOCK",)),
    "default": ("def f(lock=threading.Lock()): pass", ("f(lock)",)),
    "default by name": ("def f(*, lock=threading.Lock()): pass", ("f(lock)",)),
    "default of a method": (
        "class A:\n @staticmethod\n def f(lock=threading.Lock()): pass",
        ("A.f(lock)",),
    ),
    "in a closure": ("def make(lock):\n return lambda: lock\nf = make(threading.Lock())", ("f(lock)",)),
    "of a condition": ("COND = threading.Condition()", ("COND",)),
    "with a condition": ("LOCK = threading.Lock(); COND = threading.Condition(LOCK)", ("LOCK", "COND")),
}


@pytest.fixture
def shop() -> Iterator[ModuleType]:
    """Yield an empty module that is imported, and that is gone after the test."""
    module = sys.modules["shop_of_test"] = ModuleType("shop_of_test")
    module.__file__ = __file__
    try:
        yield module
    finally:
        del sys.modules["shop_of_test"]


def fill(module: ModuleType, text: str) -> None:
    """Execute code as that of a module."""
    exec(f"import threading\n{text}", module.__dict__)  # noqa: S102 - it is written here


def lock_at(module: ModuleType, path: str) -> Any:
    """Return what a module has under a dotted name."""
    thing: Any = module
    for name in path.split("."):
        thing = getattr(thing, name)
    return thing


@pytest.fixture
def adopt_shop() -> Iterator[Callable[[], Session]]:
    """Return a function that adopts the locks of the module until the test ends."""
    with ExitStack() as opened:

        def begin() -> Session:
            checked = opened.enter_context(session(level="full"))
            opened.enter_context(adopt("shop_of_test"))
            return checked

        yield begin


@pytest.mark.parametrize("path", WATCHED)
def test_a_free_lock_with_a_name_is_checked(
    shop: ModuleType, adopt_shop: Callable[[], Session], path: str
) -> None:
    fill(shop, SHOP)
    plain = lock_at(shop, path)
    kind = type(plain)
    del plain

    opened = adopt_shop()

    assert is_adopted(lock_at(shop, path))
    assert isinstance(lock_at(shop, path), kind)
    assert opened.summary().unwatched == ()


def test_orders_over_locks_that_existed_are_found_under_their_names(shop: ModuleType) -> None:
    fill(shop, SHOP)

    with session(level="full") as opened, adopt("shop_of_test"):
        with lock_at(shop, "PLAIN"), lock_at(shop, "store.of_instance"):
            pass
        with lock_at(shop, "Store.OF_CLASS"), lock_at(shop, "REENTRANT"), lock_at(shop, "REENTRANT"):
            pass

    assert {(edge.held, edge.wanted) for edge in opened.summary().class_edges} == {
        ("shop_of_test.PLAIN", "Store.of_instance"),
        ("Store.OF_CLASS", "shop_of_test.REENTRANT"),
    }


def test_a_lock_with_two_names_stays_one_lock(shop: ModuleType, adopt_shop: Callable[[], Session]) -> None:
    fill(shop, "LOCK = SAME = threading.Lock()")

    adopt_shop()

    assert is_adopted(shop.LOCK)
    assert shop.LOCK is shop.SAME


def test_a_thread_that_has_loaded_the_plain_lock_excludes_the_others(
    shop: ModuleType, adopt_shop: Callable[[], Session]
) -> None:
    """It took the plain lock from its name just before: both are one lock."""
    fill(shop, "LOCK = threading.Lock()")
    watched: list[bool] = []
    plain_lock = shop.LOCK
    numbers = id(plain_lock)
    del plain_lock

    adopt_shop()
    plain = shop.LOCK._plain
    with plain:
        watched.append(shop.LOCK.acquire(blocking=False))

    assert id(plain) == numbers
    assert watched == [False]


@pytest.mark.parametrize("case", NOT_WATCHED)
def test_any_other_lock_stays_and_is_named(
    shop: ModuleType, adopt_shop: Callable[[], Session], case: str
) -> None:
    text, names = NOT_WATCHED[case]
    fill(shop, text)
    before = dict(shop.__dict__)

    summary = adopt_shop().summary()

    assert summary.unwatched == tuple(f"shop_of_test.{name}" for name in names)
    assert shop.__dict__ == before
    assert f"existed before lockcheck: {', '.join(summary.unwatched)}." in text_report(summary)


def test_a_text_names_few_of_many(shop: ModuleType, adopt_shop: Callable[[], Session]) -> None:
    fill(shop, "LOCKS = [threading.Lock() for _ in range(8)]\nA, B, C, D, E, F, G, H = LOCKS")

    summary = adopt_shop().summary()

    assert len(summary.unwatched) == 8
    assert "Not watched: 8 locks that existed before lockcheck: shop_of_test.A" in text_report(summary)
    assert "and 3 more, see the reports." in text_report(summary)


def test_the_plain_locks_come_back_when_adoption_ends(shop: ModuleType) -> None:
    """But not where the program has put another lock meanwhile."""
    fill(shop, SHOP)
    with session(level="full"), adopt("shop_of_test"):
        put = lock_at(shop, "store").of_instance = threading.Lock()

    kinds = {type(lock_at(shop, path)) for path in WATCHED[:3]}
    assert kinds == {type(threading.Lock()), type(threading.RLock())}
    assert lock_at(shop, "store.of_instance") is put
    with lock_at(shop, "PLAIN"), lock_at(shop, "REENTRANT"):
        pass


def test_only_modules_of_the_scope_are_looked_at(shop: ModuleType) -> None:
    fill(shop, SHOP)

    with session(level="full") as opened, adopt("another"):
        pass

    assert not is_adopted(shop.PLAIN)
    assert opened.summary().unwatched == ()


def test_no_code_of_the_program_runs_for_it(shop: ModuleType, adopt_shop: Callable[[], Session]) -> None:
    """Objects that compute their attributes, as proxies do, are left alone."""
    fill(
        shop,
        "RAN = []\n"
        "class Proxy:\n"
        " @property\n"
        " def __dict__(self): RAN.append('dict')\n"
        " @property\n"
        " def __class__(self): RAN.append('class')\n"
        " def __getattr__(self, name): RAN.append(name)\n"
        " def __eq__(self, other): RAN.append('eq')\n"
        "proxy = Proxy()\n",
    )

    adopt_shop()

    assert shop.RAN == []


def test_nothing_is_looked_for_where_nothing_is_checked(shop: ModuleType) -> None:
    fill(shop, SHOP)

    with adopt("shop_of_test"):
        pass

    assert type(shop.PLAIN) is type(threading.Lock())


def test_pytest_checks_what_another_plugin_has_imported_and_names_the_rest(tmp_path: Path) -> None:
    """Plugins that the command line names are loaded before anything is adopted."""
    (tmp_path / "shop.py").write_text(f"{SHOP}\nHELD = threading.Lock()\nKEPT = [HELD]\n", encoding="utf-8")
    module = """
import shop
def test_one_way():
    with shop.PLAIN, shop.REENTRANT:
        pass
def test_the_other_way():
    with shop.REENTRANT, shop.PLAIN:
        pass
"""

    adopted = ("--lockcheck=full", "--lockcheck-adopt=shop", "--lockcheck-json=found.json")
    _, said = run_module(tmp_path, module, "-p", "shop", *adopted)

    document = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert "Not watched: 1 lock that existed before lockcheck: shop.HELD." in said
    assert document["unwatched"] == ["shop.HELD"]
    assert {(edge["held"], edge["wanted"]) for edge in document["nestings"]} == {
        ("shop.PLAIN", "shop.REENTRANT"),
        ("shop.REENTRANT", "shop.PLAIN"),
    }
