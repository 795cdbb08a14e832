# ruff: noqa: INP001 - a script, not a package
"""Write docs/licences.md: what Nod needs to run, each with the licence that the installed package states."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement

_PROJECT = Path(__file__).parent.parent / "pyproject.toml"
_HEAD = """\
# Licences of the libraries

Nod itself is under the MIT licence. This is what `pip install 'nod-approvals[all]'` brings along, made
by `make licences` from what the packages say of themselves; the versions are in `constraints.txt`. The LGPL
lets Nod use such a library as it is and lets you replace it. The libraries of the console have their licences
next to them, in `bot/web/static/vendor/`.

| package | licence |
|---|---|
"""


def needed(*extras: str) -> dict[str, Distribution]:
    """The installed packages that Nod needs to run, by name, with what they need in turn.

    What Nod itself asks for is read from pyproject.toml: an installation may be older than that.
    """
    project = tomllib.loads(_PROJECT.read_text())["project"]
    found: dict[str, Distribution] = {}

    def asked(extras: Iterable[str]) -> Iterator[Requirement]:
        for each in map(Requirement, chain(*(project["optional-dependencies"][extra] for extra in extras))):
            yield from asked(each.extras) if each.name == project["name"] else [each]

    def look(wanted: Iterable[Requirement], extras: Iterable[str]) -> None:
        for each in wanted:
            if each.marker and not any(each.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                continue
            key = re.sub(r"[-_.]+", "-", each.name).lower()
            if key not in found:
                found[key] = distribution(each.name)
                look(map(Requirement, found[key].requires or ()), each.extras)

    look([*map(Requirement, project["dependencies"]), *asked(extras)], ())
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
    packages = needed("all")
    rows = "".join(f"| {name} | {licence(package)} |\n" for name, package in sorted(packages.items()))
    return _HEAD + rows


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(table())
