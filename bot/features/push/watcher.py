"""The hooks that notice cards which devices are to show, and the requests of messages about these cards.

A message is requested in three cases: a card is delivered to people (`PushWatcher`), it asks people again
(`note_card_asks_again`), or it has changed while a device shows it (`check_changed_cards`). The sweep in
`sender.py` sends the requested messages.
"""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, union
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, delete, select

from bot.channels.delivery import audience
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.features.push import cards, notifications
from bot.features.push.rows import is_live
from bot.features.push.tables import AskedAgainRow, DeviceRow
from bot.store.inserts import insert_or_ignore
from bot.store.rules import Policies
from bot.store.tables.people import AccountRow
from bot.store.tables.row import table_of

PUSH_NOTIFIER = "push"
"""The name by which steps of rules reach devices."""
_MAX_NOTED_CARDS = 50  # the most cards that ask people again, in one transaction
_MAX_CHANGED = 150  # the most shown notifications that are checked in one transaction
_ASKED_AGAIN = table_of(AskedAgainRow)
_DEVICE = table_of(DeviceRow)
# an account that is given to a query, and an account of the same person
_GIVEN_ACCOUNT, _LINKED_ACCOUNT = aliased(AccountRow), aliased(AccountRow)


class PushWatcher:
    """The implementation of `WatchDelivery` that shows a delivered card on the devices of those it notifies.

    A rule may instead have a step that notifies devices at a later time. Then the delivery notifies no
    device. The step does so when it is due (`note_card_asks_again`).
    """

    def is_watching(self) -> bool:
        """Return True always: only the rows tell if there are devices."""
        return True

    def list_reached(
        self, session: Session, proposal: Proposal, deciders: Collection[str]
    ) -> Collection[str]:
        """Return the deciders' accounts whose person has a device; none if a step notifies devices later."""
        if _has_step(proposal):
            return ()
        return _list_accounts_with_devices(session, deciders)

    def hold_back(
        self, _session: Session, _proposal: Proposal, _notified: Collection[str], _now: datetime
    ) -> Collection[str]:
        """Return no accounts: quiet hours hold back messages, not cards."""
        return ()

    def tell_people(
        self, session: Session, proposal: Proposal, notified: Collection[str], now: datetime
    ) -> None:
        """Request a message about the card on the devices of these people.

        Nothing changes when the card is posted once more.
        """
        if proposal.state is State.PROPOSED and not _has_step(proposal):
            for device_id in _list_devices_of(session, notified):
                notifications.request_message(session, proposal.card_id, device_id, now)

    def tell_later(self, session: Session, account: str, waiting: Sequence[Proposal], now: datetime) -> None:
        """Request a message about the first of the cards that were held back: many give one notification."""
        if waiting:
            self.tell_people(session, waiting[0], [account], now)


def note_new_round(session: Session, proposal: Proposal, now: datetime) -> None:
    """Have the card of a proposal shown again after each edit or retry. Implements `AskPeople`.

    An edit or a retry begins another round of the proposal, in which people are asked again.
    """
    if proposal.round > 1:  # in the first round, `PushWatcher` requests messages when the card is delivered
        note_card_asks_again(session, proposal, 0, now)


def note_card_asks_again(session: Session, proposal: Proposal, more: int, now: datetime) -> None:  # noqa: ARG001 - as in `Notify`
    """Have a card shown, or shown again, on the deciders' devices. Implements `Notify`.

    Only a note is stored here: the sweep requests a message on each device (`request_noted_cards`).
    """
    if session.connection().execute(select(_DEVICE.c.id).limit(1)).first() is None:
        return
    row = {"card_id": proposal.card_id, "asked_at": now}
    session.connection().execute(insert_or_ignore(session, AskedAgainRow), row)


def request_noted_cards(session: Session, policies: Policies, now: datetime) -> None:
    """Request messages about the cards that ask people again, for their deciders' devices.

    Takes the oldest notes of `note_card_asks_again`, at most `_MAX_NOTED_CARDS`, and deletes them. Left out
    are people who muted the kind of card, or from whom the card is held back.
    """
    oldest = select(_ASKED_AGAIN.c.card_id).order_by(_ASKED_AGAIN.c.asked_at).limit(_MAX_NOTED_CARDS)
    ids = session.connection().execute(oldest).scalars().all()
    live_devices = session.exec(select(DeviceRow).where(is_live(now))).all()
    owners = {device.account: device.account_name for device in live_devices}
    deletion = delete(AskedAgainRow).where(col(AskedAgainRow.card_id).in_(ids))
    deleted_ids = session.execute(deletion.returning(col(AskedAgainRow.card_id))).scalars().all()
    for card_id in deleted_ids:
        open_proposals = cards.list_open(session, card_id)
        if not open_proposals:
            continue
        deciders = {
            account
            for account, name in owners.items()
            if cards.list_decidable(session, policies, open_proposals, Actor.parse(account, name))
        }
        notified = audience.choose_and_tell_step_recipients(session, open_proposals[0], deciders, now)
        for device in live_devices:
            if device.account in notified:
                notifications.request_message(session, card_id, device.id, now, repeat=True)


def check_changed_cards(session: Session, policies: Policies, now: datetime) -> None:
    """Check shown cards that have changed, once for each version of the card.

    For a card that no longer waits for the device's person, a message is requested: the device closes the
    card when it gets this message.
    """
    for row in notifications.list_changed(session, _MAX_CHANGED):
        device = session.get(DeviceRow, row.device_id)
        if device is None:
            continue
        open_proposals = cards.list_open(session, row.card_id)
        actor = Actor.parse(device.account, device.account_name)
        version = cards.sum_versions(session, row.card_id)
        is_over = not cards.list_decidable(session, policies, open_proposals, actor)
        notifications.note_card_checked(session, row, version, now, is_over=is_over)


def _list_devices_of(session: Session, accounts: Collection[str]) -> list[str]:
    """Return the devices of the people with these accounts."""
    own = select(DeviceRow.id).where(col(DeviceRow.account).in_(accounts))
    linked = select(DeviceRow.id).where(*_join_linked_devices(accounts))
    return sorted(session.connection().execute(union(own, linked)).scalars())


def _list_accounts_with_devices(session: Session, accounts: Collection[str]) -> frozenset[str]:
    """Return those of these accounts whose person has a device, under any account of the person."""
    own = select(DeviceRow.account).where(col(DeviceRow.account).in_(accounts))
    linked = select(_GIVEN_ACCOUNT.actor).where(*_join_linked_devices(accounts))
    return frozenset(session.connection().execute(union(own, linked)).scalars())


def _join_linked_devices(accounts: Collection[str]) -> tuple[ColumnElement[bool], ...]:
    """Return conditions that join a given account, another one of the person, and a device of that one."""
    return (
        col(_GIVEN_ACCOUNT.actor).in_(accounts),
        col(_LINKED_ACCOUNT.person_id) == col(_GIVEN_ACCOUNT.person_id),
        col(DeviceRow.account) == col(_LINKED_ACCOUNT.actor),
    )


def _has_step(proposal: Proposal) -> bool:
    """Return whether a later step of a rule notifies devices about the proposal."""
    return any(step.target == PUSH_NOTIFIER and not step.is_over for step in proposal.steps)
