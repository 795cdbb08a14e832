"""The watcher of deliveries that counts a person's cards, and holds further cards back for a while.

A card shows people a proposal, or a batch of several, for their decision. A rule of attention says how many
cards an hour reach a person. When a card is delivered, or notifies people again, the kernel asks the watcher
about the people whom the card would notify. People who have reached their limit are told later, by the sweep
in `release.py`, and the card gets a hold line, which says when. An urgent card is never held back.

A hold is stored as a row for each account and card (`HeldRow`). The card's id is that of its only proposal,
or of the first proposal of its batch; the rows call it ``proposal_id``.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlmodel import Session

from bot.channels.delivery.audience import is_urgent
from bot.domain.annotations import Annotation, bound_annotations
from bot.domain.audit import Act
from bot.domain.people import Actor, Person
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.rule_values import Subject
from bot.domain.text import name_some
from bot.features.attention import rows
from bot.features.attention.tables import HeldRow
from bot.store import conversations, people, proposals, transitions
from bot.store.audit.log import Author
from bot.store.locks import conversation_lock
from bot.store.rules import Policies

LINE_NAME = "Attention"
"""The name of a card's hold line, which names the people who are told later."""
_OLDEST_NEVER_HELD = 2  # the number of an asker's oldest open cards that are never held back
_SHORTEST_HOLD = timedelta(minutes=1)
_MAX_NAMED = 3  # the most people that a hold line names
_HALF_HOUR_MINUTES = 30


@dataclass(frozen=True, slots=True)
class AttentionWatcher:
    """The implementation of `WatchDelivery` that holds back cards over the limit of a rule of attention.

    Before the kernel posts a card, `hold_back` gets the accounts that the card would notify, and returns
    those that are told later. `tell_people` then gets those that are notified now.
    """

    policies: Policies

    def is_watching(self) -> bool:
        """Return whether there is a rule of attention."""
        return bool(self.policies.latest_policy.rulebook.list_about(Subject.ATTENTION))

    def list_reached(
        self, _session: Session, _proposal: Proposal, _deciders: Collection[str]
    ) -> Collection[str]:
        """Return no accounts: this watcher notifies no one by itself when a card is delivered."""
        return ()

    def hold_back(
        self, session: Session, proposal: Proposal, notified: Collection[str], now: datetime
    ) -> Collection[str]:
        """Hold the card back from the people who have reached their limit of cards in the last hour.

        Return the accounts from which the card is held back now, also by earlier calls. A card that is held
        back from an account is held back from all accounts of its person. No hold is added for a card that
        may not wait (`_may_wait`), or that would be held for less than a minute. A card is never held back
        from a person whom it has reached, or again from an account whose hold has ended.
        """
        # the holds of earlier calls
        rows_by_account = rows.find_held(session, proposal.card_id)
        ends_by_account = {
            account: row.until for account, row in rows_by_account.items() if row.released_at is None
        }
        already_held = set(ends_by_account)
        if already_held:
            already_held |= {
                account for account in notified if _find_person(session, account).accounts & already_held
            }

        # the accounts at their limit that this card has not reached, and for which it has no hold yet
        newly_held = {
            account
            for account in self._list_at_limit(session, notified, now)
            if account not in rows_by_account and not _has_reached(session, account, proposal)
        } - already_held

        # no hold is added if the card may not wait, would be held too short a time, or was just decided
        if not newly_held or not self._may_wait(session, proposal):
            return already_held
        until = find_release_time(now, proposal.expires_at)
        if until - now < _SHORTEST_HOLD:
            return already_held
        conversation_lock.lock_conversation_of(session, proposal.id)
        current = proposals.get(session, proposal.id)
        if current is None or current.state is not State.PROPOSED:
            return already_held

        # the new holds, and the line on the card with the ends of all
        place = find_shared_place(session, proposal)
        for account in sorted(newly_held):
            row = HeldRow(
                account=account, proposal_id=proposal.card_id, place=place, held_at=now, until=until
            )
            rows.store_held(session, row)
        ends_by_account |= dict.fromkeys(newly_held, until)
        self._add_hold_line(session, current, ends_by_account, now)
        return already_held | newly_held

    def tell_people(
        self, session: Session, proposal: Proposal, notified: Collection[str], now: datetime
    ) -> None:
        """Count the card as one that reached those of these accounts whose person has a limit.

        An escalated card is urgent: its holds end now, so that the sweep tells everyone of it.
        """
        limits = self._find_limits(session, notified)
        limited = [account for account, limit in limits.items() if limit is not None]
        rows.note_reached(session, limited, proposal.card_id, now)
        if proposal.is_escalated:
            rows.end_hold(session, proposal.card_id, now)

    def tell_later(
        self, _session: Session, _account: str, _waiting: Sequence[Proposal], _now: datetime
    ) -> None:
        """Do nothing: `release.py` has told the person already."""

    def _find_limits(self, session: Session, accounts: Collection[str]) -> Mapping[str, int | None]:
        """Return each account's limit of cards an hour, which counts for its person; None: no limit."""
        return {account: self._find_limit(session, _find_person(session, account)) for account in accounts}

    def _find_limit(self, session: Session, person: Person) -> int | None:
        """Return the limit that a rule sets for a person, or for a group of theirs."""
        policy = self.policies.load(session)
        return policy.rulebook.attention({*person.accounts, *policy.groups_of(person)})

    def _list_at_limit(self, session: Session, accounts: Collection[str], now: datetime) -> Collection[str]:
        """Return those of these accounts whose person has reached the limit of cards in the last hour."""
        at_limit = []
        for account, limit in self._find_limits(session, accounts).items():
            person = _find_person(session, account)
            if limit is not None and rows.count_reached(session, person.accounts, now) >= limit:
                at_limit.append(account)
        return at_limit

    def _may_wait(self, session: Session, proposal: Proposal) -> bool:
        """Return whether a card may be held back.

        An urgent card may not, nor one that its requester decides alone (``requester_decides_alone``), nor
        the `_OLDEST_NEVER_HELD` oldest open cards of its asker.
        """
        if is_urgent(session, proposal) or proposal.requester_decides_alone:
            return False
        asker = people.load_person(session, proposal.requester)
        return rows.has_earlier_open(session, proposal, asker.accounts, _OLDEST_NEVER_HELD)

    def _add_hold_line(
        self, session: Session, proposal: Proposal, ends_by_account: Mapping[str, datetime], now: datetime
    ) -> None:
        """Store the hold line in place of an earlier hold line, guarded by the proposal's version.

        ``ends_by_account``: the end of each account's hold, when the account is told.
        """
        zone = self.policies.load(session).rulebook.zone
        accounts_by_time: dict[str, list[str]] = {}
        for account, until in sorted(ends_by_account.items(), key=lambda item: (item[1], item[0])):
            accounts_by_time.setdefault(f"{until.astimezone(zone):%H:%M}", []).append(account)
        sentences = [
            f"{_name_people(session, accounts)} will be told at {time_text}."
            for time_text, accounts in accounts_by_time.items()
        ]
        text = " ".join([*sentences, "Many cards came within an hour."])
        lines = bound_annotations([Annotation(LINE_NAME, text)], late=True)
        author = Author.of_nod(Act.HOLD, text)
        transitions.change_proposal(
            session, proposal, author, now, annotations=(*without_hold_line(proposal), *lines)
        )


