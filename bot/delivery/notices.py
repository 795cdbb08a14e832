"""What Nod says by itself: to admins, to approvers, about a card that waits."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlmodel import Session

from bot.channels.seam import Channel, poster_at
from bot.domain.chat import Address
from bot.domain.people import Actor, Role
from bot.domain.proposals import Proposal
from bot.domain.text import as_written
from bot.errors import ChannelError, CopyGone
from bot.logs import logger
from bot.store import copies, names
from bot.store.database import Database
from bot.store.rules import Policies

log = logger(__name__)


class Notices:
    """Posts texts of Nod's own. What cannot arrive is in the log."""

    def __init__(
        self,
        channels: Mapping[str, Channel],
        database: Database,
        policies: Policies,
        routes: Sequence[Address] = (),
    ) -> None:
        self._channels = channels
        self._database = database
        self._policies = policies
        self._routes = routes

    async def tell_admins(self, text: str) -> None:
        """Post a text of Nod's own to each admin."""
        policy = await self._database.read(self._policies.load)
        for admin in sorted(policy.holders(Role.ADMIN)):
            await self.say(Address.parse(admin), text)

    async def tell_approvers(self, text: str) -> None:
        """Post a text of Nod's own in the approvers' chats, where the settings name some."""
        for address in self._routes:
            await self.say(address, text)

    async def say(self, address: Address, text: str) -> None:
        """Post a text of Nod's own; what cannot arrive is in the log."""
        poster = poster_at(self._channels, address)
        if poster is None:
            return
        try:
            await poster.post(address, text)
        except ChannelError as error:
            log.error("notice not delivered", address=str(address), why=error.message)

    async def nudge(self, proposal: Proposal, text: str) -> None:
        """Say a line about a proposal once in each place where its card is, in reply to the card."""
        text = as_written(text)
        there = await self._database.read(copies.of_proposal, proposal.id)
        people = await self._database.read(_deciders, proposal)
        for address, copy in {copy.address: copy for copy in there}.items():
            poster = poster_at(self._channels, address)
            if poster is None:
                continue
            try:
                await poster.remind(address, copy.ref, text, people)
            except CopyGone:
                await self.say(address, text)
            except ChannelError as error:
                log.error("reminder not delivered", address=str(address), why=error.message)


def _deciders(session: Session, proposal: Proposal) -> list[Actor]:
    """Those who may decide by name, with what they are called."""
    found = proposal.deciders.named(proposal.requester)
    named = names.known(session, map(str, found))
    return [replace(each, name=each.name or named.get(str(each), "")) for each in found]
