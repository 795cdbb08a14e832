"""Slack on loopback, spoken to by the real client library, over signed HTTP or a real websocket.

People are played by `say`, `mention`, `click`, `submit` and `slash`; they press only what stands on their
screen. What Slack refuses is in ``slack_rules.py``, what it remembers in ``slack_state.py``.
"""

import asyncio
import itertools
import json
import re
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import aiohttp
from aiohttp import web
from slack_sdk.signature import SignatureVerifier

from tests.fakes.slack_grid import ORG, PEOPLE, RECORDS, SISTER, Grid, is_org
from tests.fakes.slack_rules import Refusal, check_blocks, check_view
from tests.fakes.slack_state import Channel, Modal, Posted, buttons_in

TEAM = "T1"
BOT_TOKEN = "xoxb-fake-bot-token-of-the-loopback-server"
APP_TOKEN = "xapp-fake-app-token-of-the-loopback-server"
SECRET = "0123456789abcdef0123456789abcdef"
BOT_USER, BOT_ID = "UBOT", "BBOT"
_PATIENCE = 10.0
_TRIGGER_SECONDS = 60.0  # Slack gives 3; a busy machine is given longer
SCOPES = (
    "app_mentions:read,assistant:write,channels:history,chat:write,commands,files:read,files:write,"
    "groups:history,im:history,im:write,mpim:history,usergroups:read,users:read"
)


_NEEDED = {
    "chat.postMessage": "chat:write",
    "chat.postEphemeral": "chat:write",
    "chat.update": "chat:write",
    "chat.startStream": "chat:write",
    "chat.appendStream": "chat:write",
    "chat.stopStream": "chat:write",
    "users.info": "users:read",
    "usergroups.list": "usergroups:read",
    "usergroups.users.list": "usergroups:read",
    "conversations.info": "channels:read",
    "conversations.open": "im:write",
    "assistant.threads.setSuggestedPrompts": "assistant:write",
    "files.info": "files:read",
    "files.getUploadURLExternal": "files:write",
    "files.completeUploadExternal": "files:write",
}
"""The scope without which Slack answers missing_scope, by method."""


@dataclass
class Fault:
    """One answer Slack gives instead of the real one."""

    error: str
    status: int = 200
    retry_after: int | None = None
    plain: bool = False  # the answer is no JSON, but text
    cut_off: bool = False  # the connection breaks before an answer
    acts: bool = False  # what was asked for is done all the same
    until: asyncio.Event | None = None  # no answer comes before this


@dataclass
class Delivered:
    """How the bot acknowledged; ``status`` 0 means not at all."""

    status: int
    payload: dict[str, Any] = field(default_factory=dict)


