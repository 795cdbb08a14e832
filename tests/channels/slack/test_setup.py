"""Setting Slack up: the manifest, the doctor, tokens, several workspaces."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema
import pytest
from click.testing import Result
from slack_sdk.signature import SignatureVerifier
from structlog.testing import capture_logs
from typer.testing import CliRunner

from bot.channels.slack.channel import SlackChannel
from bot.channels.slack.doctor import check
from bot.channels.slack.kind import KIND
from bot.channels.slack.manifest import EVENTS, SCOPES, manifest, manifest_yaml
from bot.channels.slack.rows import find_workspace
from bot.cli.main import main
from bot.domain.cards import Card
from bot.domain.chat import Address, Press
from bot.domain.doctor_findings import Health
from bot.errors import ChannelError, NotDeliverable, SettingsError
from bot.store.database import Database
from tests.channels.slack.conftest import FakeCore, HttpServer, Running, Silent, settings_for
from tests.fakes.slack_server import APP_TOKEN, BOT_TOKEN, BOT_USER, SECRET, FakeSlack
from tests.kit import FakeClock

ROOT = Path(__file__).parents[3]
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
    return {f.name: f.fix for f in await check(settings_for(slack, **changes)) if f.failed}


async def test_the_doctor_finds_nothing_wrong_with_a_right_setup(slack: FakeSlack) -> None:
    assert await _findings(slack, SLACK_APP_TOKEN=APP_TOKEN) == {}
    assert await _findings(slack) == {}
    assert next(f.name for f in await check(settings_for(slack))).startswith("Slack transport: HTTP")


@pytest.mark.parametrize(
    ("changes", "name", "fix"),
    [
        ({"SLACK_BOT_TOKEN": "xoxb-wrong"}, "Slack bot token", "Bot User OAuth Token"),
        ({"SLACK_SIGNING_SECRET": None}, "Slack transport", "SLACK_APP_TOKEN"),
        ({"SLACK_APP_TOKEN": "xapp-wrong"}, "Slack app token", "connections:write"),
        ({"SLACK_APP_TOKEN": "xoxb-wrong"}, "Slack app token", "begins with xapp-"),
        ({"SLACK_API_URL": "http://127.0.0.1:9/api/"}, "Slack reachable", "SLACK_API_URL"),
        ({"SLACK_CLIENT_ID": "1.2"}, "Slack install flow", "SLACK_CLIENT_SECRET"),
    ],
)
async def test_the_doctor_says_the_fix_for_each_fault(
    slack: FakeSlack, changes: dict[str, Any], name: str, fix: str
) -> None:
    assert fix in (await _findings(slack, **changes))[name]


async def test_the_doctor_names_missing_scopes(slack: FakeSlack) -> None:
    slack.scopes = "chat:write,commands"

    assert "app_mentions:read" in (await _findings(slack))["Slack scopes"]


async def test_the_doctor_warns_where_groups_alone_cannot_be_read(slack: FakeSlack) -> None:
    slack.scopes = ",".join(scope for scope in SCOPES if scope != "usergroups:read")

    [found] = [each for each in await check(settings_for(slack)) if each.name == "Slack scopes"]
    assert found.health is Health.WARN
    assert found.fix.startswith("rules can't name user groups without usergroups:read")


async def test_without_slack_settings_the_doctor_says_how_to_turn_it_on(slack: FakeSlack) -> None:
    [only] = await KIND.check(settings_for(slack, SLACK_BOT_TOKEN=None, SLACK_SIGNING_SECRET=None))
    assert not only.failed
    assert "SLACK_BOT_TOKEN" in only.fix


@pytest.mark.parametrize("account", ["slack:TEAM/USER", "slack:T0WRONG/U1"])
async def test_the_doctor_compares_accounts_with_the_workspace_of_the_token(
    slack: FakeSlack, account: str
) -> None:
    found = await _findings(slack, NOD_ADMINS=account)
    assert "this workspace is T" in found[f"Slack accounts {account}"]


async def test_the_doctor_knows_the_organisation_that_nod_is_installed_in(slack: FakeSlack) -> None:
    slack.make_grid(wide=True)
    assert "slack:E1/U" in (await _findings(slack, NOD_ADMINS="slack:T1/W7"))["Slack accounts slack:T1/W7"]
    right = await check(settings_for(slack, NOD_ADMINS="slack:E1/W7"))
    assert [each.name for each in right if each.failed] == []


async def test_a_token_of_another_kind_is_noticed_without_the_network(slack: FakeSlack) -> None:
    assert "xoxb-" in (await _findings(slack, SLACK_BOT_TOKEN="abc"))["Slack bot token"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"SLACK_BOT_TOKEN": "xoxb-wrong"}, r"SLACK_BOT_TOKEN.*invalid_auth"),
        ({"SLACK_APP_TOKEN": "xapp-wrong"}, r"SLACK_APP_TOKEN.*invalid_auth"),
        ({"SLACK_APP_TOKEN": "xoxb-wrong"}, r"SLACK_APP_TOKEN.*not_allowed_token_type"),
    ],
)
async def test_a_token_slack_refuses_stops_the_start_and_says_how_to_fix_it(
    slack: FakeSlack,
    core: FakeCore,
    database: Database,
    clock: FakeClock,
    changes: dict[str, Any],
    words: str,
) -> None:
    channel = SlackChannel(settings_for(slack, **changes), database, clock)
    with pytest.raises(SettingsError, match=words):
        await channel.start(core.inbox, core)
    await channel.stop()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"SLACK_SIGNING_SECRET": None}, "SLACK_APP_TOKEN"),
        ({"SLACK_BOT_TOKEN": None, "SLACK_APP_TOKEN": APP_TOKEN}, "SLACK_BOT_TOKEN"),
        ({"SLACK_CLIENT_ID": "1.2"}, "SLACK_CLIENT_SECRET"),
    ],
)
def test_half_a_set_of_tokens_is_refused(
    slack: FakeSlack, database: Database, clock: FakeClock, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(SettingsError, match=words):
        SlackChannel(settings_for(slack, **changes), database, clock)


@pytest.mark.parametrize("method", ["auth.test", "apps.connections.open"])
@pytest.mark.parametrize("how", [{"cut_off": True}, {"error": "internal_error"}, {"status": 503}])
async def test_a_slack_that_is_down_holds_up_no_start(
    slack: FakeSlack,
    core: FakeCore,
    database: Database,
    clock: FakeClock,
    method: str,
    how: dict[str, Any],
    card_factory: Factory,
) -> None:
    slack.fail(method, times=20, **how)
    pauses: list[float] = []
    back = asyncio.Event()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) > 2:
            await back.wait()

    channel = SlackChannel(settings_for(slack, SLACK_APP_TOKEN=APP_TOKEN), database, clock, sleep)
    await channel.start(core.inbox, core)
    await slack.until(lambda: len(pauses) == 3)
    if method == "auth.test":
        with pytest.raises(ChannelError) as caught:
            await channel.post_card(Address("slack", "T1/C1/1.1"), card_factory())
        assert not isinstance(caught.value, NotDeliverable)
    slack.heal()
    back.set()
    await slack.until(lambda: slack._socket)
    assert await slack.say("U7", "hello")
    assert core.got
    assert pauses == [1.0, 2.0, 4.0]
    await channel.stop()


async def test_a_workspace_whose_token_was_revoked_is_off_after_the_first_answer_that_says_so(
    running: Running, card_factory: Factory
) -> None:
    running.slack.revoked.add(BOT_TOKEN)
    there = Address("slack", "T1/C1/1.1")
    with pytest.raises(NotDeliverable, match="token_revoked"):
        await running.channel.post_card(there, card_factory())
    asked = len(running.slack.calls)
    with pytest.raises(NotDeliverable, match="not installed"):
        await running.channel.post_card(there, card_factory())
    await running.slack.say("U7", "hello")
    assert len(running.slack.calls) == asked
    assert running.channel.hearing().fault == "Slack no longer accepts SLACK_BOT_TOKEN"


async def test_one_odd_answer_about_a_token_that_works_turns_nothing_off(
    running: Running, card_factory: Factory
) -> None:
    running.slack.fail("chat.postMessage", "invalid_auth")
    there = Address("slack", "T1/C1/1.1")
    with pytest.raises(ChannelError) as refused:
        await running.channel.post_card(there, card_factory())
    assert not isinstance(refused.value, NotDeliverable)  # it is tried again
    assert await running.channel.post_card(there, card_factory())


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"null", b"payload=%7B", b"\xff", b"payload=%5B%5D", b"", b'{"event": []}']
)
async def test_what_is_not_signed_or_not_readable_costs_one_short_answer(
    running: Running, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"} if body.startswith(b"payload") else {}
    stamps = [str(int(time.time())), "abc", "\u00b2", "9" * 400, ""]
    async with aiohttp.ClientSession() as anyone:
        for stamp in stamps:
            headers = {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": "v0=\u00e4"} | form
            async with anyone.post(running.slack.events_url, data=body, headers=headers) as answer:
                assert answer.status == 401
        if body != b"\xff":
            stamp = stamps[0]
            signature = SignatureVerifier(SECRET).generate_signature(timestamp=stamp, body=body)
            headers = {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": signature or ""} | form
            async with anyone.post(running.slack.events_url, data=body, headers=headers) as answer:
                assert answer.status == 400
    assert caplog.text == ""


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


async def _install(running: Running, team: str, token: str = "") -> str:
    """Go through the install as a browser does; returns the state that was used."""
    token = token or f"xoxb-token-of-{team}"
    running.slack.tokens[token] = team
    wide = team.startswith("E")
    of = {"id": "E1", "name": "Acme Group"} if wide or team in running.slack.grid.org_of else None
    running.slack.codes["code-1"] = {
        "access_token": token,
        "bot_user_id": BOT_USER,
        "team": None if wide else {"id": team, "name": "Beta"},
        "enterprise": of,
        "is_enterprise_install": wide,
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

    running.slack.revoked.add("xoxb-token-of-T2")
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
    await installable.slack.uninstall("T2")
    assert await database.read(find_workspace, "T2") is None

    installable.slack.revoked.clear()
    await _install(installable, "T2")
    assert await database.read(find_workspace, "T2") is not None


@pytest.mark.filterwarnings(_SDK)
@pytest.mark.parametrize(
    "event",
    [{"type": "app_uninstalled"}, {"type": "tokens_revoked", "tokens": {"bot": [BOT_USER]}}],
    ids=["uninstalled", "revoked"],
)
async def test_an_end_that_is_told_late_leaves_the_newer_installation(
    installable: Running, database: Database, event: dict[str, Any]
) -> None:
    await _install(installable, "T2")
    installable.slack.revoked.add("xoxb-token-of-T2")
    installable.slack.tokens["xoxb-the-second-token"] = "T2"
    await _install(installable, "T2", "xoxb-the-second-token")
    await installable.slack.deliver_event(event, team="T2")

    kept = await database.read(find_workspace, "T2")
    assert kept is not None
    assert kept.token == "xoxb-the-second-token"


@pytest.mark.filterwarnings(_SDK)
async def test_an_end_while_slack_does_not_say_whether_the_token_works_is_known_by_the_next_call(
    installable: Running, database: Database, card_factory: Factory
) -> None:
    await _install(installable, "T2")
    installable.slack.fail("auth.test", status=503, times=3)
    assert (await installable.slack.uninstall("T2")).status == 200
    assert await database.read(find_workspace, "T2") is not None

    installable.slack.heal()
    with pytest.raises(NotDeliverable):
        await installable.channel.post_card(Address("slack", "T2/C1/1.1"), card_factory())
    assert await database.read(find_workspace, "T2") is None


@pytest.mark.filterwarnings(_SDK)
@pytest.mark.parametrize("team", ["E1", "T1"])
async def test_an_organisation_and_a_workspace_of_it_install_speak_press_and_end_by_one_name(
    installable: Running, card_factory: Factory, database: Database, team: str
) -> None:
    running, slack = installable, installable.slack
    slack.make_grid(wide=team == "E1")
    await _install(running, team)
    await slack.say("W7", "hello")
    assert str(running.core.last.actor) == f"slack:{team}/W7"
    await slack.slash("W7", "/nod", "status")
    assert str(running.core.last.actor) == f"slack:{team}/W7"

    running.core.team, running.core.cards = team, {"p1": (card := card_factory())}
    await running.channel.post_card(Address("slack", f"{team}/C1"), card)
    await slack.click(slack.cards("C1")[0], "Approve", "W7")
    await slack.until(lambda: isinstance(running.core.last, Press))
    assert str(running.core.last.actor) == f"slack:{team}/W7"

    await slack.uninstall()
    assert await database.read(find_workspace, team) is None


@pytest.mark.filterwarnings(_SDK)
async def test_a_press_in_a_shared_channel_is_for_the_installation_whose_card_it_is(
    installable: Running, card_factory: Factory
) -> None:
    """The person's own company has Nod, too; they are a person of theirs all the same."""
    running, slack = installable, installable.slack
    slack.grid.bots = {"T2": ("UBOT2", "BBOT2")}
    await _install(running, "T1")
    await _install(running, "T2")
    slack.users["U66"], slack.records["U66"] = "Eve", {"team_id": "T2"}
    await running.channel.post_card(Address("slack", "T1/C1"), card_factory())
    [shown] = slack.cards("C1")
    await slack.click(shown, "Approve", "U66")

    await slack.until(lambda: any(each.only_for == "U66" for each in slack.posted))
    [said] = [each for each in slack.posted if each.only_for == "U66"]
    assert said.installation == "T1"
    assert "not affected" in said.words


