"""The queries of notifications: the cards that each device is to show, and the hooks that request messages.

A row of `NotificationRow` is for one card on one device. A message about the card is requested if the card is
new, asks people again, or has to be closed. To request it, 1 is added to the row's count ``wanted``. After a
message, ``sent`` is set to the ``wanted`` of that time, and the row is due while ``sent`` is less.

So a crash between two statements repeats a message rather than losing it. On the device, the second message
replaces the first. The message itself is written when it is sent (`push_message.py`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Update, exists, func, or_, union, update
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, delete, select

from bot.approvals import rights
from bot.channels.delivery import audience
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.features.push.rows import is_live
from bot.features.push.tables import AskedAgainRow, DeviceRow, NotificationRow
from bot.store import proposals
from bot.store.inserts import insert_or_ignore
from bot.store.rules import Policies
from bot.store.tables.people import AccountRow
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import count_changed, table_of

LEASE = timedelta(seconds=45)
"""The time for which one process has a device, to send at most `MAX_SENT` messages of 10 s each."""
MAX_SENT = 3
"""The most messages that one process sends to a device in a row."""
MAX_TRIES = 12
"""The most tries to send a message. A notification that can't be closed stays until someone taps it."""
PUSH_NOTIFIER = "push"
"""The name by which steps of rules reach devices."""
_MAX_CARDS = 50  # the most cards in one transaction
_ASKED_AGAIN = table_of(AskedAgainRow)
_DEVICE = table_of(DeviceRow)
_NOTIFICATION = table_of(NotificationRow)
# an account that is given to a query, and an account of the same person
_GIVEN_ACCOUNT, _LINKED_ACCOUNT = aliased(AccountRow), aliased(AccountRow)
_IS_DUE = _NOTIFICATION.c.sent < _NOTIFICATION.c.wanted
_OF_CARD = (ProposalRow.id == NotificationRow.card_id) | (ProposalRow.batch == NotificationRow.card_id)
# the version of the card of each selected `NotificationRow` now; see `find_version`
_CARD_VERSION = (
    select(func.sum(ProposalRow.version)).where(_OF_CARD).correlate(NotificationRow).scalar_subquery()
)


@dataclass(frozen=True, slots=True)
class DueWork:
    """The due work of the sweep."""

    has_asked_again: bool  # there are cards that ask people again (`request_noted_cards`)
    has_changed: bool  # there are shown cards that have changed (`close_changed`)
    devices: Sequence[str]  # the ids of devices with messages to send


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
        return _list_with_devices(session, deciders)

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
                _request_message(session, proposal.card_id, device_id, now)

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


def find_due_work(session: Session, now: datetime, max_devices: int, busy: Collection[str]) -> DueWork:
    """Return the due work, with at most ``max_devices`` devices.

    ``busy``: the devices to which this process is sending, which are left out.
    """
    has_asked_again = (
        session.connection().execute(select(_ASKED_AGAIN.c.card_id).limit(1)).first() is not None
    )
    has_changed = bool(_list_changed(session, 1))
    due = exists().where(_NOTIFICATION.c.device_id == _DEVICE.c.id, _IS_DUE, _NOTIFICATION.c.next_at <= now)
    query = select(_DEVICE.c.id).where(_DEVICE.c.next_at <= now, due, _DEVICE.c.id.not_in(sorted(busy)))
    ordered = query.order_by(_DEVICE.c.failures, _DEVICE.c.next_at, _DEVICE.c.id).limit(max_devices)
    devices = session.connection().execute(ordered).scalars().all()
    return DueWork(has_asked_again, has_changed, devices)


def request_noted_cards(session: Session, policies: Policies, now: datetime) -> None:
    """Request messages about the cards that ask people again, for their deciders' devices.

    Takes the oldest notes of `note_card_asks_again`, at most `_MAX_CARDS`, and deletes them. Left out are
    people who muted the kind of card, or from whom the card is held back.
    """
    oldest = select(_ASKED_AGAIN.c.card_id).order_by(_ASKED_AGAIN.c.asked_at).limit(_MAX_CARDS)
    ids = session.connection().execute(oldest).scalars().all()
    live_devices = session.exec(select(DeviceRow).where(is_live(now))).all()
    owners = {device.account: device.account_name for device in live_devices}
    deletion = delete(AskedAgainRow).where(col(AskedAgainRow.card_id).in_(ids))
    deleted_ids = session.execute(deletion.returning(col(AskedAgainRow.card_id))).scalars().all()
    for card_id in deleted_ids:
        open_proposals = list_open(session, card_id)
        if not open_proposals:
            continue
        deciders = {
            account
            for account, name in owners.items()
            if list_decidable(session, policies, open_proposals, Actor.parse(account, name))
        }
        notified = audience.settle_step_recipients(session, open_proposals[0], deciders, now)
        for device in live_devices:
            if device.account in notified:
                _request_message(session, card_id, device.id, now, repeat=True)


