"""What people write: which of it is meant for Nod, and what it is to the core."""

from dataclasses import dataclass

from telegram import Chat, MaybeInaccessibleMessage, Message, MessageEntity, User
from telegram.constants import ChatType

from bot.channels.telegram import commands
from bot.channels.telegram.admission import Admission
from bot.channels.telegram.asker import Asker
from bot.channels.telegram.commands import Typed
from bot.channels.telegram.dialogues import Who
from bot.channels.telegram.places import CHANNEL, Spot
from bot.channels.telegram.text import from_markdown, plain
from bot.channels.telegram.transport import Transport
from bot.channels.telegram.views import Views
from bot.domain import chat as seam
from bot.domain.chat import Answer, Desk, Inbox, Reply
from bot.domain.people import Actor
from bot.errors import NotDeliverable

_ONLY_TEXT = "I can read text only for now. Please say it in words."
_EDITED = "I have already taken in what you first wrote. Send what changed as a new message."
_ANONYMOUS = "I cannot tell who you are while you write as a chat. Write as yourself."
_PRIVATELY = "The answer is for you alone, and I may not write to you yet. Open a chat with me and ask there."
_NO_COMMAND = "I do not know this command. /help lists what I know."


def actor_of(user: User) -> Actor:
    return Actor(CHANNEL, str(user.id), user.full_name)


def spot_of(message: MaybeInaccessibleMessage) -> Spot | None:
    """None for a message Telegram no longer shows to bots: its topic is unknown."""
    if not isinstance(message, Message):
        return None
    return Spot(message.chat.id, message.message_thread_id if message.is_topic_message else None)


def meant_for(message: Message, me: User) -> bool:
    """In private everything; in a group a mention, a reply to the bot, or one of its commands."""
    if _private(message.chat):
        return True
    answered = message.reply_to_message
    if answered and answered.from_user == me and not answered.forum_topic_created:
        return True
    typed = commands.read(message.text or "")
    if typed is not None:
        return typed.bot.lower() == (me.username or "").lower() if typed.bot else typed.known
    return bool(_mentions(message, me))


def words_of(message: Message, me: User) -> str:
    """Give the text or caption without the mention of the bot."""
    text = message.text or message.caption or ""
    for name in _mentions(message, me):
        text = text.replace(name, " ", 1)
    return text.strip()


def _says_something(message: Message) -> bool:
    """Say no for joins, pins and other notices of the chat itself."""
    return bool(message.text or message.caption or message.effective_attachment)


def _private(chat: Chat) -> bool:
    return bool(chat.type == ChatType.PRIVATE)


def _mentions(message: Message, me: User) -> list[str]:
    found = message.parse_entities() if message.text else message.parse_caption_entities()
    return [
        text
        for entity, text in found.items()
        if (entity.type == MessageEntity.MENTION and text[1:].lower() == (me.username or "").lower())
        or (entity.type == MessageEntity.TEXT_MENTION and entity.user is not None and entity.user.id == me.id)
    ]


@dataclass(frozen=True, slots=True)
class Inbound:
    """Hands messages and commands in, and tells people what the core says to them alone."""

    transport: Transport
    admission: Admission
    asker: Asker
    inbox: Inbox
    desk: Desk
    views: Views
    me: User

    async def handle(self, message: Message, event_id: str, *, edited: bool = False) -> None:
        spot = spot_of(message)
        user = message.from_user
        if spot is None or user is None or not (_says_something(message) and meant_for(message, self.me)):
            return
        if not await self.admission.admits(user, message.chat.id):
            await self.admission.turn_away(user, spot)
        elif message.sender_chat is not None:
            await self._say(spot, _ANONYMOUS, message)
        elif edited:
            await self._say(spot, _EDITED, message)
        elif not user.is_bot:
            who = Who(user, actor_of(user), spot)
            typed = commands.read(words_of(message, self.me))
            if typed is not None:
                await self._command(who, typed, message)
            else:
                await self._message(who, message, event_id)

    async def _message(self, who: Who, message: Message, event_id: str) -> None:
        words = words_of(message, self.me)
        if not words:
            await self._say(who.spot, _ONLY_TEXT, message)
            return
        answered = message.reply_to_message.message_id if message.reply_to_message else None
        if await self.asker.answer(who, words, answered, message.message_id):
            return
        reply = await self.inbox(
            seam.Message(who.spot.address, who.actor, words, event_id, private=_private(message.chat))
        )
        if reply.answer not in (Answer.ACCEPTED, Answer.DUPLICATE) and reply.text:
            await self._say(who.spot, reply.text, message)

    async def _command(self, who: Who, typed: Typed, message: Message) -> None:
        if typed.name == "cancel" and not typed.arguments and await self.asker.cancel(who):
            return
        if not typed.known:
            await self._say(who.spot, _NO_COMMAND, message)
            return
        command = typed.command(who.actor, who.spot.address, private=_private(message.chat))
        reply = await self.inbox(command)
        if not typed.confidential or who.spot.private:
            await self._answer(who, reply, who.spot, message.message_id)
            return
        try:
            await self._answer(who, reply, Spot(who.user.id))
        except NotDeliverable:
            await self._say(who.spot, _PRIVATELY, message)

    async def _answer(self, who: Who, reply: Reply, spot: Spot, answer_to: int | None = None) -> None:
        """Say it, then post the cards it is about, as further copies that are kept up to date."""
        if reply.text:
            await self.transport.send(spot, from_markdown(reply.text), answer_to=answer_to)
        for proposal in reply.proposals:
            card = await self.desk.card(proposal.id, who.actor)
            if card is not None:
                await self.views.put(card, spot)

    async def _say(self, spot: Spot, text: str, message: Message) -> None:
        await self.transport.send(spot, plain(text), answer_to=message.message_id)
