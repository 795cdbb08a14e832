"""Interactions that Discord sends by HTTP: their signatures, strict parsing, and Nod's commands.

An interaction is a command, a press of a button, or a submitted modal (a form). `Interaction` parses each;
`channel.py` answers them. `COMMANDS` is what Nod publishes: two slash commands, and a command in the menu of
a message, which asks Nod about that message. Sources, below https://docs.discord.com/developers:
interactions/overview (signatures) and interactions/receiving-and-responding (shapes, 3 seconds to answer, 15
minutes for what follows).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from bot.channels.discord.places import DiscordPlace, actor_of, ref_of
from bot.channels.discord.reading import (
    MentionNames,
    list_names_in,
    write_marks_as_addresses,
    write_marks_as_names,
)
from bot.domain.attachments import Upload
from bot.domain.people import Actor
from bot.domain.text import format_reply, one_line

_MAX_SKEW = timedelta(minutes=5)  # between Discord's clock and Nod's
# contexts of interactions
_SERVER_CONTEXT = 0
_DIRECT_CONTEXT = 1
EPHEMERAL = 1 << 6  # the flag of a message that one person sees
# types of interactions
COMMAND = 2
COMPONENT = 3  # here always a button
MODAL = 5
MENU_COMMAND_NAME = "Ask Nod"  # the command in the menu of a message
ASK_WORD = "ask"  # the first word of a request, as in `/nod ask what is new?`
# types of commands, and of their options: interactions/application-commands
_SLASH_COMMAND = 1
_MESSAGE_COMMAND = 3
_TEXT_OPTION = 3
_FILE_OPTION = 11
_FILE_OPTION_NAMES = ("file", "file2", "file3")
_COMMAND_SCOPE = {"integration_types": [0], "contexts": [_SERVER_CONTEXT, _DIRECT_CONTEXT]}
"""The fields of every command: installed in servers, used there and in direct messages."""
_WORDS_OPTION = {"type": _TEXT_OPTION, "name": "words", "required": True, "max_length": 6000}
COMMANDS: list[dict[str, Any]] = [
    {
        "name": "nod",
        "type": _SLASH_COMMAND,
        "description": "Ask Nod to do something",
        "options": [
            {
                **_WORDS_OPTION,
                "description": "ask and what you want; or new, stop, status, team, link, help",
            },
            *(
                {"type": _FILE_OPTION, "name": name, "description": "A file for Nod to read"}
                for name in _FILE_OPTION_NAMES
            ),
        ],
        **_COMMAND_SCOPE,
    },
    {
        "name": "approvals",
        "type": _SLASH_COMMAND,
        "description": "Rules, grants and the audit log, for admins",
        "options": [{**_WORDS_OPTION, "description": "help lists them all"}],
        **_COMMAND_SCOPE,
    },
    {"name": MENU_COMMAND_NAME, "type": _MESSAGE_COMMAND, **_COMMAND_SCOPE},
]
"""The commands that Nod publishes, as Discord's API takes them."""


def is_signed(key: str, body: bytes, headers: Mapping[str, str], now: datetime) -> bool:
    """Tell if a body has Discord's signature, made at most `_MAX_SKEW` before or after now.

    ``key`` is the application's public key in hexadecimal.
    """
    timestamp = headers.get("x-signature-timestamp", "")
    try:
        signed_at = datetime.fromtimestamp(int(timestamp), now.tzinfo)
        signature = bytes.fromhex(headers.get("x-signature-ed25519", ""))
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(signature, timestamp.encode() + body)
    except (ValueError, OverflowError, OSError, InvalidSignature):
        return False
    return abs(now - signed_at) <= _MAX_SKEW


