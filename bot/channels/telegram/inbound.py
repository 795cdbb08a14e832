"""Incoming messages of Telegram: which of them are meant for Nod, and how the core gets them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from telegram import (
    Chat,
    ExternalReplyInfo,
    MaybeInaccessibleMessage,
    Message,
    MessageEntity,
    MessageOrigin,
    User,
)
from telegram.constants import ChatType

from bot.channels.base import Lookup
from bot.channels.telegram import commands
from bot.channels.telegram.admission import Admission
from bot.channels.telegram.commands import Typed
from bot.channels.telegram.dialogue import Who
from bot.channels.telegram.forms import DialogueRunner
from bot.channels.telegram.markdown import from_markdown
from bot.channels.telegram.places import NAME, EphemeralTarget, Moves, TelegramPlace
from bot.channels.telegram.shown import ShownCards
from bot.channels.telegram.text import plain
from bot.channels.telegram.transport import Transport, posted_of
from bot.domain import chat
from bot.domain.attachments import MAX_EARLIER_FILES, Upload, choose_earlier, describe_files
from bot.domain.cards import Card
from bot.domain.chat import Answer, Inbox, Reply
from bot.domain.events import STOPPED
from bot.domain.people import Actor
from bot.domain.text import format_forwarded, in_group, in_reply_to
from bot.domain.verbs import Verb
from bot.errors import NotDeliverable

_CANNOT_READ = "I can't read that. Please say it in words."
_NOT_SEEN = "I can't see {}. I'll go by your words."
_NO_EDITS = "I don't read edited messages. Send the change as a new message."
_ANONYMOUS = (
    "I can't tell who you are while you write as a chat. Write as yourself. "
    "Pick your own name next to the message field. "
    "An anonymous admin turns off Remain anonymous in their admin rights."
)
_WORDS_NEEDED = "I can't take {} as an answer. Please answer in words. The question still waits."
_ASK_IN_PRIVATE = (
    "The answer is for you alone, and I may not write to you yet. Open a chat with me and ask there."
)
_ONLY_ANSWERS = "Only you and I see this. Reply to my question here, or write to me in the group."
_FILES_LEFT = f"I read the newest {MAX_EARLIER_FILES} of the files here. Reply to what else matters."
_NO_COMMAND = "I don't know this command. /help lists the ones I know."
_MAX_PLACES = 200  # groups and topics whose last messages are kept
_MAX_MESSAGES_BY_PLACE = 30  # of each
_MAX_MESSAGE_CHARS = 2_000  # characters of one
_ATTACHMENT_NAMES = {
    "animation": "an animation",  # before document: Telegram fills both
    "photo": "a photo",
    "video": "a video",
    "video_note": "a video message",
    "voice": "a voice message",
    "audio": "an audio file",
    "document": "a file",
    "sticker": "a sticker",
    "location": "a location",
    "contact": "a contact",
    "poll": "a poll",
    "checklist": "a checklist",  # not among the library's `effective_attachment`
}
_FILE_NAMES = {  # what is a file, and how it is named where its sender does not say
    "animation": "animation.mp4",
    "document": "document",
    "video": "video.mp4",
    "video_note": "video-message.mp4",
    "voice": "voice-message.ogg",
    "audio": "audio",
}
_ENTITY_TYPES: list[str | None] = [MessageEntity.MENTION, MessageEntity.TEXT_MENTION, MessageEntity.TEXT_LINK]


def actor_of(user: User) -> Actor:
    return Actor(NAME, str(user.id), user.full_name)


def place_of(message: MaybeInaccessibleMessage, moves: Moves) -> TelegramPlace | None:
    """Return the place of a message; None where Telegram no longer shows it to bots: its topic is unknown."""
    if not (isinstance(message, Message) and message.is_accessible):  # the library makes a Message of both
        return None
    return moves.here(message.chat.id, message.message_thread_id if message.is_topic_message else None)


def is_meant_for(message: Message, me: User) -> bool:
    """Tell if a message is for Nod.

    In private every message is; in a group a mention, a reply, a command, or what only Nod can see.
    """
    if message.is_automatic_forward:  # a channel's post, which Telegram puts into the channel's group
        return False
    if _is_private(message.chat) or _find_private_reply(message):
        return True
    answered = message.reply_to_message
    if answered and answered.from_user == me and not answered.forum_topic_created:
        return True
    typed = commands.read_command(message.text or "")
    if typed is not None:
        if typed.bot:
            return typed.bot.lower() == (me.username or "").lower()
        return typed.known
    return any(_mentions(each, words, me) for each, words in _list_mentions_and_links(message))


def _find_private_reply(message: Message) -> EphemeralTarget | None:
    """Return the way to answer a message that only Nod can see in a group, else None."""
    number, user = posted_of(message).message_id, message.from_user
    if number < 0 and user:
        return EphemeralTarget(user.id, answer=-number)
    return None


def words_of(message: Message, me: User | None = None) -> str:
    """Return the text or caption without ``me``, with the addresses of links.

    In commands, names of people become their accounts.
    """
    text = message.text or message.caption or ""
    named = text.startswith(("/nod", "/approvals"))
    units = text.encode("utf-16-le", "surrogatepass")
    for entity, words in reversed(_list_mentions_and_links(message)):
        if me and _mentions(entity, words, me):
            said = " "
        elif entity.url and entity.url not in words:
            said = f"{words} ({entity.url})"
        else:
            said = str(actor_of(entity.user)) if entity.user and named else words
        at, end = 2 * entity.offset, 2 * (entity.offset + entity.length)
        units = units[:at] + said.encode("utf-16-le", "surrogatepass") + units[end:]
    return units.decode("utf-16-le", "surrogatepass").strip()


def _has_content(message: Message) -> bool:
    """Tell if it is a message of a person: not a join, a pin or another notice of the chat."""
    return bool(message.text or message.caption or describe_attachment(message))


def _is_private(chat: Chat) -> bool:
    return bool(chat.type == ChatType.PRIVATE)


def _list_mentions_and_links(message: Message) -> list[tuple[MessageEntity, str]]:
    if message.text:
        found = message.parse_entities(_ENTITY_TYPES)
    else:
        found = message.parse_caption_entities(_ENTITY_TYPES)
    return sorted(found.items(), key=lambda each: each[0].offset)


def _mentions(entity: MessageEntity, words: str, me: User) -> bool:
    if entity.type == MessageEntity.MENTION:
        return words[1:].lower() == (me.username or "").lower()
    return entity.user is not None and entity.user.id == me.id


class _Heard(NamedTuple):
    """A message between people in a group, as the model is given it."""

    author: str
    words: str
    files: tuple[Upload, ...]


class Overheard:
    """The last messages between people in groups, for Nod's next turn; a restart forgets them."""

    def __init__(self) -> None:
        self._said: dict[TelegramPlace, dict[int, _Heard]] = {}

    def keep(
        self, place: TelegramPlace, message: Message, me: User, album: Sequence[Message], *, edited: bool
    ) -> None:
        """Remember a message; an edit replaces it. ``album``: all messages that came as one."""
        said = self._said.pop(place, {})
        self._said[place] = said  # the place that was used last is the last to be forgotten
        if not edited or message.message_id in said:
            words = "\n".join(filter(None, map(words_of, album or [message])))[:_MAX_MESSAGE_CHARS]
            files = [file for each in album or [message] for file in files_of(each)]
            what = describe_attachment(message)
            if what and not files:
                words = f"{words}\n({what} that you can't see)".strip()
            author = _name_author(message, me)
            if message.forward_origin is not None:
                author = f"{author}, forwarding {_name_origin(message.forward_origin)}"
            said[message.message_id] = _Heard(author, words, tuple(files))
        if len(said) > _MAX_MESSAGES_BY_PLACE:
            del said[next(iter(said))]
        if len(self._said) > _MAX_PLACES:
            del self._said[next(iter(self._said))]

    def since(self, place: TelegramPlace) -> list[tuple[str, str]]:
        """Return the messages since the last `forget` with their authors, oldest first."""
        unread = {each.ref for each in self._files(place)} - {each.ref for each in self.files(place)}
        heard = self._said.get(place, {}).values()
        return [
            (each.author, "\n".join(filter(None, (each.words, describe_files(each.files, unread)))))
            for each in heard
        ]

    def files(self, place: TelegramPlace) -> tuple[Upload, ...]:
        """Return the files of those messages that are read with the next one: the newest."""
        return choose_earlier(self._files(place))

    def has_unread(self, place: TelegramPlace) -> bool:
        """Return whether there are more files than are read."""
        return len(self._files(place)) > MAX_EARLIER_FILES

    def forget(self, place: TelegramPlace) -> None:
        self._said.pop(place, None)

    def _files(self, place: TelegramPlace) -> list[Upload]:
        return [file for each in self._said.get(place, {}).values() for file in each.files]


