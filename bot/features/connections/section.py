"""The section of the prompt that lists the servers at which the person who asks has no connection."""

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session

from bot.domain.connections import Identity, Whose
from bot.domain.conversations import Transcript
from bot.domain.hooks import CommandOffer
from bot.domain.people import Actor
from bot.features.connections.port import AccountConnections
from bot.store import people

_MISSING = """
Who asks has connected no account at: {servers}. Its tools are not there for them. Where they need them, the
tool `connect` sends them a link.
"""
_NO_PLACE = """
No account is connected for this chat at: {servers}. An admin connects one here: /nod connections connect NAME
"""
_RESTS = """
The account of this chat at {servers} rests now: people of another company read along here, or the admin who
connected it is no longer one. Its tools are not there. Say so where they are needed. An admin finds
the reason with `/nod connections`.
"""
_MOST_OFFERED = 5
_TEXTS = (_MISSING, _NO_PLACE, _RESTS)


class MissingSection:
    """The section. It names servers, and never the tools that other people have there."""

    def __init__(self, port: AccountConnections) -> None:
        self._port = port

    async def write(self, transcript: Transcript, now: datetime) -> str:  # noqa: ARG002 - a hook
        """Return the section; empty if no connection is missing."""
        missing = await self._port.database.read(self._find_missing, transcript)
        return "".join(text.format(servers=", ".join(missing[text])) for text in _TEXTS if missing.get(text))

    def offer_commands(self, session: Session, actor: Actor) -> Sequence[CommandOffer]:
        """Return the offers to connect an account, for each server at which the person has none."""
        person = people.person_of(session, actor)
        if person.outside:
            return ()
        whose = Whose(frozenset(person.accounts | {str(actor)}), str(actor))
        offers = []
        for name, config in sorted(self._port.servers.items()):
            found = self._port.find(session, name, config.identity, whose)
            if config.identity is Identity.PERSON and (found is None or found.is_expired):
                about = f"You have no account connected at {name}. With one, Nod acts as you there."
                offers.append(CommandOffer(about, f"Connect {name}", f"connections connect {name}"))
        return offers[:_MOST_OFFERED]

    def _find_missing(self, session: Session, transcript: Transcript) -> dict[str, list[str]]:
        """Return the servers to list, by the text of the section that introduces them."""
        person = people.person_of(session, transcript.asker)
        if person.outside:
            return {}
        accounts = frozenset(person.accounts | {str(transcript.asker)})
        whose = Whose(accounts, str(transcript.conversation.origin))
        missing: dict[str, list[str]] = {}
        for name, config in sorted(self._port.servers.items()):
            found = self._port.find(session, name, config.identity, whose)
            if found is not None and found.is_resting:
                missing.setdefault(_RESTS, []).append(name)
            elif found is None or found.is_expired:
                text = _MISSING if config.identity is Identity.PERSON else _NO_PLACE
                missing.setdefault(text, []).append(name)
        return missing