async def test_it_tells_when_slack_was_heard_and_that_a_dead_socket_is_dead(
    slack: FakeSlack, core: FakeCore, database: Database, clock: FakeClock
) -> None:
    ahead = 0.0
    settings = settings_for(slack, SLACK_APP_TOKEN=APP_TOKEN)
    channel = SlackChannel(settings, database, clock, elapsed=lambda: time.time() + ahead)
    assert channel.hearing().fault == "it isn't connected"
    await channel.start(core.inbox, core)
    hearing = channel.hearing()
    assert hearing.fault == ""
    assert hearing.ago is not None
    ahead = 100.0
    assert channel.hearing().fault == "nothing heard for 100 s"
    await channel.stop()


async def test_another_connection_of_the_same_app_is_told_until_one_opens_without_it(
    slack: FakeSlack, core: FakeCore, database: Database, clock: FakeClock
) -> None:
    slack.connections = 2
    channel = SlackChannel(settings_for(slack, SLACK_APP_TOKEN=APP_TOKEN), database, clock)
    with capture_logs() as logs:
        await channel.start(core.inbox, core)
        await slack.until(lambda: channel.hearing().fault.startswith("Slack counts another connection"))
        await slack.renew_socket()
        await slack.say("U7", "hello")
        assert channel.hearing().fault
    assert [log["connections"] for log in logs if "other connections" in log["event"]] == [2]
    slack.connections = 1
    await slack.renew_socket()
    await slack.until(lambda: not channel.hearing().fault)
    slack.connections = 2  # it may count the one that has just ended
    await slack.renew_socket()
    await slack.say("U7", "hello again")
    assert channel.hearing().fault == ""
    await channel.stop()


