"""Calls to Telegram by `Transport`, with Telegram's refusals as Nod's own errors.

A call raises `NotDeliverable` for what will never arrive, `CopyGone` if the message is no longer there, and
`ChannelError` for the rest. "Not modified" and "query is too old" are no errors. Text whose formatting the
server refuses is sent as plain text. A group that became a supergroup has a new id (a *move*): new messages
go there, and its old messages can't be changed any longer. An *ephemeral* message is one that a single person
of a group sees.

`BotRequests`, the HTTP client of python-telegram-bot ("PTB", "the library"), also notes whether Telegram
accepts the token.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

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

from bot.channels.base import SILENT_SECONDS
from bot.channels.streamed_message import FullText
from bot.channels.telegram.buttons import without_new_buttons
from bot.channels.telegram.limits import CAPTION_UNITS, TOAST_CHARS, Urgency
from bot.channels.telegram.places import EphemeralTarget, Moves, TelegramPlace, TelegramPosted
from bot.channels.telegram.text import Rich, split
from bot.domain.text import one_line, shorten
from bot.errors import ChannelError, CopyGone, NotDeliverable
from bot.telemetry.logs import logger

_MISSING_MESSAGE_ERRORS = (
    "message to edit not found",
    "message can't be edited",
    "message_id_invalid",
    "message to delete not found",
    "message to be replied not found",
    "message to reply not found",
)
_NO_RIGHTS = "the bot may not write there; an admin of the group can let it"
_REFUSAL_WORDS = {  # the words for people, by a part of Telegram's description
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
_MAX_FAULT_CHARS = 100  # the network's own error message
_STAYED_BEHIND_TEXT = "The group became a supergroup, and its old messages can't be changed."
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)  # the bot's default is not added to raw calls
_STOPPABLE = {"can_stop": True, "keep_on_stop": True}  # give a draft a stop button, from Bot API 10.3 on
_LEFT_STATUSES = (ChatMemberStatus.LEFT, ChatMemberStatus.BANNED)
_FORMATTING_ERRORS = ("entity", "entities", "wrong http url", "button_url_invalid")

T = TypeVar("T")
Markup = InlineKeyboardMarkup | ForceReply | None
"""The buttons below a message, or the request for a typed reply."""
SendMessage = Callable[[dict[str, Any] | None], Awaitable[Message]]
"""Sends a message, with the parameters that make it ephemeral, or None for a message to all."""

log = logger(__name__)


class BotRequests(HTTPXRequest):
    """PTB's HTTP client, with at most ``connections``. ``elapsed`` is a monotonic clock, in seconds."""

    def __init__(self, elapsed: Callable[[], float], connections: int) -> None:
        super().__init__(connection_pool_size=connections)
        self._elapsed = elapsed
        self._refused_at: float | None = None

    @property
    def is_refused(self) -> bool:
        """True if Telegram refused the token in the last `SILENT_SECONDS`, and has accepted no call since."""
        return self._refused_at is not None and self._elapsed() - self._refused_at <= SILENT_SECONDS

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        """Make a request of PTB's, and note whether Telegram accepts the token. Returns status and body."""
        status, payload = await super().do_request(*args, **kwargs)
        if status == HTTPStatus.UNAUTHORIZED:
            self._refused_at = self._elapsed()
        elif status == HTTPStatus.OK:
            self._refused_at = None
        return status, payload


