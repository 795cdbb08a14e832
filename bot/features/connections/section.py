"""The line of the prompt that says at which servers the person who asks has no connection."""

from datetime import datetime

from sqlmodel import Session

from bot.domain.connections import Identity, Whose
from bot.domain.conversations import Transcript
from bot.features.connections.port import AccountConnections
from bot.store import people

_MISSING = """
Who asks has connected no account at: {servers}. Its tools are not there for them. Where they need them, the
tool `connect` sends them a link.
"""
_NO_PLACE = """
No account is connected for this chat at: {servers}. An admin connects one here: /nod connections connect NAME
"""


class MissingSection:
    """Names the servers, never what others could do there."""

    def __init__(self, port: AccountConnections) -> None:
        self._port = port

    async def write(self, transcript: Transcript, now: datetime) -> str:  # noqa: ARG002 - a hook
        """Return the section, or '' where nothing is missing."""
        missing = await self._port.database.read(self._find_missing, transcript)
        written = {Identity.PERSON: _MISSING, Identity.PLACE: _NO_PLACE}
        return "".join(
            text.format(servers=", ".join(missing[identity]))
            for identity, text in written.items()
            if missing.get(identity)
        )

    def _find_missing(self, session: Session, transcript: Transcript) -> dict[Identity, list[str]]:
        person = people.person_of(session, transcript.asker)
        if person.outside:
            return {}
        accounts = frozenset(person.accounts | {str(transcript.asker)})
        whose = Whose(accounts, str(transcript.conversation.origin))
        missing: dict[Identity, list[str]] = {}
        for name, config in sorted(self._port.servers.items()):
            found = self._port.find(session, name, config.identity, whose)
            if found is None or found.is_expired:
                missing.setdefault(config.identity, []).append(name)
        return missing
