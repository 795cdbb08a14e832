"""What contributors meet: the hooks run what the check runs, and the forms are ones that GitHub can show."""

import re
import tomllib
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
import yaml

from bot import __version__

ROOT = Path(__file__).parent.parent


def test_the_hooks_run_the_tools_of_make_lint():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = {hook["entry"].removeprefix(".venv/bin/") for repo in config["repos"] for hook in repo["hooks"]}
    makefile = (ROOT / "Makefile").read_text()
    lint = makefile[makefile.index("\nlint:") : makefile.index("\nfix:")]
    tools = {
        line.removeprefix("\t@$(BIN)/").removesuffix(" .")
        for line in lint.splitlines()
        if "$(BIN)" in line
        and "pytest" not in line  # those tests read all of the source: too slow for a hook
    }
    assert {" ".join(tool.split()[:2]) for tool in tools} == {hook.removesuffix(" --fix") for hook in hooks}


def test_each_issue_form_asks_questions_with_names_of_their_own():
    for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")):
        form: dict[str, Any] = yaml.safe_load(path.read_text())
        assert {"name", "description", "body"} <= form.keys()
        asked = [part for part in form["body"] if part["type"] != "markdown"]
        assert {part["type"] for part in asked} <= {"textarea", "input", "dropdown", "checkboxes"}
        assert (
            len({part["id"] for part in asked})
            == len({part["attributes"]["label"] for part in asked})
            == len(asked)
        )


def test_the_notes_of_a_release_are_its_part_of_the_changelog():
    notes = run_path(str(ROOT / "docs" / "notes.py"))["notes"]
    changelog = (
        "# Changelog\n\n## [2.0.0]\n- New.\n\n## [1.0.0] - 2026-11-22\n\n### Added\n- [A](docs/a.md) page.\n"
    )
    assert notes(changelog, "1.0.0") == "### Added\n- A page."
    assert notes(changelog) == "- New."
    with pytest.raises(LookupError, match=r"no \[9\]. It has: 2.0.0, 1.0.0"):
        notes(changelog, "9")


def test_the_changelog_begins_with_this_release_and_is_read_in_two_screens():
    text = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## \[(.*?)\]", text, re.MULTILINE)
    assert headings[0] == __version__
    assert len(headings) == len(set(headings))
    newest = run_path(str(ROOT / "docs" / "notes.py"))["notes"](text)
    assert len(newest.splitlines()) <= 110, "lines came back in a merge: keep the file of main, add your own"


def test_the_client_has_the_version_of_nod():
    project = (ROOT / "clients" / "python" / "pyproject.toml").read_text()
    assert tomllib.loads(project)["project"]["version"] == __version__
