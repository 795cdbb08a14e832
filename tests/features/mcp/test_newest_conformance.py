"""The public suite's scenarios of revision 2026-07-28 over Nod's tools, apart from those of tasks.

They are of the suite and the Node that ``test_tasks_conformance.py`` names. What does not apply is left out
below, with its reason.
"""

import asyncio
import re
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import pytest

from bot.domain.files import File
from bot.errors import ToolError
from bot.tools.call import ToolOutput
from bot.tools.decorator import tool
from bot.tools.tool import Tool
from tests.features.agents.kit import SETTINGS, make_agent
from tests.features.agents.test_files import PIXEL
from tests.features.mcp.test_tasks_conformance import NODE, SUITE, decide, with_token
from tests.web.conftest import Serve

REVISION = "2026-07-28"
PASSES = (
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "json-schema-2020-12",
    "server-sse-multiple-streams",
    "resources-list",
    "sep-2164-resource-not-found",
    "prompts-list",
    "caching",
    "http-header-validation",
    "input-required-result-unsupported-methods",
    "input-required-result-ignore-extra-params",
    "input-required-result-validate-input",
    "input-required-result-missing-input-response",
)
DIRECTLY = ("dns-rebinding-protection",)
"""Scenarios that come without a token, as a browser on the same machine would."""
IN_PART = {"server-stateless": ("ServerRejectsUndeclaredCapability", "MissingCapabilityHttp400")}
"""Scenarios of which some checks do not apply: these two want a tool that needs its client's model."""
NOT_HERE = {
    "tools-call-with-progress": "it wants three notices within a tenth of a second; Nod's come each 20 s",
    "completion-complete": "Nod has no prompts and no resources to complete",
    "resources-read-*": "Nod has no resources",
    "resources-templates-read": "the same",
    "prompts-get-*": "Nod has no prompts",
    "http-custom-header-server-validation": "Nod takes arguments from the body alone, and names no header",
    "input-required-result-basic-*": "a tool never asks its client: people answer in their chat",
    "input-required-result-request-state": "the same",
    "input-required-result-multi*": "the same",
    "input-required-result-non-tool-request": "the same",
    "input-required-result-result-type": "the same",
    "input-required-result-tampered-state": "the same",
    "input-required-result-capability-check": "the same",
}
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SUITE, reason="the suite of this revision is not installed"),
]


def make_fixtures() -> tuple[Tool, ...]:
    @tool(writes=False)
    async def test_simple_text() -> str:
        """Say something."""
        return "This is a simple text response for testing."

    @tool(writes=False)
    async def test_image_content() -> ToolOutput:
        """Show a picture."""
        return ToolOutput("A picture.", files=(File("pixel.png", "", PIXEL, "image/png"),))

    @tool(writes=False)
    async def test_audio_content() -> ToolOutput:
        """Play a sound."""
        return ToolOutput("A sound.", files=(File("tone.wav", "", b"RIFF", "audio/wav"),))

    @tool(writes=False)
    async def test_embedded_resource() -> ToolOutput:
        """Give a file."""
        return ToolOutput("A file.", files=(File("file.txt", "This is an embedded resource content."),))

    @tool(writes=False)
    async def test_multiple_content_types() -> ToolOutput:
        """Give several."""
        picture = File("pixel.png", "", PIXEL, "image/png")
        return ToolOutput("Several.", files=(picture, File("data.json", '{"test": "data", "value": 123}')))

    @tool(writes=False)
    async def test_error_handling() -> str:
        """Fail."""
        raise ToolError("This tool intentionally returns an error for testing")

    @tool(writes=False)
    async def json_schema_2020_12_tool() -> str:
        """Take what a schema of 2020-12 describes."""
        return "taken"

    described = replace(json_schema_2020_12_tool, parameters=SCHEMA)
    return (
        test_simple_text,
        test_image_content,
        test_audio_content,
        test_embedded_resource,
        test_multiple_content_types,
        test_error_handling,
        described,
    )


async def run_scenario(url: str, scenario: str) -> tuple[int, str]:
    running = await asyncio.create_subprocess_exec(
        NODE, SUITE, "server", "--url", url, "--scenario", scenario, "--spec-version", REVISION,
        "--timeout", "60000", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await running.communicate()
    return running.returncode or 0, said.decode()


async def run_as_agent(serve: Serve, scenario: str) -> tuple[int, str]:
    settings: dict[str, Any] = {**SETTINGS, "NOD_MAX_AGENT_CALLS": 1000, "NOD_AGENT_WAIT": 0}
    async with serve(tools=make_fixtures(), patience=200, **settings) as nod:
        deciding = asyncio.create_task(decide(nod))
        async with with_token(nod, await make_agent(nod)) as url:
            found = await run_scenario(url, scenario)
        deciding.cancel()
        await asyncio.wait([deciding])
    return found


@pytest.mark.parametrize("scenario", PASSES)
async def test_an_agent_passes_the_scenario(serve: Serve, scenario: str) -> None:
    code, said = await run_as_agent(serve, scenario)
    assert code == 0, said


@pytest.mark.parametrize("scenario", DIRECTLY)
async def test_without_a_token_the_scenario_passes(serve: Serve, scenario: str) -> None:
    async with serve(patience=200) as nod:
        code, said = await run_scenario(f"{nod.url}/mcp", scenario)
    assert code == 0, said


@pytest.mark.parametrize("scenario", IN_PART)
async def test_of_a_scenario_an_agent_passes_all_that_applies(serve: Serve, scenario: str) -> None:
    _, said = await run_as_agent(serve, scenario)
    failed = re.findall(r"^\s*- (\w+): ", said.partition("=== Failed Checks ===")[2], re.MULTILINE)
    assert set(failed) == set(IN_PART[scenario]), said


async def test_every_scenario_of_the_revision_runs_or_has_its_reason() -> None:
    listing = await asyncio.create_subprocess_exec(NODE, SUITE, "list", stdout=asyncio.subprocess.PIPE)
    said, _ = await listing.communicate()
    server, _ = said.decode().split("Client scenarios", 1)
    named = re.findall(rf"^  - (\S+) \[[^\]]*{REVISION}[^\]]*\]", server, re.MULTILINE)
    left = {each for each in named if not any(fnmatchcase(each, pattern) for pattern in NOT_HERE)}
    assert left == {*PASSES, *DIRECTLY, *IN_PART}
