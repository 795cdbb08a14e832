"""Calls to Telegram, with its refusals as Nod's own errors.

`NotDeliverable` where it will never arrive, `CopyGone` where the message is no longer there, `ChannelError`
for the rest. "Not modified" and "query is too old" are no errors. What the server cannot parse goes out as
plain text. A group that became a supergroup is followed to its new id; its old messages are gone. The HTTP
client is the library's; it also notes whether Telegram accepts the token.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Any, TypeVar

from telegram import (
    Bot,
    ChatMember,
    ForceReply,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    MaybeInaccessibleMessage,
    Message,
    MessageEntity,
    ReplyParameters,
    User,
)
from telegram.constants import ChatAction, ChatMemberStatus
from telegram.error import BadRequest, ChatMigrated, Forbidden, InvalidToken, TelegramError
from telegram.ext import ExtBot
from telegram.request import HTTPXRequest

from bot.channels.base import SILENT
from bot.channels.streamed_message import FullText
from bot.channels.telegram.buttons import without_newer
from bot.channels.telegram.limits import CAPTION_UNITS, TOAST, Urgency
from bot.channels.telegram.places import Alone, Moves, TelegramPlace, TelegramPosted
from bot.channels.telegram.text import Rich, split
from bot.domain.text import one_line, shorten
from bot.errors import ChannelError, CopyGone, NotDeliverable
from bot.telemetry.logs import logger

_GONE = (
    "message to edit not found",
    "message can't be edited",
    "message_id_invalid",
    "message to delete not found",
    "message to be replied not found",
    "message to reply not found",
)
_NO_RIGHTS = "the bot may not write there; an admin of the group can let it"
_WORDS = {  # for people, by a part of Telegram's description
    "topic_closed": "the topic is closed",
    "message thread not found": "the topic was deleted",
    "blocked by the user": "they blocked the bot",
    "user is deactivated": "the account was deleted",
    "initiate conversation": "they have not opened a chat with the bot",
    "chat not found": "the chat does not exist, or the bot is not in it",
    "not a member": "the bot is not in the group; add it there",
    "bot was kicked": "the bot was removed from the group; add it there",
    "not enough rights": _NO_RIGHTS,
    "no rights to send": _NO_RIGHTS,
    "chat_write_forbidden": _NO_RIGHTS,
    "wrong file_id": "the file is no longer there",
    "file is too big": "it is larger than the 20 MB that Telegram gives to bots",
}
_LONGEST_FAULT_CHARS = 100  # of what the network says
T = TypeVar("T")
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)  # the bot's default is not added to raw calls
_NOT_THERE = (ChatMemberStatus.LEFT, ChatMemberStatus.BANNED)
_BAD_TEXT = ("can't parse entities", "entity", "entities", "wrong http url", "button_url_invalid")


class BotRequests(HTTPXRequest):
    """PTB's HTTP client; at most ``connections``. ``elapsed`` is in seconds, only differences count."""

    def __init__(self, elapsed: Callable[[], float], connections: int) -> None:
        super().__init__(connection_pool_size=connections)
        self._elapsed = elapsed
        self._refused: float | None = None

    @property
    def is_refused(self) -> bool:
        """True if Telegram refused the token lately, and accepted it in nothing since."""
        return self._refused is not None and self._elapsed() - self._refused <= SILENT

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        status, payload = await super().do_request(*args, **kwargs)
        if status == HTTPStatus.UNAUTHORIZED:
            self._refused = self._elapsed()
        elif status == HTTPStatus.OK:
            self._refused = None
        return status, payload


class Moved(ChannelError):
    """The chat has another id now."""

    def __init__(self, to: int) -> None:
        super().__init__("The group became a supergroup.")
        self.to = to


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise Telegram's refusals as Nod's own errors; ignore the two that aren't failures."""
    try:
        yield
    except Forbidden as error:
        raise NotDeliverable(_describe_refusal(error)) from error
    except BadRequest as error:
        said = error.message.lower()
        if "message is not modified" in said or "query is too old" in said:
            return
        kind = (
            CopyGone if any(w in said for w in _GONE) else NotDeliverable
        )  # the same would be refused again
        raise kind(_describe_refusal(error)) from error
    except ChatMigrated as error:
        raise Moved(error.new_chat_id) from error
    except InvalidToken as error:  # its message may hold the token
        raise ChannelError("Telegram does not know this bot token or this method.") from error
    except TelegramError as error:
        why = shorten(one_line(error.message), _LONGEST_FAULT_CHARS)
        raise ChannelError(f"Telegram could not be reached: {why}") from error