def describe_attachment(message: Message | ExternalReplyInfo) -> str:
    """Name an attachment that Nod can't read, such as "a photo"; empty without one."""
    kind = next((kind for kind in _ATTACHMENT_NAMES if getattr(message, kind, None)), None)
    if kind is not None:
        return _ATTACHMENT_NAMES[kind]
    if isinstance(message, Message) and message.effective_attachment:
        return "an attachment"
    return ""


def files_of(message: Message) -> list[Upload]:
    """Return the attached files: of a photo its largest size, of an animation only one."""
    if message.photo:
        largest = message.photo[-1]
        return [Upload(f"photo-{message.message_id}.jpg", None, largest.file_id, largest.file_size or 0)]
    kind = next((kind for kind in _FILE_NAMES if getattr(message, kind, None)), None)
    if kind is None:
        return []
    found = getattr(message, kind)
    name = getattr(found, "file_name", None) or _FILE_NAMES[kind]
    return [Upload(name, None, found.file_id, found.file_size or 0)]


def for_model(message: Message, words: str, me: User) -> str:
    """Return the message for the model, with the quoted message and a note on what it can't see."""
    what = describe_attachment(message)
    if what and not files_of(message):
        words = f"{words}\n\n({what} was attached that you can't see)"
    if not words:
        return ""
    if message.forward_origin is not None:
        return format_forwarded(_name_origin(message.forward_origin), words, "")
    return in_reply_to(*_read_replied(message, me), words)


