"""The interface that a new channel implements, on one page.

A channel connects a chat platform. It turns what the platform sends into a `Message`, `Press`, `Command` or
`Request` of ``bot/domain/chat.py``, hands it to the `Inbox`, and tells the `Reply` to that one person. All
other output comes from the delivery (``bot/channels/delivery/``), which calls the methods of `Channel` and
`Poster` and knows no platform. A card is the message about a proposal, with its buttons
(``bot/domain/cards.py``); each place where it was posted has a copy, known by the platform's reference
(``ref``). A stream shows one turn of the agent as it happens. For all that a channel wants to know of the
core there is `Lookup`.

Below the interface are functions that call a method of the channel that an address belongs to.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any, Protocol

from bot.domain.cards import Card
from bot.domain.chat import Address, Inbox, LinkButton
from bot.domain.events import TurnEvent
from bot.domain.hooks import CommandOffer
from bot.domain.jobs import Peers
from bot.domain.people import SHELL, Actor, Membership, UserGroup
from bot.domain.similarity import GrantAudience, GrantScope
from bot.domain.teams import TeamStatus
from bot.domain.verbs import Verb
from bot.errors import ChannelError, NotDeliverable

SILENT_SECONDS = 60.0
"""The silence after which a connection counts as dead: platforms answer polls and pings every few seconds."""


@dataclass(frozen=True, slots=True)
class Overview:
    """The cards that one person sees in an overview, newest first."""

    waiting: tuple[Card, ...]  # proposals that this person may decide
    asked: tuple[Card, ...]  # this person's own open proposals
    recent: tuple[Card, ...]  # proposals that ended lately, decided or asked for by this person
    offers: tuple[CommandOffer, ...] = ()  # the commands that features offer to this person


class Lookup(Protocol):
    """Queries that a channel may make. Each result is checked against the rights of the person who asks.

    ``address`` is the place of the card that this person sees: some rules let "anyone in this chat" decide.
    ``notice`` is a remark on this Nod that every introduction includes; mostly empty.

    A grant is the permission that "approve similar" gives: similar calls then run without asking. It has a
    scope (which calls) and an audience (whose calls, and where).
    """

    notice: str

    async def card(
        self,
        proposal_id: str,
        actor: Actor,
        address: Address | None = None,
        ref: str | None = None,
        *,
        together: bool = False,
    ) -> Card | None:
        """Return the card as it is now; None if this person may not see it at this address.

        ``ref`` is the posted card that was pressed, as in `Press`; the result is None if that message can't
        be a card of this proposal. A posted card that is not stored as a copy yet is stored, and kept up to
        date from now on. ``together``: for a row of a batch, which is several calls in one card, return the
        card of the batch.
        """

    async def arguments(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Mapping[str, Any] | None:
        """Return the arguments for an edit form, secrets replaced by `HIDDEN`.

        None if this person may neither edit nor decline. A requester may edit a call that only others may
        approve: ask `may_press` about approving.
        """

    async def ladder(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Sequence[tuple[GrantScope, str]]:
        """Return the scopes that a grant may have here, with their texts, narrowest first.

        Empty when this person may give no grant.
        """

    async def reaches(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Sequence[tuple[GrantAudience, str]]:
        """Return the audiences that a grant may have here, with their texts, narrowest first.

        Empty when this person may give no grant.
        """

    async def context(self, proposal_id: str, actor: Actor, address: Address | None = None) -> str | None:
        """Return the turn that led to a proposal, as text; None for people who may not decide it."""

    async def note_opened(self, proposal_id: str, actor: Actor) -> None:
        """Tell features that this person opened the full content of an open card. Never raises."""

    async def overview(self, actor: Actor) -> Overview:
        """Return the cards that concern this person, and the commands that are offered to them."""

    async def follows(self, address: Address) -> bool:
        """Tell if a conversation is open at the address, so that messages there are for Nod."""

    async def may_press(
        self, proposal_id: str, actor: Actor, address: Address | None = None, verb: Verb = Verb.APPROVE
    ) -> bool:
        """Tell if this person may press the button of ``verb``, from this address."""

    async def decides(self, proposal_id: str, actor: Actor) -> bool:
        """Tell if this person may decide this proposal of someone else, at whatever address."""


class Stream(Protocol):
    """One turn being shown at one address, from its first event to `TurnEnded` or `TurnFailed`."""

    async def send(self, event: TurnEvent) -> None:
        """Show the event; text deltas may arrive joined. Raises ChannelError when the platform refuses.

        If the stream divides a text into the same posts as `Poster.post`, the error says how many of them
        arrived (``ChannelError.arrived``), and delivery posts the others.
        """


class Channel(Protocol):
    """A chat platform, such as Slack. Every method may raise ChannelError; none decides a proposal.

    Most channels are a `Poster`. The web is not: people there read the rows of the database as they are, so
    nothing is posted, and there are no copies to redraw.
    """

    name: str

    async def start(
        self, inbox: Inbox, lookup: Lookup, *, receives: bool = True, others: Peers | None = None
    ) -> None:
        """Connect. Without ``receives`` the channel only posts, and another of the ``others`` listens.

        ``others``: the other processes of this Nod; None for a single process.
        """

    async def stop(self) -> None: ...

    def open_stream(self, address: Address, requester: Actor) -> Stream:
        """Begin to show a turn at the address. ``requester``: the person to whom the turn is the answer."""

    async def show_team(self, address: Address, ref: str, team: TeamStatus) -> str:
        """Show the team of the conversation there, and return a reference to the message (≤ 255 characters).

        ``ref`` is the message that shows the team so far, empty at first. Raises CopyGone if it is gone.
        """

    async def changed(self) -> None:
        """Note that a proposal changed, so that the platform's lists of proposals are redrawn.

        Returns fast and never raises: the redrawing happens later, for many changes together.
        """

    async def standing(self, actor: Actor, address: Address) -> Membership | None:
        """Ask the platform for a person's membership where a conversation is; None if they have left.

        Raises ChannelError if the platform can't say now, NotDeliverable if it never will.
        """
        raise NotDeliverable(f"{actor.channel.capitalize()} can't say who is still in {address.key}.")


@dataclass(frozen=True, slots=True)
class Hearing:
    """The health of a channel's incoming side."""

    ago: float | None = None  # seconds since the platform last sent anything; None if it never has
    fault: str = ""  # the reason why nothing arrives, in a few words; empty while all is well