def _describe_refusal(error: TelegramError) -> str:
    said = error.message.lower()
    words = next((words for part, words in _WORDS.items() if part in said), None)
    return f"Telegram refused: {words}" if words else f"Telegram refused ({error.message})"


Markup = InlineKeyboardMarkup | ForceReply | None
_Sends = Callable[[dict[str, Any] | None], Awaitable[Message]]  # given what makes it one for one person alone

log = logger(__name__)


class Transport:
    """Sends, edits and answers. Every method may raise ChannelError."""

    def __init__(self, bot: ExtBot[Any], moves: Moves) -> None:
        self._bot = bot
        self.moves = moves
        self._newer = True  # until this server turns out not to know the newer kinds of buttons
        self._times = True  # until this server turns out to be too old for times that each reader's app shows
        self.whispers = True  # until this server turns out not to know messages for one person alone

    async def send(
        self,
        place: TelegramPlace,
        rich: Rich,
        markup: Markup = None,
        *,
        answer_to: int | None = None,
        below: int | None = None,
        urgency: Urgency = Urgency.TEXT,
        alone: Alone | None = None,
    ) -> TelegramPosted:
        """Send as many messages as the text needs, the markup under the last; return the last one.

        ``answer_to`` is the message that it answers, if that is still there; without the one that it is to
        stand ``below``, it is not sent: CopyGone. ``alone``: for one person of a group, if Telegram lets it.
        """
        pieces = split(rich) or [Rich("…")]
        reply = _replying(answer_to, must=False) or _replying(below, must=True)
        for piece in pieces[:-1]:
            await self._post_for_one(self._sending(place, piece, None, reply, urgency), alone)
        return await self._post_for_one(self._sending(place, pieces[-1], markup, reply, urgency), alone)

    async def post(self, place: TelegramPlace, post: Rich | FullText, markup: Markup = None) -> None:
        """Send one of the posts of a text."""
        if isinstance(post, FullText):
            await self.file(place, post.name, post.text, post.words, markup)
        else:
            await self.send(place, post, markup)

    def _sending(
        self,
        place: TelegramPlace,
        rich: Rich,
        markup: Markup,
        reply: ReplyParameters | None,
        urgency: Urgency,
    ) -> _Sends:
        """Return the call that sends a message."""

        async def to(only: dict[str, Any] | None) -> Message:
            async def send(chat_id: int, rich: Rich, markup: Markup) -> Message:
                return await self._bot.send_message(
                    chat_id,
                    rich.text,
                    entities=rich.entities,
                    message_thread_id=place.thread_id,
                    reply_markup=markup,
                    reply_parameters=None if only else reply,
                    rate_limit_args=urgency,
                    api_kwargs=only,
                )

            async def sent(markup: Markup) -> Message:
                return await self._follow(place, lambda chat_id: self._simpler(chat_id, rich, markup, send))

            return await self._call_with_known_buttons(markup, sent)

        return to

    async def _post_for_one(self, to: _Sends, alone: Alone | None) -> TelegramPosted:
        """Send an ephemeral message where one is asked for and Telegram takes it, else a message for all."""
        with translate_errors():
            return await self._try_to_whisper(to, alone) or find_posted(await to(None))

    async def _try_to_whisper(self, to: _Sends, alone: Alone | None) -> TelegramPosted | None:
        """Send an ephemeral message; a server before Bot API 10.3 ignores the parameter and sends to all."""
        if alone is None or not self.whispers:
            return None
        try:
            sent = find_posted(await to(alone.parameters), alone.user_id)
        except (BadRequest, Forbidden) as error:
            log.info("telegram refuses a message for one person alone", why=error.message)
            return None
        self.whispers = sent.receiver is not None
        return sent

    async def whisper(
        self, place: TelegramPlace, rich: Rich, markup: InlineKeyboardMarkup | None, alone: Alone
    ) -> TelegramPosted | None:
        """Send for one person alone, or not at all: then None."""
        with translate_errors():
            sent = await self._try_to_whisper(
                self._sending(place, rich, markup, None, Urgency.PRESSED), alone
            )
            if sent is not None and sent.receiver is None:
                await self.delete(sent)
                return None
            return sent

    async def edit(
        self,
        ref: TelegramPosted,
        rich: Rich,
        markup: InlineKeyboardMarkup | None = None,
        *,
        urgency: Urgency = Urgency.TEXT,
    ) -> None:
        """Replace text and keyboard; without ``markup`` the keyboard is gone."""

        async def edit(chat_id: int, rich: Rich, markup: Markup) -> None:
            if ref.receiver is not None:
                text = {"text": rich.text, "entities": rich.entities, "link_preview_options": _NO_PREVIEW}
                await self._private("editEphemeralMessageText", ref, urgency, reply_markup=markup, **text)
                return
            await self._bot.edit_message_text(
                rich.text,
                chat_id,
                ref.message_id,
                entities=rich.entities,
                reply_markup=markup if isinstance(markup, InlineKeyboardMarkup) else None,
                rate_limit_args=urgency,
            )

        async with self._changing(ref):
            await self._call_with_known_buttons(
                markup, lambda each: self._simpler(ref.chat_id, rich, each, edit)
            )

    async def _call_with_known_buttons(self, markup: Markup, call: Callable[[Markup], Awaitable[T]]) -> T:
        """Call, and again without the newer kinds of buttons if the server refuses them."""
        older = without_newer(markup) if isinstance(markup, InlineKeyboardMarkup) else markup
        if older is not markup and self._newer:
            try:
                return await call(markup)
            except BadRequest as error:
                if "button" not in error.message.lower():
                    raise
                log.info("telegram's server does not know newer buttons", why=error.message)
            self._newer = False
        return await call(older)

    async def note(self, ref: TelegramPosted, rich: Rich) -> None:
        """Say in place of a message what has become of it; it has happened, whether it can be said or not."""
        try:
            await self.edit(ref, rich)
        except ChannelError as error:
            log.warning("telegram message not updated", chat=ref.chat_id, why=error.message)

    async def _follow(self, place: TelegramPlace, call: Callable[[int], Awaitable[T]]) -> T:
        """Call with the id the chat has today, learning it where it is new."""
        chat_id = self.moves.now(place.chat_id)
        try:
            return await call(chat_id)
        except ChatMigrated as moved:
            await self.moves.learn(chat_id, moved.new_chat_id)
            return await call(moved.new_chat_id)

    @asynccontextmanager
    async def _changing(self, ref: TelegramPosted) -> AsyncIterator[None]:
        """Change a message where it stands; at a chat's new id the same number would be another message."""
        stayed_behind = CopyGone("The group became a supergroup, and its old messages can't be changed.")
        if self.moves.has_moved(ref.chat_id):
            raise stayed_behind
        try:
            with translate_errors():
                yield
        except Moved as error:
            await self.moves.learn(ref.chat_id, error.to)
            raise stayed_behind from error

    async def _simpler(
        self, chat_id: int, rich: Rich, markup: Markup, call: Callable[[int, Rich, Markup], Awaitable[T]]
    ) -> T:
        """Call, and again without times, then without entities and links, if they are refused."""
        untimed = Rich(rich.text, tuple(e for e in rich.entities if e.type != MessageEntity.DATE_TIME))
        if untimed != rich and self._times:
            try:
                return await call(chat_id, rich, markup)
            except BadRequest as error:
                if not any(w in error.message.lower() for w in _BAD_TEXT):
                    raise
            self._times = False
        try:
            return await call(chat_id, untimed, markup)
        except BadRequest as error:
            if not any(w in error.message.lower() for w in _BAD_TEXT):
                raise
            log.warning("telegram refused the styling", why=error.message)
            return await call(chat_id, Rich(rich.text), _without_links(markup))

    async def dress(
        self, ref: TelegramPosted, markup: InlineKeyboardMarkup | None, *, urgency: Urgency = Urgency.OPEN
    ) -> None:
        """Replace the keyboard, or take it away, and leave the text; a message that is gone has none."""
        try:
            async with self._changing(ref):

                async def edit(markup: Markup) -> None:
                    if ref.receiver is not None:
                        method = "editEphemeralMessageReplyMarkup"
                        await self._private(method, ref, urgency, reply_markup=markup)
                        return
                    await self._bot.edit_message_reply_markup(
                        ref.chat_id,
                        ref.message_id,
                        reply_markup=markup if isinstance(markup, InlineKeyboardMarkup) else None,
                        rate_limit_args=urgency,
                    )

                await self._call_with_known_buttons(markup, edit)
        except CopyGone:
            return

    async def delete(self, ref: TelegramPosted) -> None:
        async with self._changing(ref):
            if ref.receiver is not None:
                await self._private("deleteEphemeralMessage", ref, Urgency.TEXT)
            else:
                await self._bot.delete_message(ref.chat_id, ref.message_id)

    async def _private(self, method: str, ref: TelegramPosted, urgency: Urgency, **more: Any) -> None:
        """Change an ephemeral message by a call of Bot API 10.2, which the library lacks."""
        await self._bot.do_api_request(method, {**ref.private, **more}, rate_limit_args=urgency)

    async def admins(self, place: TelegramPlace) -> tuple[str, list[User]]:
        """Return a group's title, and its admins that are people."""
        with translate_errors():
            chat = await self._follow(place, self._bot.get_chat)
            admins = await self._follow(place, self._bot.get_chat_administrators)
        return chat.title or str(place.chat_id), [each.user for each in admins if not each.user.is_bot]

    async def has_member(self, place: TelegramPlace, user_id: int) -> bool:
        """Return whether someone is in a group by now."""

        async def ask(chat_id: int) -> ChatMember:
            return await self._bot.get_chat_member(chat_id, user_id)

        with translate_errors():
            found = await self._follow(place, ask)
        return found.status not in _NOT_THERE and getattr(found, "is_member", True)

    async def typing(self, place: TelegramPlace) -> None:
        """Show for five seconds that an answer is on its way."""
        await type_in(self._bot, place)

    async def draft(self, place: TelegramPlace, draft_id: int, rich: Rich) -> None:
        """Show unfinished text in a private chat for half a minute."""
        with translate_errors():
            await self._bot.send_message_draft(
                place.chat_id, draft_id, rich.text, message_thread_id=place.thread_id, entities=rich.entities
            )

    async def file(
        self,
        place: TelegramPlace,
        name: str,
        content: str | bytes,
        caption: str,
        markup: Markup,
        *,
        urgency: Urgency = Urgency.TEXT,
        alone: Alone | None = None,
    ) -> TelegramPosted:
        async def to(only: dict[str, Any] | None) -> Message:
            async def send(chat_id: int) -> Message:
                return await self._bot.send_document(
                    chat_id,
                    content.encode(errors="replace") if isinstance(content, str) else content,
                    caption=caption[: CAPTION_UNITS // 2] or None,
                    filename=name,
                    message_thread_id=place.thread_id,
                    reply_markup=markup,
                    rate_limit_args=urgency,
                    api_kwargs=only,
                )

            return await self._follow(place, send)

        return await self._post_for_one(to, alone)

    async def toast(self, query_id: str, text: str = "", *, alert: bool = False) -> None:
        """Answer a pressed button; ``alert`` shows it until it is dismissed."""
        shown = shorten(text, TOAST)
        with translate_errors():
            await self._bot.answer_callback_query(query_id, shown or None, show_alert=alert)


def find_posted(message: MaybeInaccessibleMessage, person: int | None = None) -> TelegramPosted:
    """Return the reference of a message as ``person`` sees it. Ephemeral ones have ids of their own.

    Both fields are of Bot API 10.2; the library hands them on as they come.
    """
    number = message.api_kwargs.get("ephemeral_message_id")
    if number is None:
        return TelegramPosted(message.chat.id, message.message_id)
    receiver = message.api_kwargs.get("receiver_user", {}).get("id", person)
    return TelegramPosted(message.chat.id, -number, receiver)


async def type_in(bot: Bot, place: TelegramPlace) -> None:
    """Show for five seconds that Nod writes, as only those may who can post."""
    with translate_errors():
        await bot.send_chat_action(place.chat_id, ChatAction.TYPING, message_thread_id=place.thread_id)


def _without_links(markup: Markup) -> Markup:
    if not isinstance(markup, InlineKeyboardMarkup):
        return markup
    rows = [[b for b in row if not b.url] for row in markup.inline_keyboard]
    return InlineKeyboardMarkup([row for row in rows if row])


def _replying(message_id: int | None, *, must: bool) -> ReplyParameters | None:
    """Return the reply parameters; None also for 0, the number of ephemeral messages."""
    if message_id:
        return ReplyParameters(message_id, allow_sending_without_reply=not must)
    return None