def _read_replied(message: Message, me: User) -> tuple[str, str]:
    """Return the author and text of the message that is replied to; empty without one."""
    quote = message.quote.text if message.quote else ""
    elsewhere, replied = message.external_reply, message.reply_to_message
    if elsewhere is not None:
        what = describe_attachment(elsewhere)
        unseen = f"({what} that you can't see)" if what else ""
        return _name_origin(elsewhere.origin), " ".join(filter(None, (quote, unseen)))
    if replied is None or replied.forum_topic_created:  # in a topic, everything replies to its beginning
        return "", ""
    said = quote or words_of(replied) or (f"({what})" if (what := describe_attachment(replied)) else "")
    if replied.media_group_id:
        said = f"{said} (one message of an album; you can't see the others)"
    return _name_author(replied, me), said


def _name_origin(origin: MessageOrigin) -> str:
    """Return the name of a forwarded message's author: a person, a hidden account, a group or a channel."""
    user = getattr(origin, "sender_user", None)
    chat = getattr(origin, "sender_chat", None) or getattr(origin, "chat", None)
    author = user.full_name if user else getattr(origin, "sender_user_name", None)
    return author or (chat.title if chat else None) or "someone in another chat"


def _name_author(message: Message, me: User) -> str:
    if message.from_user is not None and message.from_user.id == me.id:
        return "you"
    if message.sender_chat is not None:
        return message.sender_chat.title or "a chat"
    if message.from_user:
        return message.from_user.full_name
    return "someone"


