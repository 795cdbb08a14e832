"""The Bot API on loopback, spoken to by the real client library; keeps state as Telegram does.

People are played through `FakeTelegram.say` and `FakeTelegram.press`, which only press buttons that really
stand under a message. What Telegram refuses is in ``telegram_rules.py``.
"""

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from tests.fakes.telegram_rules import CAPTION, Refusal, bad, check_markup, check_text, decoded, units

TOKEN = "4242:fake-token-for-the-loopback-server-000"
BOT = {"id": 4242, "is_bot": True, "first_name": "Nod", "username": "nod_test_bot"}
_PATIENCE = 10.0
_SENDING = {"sendMessage", "editMessageText", "sendDocument", "editMessageReplyMarkup", "sendMessageDraft"}


@dataclass(eq=False)
class Posted:
    """A message as the chat now shows it."""

    chat_id: int
    message_id: int
    text: str
    entities: list[dict[str, Any]]
    markup: dict[str, Any] | None
    thread: int | None = None
    sender: dict[str, Any] = field(default_factory=lambda: BOT)
    document: str | None = None
    reply_to: int | None = None
    deleted: bool = False
    inaccessible: bool = False
    edits: int = 0

    @property
    def buttons(self) -> list[dict[str, Any]]:
        return [b for row in (self.markup or {}).get("inline_keyboard", []) for b in row]

    @property
    def labels(self) -> list[str]:
        return [b["text"] for b in self.buttons]

    @property
    def forces_reply(self) -> bool:
        return bool(self.markup and self.markup.get("force_reply"))


@dataclass(eq=False)
class Query:
    """A pressed button."""

    id: str
    answered: bool = False
    text: str = ""
    alert: bool = False
    too_old: bool = False


