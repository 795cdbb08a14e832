"""A team's own tools with people's accounts at an OAuth 2 provider that a file names."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.domain.connections import Identity
from bot.domain.proposal_states import State
from bot.errors import SettingsError
from bot.features.connections.sign_in.provider_entries import load_providers
from bot.testing.world import Says
from tests.features.connections.hub import CLIENT, SCOPES, SECRET
from tests.features.connections.office import ANA, BEN, Office
from tests.kit import FakeClock, make_tables
from tests.kit.urls import Urls

MODULE = '''
import httpx
from bot import CallContext, tool

WHO = "{base}/userinfo"
SEEN = []


async def ask(context):
    async with httpx.AsyncClient() as client:
        answer = await client.get(WHO, headers={{"Authorization": f"Bearer {{context.token}}"}})
    SEEN.append(answer.json()["preferred_username"])
    return SEEN[-1]


@tool(writes=False, connection="desk", open_world=False)
async def desk_read(context: CallContext) -> str:
    """Read my desk."""
    return f"the desk of {{await ask(context)}}, seen with {{context.token}}"


@tool(connection="desk", summary="Clear drawer {{number}}")
async def desk_clear(number: int, context: CallContext) -> str:
    """Clear a drawer of my desk."""
    return f"{{await ask(context)}} cleared {{number}}"
'''


def entry(base: str, **more: Any) -> dict[str, Any]:
    return {
        "authorization": f"{base}/authorize",
        "token": f"{base}/token",
        "client": CLIENT,
        "secret": "DESK_SECRET",
        "scopes": list(SCOPES),
        "whoami": {"url": f"{base}/userinfo", "field": "preferred_username", "subject": "sub"},
        **more,
    }


@pytest.fixture
async def office(
    database_of: Urls, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Office]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("DESK_SECRET", SECRET)
    make_tables(url := database_of("nod"))
    made = Office(url, clock, tmp_path)
    module = f"desk_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(MODULE.format(base=made.hub.base))
    (tmp_path / "connections.json").write_text(json.dumps({"connections": {"desk": entry(made.hub.base)}}))
    made.more = {"NOD_TOOLS": module, "NOD_CONNECTIONS": tmp_path / "connections.json"}
    try:
        await made.open()
        yield made
    finally:
        await made.close()


@pytest.mark.slow
async def test_an_own_tool_runs_with_the_token_of_who_asked(office: Office) -> None:
    for who in (ANA, BEN):
        assert f"As {who.name} at desk ({who.user})" in await office.connect(who, "desk")
    tokens = [each for each in office.hub.seen if each.startswith("a-")]
    await office.whisper(ANA, "what is on it?", Says("I look.", (("desk_read", {}),)), Says("Things."))
    await office.whisper(BEN, "and mine?", Says("I look.", (("desk_read", {}),)), Says("Things."))
    assert "the desk of hubot, seen with" in str(office.model.seen[-1])
    clear = ("desk_clear", {"number": 3, "approval_reason": "full"})
    await office.say(ANA, "clear 3", Says("Shall I?", (clear,)))
    [p] = await office.find_open()
    assert p.connection is not None
    assert (p.connection.acts_as, dict(p.arguments)) == ("As Ana at desk (octocat)", {"number": 3})
    await office.press(BEN, "Approve", p)
    assert (await office.find_open())[0].state is State.PROPOSED
    await office.press(ANA, "Approve", p)
    [done] = office.proposals(State.SUCCEEDED)
    assert done.result == "octocat cleared 3"
    shown = str(office.model.seen) + str([(m.markdown, m.blocks) for m in office.slack.posted])
    assert len(tokens) == 2
    assert [each for each in tokens if each in shown] == []


@pytest.mark.slow
async def test_an_own_tool_is_not_there_for_who_has_no_account_and_its_token_is_renewed(
    office: Office,
) -> None:
    await office.whisper(BEN, "what is on it?", Says("I look.", (("desk_read", {}),)), Says("Nothing."))
    assert "connected no account at: desk" in str(office.model.seen[-1][0])
    assert [each for each in office.hub.seen if each.startswith("a-")] == []
    await office.connect(ANA, "desk")
    office.hub.end_tokens()
    office.clock.forward(office.hub.lifetime)
    await office.whisper(ANA, "what is on it?", Says("I look.", (("desk_read", {}),)), Says("Things."))
    assert "the desk of octocat" in str(office.model.seen[-1])


@pytest.mark.slow
@pytest.mark.parametrize("is_told", [True, False])
async def test_the_first_change_asks_for_more_scopes_which_the_page_lists(
    office: Office, tmp_path: Path, is_told: bool
) -> None:
    office.hub.tells_scope = is_told
    given = entry(office.hub.base, scopes=["openid", "email"], write_scopes=["issues"])
    (tmp_path / "connections.json").write_text(json.dumps({"connections": {"desk": given}}))
    await office.restart()
    await office.connect(ANA, "desk")
    await office.whisper(ANA, "what is on it?", Says("I look.", (("desk_read", {}),)), Says("Things."))
    assert "the desk of octocat" in str(office.model.seen[-1])
    clear = ("desk_clear", {"number": 3, "approval_reason": "full"})
    await office.say(ANA, "clear 3", Says("Shall I?", (clear,)))
    [p] = await office.find_open()
    await office.press(ANA, "Approve", p)
    [failed] = office.proposals(State.FAILED)
    assert "only to read at desk so far. Changes need more there: issues" in str(failed.error)
    said = await office.command(ANA, "/nod connections connect desk")
    async with httpx.AsyncClient() as browser:
        page = await browser.get(said.partition("(")[2].partition(")")[0])
    assert page.text.count("<li>") == 3
    assert "<li>issues</li>" in page.text
    await office.connect(ANA, "desk")
    assert [each.split() for each in office.hub.asked] == [
        ["openid", "email"],
        ["openid", "email", "issues"],
    ]
    await office.press(ANA, "Retry", failed)
    [done] = office.proposals(State.SUCCEEDED)
    assert done.result == "octocat cleared 3"


def load(folder: Path, text: str, **environment: str) -> Any:
    (folder / "c.json").write_text(text)
    return load_providers(folder / "c.json", environment)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"token": "http://tracker.example/token"}, "token: Value error, write an address"),
        ({"token": "https://a:b@tracker.example/token"}, "write an address"),
        ({"client": ""}, "client"),
        ({"secret": "NOT SET"}, "secret"),
        ({"secret": "UNSET"}, "the environment variable UNSET is not set; set it"),
        ({"identity": "nod"}, "identity"),
        ({"password": "x"}, "password"),
        ({"scopes": "read"}, "scopes"),
        ({"write_scopes": ["two words"]}, "write_scopes"),
    ],
)
def test_a_wrong_entry_stops_the_start_in_one_line(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    given = entry("https://tracker.example") | changes
    with pytest.raises(SettingsError) as error:
        load(tmp_path, json.dumps({"connections": {"tracker": given}}), DESK_SECRET="x")
    assert told in error.value.message
    assert "\n" not in error.value.message


def test_an_entry_for_chats_is_a_place_s(tmp_path: Path) -> None:
    given = entry("https://tracker.example", identity="place", client_auth="header")
    [found] = load(tmp_path, json.dumps({"connections": {"tracker": given}}), DESK_SECRET="x")
    assert (found.identity, found.issuer) == (Identity.PLACE, "https://tracker.example")
    assert "x" not in repr(found.transport).split("secret")


@pytest.mark.parametrize("text", ["[]", "{", '{"connections": []}', '{"connections": {"a b": {}}}'])
def test_what_is_no_such_file_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError):
        load(tmp_path, text)
