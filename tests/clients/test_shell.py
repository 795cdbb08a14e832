"""``nod-ask`` in a shell: it waits, says how it ended, and its exit code says whether to continue."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from tests.clients.conftest import House
from tests.web.conftest import ANA

CLIENT = Path(__file__).parent.parent.parent / "clients" / "python"


async def nod_ask(*words: str, **environment: str) -> tuple[int | None, str, str]:
    running = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "nod_client.shell",
        *words,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(CLIENT), "NOD_TOKEN": ANA} | environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await running.communicate()
    return running.returncode, out.decode().strip(), err.decode().strip()


@pytest.mark.parametrize(
    ("verb", "code", "told"),
    [("approve", 0, "ben approved it."), ("decline", 1, "ben declined it."), ("cancel", 3, "withdrawn")],
)
async def test_its_exit_code_says_whether_to_continue(house: House, verb, code, told):
    asked = asyncio.create_task(nod_ask("Deploy 1.4?", "--field", "version=1.4", NOD_URL=house.url))
    proposal = await house.card()
    assert [f["new_value"] for f in proposal["preview"]] == ["1.4"]
    if verb == "cancel":
        assert (await house.nod.press(proposal, "cancel")).status_code == 200
    else:
        await house.press(verb, proposal)
    ended = await asked
    assert ended[:2] == (code, {"approve": "approved", "decline": "declined", "cancel": "cancelled"}[verb])
    assert told in ended[2]


async def test_it_prints_what_people_approved_as_json(house: House):
    asked = asyncio.create_task(nod_ask("Deploy?", "--field", "version=1.4", "--json", NOD_URL=house.url))
    proposal = await house.card()
    arguments = proposal["tool_arguments"] | {"fields": {"version": "1.3"}}
    await house.press("approve", proposal, arguments=arguments)
    code, out, _ = await asked
    told = json.loads(out)
    assert (code, told["end"], told["edited_by"]) == (0, "approved", "ben")
    assert told["arguments"]["fields"] == {"version": "1.3"}


async def test_what_is_wrong_is_told_in_one_line(house: House):
    assert (await nod_ask("Deploy?", "--field", "version"))[0] == 2
    code, out, err = await nod_ask("Deploy?", NOD_URL=house.url, NOD_TOKEN="of-nobody")
    assert (code, out) == (4, "")
    assert err == "nod-ask: Nod does not know this token. NOD_TOKEN must be one of NOD_HTTP_TOKENS."
    code, out, err = await nod_ask("Deploy?", NOD_URL=house.url, NOD_TOKEN="")
    assert (code, out, err) == (4, "", "nod-ask: this Nod wants a token. Set NOD_TOKEN.")
    code, out, _ = await nod_ask("Deploy?", "--wait", "0", "--key", "k", NOD_URL=house.url)
    assert (code, out) == (3, "waiting")
