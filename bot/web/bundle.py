"""The console's scripts as one file: a new tab loads it in place of some forty.

It knows the forms of import and export in the console's modules, and refuses any other form.
"""

import re
from pathlib import Path

_IMPORT = re.compile(
    r'^import (?:\{ (?P<names>[^}]+) \}|\* as (?P<whole>\w+)|(?P<default>\w+)) from "(?P<path>\./[^"]+)";$',
    re.MULTILINE,
)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|const|class) (\w+))", re.MULTILINE)
_EXPORTS = re.compile(r"^export \{ (.+) \};$", re.MULTILINE)
_NAMED = re.compile(r"(\S+) as (\S+)")
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def bundle(entry: Path) -> str:
    """Return a script that does what the module does, with all that it imports.

    Each module becomes a function that is called once, after the modules that it imports, and returns its
    exports. Raises ValueError where a module has an unknown statement, or imports itself by way of others.
    """
    joined: dict[Path, str] = {}
    _join(entry.resolve(), joined, ())
    return "\n".join(joined.values())


def _join(path: Path, joined: dict[Path, str], importers: tuple[Path, ...]) -> None:
    if path in importers:
        raise ValueError(f"{path.name}: it imports itself by a detour")
    if path in joined:
        return
    text = path.read_text(encoding="utf-8")
    for statement in _IMPORT.finditer(text):
        _join((path.parent / statement["path"]).resolve(), joined, (*importers, path))
    joined[path] = _wrap(path, text)


def _wrap(path: Path, text: str) -> str:
    exported = _EXPORT.findall(text)
    for names in _EXPORTS.findall(text):
        exported += [_NAMED.sub(r"\2: \1", name) for name in names.split(", ")]
    text = _IMPORT.sub(lambda statement: _take(path, statement), text)
    text = _EXPORT.sub("", _EXPORTS.sub("", text))
    other = _OTHER.search(text)
    if other:
        raise ValueError(f"{path.name}: a statement that is not known here: {other[0]}")
    begin = f"const {_variable(path)} = (() => {{ // {path.name}"
    end = f"return {{ {', '.join(exported)} }};\n}})();"
    return f"{begin}\n{text}\n{end}"


def _take(path: Path, statement: re.Match[str]) -> str:
    """Return the statement that takes the imported names from the other module's exports."""
    other = _variable(path.parent / statement["path"])
    if statement["names"]:
        return f"const {{ {statement['names'].replace(' as ', ': ')} }} = {other};"
    if statement["whole"]:
        return f"const {statement['whole']} = {other};"
    return f"const {{ default: {statement['default']} }} = {other};"


def _variable(path: Path) -> str:
    return "module_" + re.sub(r"\W", "_", path.stem)
