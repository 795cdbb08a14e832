"""What `bot` offers those who write tools: public names that cost nothing until they are used."""

import re
import subprocess
import sys
from pathlib import Path

import bot
from bot.domain.preview import PreviewField
from bot.tools.decorator import tool

ROOT = Path(__file__).parent.parent
OF_TOOLS = {
    *(
        "CallContext",
        "File",
        "InverseCall",
        "Level",
        "PreviewField",
        "Ran",
        "Risk",
        "ToolError",
        "ToolOutput",
    ),
    *("TrialOutput", "tool"),
}
OF_CHANNELS = {
    *(
        "Actor",
        "Address",
        "ChannelError",
        "ChannelKind",
        "Command",
        "CopyGone",
        "GrantDuration",
        "GrantScope",
    ),
    *("Message", "NotDeliverable", "Platform", "Press", "StreamedMessage", "Verb", "card_text", "team_text"),
}
NAMES = OF_TOOLS | OF_CHANNELS


def test_the_public_names_are_the_inner_ones() -> None:
    assert (bot.tool, bot.PreviewField) == (tool, PreviewField)
    assert {name for name in dir(bot) if hasattr(bot, name)} >= NAMES
    assert not hasattr(bot, "nothing_of_that_name")


def test_the_names_types_and_the_document_say_the_same() -> None:
    stub = (ROOT / "bot" / "__init__.pyi").read_text()
    assert set(re.findall(r"import \w+ as (\w+)", stub)) == NAMES
    for page, names in (("tools", OF_TOOLS), ("plugins", OF_CHANNELS)):
        text = (ROOT / "docs" / f"{page}.md").read_text()
        said = re.search(r"What `bot` itself offers[^(]*\((.*?)\)", text, re.DOTALL)
        assert said is not None
        assert set(re.findall(r"`(\w+)`", said[1])) == names


def test_no_document_and_no_example_reaches_deeper() -> None:
    paths = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").rglob("*.py")]
    deep = [
        path.name
        for path in paths
        if re.search(r"^(from|import) bot\.(?!testing)", path.read_text(), re.MULTILINE)
    ]
    assert deep == []


def test_importing_it_loads_nothing() -> None:
    script = "import sys, bot; print(*(m for m in sys.modules if m.startswith(('bot', 'pydantic'))))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603 - our own
    assert run.stdout.strip() == "bot"
