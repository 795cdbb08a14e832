"""What the documents say is true: commands exist, tests that are named exist, links lead somewhere."""

import re
from pathlib import Path
from runpy import run_path
from xml.etree import ElementTree as ET

import pytest
from typer.main import get_group
from typer.testing import CliRunner

from bot.cli.main import main
from bot.domain.verbs import Verb
from bot.settings import Settings
from bot.tools.tool import Tool

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SVG = "{http://www.w3.org/2000/svg}"
README = (ROOT / "README.md").read_text()
DOCUMENTS = [
    ROOT / "README.md",
    *sorted(DOCS.glob("*.md")),
    *sorted((ROOT / ".github").glob("*.md")),
]


def test_the_first_screen_names_the_two_commands_and_make_has_them() -> None:
    first = README[: README.index("## Run it")]
    makefile = (ROOT / "Makefile").read_text()
    for command in ("demo", "test"):
        assert f"make {command}" in first
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)


def test_ci_runs_the_readmes_test_command() -> None:
    assert re.search(r"^if ! make test; then$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)


def test_every_nod_command_in_the_documents_exists() -> None:
    said = {
        match[1].strip()
        for document in DOCUMENTS
        for match in re.finditer(r"[`\n]nod ((?:[a-z]+ ?){1,2})", document.read_text())
    }
    assert "demo" in said
    for words in sorted(said):
        done = CliRunner().invoke(main, [*words.split(), "--help"])
        assert done.exit_code == 0, f"nod {words}: {done.output}"


def test_every_command_of_nod_is_on_the_page_of_commands() -> None:
    page = (DOCS / "command-line.md").read_text()
    commands = get_group(main).commands
    assert [name for name in commands if f"`nod {name}" not in page] == []


def test_the_readme_is_read_in_one_go() -> None:
    assert len(README.splitlines()) <= 170


def test_every_test_that_a_page_names_exists() -> None:
    named = {each for page in DOCUMENTS for each in re.findall(r"`(test_\w+)`", page.read_text())}
    source = "\n".join(
        path.read_text()
        for path in [*(ROOT / "tests").rglob("*.py"), *(ROOT / "bot" / "testing").glob("*.py")]
    )
    missing = sorted(n for n in named if f"def {n}(" not in source)
    assert missing == []


def test_each_requirement_of_the_standards_chapter_has_one_row_and_what_is_met_names_a_test() -> None:
    """The counts are those of chapter C9 of OWASP AISVS 1.0, section by section, with 9.5.7 of 1.01."""
    page = (DOCS / "security.md").read_text()
    rows = re.findall(r"^\| (9\.\d\.\d+) \|[^|]+\| (met|in part|not ours) \| (.+) \|$", page, re.MULTILINE)
    counted = {1: 3, 2: 10, 3: 8, 4: 4, 5: 7, 6: 3}
    assert [number for number, _, _ in rows] == [
        f"9.{section}.{each}" for section, many in counted.items() for each in range(1, many + 1)
    ]
    assert [number for number, stands, why in rows if stands == "met" and "`test_" not in why] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_to_a_file_leads_to_one(document: Path) -> None:
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_every_page_is_in_the_navigation_once() -> None:
    shown = re.findall(r"\]\((?!https?:)([\w./-]+\.md)\)", (DOCS / "README.md").read_text())
    assert len(shown) == len(set(shown))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"README.md"}
    assert pages - set(shown) == set()


def test_the_configuration_page_is_what_make_configuration_writes() -> None:
    page = run_path(str(DOCS / "configuration.py"))["page"]
    assert (DOCS / "configuration.md").read_text() == page((ROOT / ".env.example").read_text())
    named = re.findall(r"^\| `([A-Z_]+)`", (DOCS / "configuration.md").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(str(field.validation_alias) for field in Settings.model_fields.values())


def test_the_picture_of_the_concepts_is_text_and_asks_no_one_else() -> None:
    drawn = ET.parse(DOCS / "pictures" / "concepts.svg")  # noqa: S314 - our own
    named = {each.text for each in drawn.iter(f"{SVG}text") if each.get("class") == "name"}
    words = (DOCS / "concepts.md").read_text().lower()
    assert {name for name in named if name and name.lower() not in words} == set()
    assert not any("href" in key or "src" in key for each in drawn.iter() for key in each.attrib)


def test_the_readmes_tool_works_as_it_is_written() -> None:
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert code is not None
    made: dict[str, object] = {}
    exec(code[1], made)  # noqa: S102 - our own document
    tool = made["set_seats"]
    assert isinstance(tool, Tool)
    assert tool.validate({"city": "paris", "number": "4"}) == {"city": "paris", "number": 4}


async def test_the_pictures_of_cards_are_drawn_from_proposals_that_nod_made_and_ran(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    script = run_path(str(DOCS / "pictures.py"))
    gallery = run_path(str(DOCS / "gallery.py"))
    async with gallery["studio"]() as nod:
        [asked] = await nod.ask("set #6 to urgent and give it to Ben")
        waiting = await nod.card(asked)
        await nod.press(asked, Verb.APPROVE)
        done = await nod.card(asked)
    for draw in (script["post"], script["bubble"]):
        assert "Approve" in draw(waiting)
        assert "Details" in draw(done)
    assert (done.tool_name, done.outcome) == ("update_issue", "Approved by Ben.")
