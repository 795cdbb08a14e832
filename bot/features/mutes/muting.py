"""The hooks of mutes: people who muted a tool's cards are not notified of them, and a button mutes a tool.

The kind of a card, which people mute, is the tool of its proposal. An urgent card is never muted: its call
can't be undone, or it was escalated.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from bot.channels.delivery.audience import is_urgent
from bot.domain.chat import Clock, Press
from bot.domain.people import Person
from bot.domain.proposals import Proposal
from bot.domain.times import format_span
from bot.domain.verbs import Verb
from bot.features.mutes import rows
from bot.features.mutes.rows import EIGHT_HOURS, MAX_MUTES, WEEK, Mutes

_URGENT_TEXT = "This is urgent: what can't be undone or was escalated is never muted."
_TOO_MANY_TEXT = f"You mute {MAX_MUTES} kinds already. End one first: /nod mutes."


@dataclass(frozen=True, slots=True)
class MutedKinds:
    """The implementation of `QuietAudience` (`list_quiet`) and `TakePress`."""

    mutes: Mutes
    clock: Clock

    def list_quiet(self, session: Session, proposal: Proposal, notified: Collection[str]) -> Collection[str]:
        """Return the members of ``notified`` that muted this kind of card; none if it can't be muted."""
        now = self.clock()
        mutes = [
            mute
            for mute in self.mutes.load_mutes(session)
            if mute.tool_name == proposal.tool_name and mute.until > now
        ]
        if not mutes or not may_be_muted(session, proposal):
            return ()
        muting_accounts: set[str] = set()
        for mute in mutes:
            muting_accounts |= rows.person_of(session, mute).accounts
        return muting_accounts.intersection(notified)

    def take_press(
        self, session: Session, proposal: Proposal, press: Press, person: Person, now: datetime
    ) -> str:
        """Mute the kind of a card for the person who pressed, and return the reply; '' for any other press.

        The first press mutes for `EIGHT_HOURS`, a second press while the kind is muted for a week.
        """
        if press.verb is not Verb.MUTE:
            return ""
        if not may_be_muted(session, proposal):
            return _URGENT_TEXT
        tool_name = proposal.tool_name
        is_muted = rows.find_mute(session, person, tool_name, now) is not None
        length = WEEK if is_muted else EIGHT_HOURS
        if not rows.set_mute(session, press.actor, person, tool_name, now + length, now):
            return _TOO_MANY_TEXT
        hint = "" if is_muted else "Press again for a week. "
        return (
            f"You are not told of {tool_name} for {format_span(length)}. You may still decide. "
            f"{hint}/nod mutes ends it."
        )


def may_be_muted(session: Session, proposal: Proposal) -> bool:
    """Return whether a proposal may be muted: its tool runs, others decide it, too, and it is not urgent.

    ``requester_decides_alone``: the requester decides the proposal alone.
    """
    return proposal.kind.runs and not proposal.requester_decides_alone and not is_urgent(session, proposal)
