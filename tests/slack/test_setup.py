"""Setting Slack up: the manifest, the doctor, tokens, several workspaces."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema
import pytest
from click.testing import Result
from typer.testing import CliRunner

from bot.channels.slack.channel import SlackChannel
from bot.channels.slack.doctor import check
from bot.channels.slack.install import find_workspace
from bot.channels.slack.manifest import EVENTS, SCOPES, manifest, manifest_yaml
from bot.cli import main
from bot.domain.cards import Card
from bot.domain.chat import Address
from bot.errors import ChannelError, NotDeliverable
from bot.store.database import Database
from tests.conftest import FakeClock
from tests.fakes.slack_server import APP_TOKEN, BOT_USER, FakeSlack
from tests.slack.conftest import FakeCore, HttpServer, Running, settings_for

ROOT = Path(__file__).parents[2]
Factory = Callable[..., Card]


@pytest.fixture
def transport() -> str:
    return "http"


@pytest.mark.parametrize("http", [None, "https://nod.example.org/"])
def test_the_manifest_is_valid(http: str | None) -> None:
    schema = json.loads((Path(__file__).parent / "manifest_schema.json").read_text())
    jsonschema.validate(manifest(http), schema)


def test_the_file_in_the_repository_is_the_manifest() -> None:
    assert (ROOT / "manifest.yml").read_text() == manifest_yaml()


def test_the_yaml_says_what_the_manifest_says() -> None:
    for value in (*SCOPES, *EVENTS):
        assert f'- "{value}"' in manifest_yaml()
    assert "socket_mode_enabled: true" in manifest_yaml()
    assert 'url: "https://nod.example.org/slack/events"' in manifest_yaml("https://nod.example.org")


def test_the_command_prints_the_manifest_for_socket_mode_or_http() -> None:
    def nod(*words: str) -> Result:
        return CliRunner().invoke(main, ["slack", "manifest", *words])

    assert nod().stdout == manifest_yaml()
    assert nod("--http", "https://nod.example.org").stdout == manifest_yaml("https://nod.example.org")
    for wrong in ("http://nod.example.org", "nod.example.org", "https://a b"):
        refused = nod("--http", wrong)
        assert refused.exit_code == 1
        assert "https addresses only" in refused.stderr


async def _findings(slack: FakeSlack, **changes: Any) -> dict[str, str]:
    """What is wrong, by name."""
    return {f.name: f.mend for f in await check(settings_for(slack, **changes)) if not f.ok}


async def test_the_doctor_finds_nothing_wrong_with_a_right_setup(slack: FakeSlack) -> None:
    assert await _findings(slack, SLACK_APP_TOKEN=APP_TOKEN) == {}
    assert await _findings(slack) == {}
    assert next(f.name for f in await check(settings_for(slack))).startswith("Slack transport: HTTP")


@pytest.mark.parametrize(
    ("changes", "name", "mend"),
    [
        ({"SLACK_BOT_TOKEN": "xoxb-wrong"}, "Slack bot token", "Bot User OAuth Token"),
        ({"SLACK_SIGNING_SECRET": None}, "Slack transport", "SLACK_APP_TOKEN"),
        ({"SLACK_APP_TOKEN": "xapp-wrong"}, "Slack app token", "connections:write"),
        ({"SLACK_APP_TOKEN": "xoxb-wrong"}, "Slack app token", "begins with xapp-"),
        ({"SLACK_API_URL": "http://127.0.0.1:9/api/"}, "Slack reachable", "SLACK_API_URL"),
        ({"SLACK_CLIENT_ID": "1.2"}, "Slack install flow", "SLACK_CLIENT_SECRET"),
    ],
)
async def test_the_doctor_says_the_mend_for_each_fault(
    slack: FakeSlack, changes: dict[str, Any], name: str, mend: str
) -> None:
    assert mend in (await _findings(slack, **changes))[name]


async def test_the_doctor_names_missing_scopes(slack: FakeSlack) -> None:
    slack.scopes = "chat:write,commands"

    assert "app_mentions:read" in (await _findings(slack))["Slack scopes"]


async def test_without_slack_settings_the_doctor_is_silent(slack: FakeSlack) -> None:
    assert await check(settings_for(slack, SLACK_BOT_TOKEN=None)) == []


async def test_a_wrong_bot_token_stops_the_start_with_the_mend(
    slack: FakeSlack, core: FakeCore, database: Database, clock: FakeClock
) -> None:
    channel = SlackChannel(settings_for(slack, SLACK_BOT_TOKEN="xoxb-wrong"), database, clock)
    with pytest.raises(ChannelError, match="SLACK_BOT_TOKEN"):
        await channel.start(core.inbox, core)
    await channel.stop()


async def test_client_id_and_secret_in_the_environment_do_not_turn_oauth_on(
    slack: FakeSlack, database: Database, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACK_CLIENT_ID", "1.2")
    monkeypatch.setenv("SLACK_CLIENT_SECRET", "secret")
    settings = settings_for(slack, SLACK_CLIENT_ID="", SLACK_CLIENT_SECRET="")
    channel = SlackChannel(settings.model_copy(update={"slack_client_id": None}), database, clock)

    assert [route.path for route in channel.routes()] == ["/slack/events"]


async def test_socket_mode_needs_no_route(slack: FakeSlack, database: Database, clock: FakeClock) -> None:
    assert SlackChannel(settings_for(slack, SLACK_APP_TOKEN=APP_TOKEN), database, clock).routes() == []


# --- several workspaces

_SDK = "ignore:BasicAuth is deprecated:DeprecationWarning"  # slack_sdk 3.47 passes it to aiohttp 3.14


@pytest.fixture
async def installable(slack: FakeSlack, core: FakeCore, database: Database, clock: FakeClock) -> Any:
    """A channel without a token of its own, with the install flow on a real server."""
    settings = settings_for(slack, SLACK_BOT_TOKEN=None, SLACK_CLIENT_ID="1.2", SLACK_CLIENT_SECRET="s")
    channel = SlackChannel(settings, database, clock)
    await channel.start(core.inbox, core)
    server = HttpServer(channel)
    root = await server.start()
    slack.events_url = f"{root}/slack/events"
    yield Running(channel, slack, core, root)
    await server.stop()
    await channel.stop()


async def _install(running: Running, team: str) -> str:
    """Go through the install as a browser does; returns the state that was used."""
    token = f"xoxb-token-of-{team}"
    running.slack.tokens[token] = team
    running.slack.codes["code-1"] = {
        "access_token": token,
        "bot_user_id": BOT_USER,
        "team": {"id": team, "name": "Beta"},
        "authed_user": {"id": "U1"},
        "scope": "chat:write",
        "app_id": "A1",
    }
    async with aiohttp.ClientSession() as browser:
        async with browser.get(f"{running.root}/slack/install") as page:
            assert page.status == 200
            cookie = page.headers["Set-Cookie"].partition(";")[0]
        state = cookie.partition("=")[2]
        done = await browser.get(
            f"{running.root}/slack/oauth_redirect?code=code-1&state={state}", headers={"Cookie": cookie}
        )
        assert done.status == 200, await done.text()
    return state


@pytest.mark.filterwarnings(_SDK)
async def test_a_workspace_installs_speaks_and_is_off_after_its_token_is_revoked(
    installable: Running, card_factory: Factory, database: Database
) -> None:
    running = installable
    say = {"type": "message", "channel": "D7", "channel_type": "im", "user": "U7", "text": "x"}
    await running.slack.deliver_event(say | {"ts": "1.1"}, team="T2")
    assert running.core.got == []

    await _install(running, "T2")
    await running.slack.deliver_event(say | {"ts": "1.2"}, team="T2")
    assert str(running.core.last.actor) == "slack:T2/U7"
    assert await running.channel.post_card(Address("slack", "T2/C1/1.1"), card_factory())

    event = {"type": "tokens_revoked", "tokens": {"bot": [BOT_USER]}}
    assert (await running.slack.deliver_event(event, team="T2")).status == 200
    assert await database.read(find_workspace, "T2") is None
    with pytest.raises(NotDeliverable, match="not installed"):
        await running.channel.post_card(Address("slack", "T2/C1/1.1"), card_factory())
    count = len(running.core.got)
    await running.slack.deliver_event(say | {"ts": "1.3"}, team="T2")
    assert len(running.core.got) == count


@pytest.mark.filterwarnings(_SDK)
async def test_an_install_state_is_used_once(installable: Running) -> None:
    state = await _install(installable, "T2")
    async with aiohttp.ClientSession() as browser:
        again = await browser.get(
            f"{installable.root}/slack/oauth_redirect?code=code-1&state={state}",
            headers={"Cookie": f"slack-app-oauth-state={state}"},
        )
        assert again.status == 401


@pytest.mark.filterwarnings(_SDK)
async def test_an_uninstalled_app_is_off_and_can_be_installed_again(
    installable: Running, database: Database
) -> None:
    await _install(installable, "T2")
    await installable.slack.deliver_event({"type": "app_uninstalled"}, team="T2")
    assert await database.read(find_workspace, "T2") is None

    await _install(installable, "T2")
    assert await database.read(find_workspace, "T2") is not None
