"""The queries of devices and of people's quiet hours.

A device is a browser's subscription at a push service. It is live as long as the session in which it was
added (`is_live`). Nod stores no session of people whom a proxy signs in, or who need no sign-in: a device of
theirs is live until a time, ``until``. ``vapid`` is the fingerprint of the key pair of Nod with which the
browser subscribed. If Nod has another key pair now, the device can't be used any longer. Nothing is sent to a
device before ``next_at``.

A row that is used after its transaction is a copy (``DeviceRow(**row.model_dump())``).
"""

import hmac
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, exists, func, or_, update
from sqlmodel import Session, col, delete, select

from bot.approvals import rights
from bot.domain.people import Actor
from bot.domain.rule_values import Hours
from bot.domain.text import hash_text
from bot.errors import NodError, SecretLost
from bot.features.push.tables import DeviceRow, NotificationRow, QuietRow
from bot.store.inserts import insert_or_update
from bot.store.locks import conversation_lock
from bot.store.rules import Policies
from bot.store.secrets import decrypt_in, encrypt_in
from bot.store.tables.people import SignInRow
from bot.store.tables.row import count_changed

MAX_DEVICES = 20
"""The most devices of one person, all accounts together."""
MAX_LISTED = 500
TEST_PAUSE = timedelta(seconds=10)
"""The shortest time between two tests of a device."""
_ID_CHARS = 32
_MANY_TEXT = f"You have {MAX_DEVICES} devices, the most. Remove one first."
_TAKEN_TEXT = "That device belongs to someone else. Turn notifications off in this browser, then on again."


class DeviceRefused(NodError):
    """A device can't be added."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A browser's subscription, in the browser's own values."""

    endpoint: str  # the address at the push service, which is a secret as well
    public_key: str  # ``p256dh``, as base64url
    secret: str  # ``auth``, as base64url

    @property
    def id(self) -> str:
        """The id of the device, which its browser can compute as well."""
        return hash_text(self.endpoint)[:_ID_CHARS]


@dataclass(frozen=True, slots=True)
class NewDevice:
    """A device to add. It has a session or an end."""

    subscription: Subscription
    session: str | None  # the hash of the session; None without a session
    until: datetime | None  # the end of a device without a session
    name: str
    key_fingerprint: str  # of the key pair of Nod with which the browser subscribed
    is_detailed: bool = False  # its notifications say what is asked and by whom


class VisibleDevices(NamedTuple):
    """The devices that a person may see. ``everyone``: the person is an admin, and ``others`` is filled."""

    everyone: bool
    mine: Sequence[DeviceRow]
    others: Sequence[DeviceRow]


@dataclass(frozen=True, slots=True)
class QuietHours:
    """The hours in which a person's devices show nothing new."""

    hours: Hours
    zone: str

    def find_end(self, now: datetime) -> datetime | None:
        """Return the end of the quiet hours in which ``now`` is, in UTC; None outside of quiet hours."""
        local_now = now.astimezone(ZoneInfo(self.zone))
        if not self.hours.contains(local_now.time()):
            return None
        end = datetime.combine(local_now.date(), self.hours.end, local_now.tzinfo)
        if end.astimezone(UTC) <= now.astimezone(UTC):
            end = datetime.combine(local_now.date() + timedelta(days=1), self.hours.end, local_now.tzinfo)
        return end.astimezone(UTC)