class Poster(Channel, ABC):
    """A channel to which Nod posts: messages, cards and files stay there as copies."""

    def hearing(self) -> Hearing:
        """Return the health of the incoming side, without a request."""
        return Hearing(0.0)

    async def has_account(self, actor: Actor) -> bool:
        """Tell whether the platform knows an account. Raises ChannelError if it can't say."""
        return await self.standing(actor, Address(actor.channel, actor.key)) is not None

    async def check_place(self, address: Address) -> None:
        """Check that Nod can post at the address, and leave nothing visible. Raises ChannelError."""

    def find_place_around(self, address: Address) -> Address | None:  # noqa: ARG002
        """Return the place around one that takes no posts, with the same readers: the group of a topic.

        None if there is no such place.
        """
        return None

    async def look_up(self, group: str) -> UserGroup:
        """Ask the platform who is in a group of people, such as ``slack:T1/S2``. Raises ChannelError.

        A group that no longer exists has no members.
        """
        raise NotDeliverable(f"This platform has no groups that Nod can ask for: {group}.")

    async def is_shared(self, address: Address) -> bool:  # noqa: ARG002
        """Ask the platform whether people of another company read the place, too. Raises ChannelError."""
        return False

    async def time_zone(self, actor: Actor, address: Address) -> tzinfo | None:  # noqa: ARG002
        """Return the time zone of a person's account; None if the platform does not tell it."""
        return None

    @abstractmethod
    async def post(self, address: Address, markdown: str, after: int = 0) -> None:
        """Post CommonMark text, split into posts as the platform needs, without the first ``after`` posts.

        A ChannelError says how many posts of the text have arrived in all. The address may be a person's own:
        the channel and key of an `Actor`.
        """

    async def post_offers(self, address: Address, markdown: str, offers: Sequence[CommandOffer]) -> None:
        """Post a text, CommonMark, and below it a line for each command, with a button that sends it.

        On a platform without buttons the line says what to type.
        """
        lines = [
            f"{number}. {offer.description} `/nod {offer.text}`" for number, offer in enumerate(offers, 1)
        ]
        await self.post(address, "\n".join([markdown, "", *lines]))

    async def post_link(self, address: Address, markdown: str, link: LinkButton) -> None:
        """Post a short text with a button that opens a page; with a link if there are no such buttons."""
        await self.post(address, f"{link.markdown}\n{markdown}")

    @abstractmethod
    async def post_card(self, address: Address, card: Card) -> str:
        """Post a card and return the platform's reference to the copy (≤ 255 characters)."""

    @abstractmethod
    async def redraw_card(self, address: Address, ref: str, card: Card) -> None:
        """Make the copy show ``card``. Raises CopyGone if the copy can't be edited any longer."""

    @abstractmethod
    async def remind(self, address: Address, ref: str, markdown: str, people: Sequence[Actor]) -> None:
        """Post CommonMark text about a posted card, in reply to the card or with a link to it.

        ``people`` are mentioned, so that the platform notifies them; people of another channel are left out.
        Raises CopyGone if the card is gone.
        """

    async def fetch_file(self, address: Address, ref: str, most: int) -> bytes:  # noqa: ARG002
        """Return the bytes of a file that someone attached at the address; ``ref`` is its `Upload.ref`.

        At most ``most`` + 1 bytes are returned: one more than ``most`` tells that the file is larger. The
        file is fetched from the platform's own servers only. Raises ChannelError.
        """
        raise NotDeliverable("files of this platform can't be fetched")

    @abstractmethod
    async def post_file(self, address: Address, name: str, content: str | bytes) -> None:
        """Post a text, or bytes, as a file. Raises NotDeliverable if files can never be posted there."""


