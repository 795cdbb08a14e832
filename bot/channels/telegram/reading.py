"""Reads a message of Telegram: whether it is for Nod, its text for the model, its author, its attachments.

A message has a text or a caption. Entities mark the mentions and links in it by offset and length, in UTF-16
units. A message may reply to another message, or forward one. ``me`` is Nod's own account.
"""

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

from bot.channels.telegram import commands
from bot.channels.telegram.places import NAME, EphemeralTarget, Moves, TelegramPlace
from bot.channels.telegram.transport import reference_of
from bot.domain.attachments import Upload
from bot.domain.people import Actor
from bot.domain.text import format_forwarded, format_reply

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
_DEFAULT_FILE_NAMES = {  # the default names by kind of attachment, for the kinds that are files
    "animation": "animation.mp4",
    "document": "document",
    "video": "video.mp4",
    "video_note": "video-message.mp4",
    "voice": "voice-message.ogg",
    "audio": "audio",
}
_SPOKEN_KINDS = frozenset({"voice", "video_note"})  # recorded for the message itself
_ENTITY_TYPES: list[str | None] = [MessageEntity.MENTION, MessageEntity.TEXT_MENTION, MessageEntity.TEXT_LINK]


def actor_of(user: User) -> Actor:
    return Actor(NAME, str(user.id), user.full_name)


def place_of(message: MaybeInaccessibleMessage, moves: Moves) -> TelegramPlace | None:
    """Return the place of a message.

    None for a message that is too old to be shown to bots: its topic is unknown.
    """
    # an inaccessible message may be a Message, too
    if not isinstance(message, Message) or not message.is_accessible:
        return None
    return moves.make_incoming_place(
        message.chat.id, message.message_thread_id if message.is_topic_message else None
    )


def is_meant_for(message: Message, me: User) -> bool:
    """Tell if a message is for Nod.

    In private every message is; in a group a mention, a reply, a command, or a message that only Nod sees.
    """
    if message.is_automatic_forward:  # a channel's post, which Telegram puts into the channel's group
        return False
    if is_private_chat(message.chat) or find_ephemeral_target(message):
        return True
    replied = message.reply_to_message
    if replied and replied.from_user == me and not replied.forum_topic_created:
        return True
    command = commands.read_command(message.text or "")
    if command is not None:
        if command.bot:
            return command.bot.lower() == (me.username or "").lower()
        return command.is_known
    return any(_mentions(entity, words, me) for entity, words in _list_mentions_and_links(message))


def find_ephemeral_target(message: Message) -> EphemeralTarget | None:
    """Return the target for an ephemeral reply to a message that only Nod can see in a group, else None."""
    message_id = reference_of(message).message_id  # negative for an ephemeral message
    if message_id < 0 and message.from_user:
        return EphemeralTarget(message.from_user.id, message_id=-message_id)
    return None


def has_content(message: Message) -> bool:
    """Tell if a message has a text or an attachment; notices such as a join or a pin have neither."""
    return bool(message.text or message.caption or describe_attachment(message))


def is_private_chat(chat: Chat) -> bool:
    return bool(chat.type == ChatType.PRIVATE)


def read_words(message: Message, me: User | None = None) -> str:
    """Return the text or caption with the addresses of links, and without mentions of ``me``.

    In commands, mentions of people become their accounts.
    """
    text = message.text or message.caption or ""
    is_command = text.startswith(("/nod", "/approvals"))
    units = text.encode("utf-16-le", "surrogatepass")  # entities count in UTF-16 units, of two bytes each
    for entity, words in reversed(_list_mentions_and_links(message)):
        if me and _mentions(entity, words, me):
            replacement = " "
        elif entity.url and entity.url not in words:
            replacement = f"{words} ({entity.url})"
        elif entity.user and is_command:
            replacement = str(actor_of(entity.user))
        else:
            replacement = words
        start, end = 2 * entity.offset, 2 * (entity.offset + entity.length)
        units = units[:start] + replacement.encode("utf-16-le", "surrogatepass") + units[end:]
    return units.decode("utf-16-le", "surrogatepass").strip()


