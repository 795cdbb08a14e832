"""Incoming HTTP requests of Discord: signed interactions, read strictly, and people's commands.

Sources, below https://docs.discord.com/developers: interactions/overview (signatures) and
interactions/receiving-and-responding (shapes, 3 seconds to answer, 15 minutes for what follows).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from bot.channels.discord.places import DiscordPlace, actor_of, ref_of
from bot.channels.discord.reading import Names, as_accounts, as_words, names_in
from bot.domain.attachments import Upload
from bot.domain.people import Actor
from bot.domain.text import in_reply_to, one_line

_SKEW = timedelta(minutes=5)
_IN_SERVER, _WITH_NOD = 0, 1  # interaction contexts
EPHEMERAL = 1 << 6
COMMAND, COMPONENT, WINDOW = 2, 3, 5  # interaction types
ASK = "Ask Nod"
ASKING = "ask"
COMMANDS = [
    {
        "name": name,
        "type": 1,
        "description": about,
        "options": [
            {"type": 3, "name": "words", "description": hint, "required": True, "max_length": 6000},
            *({"type": 11, "name": each, "description": "A file for Nod to read"} for each in files),
        ],
        "integration_types": [0],
        "contexts": [_IN_SERVER, _WITH_NOD],
    }
    for name, about, hint, files in (
        (
            "nod",
            "Ask Nod to do something",
            "ask and what you want; or new, stop, status, team, link, help",
            ("file", "file2", "file3"),
        ),
        ("approvals", "Rules, grants and the audit log, for admins", "help lists them all", ()),
    )
] + [{"name": ASK, "type": 3, "integration_types": [0], "contexts": [_IN_SERVER, _WITH_NOD]}]


def is_signed(key: str, body: bytes, headers: Mapping[str, str], now: datetime) -> bool:
    """Tell if a body has Discord's signature, at most ``_SKEW`` old.

    ``key`` is the application's public key.
    """
    stamp = headers.get("x-signature-timestamp", "")
    try:
        at = datetime.fromtimestamp(int(stamp), now.tzinfo)
        signature = bytes.fromhex(headers.get("x-signature-ed25519", ""))
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(signature, stamp.encode() + body)
    except (ValueError, OverflowError, OSError, InvalidSignature):
        return False
    return abs(now - at) <= _SKEW


def _list_forwarded(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [each.get("message") or {} for each in message.get("message_snapshots") or ()]


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of a message or component, of its embeds, and of forwarded messages."""
    yield str(message.get("content") or "")
    for embed in message.get("embeds") or ():
        yield str((embed.get("author") or {}).get("name") or "")
        link = f"({embed['url']})" if embed.get("url") else ""
        yield " ".join(filter(None, (str(embed.get("title") or ""), link)))
        yield str(embed.get("description") or "")
        yield from (f"{each['name']}: {each['value']}" for each in embed.get("fields") or ())
        yield str((embed.get("footer") or {}).get("text") or "")
    poll = message.get("poll") or {}
    for each in (poll.get("question"), *(answer.get("poll_media") for answer in poll.get("answers") or ())):
        yield str((each or {}).get("text") or "")
    yield from (f"(a sticker: {each['name']})" for each in message.get("sticker_items") or ())
    for part in (*(message.get("components") or ()), *_list_forwarded(message)):
        yield from _texts(part)


@dataclass(frozen=True, slots=True)
class Interaction:
    """A command, a press or a submitted modal; ``ref`` is the pressed card, None for ephemeral messages."""

    id: str
    kind: int
    token: str
    actor: Actor
    place: DiscordPlace
    data: Mapping[str, Any]
    ref: str | None
    names: Mapping[str, str]  # of the channel

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Self:
        """Parse an interaction.

        Raises KeyError, TypeError, ValueError or AttributeError for a malformed one.
        """
        member = body.get("member") or {}
        actor = actor_of(member.get("user") or body["user"], member)
        server, channel, message = body.get("guild_id"), str(body["channel_id"]), body.get("message")
        if server:
            place = DiscordPlace(str(server), channel)
        else:
            place = DiscordPlace("", "", actor.key)
        called = one_line(str((body.get("channel") or {}).get("name") or ""))
        names = {str(place.address): f"#{called}"} if server and called else {}
        private = not message or (message.get("flags") or 0) & EPHEMERAL
        ref = None if message is None or private else ref_of(message, channel)
        data = body["data"]
        return cls(str(body["id"]), int(body["type"]), str(body["token"]), actor, place, data, ref, names)

    @property
    def _about(self) -> Mapping[str, Any]:
        """The message that a message command was used on; empty for other commands."""
        if self.data["name"] != ASK:
            return {}
        about: Mapping[str, Any] = self.data["resolved"]["messages"][self.data["target_id"]]
        return about

    @property
    def marked(self) -> tuple[str, Names]:
        """The text as written, with Discord's mention syntax, and the names of those mentioned."""
        about = self._about
        if about:
            return "\n".join(filter(None, _texts(about))), names_in(about)
        options = self.data.get("options") or ()
        return next((str(o["value"]) for o in options if o["name"] == "words"), "").strip(), {}

    def make_message(self, names: Names) -> tuple[str, str]:
        """Return the command and its text; a question about a message quotes it."""
        name, (words, _) = str(self.data["name"]), self.marked
        about = self._about
        if about:
            author, words = actor_of(about["author"]).label, as_words(words, names)
            return "nod", f"ask {in_reply_to(author, words or '(no words)', 'Help with this message.')}"
        if name == "nod" and words[:3].lower() == ASKING and not words[3:4].strip():
            return name, as_words(words, names)
        return name, as_accounts(words, self.place.server, names)

    @property
    def files(self) -> tuple[Upload, ...]:
        """The files attached to the command's options, or to the message that it was used on."""
        resolved = self.data.get("resolved") or {}
        messages = (resolved.get("messages") or {}).values()
        found = [
            *(resolved.get("attachments") or {}).values(),
            *(
                a
                for m in messages
                for part in (m, *_list_forwarded(m))
                for a in part.get("attachments") or ()
            ),
        ]
        return tuple(Upload(str(f["filename"]), ref=str(f["url"]), size=int(f["size"])) for f in found)

    @property
    def filled(self) -> dict[str, Any]:
        """The values that a person entered in a modal, by custom_id: a text, or a list of values."""
        inner = [part.get("component") or {} for part in self.data["components"]]
        return {str(c["custom_id"]): c["values"] if "values" in c else str(c["value"]) for c in inner if c}
