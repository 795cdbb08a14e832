"""The console's scripts as one file, which a new tab loads in place of some forty.

`bundle` joins JavaScript modules by text. A module becomes a function whose result has its exports, and an
import becomes a ``const`` with names from that result. `bundle` knows the forms of import and export that the
console's modules have, and refuses any other form. An exported ``const`` declares one name.
"""

import re
from pathlib import Path

_IMPORT = re.compile(  # import { a, b as c } from "./x.js"; or: import * as x from … or: import x from …
    r'^import (?:\{ (?P<names>[^}]+) \}|\* as (?P<whole>\w+)|(?P<default>\w+)) from "(?P<path>\./[^"]+)";$',
    re.MULTILINE,
)
_EXPORT = re.compile(  # the word of: export function f() …, export const c = …, export class C …
    r"^export (?=(?:async )?(?:function\*?|const|class) (\w+))", re.MULTILINE
)
_EXPORT_LIST = re.compile(r"^export \{ (.+) \};$", re.MULTILINE)  # export { a, b as c };
_NAME_AS = re.compile(r"(\S+) as (\S+)")  # b as c
_UNKNOWN_STATEMENT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)  # left after all replacements


def bundle(entry: Path) -> str:
    """Return the module with all that it imports as one script.

    Each module becomes a function that is called once, after the functions of the modules that it imports,
    and returns its exports. Raises ValueError where a module has an unknown statement, or imports itself by
    way of others.
    """
    joined: dict[Path, str] = {}
    _join(entry.resolve(), joined, ())
    return "\n".join(joined.values())


def _join(path: Path, joined: dict[Path, str], importers: tuple[Path, ...]) -> None:
    """Add a module to ``joined``, after all that it imports. ``importers``: the modules that led to it."""
    if path in importers:
        raise ValueError(f"{path.name}: it imports itself by a detour")
    if path in joined:
        return
    if any(_name_variable(other) == _name_variable(path) for other in joined):
        raise ValueError(f"{path.name}: another module has this name")
    text = path.read_text(encoding="utf-8")
    for statement in _IMPORT.finditer(text):
        _join((path.parent / statement["path"]).resolve(), joined, (*importers, path))
    joined[path] = _wrap(path, text)


def _wrap(path: Path, text: str) -> str:
    """Return a module as ``const module_x = (() => { … return { a, c: b }; })();``."""
    exported = _EXPORT.findall(text)
    for names in _EXPORT_LIST.findall(text):
        exported += [_NAME_AS.sub(r"\2: \1", name) for name in names.split(", ")]
    text = _IMPORT.sub(lambda statement: _write_const(path, statement), text)
    text = _EXPORT.sub("", _EXPORT_LIST.sub("", text))
    unknown = _UNKNOWN_STATEMENT.search(text)
    if unknown:
        raise ValueError(f"{path.name}: a statement that is not known here: {unknown[0]}")
    beginning = f"const {_name_variable(path)} = (() => {{ // {path.name}"
    end = f"return {{ {', '.join(exported)} }};\n}})();"
    return f"{beginning}\n{text}\n{end}"


def _write_const(path: Path, statement: re.Match[str]) -> str:
    """Return the statement in place of an import: ``const { a, b: c } = module_x;``."""
    other = _name_variable(path.parent / statement["path"])
    if statement["names"]:
        return f"const {{ {statement['names'].replace(' as ', ': ')} }} = {other};"
    if statement["whole"]:
        return f"const {statement['whole']} = {other};"
    return f"const {{ default: {statement['default']} }} = {other};"


def _name_variable(path: Path) -> str:
    return "module_" + re.sub(r"\W", "_", path.stem)
