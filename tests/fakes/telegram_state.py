"""What Telegram knows: chats, messages, drafts, buttons, commands; and the methods that change it.

``telegram_server.py`` puts it on HTTP and plays the people; ``telegram_rules.py`` says what is refused.
"""

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.telegram_rules import CAPTION, Refusal, bad, check_markup, check_text, units

TOKEN = "4242:fake-token-for-the-loopback-server-000"
BOT = {"id": 4242, "is_bot": True, "first_name": "Nod", "username": "nod_test_bot"}
_PATIENCE = 30.0
_GROUP = (20, 60.0)  # sends and edits, seconds
_PERSON = (30, 30.0)
_ALL = (30, 1.0)
QUERY_LIVES = 15.0  # seconds
_POSTING = {"sendMessage", "sendDocument", "sendChatAction"}  # what a closed topic refuses
_SENDING = {
    "sendMessage",
    "editMessageText",
    "sendDocument",
    "editMessageReplyMarkup",
    "sendMessageDraft",
    "editEphemeralMessageText",
    "editEphemeralMessageReplyMarkup",
}


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
    receiver: int | None = None
    """The one person who sees it; then ``message_id`` is 0, and ``ephemeral_id`` names it."""
    ephemeral_id: int = 0
    deleted: bool = False
    inaccessible: bool = False
    edits: int = 0

    @property
    def buttons(self) -> list[dict[str, Any]]:
        return [b for row in (self.markup or {}).get("inline_keyboard", []) for b in row]

    @property
    def labels(self) -> list[str]:
        """Of those that can be pressed."""
        return [b["text"] for b in self.buttons if "disabled" not in b]

    @property
    def more(self) -> str | None:
        """The data of the button that shows further ones."""
        return next((b["callback_data"] for b in self.buttons if b["text"] == "⋯ More"), None)

    @property
    def forces_reply(self) -> bool:
        return bool(self.markup and self.markup.get("force_reply"))


@dataclass(eq=False)
class Query:
    """A pressed button."""

    id: str
    user_id: int
    answered: bool = False
    text: str = ""
    alert: bool = False
    too_old: bool = False
    asked: float = 0.0
    chat_id: int = 0
    ephemeral: bool = False


_SAME = (
    "message is not modified: specified new message content and reply markup are exactly the same as a "
    "current content and reply markup of the message"
)