@dataclass(frozen=True, slots=True)
class Interaction:
    """A command, a press or a submitted modal."""

    id: str
    kind: int  # Discord's type: COMMAND, COMPONENT or MODAL
    token: str  # the key with which Nod sends later answers to it
    actor: Actor
    place: DiscordPlace
    data: Mapping[str, Any]
    ref: str | None  # the message with the pressed button; None without one, and for an ephemeral message
    channel_names: Mapping[str, str]  # the name of the channel, by its address; empty in direct messages

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Self:
        """Parse an interaction.

        Raises KeyError, TypeError, ValueError or AttributeError for a malformed one.
        """
        member = body.get("member") or {}
        actor = actor_of(member.get("user") or body["user"], member)
        server = body.get("guild_id")
        channel = str(body["channel_id"])
        if server:
            place = DiscordPlace(str(server), channel)
        else:
            place = DiscordPlace("", "", person=actor.key)
        channel_name = one_line(str((body.get("channel") or {}).get("name") or ""))
        channel_names = {str(place.address): f"#{channel_name}"} if server and channel_name else {}
        message = body.get("message")
        ref = None
        if message and not (message.get("flags") or 0) & EPHEMERAL:
            ref = ref_of(message, channel)
        return cls(
            id=str(body["id"]),
            kind=int(body["type"]),
            token=str(body["token"]),
            actor=actor,
            place=place,
            data=body["data"],
            ref=ref,
            channel_names=channel_names,
        )

    @property
    def _target_message(self) -> Mapping[str, Any]:
        """The message that a message command was used on; empty for other commands."""
        if self.data["name"] != MENU_COMMAND_NAME:
            return {}
        target: Mapping[str, Any] = self.data["resolved"]["messages"][self.data["target_id"]]
        return target

    def read_raw_text(self) -> tuple[str, MentionNames]:
        """Return a command's text with Discord's mention marks, and the names that Discord sent for them.

        A slash command's text is what the person typed after the command. A message command's text is that of
        the message.
        """
        target = self._target_message
        if target:
            return "\n".join(filter(None, _list_texts(target))), list_names_in(target)
        for option in self.data.get("options") or ():
            if option["name"] == "words":
                return str(option["value"]).strip(), {}
        return "", {}

    def read_command(self, names: MentionNames) -> tuple[str, str]:
        """Return the name of the command and its text without marks.

        In a request to Nod (`ASK_WORD`) the names in ``names`` replace the marks, in other commands addresses
        do. A message command becomes ``/nod ask`` with the message quoted.
        """
        name = str(self.data["name"])
        raw_text, _ = self.read_raw_text()
        target = self._target_message
        if target:
            author = actor_of(target["author"]).label
            quoted = write_marks_as_names(raw_text, names) or "(no words)"
            return "nod", f"ask {format_reply(author, quoted, 'Help with this message.')}"
        first_word = raw_text.split(maxsplit=1)[0] if raw_text else ""
        if name == "nod" and first_word.lower() == ASK_WORD:
            return name, write_marks_as_names(raw_text, names)
        return name, write_marks_as_addresses(raw_text, self.place.server, names)

    @property
    def files(self) -> tuple[Upload, ...]:
        """The files attached to the command's options, or to the message that it was used on."""
        resolved = self.data.get("resolved") or {}
        attachments = list((resolved.get("attachments") or {}).values())
        for message in (resolved.get("messages") or {}).values():
            for part in (message, *_list_forwarded(message)):
                attachments += part.get("attachments") or ()
        return tuple(
            Upload(str(file["filename"]), ref=str(file["url"]), size=int(file["size"]))
            for file in attachments
        )

    @property
    def modal_values(self) -> dict[str, Any]:
        """The values that a person entered in a modal, by custom_id: a text, or a list of values."""
        values: dict[str, Any] = {}
        for part in self.data["components"]:
            component = part.get("component")
            if component:
                is_list = "values" in component
                value = component["values"] if is_list else str(component["value"])
                values[str(component["custom_id"])] = value
        return values


def _list_forwarded(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [snapshot.get("message") or {} for snapshot in message.get("message_snapshots") or ()]


def _list_texts(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of a message or component: its content, embeds, poll, stickers and forwarded messages.

    Some of the texts may be empty.
    """
    yield str(message.get("content") or "")
    for embed in message.get("embeds") or ():
        yield str((embed.get("author") or {}).get("name") or "")
        link = f"({embed['url']})" if embed.get("url") else ""
        yield " ".join(filter(None, (str(embed.get("title") or ""), link)))
        yield str(embed.get("description") or "")
        for field in embed.get("fields") or ():
            yield f"{field['name']}: {field['value']}"
        yield str((embed.get("footer") or {}).get("text") or "")
    poll = message.get("poll") or {}
    answers = [answer.get("poll_media") for answer in poll.get("answers") or ()]
    for poll_text in (poll.get("question"), *answers):
        yield str((poll_text or {}).get("text") or "")
    for sticker in message.get("sticker_items") or ():
        yield f"(a sticker: {sticker['name']})"
    for part in (*(message.get("components") or ()), *_list_forwarded(message)):
        yield from _list_texts(part)
