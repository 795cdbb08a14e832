"""The part of mutes in the notification of people: people who muted a kind of card are left out."""

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
from bot.features.mutes.rows import HOURS, MAX_MUTES, WEEK, Mutes

_URGENT_TEXT = "This is urgent: what can't be undone or was escalated is never muted."
_TOO_MANY_TEXT = f"You mute {MAX_MUTES} kinds already. End one first: /nod mutes."


@dataclass(frozen=True, slots=True)
class MutedKinds:
    """The list of people who muted a kind of card, and the press that mutes a kind."""

    mutes: Mutes
    clock: Clock

    def list_quiet(self, session: Session, proposal: Proposal, notified: Collection[str]) -> Collection[str]:
        """Return the accounts to be notified that muted this kind; none for an urgent proposal."""
        now = self.clock()
        muted = [
            each
            for each in self.mutes.load_mutes(session)
            if each.tool_name == proposal.tool_name and each.until > now
        ]
        if not muted or not may_be_muted(session, proposal):
            return ()
        accounts = frozenset[str]().union(*(rows.person_of(session, each).accounts for each in muted))
        return accounts.intersection(notified)

    def take_press(
        self, session: Session, proposal: Proposal, press: Press, person: Person, now: datetime
    ) -> str:
        """Mute the kind of a card for the person who pressed; after a second press for a week."""
        if press.verb is not Verb.MUTE:
            return ""
        if not may_be_muted(session, proposal):
            return _URGENT_TEXT
        tool_name = proposal.tool_name
        before = rows.find_mute(session, person, tool_name, now)
        length = WEEK if before else HOURS
        if not rows.set_mute(session, press.actor, person, tool_name, now + length, now):
            return _TOO_MANY_TEXT
        said = f"You are not told of {tool_name} for {format_span(length)}."
        more = "Press again for a week. " if not before else ""
        return f"{said} You may still decide. {more}/nod mutes ends it."


def may_be_muted(session: Session, proposal: Proposal) -> bool:
    """Return whether people may mute this kind: the proposal is a tool's call, and not urgent."""
    return proposal.kind.runs and not proposal.own and not is_urgent(session, proposal)
