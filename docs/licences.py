# ruff: noqa: INP001 - a script, not a package
"""Write docs/licences.md: what Nod needs to run, each with the licence that the installed package states."""

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

_HEAD = """\
# Licences of the libraries

Nod itself is under the MIT licence. This is what `pip install 'nod-approvals[postgres]'` brings along, made
by `make licences` from what the packages say of themselves; the versions are in `constraints.txt`. The LGPL
lets Nod use such a library as it is and lets you replace it. The libraries of the console have their licences
next to them, in `bot/channels/http/static/vendor/`.

| package | licence |
|---|---|
"""


def needed(name: str, extras: tuple[str, ...] = ()) -> dict[str, Distribution]:
    """The installed packages that one needs to run, by name, with what they need in turn."""
    found: dict[str, Distribution] = {}

    def look(name: str, extras: frozenset[str]) -> None:
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in found:
            return
        found[key] = distribution(name)
        for each in map(Requirement, found[key].requires or ()):
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                look(each.name, frozenset(each.extras))

    look(name, frozenset(extras))
    return found


def licence(package: Distribution) -> str:
    """As its metadata states it, else the first line of its licence file."""
    said = package.metadata
    known = [each.rpartition(" :: ")[2] for each in said.get_all("Classifier", ()) if "License ::" in each]
    stated = said["License-Expression"] or "; ".join(known) or said["License"]
    return stated or next(_titles(package), "")


def _titles(package: Distribution) -> Iterator[str]:
    for name in package.metadata.get_all("License-File", ()):
        for file in package.files or ():
            if file.name == Path(name).name:
                yield file.read_text().splitlines()[0].strip()


def table() -> str:
    packages = needed("nod-approvals", ("postgres",))
    del packages["nod-approvals"]
    rows = "".join(f"| {name} | {licence(package)} |\n" for name, package in sorted(packages.items()))
    return _HEAD + rows


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(table())
