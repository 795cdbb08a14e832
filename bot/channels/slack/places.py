"""Places in Slack and references to posted messages, with the ids of which they are made.

The key of an address is team, channel and thread: ``T1/C2/1700.1``. A team is a workspace or an organisation.
A thread has the timestamp of its first message, which is also the id of that message. The reference to a
posted message, such as a copy of a card, is written like the key of a thread.
"""

import re
from dataclasses import dataclass
from typing import Self

from bot.domain.chat import Address
from bot.domain.people import Actor, Membership
from bot.errors import NotDeliverable

NAME = "slack"
_ID = re.compile(r"[A-Z0-9]+")
_OTHER_WORKSPACE = "another workspace"


@dataclass(frozen=True, slots=True)
class SlackPlace:
    """A thread, or a channel if ``thread`` is None. ``channel`` may be a user's id: their direct messages."""

    team: str
    channel: str
    thread: str | None = None

    @classmethod
    def of(cls, address: Address) -> Self:
        """Parse a Slack address. Raises NotDeliverable for any other address."""
        match address.key.split("/"):
            case [team, channel] if team and channel:
                return cls(team, channel)
            case [team, channel, thread] if team and channel and thread:
                return cls(team, channel, thread)
        raise NotDeliverable(f"{address} is no place in Slack; write slack:T…/C… or slack:T…/C…/thread")

    @property
    def address(self) -> Address:
        parts = (self.team, self.channel, self.thread)
        return Address(NAME, "/".join(part for part in parts if part))

    @property
    def private(self) -> bool:
        """True in a direct message between a person and the bot."""
        return self.channel.startswith("D")


@dataclass(frozen=True, slots=True)
class SlackPosted:
    """A posted message; as text it is the reference to a copy of a card. ``ts`` is its timestamp, its id."""

    team: str
    channel: str
    ts: str

    def __str__(self) -> str:
        return f"{self.team}/{self.channel}/{self.ts}"

    @classmethod
    def parse(cls, ref: str) -> Self:
        team, channel, ts = ref.split("/")
        return cls(team, channel, ts)


def is_id(text: str) -> bool:
    """Tell if a text can be an id of Slack's, so that it is safe in a mention."""
    return _ID.fullmatch(text) is not None


def mention_of(ident: str) -> str:
    """Return a mention of a person or of a user group, by its id."""
    if ident.startswith("S"):
        return f"<!subteam^{ident}>"
    return f"<@{ident}>"


def find_linkable_channel(address_text: str, team: str) -> str | None:
    """Return the id of the channel at an address, if people of this workspace can follow a link to it.

    None for any other address, such as that of a direct message or of another workspace.
    """
    platform, _, key = address_text.partition(":")
    workspace, _, rest = key.partition("/")
    ident = rest.partition("/")[0]
    if platform == NAME and workspace == team and ident.startswith(("C", "G")) and is_id(ident):
        return ident
    return None


def actor_of(
    team: str, user: str, name: str = "", standing: Membership | None = None, *, is_colleague: bool = False
) -> Actor:
    """Return the `Actor` of a Slack user. A guest or an outsider has it in the name, such as "Ana (guest)".

    ``is_colleague``: they are of the same organisation as the workspace that Nod works for.
    """
    if name and standing is Membership.OUTSIDER and is_colleague:
        name = f"{name} ({_OTHER_WORKSPACE})"
    elif name and standing in (Membership.GUEST, Membership.OUTSIDER):
        name = f"{name} ({standing})"
    return Actor(NAME, f"{team}/{user}", name, standing)


def user_of(actor: Actor) -> tuple[str, str] | None:
    """Return team and user id of a Slack actor; None for another channel's."""
    if actor.channel != NAME:
        return None
    team, _, user = actor.key.partition("/")
    return team, user
