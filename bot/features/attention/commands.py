"""``/nod open ID``: the card of a proposal comes to the private chat of the person who sends the command.

The buttons of the table with cards that were held back (`release.py`) send this command.
"""

from sqlmodel import Session

from bot.approvals.commands.decide import find_visible
from bot.approvals.commands.subcommands import CommandParts, Subcommand
from bot.domain.chat import Address, Command
from bot.domain.outcomes import describe_too_late
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.store import notices, posted_cards

_HERE_TEXT = "Here is the card."
_IN_CONSOLE_TEXT = "It is in the console, among what waits for you."
_FOLLOWS_TEXT = "The card follows in your private chat with me."


class OpenCommand:
    """The command, which posts a card as a notice to one person."""

    def __init__(self, parts: CommandParts) -> None:
        self._database, self._policies, self._clock = parts.database, parts.policies, parts.clock
        self._groups = parts.groups
        self.words = [
            Subcommand("open ID", "get a card into your private chat", self._open, is_private=True),
        ]

    async def _open(self, command: Command, prefix: str) -> str:
        proposal = await find_visible(self._groups, self._policies, command.actor, prefix)
        if proposal.state is not State.PROPOSED:
            return f"{proposal.description}: {describe_too_late(proposal, self._clock())}"
        if command.actor.channel in notices.CHANNELS_WITHOUT_CHATS:
            return _IN_CONSOLE_TEXT
        await self._database.write(self._post, proposal, command)
        return _FOLLOWS_TEXT

    def _post(self, session: Session, proposal: Proposal, command: Command) -> None:
        """Have the card posted in the person's private chat; if it is there already, point to it."""
        private_chat = Address(command.actor.channel, command.actor.key)
        copies = posted_cards.list_copies(session, proposal.card_id)
        is_there = any(copy.address == private_chat and not copy.gone for copy in copies)
        text = _HERE_TEXT if is_there else ""
        notices.store_notice(session, private_chat, text, self._clock(), proposal.card_id)
