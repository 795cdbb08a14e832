"""Discord on loopback: its REST API, and people whose interactions it signs and sends; keeps state.

People press only what is really under a message they can see, and fill in only windows that were opened for
them. What Nod answers to an interaction is checked as Discord checks it; what Discord would refuse is in
``refused``, and the person sees that the interaction failed.
"""

import asyncio
import json
import re
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from itertools import count
from types import MappingProxyType
from typing import Any

import aiohttp
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.fakes.discord_rules import (
    EPHEMERAL,
    Json,
    Refusal,
    check_commands,
    check_message,
    check_window,
    invalid,
)

TOKEN, APP, SERVER, CHANNEL, ELSEWHERE = "token-of-nod", "700", "10", "20", "99"
_LIVES = timedelta(minutes=15)
_WINDOW = timedelta(seconds=5)


@dataclass
class Message:
    """One message; ``only_for`` is the one person who sees it."""

    id: str
    channel: str
    body: Json
    only_for: str = ""
    files: list[str] = field(default_factory=list)
    author: str = APP
    remembered: dict[str, Json] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """What people read, without the backslashes before markup."""
        parts = [self.body.get("content") or "", *(e["description"] for e in self.body.get("embeds") or ())]
        return re.sub(r"\\([^0-9A-Za-z\s])", r"\1", "\n".join(filter(None, parts)))

    @property
    def buttons(self) -> dict[str, Json]:
        rows = self.body.get("components") or ()
        return {each["label"]: each for row in rows for each in row["components"]}


@dataclass
class Window:
    """What was opened for a person; ``under`` is the message whose button did."""

    user: str
    body: Json
    under: Message | None
    channel: str

    @property
    def words(self) -> str:
        shown = [self.body["title"]]
        for part in self.body["components"]:
            shown += [part.get("content", ""), part.get("label", ""), part.get("description", "")]
            shown += [o["label"] for o in part.get("component", {}).get("options") or ()]
        return re.sub(r"\\([^0-9A-Za-z\s])", r"\1", "\n".join(filter(None, shown)))


@dataclass
class Token:
    """What an interaction may be answered with, until it is too old."""

    user: str
    channel: str
    until: datetime
    under: Message | None
    acknowledged: bool = False
    original: Message | None = None
    asked: int = 0


@dataclass
class Fault:
    """How requests of one kind fail: with a status, or without an answer after acting."""

    method: str
    path: str
    times: int
    status: int = 500
    body: Json | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    acts: bool = False
    until: asyncio.Event | None = None  # the answer comes, but not before