@dataclass(frozen=True, slots=True)
class Inbound:
    """The handler of messages and commands, which posts the core's private replies."""

    transport: Transport
    admission: Admission
    dialogue_runner: DialogueRunner
    inbox: Inbox
    lookup: Lookup
    shown_cards: ShownCards
    me: User
    is_written_in: Callable[[TelegramPlace], bool]  # whether Nod writes an answer there
    overheard: Overheard = field(default_factory=Overheard)

    async def handle(
        self, message: Message, event_id: str, album: Sequence[Message] = (), *, edited: bool = False
    ) -> None:
        """Handle a message or command. ``album``: all messages of its album."""
        moves = self.transport.moves
        if message.migrate_to_chat_id is not None:
            return await moves.learn(message.chat.id, message.migrate_to_chat_id)
        if message.migrate_from_chat_id is not None:
            return await moves.learn(message.migrate_from_chat_id, message.chat.id)
        place = place_of(message, moves)
        user = message.from_user
        if place is None or user is None or not _has_content(message):
            return None
        if not any(is_meant_for(each, self.me) for each in album or (message,)):
            self.overheard.keep(place, message, self.me, album, edited=edited)
            return None
        if message.sender_chat is not None:
            await self._reply(place, _ANONYMOUS, message)
            return None
        who = Who(user, actor_of(user), place, ephemeral=_find_private_reply(message))
        if not await self.admission.admits(user.id, message.chat.id):
            if edited or message.forward_origin or not await self._take_from_decider(who, message):
                await self.admission.turn_away(user, place)
        elif edited:
            if message.text or message.caption:  # a live location is edited all the time
                await self._reply(place, _NO_EDITS, message)
        elif not user.is_bot:
            # words of another author command nothing
            typed = None if message.forward_origin else commands.read_command(words_of(message, self.me))
            if typed is not None:
                await self._take_command(who, typed, message)
            else:
                await self._take_message(who, message, event_id, album)
        return None

    async def _take_from_decider(self, who: Who, message: Message) -> bool:
        """Handle a reply to a card by a decider who is not admitted; False for any other message."""
        words = words_of(message, self.me)
        typed, dialogue = commands.read_command(words), await self.dialogue_runner.dialogues.load(who)
        about = dialogue.proposal_id if dialogue and words else ""
        if typed and typed.name != "cancel":
            about = typed.arguments if typed.name == "show" else ""
        if not (about and await self.lookup.decides(about, who.actor)):
            return False
        if typed is None:
            return await self.dialogue_runner.take_reply(
                who, words, message.reply_to_message, message.message_id
            )
        await self._take_command(who, typed, message)
        return True

    async def _take_message(
        self, who: Who, message: Message, event_id: str, album: Sequence[Message]
    ) -> None:
        words = "\n".join(filter(None, (words_of(each, self.me) for each in album or (message,))))
        replied = message.reply_to_message
        if not words and replied and await self._is_asked_for_words(who, replied):
            await self._reply(who.place, _WORDS_NEEDED.format(describe_attachment(message)), message)
            return
        shown = [replied] if replied and replied.from_user != self.me else []
        files = [file for each in (*shown, *(album or [message])) for file in files_of(each)]
        if not files and (what := describe_attachment(message)):
            await self._reply(who.place, _NOT_SEEN.format(what) if message.caption else _CANNOT_READ, message)
        if not words and not files:
            return
        if (
            words
            and not message.forward_origin
            and await self.dialogue_runner.take_reply(
                who, words, message.reply_to_message, message.message_id
            )
        ):
            return
        question = await self._find_question(who, replied) if words and not files else None
        if question and not message.forward_origin:
            answer = who.press(Verb.ANSWER, question.proposal_id, question.round, reason=words)
            reply = await self.inbox(answer)
            if reply.text:
                await self._reply(who.place, reply.text, message)
            return
        if who.ephemeral is not None:  # the answer would stand there for everyone
            await self._reply(who.place, _ONLY_ANSWERS, message)
            return
        known = {each.ref for each in files}
        earlier = [each for each in self.overheard.files(who.place) if each.ref not in known]
        left = self.overheard.has_unread(who.place)
        reply = await self.inbox(
            chat.Message(
                who.place.address,
                who.actor,
                in_group(self.overheard.since(who.place), for_model(message, words, self.me)),
                event_id,
                private=_is_private(message.chat),
                names=who.place.named(message.chat.title),
                files=(*files, *earlier),
            )
        )
        if left and reply.answer is Answer.ACCEPTED:
            await self._reply(who.place, _FILES_LEFT, message)
        if reply.answer in (Answer.ACCEPTED, Answer.DUPLICATE):
            self.overheard.forget(who.place)
        elif reply.text:
            await self._reply(who.place, reply.text, message)

    async def _is_asked_for_words(self, who: Who, replied: Message) -> bool:
        """Tell if a message asks this person for text: by their form, or as the card of an open question."""
        if replied.from_user != self.me:
            return False
        if await self.dialogue_runner.waits_for_reply(who, replied):
            return True
        return await self._find_question(who, replied) is not None

    async def _find_question(self, who: Who, replied: Message | None) -> Card | None:
        """Return the open question of the agent's whose card a person replied to, if they may answer it."""
        if replied is None or replied.from_user != self.me:
            return None
        shown = await self.shown_cards.find_proposal_id(posted_of(replied))
        card = await self.lookup.card(shown, who.actor, who.place.address) if shown else None
        if card is None or not (card.pending and card.kind.is_answer):
            return None
        if not await self.lookup.may_press(card.proposal_id, who.actor, who.place.address, Verb.ANSWER):
            return None
        return card

    async def _take_command(self, who: Who, typed: Typed, message: Message) -> None:
        if typed.name == "cancel" and not typed.arguments and await self.dialogue_runner.cancel(who):
            return
        if not typed.known:
            await self._reply(who.place, _NO_COMMAND, message)
            return
        if typed.name in ("start", "help"):
            admin = who.user.id in self.admission.admitted.admins
            decides = admin or who.user.id in self.admission.admitted.approvers
            text = commands.introduction(typed, admin=admin, decides=decides, notice=self.lookup.notice)
            await self.transport.send(who.place, plain(text), ephemeral=who.ephemeral)
            return
        if typed.name == "new":
            self.overheard.forget(who.place)
        people = {str(actor_of(each.user)): each.user.full_name for each in message.entities if each.user}
        named = {**who.place.named(message.chat.title), **people}
        command = typed.command(who.actor, who.place.address, private=_is_private(message.chat), names=named)
        shown = self.is_written_in(who.place)
        reply = await self.inbox(command)
        if shown and reply.text == STOPPED:
            return  # the answer says it
        if reply.answer is Answer.INVALID:
            reply = replace(reply, text=typed.as_typed(reply.text))
        if who.place.is_private or not (typed.confidential or reply.is_private):
            await self._post_reply(who, reply, who.place, message.message_id)
            return
        try:
            await self._post_reply(who, reply, TelegramPlace(who.user.id))
        except NotDeliverable:
            await self._reply(who.place, _ASK_IN_PRIVATE, message)

    async def _post_reply(
        self, who: Who, reply: Reply, place: TelegramPlace, answer_to: int | None = None
    ) -> None:
        """Post the reply, then further copies of the cards it is about."""
        if reply.text:
            ephemeral = who.ephemeral if place == who.place else None
            await self.transport.send(
                place, from_markdown(reply.text), answer_to=answer_to, ephemeral=ephemeral
            )
        for proposal in reply.proposals:
            card = await self.lookup.card(proposal.id, who.actor, together=True)
            if card is not None:
                await self.shown_cards.post_copy(card, place, self.lookup, who.actor)

    async def _reply(self, place: TelegramPlace, text: str, message: Message) -> None:
        ephemeral = _find_private_reply(message)
        await self.transport.send(place, plain(text), answer_to=message.message_id, ephemeral=ephemeral)
