"""docs/front-ends.md is true: its commands and its program run, and its page fits the libraries it names."""

import asyncio
import json
import os
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.kit import FakeClock
from tests.web.conftest import CHIEF, TOKENS, Serve, Served
from tests.web.scripted import ScriptedModel, ask, say
from tests.web.test_agui import interrupts, ran
from tests.web.test_agui_client import NODE, ROOT

pytestmark = pytest.mark.slow

TEXT = (ROOT / "docs" / "front-ends.md").read_text()
PACKAGES = NODE / "node_modules"
ADMIN = {"NOD_HTTP_TOKENS": TOKENS, "NOD_ADMINS": ("http:chief",), "token": CHIEF, "patience": 120}


def block(language: str) -> str:
    [found] = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    return found


def milk() -> ScriptedModel:
    return ScriptedModel(ask(("keep", {"text": "milk"})), say("Kept."))


async def printed(nod: Served, folder: Path, *command: str) -> str:
    running = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "NOD_URL": nod.url, "NOD_TOKEN": CHIEF},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await running.communicate()
    assert (running.returncode, err.decode()) == (0, ""), out.decode()
    return out.decode()


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="needs curl and jq")
async def test_its_commands_say_something_approve_and_read_the_answer(serve: Serve, tmp_path: Path):
    async with serve(model=milk(), **ADMIN) as nod:
        assert await printed(nod, tmp_path, "sh", "-euc", block("sh")) == "Keep the note “milk”\nKept."
        assert nod.notes.kept == ["milk"]


@pytest.mark.skipif(
    not (shutil.which("node") and (PACKAGES / "@ag-ui/client").is_dir()), reason="needs node and its package"
)
async def test_its_program_says_something_approves_and_prints_the_answer(
    serve: Serve, tmp_path: Path, clock: FakeClock
):
    clock.now = datetime.now(UTC)  # the client looks whether an interrupt has expired
    (tmp_path / "front-end.mjs").write_text(block("js"))
    (tmp_path / "node_modules").symlink_to(PACKAGES)
    async with serve(model=milk(), **ADMIN) as nod:
        assert await printed(nod, tmp_path, "node", "front-end.mjs") == "Keep the note “milk”\nKept.\n"


@pytest.mark.skipif(
    not ((PACKAGES / "@assistant-ui/react-ag-ui").is_dir() and (PACKAGES / "typescript").is_dir()),
    reason="needs the packages that the page names, and typescript",
)
async def test_its_page_fits_the_types_of_the_libraries_that_it_names(tmp_path: Path):
    (tmp_path / "page.tsx").write_text(block("tsx"))
    (tmp_path / "node_modules").symlink_to(PACKAGES)
    options = "--noEmit --strict --jsx react-jsx --module esnext --moduleResolution bundler --skipLibCheck"
    checked = await asyncio.create_subprocess_exec(
        *("node", "node_modules/typescript/bin/tsc", *options.split(), "page.tsx"),
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await checked.communicate()
    assert (checked.returncode, out.decode()) == (0, "")


async def test_each_answer_that_it_lists_is_taken(serve: Serve):
    rows = re.findall(r"^\| `(\{\"status\".*?\})` \|", TEXT, re.MULTILINE)
    assert len(rows) == 8
    for row in rows:
        entry = json.loads(row.replace('"…"', '"why"').replace("{…}", '{"text": "tea"}'))
        async with serve(model=milk(), **ADMIN) as nod:
            (interrupt,) = interrupts(await ran(nod, "keep milk", thread=row))
            events = await ran(nod, None, {"interruptId": interrupt["id"], **entry}, thread=row)
            taken = [event["value"]["answer"] for event in events if event["type"] == "CUSTOM"]
            # nothing here is a plan or a question
            payload = entry.get("payload")
            other = payload and not payload.keys().isdisjoint(("revise", "answer"))
            assert taken == ([] if payload == {} else ["invalid"] if other else ["accepted"]), row
