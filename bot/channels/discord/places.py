"""Addresses in Discord, references to posted messages, and Discord's numbers and limits.

An address is a channel or thread of a server, ``SERVER/CHANNEL``, or a person by their id. The reference to a
posted message, such as a copy of a card, is ``CHANNEL/MESSAGE``. The limits are Discord's, in characters; the
texts are counted here in UTF-16 units, which are never fewer.

Pages, below https://docs.discord.com/developers: resources/message (create message, embed limits),
components/reference, interactions/receiving-and-responding, reference (uploading files).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from bot.domain.chat import Address
from bot.domain.people import Actor, Membership
from bot.domain.text import one_line
from bot.errors import CopyGone, NotDeliverable

INTERACTIONS = "/discord/interactions"
CHANNEL_NAME = "discord"
_GUEST_FLAG = 1 << 4  # a flag of members: resources/guild#guild-member-object-guild-member-flags
# types of components: components/reference
ROW_TYPE = 1
BUTTON_TYPE = 2
MENU_TYPE = 3
TEXT_INPUT_TYPE = 4
TEXT_TYPE = 10
LABEL_TYPE = 18
MAX_CONTENT_UNITS = 2000  # the text of one message
MAX_EMBED_UNITS = 4096  # the text of an embed; all embeds of a message may have 6000, and Nod sends one
MAX_ROWS = 5  # the rows of components in a message
MAX_BUTTONS_IN_ROW = 5
MAX_BUTTON_UNITS = 80  # a button's label
MAX_CUSTOM_ID_CHARS = 100
MAX_LINK_CHARS = 512  # a link button's address
MAX_LABEL_UNITS = 45  # the label of an input, and the title of a modal
MAX_MODAL_PARTS = 5  # components in a modal
MAX_HINT_UNITS = 100  # the description of a label
MAX_INPUT_UNITS = 4000  # the value of a text input
MAX_OPTIONS = 25  # the options of a menu, each of up to 100 characters
MAX_OPTION_UNITS = 100
MAX_FILE_BYTES = 10 * 2**20  # the limit in servers that do not pay for a higher one
ACKNOWLEDGE_SECONDS = 2.0  # the most time for Nod to answer an interaction; Discord waits 3 s


@dataclass(frozen=True, slots=True)
class DiscordPlace:
    """A channel or thread of a server, or the direct messages of a person. All fields are ids.

    Either ``server`` and ``channel`` are set, or ``person``.
    """

    server: str  # empty for a person
    channel: str  # empty for a person
    person: str = ""  # empty for a channel

    @property
    def address(self) -> Address:
        return Address(CHANNEL_NAME, self.person or f"{self.server}/{self.channel}")

    @classmethod
    def of(cls, address: Address) -> Self:
        """Parse an address. Raises NotDeliverable if its key has another form."""
        server_or_person, _, channel = address.key.partition("/")
        if not server_or_person.isdecimal() or (channel and not channel.isdecimal()):
            raise NotDeliverable(f"{address} is no place in Discord; write discord:SERVER/CHANNEL.")
        if channel:
            return cls(server_or_person, channel)
        return cls("", "", person=server_or_person)


def is_guest(member: Mapping[str, Any]) -> bool:
    """Tell if a member was let in as a guest."""
    return bool((member.get("flags") or 0) & _GUEST_FLAG)


def actor_of(user: Mapping[str, Any], member: Mapping[str, Any] | None = None) -> Actor:
    """Return a person, with the name that the server shows.

    ``member``: Discord's record of the person in the server, if there is one.
    """
    member = member or {}
    standing = None
    if "flags" in member:
        standing = Membership.GUEST if is_guest(member) else Membership.MEMBER
    name = member.get("nick") or user.get("global_name") or user.get("username") or ""
    return Actor(CHANNEL_NAME, str(user["id"]), one_line(str(name)), standing)


def ref_of(message: Mapping[str, Any], channel: str = "") -> str:
    """Return the reference to a message of Discord's, in ``channel`` or in the channel that it names."""
    return f"{channel or message['channel_id']}/{message['id']}"


def path_of(ref: str) -> str:
    """Return the API's path of a message by its reference. Raises CopyGone for any other text."""
    channel, _, message = ref.partition("/")
    if not (channel.isdecimal() and message.isdecimal()):
        raise CopyGone(f"{ref!r} is no message in Discord.")
    return f"/channels/{channel}/messages/{message}"
