"""Texts about missing connections: a section of the model's prompt, and offers to connect an account.

A connection is an account at another server, which a person or a chat has. The section lists the servers at
which the person who asks, or the chat, has none. It also lists the servers at which the chat's account
*rests*: it is not used for a while (`resting.py`). The section never names the tools that other people have
at a server. The offers are for a person's home, the page about Nod that some platforms show to each person.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import Enum

from sqlmodel import Session

from bot.domain.connections import ConnectionOwner, Identity
from bot.domain.conversations import Transcript
from bot.domain.hooks import CommandOffer
from bot.domain.people import Actor
from bot.features.connections.port import AccountConnections
from bot.store import people

_MISSING_TEXT = """
Who asks has connected no account at: {servers}. Its tools are not there for them. Where they need them, the
tool `connect` sends them a link.
"""
_MISSING_OF_CHAT_TEXT = """
No account is connected for this chat at: {servers}. An admin connects one here: /nod connections connect NAME
"""
_RESTING_TEXT = """
The account of this chat at {servers} rests now: people of another company read along here, or the admin who
connected it is no longer one. Its tools are not there. Say so where they are needed. An admin finds
the reason with `/nod connections`.
"""
_MAX_OFFERS = 5


class _Case(Enum):
    """A reason why a connection can't be used. Its value is the text about it; the section has this order."""

    MISSING = _MISSING_TEXT
    MISSING_OF_CHAT = _MISSING_OF_CHAT_TEXT
    RESTING = _RESTING_TEXT


class MissingConnections:
    """The servers at which a person or a chat has no usable connection, as a section and as offers.

    Implements the hooks `AddToPrompt` (`write_section`) and `OfferCommands`.
    """

    def __init__(self, port: AccountConnections) -> None:
        self._port = port

    async def write_section(self, transcript: Transcript, now: datetime) -> str:  # noqa: ARG002 - a hook
        """Return the section; empty if no connection is missing."""
        servers_by_case = await self._port.database.read(self._find_missing, transcript)
        return "".join(
            case.value.format(servers=", ".join(servers_by_case[case]))
            for case in _Case
            if case in servers_by_case
        )

    def offer_commands(self, session: Session, actor: Actor) -> Sequence[CommandOffer]:
        """Return offers to connect an account, for the first few servers at which the person has none."""
        person = people.load_person(session, actor)
        if person.is_outsider:
            return ()
        requester = ConnectionOwner(person.accounts, place=str(actor))
        offers = []
        for name, config in sorted(self._port.servers.items()):
            if config.identity is not Identity.PERSON:
                continue  # an admin connects these accounts, each in its chat
            connection = self._port.find(session, name, config.identity, requester)
            if connection is None or connection.is_expired:
                text = f"You have no account connected at {name}. With one, Nod acts as you there."
                offers.append(CommandOffer(text, f"Connect {name}", f"connections connect {name}"))
        return offers[:_MAX_OFFERS]

    def _find_missing(self, session: Session, transcript: Transcript) -> dict[_Case, list[str]]:
        """Return the names of the servers without a usable connection, by the reason."""
        person = people.load_person(session, transcript.asker)
        if person.is_outsider:
            return {}
        requester = ConnectionOwner(person.accounts, place=str(transcript.conversation.origin))
        servers_by_case: dict[_Case, list[str]] = {}
        for name, config in sorted(self._port.servers.items()):
            connection = self._port.find(session, name, config.identity, requester)
            if connection is not None and connection.is_resting:
                servers_by_case.setdefault(_Case.RESTING, []).append(name)
            elif connection is None or connection.is_expired:
                is_personal = config.identity is Identity.PERSON
                case = _Case.MISSING if is_personal else _Case.MISSING_OF_CHAT
                servers_by_case.setdefault(case, []).append(name)
        return servers_by_case
