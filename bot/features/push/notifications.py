"""The queries of notifications: the cards that each device is to show, and the messages that are due.

A row of `NotificationRow` is for one card on one device. A message about the card is requested if the card is
new, asks people again, or has to be closed (`watcher.py`). To request it, 1 is added to the row's count
``wanted``. After a message, ``sent`` is set to the ``wanted`` of that time, and the row is due while ``sent``
is less.

So a crash between two statements repeats a message rather than losing it. On the device, the second message
replaces the first. The message itself is written when it is sent (`push_message.py`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Update, exists, func, update
from sqlmodel import Session, col, delete, select

from bot.features.push.tables import AskedAgainRow, DeviceRow, NotificationRow
from bot.store.inserts import insert_or_ignore
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import count_changed, table_of

LEASE = timedelta(seconds=45)
"""The time for which one process has a device, to send at most `MAX_SENT` messages of 10 s each."""
MAX_SENT = 3
"""The most messages that one process sends to a device in a row."""
MAX_TRIES = 12
"""The most tries to send a message. A notification that can't be closed stays until someone taps it."""
_ASKED_AGAIN = table_of(AskedAgainRow)
_DEVICE = table_of(DeviceRow)
_NOTIFICATION = table_of(NotificationRow)
_IS_DUE = _NOTIFICATION.c.sent < _NOTIFICATION.c.wanted
_OF_CARD = (ProposalRow.id == NotificationRow.card_id) | (ProposalRow.batch == NotificationRow.card_id)
# the version of the card of each selected `NotificationRow` now; see `cards.sum_versions`
_CARD_VERSION = (
    select(func.sum(ProposalRow.version)).where(_OF_CARD).correlate(NotificationRow).scalar_subquery()
)


@dataclass(frozen=True, slots=True)
class DueWork:
    """The due work of the sweep, which the functions in `watcher.py` and `PushSender` do."""

    has_asked_again: bool  # there are cards that ask people again (`request_noted_cards`)
    has_changed: bool  # there are shown cards that have changed (`check_changed_cards`)
    devices: Sequence[str]  # the ids of devices with messages to send


def request_message(
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
        session.connection().execute(_update_row(card_id, device_id).values(**_request_one_more(now)))


def find_due_work(session: Session, now: datetime, max_devices: int, busy: Collection[str]) -> DueWork:
    """Return the due work, with at most ``max_devices`` devices.

    ``busy``: the devices to which this process is sending, which are left out.
    """
    has_asked_again = (
        session.connection().execute(select(_ASKED_AGAIN.c.card_id).limit(1)).first() is not None
    )
    has_changed = bool(list_changed(session, 1))
    has_due = exists().where(
        _NOTIFICATION.c.device_id == _DEVICE.c.id, _IS_DUE, _NOTIFICATION.c.next_at <= now
    )
    is_free = (_DEVICE.c.next_at <= now) & _DEVICE.c.id.not_in(sorted(busy))
    query = select(_DEVICE.c.id).where(is_free, has_due)
    ordered = query.order_by(_DEVICE.c.failures, _DEVICE.c.next_at, _DEVICE.c.id).limit(max_devices)
    devices = session.connection().execute(ordered).scalars().all()
    return DueWork(has_asked_again, has_changed, devices)


def list_changed(session: Session, limit: int) -> Sequence[NotificationRow]:
    """Return shown notifications whose card has another version than when it was checked last."""
    shown = select(NotificationRow).where(col(NotificationRow.is_shown).is_(True))
    return session.exec(shown.where(col(NotificationRow.version) != _CARD_VERSION).limit(limit)).all()


def note_card_checked(
    session: Session, row: NotificationRow, version: int, now: datetime, *, is_over: bool
) -> None:
    """Store the version in which a shown card was checked, unless another process has just stored one.

    ``is_over``: the card no longer waits for the device's person, so a message is requested. When the message
    is written, it finds no open proposal for the person, and closes the card.
    """
    values: dict[str, Any] = {"version": version}
    if is_over:
        values |= _request_one_more(now)
    is_unchanged = _NOTIFICATION.c.version == row.version
    update_if_unchanged = _update_row(row.card_id, row.device_id).where(is_unchanged)
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


def _request_one_more(now: datetime) -> dict[str, Any]:
    """Return the new values of a row by which one more message is requested."""
    return {"wanted": _NOTIFICATION.c.wanted + 1, "tries": 0, "next_at": now}


def _update_row(card_id: str, device_id: str) -> Update:
    return update(_NOTIFICATION).where(
        _NOTIFICATION.c.card_id == card_id, _NOTIFICATION.c.device_id == device_id
    )
