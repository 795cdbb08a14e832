"""Libraries are used by their documented API: nothing private, no class not meant to be subclassed."""

import ast
import functools
import importlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.test_staircase import ROOT

pytestmark = pytest.mark.slow

FILES = (*sorted((ROOT / "bot").rglob("*.py")), *sorted((ROOT / "tests" / "kit").rglob("*.py")))
OURS = ("bot", "tests", "nod_client")
DOCUMENTED = frozenset({"_replace", "_asdict", "_fields", "_make", "_mapping", "_exit"})
"""Of named tuples, SQLAlchemy's rows and `os`."""
CLOSED = {
    "sqlalchemy": {"Connection", "Session"},
    "sqlmodel": {"Session"},
    "psycopg": {"Connection", "AsyncConnection"},
    "uvicorn": {"H11Protocol", "HttpToolsProtocol", "WSProtocol", "WebSocketProtocol"},
    "typer": {"TyperCommand"},
    "fastapi": {"FastAPI", "APIRoute"},
    "procrastinate": {"JobManager"},
}
"""By library: classes that are not offered for subclassing.

Typer's group is: Click's documents have a subclass of ``Group`` load commands when they are called, and
``cls=`` hands Typer such a class.
"""
UNDOCUMENTED = ("fastapi.dependencies", "uvicorn.protocols", "uvicorn.server")
"""Modules without an underscore that are not part of a documented API."""


@functools.cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}


def private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in DOCUMENTED


def imported(tree: ast.Module) -> dict[str, str]:
    """By its name in a file: what was imported, in full, of libraries alone."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.asname or each.name.partition(".")[0]: each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return {name: whole for name, whole in found.items() if whole.partition(".")[0] not in OURS}


def whole_name(node: ast.expr, names: dict[str, str]) -> str:
    """``library.module.Name`` of an expression; empty where it is of no library."""
    if isinstance(node, ast.Subscript):
        return whole_name(node.value, names)
    if isinstance(node, ast.Attribute):
        before = whole_name(node.value, names)
        return f"{before}.{node.attr}" if before else ""
    return names.get(node.id, "") if isinstance(node, ast.Name) else ""


@functools.cache
def classes() -> dict[str, list[ast.ClassDef]]:
    """All classes of ours, by name."""
    found: dict[str, list[ast.ClassDef]] = {}
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(node)
    return found


@functools.cache
def own_names(made: ast.ClassDef) -> set[str]:
    """What a class and those of its bases that are ours define or set."""
    found = {*inherited(made)}
    for node in ast.walk(made):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__":
            found |= set(ast.literal_eval(node.value))
    return found


@functools.cache
def inherited(made: ast.ClassDef) -> set[str]:
    """The same of its bases alone."""
    bases = (base.value if isinstance(base, ast.Subscript) else base for base in made.bases)
    ours = (each for base in bases if isinstance(base, ast.Name) for each in classes().get(base.id, ()))
    return {name for each in ours for name in own_names(each)}


def private_attributes(tree: ast.Module) -> Iterator[str]:
    """Those that no class of ours sets, by `self` and `super()` as well."""
    inside: dict[ast.AST, ast.ClassDef] = {}
    for node in ast.walk(tree):  # an inner class comes after the one it stands in
        if isinstance(node, ast.ClassDef):
            inside |= dict.fromkeys(ast.walk(node), node)
    here = {name for made in {*inside.values()} for name in own_names(made)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and private(node.attr):
            made = inside.get(node)
            match node.value:
                case ast.Name(id="self" | "cls"):
                    known = own_names(made) if made else set()
                case ast.Call(func=ast.Name(id="super")):
                    known = inherited(made) if made else set()
                case _:
                    known = here
            if node.attr not in known:
                yield ast.unparse(node)


def private_words(tree: ast.Module) -> Iterator[str]:
    """The same by their names in a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("attr"):
            words = [each.value for each in node.args if isinstance(each, ast.Constant)]
            if any(isinstance(word, str) and private(word) for word in words):
                yield ast.unparse(node)


def private_imports(tree: ast.Module) -> Iterator[str]:
    for whole in imported(tree).values():
        if any(private(part) for part in whole.split(".")) or whole.startswith(UNDOCUMENTED):
            yield whole


def closed_bases(tree: ast.Module) -> Iterator[str]:
    names = imported(tree)
    for node in ast.walk(tree):
        for base in node.bases if isinstance(node, ast.ClassDef) else ():
            library, _, rest = whole_name(base, names).partition(".")
            if rest.rpartition(".")[2] in CLOSED.get(library, ()):
                yield f"{node.name}({ast.unparse(base)})"


def private_overrides(tree: ast.Module) -> Iterator[str]:
    """Methods that take the place of a library's private one."""
    names = imported(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            functions = [
                each for each in node.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
            ]
            for name in filter(private, (each.name for each in functions)):
                theirs = (whole for base in node.bases if (whole := whole_name(base, names)))
                if any(hasattr(loaded(whole), name) for whole in theirs):
                    yield f"{node.name}.{name}"


def loaded(whole: str) -> object:
    """What a full name stands for; None where it is no longer there."""
    module, _, name = whole.rpartition(".")
    return getattr(importlib.import_module(module), name, None) if module else None


def tables_of_others(tree: ast.Module) -> Iterator[str]:
    """SQL of ours over Procrastinate's tables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "procrastinate_" in node.value:
            yield node.value.strip().partition("\n")[0]


CHECKS = (
    private_attributes,
    private_words,
    private_imports,
    closed_bases,
    private_overrides,
    tables_of_others,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_libraries_are_entered_by_the_front_door(check: Callable[[ast.Module], Iterator[str]]) -> None:
    found = {f"{path.relative_to(ROOT)}: {each}" for path, tree in trees().items() for each in check(tree)}
    assert found == set()


BACK_DOORS = """
import psycopg, fastapi, sqlalchemy as sa
from fastapi.dependencies.utils import get_flat_params
from json import _default_decoder
from sqlmodel import Session

class Over(Session):
    def look(self): return self._new, super()._flush, getattr(self, "_deleted")
    def _flush(self, objects=None): ...

class Site(fastapi.FastAPI): ...
class Line(psycopg.Connection[int]): ...
class Fine:
    def __init__(self, row): self._known = row._mapping
    def same(self, other): return self._known == other._known

sa.select()._where_criteria
_JOBS = "SELECT id FROM procrastinate_jobs"
"""


def test_each_back_door_is_seen() -> None:
    found = {each for check in CHECKS for each in check(ast.parse(BACK_DOORS))}
    assert found == {
        "self._new",
        "super()._flush",
        "getattr(self, '_deleted')",
        "Over._flush",
        "sa.select()._where_criteria",
        "fastapi.dependencies.utils.get_flat_params",
        "json._default_decoder",
        "Over(Session)",
        "Site(fastapi.FastAPI)",
        "Line(psycopg.Connection[int])",
        "SELECT id FROM procrastinate_jobs",
    }