class BotApi:
    """The methods of the Bot API as ``_do_<method>``, over state that tests may read and set."""

    def __init__(self) -> None:
        self.chats: dict[int, dict[str, Any]] = {}
        self.people: dict[int, dict[str, Any]] = {}
        self.admins: dict[int, list[dict[str, Any]]] = {}
        """By group: its admins as the people they are, the owner first."""
        self.left: set[tuple[int, int]] = set()
        """Of a group and a person: who is no longer in it."""
        self.messages: list[Posted] = []
        self.drafts: list[tuple[int, int, str]] = []
        self.stoppable: set[tuple[int, int]] = set()  # chat and draft, with a stop button (Bot API 10.3)
        self.has_stop = True  # a server before Bot API 10.3 has none
        self.allowed: list[str] = []  # kinds of updates that the bot asked for
        self.over = 0
        """How many requests came above the limits."""
        self.actions: list[tuple[int, int | None, str]] = []
        self.queries: dict[str, Query] = {}
        self.commands: dict[str, list[str]] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.faults: dict[str, deque[Refusal | None]] = defaultdict(deque)
        self.lost: dict[str, list[str]] = defaultdict(list)
        self.limited: dict[int, deque[int]] = defaultdict(deque)
        self.moved: dict[int, int] = {}
        self.older = False  # a server before Bot API 7.11
        self.whispers = True
        """Whether it knows messages for one person alone; a server before Bot API 10.3 does not."""
        self.may_whisper = True
        """Whether it lets the bot send any."""
        self.forgotten = False
        """Whether messages for one person alone are gone, as Telegram lets them."""
        self.written_alone: dict[int, tuple[int, int, float]] = {}
        """What people answered the bot alone, by its ephemeral id: the chat, who, and when."""
        self.now: Callable[[], float] | None = None
        """Seconds; with it, a chat that is written to too fast refuses, edits and sends counted together."""
        self.local = False
        """A Bot API server of one's own: it takes a webhook without https."""
        self.blocked: dict[int, str] = {}
        self.deleted_topics: set[tuple[int, int]] = set()
        self.closed_topics: set[tuple[int, int | None]] = set()
        self.webhook: dict[str, str] = {}
        self.deliveries: list[tuple[int, int]] = []
        self.privacy = True
        self.conflicts = 0
        self._updates: list[dict[str, Any]] = []
        self._ids = iter(range(1000, 10**9))
        self._ids_of: dict[int, Iterator[int]] = defaultdict(lambda: iter(range(1, 10**9)))
        self._written: dict[int, deque[float]] = defaultdict(deque)
        self._poller: asyncio.Event | None = None
        self._changed = asyncio.Condition()

    def delete_topic(self, chat_id: int, thread: int) -> None:
        """Someone deletes a topic, and with it all that was written there."""
        self.deleted_topics.add((chat_id, thread))
        for each in self.messages:
            each.deleted = each.deleted or (each.chat_id, each.thread) == (chat_id, thread)

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

    async def _post(self, update: dict[str, Any]) -> None:
        """Deliver an update to the webhook."""
        raise NotImplementedError

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()

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

    def seen_by(self, user_id: int, chat_id: int, containing: str = "") -> list[Posted]:
        """What this person sees of the bot's messages there, oldest first."""
        return [m for m in self.shown(chat_id, containing) if m.receiver in (None, user_id)]

    def below(self, user_id: int, message: Posted) -> list[Posted]:
        """What they see of the bot's messages below that one."""
        after = set(map(id, self.messages[self.messages.index(message) + 1 :]))
        return [m for m in self.seen_by(user_id, message.chat_id) if id(m) in after]

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

    def fail(
        self, method: str, status: int, description: str, times: int = 1, after: int = 0, **parameters: Any
    ) -> None:
        """Refuse the next calls of a method, ``after`` so many that are taken."""
        self.faults[method].extend([None] * after)
        self.faults[method].extend(Refusal(status, description, **parameters) for _ in range(times))

    def lose(self, method: str, containing: str = "") -> None:
        """Act on the next call of a method (with this text), and drop the connection instead of answering."""
        self.lost[method].append(containing)

    def loses(self, method: str, params: dict[str, Any]) -> bool:
        """Whether the answer to this call is lost; each `lose` loses one."""
        for wanted in self.lost[method]:
            if wanted in str(params.get("text", "")):
                self.lost[method].remove(wanted)
                return True
        return False

    def message_id(self, chat_id: int) -> int:
        """Give the next id: supergroups count their own, so ids of other chats come again there."""
        supergroup = self.chats[chat_id]["type"] == "supergroup"
        return next(self._ids_of[chat_id] if supergroup else self._ids)

    # -- methods

    def _check_faults(self, method: str) -> None:
        if self.faults[method] and (fault := self.faults[method].popleft()):
            raise fault
        if not hasattr(self, f"_do_{method}"):
            raise Refusal(404, "Not Found")

    def _check_chat(self, method: str, params: dict[str, Any]) -> None:
        chat = params.get("chat_id")
        if chat is None:
            return
        if chat in self.moved:
            raise Refusal(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                migrate_to_chat_id=self.moved[chat],
            )
        if chat in self.blocked:
            raise Refusal(403, f"Forbidden: {self.blocked[chat]}")
        if chat not in self.chats:
            raise bad("chat not found")
        if (chat, params.get("message_thread_id")) in self.deleted_topics:
            raise bad("message thread not found")
        if method in _POSTING and (chat, params.get("message_thread_id")) in self.closed_topics:
            raise bad("TOPIC_CLOSED")
        if method in _SENDING and self.limited[chat]:
            seconds = self.limited[chat].popleft()
            raise Refusal(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)
        if method in _SENDING - {"sendMessageDraft"}:
            self._check_pace(chat)

    def _check_pace(self, chat: int) -> None:
        if self.now is None:
            return
        for line, (most, seconds) in ((chat, _PERSON if chat > 0 else _GROUP), (0, _ALL)):
            written = self._written[line]
            while written and written[0] <= self.now() - seconds:
                written.popleft()
            if len(written) >= most:
                self.over += 1
                wait = int(written[0] + seconds - self.now()) + 1
                raise Refusal(429, f"Too Many Requests: retry after {wait}", retry_after=wait)
            written.append(self.now())

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
        self.allowed = params.get("allowed_updates", self.allowed)
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
        if not self.local and not params.get("url", "").startswith("https://"):
            raise bad("bad webhook: An HTTPS URL must be provided for webhook")
        self.allowed = params.get("allowed_updates", self.allowed)
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

    async def _do_sendChatAction(self, params: dict[str, Any]) -> bool:  # noqa: N802
        self.actions.append((params["chat_id"], params.get("message_thread_id"), params["action"]))
        return True

    async def _do_getChat(self, params: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        gifts = dict.fromkeys(
            (
                "unlimited_gifts",
                "limited_gifts",
                "unique_gifts",
                "premium_subscription",
                "gifts_from_channels",
            ),
            False,
        )
        more = {"accent_color_id": 0, "max_reaction_count": 11, "accepted_gift_types": gifts}
        return self.chats[params["chat_id"]] | more

    async def _do_getChatAdministrators(self, params: dict[str, Any]) -> list[dict[str, Any]]:  # noqa: N802
        if params["chat_id"] > 0:
            raise bad("there are no administrators in the private chat")
        may = [
            "can_be_edited",
            "can_manage_chat",
            "can_delete_messages",
            "can_manage_video_chats",
            "can_restrict_members",
            "can_promote_members",
            "can_change_info",
            "can_invite_users",
            "can_post_stories",
            "can_edit_stories",
            "can_delete_stories",
        ]
        rights = dict.fromkeys(may, False) | {"is_anonymous": False}
        found = [
            {"user": each, "status": "administrator"} | rights for each in self.admins[params["chat_id"]]
        ]
        found[:1] = [{"user": found[0]["user"], "status": "creator", "is_anonymous": False}]
        return [*found, {"user": BOT, "status": "administrator"} | rights]

    async def _do_getChatMember(self, params: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        chat_id, user_id = params["chat_id"], params["user_id"]
        if user_id not in self.people:
            raise bad("PARTICIPANT_ID_INVALID")
        status = "left" if (chat_id, user_id) in self.left else "member"
        return {"user": self.people[user_id], "status": status}

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
        check_markup(params.get("reply_markup"), older=self.older)
        reply = params.get("reply_parameters") or {}
        if receiver := self._receiver(params):
            return self._put_alone(params, text, receiver)
        if "ephemeral_message_id" in reply:
            reply = {}  # an older server reads what it knows
        there = {m.message_id for m in self.messages if m.chat_id == params["chat_id"] and not m.deleted}
        if reply and reply["message_id"] not in there:
            if not reply.get("allow_sending_without_reply"):
                raise bad("message to be replied not found")
            reply = {}
        posted = Posted(
            params["chat_id"],
            self.message_id(params["chat_id"]),
            text,
            params.get("entities", []),
            params.get("reply_markup"),
            params.get("message_thread_id"),
            reply_to=reply.get("message_id"),
        )
        self.messages.append(posted)
        return posted

    def _receiver(self, params: dict[str, Any]) -> int | None:
        """Who alone a message is for; a server that does not know this overlooks it.

        How a refusal reads is not documented: the words here are made up.
        """
        asked = params.get("ephemeral_message_parameters")
        if asked is None or self.older or not self.whispers:
            return None
        chat, user = params["chat_id"], asked["receiver_user_id"]
        if self.chats[chat]["type"] == "private":
            raise bad("PEER_ID_INVALID")
        if user not in self.people or (chat, user) in self.left:
            raise bad("USER_NOT_PARTICIPANT")
        query = self.queries.get(str(asked.get("callback_query_id")))
        if query is not None:
            if asked.get("replace_callback_query_message") and query.ephemeral:
                raise bad("ephemeral messages can't be replaced")
            by = query.chat_id, query.user_id, query.asked
            too_old = query.too_old
        else:
            answered = (params.get("reply_parameters") or {}).get("ephemeral_message_id", 0)
            by, too_old = self.written_alone.get(answered, (0, 0, 0.0)), False
        now = self.now() if self.now is not None else 0.0
        if not self.may_whisper or by[:2] != (chat, user) or too_old or now - by[2] > QUERY_LIVES:
            raise bad("CHAT_ADMIN_REQUIRED")  # an admin could, at any time
        return int(user)

    def _put_alone(self, params: dict[str, Any], text: str, receiver: int) -> Posted:
        chat, thread = params["chat_id"], params.get("message_thread_id")
        entities, markup = params.get("entities", []), params.get("reply_markup")
        posted = Posted(chat, 0, text, entities, markup, thread, receiver=receiver)
        posted.ephemeral_id = next(self._ids)
        self.messages.append(posted)
        return posted

    def _own_alone(self, params: dict[str, Any]) -> Posted:
        named = (params["chat_id"], params["receiver_user_id"], params["ephemeral_message_id"])
        for posted in self.messages:
            if (posted.chat_id, posted.receiver, posted.ephemeral_id) == named and not posted.deleted:
                if self.forgotten:
                    break
                return posted
        raise bad("MESSAGE_ID_INVALID")

    async def _do_editEphemeralMessageText(self, params: dict[str, Any]) -> bool:  # noqa: N802
        posted = self._own_alone(params)
        # https://github.com/tdlib/telegram-bot-api/issues/881
        text = check_text(params.get("text", ""), params.get("entities", []), CAPTION)
        if params.get("link_preview_options") != {"is_disabled": True}:
            raise AssertionError("a raw call has no defaults: it would show a preview of links")
        check_markup(params.get("reply_markup"), older=self.older)
        posted.text, posted.entities, posted.markup = (
            text,
            params.get("entities", []),
            params.get("reply_markup"),
        )
        posted.edits += 1
        return True

    async def _do_editEphemeralMessageReplyMarkup(self, params: dict[str, Any]) -> bool:  # noqa: N802
        posted = self._own_alone(params)
        check_markup(params.get("reply_markup"), older=self.older)
        posted.markup = params.get("reply_markup")
        return True

    async def _do_deleteEphemeralMessage(self, params: dict[str, Any]) -> bool:  # noqa: N802
        self._own_alone(params).deleted = True
        return True

    async def _do_sendMessageDraft(self, params: dict[str, Any]) -> bool:  # noqa: N802
        if self.chats[params["chat_id"]]["type"] != "private":
            raise bad("TEXTDRAFT_PEER_INVALID")
        if not params.get("draft_id"):
            raise bad("RANDOM_ID_INVALID")
        text = check_text(params.get("text", ""), params.get("entities", []), empty=True)
        self.drafts.append((params["chat_id"], params["draft_id"], text))
        if self.has_stop and params.get("can_stop"):
            self.stoppable.add((params["chat_id"], params["draft_id"]))
        return True

    async def _do_editMessageText(self, params: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        posted = self._own(params)
        text = check_text(params.get("text", ""), params.get("entities", []))
        markup, entities = params.get("reply_markup"), params.get("entities", [])
        check_markup(markup, older=self.older)
        if (text, entities, markup or None) == (posted.text, posted.entities, posted.markup or None):
            raise bad(_SAME)
        posted.text, posted.entities, posted.markup = text, entities, markup  # no markup: no keyboard
        posted.edits += 1
        return self._shown(posted)

    async def _do_editMessageReplyMarkup(self, params: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        posted = self._own(params)
        check_markup(params.get("reply_markup"), older=self.older)
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
        if query is not None and self.now is not None and self.now() - query.asked > QUERY_LIVES:
            query.too_old = True
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
            named = (params["chat_id"], params["message_id"])
            if posted.receiver is None and (posted.chat_id, posted.message_id) == named:
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
        if posted.receiver is not None:
            # of the bot's own it is the person, of what a person wrote to it alone the bot
            to = self.people[posted.receiver] if posted.sender is BOT else BOT
            shown |= {"ephemeral_message_id": posted.ephemeral_id, "receiver_user": to}
        if posted.thread is not None:
            shown |= {"message_thread_id": posted.thread, "is_topic_message": True}
        if deep and posted.markup and "inline_keyboard" in posted.markup:
            shown["reply_markup"] = posted.markup
        return shown
