"""Addresses in Discord: a channel or thread of a server, or a person; and posted messages.

A copy's reference is ``CHANNEL/MESSAGE``. The limits are Discord's: lengths in characters, counted here in
UTF-16 units, which is never too few.

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
NAME = "discord"
_GUEST_FLAG = 1 << 4  # a flag of members: resources/guild#guild-member-object-guild-member-flags
# types of components: components/reference
ROW_TYPE = 1
BUTTON_TYPE = 2
MENU_TYPE = 3
TEXT_INPUT_TYPE = 4
TEXT_TYPE = 10
LABEL_TYPE = 18
CONTENT = 2000  # the text of one message
EMBED_TEXT = 4096  # the text of an embed; all embeds of a message may have 6000, and Nod sends one
ROWS = 5  # the rows of components in a message
IN_ROW = 5  # buttons in a row
BUTTON = 80  # a button's label
CUSTOM_ID = 100
LINK = 512  # a link button's address
LABEL = 45  # the label of an input, and the title of a window
WINDOW_PARTS = 5  # components in a window
HINT = 100  # the description of a label
INPUT = 4000  # the value of a text input
OPTIONS = 25  # the options of a menu, each of up to 100 characters
OPTION = 100
FILE = 10 * 2**20  # bytes, where no one pays for more
ACKNOWLEDGE = 2.0  # seconds we take to answer an interaction; Discord waits 3


@dataclass(frozen=True, slots=True)
class DiscordPlace:
    """A channel, ``SERVER/CHANNEL`` as in Discord's links, also a thread; or a person, by their id."""

    server: str
    channel: str
    person: str = ""

    @property
    def address(self) -> Address:
        return Address(NAME, self.person or f"{self.server}/{self.channel}")

    @classmethod
    def of(cls, address: Address) -> Self:
        """Parse an address. Raises NotDeliverable if it is not of Discord."""
        server, _, channel = address.key.partition("/")
        if not server.isdecimal() or (channel and not channel.isdecimal()):
            raise NotDeliverable(f"{address} is no place in Discord; write discord:SERVER/CHANNEL.")
        if channel:
            return cls(server, channel)
        return cls("", "", server)


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
    return Actor(NAME, str(user["id"]), one_line(str(name)), standing)


def ref_of(message: Mapping[str, Any], channel: str = "") -> str:
    return f"{channel or message['channel_id']}/{message['id']}"


def path_of(ref: str) -> str:
    """Return the API's path of a message. Raises CopyGone for any other text than a reference of ours."""
    channel, _, message = ref.partition("/")
    if not (channel.isdecimal() and message.isdecimal()):
        raise CopyGone(f"{ref!r} is no message in Discord.")
    return f"/channels/{channel}/messages/{message}"
