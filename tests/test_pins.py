"""Every library that is installed has one version and hashes, and the files of `make pins` agree."""

import re
import tomllib
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
FILES = {path.stem: path.read_text() for path in (ROOT / "requirements").glob("*.txt")}
LINE = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


def name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def pins(text: str) -> set[tuple[str, str]]:
    return {(name(found[0]), found[1]) for found in LINE.findall(text)}


PINNED = pins((ROOT / "constraints.txt").read_text())


def asked(*extras: str, groups: tuple[str, ...] = ()) -> list[Requirement]:
    """What pyproject.toml asks for, with its own extras unfolded."""
    project = PROJECT["project"]
    texts = list(project["dependencies"] if extras else [])
    for extra in extras:
        texts += project["optional-dependencies"][extra]
    for group in groups:
        texts += PROJECT["dependency-groups"][group]
    found = [Requirement(text) for text in texts]
    own = [each for each in found if each.name == project["name"]]
    return [
        *(each for each in found if each.name != project["name"]),
        *(inner for each in own for inner in asked(*each.extras)),
    ]


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        ("run", asked("all", groups=("build",))),
        ("dev", asked("dev", groups=("build",))),
        ("evaluation", asked("evaluation", groups=("build",))),
        ("upkeep", asked(groups=("upkeep",))),
    ],
    ids=("run", "dev", "evaluation", "upkeep"),
)
def test_what_the_project_asks_for_is_pinned_with_hashes(file: str, wanted: list[Requirement]) -> None:
    versions = pins(FILES[file])
    missing = [
        str(each)
        for each in wanted
        if not any(name(each.name) == pin and each.specifier.contains(version) for pin, version in versions)
    ]
    assert missing == [], "run `make pins`"
    assert versions <= PINNED, "run `make pins`"


@pytest.mark.parametrize("file", FILES)
def test_every_pin_has_hashes_and_names_no_place_to_fetch_it_from(file: str) -> None:
    parts = LINE.split(FILES[file])[3::3]
    assert len(parts) == len(LINE.findall(FILES[file])) > 0
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", part) for part in parts)
    assert "://" not in FILES[file]


def test_all_extras_are_in_one() -> None:
    offered = PROJECT["project"]["optional-dependencies"].keys() - {"all", "adapters", "dev", "evaluation"}
    assert {str(each) for each in asked("all")} == {str(each) for each in asked(*offered)}


def test_what_is_installed_for_the_tests_is_what_is_pinned_for_them() -> None:
    needed = run_path(str(ROOT / "docs" / "licences.py"))["needed"]
    installed = set(needed("dev"))
    assert installed - {pin for pin, _ in pins(FILES["dev"])} == set(), "run `make pins`"
