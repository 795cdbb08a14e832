"""The tables of devices that people want to be notified on, and of what these show."""

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.secrets import make_secret_column
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import Row, id_of, partial


class DeviceRow(Row, table=True):
    """A browser's push subscription (RFC 8030). It ends with the session that it was made in.

    ``id`` is the beginning of the SHA-256 of its endpoint. ``session`` is the hash of the session, as
    `SignInRow.hash`; NULL where Nod keeps no session of that person, and then it ends at ``until``. ``vapid``
    is the mark of the key pair with which it was made. ``next_at``: when a process may send to it again;
    later while one does, or after a fault. ``failures`` counts those in a row. ``crowded_at``: when it was
    last told that more cards wait than it shows.
    """

    __tablename__ = "push_device"
    __table_args__ = (Index("push_device_of_account", "account"),)

    id: str = Field(primary_key=True)
    account: str
    account_name: str
    session: str | None = None
    until: datetime | None = Field(default=None, sa_type=UTCDateTime)
    name: str
    host: str
    endpoint: str = make_secret_column()
    secret: str = make_secret_column()
    public_key: str
    vapid: str
    is_detailed: bool = False
    created_at: datetime = Field(sa_type=UTCDateTime)
    sent_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    tested_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    crowded_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    next_at: datetime = Field(sa_type=UTCDateTime)
    failures: int = 0
    fault: str = ""


class AskedAgainRow(Row, table=True):
    """A card that people are asked about again, until it is known on whose devices it is shown."""

    __tablename__ = "push_again"

    card_id: str = Field(foreign_key=id_of(ProposalRow), primary_key=True)
    asked_at: datetime = Field(sa_type=UTCDateTime)


class NotificationRow(Row, table=True):
    """The notification of a card on a device, until it is over.

    ``wanted`` counts up with each reason to send, ``sent`` is the one that was sent last. ``version``: that
    of the card when it was last judged. ``next_at``: later in someone's quiet hours.
    """

    __tablename__ = "push_notification"
    __table_args__ = (
        partial("push_notification_due", "device_id", "next_at", where="sent < wanted"),
        partial("push_notification_shown", "card_id", where="is_shown = 1", postgresql="is_shown"),
    )

    card_id: str = Field(foreign_key=id_of(ProposalRow), primary_key=True)
    device_id: str = Field(foreign_key="push_device.id", primary_key=True)
    wanted: int = 1
    sent: int = 0
    version: int = 0
    is_shown: bool = False
    tries: int = 0
    next_at: datetime = Field(sa_type=UTCDateTime)


class QuietRow(Row, table=True):
    """The hours in which a person's devices show nothing new, as that person's clock has them."""

    __tablename__ = "push_quiet"

    account: str = Field(primary_key=True)
    begins: str
    ends: str
    zone: str
    set_at: datetime = Field(sa_type=UTCDateTime)