class FakeDiscord:
    """``endpoint`` gives the address of Nod's interactions, ``clock`` the time."""

    def __init__(self, endpoint: Callable[[], str], clock: Callable[[], datetime]) -> None:
        self._key = Ed25519PrivateKey.generate()
        self.public_key = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
        self._endpoint = endpoint
        self._clock = clock
        self._ids = count(1000)
        self.url = ""
        self.app: Json = {"id": APP, "name": "Nod", "verify_key": self.public_key}
        self.people: dict[str, str] = {}
        self.flags: Counter[str] = Counter()  # of a member, by person
        self.roles: dict[str, str] = {SERVER: "@everyone"}
        self.channels: dict[str, str] = {CHANNEL: "general"}
        self.bots: set[str] = set()  # members that are programs
        self.members: dict[str, set[str]] = {SERVER: set(), ELSEWHERE: set()}
        self.messages: list[Message] = []
        self.windows: list[Window] = []
        self.attached: dict[str, bytes] = {}  # what people attached, by name
        self.commands: list[Json] = []
        self.refused: list[str] = []
        self.failed: list[tuple[str, str]] = []  # who saw that their interaction failed, and why
        self.faults: list[Fault] = []
        self.requests: deque[tuple[str, str]] = deque(maxlen=500)
        self.blocked: set[str] = set()  # channels Nod may not write to
        self.gone: set[str] = set()  # channels that were deleted
        self.archived: set[str] = set()  # threads in which no one wrote for a while
        self.server = SERVER  # where people are
        self.strict = False  # what follows an interaction is refused until its answer was read
        self.room: int | None = None  # messages, and edits, that a channel takes in five seconds
        self.limited = 0  # requests that were too many
        self._taken: dict[tuple[str, str], list[datetime]] = {}
        self._tokens: dict[str, Token] = {}
        self._runner: web.AppRunner | None = None
        self._session: aiohttp.ClientSession | None = None

    # -- running

    async def start(self) -> None:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/api/v10/{path:.*}", self._serve)
        app.router.add_get("/attachments/{name}", self._download)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/api/v10"
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30))

    async def stop(self) -> None:
        if self._session:
            await self._session.close()
        if self._runner:
            await self._runner.cleanup()

    # -- people

    def person(self, user: str, name: str, server: str = SERVER) -> None:
        self.people[user] = name
        self.members[server].add(user)

    def dm(self, user: str) -> str:
        return f"5{user}"

    def seen(self, channel: str, user: str = "") -> list[Message]:
        """What a person sees in a channel; without one, what everybody sees."""
        return [m for m in self.messages if m.channel == channel and m.only_for in ("", user)]

    async def command(
        self,
        user: str,
        name: str,
        words: str,
        channel: str = CHANNEL,
        files: Mapping[str, bytes] = MappingProxyType({}),
    ) -> None:
        """``files`` go into the options of the command that take some, by their names."""
        options: list[Json] = [{"name": "words", "type": 3, "value": words}]
        known = next(each for each in self.commands if each["name"] == name)
        assert len(words) <= known["options"][0]["max_length"]
        takes = [each["name"] for each in known["options"] if each["type"] == 11]
        resolved = {}
        for option, (called, data) in zip(takes, files.items(), strict=False):
            self.attached[called] = data
            where = f"{self.url.removesuffix('/api/v10')}/attachments/{called}"
            resolved[called] = {"id": called, "filename": called, "size": len(data), "url": where}
            options.append({"name": option, "type": 11, "value": called})
        data = {"name": name, "type": 1, "options": options}
        await self._interact(
            user, channel, 2, data | ({"resolved": {"attachments": resolved}} if resolved else {})
        )

    async def _download(self, request: web.Request) -> web.Response:
        return web.Response(body=self.attached[request.match_info["name"]])

    async def ask_about(self, user: str, author: str, content: str, **more: Any) -> None:
        writer = {"id": author, "username": self.people[author]}
        message = {"id": "9", "content": content, "author": writer, **more}
        data = {"name": "Ask Nod", "type": 3, "target_id": "9", "resolved": {"messages": {"9": message}}}
        await self._interact(user, CHANNEL, 2, data)

    async def press(self, user: str, message: Message, label: str) -> None:
        """Press what stands under a message now; raises LookupError for what does not."""
        if label not in message.buttons:
            raise LookupError(f"no button {label!r}, but {list(message.buttons)}")
        await self.press_data(user, message, message.buttons[label]["custom_id"])

    async def press_data(self, user: str, message: Message, custom_id: str) -> None:
        assert message.only_for in ("", user), "they can't see it"
        data = {"custom_id": custom_id, "component_type": 2}
        await self._interact(user, message.channel, 3, data, message)

    async def submit(self, window: Window, **given: str) -> None:
        """Send a window; what is not given stays as it was shown. A menu takes an option's label or value."""
        parts = []
        for part in window.body["components"]:
            asked = part.get("component")
            if asked is None:
                parts.append({"type": part["type"]})
                continue
            wanted = given.get(part["label"], given.get(asked["custom_id"]))
            parts.append({"type": 18, "component": _filled(asked, wanted)})
        data = {"custom_id": window.body["custom_id"], "components": parts}
        await self._interact(window.user, window.channel, 5, data, window.under)

    async def _interact(
        self, user: str, channel: str, kind: int, data: Json, under: Message | None = None
    ) -> None:
        """Send a signed interaction, and do what the answer says, as Discord does."""
        ident = str(next(self._ids))
        token = self._tokens[f"t{ident}"] = Token(user, channel, self._clock() + _LIVES, under)
        who = {"id": user, "username": self.people[user].lower(), "global_name": self.people[user]}
        body: Json = {"id": ident, "type": kind, "token": f"t{ident}", "channel_id": channel, "data": data}
        body |= {"application_id": APP, "version": 1, "context": 0}
        if channel == self.dm(user):
            body |= {"user": who, "context": 1}
        else:
            body |= {
                "member": {"user": who, "nick": None, "flags": self.flags[user]},
                "guild_id": self.server,
            }
            body["channel"] = {"id": channel, "name": "general"}
        if under is not None:
            body["message"] = {"id": under.id, "flags": EPHEMERAL if under.only_for else 0, **under.body}
        status, answer = await self.send(json.dumps(body).encode())
        token.acknowledged = status == 200
        try:
            if status != 200 or answer is None:
                raise Refusal(status, 0, "The application did not respond")
            self._answered(token, kind, answer)
        except Refusal as refused:
            self.refused.append(f"{refused} {refused.body}")
            self.failed.append((user, str(refused)))

    async def send(
        self, body: bytes, key: Ed25519PrivateKey | None = None, age: float = 0
    ) -> tuple[int, Json | None]:
        """Post a body as Discord does, signed with its key or another one, ``age`` seconds ago."""
        assert self._session is not None
        stamp = str(int(self._clock().timestamp() - age))
        signature = (key or self._key).sign(stamp.encode() + body).hex()
        headers = {"X-Signature-Ed25519": signature, "X-Signature-Timestamp": stamp}
        headers["Content-Type"] = "application/json"
        async with self._session.post(self._endpoint(), data=body, headers=headers) as answer:
            return answer.status, await answer.json() if answer.status == 200 else None

    def _answered(self, token: Token, kind: int, answer: Json) -> None:
        data = answer.get("data") or {}
        match answer["type"]:
            case 4:
                check_message(data)
                token.original = self._add(token.channel, data, token.user if _private(data) else "")
            case 5 if set(data) <= {"flags"}:
                token.original = None
            case 6 if kind != 2:
                token.original = token.under
            case 7 if kind != 2 and token.under is not None:
                check_message(data)
                token.under.body |= {k: v for k, v in data.items() if k != "flags"}
            case 9 if kind != 5:
                check_window(data)
                self.windows.append(Window(token.user, data, token.under, token.channel))
            case other:
                raise invalid("type", f"{other} can't answer an interaction of type {kind}")

    def _add(self, channel: str, body: Json, only_for: str = "", files: list[str] | None = None) -> Message:
        message = Message(str(next(self._ids)), channel, body, only_for, files or [])
        self.messages.append(message)
        return message

    # -- the REST API

    def fail(self, method: str, path: str, times: int = 1, **how: Any) -> None:
        """The next requests whose path has ``path`` in it fail; with ``acts`` only the answer is lost."""
        self.faults.append(Fault(method, path, times, **how))

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        path, method = request.match_info["path"], request.method
        self.requests.append((method, path))
        fault = next((f for f in self.faults if f.times and f.method == method and f.path in path), None)
        if fault is not None:
            fault.times -= 1
            if not (fault.acts or fault.until):
                return web.json_response(
                    fault.body or {"message": "no"}, status=fault.status, headers=fault.headers
                )
        try:
            body, files = await _read(request)
            if not path.startswith("webhooks/") and request.headers.get("Authorization") != f"Bot {TOKEN}":
                raise Refusal(401, 0, "401: Unauthorized")
            if self.gone.intersection(path.split("/")):
                raise Refusal(404, 10003, "Unknown Channel")
            headers = self._counted(method, path.split("/"))
            answer = self._act(method, path.split("/"), body, files)
        except Refusal as refused:
            if refused.status not in (401, 403, 404, 429) and refused.body["code"] != 50083:
                self.refused.append(f"{method} {path}: {refused} {refused.body}")
            again = (
                {"Retry-After": str(_WINDOW.seconds)}
                if refused.status == HTTPStatus.TOO_MANY_REQUESTS
                else {}
            )
            return web.json_response(refused.body, status=refused.status, headers=again)
        if fault is not None and fault.until is None and request.transport is not None:
            request.transport.close()  # it acted, and no one is told
            await asyncio.sleep(0)
        if fault is not None and fault.until is not None:
            await fault.until.wait()
        if answer is None:
            return web.Response(status=204, headers=headers)
        return web.json_response(answer, headers=headers)

    def _counted(self, method: str, path: list[str]) -> dict[str, str]:
        """Count a message or an edit against what the channel takes; says what is left, as Discord does."""
        if self.room is None or method not in ("POST", "PATCH") or path[:3:2] != ["channels", "messages"]:
            return {}
        now = self._clock()
        taken = [at for at in self._taken.get((method, path[1]), []) if now - at < _WINDOW]
        if len(taken) >= self.room:
            self.limited += 1
            raise Refusal(429, 0, "You are being rate limited.")
        self._taken[method, path[1]] = [*taken, now]
        left = self.room - len(taken) - 1
        return {"X-RateLimit-Remaining": str(left), "X-RateLimit-Reset-After": str(_WINDOW.seconds)}

    def _act(self, method: str, path: list[str], body: Any, files: list[str]) -> Any:
        match method, path:
            case "PUT", ["applications", app, "commands"] if app == APP:
                check_commands(body)
                self.commands = body
                return body
            case "GET", _:
                return self._look_up(path)
            case "POST", ["users", "@me", "channels"]:
                if body["recipient_id"] not in self.people:
                    raise Refusal(400, 50033, "Invalid Recipient(s)")
                return {"id": self.dm(body["recipient_id"])}
            case "POST", ["channels", channel, "messages"]:
                return self._post(channel, body, files)
            case "DELETE", ["channels", channel, "messages", message]:
                self.messages.remove(self._find(channel, message))
                return None
            case "PATCH", ["channels", channel, "messages", message]:
                return self._shown(self._edit(self._find(channel, message), body, files))
            case "POST" | "PATCH", ["channels", channel, *how] if how == ["typing"] or not body["archived"]:
                self._check_open(channel)
                self.archived.discard(channel)
                return None
            case "POST" | "PATCH", ["webhooks", app, token, *rest] if app == APP:
                return self._follow(method, token, rest, body, files)
        raise Refusal(404, 0, "404: Not Found")

    def _look_up(self, path: list[str]) -> Any:
        match path:
            case ["applications", "@me"]:
                return self.app
            case ["guilds", server] if server in self.members:
                return {"id": server, "name": "Team"}
            case ["guilds", server, "roles"] if server in self.members:
                return [{"id": ident, "name": name} for ident, name in self.roles.items()]
            case ["channels", channel]:
                if channel not in self.channels:
                    raise Refusal(403, 50001, "Missing Access")
                return {"id": channel, "name": self.channels[channel]}
            case ["guilds", server, "members", user] if server in self.members:
                if user not in self.members[server]:
                    raise Refusal(404, 10007, "Unknown Member")
                name = self.people.get(user, "")
                known = {"id": user, "username": name.lower(), "global_name": name, "bot": user in self.bots}
                return {"user": known, "nick": None, "flags": self.flags[user]}
        raise Refusal(404, 0, "404: Not Found")

    def _post(self, channel: str, body: Json, files: list[str]) -> Json:
        self._check_open(channel)
        check_message(body, files=bool(files))
        if body.get("enforce_nonce"):
            same = [m for m in self.messages if m.body.get("nonce") == body["nonce"]]
            if same:
                return self._shown(same[-1])
        reference = body.get("message_reference")
        if reference and not any(
            m.id == reference["message_id"] and m.channel == channel for m in self.messages
        ):
            errors = {"message_reference": {"_errors": [{"code": "REPLIES_UNKNOWN_MESSAGE"}]}}
            raise Refusal(404, 50035, "Invalid Form Body", errors=errors)
        return self._shown(self._add(channel, body, files=files))

    def _check_open(self, channel: str) -> None:
        known = {CHANNEL, *map(self.dm, self.people)}
        if channel not in known:
            raise Refusal(404, 10003, "Unknown Channel")
        if channel in self.blocked:
            raise Refusal(403, 50001, "Missing Access")

    def _find(self, channel: str, ident: str) -> Message:
        found = [m for m in self.messages if m.id == ident and m.channel == channel and not m.only_for]
        if not found:
            raise Refusal(404, 10008, "Unknown Message")
        if channel in self.archived:
            raise Refusal(400, 50083, "Thread is archived")
        return found[0]

    def _edit(self, message: Message, body: Json, files: list[str]) -> Message:
        check_message({**message.body, **body}, files=bool(files or message.files))
        message.body |= {k: v for k, v in body.items() if k != "flags"}
        message.files += files
        return message

    def _follow(self, method: str, name: str, rest: list[str], body: Json, files: list[str]) -> Json:
        """Tell what became of an interaction: its token must be known, answered first, and not too old."""
        token = self._tokens.get(name)
        if token is None:
            raise Refusal(404, 10015, "Unknown Webhook")
        if self._clock() > token.until:
            raise Refusal(401, 50027, "Invalid Webhook Token")
        token.asked += 1
        if self.strict and token.asked == 1:  # it has not read the answer yet
            raise Refusal(404, 10015, "Unknown Webhook")
        check_message(body, files=bool(files))
        if method == "PATCH" and rest == ["messages", "@original"] and token.original is not None:
            return self._shown(self._edit(token.original, body, files))
        message = self._add(token.channel, body, token.user, files)
        if method == "PATCH":
            token.original = message
        return self._shown(message)

    def _shown(self, message: Message) -> Json:
        return {"id": message.id, "channel_id": message.channel, "embeds": [], **message.body}