def add_device(session: Session, actor: Actor, device: NewDevice, now: datetime) -> DeviceRow:
    """Store a device, and return its row. A known device gets the new session, name and details.

    A known device of another account is replaced if the keys of both subscriptions are the same: then it is
    the same browser. Raises DeviceRefused for other keys, or if the person has `MAX_DEVICES` others.
    """
    given = device.subscription
    known = session.get(DeviceRow, given.id)
    if known is not None and not _has_same_keys(session, known, given):
        raise DeviceRefused(_TAKEN_TEXT)
    if find_own(session, given.id, actor, now) is None:
        # The device will be one more live device of this person. Devices are added one by one, under a lock
        # of all of Nod, so that two at the same time can't be too many.
        conversation_lock.lock_everything(session)
        if _count(session, rights.list_accounts(session, actor), now) >= MAX_DEVICES:
            raise DeviceRefused(_MANY_TEXT)
    if known is not None and known.account != str(actor):
        end_devices(session, [known.id])
        known = None
    if known is None:
        row = DeviceRow(id=given.id, created_at=now, next_at=now, public_key=given.public_key)  # type: ignore[call-arg]
    else:
        row = known
    row.account, row.account_name = str(actor), actor.label
    row.session, row.until = device.session, device.until
    row.name = device.name
    row.vapid = device.key_fingerprint
    row.is_detailed = device.is_detailed
    row.fault, row.failures = "", 0
    row.host = urlsplit(given.endpoint).hostname or ""
    row.endpoint = encrypt_in(session, DeviceRow, "endpoint", row.id, given.endpoint)
    row.secret = encrypt_in(session, DeviceRow, "secret", row.id, given.secret)
    session.add(row)
    session.flush()
    return DeviceRow(**row.model_dump())


def is_live(now: datetime) -> ColumnElement[bool]:
    """Return the condition for devices whose session, or whose own time, has not ended."""
    has_session = exists().where(
        col(SignInRow.hash) == col(DeviceRow.session),
        col(SignInRow.account) == col(DeviceRow.account),
        col(SignInRow.code).is_(False),
        col(SignInRow.expires_at) > now,
    )
    return or_(col(DeviceRow.session).is_(None) & (col(DeviceRow.until) > now), has_session)


def list_devices(session: Session, policies: Policies, actor: Actor, now: datetime) -> VisibleDevices:
    """Return this person's devices, and for an admin of all of Nod everyone else's newest devices."""
    accounts = rights.list_accounts(session, actor)
    live = select(DeviceRow).where(is_live(now)).order_by(col(DeviceRow.created_at).desc()).limit(MAX_LISTED)
    mine = session.exec(live.where(col(DeviceRow.account).in_(sorted(accounts)))).all()
    everyone = rights.is_global_admin(session, policies, actor)
    others: Sequence[DeviceRow] = ()
    if everyone:
        others = session.exec(live.where(col(DeviceRow.account).not_in(sorted(accounts)))).all()
    return VisibleDevices(everyone, mine, others)


def list_live(session: Session, now: datetime) -> Sequence[DeviceRow]:
    """Return everyone's live devices, the newest first."""
    newest_first = select(DeviceRow).where(is_live(now)).order_by(col(DeviceRow.created_at).desc())
    return [DeviceRow(**row.model_dump()) for row in session.exec(newest_first.limit(MAX_LISTED))]


def find_own(session: Session, device_id: str, actor: Actor, now: datetime) -> DeviceRow | None:
    """Return a live device of this person; None for any other device."""
    row = session.exec(select(DeviceRow).where(col(DeviceRow.id) == device_id, is_live(now))).first()
    if row is None or row.account not in rights.list_accounts(session, actor):
        return None
    return row


def change_device(
    session: Session, device_id: str, actor: Actor, now: datetime, *, is_detailed: bool
) -> bool:
    """Set how much a device of this person shows. Return False if they have no such device."""
    row = find_own(session, device_id, actor, now)
    if row is None:
        return False
    row.is_detailed = is_detailed
    session.add(row)
    return True


def claim_test(session: Session, device_id: str, actor: Actor, now: datetime) -> bool:
    """Count a test of a device. Return False if the last test was a moment ago, or for others' devices."""
    if find_own(session, device_id, actor, now) is None:
        return False
    is_free = col(DeviceRow.tested_at).is_(None) | (col(DeviceRow.tested_at) <= now - TEST_PAUSE)
    tested = update(DeviceRow).where(col(DeviceRow.id) == device_id, is_free).values(tested_at=now)
    return bool(count_changed(session.execute(tested)))


