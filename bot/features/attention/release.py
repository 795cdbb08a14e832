"""The sweep that releases cards which the watcher of deliveries held back from people (`watcher.py`).

A card shows people a proposal, or a batch of several, for their decision. By a rule of attention only so many
cards an hour reach a person. This sweep tells them of the other cards later, in one table for each person,
whose buttons open the cards. Then the release is recorded in each card's history, and the card loses its hold
line, which announced when the people would be told.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlmodel import Session

from bot.approvals import rights
from bot.approvals.lifecycle import request_redraw
from bot.domain.audit import Act
from bot.domain.batch_groups import group_by_card
from bot.domain.chat import Address
from bot.domain.hooks import CommandOffer
from bot.domain.jobs import Job, Wake
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text
from bot.domain.rule_values import Subject
from bot.domain.text import escape_markdown, one_line, shorten
from bot.domain.times import format_span
from bot.features.attention import rows
from bot.features.attention.watcher import without_hold_line
from bot.store import notices, people, proposals, transitions
from bot.store.audit.log import Author
from bot.store.database import Database
from bot.store.hooks import hooks_of
from bot.store.locks import conversation_lock
from bot.store.rules import Policies

RELEASE_SWEEP_SECONDS = 5
"""The time between two runs of the sweep."""
_AT_A_TIME = 20  # the most accounts to tell, and cards to record, in one run
_MAX_ROWS = 20  # the most rows of a table, each with a button
_MAX_TITLE_CHARS = 120
_PURGE_EVERY = timedelta(minutes=10)  # the time between two deletions of old rows


@dataclass(eq=False)
class ReleaseSweep:
    """The sweep that releases due cards, person by person, and records each release on its card."""

    database: Database
    policies: Policies
    wake: Wake
    # False once the rows show that no card is held, and no release has to be recorded
    _may_have_work: bool = field(default=True, init=False)
    _purged_at: datetime | None = field(default=None, init=False)

    async def run(self, now: datetime) -> None:
        """Release the due cards. Without a rule of attention and without held cards, nothing is read."""
        has_rules = bool(self.policies.latest_policy.rulebook.list_about(Subject.ATTENTION))
        if not has_rules and not self._may_have_work:
            return
        for account in await self.database.read(rows.list_due_accounts, now, _AT_A_TIME):
            await self.database.write(_release, self.policies, account, now)
        for card_id in await self.database.read(rows.list_unrecorded, _AT_A_TIME):
            jobs = await self.database.write(_record_release, card_id, now)
            await self.wake(*jobs)
        # the absolute difference, as the clock may have been set back
        if self._purged_at is None or abs(now - self._purged_at) >= _PURGE_EVERY:
            self._purged_at = now
            await self.database.write(rows.purge_old_rows, now)
        self._may_have_work = has_rules or await self.database.read(rows.has_unrecorded)


def _release(session: Session, policies: Policies, account: str, now: datetime) -> None:
    """Release an account's held cards, and send one table with those that the account may decide now.

    A person on a channel in which nothing can be posted is told by other watchers alone, such as push.
    """
    released = rows.release_all(session, account, now)
    person = Actor.parse(account)
    waiting = [
        proposal
        for proposal in released.proposals
        if rights.find_objection(session, policies, proposal, person) is None
    ]
    if not waiting:
        return
    for watcher in hooks_of(session).watch_delivery:
        if watcher.is_watching():
            watcher.tell_later(session, account, waiting, now)
    if person.channel in notices.CHANNELS_WITHOUT_CHATS:
        return
    cards = group_by_card(waiting)  # the proposals of each card
    text = _make_heading(session, account, len(cards))
    offers = [_make_row(card, now) for card in cards[:_MAX_ROWS]]
    # where the person has no private chat, the notice comes in a shared chat that has some of the cards
    instead = Address.parse(released.shared_chat) if released.shared_chat else None
    notices.store_notice(
        session, Address(person.channel, person.key), text, now, instead=instead, offers=offers
    )


def _make_heading(session: Session, account: str, card_count: int) -> str:
    """Return the text above a person's table, in Markdown."""
    if card_count == 1:
        sentence = "1 card waited for you, since many came within an hour."
    else:
        sentence = (
            f"{card_count} cards waited for you, since many came within an hour. Each is decided by itself."
        )
    name = people.find_known_names(session, [account]).get(account, "")
    text = escape_markdown(f"{name}, {sentence}" if name else sentence)
    if card_count > _MAX_ROWS:
        text += f" The first {_MAX_ROWS} are below. `/approvals list` has all."
    return text


def _make_row(card: Sequence[Proposal], now: datetime) -> CommandOffer:
    """Return a row of the table: the card, who asked, the time that is left, and the button that opens it."""
    first = card[0]
    others = f" and {len(card) - 1} more of its batch" if len(card) > 1 else ""
    title = shorten(one_line(redact_text(first.description)), _MAX_TITLE_CHARS)
    asker = one_line(first.agent or first.requester.label)
    time_left = format_span(first.expires_at - now)
    about = f"{title}{others}, asked by {asker}, {time_left} left"
    return CommandOffer(about, "Open", f"open {first.card_id}")


def _record_release(session: Session, card_id: str, now: datetime) -> tuple[Job, ...]:
    """Record in a card's history that people are told now, and remove the hold line.

    Nothing is recorded for a decided card, or while the card is still held back from others.
    """
    conversation_lock.lock_conversation_of(session, card_id)
    if not rows.mark_recorded(session, card_id):
        return ()
    proposal = proposals.get(session, card_id)  # a card has the id of its first proposal
    if proposal is None or proposal.state is not State.PROPOSED:
        return ()
    if any(row.released_at is None for row in rows.find_held(session, card_id).values()):
        return ()  # the hold line still applies to the others
    author = Author.of_nod(Act.RELEASE, "told together with others")
    changed = transitions.change_proposal(
        session, proposal, author, now, annotations=without_hold_line(proposal)
    )
    return () if changed is None else (request_redraw(session, changed),)