def without_hold_line(proposal: Proposal) -> tuple[Annotation, ...]:
    """Return the lines that features added to a card, without the hold line."""
    return tuple(line for line in proposal.annotations if not (line.is_late and line.name == LINE_NAME))


def find_release_time(now: datetime, expires_at: datetime) -> datetime:
    """Return when a card that is held now is released.

    That is the next full or half hour (10:10 gives 10:30, and 10:30 gives 11:00), or half-way to the card's
    expiry if this is earlier.
    """
    start = now.astimezone(UTC)
    full_minute = start.replace(second=0, microsecond=0)
    next_half_hour = full_minute + timedelta(minutes=_HALF_HOUR_MINUTES - start.minute % _HALF_HOUR_MINUTES)
    half_way = start + (expires_at.astimezone(UTC) - start) / 2
    return min(next_half_hour, half_way)


def find_shared_place(session: Session, proposal: Proposal) -> str:
    """Return the address of a request's chat if several people read it.

    Returns an empty text for a private chat, and for the request of an agent.
    """
    conversation = conversations.get_conversation(session, proposal.conversation_id)
    if conversation is None or conversation.private or proposal.agent:
        return ""
    return str(conversation.origin)


def _find_person(session: Session, account: str) -> Person:
    return people.load_person(session, Actor.parse(account))


def _has_reached(session: Session, account: str, proposal: Proposal) -> bool:
    return rows.has_reached(session, _find_person(session, account).accounts, proposal.card_id)


def _name_people(session: Session, accounts: Collection[str]) -> str:
    """Return the names of the people with these accounts, or their number if not all names are known."""
    names = people.find_known_names(session, sorted(accounts))
    name_by_person: dict[str, str] = {}
    for account in sorted(accounts):
        person_id = _find_person(session, account).id
        name_by_person[person_id] = name_by_person.get(person_id) or names.get(account, "")
    if all(name_by_person.values()):
        return name_some(list(dict.fromkeys(name_by_person.values())), _MAX_NAMED)
    return "1 person" if len(name_by_person) == 1 else f"{len(name_by_person)} people"