def remove_device(
    session: Session, policies: Policies, device_id: str, actor: Actor, now: datetime
) -> DeviceRow | None:
    """Remove a device of this person, or anyone's for an admin of all of Nod. Return None for any other."""
    row = find_own(session, device_id, actor, now)
    if row is None and rights.is_global_admin(session, policies, actor):
        row = session.get(DeviceRow, device_id)
    if row is None:
        return None
    removed = DeviceRow(**row.model_dump())
    end_devices(session, [device_id])
    return removed


def end_devices(session: Session, ids: Sequence[str]) -> int:
    """Delete devices and their notifications. Return the number of devices."""
    session.execute(delete(NotificationRow).where(col(NotificationRow.device_id).in_(ids)))
    return count_changed(session.execute(delete(DeviceRow).where(col(DeviceRow.id).in_(ids))))


def delete_dead_devices(session: Session, key_fingerprint: str, now: datetime) -> int:
    """Delete devices that are not live, or that subscribed with another key pair. Return their number."""
    has_other_key = col(DeviceRow.vapid) != key_fingerprint
    ids = session.exec(select(DeviceRow.id).where(~is_live(now) | has_other_key).limit(MAX_LISTED)).all()
    return end_devices(session, ids) if ids else 0


def set_quiet(session: Session, actor: Actor, quiet: QuietHours, now: datetime) -> None:
    """Set a person's quiet hours, in place of the earlier hours."""
    clear_quiet(session, actor)
    begins, ends = quiet.hours
    values = {"account": str(actor), "begins": f"{begins:%H:%M}", "ends": f"{ends:%H:%M}"}
    insert_or_update(session, QuietRow, values | {"zone": quiet.zone, "set_at": now})


def clear_quiet(session: Session, actor: Actor) -> bool:
    """End a person's quiet hours. Return False if there were none."""
    accounts = rights.list_accounts(session, actor)
    theirs = delete(QuietRow).where(col(QuietRow.account).in_(sorted(accounts)))
    return bool(count_changed(session.execute(theirs)))


def find_quiet(session: Session, actor: Actor) -> QuietHours | None:
    """Return the newest quiet hours that a person has set, under any of their accounts, or None."""
    accounts = rights.list_accounts(session, actor)
    theirs = select(QuietRow).where(col(QuietRow.account).in_(sorted(accounts)))
    row = session.exec(theirs.order_by(col(QuietRow.set_at).desc()).limit(1)).first()
    if row is None:
        return None
    return QuietHours(Hours(time.fromisoformat(row.begins), time.fromisoformat(row.ends)), row.zone)


def list_zones(session: Session) -> dict[str, ZoneInfo]:
    """Return the time zones of people's quiet hours, by account, the newest last. Implements `ListZones`."""
    chosen = select(QuietRow.account, QuietRow.zone).order_by(col(QuietRow.set_at))
    return {account: ZoneInfo(zone) for account, zone in session.exec(chosen)}


def _has_same_keys(session: Session, known: DeviceRow, given: Subscription) -> bool:
    """Return whether a subscription has the keys of a known device, which only the device's browser has."""
    has_same_public_key = known.public_key == given.public_key
    try:
        secret = decrypt_in(session, DeviceRow, "secret", known.id, known.secret)
    except SecretLost:
        # the secret can't be compared; without it the device is of no use to its owner in any case
        return has_same_public_key
    return hmac.compare_digest(secret, given.secret) and has_same_public_key


def _count(session: Session, accounts: Collection[str], now: datetime) -> int:
    theirs = select(func.count()).select_from(DeviceRow)
    return session.exec(theirs.where(col(DeviceRow.account).in_(sorted(accounts)), is_live(now))).one()
