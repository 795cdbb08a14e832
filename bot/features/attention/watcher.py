"""The part of attention in the delivery of cards: it counts a person's cards, and holds back the rest."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlmodel import Session

from bot.channels.delivery.audience import is_urgent
from bot.domain.annotations import Annotation, bound_annotations
from bot.domain.people import Actor, Person
from bot.domain.proposals import Proposal, State
from bot.domain.record import Act
from bot.domain.rules import Subject
from bot.domain.text import name_some
from bot.features.attention import rows
from bot.features.attention.tables import HeldRow
from bot.store import conversations, people, proposals, transitions
from bot.store.audit.log import By
from bot.store.locks import conversation_lock
from bot.store.rules import Policies

LINE_NAME = "Attention"
"""The name of a card's line about the people who are told later."""
_ALWAYS_TOLD = 2  # the open cards of one asker that are never held back
_SHORTEST = timedelta(minutes=1)  # a card is not held back for a shorter time
_NAMED = 3  # the most people that a card names


@dataclass(frozen=True, slots=True)
class AttentionWatcher:
    """The watcher that counts the cards of people whom a rule names, and holds back cards over the limit."""

    policies: Policies

    def is_watching(self) -> bool:
        return bool(self.policies.held.book.list_about(Subject.ATTENTION))

    def list_reached(self, _: Session, __: Proposal, ___: Collection[str]) -> Collection[str]:
        return ()

    def hold_back(
        self, session: Session, proposal: Proposal, notified: Collection[str], now: datetime
    ) -> Collection[str]:
        """Hold the card back from people who got enough cards in the last hour, unless it is urgent.

        A card that has reached a person is no longer held back from them. One that is held back from an
        account is held back from all accounts of its person.
        """
        known = rows.find_held(session, proposal.card_id)
        held = {account for account, row in known.items() if row.released_at is None}
        if held:
            held |= {each for each in notified if self._person(session, each).accounts & held}
        new = {
            account
            for account in self._list_full(session, notified, now)
            if account not in known and not self._has_reached(session, account, proposal)
        } - held
        if not new or not self._may_wait(session, proposal):
            return held
        until = find_release(now, proposal.expires_at)
        if until - now < _SHORTEST:
            return held
        conversation_lock.with_proposal(session, proposal.id)
        current = proposals.get(session, proposal.id)
        if current is None or current.state is not State.PROPOSED:
            return held
        place = find_shared_place(session, proposal)
        for account in sorted(new):
            row = HeldRow(
                account=account, proposal_id=proposal.card_id, place=place, held_at=now, until=until
            )
            rows.store_held(session, row)
        self._record_hold(session, current, held | new, until, now)
        return held | new

    def tell_people(
        self, session: Session, proposal: Proposal, notified: Collection[str], now: datetime
    ) -> None:
        """Note which people named by a rule the card reached. An escalated card is no longer held back."""
        ruled = [
            account for account, limit in self._find_limits(session, notified).items() if limit is not None
        ]
        rows.note_reached(session, ruled, proposal.card_id, now)
        if proposal.is_escalated:
            rows.end_hold(session, proposal.card_id, now)

    def tell_later(self, _: Session, __: str, ___: Sequence[Proposal], ____: datetime) -> None:
        pass

    def _find_limits(self, session: Session, accounts: Collection[str]) -> Mapping[str, int | None]:
        """Return each account's limit of cards an hour, which counts for its person; None: no limit."""
        return {account: self._find_limit(session, self._person(session, account)) for account in accounts}

    def _find_limit(self, session: Session, person: Person) -> int | None:
        policy = self.policies.load(session)
        return policy.book.attention({*person.accounts, *policy.groups_of(person)})

    def _person(self, session: Session, account: str) -> Person:
        return people.person_of(session, Actor.parse(account))

    def _list_full(self, session: Session, accounts: Collection[str], now: datetime) -> Collection[str]:
        """Return the accounts of people who reached their limit in the last hour."""
        full = []
        for account, limit in self._find_limits(session, accounts).items():
            person = self._person(session, account)
            if limit is not None and rows.count_reached(session, person.accounts, now) >= limit:
                full.append(account)
        return full

    def _has_reached(self, session: Session, account: str, proposal: Proposal) -> bool:
        return rows.has_reached(session, self._person(session, account).accounts, proposal.card_id)

    def _may_wait(self, session: Session, proposal: Proposal) -> bool:
        if is_urgent(session, proposal) or proposal.own:
            return False
        asker = people.person_of(session, proposal.requester)
        return rows.has_earlier_open(session, proposal, asker.accounts, _ALWAYS_TOLD)

    def _record_hold(
        self, session: Session, proposal: Proposal, held: Collection[str], until: datetime, now: datetime
    ) -> None:
        """Store the line about people who are told later, guarded by the card's version."""
        named = _name_people(people.find_known_names(session, sorted(held)), held)
        zone = self.policies.load(session).book.zone
        text = f"{named} will be told at {until.astimezone(zone):%H:%M}. Many cards came within an hour."
        lines = bound_annotations([Annotation(LINE_NAME, text)], late=True)
        by = By.nod(Act.HOLD, text)
        transitions.move(session, proposal, by, now, annotations=(*without_line(proposal), *lines))


def _name_people(names: Mapping[str, str], held: Collection[str]) -> str:
    """Return the names of people, or their number if not all names are known."""
    known = [names[account] for account in sorted(held) if names.get(account)]
    if len(known) == len(held):
        return name_some(list(dict.fromkeys(known)), _NAMED)
    return "1 person" if len(held) == 1 else f"{len(held)} people"


def without_line(proposal: Proposal) -> tuple[Annotation, ...]:
    """Return the lines of a card, without the line about people who are told later."""
    return tuple(each for each in proposal.annotations if not (each.is_late and each.name == LINE_NAME))


def find_release(now: datetime, expires_at: datetime) -> datetime:
    """Return when a card that is held now is released: at the next half hour, within half of its time."""
    here = now.astimezone(UTC)
    minutes = here.hour * 60 + here.minute
    whole = here.replace(minute=0, hour=0, second=0, microsecond=0)
    half_hour = whole + timedelta(minutes=minutes - minutes % 30 + 30)
    return min(half_hour, here + (expires_at.astimezone(UTC) - here) / 2)


def find_shared_place(session: Session, proposal: Proposal) -> str:
    """Return the chat of a request if several people read it; empty for a private chat."""
    conversation = conversations.get_conversation(session, proposal.conversation_id)
    if conversation is None or conversation.private or proposal.agent:
        return ""
    return str(conversation.origin)