def _private(body: Json) -> bool:
    return bool((body.get("flags") or 0) & EPHEMERAL)


def _filled(asked: Json, wanted: str | None) -> Json:
    """What a person leaves or writes in one input of a window."""
    if asked["type"] == 4:
        value = asked.get("value", "") if wanted is None else wanted
        assert value or not asked["required"], f"{asked['custom_id']} has to be filled in"
        assert len(value) <= asked["max_length"]
        return {"type": 4, "custom_id": asked["custom_id"], "value": value}
    chosen = [o["value"] for o in asked["options"] if o.get("default")]
    if wanted is not None:
        chosen = [o["value"] for o in asked["options"] if wanted in (o["label"], o["value"])]
        if not chosen:
            raise LookupError(f"{wanted!r} is not among {asked['options']}")
    assert asked["min_values"] <= len(chosen) <= asked["max_values"]
    return {"type": 3, "custom_id": asked["custom_id"], "values": chosen}


async def _read(request: web.Request) -> tuple[Any, list[str]]:
    """The body as JSON, and the texts of attached files."""
    if not request.content_type.startswith("multipart/"):
        return (await request.json() if request.can_read_body else {}), []
    body: Any = {}
    files = []
    async for part in await request.multipart():
        assert isinstance(part, aiohttp.BodyPartReader)
        if part.name == "payload_json":
            body = await part.json()
        else:
            files.append(await part.text())
    return body, files