def check_silence(last_heard: float | None, now: float, *, may_be_silent: bool) -> Hearing:
    """Return the health of a channel by the time of the platform's last sign of life, in seconds.

    ``may_be_silent``: the platform calls only when there is something to tell.
    """
    ago = None if last_heard is None else max(0.0, now - last_heard)
    if may_be_silent:
        return Hearing(ago)
    if ago is None:
        return Hearing(ago, "it isn't connected")
    if ago > SILENT_SECONDS:
        return Hearing(ago, f"nothing heard for {ago:.0f} s")
    return Hearing(ago)


def poster_at(channels: Mapping[str, Channel], address: Address) -> Poster | None:
    """Return the channel that posts at the address; None where nothing is posted, as in the web."""
    channel = channels.get(address.channel)
    if isinstance(channel, Poster):
        return channel
    return None


async def look_up(channels: Mapping[str, Channel], group: str, linked: Collection[str]) -> UserGroup:
    """Return a group of people with its members, as its platform names them. Raises ChannelError.

    ``linked``: the accounts that people have linked with their accounts on other platforms, from which they
    may press as well. A linked account in the group counts only if the platform says that it belongs to a
    member, not to a guest or to someone who has left.
    """
    address = Address.parse(group)
    poster = poster_at(channels, address)
    if poster is None:
        raise ChannelError(f"Nod is not connected to {address.channel} here.")
    user_group = await poster.look_up(group)
    actors = [Actor.parse(account) for account in sorted(user_group.members.intersection(linked))]
    answers = await asyncio.gather(*(_is_member(poster, actor, address) for actor in actors))
    not_members = {str(actor) for actor, is_member in zip(actors, answers, strict=True) if not is_member}
    return replace(user_group, members=user_group.members - not_members)


async def _is_member(channel: Channel, actor: Actor, address: Address) -> bool:
    try:
        return await channel.standing(actor, address) is Membership.MEMBER
    except NotDeliverable:  # the platform never tells memberships, so being in the group is enough
        return True


AskMembership = Callable[[Actor, Address], Awaitable[Membership | None]]
"""Asks for a person's membership in a chat, None if they have left. Raises ChannelError."""


async def ask_membership(
    channels: Mapping[str, Channel], actor: Actor, address: Address
) -> Membership | None:
    """Return a person's membership in the conversation at an address, as `Channel.standing` does.

    The person at this machine's shell is a member. Raises ChannelError also where the channel of the person's
    account is not connected.
    """
    if actor.channel == SHELL:
        return Membership.MEMBER
    channel = channels.get(actor.channel)
    if channel is None:
        raise ChannelError(f"Nod is not connected to {actor.channel} here.")
    return await channel.standing(actor, address)


async def has_account(channels: Mapping[str, Channel], actor: Actor) -> bool:
    """Tell if an account of any channel exists, as `Poster.has_account` does for one channel."""
    if actor.channel == SHELL:
        return True
    private_chat = Address(actor.channel, actor.key)
    poster = poster_at(channels, private_chat)
    if poster is not None:
        return await poster.has_account(actor)
    return await ask_membership(channels, actor, private_chat) is not None


IsShared = Callable[[Address], Awaitable[bool]]
"""Asks if people of another company read a chat, too. Raises ChannelError if its platform can't say."""


async def is_shared(channels: Mapping[str, Channel], address: Address) -> bool:
    """Tell whether people of another company read a chat, too.

    Raises ChannelError if its platform can't say now.
    """
    channel = channels.get(address.channel)
    if channel is None:
        raise ChannelError(f"Nod is not connected to {address.channel} here.")
    return isinstance(channel, Poster) and await channel.is_shared(address)


async def time_zone(channels: Mapping[str, Channel], actor: Actor, address: Address) -> tzinfo | None:
    """Return the time zone of an account, or None where its platform does not tell it."""
    poster = poster_at(channels, address)
    if poster is None or actor.channel != address.channel:
        return None
    return await poster.time_zone(actor, address)


async def fetch_file(channels: Mapping[str, Channel], address: Address, ref: str, most: int) -> bytes:
    """Return the bytes of a file that someone attached at an address, as in `Poster.fetch_file`."""
    poster = poster_at(channels, address)
    if poster is None:
        raise ChannelError("it did not arrive")
    return await poster.fetch_file(address, ref, most)


def posters(channels: Mapping[str, Channel]) -> Mapping[str, Poster]:
    """Return the channels to which Nod posts, by name."""
    return {name: channel for name, channel in channels.items() if isinstance(channel, Poster)}