class FakeTelegram:
    """Start it with ``await start()``; ``url`` is the Bot API root."""

    def __init__(self) -> None:
        self.url = ""
        self.chats: dict[int, dict[str, Any]] = {}
        self.people: dict[int, dict[str, Any]] = {}
        self.messages: list[Posted] = []
        self.drafts: list[tuple[int, int, str]] = []
        self.queries: dict[str, Query] = {}
        self.commands: dict[str, list[str]] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.faults: dict[str, deque[Refusal]] = defaultdict(deque)
        self.limited: dict[int, deque[int]] = defaultdict(deque)
        self.blocked: dict[int, str] = {}
        self.webhook: dict[str, str] = {}
        self.deliveries: list[tuple[int, int]] = []
        self.privacy = True
        self.conflicts = 0
        self._updates: list[dict[str, Any]] = []
        self._ids = iter(range(1000, 10**9))
        self._poller: asyncio.Event | None = None
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._runner: web.AppRunner | None = None

    # -- running

    async def start(self) -> str:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/bot{token}/{method}", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self.url

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._poller:
            self._poller.set()
        if self._runner:
            await self._runner.cleanup()

    async def until(self, holds: Callable[[], Any], why: str = "") -> Any:
        """Wait until something is true here; whatever the client does wakes this up."""
        try:
            async with asyncio.timeout(_PATIENCE), self._changed:
                while not (found := holds()):
                    await self._changed.wait()
                return found
        except TimeoutError:
            seen = "\n".join(f"  {m.chat_id}/{m.message_id}: {m.text!r} {m.labels}" for m in self.messages)
            raise AssertionError(f"never happened: {why or holds}\n{seen}") from None

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    # -- people

    def person(self, user_id: int, name: str = "Ana") -> int:
        """Somebody who has a private chat with the bot."""
        self.people[user_id] = {"id": user_id, "is_bot": False, "first_name": name}
        self.chats[user_id] = {"id": user_id, "type": "private", "first_name": name}
        return user_id

    def group(self, chat_id: int, title: str = "Team", *, forum: bool = False) -> int:
        self.chats[chat_id] = {"id": chat_id, "type": "supergroup", "title": title, "is_forum": forum}
        return chat_id

    async def say(
        self,
        user_id: int,
        text: str | None,
        chat_id: int | None = None,
        *,
        thread: int | None = None,
        reply_to: Posted | None = None,
        **more: Any,
    ) -> int:
        """A person writes; returns the update's id. In a group the bot hears what privacy mode lets it."""
        chat = chat_id or user_id
        message: dict[str, Any] = {
            "message_id": next(self._ids),
            "date": 1_770_000_000,
            "chat": self.chats[chat],
            "from": self.people[user_id],
            **more,
        }
        if text is not None:
            message |= {"text": text, "entities": _found_entities(text)}
        if thread is not None:
            message |= {"message_thread_id": thread, "is_topic_message": True}
        if reply_to is not None:
            message["reply_to_message"] = self._shown(reply_to, deep=False)
        self.messages.append(
            Posted(chat, message["message_id"], text or "", [], None, thread, self.people[user_id])
        )
        if chat < 0 and self.privacy and not _for_bot(message):
            return 0
        return await self.deliver({"message": message})

    async def edit_own(self, user_id: int, text: str, chat_id: int | None = None) -> int:
        """A person edits what they wrote last."""
        chat = chat_id or user_id
        mine = [m for m in self.messages if m.chat_id == chat and m.sender["id"] == user_id]
        shown = self._shown(mine[-1]) | {
            "text": text,
            "edit_date": 1_770_000_100,
            "from": self.people[user_id],
        }
        return await self.deliver({"edited_message": shown})

    async def press(self, user_id: int, message: Posted, label: str) -> Query:
        """Press the button with this label; raises when there is none. Returns once it was answered."""
        found = [b for b in message.buttons if b["text"] == label or b["text"].startswith(f"{label} (")]
        if message.deleted or len(found) != 1:
            raise AssertionError(f"no button {label!r} under {message.text!r}: {message.labels}")
        return await self.press_data(user_id, message, found[0]["callback_data"])

    async def press_data(self, user_id: int, message: Posted, data: str, *, too_old: bool = False) -> Query:
        """Send any callback data, as a forged client could."""
        query = Query(str(next(self._ids)), too_old=too_old)
        self.queries[query.id] = query
        shown = self._shown(message)
        if message.inaccessible:
            shown = {"chat": shown["chat"], "message_id": message.message_id, "date": 0}
        await self.deliver(
            {
                "callback_query": {
                    "id": query.id,
                    "from": self.people[user_id],
                    "message": shown,
                    "chat_instance": "1",
                    "data": data,
                }
            }
        )
        await self.until(lambda: query.answered, f"the press of {data!r} is answered")
        return query

    async def deliver(self, update: dict[str, Any]) -> int:
        """Hand an update to the bot by webhook, or keep it for its next poll; returns its id."""
        update.setdefault("update_id", next(self._ids))
        self._updates.append(update)
        if self.webhook:
            task = asyncio.create_task(self._post(update))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        await self._wake()
        return int(update["update_id"])

    async def _post(self, update: dict[str, Any]) -> None:
        headers = {"X-Telegram-Bot-Api-Secret-Token": self.webhook.get("secret_token", "")}
        async with (
            aiohttp.ClientSession() as session,
            session.post(self.webhook["url"], json=update, headers=headers) as answer,
        ):
            self.deliveries.append((update["update_id"], answer.status))
            if answer.status == 200:
                self._updates.remove(update)
        await self._wake()

    # -- looking

    def shown(self, chat_id: int, containing: str = "", *, thread: int | None = None) -> list[Posted]:
        """The bot's messages in a chat, oldest first."""
        return [
            m
            for m in self.messages
            if m.chat_id == chat_id
            and m.sender is BOT
            and not m.deleted
            and containing in m.text
            and (thread is None or m.thread == thread)
        ]

    async def see(self, chat_id: int, containing: str = "", *, count: int = 1) -> Posted:
        """Wait for the bot's message and return the newest that fits."""
        wanted = f"{containing!r} in {chat_id}"
        return (
            await self.until(
                lambda: found if len(found := self.shown(chat_id, containing)) >= count else None, wanted
            )
        )[-1]

    def called(self, method: str) -> list[dict[str, Any]]:
        return [params for name, params in self.calls if name == method]

    def fail(self, method: str, status: int, description: str, **parameters: Any) -> None:
        """Refuse the next call of a method."""
        self.faults[method].append(Refusal(status, description, **parameters))

    # -- the API

    async def _serve(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        if request.match_info["token"] != TOKEN:
            return web.json_response(
                {"ok": False, "error_code": 401, "description": "Unauthorized"}, status=401
            )
        params: dict[str, Any] = {}
        for name, value in (await request.post()).items():
            raw = value if isinstance(value, str) else value.file.read().decode()
            params[name] = decoded(name, raw) if isinstance(value, str) else raw
        self.calls.append((method, params))
        await self._wake()
        try:
            self._check_faults(method)
            self._check_chat(method, params)
            result = await getattr(self, f"_do_{method}")(params)
        except Refusal as refusal:
            answer = {"ok": False, "error_code": refusal.status, "description": refusal.description}
            if refusal.parameters:
                answer["parameters"] = refusal.parameters
            await self._wake()
            return web.json_response(answer, status=refusal.status)
        await self._wake()
        return web.json_response({"ok": True, "result": result})

    def _check_faults(self, method: str) -> None:
        if self.faults[method]:
            raise self.faults[method].popleft()
        if not hasattr(self, f"_do_{method}"):
            raise Refusal(404, "Not Found")

    def _check_chat(self, method: str, params: dict[str, Any]) -> None:
        chat = params.get("chat_id")
        if chat is None:
            return
        if chat in self.blocked:
            raise Refusal(403, f"Forbidden: {self.blocked[chat]}")
        if chat not in self.chats:
            raise bad("chat not found")
        if method in _SENDING and self.limited[chat]:
            seconds = self.limited[chat].popleft()
            raise Refusal(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)

    async def _do_getMe(self, _: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return BOT | {
            "can_join_groups": True,
            "can_read_all_group_messages": not self.privacy,
            "supports_inline_queries": False,
        }

    async def _do_getUpdates(self, params: dict[str, Any]) -> list[dict[str, Any]]:  # noqa: N802
        if self.webhook:
            raise Refusal(409, "Conflict: can't use getUpdates method while webhook is active")
        if self._poller is not None:
            self._poller.set()
            await self._wake()
        mine = self._poller = asyncio.Event()
        offset = params.get("offset", 0)
        self._updates = [u for u in self._updates if u["update_id"] >= offset]
        try:
            async with asyncio.timeout(params.get("timeout", 0)), self._changed:
                while not self._updates and not mine.is_set():
                    await self._changed.wait()
        except TimeoutError:
            pass
        finally:
            if self._poller is mine:
                self._poller = None
        if mine.is_set():
            self.conflicts += 1
            raise Refusal(409, "Conflict: terminated by other getUpdates request; only one bot may run")
        return list(self._updates)

    async def _do_setWebhook(self, params: dict[str, Any]) -> bool:  # noqa: N802
        self.webhook = {k: params[k] for k in ("url", "secret_token") if k in params}
        for update in self._updates:
            await self._post(update)
        return True

    async def _do_deleteWebhook(self, _: dict[str, Any]) -> bool:  # noqa: N802
        self.webhook = {}
        return True

    async def _do_getWebhookInfo(self, _: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {
            "url": self.webhook.get("url", ""),
            "has_custom_certificate": False,
            "pending_update_count": len(self._updates),
        }

    async def _do_setMyCommands(self, params: dict[str, Any]) -> bool:  # noqa: N802
        scope = params.get("scope") or {"type": "default"}
        if scope["type"] == "chat" and scope["chat_id"] not in self.chats:
            raise bad("chat not found")
        self.commands[json.dumps(scope)] = [c["command"] for c in params["commands"]]
        return True

    async def _do_sendMessage(self, params: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        posted = self._put(params, check_text(params.get("text", ""), params.get("entities", [])))
        return self._shown(posted)

    async def _do_sendDocument(self, params: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        caption = check_text(params.get("caption", ""), [], CAPTION, empty=True)
        posted = self._put(params, caption)
        name = str(params["document"]).removeprefix("attach://")
        posted.document = params.get(name, params["document"])
        return self._shown(posted)

    def _put(self, params: dict[str, Any], text: str) -> Posted:
        check_markup(params.get("reply_markup"))
        posted = Posted(
            params["chat_id"],
            next(self._ids),
            text,
            params.get("entities", []),
            params.get("reply_markup"),
            params.get("message_thread_id"),
            reply_to=(params.get("reply_parameters") or {}).get("message_id"),
        )
        self.messages.append(posted)
        return posted

    async def _do_sendMessageDraft(self, params: dict[str, Any]) -> bool:  # noqa: N802
        if self.chats[params["chat_id"]]["type"] != "private":
            raise bad("TEXTDRAFT_PEER_INVALID")
        if not params.get("draft_id"):
            raise bad("RANDOM_ID_INVALID")
        text = check_text(params.get("text", ""), params.get("entities", []), empty=True)
        self.drafts.append((params["chat_id"], params["draft_id"], text))
        return True

    async def _do_editMessageText(self, params: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        posted = self._own(params)
        text = check_text(params.get("text", ""), params.get("entities", []))
        markup, entities = params.get("reply_markup"), params.get("entities", [])
        check_markup(markup)
        if (text, entities, markup or None) == (posted.text, posted.entities, posted.markup or None):
            raise bad(_SAME)
        posted.text, posted.entities, posted.markup = text, entities, markup  # no markup: no keyboard
        posted.edits += 1
        return self._shown(posted)

    async def _do_editMessageReplyMarkup(self, params: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        posted = self._own(params)
        check_markup(params.get("reply_markup"))
        if params.get("reply_markup") == posted.markup:
            raise bad(_SAME)
        posted.markup = params.get("reply_markup")
        return self._shown(posted)

    async def _do_deleteMessage(self, params: dict[str, Any]) -> bool:  # noqa: N802
        try:
            self._own(params).deleted = True
        except Refusal:
            raise bad("message to delete not found") from None
        return True

    async def _do_answerCallbackQuery(self, params: dict[str, Any]) -> bool:  # noqa: N802
        query = self.queries.get(str(params["callback_query_id"]))
        if query is not None and query.too_old:
            query.answered = True
        if query is None or query.too_old:
            raise bad("query is too old and response timeout expired or query ID is invalid")
        if units(params.get("text", "")) > 200:
            raise bad("MESSAGE_TOO_LONG")
        query.answered, query.text = True, params.get("text", "")
        query.alert = bool(params.get("show_alert"))
        return True

    def _own(self, params: dict[str, Any]) -> Posted:
        for posted in self.messages:
            if (posted.chat_id, posted.message_id) == (params["chat_id"], params["message_id"]):
                if posted.sender is not BOT:
                    raise bad("message can't be edited")
                if not posted.deleted:
                    return posted
        raise bad("message to edit not found")

    def _shown(self, posted: Posted, *, deep: bool = True) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "message_id": posted.message_id,
            "date": 1_770_000_000,
            "chat": self.chats[posted.chat_id],
            "from": posted.sender,
        }
        if posted.document is not None:
            shown |= {"caption": posted.text, "document": {"file_id": "f", "file_unique_id": "u"}}
        elif posted.text:
            shown |= {"text": posted.text, "entities": posted.entities}
        if posted.thread is not None:
            shown |= {"message_thread_id": posted.thread, "is_topic_message": True}
        if deep and posted.markup and "inline_keyboard" in posted.markup:
            shown["reply_markup"] = posted.markup
        return shown


_SAME = (
    "message is not modified: specified new message content and reply markup are exactly the same as a "
    "current content and reply markup of the message"
)


def _found_entities(text: str) -> list[dict[str, Any]]:
    """The commands and mentions Telegram itself marks."""
    found = []
    at = 0
    for word in text.split(" "):
        if word.startswith("/") and at == 0 and len(word) > 1:
            found.append({"type": "bot_command", "offset": 0, "length": units(word)})
        if word.startswith("@") and len(word) > 1:
            found.append({"type": "mention", "offset": units(text[:at]), "length": units(word.rstrip(",:"))})
        at += len(word) + 1
    return found


def _for_bot(message: dict[str, Any]) -> bool:
    text = message.get("text") or message.get("caption") or ""
    answered = message.get("reply_to_message", {}).get("from", {}).get("id") == BOT["id"]
    return answered or text.startswith("/") or f"@{BOT['username']}" in text
