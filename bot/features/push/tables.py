"""The tables of devices on which people want to be notified, of their notifications, and of quiet hours."""

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.store.secrets import make_secret_column
from bot.store.tables.proposals import ProposalRow
from bot.store.tables.row import Row, make_partial_index, name_id_column


class DeviceRow(Row, table=True):
    """A browser's push subscription (RFC 8030). It ends with the session in which it was made."""

    __tablename__ = "push_device"
    __table_args__ = (Index("push_device_of_account", "account"),)

    id: str = Field(primary_key=True)  # the beginning of the SHA-256 of its endpoint
    account: str
    account_name: str
    session: str | None = None  # `SignInRow.hash`; NULL where Nod keeps no session of that person
    until: datetime | None = Field(default=None, sa_type=UTCDateTime)  # the end, if ``session`` is NULL
    name: str
    host: str  # the host of the endpoint
    endpoint: str = make_secret_column()
    secret: str = make_secret_column()  # the subscription's ``auth``
    public_key: str  # the subscription's ``p256dh``
    vapid: str  # the mark of Nod's key pair with which the subscription was made
    is_detailed: bool = False
    created_at: datetime = Field(sa_type=UTCDateTime)
    sent_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    tested_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    # the last message about more waiting cards than the device shows
    crowded_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    next_at: datetime = Field(sa_type=UTCDateTime)  # no process sends to the device earlier
    failures: int = 0  # the number of failures in a row
    fault: str = ""


class AskedAgainRow(Row, table=True):
    """A card that asks people again.

    The row is deleted once messages to the deciders' devices are requested.
    """

    __tablename__ = "push_again"

    card_id: str = Field(foreign_key=name_id_column(ProposalRow), primary_key=True)
    asked_at: datetime = Field(sa_type=UTCDateTime)


class NotificationRow(Row, table=True):
    """The notification of a card on a device, until it is closed. It is due while ``sent < wanted``."""

    __tablename__ = "push_notification"
    __table_args__ = (
        make_partial_index("push_notification_due", "device_id", "next_at", where="sent < wanted"),
        make_partial_index("push_notification_shown", "card_id", where="is_shown = 1", postgresql="is_shown"),
    )

    card_id: str = Field(foreign_key=name_id_column(ProposalRow), primary_key=True)
    device_id: str = Field(foreign_key="push_device.id", primary_key=True)
    wanted: int = 1  # raised by 1 for each message that has to be sent
    sent: int = 0  # the value of ``wanted`` that was sent last
    version: int = 0  # the card's version when the notification was last checked
    is_shown: bool = False
    tries: int = 0
    next_at: datetime = Field(sa_type=UTCDateTime)  # the next try, or the end of the person's quiet hours


class QuietRow(Row, table=True):
    """The quiet hours of a person, in the time zone of that person: their devices show nothing new then."""

    __tablename__ = "push_quiet"

    account: str = Field(primary_key=True)
    begins: str
    ends: str
    zone: str
    set_at: datetime = Field(sa_type=UTCDateTime)
