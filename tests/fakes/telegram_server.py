"""The Bot API on loopback, spoken to by the real client library; keeps state as Telegram does.

People are played through `FakeTelegram.say` and `FakeTelegram.press`, which only press buttons that really
stand under a message. The methods are in ``telegram_state.py``.
"""

import asyncio
from typing import Any

import aiohttp
from aiohttp import web

from tests.fakes.telegram_rules import Refusal, bad, decoded, units
from tests.fakes.telegram_state import BOT, TOKEN, BotApi, Posted, Query

__all__ = ["TOKEN", "FakeTelegram", "Posted"]


class FakeTelegram(BotApi):
    """Start it with ``await start()``; ``url`` is the Bot API root."""

    def __init__(self) -> None:
        super().__init__()
        self.url = ""
        self.attached: dict[str, bytes] = {}  # what people attached, by its id
        self._tasks: set[asyncio.Task[None]] = set()
        self._runner: web.AppRunner | None = None

    # -- running

    async def start(self) -> str:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/bot{token}/{method}", self._serve)
        app.router.add_get("/file/bot{token}/{path}", self._download)
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

    # -- people

    def person(self, user_id: int, name: str = "Ana") -> int:
        """Someone who has a private chat with the bot."""
        self.people[user_id] = {"id": user_id, "is_bot": False, "first_name": name}
        self.chats[user_id] = {"id": user_id, "type": "private", "first_name": name}
        return user_id

    def group(self, chat_id: int, title: str = "Team", *, forum: bool = False, basic: bool = False) -> int:
        """A group; a ``basic`` one may become a supergroup, see `upgrade`."""
        kind = "group" if basic else "supergroup"
        self.chats[chat_id] = {"id": chat_id, "type": kind, "title": title, "is_forum": forum}
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
        """A person writes; returns the update's id. In a group the bot receives what privacy mode lets it."""
        chat = chat_id or user_id
        message: dict[str, Any] = {
            "message_id": self.message_id(chat),
            "date": 1_770_000_000,
            "chat": self.chats[chat],
            "from": self.people[user_id],
            **more,
        }
        if text is not None:
            message |= {"text": text, "entities": more.get("entities") or _found_entities(text)}
        if thread is not None:
            message |= {"message_thread_id": thread, "is_topic_message": True}
        if reply_to is not None:
            if reply_to.receiver not in (None, user_id):
                raise AssertionError(f"{user_id} does not see {reply_to.text!r}")
            message["reply_to_message"] = self._shown(reply_to, deep=False)
        if reply_to is not None and reply_to.receiver is not None:  # then the bot alone receives it
            number = next(self._ids)
            message |= {"message_id": 0, "ephemeral_message_id": number, "receiver_user": BOT}
            self.written_alone[number] = (chat, user_id, self.now() if self.now is not None else 0.0)
            return await self.deliver({"message": message})
        self.messages.append(
            Posted(chat, message["message_id"], text or "", [], None, thread, self.people[user_id])
        )
        if chat < 0 and self.privacy and not _for_bot(message):
            return 0
        return await self.deliver({"message": message})

    async def stop_draft(self, user_id: int, draft_id: int | None = None, **more: Any) -> int:
        """A person presses Telegram's own stop button of a draft, the newest by default.

        Raises where the bot did not ask for the button, or for the update.
        """
        draft_id = draft_id or next(draft for chat, draft, _ in reversed(self.drafts) if chat == user_id)
        await self.until(lambda: "stopped_message_generation" in self.allowed, "the bot asks for stops")
        if (user_id, draft_id) not in self.stoppable:
            raise AssertionError(f"draft {draft_id} has no stop button")
        stopped = {"chat": self.chats[user_id], "draft_id": draft_id, **more}
        return await self.deliver({"stopped_message_generation": stopped})

    async def say_unreadable(self, user_id: int, chat_id: int | None = None) -> int:
        """A person posts a poll as an older server tells it: without fields that the library demands."""
        answer = {"persistent_id": "1", "text": "yes", "voter_count": 0}
        poll = {"id": "1", "question": "Lunch?", "options": [answer], "type": "regular"}
        return await self.say(user_id, None, chat_id, poll=poll)

    async def upgrade(self, old: int, new: int, *, told: bool = True) -> None:
        """A group becomes a supergroup: a new id for good, and no message of the old one can be changed."""
        self.group(new, self.chats[old]["title"])
        self.moved[old] = new
        if told:
            someone = next(iter(self.people.values()))
            notes = ((old, {"migrate_to_chat_id": new}), (new, {"migrate_from_chat_id": old}))
            for chat, note in notes:
                message = {"message_id": self.message_id(chat), "date": 1_770_000_000}
                await self.deliver({"message": message | {"chat": self.chats[chat], "from": someone} | note})

    async def edit_own(self, user_id: int, text: str, chat_id: int | None = None) -> int:
        """A person edits what they wrote last."""
        chat = chat_id or user_id
        mine = [m for m in self.messages if m.chat_id == chat and m.sender["id"] == user_id]
        shown = self._shown(mine[-1]) | {
            "text": text,
            "entities": _found_entities(text),
            "edit_date": 1_770_000_100,
            "from": self.people[user_id],
        }
        return await self.deliver({"edited_message": shown})

    async def press(self, user_id: int, message: Posted, label: str) -> Query:
        """Press the button with this label, also behind *More*; raises if there isn't one.

        Returns once it was answered.
        """
        if not any(each.startswith(label) for each in message.labels) and (more := message.more):
            await self.press_data(user_id, message, more)
            message = self.menu(user_id, message.chat_id) or message
        if message.receiver not in (None, user_id):
            raise AssertionError(f"{user_id} does not see {message.text!r}")
        found = [b for b in message.buttons if b["text"] == label or b["text"].startswith(f"{label} (")]
        if message.deleted or len(found) != 1:
            raise AssertionError(f"no button {label!r} under {message.text!r}: {message.labels}")
        return await self.press_data(user_id, message, found[0]["callback_data"])

    def menu(self, user_id: int, chat_id: int) -> Posted | None:
        """What *More* opened last for this person alone."""
        found = [m for m in self.shown(chat_id, "More: ") if m.receiver == user_id]
        return found[-1] if found else None

    async def press_data(self, user_id: int, message: Posted, data: str, *, too_old: bool = False) -> Query:
        """Send any callback data, as a forged client could. Returns once it was answered."""
        query = await self.begin_press(user_id, message, data, too_old=too_old)
        await self.until(lambda: query.answered, f"the press of {data!r} is answered")
        return query

    async def begin_press(self, user_id: int, message: Posted, data: str, *, too_old: bool = False) -> Query:
        """Send it, and do not wait for the answer."""
        query = Query(str(next(self._ids)), user_id, too_old=too_old, chat_id=message.chat_id)
        query.ephemeral = message.receiver is not None
        query.asked = self.now() if self.now is not None else 0.0
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

    # -- the API

    def attach(self, name: str, data: bytes) -> dict[str, Any]:
        """A file that a person attaches, as a message has it."""
        ident = f"file{len(self.attached)}"
        self.attached[ident] = data
        return {"file_id": ident, "file_unique_id": ident, "file_size": len(data), "file_name": name}

    async def _do_getFile(self, params: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        ident = params["file_id"]
        if ident not in self.attached:
            raise bad("wrong file_id or the file is temporarily unavailable")
        if len(self.attached[ident]) > 20 << 20:
            raise bad("file is too big")
        return {"file_id": ident, "file_unique_id": ident, "file_path": ident}

    async def _download(self, request: web.Request) -> web.Response:
        if request.match_info["token"] != TOKEN:
            raise web.HTTPUnauthorized
        return web.Response(body=self.attached[request.match_info["path"]])

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
        if self.loses(method, params) and request.transport is not None:
            request.transport.abort()
        return web.json_response({"ok": True, "result": result})


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