async def test_processes_of_one_nod_that_share_the_app_are_no_fault(
    slack: FakeSlack, core: FakeCore, database: Database, clock: FakeClock
) -> None:
    slack.connections = 2
    channel = SlackChannel(settings_for(slack, SLACK_APP_TOKEN=APP_TOKEN), database, clock)
    await channel.start(core.inbox, core, others=Silent())
    await slack.until(lambda: slack._socket)
    await slack.say("U7", "hello")
    assert channel.hearing().fault == ""
    await channel.stop()


async def test_over_http_a_slack_that_has_nothing_to_say_is_no_fault(running: Running) -> None:
    assert (running.channel.hearing().ago, running.channel.hearing().fault) == (None, "")
    await running.slack.say("U7", "hello")
    assert running.channel.hearing().ago is not None


async def test_a_slack_that_refuses_a_token_later_is_no_longer_heard(
    slack: FakeSlack, core: FakeCore, database: Database, clock: FakeClock
) -> None:
    slack.fail("auth.test", "internal_error", times=9)
    channel = SlackChannel(settings_for(slack), database, clock, sleep=lambda _: asyncio.sleep(0))
    await channel.start(core.inbox, core)
    assert channel.hearing().fault == "it isn't connected"
    slack.heal()
    slack.fail("auth.test", "invalid_auth")
    await slack.until(lambda: channel.hearing().fault == "Slack refused a token; the log says which")
    await channel.stop()
