"""What a message holds besides its own words: what it replies to, and what Nod can't see. Pure."""

from telegram import Message, MessageOrigin, User

from bot.channels.telegram.places import TelegramPlace
from bot.domain.text import forwarded, in_reply_to

_PLACES = 200  # groups and topics whose last messages are kept
_MESSAGES = 30  # of each
_LONGEST = 2_000  # characters of one
_KINDS = {
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


class Overheard:
    """The last messages between people in groups, until Nod is called; a restart forgets them."""

    def __init__(self) -> None:
        self._said: dict[TelegramPlace, dict[int, tuple[str, str]]] = {}

    def keep(self, place: TelegramPlace, message: Message, me: User, *, edited: bool) -> None:
        """Keep who said what; an edit replaces what is kept and adds nothing."""
        said = self._said.pop(place, {})
        self._said[place] = said  # the place that was used last is the last to be forgotten
        if not edited or message.message_id in said:
            words = message.text or message.caption or f"({attached(message)})"
            author = _author(message, me)
            if message.forward_origin is not None:
                author = f"{author}, forwarding {_origin(message.forward_origin)}"
            said[message.message_id] = (author, words[:_LONGEST])
        if len(said) > _MESSAGES:
            del said[next(iter(said))]
        if len(self._said) > _PLACES:
            del self._said[next(iter(self._said))]

    def since(self, place: TelegramPlace) -> list[tuple[str, str]]:
        """Who said what since the last `forget`, the first one first."""
        return list(self._said.get(place, {}).values())

    def forget(self, place: TelegramPlace) -> None:
        self._said.pop(place, None)


def attached(message: Message) -> str:
    """What comes with a message that Nod can't read, such as "a photo"; empty where nothing does."""
    kind = next((kind for kind in _KINDS if getattr(message, kind, None)), None)
    if kind is not None:
        return _KINDS[kind]
    return "an attachment" if message.effective_attachment else ""


def for_model(message: Message, words: str, me: User) -> str:
    """The words of a message with what they point at, and a note of what the model can't see."""
    if what := attached(message):
        name = message.document.file_name if message.document else None
        words = f"{words}\n\n({what} was attached that you can't see{f': {name}' if name else ''})"
    if message.forward_origin is not None:
        return forwarded(_origin(message.forward_origin), words, "")
    return in_reply_to(*_pointed_at(message, me), words)


def _pointed_at(message: Message, me: User) -> tuple[str, str]:
    """Who wrote what is replied to, and what; the words are empty where nothing is."""
    quote = message.quote.text if message.quote else ""
    elsewhere, replied = message.external_reply, message.reply_to_message
    if elsewhere is not None:
        return _origin(elsewhere.origin), quote
    if replied is None or replied.forum_topic_created:  # in a topic, everything replies to its beginning
        return "", ""
    said = quote or replied.text or replied.caption or (f"({what})" if (what := attached(replied)) else "")
    return _author(replied, me), said


def _origin(origin: MessageOrigin) -> str:
    """Who wrote what comes from elsewhere: a person, one who hides their account, a group or a channel."""
    user = getattr(origin, "sender_user", None)
    chat = getattr(origin, "sender_chat", None) or getattr(origin, "chat", None)
    author = user.full_name if user else getattr(origin, "sender_user_name", None)
    return author or (chat.title if chat else None) or "someone in another chat"


def _author(message: Message, me: User) -> str:
    if message.from_user is not None and message.from_user.id == me.id:
        return "you"
    if message.sender_chat is not None:
        return message.sender_chat.title or "a chat"
    return message.from_user.full_name if message.from_user else "someone"