class ChatMigratedError(ChannelError):
    """The chat has another id now: Nod's own form of the library's `ChatMigrated`."""

    def __init__(self, new_chat_id: int) -> None:
        super().__init__("The group became a supergroup.")
        self.new_chat_id = new_chat_id


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise Telegram's errors in the block as Nod's own. Two refusals that are no failures are ignored."""
    try:
        yield
    except Forbidden as error:
        raise NotDeliverable(_describe_refusal(error)) from error
    except BadRequest as error:
        description = error.message.lower()
        if "message is not modified" in description or "query is too old" in description:
            return
        if any(missing in description for missing in _MISSING_MESSAGE_ERRORS):
            raise CopyGone(_describe_refusal(error)) from error
        raise NotDeliverable(_describe_refusal(error)) from error  # it would be refused again
    except ChatMigrated as error:
        raise ChatMigratedError(error.new_chat_id) from error
    except InvalidToken as error:  # its message may hold the token
        raise ChannelError("Telegram does not know this bot token or this method.") from error
    except TelegramError as error:
        why = shorten(one_line(error.message), _MAX_FAULT_CHARS)
        raise ChannelError(f"Telegram could not be reached: {why}") from error


def _describe_refusal(error: TelegramError) -> str:
    description = error.message.lower()
    for part, words in _REFUSAL_WORDS.items():
        if part in description:
            return f"Telegram refused: {words}"
    return f"Telegram refused ({error.message})"


class _OutgoingText(NamedTuple):
    """A text that goes out as one message."""

    place: TelegramPlace
    rich: Rich
    markup: Markup
    reply: ReplyParameters | None
    urgency: Urgency


class Transport:
    """Sends, edits and deletes messages, and answers presses. Every method may raise ChannelError.

    A bot can change ephemeral messages since Bot API 10.2 and send them since 10.3. The library knows
    neither, so raw calls and parameters are used.
    """

    def __init__(self, bot: ExtBot[Any], moves: Moves) -> None:
        self._bot = bot
        self.moves = moves
        # each is True until this server turns out to be too old for it
        self._supports_new_buttons = True
        self._supports_dates = True
        self.supports_ephemeral = True

    async def send(
        self,
        place: TelegramPlace,
        rich: Rich,
        markup: Markup = None,
        *,
        reply_to: int | None = None,
        below: int | None = None,
        urgency: Urgency = Urgency.TEXT,
        ephemeral: EphemeralTarget | None = None,
    ) -> TelegramPosted:
        """Send a text in as many messages as it needs, with the markup under the last message.

        Returns the last message.

        - ``reply_to``: the message to which all reply; if it is gone, they are sent all the same
        - ``below``: the same, but CopyGone is raised if it is gone; not together with ``reply_to``
        - ``ephemeral``: they are for that person alone if Telegram allows it, else for all
        """
        reply = _make_reply(reply_to, may_be_gone=True) or _make_reply(below, may_be_gone=False)
        pieces = split(rich) or [Rich("…")]
        for piece in pieces[:-1]:
            text = _OutgoingText(place, piece, None, reply, urgency)
            await self._post(partial(self._send_text, text), ephemeral)
        last = _OutgoingText(place, pieces[-1], markup, reply, urgency)
        return await self._post(partial(self._send_text, last), ephemeral)

    async def send_post(self, place: TelegramPlace, part: Rich | FullText, markup: Markup = None) -> None:
        """Send a text that fits one message, or a long text (`FullText`) as a file."""
        if isinstance(part, FullText):
            await self.send_file(place, part.name, part.text, part.message_text, markup)
        else:
            await self.send(place, part, markup)

    async def send_ephemeral(
        self,
        place: TelegramPlace,
        rich: Rich,
        markup: InlineKeyboardMarkup | None,
        ephemeral: EphemeralTarget,
    ) -> TelegramPosted | None:
        """Send a message for one person alone. Returns None if the server doesn't do that.

        A server that ignored the parameter has sent it to all, so it is deleted again.
        """
        text = _OutgoingText(place, rich, markup, None, Urgency.PRESSED)
        with translate_errors():
            sent = await self._try_ephemeral(partial(self._send_text, text), ephemeral)
            if sent is not None and not sent.is_ephemeral:
                await self.delete(sent)
                return None
            return sent

    async def _send_text(self, text: _OutgoingText, ephemeral: dict[str, Any] | None) -> Message:
        # the parameters of an ephemeral message hold its own reply
        reply = None if ephemeral else text.reply

        async def send(rich: Rich, markup: Markup) -> Message:
            return await self._call_in_chat(
                text.place,
                lambda chat_id: self._bot.send_message(
                    chat_id,
                    rich.text,
                    entities=rich.entities,
                    message_thread_id=text.place.thread_id,
                    reply_markup=markup,
                    reply_parameters=reply,
                    rate_limit_args=text.urgency,
                    api_kwargs=ephemeral,
                ),
            )

        return await self._with_fallbacks(text.rich, text.markup, send)

    async def _post(self, send: SendMessage, ephemeral: EphemeralTarget | None) -> TelegramPosted:
        """Send an ephemeral message to the target; without one, or if Telegram refuses, a message to all."""
        with translate_errors():
            posted = None
            if ephemeral is not None:
                posted = await self._try_ephemeral(send, ephemeral)
            return posted or reference_of(await send(None))

    async def _try_ephemeral(self, send: SendMessage, ephemeral: EphemeralTarget) -> TelegramPosted | None:
        """Send an ephemeral message. Returns None if the server refuses.

        An older server ignores the parameters and sends the message to all. That message is returned, and
        `supports_ephemeral` is False from then on.
        """
        if not self.supports_ephemeral:
            return None
        try:
            posted = reference_of(await send(ephemeral.send_parameters), ephemeral.user_id)
        except (BadRequest, Forbidden) as error:
            log.info("telegram refuses a message for one person alone", why=error.message)
            return None
        self.supports_ephemeral = posted.is_ephemeral
        return posted

    async def edit(
        self,
        ref: TelegramPosted,
        rich: Rich,
        markup: InlineKeyboardMarkup | None = None,
        *,
        urgency: Urgency = Urgency.TEXT,
    ) -> None:
        """Replace text and keyboard; without ``markup`` the keyboard is gone."""
        async with self._change_in_place(ref):
            await self._with_fallbacks(rich, markup, partial(self._edit_text, ref, urgency))

    async def _edit_text(self, ref: TelegramPosted, urgency: Urgency, rich: Rich, markup: Markup) -> None:
        if ref.is_ephemeral:
            text = {"text": rich.text, "entities": rich.entities, "link_preview_options": _NO_PREVIEW}
            await self._call_ephemeral("editEphemeralMessageText", ref, urgency, reply_markup=markup, **text)
            return
        await self._bot.edit_message_text(
            rich.text,
            ref.chat_id,
            ref.message_id,
            entities=rich.entities,
            reply_markup=markup if isinstance(markup, InlineKeyboardMarkup) else None,
            rate_limit_args=urgency,
        )

    async def try_edit(self, ref: TelegramPosted, rich: Rich) -> None:
        """Replace a message by a note. A refusal is only logged: the reported event has happened."""
        try:
            await self.edit(ref, rich)
        except ChannelError as error:
            log.warning("telegram message not updated", chat=ref.chat_id, why=error.message)

    async def edit_keyboard(
        self,
        ref: TelegramPosted,
        markup: InlineKeyboardMarkup | None,
        *,
        urgency: Urgency = Urgency.OPEN_CARD,
    ) -> None:
        """Replace or remove the keyboard. Does nothing if the message no longer exists."""
        with suppress(CopyGone):
            async with self._change_in_place(ref):
                await self._with_button_fallback(markup, partial(self._edit_markup, ref, urgency))

    async def _edit_markup(self, ref: TelegramPosted, urgency: Urgency, markup: Markup) -> None:
        if ref.is_ephemeral:
            method = "editEphemeralMessageReplyMarkup"
            await self._call_ephemeral(method, ref, urgency, reply_markup=markup)
            return
        await self._bot.edit_message_reply_markup(
            ref.chat_id,
            ref.message_id,
            reply_markup=markup if isinstance(markup, InlineKeyboardMarkup) else None,
            rate_limit_args=urgency,
        )

    async def delete(self, ref: TelegramPosted) -> None:
        async with self._change_in_place(ref):
            if ref.is_ephemeral:
                await self._call_ephemeral("deleteEphemeralMessage", ref, Urgency.TEXT)
            else:
                await self._bot.delete_message(ref.chat_id, ref.message_id)

    async def _call_ephemeral(
        self, method: str, ref: TelegramPosted, urgency: Urgency, **parameters: Any
    ) -> None:
        """Change an ephemeral message by a method that the library lacks."""
        await self._bot.do_api_request(
            method, {**ref.ephemeral_parameters, **parameters}, rate_limit_args=urgency
        )

    async def _with_fallbacks(
        self, rich: Rich, markup: Markup, call: Callable[[Rich, Markup], Awaitable[T]]
    ) -> T:
        """Call with a text and a keyboard; if the server refuses a part, call again without that part."""

        async def call_with_buttons(accepted_markup: Markup) -> T:
            return await self._with_formatting_fallback(rich, accepted_markup, call)

        return await self._with_button_fallback(markup, call_with_buttons)

    async def _with_button_fallback(self, markup: Markup, call: Callable[[Markup], Awaitable[T]]) -> T:
        """Call with a keyboard, and again without its newer kinds of buttons if the server refuses them."""
        if not isinstance(markup, InlineKeyboardMarkup):
            return await call(markup)
        older = without_new_buttons(markup)
        has_new_buttons = older is not markup
        if has_new_buttons and self._supports_new_buttons:
            try:
                return await call(markup)
            except BadRequest as error:
                if "button" not in error.message.lower():
                    raise
                log.info("telegram's server does not know newer buttons", why=error.message)
            self._supports_new_buttons = False
        return await call(older)

    async def _with_formatting_fallback(
        self, rich: Rich, markup: Markup, call: Callable[[Rich, Markup], Awaitable[T]]
    ) -> T:
        """Call with a text; if the server refuses it, call without dates, then without styles and links.

        Dates are a newer kind of entity, which older servers refuse.
        """
        other_entities = [entity for entity in rich.entities if entity.type != MessageEntity.DATE_TIME]
        undated = Rich(rich.text, tuple(other_entities))
        if undated != rich and self._supports_dates:
            try:
                return await call(rich, markup)
            except BadRequest as error:
                if not _is_formatting_error(error):
                    raise
            self._supports_dates = False
        try:
            return await call(undated, markup)
        except BadRequest as error:
            if not _is_formatting_error(error):
                raise
            log.warning("telegram refused the styling", why=error.message)
            return await call(Rich(rich.text), _without_links(markup))

    async def _call_in_chat(self, place: TelegramPlace, call: Callable[[int], Awaitable[T]]) -> T:
        """Call with the chat's current id. If Telegram answers with a new id, store it and call again."""
        chat_id = self.moves.find_current_chat_id(place.chat_id)
        try:
            return await call(chat_id)
        except ChatMigrated as moved:
            await self.moves.remember_move(chat_id, moved.new_chat_id)
            return await call(moved.new_chat_id)

    @asynccontextmanager
    async def _change_in_place(self, ref: TelegramPosted) -> AsyncIterator[None]:
        """Translate the errors of a change in the block; raise CopyGone if the message's chat has a new id.

        The chat's old messages have their numbers only at its old id. At the new id, others have them.
        """
        if self.moves.has_moved(ref.chat_id):
            raise CopyGone(_STAYED_BEHIND_TEXT)
        try:
            with translate_errors():
                yield
        except ChatMigratedError as error:
            await self.moves.remember_move(ref.chat_id, error.new_chat_id)
            raise CopyGone(_STAYED_BEHIND_TEXT) from error

    async def load_admins(self, place: TelegramPlace) -> tuple[str, list[User]]:
        """Return a group's title, and its admins that are people."""
        with translate_errors():
            chat = await self._call_in_chat(place, self._bot.get_chat)
            admins = await self._call_in_chat(place, self._bot.get_chat_administrators)
        return chat.title or str(place.chat_id), [admin.user for admin in admins if not admin.user.is_bot]

    async def has_member(self, place: TelegramPlace, user_id: int) -> bool:
        """Tell if someone is still in a group."""

        async def ask(chat_id: int) -> ChatMember:
            return await self._bot.get_chat_member(chat_id, user_id)

        with translate_errors():
            member = await self._call_in_chat(place, ask)
        # a restricted member may have left: their field ``is_member`` tells; other members have no such field
        return member.status not in _LEFT_STATUSES and getattr(member, "is_member", True)

    async def show_typing(self, place: TelegramPlace) -> None:
        """Show for five seconds that an answer is on its way."""
        await send_typing(self._bot, place)

    async def send_draft(self, place: TelegramPlace, draft_id: int, rich: Rich) -> None:
        """Show unfinished text in a private chat for half a minute, with Telegram's own stop button.

        Servers older than Bot API 10.3 ignore the option for that button.
        """
        with translate_errors():
            await self._bot.send_message_draft(
                place.chat_id,
                draft_id,
                rich.text,
                message_thread_id=place.thread_id,
                entities=rich.entities,
                api_kwargs=_STOPPABLE,
            )

    async def send_file(
        self,
        place: TelegramPlace,
        name: str,
        content: str | bytes,
        caption: str,
        markup: Markup,
        *,
        urgency: Urgency = Urgency.TEXT,
        ephemeral: EphemeralTarget | None = None,
    ) -> TelegramPosted:
        """Send a file, with a caption that is cut to Telegram's limit."""
        data = content.encode(errors="replace") if isinstance(content, str) else content
        # a character takes at most two of the UTF-16 units that Telegram counts
        short_caption = caption[: CAPTION_UNITS // 2]

        async def send(ephemeral_parameters: dict[str, Any] | None) -> Message:
            return await self._call_in_chat(
                place,
                lambda chat_id: self._bot.send_document(
                    chat_id,
                    data,
                    caption=short_caption or None,
                    filename=name,
                    message_thread_id=place.thread_id,
                    reply_markup=markup,
                    rate_limit_args=urgency,
                    api_kwargs=ephemeral_parameters,
                ),
            )

        return await self._post(send, ephemeral)

    async def answer_press(self, query_id: str, text: str = "", *, alert: bool = False) -> None:
        """Answer a pressed button; ``alert`` shows it until it is dismissed."""
        shown = shorten(text, TOAST_CHARS)
        with translate_errors():
            await self._bot.answer_callback_query(query_id, shown or None, show_alert=alert)


def reference_of(message: MaybeInaccessibleMessage, person: int | None = None) -> TelegramPosted:
    """Return the reference of a message. ``person``: the receiver, if it is ephemeral and names none.

    The library passes on the fields of an ephemeral message as they come. Telegram numbers these messages
    apart from others, so their ids are stored negative.
    """
    ephemeral_id = message.api_kwargs.get("ephemeral_message_id")
    if ephemeral_id is None:
        return TelegramPosted(message.chat.id, message.message_id)
    receiver = message.api_kwargs.get("receiver_user", {}).get("id", person)
    return TelegramPosted(message.chat.id, -ephemeral_id, receiver)


async def send_typing(bot: Bot, place: TelegramPlace) -> None:
    """Show for five seconds that Nod writes. Telegram refuses it where Nod may not post."""
    with translate_errors():
        await bot.send_chat_action(place.chat_id, ChatAction.TYPING, message_thread_id=place.thread_id)


def _is_formatting_error(error: BadRequest) -> bool:
    description = error.message.lower()
    return any(part in description for part in _FORMATTING_ERRORS)


def _without_links(markup: Markup) -> Markup:
    if not isinstance(markup, InlineKeyboardMarkup):
        return markup
    rows = [[button for button in row if not button.url] for row in markup.inline_keyboard]
    return InlineKeyboardMarkup([row for row in rows if row])


def _make_reply(message_id: int | None, *, may_be_gone: bool) -> ReplyParameters | None:
    """Return the parameters of a reply to a message; None for no message.

    None also for 0, which is the ``message_id`` of all ephemeral messages.
    """
    if message_id:
        return ReplyParameters(message_id, allow_sending_without_reply=may_be_gone)
    return None