class FakeSlack:
    def __init__(self) -> None:
        self.url = ""
        self.posted: list[Posted] = []
        self.channels = {"C1": Channel("general"), "C2": Channel("ops")}
        self.users = {"U7": "Ana", "U8": "Ben", "U9": "Cleo"}
        self.records: dict[str, dict[str, Any]] = {}  # what users.info says beyond the name: team_id, is_…
        self.groups: dict[str, tuple[str, list[str]]] = {}  # the handle and the people of each user group
        self.modals: list[Modal] = []
        self.homes: dict[str, dict[str, Any]] = {}
        self.prompts: dict[str, list[dict[str, str]]] = {}
        self.sessions: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.files: dict[str, str] = {}
        self.attached: dict[str, tuple[str, bytes]] = {}  # what people attached: name and bytes, by id
        self.moved: dict[str, str] = {}  # where a file's address redirects to
        self._lengths: dict[str, int] = {}  # announced, not yet uploaded
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.tokens = {BOT_TOKEN: TEAM}  # the installation that each is of
        self.grid = Grid()
        self._caller = TEAM
        self.revoked: set[str] = set()
        self.scopes = SCOPES
        self.codes: dict[str, dict[str, Any]] = {}
        self.whispered: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._faults: dict[str, deque[Fault | None]] = defaultdict(deque)
        self._triggers: dict[str, tuple[float, bool, str]] = {}
        self._count = itertools.count(1)
        self.connections = 1  # how many Slack says that the app has, each time one opens
        self._socket: web.WebSocketResponse | None = None
        self._acks: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._http: aiohttp.ClientSession | None = None
        self.events_url = ""
        self.secret = SECRET
        self.now: Callable[[], datetime] | None = None  # the time that messages are given

    def make_grid(self, *, wide: bool) -> None:
        """Be an organisation of two workspaces, in which Nod is installed as a whole or in the first one."""
        self.grid.org_of = {TEAM: ORG, SISTER: ORG}
        self.grid.installed = self.tokens[BOT_TOKEN] = ORG if wide else TEAM
        self.users, self.records = dict(PEOPLE), {user: dict(said) for user, said in RECORDS.items()}

    async def uninstall(self, team: str = "", *, late: bool = False) -> Delivered:
        """Remove the app, or say so ``late``: after it was installed again with another token."""
        team = team or self.grid.installed
        if not late:
            self.revoked |= {token for token, of in self.tokens.items() if of == team}
        return await self.deliver_event({"type": "app_uninstalled"}, team=team)

    def bot_of(self, installed: str) -> tuple[str, str]:
        """The account and the id of Nod's bot in an installation."""
        return self.grid.bots.get(installed, (BOT_USER, BOT_ID))

    # --- running

    async def start(self) -> None:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/api/{method}", self._call)
        app.router.add_get("/api/{method}", self._call)
        app.router.add_get("/socket", self._serve_socket)
        app.router.add_post("/upload/{file}", self._upload)
        app.router.add_get("/files-pri/{file}", self._download)
        app.router.add_post("/respond/{id}", self._respond)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self._root = f"http://127.0.0.1:{port}"
        self.url = f"{self._root}/api/"
        self._http = aiohttp.ClientSession()

    async def stop(self) -> None:
        if self._socket is not None:
            await self._socket.close()
        if self._http is not None:
            await self._http.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def until(self, true: Callable[[], Any], patience: float = _PATIENCE) -> Any:
        """Wait until something is so in this Slack; what it gave is returned."""
        async with asyncio.timeout(patience):
            while not (found := true()):
                self._changed.clear()
                try:
                    await asyncio.wait_for(self._changed.wait(), 0.05)
                except TimeoutError:
                    continue
            return found

    def fail(
        self, method: str, error: str = "internal_error", *, times: int = 1, after: int = 0, **how: Any
    ) -> None:
        """Make the next calls of a method fail, ``after`` so many that do not."""
        self._faults[method].extend([None] * after)
        self._faults[method].extend(Fault(error, **how) for _ in range(times))

    def heal(self) -> None:
        self._faults.clear()

    def kill_streams(self) -> None:
        """What Slack does to a stream after about five minutes."""
        for message in self.posted:
            if message.stream == "open":
                message.stream = "dead"

    def called(self, method: str) -> list[dict[str, Any]]:
        return [arguments for name, arguments in self.calls if name == method]

    # --- what people see

    def dm(self, user: str) -> str:
        return f"D{user[1:]}"

    def in_channel(self, channel: str, user: str | None = None) -> list[Posted]:
        """What a person sees of the bot in a channel."""
        return [
            m
            for m in self.posted
            if m.channel == channel and m.user == BOT_USER and not m.deleted and m.only_for in (None, user)
        ]

    def cards(self, channel: str) -> list[Posted]:
        return [m for m in self.in_channel(channel) if m.blocks and not m.markdown]

    def screen(self, user: str) -> Modal:
        """The modal a person is looking at."""
        for modal in reversed(self.modals):
            if modal.user == user and modal.open:
                return modal
        raise LookupError(f"{user} has no modal open")

    # --- what people do

    async def say(
        self, user: str, text: str, *, channel: str = "", thread: str | None = None, **more: Any
    ) -> str:
        """Write a message in a DM (the default) or a channel; returns its ts."""
        channel = channel or self.dm(user)
        event, ts = self._message(user, text, channel, thread, more)
        await self.deliver_event(event)
        return ts

    async def edit(self, user: str, ts: str, text: str | None, *, channel: str = "") -> None:
        """Change a person's message, or delete it (None), both versions in one event."""
        channel = channel or self.dm(user)
        message = self._find(channel, ts)
        thread = {"thread_ts": message.thread} if message.thread else {}
        before = {"type": "message", "user": user, "ts": ts, "text": message.text, **thread}
        event = {"type": "message", "hidden": True, "channel": channel, "previous_message": before}
        event["channel_type"] = "im" if channel.startswith("D") else "channel"
        if text is None:
            self.posted.remove(message)
            await self.deliver_event(event | {"subtype": "message_deleted", "deleted_ts": ts})
            return
        message.text = text
        now = before | {"text": text, "edited": {"user": user, "ts": self._ts()}}
        await self.deliver_event(event | {"subtype": "message_changed", "message": now})

    async def mention(
        self, user: str, text: str, *, channel: str = "C1", thread: str | None = None, **more: Any
    ) -> str:
        """Mention the bot in a channel: Slack delivers this twice, as app_mention and as message."""
        event, ts = self._message(user, f"<@{BOT_USER}> {text}", channel, thread, more)
        await self.deliver_event(event | {"type": "app_mention"})
        await self.deliver_event(event)
        return ts

    async def share(self, old: str, new: str) -> Delivered:
        """Share a private channel with another company: it gets another id, and keeps its posts."""
        self.channels[new] = self.channels.pop(old)
        for message in self.posted:
            message.channel = new if message.channel == old else message.channel
        changed = {"type": "channel_id_changed", "old_channel_id": old, "new_channel_id": new}
        return await self.deliver_event(changed | {"event_ts": self._ts()})

    def _message(
        self, user: str, text: str, channel: str, thread: str | None, more: dict[str, Any]
    ) -> tuple[dict[str, Any], str]:
        ts = self._ts()
        self.posted.append(Posted(channel, ts, thread, user, text=text, more=more))
        kind = "im" if channel.startswith("D") else "channel"
        event = {
            "type": "message",
            "channel": channel,
            "channel_type": kind,
            "user": user,
            "text": text,
            "ts": ts,
        }
        if thread:
            event["thread_ts"] = thread
        home = self.home_of(user)
        foreign = {"user_team": home, "source_team": home, "user_profile": {"team": home}}
        return event | {"team": home, "event_ts": ts} | (foreign if home != TEAM else {}) | more, ts

    def home_of(self, user: str, team: str = TEAM) -> str:
        """The workspace that an account is of."""
        return str(self.records.get(user, {}).get("team_id", team))

    async def deliver_event(
        self, event: dict[str, Any], *, event_id: str = "", team: str = "", retry: int = 0
    ) -> Delivered:
        """Send an event to an installation, the usual one or the named."""
        team = team or self.grid.installed
        body = {
            "type": "event_callback",
            "token": "unused",
            **self.grid.envelope(team, self.home_of(str(event.get("user")))),
            "api_app_id": "A1",
            "event": event,
            "event_id": event_id or f"Ev{next(self._count)}",
            "event_time": int(time.time()),
            "authorizations": [self.grid.authorized(team, self.bot_of(team)[0])],
        }
        return await self._deliver("events_api", body, retry=retry)

    async def click(self, message: Posted, label: str, user: str = "U7") -> Delivered:
        """Press what stands on a message now; raises LookupError when it does not."""
        if label not in message.buttons:
            raise LookupError(f"no button {label!r} among {list(message.buttons)}")
        return await self.press(message, message.buttons[label], user)

    async def press(
        self, message: Posted, action: dict[str, Any], user: str = "U7", team: str = ""
    ) -> Delivered:
        """Send an action for a message, whatever stands there: what a forger or a slow person could send."""
        return await self.interact(self.body_of(message, action, user, team))

    async def interact(self, body: dict[str, Any]) -> Delivered:
        """Send what a person did with a button or a window, as it is."""
        return await self._deliver("interactive", body)

    def body_of(
        self, message: Posted, action: dict[str, Any], user: str = "U7", team: str = ""
    ) -> dict[str, Any]:
        """What Slack sends when someone presses on a message."""
        container = {"type": "message", "message_ts": message.ts, "channel_id": message.channel}
        bot_user, bot_id = self.bot_of(message.installation)
        shown: dict[str, Any] = {"ts": message.ts, "blocks": message.blocks, "user": bot_user}
        shown |= {"bot_id": bot_id, "app_id": "A1", "team": message.installation}
        replied = any((m.channel, m.thread) == (message.channel, message.ts) for m in self.posted)
        if message.thread or replied:  # a message with replies names itself as the root
            container["thread_ts"] = shown["thread_ts"] = message.thread or message.ts
        return self._interaction(user, team) | {
            "type": "block_actions",
            "container": container,
            "channel": {"id": message.channel, "name": self._name_of(message.channel)},
            "message": shown,
            "response_url": f"{self._root}/respond/{next(self._count)}",
            "actions": [action | {"action_ts": self._ts()}],
        }

    async def click_home(self, user: str, label: str) -> Delivered:
        """Press the first such button in a person's App Home."""
        view = self.homes[user]
        for block in view["blocks"]:
            if label in (found := buttons_in([block])):
                body = self._interaction(user) | {
                    "type": "block_actions",
                    "container": {"type": "view", "view_id": "V0"},
                    "view": view | self._of_view(user, "V0"),
                    "actions": [found[label]],
                }
                return await self._deliver("interactive", body)
        raise LookupError(f"no button {label!r} at home")

    async def act(self, user: str, action: dict[str, Any]) -> Delivered:
        """Send an action of the open modal, such as a choice from a menu outside of its inputs."""
        view = self.screen(user).view | self._of_view(user, "V1")
        body = self._interaction(user) | {
            "type": "block_actions",
            "container": {"type": "view", "view_id": "V1"},
            "view": view,
            "actions": [action | {"action_ts": self._ts()}],
        }
        return await self._deliver("interactive", body)

    async def submit(self, user: str, filled: dict[str, Any] | None = None) -> Delivered:
        """Press the submit of the open modal; ``filled`` is what the person changed, by label."""
        modal = self.screen(user)
        if "submit" not in modal.view:
            raise LookupError(f"{modal.title!r} has nothing to submit")
        view = modal.view | {"state": modal.state(filled or {})} | self._of_view(user, "V1")
        body = self._interaction(user) | {"type": "view_submission", "view": view}
        done = await self._deliver("interactive", body)
        answer = done.payload
        modal.errors = answer.get("errors", {}) if answer.get("response_action") == "errors" else {}
        if unknown := set(modal.errors) - {b.get("block_id") for b in modal.view["blocks"]}:
            raise AssertionError(f"errors at unknown blocks: {unknown}")
        if answer.get("response_action") == "update":
            check_view(answer["view"])
            modal.view = answer["view"]
        elif done.status == 200 and not modal.errors:
            modal.open = False
        return done

    async def slash(self, user: str, command: str, text: str = "", *, channel: str = "C1") -> str:
        """Use a slash command; returns the words that only this person sees."""
        at = f"{next(self._count)}"
        body = {
            "command": command,
            "text": self._escaped(text),
            "user_id": user,
            "user_name": self.users.get(user, "someone").lower(),
            **self.grid.commanded(self._offered_in(user)),
            "channel_id": channel,
            "channel_name": self._name_of(channel),
            "api_app_id": "A1",
            "trigger_id": self._trigger(user),
            "response_url": f"{self._root}/respond/{at}",
        }
        await self._deliver("slash_commands", body)
        answer = (await self.until(lambda: self.whispered[at]))[0]
        assert answer["response_type"] == "ephemeral"
        check_blocks(answer.get("blocks", []))
        return str(answer["blocks"][0]["text"])

    def _escaped(self, text: str) -> str:
        """Write people and channels as ids with their names, as ``should_escape`` asks for."""
        people = {name.lower(): f"<@{ident}|{name.lower()}>" for ident, name in self.users.items()}
        channels = {c.name: f"<#{ident}|{c.name}>" for ident, c in self.channels.items()}
        people |= {handle: f"<!subteam^{ident}|@{handle}>" for ident, (handle, _) in self.groups.items()}
        text = re.sub(r"@(\w+)", lambda m: people.get(m[1].lower(), m[0]), text)
        return re.sub(r"#(\w+)", lambda m: channels.get(m[1], m[0]), text)

    def _name_of(self, channel: str) -> str:
        """What Slack sends as a channel's name: nothing that says which private one it is."""
        known = self.channels.get(channel)
        if known is None:
            return "directmessage"
        return "privategroup" if known.private else known.name

    def _interaction(self, user: str, team: str = "") -> dict[str, Any]:
        """What Slack says of who pressed; ``team``: as a person of another workspace than theirs."""
        home = team or self.home_of(user)
        return {
            "user": {"id": user, "username": self.users.get(user, "x").lower(), "team_id": home},
            "api_app_id": "A1",
            "token": "unused",
            "trigger_id": self._trigger(user),
            **self.grid.pressed(home),
        }

    def _offered_in(self, user: str) -> str:
        """The workspace whose commands someone has: of another company's app, that app's."""
        home = self.home_of(user)
        return home if home in self.grid.org_of or is_org(self.grid.installed) else self.grid.installed

    def _of_view(self, user: str, ident: str) -> dict[str, Any]:
        """What Slack adds to a view: who opened it, and for which installation."""
        installed = self.grid.installed
        said = {"id": ident, "team_id": self.home_of(user), "bot_id": self.bot_of(installed)[1]}
        return said | {"app_installed_team_id": installed, "app_id": "A1"}

    # --- delivering

    async def _deliver(self, kind: str, body: dict[str, Any], *, retry: int = 0) -> Delivered:
        if self._socket is not None and not self._socket.closed:
            return await self._by_socket(kind, body, retry)
        return await self.by_http(kind, body, retry=retry)

    async def _by_socket(self, kind: str, body: dict[str, Any], retry: int) -> Delivered:
        envelope = f"env-{next(self._count)}"
        future = self._acks[envelope] = asyncio.get_running_loop().create_future()
        message = {"envelope_id": envelope, "type": kind, "payload": body, "accepts_response_payload": True}
        if retry:
            message |= {"retry_attempt": retry, "retry_reason": "timeout"}
        assert self._socket is not None
        await self._socket.send_json(message)
        try:
            ack = await asyncio.wait_for(future, 3.0)
        except TimeoutError:
            return Delivered(0)
        return Delivered(200, ack.get("payload") or {})

    async def by_http(
        self, kind: str, body: dict[str, Any], *, retry: int = 0, secret: str | None = None
    ) -> Delivered:
        if kind == "events_api":
            raw, content = json.dumps(body), "application/json"
        elif kind == "interactive":
            raw, content = urlencode({"payload": json.dumps(body)}), "application/x-www-form-urlencoded"
        else:
            raw, content = urlencode(body), "application/x-www-form-urlencoded"
        stamp = str(int(time.time()))
        signature = SignatureVerifier(secret or self.secret).generate_signature(timestamp=stamp, body=raw)
        headers = {
            "Content-Type": content,
            "X-Slack-Request-Timestamp": stamp,
            "X-Slack-Signature": signature or "",
        }
        if retry:
            headers |= {"X-Slack-Retry-Num": str(retry), "X-Slack-Retry-Reason": "http_timeout"}
        assert self._http is not None
        async with self._http.post(self.events_url, data=raw.encode(), headers=headers) as response:
            answer = await response.text()
            return Delivered(response.status, json.loads(answer) if answer.startswith("{") else {})

    async def renew_socket(self) -> None:
        """What Slack does to each connection every few hours: ask for a new one, then drop the old."""
        old = self._socket
        assert old is not None
        await old.send_json({"type": "disconnect", "reason": "refresh_requested"})
        await self.until(lambda: self._socket is not None and self._socket is not old)

    async def _serve_socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self._socket = socket
        await socket.send_json({"type": "hello", "num_connections": self.connections})
        async for message in socket:
            if message.type is aiohttp.WSMsgType.TEXT:
                ack = json.loads(message.data)
                if (future := self._acks.pop(ack.get("envelope_id"), None)) and not future.done():
                    future.set_result(ack)
        return socket

    # --- the Web API

    async def _call(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        arguments = await _arguments(request)
        token = arguments.pop("token", None) or request.headers.get("Authorization", "").removeprefix(
            "Bearer "
        )
        self.calls.append((method, arguments))
        fault = self._faults[method].popleft() if self._faults[method] else None
        answer: dict[str, Any] = {}
        if fault is None or fault.acts:
            try:
                answer = self._answer(method, arguments, token)
            except Refusal as refusal:
                answer = {"ok": False, "error": refusal.code, "detail": refusal.detail}
        self._changed.set()
        if fault is not None:
            if fault.until is not None:
                await fault.until.wait()
            if fault.cut_off and request.transport is not None:
                request.transport.abort()
            if fault.plain:
                return web.Response(text=fault.error, status=fault.status)
            headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
            return web.json_response(
                {"ok": False, "error": fault.error}, status=fault.status, headers=headers
            )
        headers = {"x-oauth-scopes": self.scopes} if method == "auth.test" else {}
        return web.json_response({"ok": True} | answer, headers=headers)

    def _answer(self, method: str, arguments: dict[str, Any], token: str) -> dict[str, Any]:
        handler = getattr(self, "_do_" + method.replace(".", "_").lower(), None)
        if handler is None:
            raise Refusal("unknown_method", method)
        if method == "apps.connections.open":
            if not token.startswith("xapp-"):
                raise Refusal("not_allowed_token_type")
            if token != APP_TOKEN:
                raise Refusal("invalid_auth")
        elif method != "oauth.v2.access":
            if token in self.revoked:
                raise Refusal("token_revoked")
            if token not in self.tokens:
                raise Refusal("invalid_auth" if token else "not_authed")
        if (scope := _NEEDED.get(method)) is not None:
            self._need(scope)
        self._caller = self.tokens.get(token, TEAM)
        result: dict[str, Any] = handler(**_snake(arguments)) or {}
        if method == "auth.test":
            team = self._caller
            bot_user, bot_id = self.bot_of(team)
            org = team if is_org(team) else self.grid.org_of.get(team)
            return {
                "team_id": team,
                "team": f"Acme {team}",
                "user_id": bot_user,
                "user": "nod",
                "bot_id": bot_id,
                **({"enterprise_id": org} if org else {}),
                "is_enterprise_install": is_org(team),
            }
        return result

    def _do_auth_test(self) -> None:
        pass

    def _do_apps_connections_open(self) -> dict[str, Any]:
        return {"url": f"{self._root}/socket".replace("http", "ws", 1)}

    def _do_oauth_v2_access(self, code: str = "", **_: Any) -> dict[str, Any]:
        if code not in self.codes:
            raise Refusal("invalid_code")
        return self.codes.pop(code)

    def _do_users_info(self, user: str) -> dict[str, Any]:
        if user not in self.users:
            raise Refusal("user_not_found")
        name = self.users[user]
        said = {"id": user, "name": name.lower(), "profile": {"display_name": name}}
        return {"user": said | self.records.get(user, {})}

    def _do_auth_teams_list(self, **_: Any) -> dict[str, Any]:
        teams = self.grid.org_of if is_org(self._caller) else [self._caller]
        return {"teams": [{"id": team, "name": f"Acme {team}"} for team in teams]}

    def _check_team(self, team_id: str | None, *, group: str = "") -> None:
        """An organisation's token names the workspace; a group is in one of them."""
        if not is_org(self._caller):
            return
        if team_id is None:
            raise Refusal("missing_argument", "team_id")
        if team_id not in self.grid.org_of:
            raise Refusal("team_access_not_granted")
        if group and team_id != SISTER:
            raise Refusal("no_such_subteam")

    def _do_usergroups_list(self, team_id: str | None = None) -> dict[str, Any]:
        self._check_team(team_id)
        each = [{"id": i, "handle": h, "name": h.capitalize()} for i, (h, _) in self.groups.items()]
        return {"usergroups": each}

    def _do_usergroups_users_list(self, usergroup: str, team_id: str | None = None) -> dict[str, Any]:
        self._check_team(team_id, group=usergroup)
        if usergroup not in self.groups:
            raise Refusal("no_such_subteam")
        return {"users": self.groups[usergroup][1]}

    def _do_conversations_open(self, users: str) -> dict[str, Any]:
        return {"channel": {"id": self.dm(users)}}

    def _do_conversations_info(self, channel: str) -> dict[str, Any]:
        place = self._place(channel)
        known = self.channels.get(place)
        if known is None and not place.startswith("D"):
            raise Refusal("channel_not_found")
        return {"channel": {"id": place, "is_ext_shared": known is not None and known.shared}}

    def _do_conversations_history(self, channel: str, **how: Any) -> dict[str, Any]:
        return self._page(channel, None, how)

    def _do_conversations_replies(self, channel: str, ts: str, **how: Any) -> dict[str, Any]:
        return self._page(channel, ts, how)

    def _page(self, channel: str, thread: str | None, how: dict[str, Any]) -> dict[str, Any]:
        """Newest first in a channel, oldest first in a thread, as Slack does it."""
        self._need("im:history" if channel.startswith("D") else "channels:history")
        place = self._place(channel)
        if not (channel.startswith("D") or channel in self.channels):
            raise Refusal("channel_not_found", "history takes no user's id")
        shown = [
            {"type": "message", "ts": m.ts, "user": m.user, "text": m.text, "blocks": m.blocks}
            | m.more
            | ({"thread_ts": m.thread} if m.thread else {})
            | ({"metadata": m.metadata} if m.metadata and how.get("include_all_metadata") else {})
            for m in self.posted
            if m.channel == place
            and (m.thread == thread or (thread is not None and m.ts == thread))
            and not (m.deleted or m.only_for)
            and (m.ts == thread or float(m.ts) >= float(how.get("oldest") or 0))
            and float(m.ts) <= float(how.get("latest") or "inf")
        ]
        shown = shown if thread else shown[::-1]
        begun = int(how.get("cursor") or 0)
        end = begun + int(how.get("limit") or 100)
        for each in shown[:1] if thread else ():
            each["reply_count"] = sum((m.channel, m.thread) == (place, thread) for m in self.posted)
        rest = {"response_metadata": {"next_cursor": str(end)}} if end < len(shown) else {}
        return {"messages": shown[begun:end], "has_more": bool(rest)} | rest

    def _place(self, channel: str) -> str:
        """The channel to post to; a user's id means their DM."""
        if channel in self.users:
            return self.dm(channel)
        if channel.startswith("D"):
            return channel
        if channel not in self.channels:
            raise Refusal("channel_not_found")
        self.channels[channel].check()
        return channel

    def _do_chat_postmessage(
        self, channel: str, thread_ts: str | None = None, **content: Any
    ) -> dict[str, Any]:
        message = Posted(self._place(channel), self._ts(), thread_ts, BOT_USER)
        message.installation = self._caller
        message.unfurls = content.get("unfurl_links", True) or content.get("unfurl_media", True)
        message.metadata = content.get("metadata") or {}
        self._fill(message, content)
        self.posted.append(message)
        return {"channel": message.channel, "ts": message.ts}

    def _do_chat_postephemeral(self, channel: str, user: str, **content: Any) -> dict[str, Any]:
        place = self._place(channel)
        if place.startswith("D") and place != self.dm(user):
            raise Refusal("user_not_in_channel")
        message = Posted(place, self._ts(), content.get("thread_ts"), BOT_USER, only_for=user)
        message.installation = self._caller
        self._fill(message, content)
        replied = any((m.channel, m.thread) == (place, message.thread) for m in self.posted)
        if message.thread is None or replied:  # Slack takes the other and shows it to no one
            self.posted.append(message)
        return {"message_ts": message.ts}

    def _do_chat_getpermalink(self, channel: str, message_ts: str) -> dict[str, Any]:
        self._find(channel, message_ts)
        link = f"https://team.slack.com/archives/{channel}/p{message_ts.replace('.', '')}"
        return {"channel": channel, "permalink": link}

    def _do_chat_update(self, channel: str, ts: str, **content: Any) -> dict[str, Any]:
        message = self._find(channel, ts)
        if message.user != BOT_USER or message.only_for:
            raise Refusal("cant_update_message")
        if message.stream == "open":
            raise Refusal("streaming_state_conflict")
        self._fill(message, content)
        message.edits += 1
        return {"channel": channel, "ts": ts}

    def _fill(self, message: Posted, content: dict[str, Any]) -> None:
        markdown, text, blocks = (content.get(k) for k in ("markdown_text", "text", "blocks"))
        if markdown is not None and (text is not None or blocks is not None):
            raise Refusal("markdown_text_conflict")
        if not (markdown or text or blocks):
            raise Refusal("no_text")
        if len(markdown or "") > 12_000:
            raise Refusal("msg_too_long")
        if blocks is not None:
            check_blocks(blocks)
        message.markdown, message.text = markdown or "", (text or "")[:40_000]
        message.blocks = blocks or []

    def _find(self, channel: str, ts: str) -> Posted:
        for message in self.posted:
            if (message.channel, message.ts) == (channel, ts) and not message.deleted:
                if not channel.startswith("D"):
                    self._place(channel)
                return message
        raise Refusal("message_not_found")

    # --- streams and sessions

    def _do_chat_startstream(
        self,
        channel: str,
        thread_ts: str,
        recipient_team_id: str | None = None,
        recipient_user_id: str | None = None,
        chunks: Any = (),
        **_: Any,
    ) -> dict[str, Any]:
        place = self._place(channel)
        if not thread_ts:
            raise Refusal("invalid_thread_ts")
        if not place.startswith("D") and not (recipient_team_id and recipient_user_id):
            raise Refusal("missing_recipient_user_id")
        if recipient_team_id and is_org(recipient_team_id):
            raise Refusal("team_not_found", "the recipient's workspace")
        message = Posted(place, self._ts(), thread_ts, BOT_USER, stream="open")
        message.installation = self._caller
        self._append(message, chunks)
        self.posted.append(message)
        return {"channel": place, "ts": message.ts}

    def _do_chat_appendstream(self, channel: str, ts: str, chunks: Any = ()) -> None:
        message = self._streaming(channel, ts)
        self._append(message, chunks)

    def _do_chat_stopstream(
        self,
        channel: str,
        ts: str,
        chunks: Any = (),
        blocks: Any = (),
        session_status: str | None = None,
        **_: Any,
    ) -> None:
        message = self._streaming(channel, ts)
        self._append(message, chunks)
        if blocks:
            check_blocks(blocks)
            message.blocks = blocks
        message.stream = "closed"
        if session_status and message.thread:
            self._session(message.channel, message.thread, session_status)

    def _streaming(self, channel: str, ts: str) -> Posted:
        message = self._find(channel, ts)
        if message.stream == "stopped":
            raise Refusal("stopped_by_user")
        if message.stream != "open":
            raise Refusal("message_not_in_streaming_state")
        return message

    def _append(self, message: Posted, chunks: Any) -> None:
        for chunk in chunks or ():
            if chunk["type"] == "markdown_text":
                if not chunk["text"] or len(chunk["text"]) > 12_000:
                    raise Refusal("invalid_chunks")
                message.markdown += chunk["text"]
            elif chunk["type"] == "task_update":
                if (
                    chunk["status"] not in ("pending", "in_progress", "complete", "error")
                    or not chunk["title"]
                ):
                    raise Refusal("invalid_chunks")
                message.tasks[chunk["id"]] = chunk
            else:
                raise Refusal("invalid_chunks")
        if len(message.markdown) > 12_000:
            raise Refusal("msg_too_long")

    def _do_agents_sessions_setstatus(
        self, channel_id: str, status: str, thread_ts: str | None = None, title: str = "", **_: Any
    ) -> None:
        if len(title) > 200 or not thread_ts:
            raise Refusal("invalid_arguments")
        self._session(channel_id, thread_ts, status)

    def _session(self, channel: str, thread: str, status: str) -> None:
        if status not in ("active", "processing", "suspended", "closed"):
            raise Refusal("invalid_status")
        self.sessions[channel, thread].append(status)

    def _do_assistant_threads_setsuggestedprompts(
        self, channel_id: str, prompts: list[dict[str, str]], **_: Any
    ) -> None:
        if not 1 <= len(prompts) <= 4:
            raise Refusal("invalid_arguments")
        self.prompts[channel_id] = prompts

    # --- views and files

    def _do_views_open(self, trigger_id: str, view: dict[str, Any]) -> dict[str, Any]:
        if trigger_id not in self._triggers:
            raise Refusal("invalid_trigger_id")
        since, used, user = self._triggers[trigger_id]
        if time.monotonic() - since > _TRIGGER_SECONDS:
            raise Refusal("expired_trigger_id")
        if used:
            raise Refusal("exchanged_trigger_id")
        check_view(view)
        self._triggers[trigger_id] = (since, True, user)
        self.modals.append(Modal(user, view))
        return {"view": view | {"id": "V1"}}

    def _do_views_push(self, trigger_id: str, view: dict[str, Any]) -> dict[str, Any]:
        if sum(modal.open for modal in self.modals) >= 3:
            raise Refusal("push_limit_reached")
        return self._do_views_open(trigger_id, view)

    def _do_views_publish(self, user_id: str, view: dict[str, Any]) -> None:
        check_view(view)
        self.homes[user_id] = view

    def _do_files_getuploadurlexternal(self, filename: str = "", length: Any = 0, **_: Any) -> dict[str, Any]:
        if not filename or int(length) <= 0:
            raise Refusal("invalid_arguments", "a file has a name and a length")
        file = f"F{next(self._count)}"
        self._lengths[file] = int(length)
        return {"file_id": file, "upload_url": f"{self._root}/upload/{file}"}

    def _do_files_completeuploadexternal(
        self, files: Any, channel_id: str, thread_ts: str | None = None, **_: Any
    ) -> dict[str, Any]:
        if channel_id[:1] not in "CDG":
            raise Refusal("channel_not_found", "files take no user's id")
        files = json.loads(files) if isinstance(files, str) else files
        for file in files:
            if file["id"] not in self.files:
                raise Refusal("file_not_found")
            place = self._place(channel_id)
            self.posted.append(
                Posted(
                    place, self._ts(), thread_ts, BOT_USER, text=file["title"], file=self.files[file["id"]]
                )
            )
        return {"files": files}

    def attach(self, name: str, data: bytes) -> dict[str, Any]:
        """A file that a person attaches, as the event has it."""
        ident = f"F{next(self._count)}"
        self.attached[ident] = (name, data)
        where = f"{self._root}/files-pri/{ident}"
        return {"id": ident, "name": name, "size": len(data), "mimetype": "image/png", "url_private": where}

    def _do_files_info(self, file: str) -> dict[str, Any]:
        if file not in self.attached:
            raise Refusal("file_not_found")
        return {"file": {"id": file, "url_private_download": f"{self._root}/files-pri/{file}"}}

    async def _download(self, request: web.Request) -> web.Response:
        file = request.match_info["file"]
        if file in self.moved:
            raise web.HTTPFound(self.moved[file])
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}":
            return web.Response(text="<!doctype html>Sign in", content_type="text/html")
        return web.Response(body=self.attached[file][1])

    async def _upload(self, request: web.Request) -> web.Response:
        file, content = request.match_info["file"], await request.read()
        if len(content) != self._lengths.pop(file, None):
            return web.Response(status=400, text="not the length that was announced")
        self.files[file] = content.decode()
        return web.Response(text="OK")

    def _need(self, scope: str) -> None:
        if scope not in self.scopes.split(","):
            raise Refusal("missing_scope", scope)

    async def _respond(self, request: web.Request) -> web.Response:
        if self._faults["response_url"]:
            fault = self._faults["response_url"].popleft()
            return web.Response(status=fault.status if fault else 200)
        self.whispered[request.match_info["id"]].append(await request.json())
        self._changed.set()
        return web.Response(text="ok")

    # --- small things

    def _ts(self) -> str:
        count = next(self._count)
        second = int(self.now().timestamp()) if self.now else 1_772_442_000 + count
        return f"{second}.{count:06d}"

    def _trigger(self, user: str) -> str:
        trigger = f"{next(self._count)}.trigger"
        self._triggers[trigger] = (time.monotonic(), False, user)
        return trigger

    def age_triggers(self) -> None:
        """Let more than three seconds pass for every trigger."""
        self._triggers = {t: (since - 10, used, user) for t, (since, used, user) in self._triggers.items()}


def _snake(arguments: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if value is not None}


async def _arguments(request: web.Request) -> dict[str, Any]:
    if request.content_type == "application/json":
        return dict(await request.json())
    found: dict[str, Any] = dict(request.query)
    if request.method == "POST":
        found |= {k: v for k, v in (await request.post()).items() if isinstance(v, str)}
    for key, value in found.items():
        if isinstance(value, str) and value[:1] in "[{":
            found[key] = json.loads(value)
    return found
