"""docs/api.md is true: its commands run as they stand, one after the other, against a running Nod."""

import asyncio
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.web.conftest import CHIEF, TOKENS, Json, Serve, Served
from tests.web.scripted import ScriptedModel, ask, say

TEXT = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
NEW, HELPER, *SECTIONS = re.findall(
    r"```sh\n(.*?)```", TEXT.partition("## Your script asks a human")[0], re.DOTALL
)  # what follows is run in test_approvals_document.py

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (shutil.which("curl") and shutil.which("jq")), reason="needs curl and jq"),
]


async def shell(nod: Served, script: str, folder: Path) -> list[str]:
    """The lines that the commands print; each of them must succeed."""
    running = await asyncio.create_subprocess_exec(
        *("sh", "-euc", script),
        cwd=folder,
        env={"PATH": os.environ["PATH"], "NOD_URL": nod.url, "NOD_TOKEN": CHIEF},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await running.communicate()
    assert (running.returncode, err.decode()) == (0, ""), out.decode()
    return out.decode().splitlines()


async def test_its_commands_run_one_after_the_other(serve: Serve, tmp_path: Path):
    assert NEW == "nod token new ci\n"  # run in tests/cli/test_token.py
    model = ScriptedModel(ask(("keep", {"text": "milk"}), text="I keep it."), say("Kept."), say("A table."))
    settings = {"NOD_HTTP_TOKENS": TOKENS, "NOD_ADMINS": ("http:chief",), "patience": 240}
    async with serve(model=model, token=CHIEF, **settings) as nod:
        who = await shell(nod, HELPER, tmp_path)
        definition = HELPER.splitlines()[0]
        said, decided, kept, attached, ruled, looked = [
            await shell(nod, f"{definition}\n{section}", tmp_path) for section in SECTIONS
        ]
        assert who == ["I am http:chief, answered by scripted model."]
        assert said == ["I keep it.", "Keep the note “milk”"]
        assert decided == ["Text: none → milk", "Times: none → 1 (default)", "succeeded"]
        assert nod.notes.kept == ["milk"]
        assert kept == ["The list: 3 messages"]
        assert attached == ["A table."]
        assert ruled[0].startswith("**policy never for delete_*")
        assert ruled[-1] == "true"
        assert (tmp_path / "audit.csv").read_bytes().startswith(b'\xef\xbb\xbf"id",')
        assert "keep: write" in looked


async def test_every_address_that_it_names_is_one(serve: Serve):
    async with serve() as nod:
        document: Json = (await nod.client.get("/openapi.json")).json()
        paths = [re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))) for path in document["paths"]]
        named = set(re.findall(r"(/api/[\w./$-]+)", TEXT))
        assert len(named) > 10
        assert [each for each in named if not any(path.fullmatch(each.rstrip(".")) for path in paths)] == []