def close_changed(session: Session, policies: Policies, now: datetime) -> None:
    """Check the shown cards that have changed, and close those that no longer wait for the device's person.

    A card is not closed here: a message is requested, and the device closes the card when it gets this
    message. Each card is checked once for each version.
    """
    for row in _list_changed(session, _MAX_CARDS * MAX_SENT):
        device = session.get(DeviceRow, row.device_id)
        if device is None:
            continue
        open_proposals = list_open(session, row.card_id)
        actor = Actor.parse(device.account, device.account_name)
        version = find_version(session, row.card_id)
        is_unchanged = _NOTIFICATION.c.version == row.version
        update_if_unchanged = _update_row(row.card_id, row.device_id).where(is_unchanged)
        values: dict[str, Any] = {"version": version}
        if not list_decidable(session, policies, open_proposals, actor):
            # the message that is written then finds no open proposal for the person, and closes the card
            values |= {"wanted": _NOTIFICATION.c.wanted + 1, "tries": 0, "next_at": now}
        session.connection().execute(update_if_unchanged.values(**values))


def claim_device(session: Session, device_id: str, now: datetime) -> DeviceRow | None:
    """Take a device for this process. Return None if another process has it, or it no longer exists."""
    claim = update(_DEVICE).where(_DEVICE.c.id == device_id, _DEVICE.c.next_at <= now)
    if not count_changed(session.connection().execute(claim.values(next_at=now + LEASE))):
        return None
    row = session.get(DeviceRow, device_id, populate_existing=True)
    return DeviceRow(**row.model_dump()) if row else None


def list_due(session: Session, device_id: str, now: datetime) -> Sequence[NotificationRow]:
    """Return the due notifications of a device, the oldest first."""
    due = (_NOTIFICATION.c.device_id == device_id) & _IS_DUE & (_NOTIFICATION.c.next_at <= now)
    query = select(NotificationRow).where(due).order_by(col(NotificationRow.next_at)).limit(MAX_SENT)
    return [NotificationRow(**row.model_dump()) for row in session.exec(query)]


def mark_sent(session: Session, row: NotificationRow, version: int, *, is_shown: bool) -> None:
    """Store that the message of a notification was sent, or need not be sent.

    ``is_shown``: the device shows the card now. Otherwise the row is deleted, unless another message was
    requested in the meantime. ``version``: the version of the card in the message.
    """
    if not is_shown:
        deletion = delete(NotificationRow).where(
            col(NotificationRow.card_id) == row.card_id,
            col(NotificationRow.device_id) == row.device_id,
            col(NotificationRow.wanted) == row.wanted,
        )
        if count_changed(session.execute(deletion)):
            return
    values = {"sent": row.wanted, "version": version, "is_shown": is_shown, "tries": 0}
    session.connection().execute(_update_row(row.card_id, row.device_id).values(**values))


def postpone(session: Session, row: NotificationRow, until: datetime) -> None:
    """Store that a notification is not sent before ``until``."""
    session.connection().execute(_update_row(row.card_id, row.device_id).values(next_at=until))


def count_try(session: Session, row: NotificationRow) -> None:
    """Count a try to send a message that did not arrive."""
    session.connection().execute(
        _update_row(row.card_id, row.device_id).values(tries=_NOTIFICATION.c.tries + 1)
    )


def release_device(session: Session, device_id: str, next_at: datetime) -> None:
    """Release a device, to which messages are sent from ``next_at`` on."""
    session.connection().execute(update(_DEVICE).where(_DEVICE.c.id == device_id).values(next_at=next_at))