def format_for_model(message: Message, text: str, me: User) -> str:
    """Return a message as text for the model: ``text``, and the message that it forwards or replies to.

    A note names an attachment that the model can't see, or that was forwarded. The text is empty without any
    words or note.
    """
    attachment = describe_attachment(message)
    files = files_of(message)
    if attachment and not files:
        text = f"{text}\n\n({attachment} was attached that you can't see)"
    if files and message.forward_origin is not None:
        text = f"{text}\n\n({attachment} is attached)".strip()
    if not text:
        return ""
    if message.forward_origin is not None:
        return format_forwarded(name_original_author(message.forward_origin), text, "")
    return format_reply(*_read_replied(message, me), text)


def describe_attachment(message: Message | ExternalReplyInfo) -> str:
    """Name an attachment in words, such as "a photo"; empty without one."""
    for kind, name in _ATTACHMENT_NAMES.items():
        if getattr(message, kind, None):
            return name
    if isinstance(message, Message) and message.effective_attachment:
        return "an attachment"
    return ""


def files_of(message: Message) -> list[Upload]:
    """Return the attached files: of a photo the largest size, of an animation a single file."""
    if message.photo:
        largest = message.photo[-1]
        name = f"photo-{message.message_id}.jpg"
        return [Upload(name, ref=largest.file_id, size=largest.file_size or 0)]
    for kind, default_name in _DEFAULT_FILE_NAMES.items():
        attachment = getattr(message, kind, None)
        if attachment:
            name = getattr(attachment, "file_name", None) or default_name
            is_spoken = kind in _SPOKEN_KINDS and message.forward_origin is None
            size = attachment.file_size or 0
            return [Upload(name, ref=attachment.file_id, size=size, spoken=is_spoken)]
    return []


def name_author(message: Message, me: User) -> str:
    if message.from_user is not None and message.from_user.id == me.id:
        return "you"
    if message.sender_chat is not None:
        return message.sender_chat.title or "a chat"
    if message.from_user:
        return message.from_user.full_name
    return "someone"


def name_original_author(origin: MessageOrigin) -> str:
    """Return the author of a forwarded message: a person, a hidden account, a group or a channel."""
    user = getattr(origin, "sender_user", None)
    chat = getattr(origin, "sender_chat", None) or getattr(origin, "chat", None)
    author = user.full_name if user else getattr(origin, "sender_user_name", None)
    return author or (chat.title if chat else None) or "someone in another chat"


def _read_replied(message: Message, me: User) -> tuple[str, str]:
    """Return the author and text of the message that is replied to; empty without one."""
    quote = message.quote.text if message.quote else ""
    external = message.external_reply  # a reply to a message of another chat or topic
    if external is not None:
        attachment = describe_attachment(external)
        unseen = f"({attachment} that you can't see)" if attachment else ""
        return name_original_author(external.origin), " ".join(filter(None, (quote, unseen)))
    replied = message.reply_to_message
    # in a topic, every message replies to the message that began the topic
    if replied is None or replied.forum_topic_created:
        return "", ""
    text = quote or read_words(replied)
    attachment = describe_attachment(replied)
    if not text and attachment:
        text = f"({attachment})"
    if replied.media_group_id:
        text = f"{text} (one message of an album; you can't see the others)"
    return name_author(replied, me), text


def _list_mentions_and_links(message: Message) -> list[tuple[MessageEntity, str]]:
    if message.text:
        entities = message.parse_entities(_ENTITY_TYPES)
    else:
        entities = message.parse_caption_entities(_ENTITY_TYPES)
    return sorted(entities.items(), key=lambda item: item[0].offset)


def _mentions(entity: MessageEntity, text: str, me: User) -> bool:
    if entity.type == MessageEntity.MENTION:
        return text[1:].lower() == (me.username or "").lower()
    return entity.user is not None and entity.user.id == me.id
