"""The few things Nod does in Telegram, with Telegram's refusals in Nod's own words.

`NotDeliverable` where it will never arrive, `CopyGone` where the message is no longer there, `ChannelError`
for the rest. "Not modified" and "query is too old" are no errors. What the server cannot parse goes out as
plain text. A group that became a supergroup is followed to its new id.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from telegram import ForceReply, InlineKeyboardMarkup, ReplyParameters
from telegram.error import BadRequest, ChatMigrated, Forbidden, InvalidToken, TelegramError
from telegram.ext import ExtBot

from bot.channels.telegram.limits import CAPTION_UNITS, PREVIEW, TOAST
from bot.channels.telegram.places import Ref, Spot
from bot.channels.telegram.text import Rich, split
from bot.errors import ChannelError, CopyGone, NotDeliverable
from bot.telemetry import logger

T = TypeVar("T")
Markup = InlineKeyboardMarkup | ForceReply | None

_log = logger(__name__)

_NEVER = (
    "chat not found",
    "not enough rights",
    "have no rights",
    "thread not found",
    "topic_",
    "peer_id_invalid",
)
_GONE = (
    "message to edit not found",
    "message can't be edited",
    "message_id_invalid",
    "message to delete not found",
)
_BAD_TEXT = ("can't parse entities", "entity", "entities", "wrong http url", "button_url_invalid")


class Transport:
    """Sends, edits and answers. Every method may raise ChannelError."""

    def __init__(self, bot: ExtBot[Any]) -> None:
        self._bot = bot

    async def send(
        self,
        spot: Spot,
        rich: Rich,
        markup: Markup = None,
        *,
        answer_to: int | None = None,
        hurry: bool = False,
    ) -> Ref:
        """Send as many messages as the text needs, the markup under the last; return the last one.

        ``hurry``: for a preview; told to wait, it raises instead.
        """
        pieces = split(rich) or [Rich("…")]
        for piece in pieces[:-1]:
            await self._send_one(spot, piece, None, answer_to, hurry=hurry)
        return await self._send_one(spot, pieces[-1], markup, answer_to, hurry=hurry)

    async def _send_one(
        self, spot: Spot, rich: Rich, markup: Markup, answer_to: int | None, *, hurry: bool
    ) -> Ref:
        async def send(chat_id: int, rich: Rich, markup: Markup) -> Ref:
            sent = await self._bot.send_message(
                chat_id,
                rich.text,
                entities=rich.entities,
                message_thread_id=spot.thread_id,
                reply_markup=markup,
                reply_parameters=_replying(answer_to),
                rate_limit_args=PREVIEW if hurry else None,
            )
            return Ref(sent.chat_id, sent.message_id)

        with translated():
            return await _simpler(spot.chat_id, rich, markup, send)

    async def edit(
        self, ref: Ref, rich: Rich, markup: InlineKeyboardMarkup | None = None, *, hurry: bool = False
    ) -> None:
        """Replace text and keyboard; without ``markup`` the keyboard is gone."""

        async def edit(chat_id: int, rich: Rich, markup: Markup) -> None:
            await self._bot.edit_message_text(
                rich.text,
                chat_id,
                ref.message_id,
                entities=rich.entities,
                reply_markup=markup if isinstance(markup, InlineKeyboardMarkup) else None,
                rate_limit_args=PREVIEW if hurry else None,
            )

        with translated():
            await _simpler(ref.chat_id, rich, markup, edit)

    async def dress(self, ref: Ref, markup: InlineKeyboardMarkup | None) -> None:
        """Replace the keyboard, or take it away, and leave the text; a message that is gone has none."""
        try:
            with translated():
                await self._bot.edit_message_reply_markup(ref.chat_id, ref.message_id, reply_markup=markup)
        except CopyGone:
            return

    async def delete(self, ref: Ref) -> None:
        with translated():
            await self._bot.delete_message(ref.chat_id, ref.message_id)

    async def draft(self, spot: Spot, draft_id: int, rich: Rich) -> None:
        """Show unfinished text in a private chat for half a minute."""
        with translated():
            await self._bot.send_message_draft(
                spot.chat_id, draft_id, rich.text, message_thread_id=spot.thread_id, entities=rich.entities
            )

    async def file(self, spot: Spot, name: str, text: str, caption: str, markup: Markup) -> Ref:
        with translated():
            sent = await self._bot.send_document(
                spot.chat_id,
                text.encode(errors="replace"),
                caption=caption[: CAPTION_UNITS // 2] or None,
                filename=name,
                message_thread_id=spot.thread_id,
                reply_markup=markup,
            )
            return Ref(sent.chat_id, sent.message_id)

    async def toast(self, query_id: str, text: str = "", *, alert: bool = False) -> None:
        """Answer a pressed button; ``alert`` shows it until it is dismissed."""
        shown = text if len(text) <= TOAST else f"{text[: TOAST - 1]}…"
        with translated():
            await self._bot.answer_callback_query(query_id, shown or None, show_alert=alert)


@contextmanager
def translated() -> Iterator[None]:
    """Raise Telegram's refusals as Nod's own errors; pass over the two that are none."""
    try:
        yield
    except Forbidden as error:
        raise NotDeliverable(f"Telegram: {error.message}") from error
    except BadRequest as error:
        said = error.message.lower()
        if "message is not modified" in said or "query is too old" in said:
            return
        kind = CopyGone if any(w in said for w in _GONE) else ChannelError
        kind = NotDeliverable if any(w in said for w in _NEVER) else kind
        raise kind(f"Telegram: {error.message}") from error
    except InvalidToken as error:  # its message may hold the token
        raise ChannelError("Telegram does not know this bot token or this method.") from error
    except TelegramError as error:
        raise ChannelError(f"Telegram: {error.message}") from error


async def _simpler(
    chat_id: int, rich: Rich, markup: Markup, call: Callable[[int, Rich, Markup], Awaitable[T]]
) -> T:
    """Call; once more without entities and links when they were refused, or at the chat's new id."""
    try:
        return await call(chat_id, rich, markup)
    except ChatMigrated as moved:
        return await call(moved.new_chat_id, rich, markup)
    except BadRequest as error:
        if not any(w in error.message.lower() for w in _BAD_TEXT):
            raise
        _log.warning("telegram refused the styling", reason=error.message)
        return await call(chat_id, Rich(rich.text), _without_links(markup))


def _without_links(markup: Markup) -> Markup:
    if not isinstance(markup, InlineKeyboardMarkup):
        return markup
    rows = [[b for b in row if not b.url] for row in markup.inline_keyboard]
    return InlineKeyboardMarkup([row for row in rows if row])


def _replying(message_id: int | None) -> ReplyParameters | None:
    return None if message_id is None else ReplyParameters(message_id, allow_sending_without_reply=True)