def release_failed_device(session: Session, device_id: str, next_at: datetime, fault: str) -> None:
    """Release a device after a fault, which people see in the list. Messages are sent from ``next_at`` on."""
    values = {"next_at": next_at, "fault": fault, "failures": _DEVICE.c.failures + 1}
    session.connection().execute(update(_DEVICE).where(_DEVICE.c.id == device_id).values(**values))


def mark_crowded(session: Session, device_id: str, now: datetime) -> None:
    """Store that a device was told that more cards wait than it shows."""
    session.connection().execute(update(_DEVICE).where(_DEVICE.c.id == device_id).values(crowded_at=now))


def count_shown(session: Session, device_id: str) -> int:
    """Return how many notifications a device shows."""
    shown = select(func.count()).select_from(NotificationRow)
    return session.exec(
        shown.where(col(NotificationRow.device_id) == device_id, col(NotificationRow.is_shown).is_(True))
    ).one()


def mark_device_sent(session: Session, device_id: str, now: datetime) -> None:
    """Store the time of the last message to a device."""
    sent = update(_DEVICE).where(_DEVICE.c.id == device_id)
    session.connection().execute(sent.values(sent_at=now, fault="", failures=0))


def list_open(session: Session, card_id: str) -> list[Proposal]:
    """Return the proposals of a card that wait for people."""
    members = session.exec(
        select(ProposalRow.id).where(
            or_(col(ProposalRow.id) == card_id, col(ProposalRow.batch) == card_id),
            col(ProposalRow.state) == State.PROPOSED,
        )
    )
    found = (proposals.get(session, ident) for ident in members)
    return [proposal for proposal in found if proposal is not None]


def list_decidable(
    session: Session, policies: Policies, open_proposals: Sequence[Proposal], actor: Actor
) -> list[Proposal]:
    """Return those of the proposals that this person may decide and has not voted on."""
    return [
        proposal
        for proposal in open_proposals
        if not _has_voted(session, proposal, actor)
        and rights.find_objection(session, policies, proposal, actor) is None
    ]


def find_version(session: Session, card_id: str) -> int:
    """Return the version of a card: the sum over its proposals, which grows with each change of one."""
    of_card = or_(col(ProposalRow.id) == card_id, col(ProposalRow.batch) == card_id)
    return int(session.exec(select(func.sum(ProposalRow.version)).where(of_card)).one() or 0)


def _list_devices_of(session: Session, accounts: Collection[str]) -> list[str]:
    """Return the devices of the people with these accounts."""
    own = select(DeviceRow.id).where(col(DeviceRow.account).in_(accounts))
    linked = select(DeviceRow.id).where(*_join_linked_devices(accounts))
    return sorted(session.connection().execute(union(own, linked)).scalars())


def _list_with_devices(session: Session, accounts: Collection[str]) -> frozenset[str]:
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
    return any(step.to == PUSH_NOTIFIER and not step.is_over for step in proposal.steps)


def _request_message(
    session: Session, card_id: str, device_id: str, now: datetime, *, repeat: bool = False
) -> None:
    """Request a message about a card on a device.

    If the device has a row for the card already, another message is requested only with ``repeat``.
    """
    values = {
        "card_id": card_id,
        "device_id": device_id,
        "wanted": 1,
        "sent": 0,
        "version": 0,
        "is_shown": False,
        "tries": 0,
        "next_at": now,
    }
    insertion = insert_or_ignore(session, NotificationRow, "card_id")
    is_known = session.connection().execute(insertion, values).first() is None
    if repeat and is_known:
        values_of_repeat = {"wanted": _NOTIFICATION.c.wanted + 1, "tries": 0, "next_at": now}
        session.connection().execute(_update_row(card_id, device_id).values(**values_of_repeat))


def _list_changed(session: Session, limit: int) -> Sequence[NotificationRow]:
    """Return shown notifications whose card has another version than when it was checked last."""
    shown = select(NotificationRow).where(col(NotificationRow.is_shown).is_(True))
    return session.exec(shown.where(col(NotificationRow.version) != _CARD_VERSION).limit(limit)).all()


def _has_voted(session: Session, proposal: Proposal, actor: Actor) -> bool:
    accounts = rights.list_accounts(session, actor)
    return any(str(vote.actor) in accounts for vote in proposal.votes)


def _update_row(card_id: str, device_id: str) -> Update:
    return update(_NOTIFICATION).where(
        _NOTIFICATION.c.card_id == card_id, _NOTIFICATION.c.device_id == device_id
    )
