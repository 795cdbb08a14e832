"""The outbox of Nod's own notices: texts, reminders at a card, cards in further places.

``bot/channels/delivery/notices.py`` posts them. A row is deleted after the post, so a crash may post a notice
twice, but loses none.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Index, delete, or_, update
from sqlmodel import Field, Session, col, select
from sqlmodel.sql.sqltypes import UTCDateTime

from bot.domain.chat import Address, LinkButton
from bot.domain.hooks import CommandOffer
from bot.domain.people import SHELL, Actor
from bot.store import people
from bot.store.tables.row import Row, as_json, count_changed, serial

_LONGEST = timedelta(minutes=5)  # the longest pause; a later next try means that the clock was set back


_OF_COMMAND, _OF_PAGE = 3, 2  # the number of texts that a row has for an offered command or page
POSTLESS = frozenset({"http", SHELL})
"""The channels in which nothing can be posted to a person."""


class NoticeRow(Row, table=True):
    """A notice to be posted: deleted once it was posted, or never can be."""

    __tablename__ = "notice"
    __table_args__ = (Index("notice_due", "next_at"),)

    id: int | None = serial()
    channel: str
    key: str
    instead: str = ""  # the address to try if the first refuses for good
    proposal_id: str | None = None  # the proposal of the notice; without a text its card is posted
    text: str = ""
    offers: list[list[str]] | None = as_json(nullable=True)
    """Commands with buttons, each as its line, label and words; or one page, as its label and address."""
    tries: int = 0
    created_at: datetime = Field(sa_type=UTCDateTime)
    next_at: datetime = Field(sa_type=UTCDateTime)

    @property
    def address(self) -> Address:
        return Address(self.channel, self.key)

    @property
    def commands(self) -> tuple[CommandOffer, ...]:
        """The commands that the notice offers, each with a button."""
        return tuple(CommandOffer(*each) for each in self.offers or () if len(each) == _OF_COMMAND)

    @property
    def link(self) -> LinkButton | None:
        """The page that the notice offers by a button."""
        return next((LinkButton(*each) for each in self.offers or () if len(each) == _OF_PAGE), None)


def store_notice(
    session: Session,
    address: Address,
    text: str,
    now: datetime,
    proposal_id: str | None = None,
    instead: Address | None = None,
    offers: Sequence[CommandOffer] = (),
    link: LinkButton | None = None,
) -> None:
    """Have a notice posted soon. ``offers`` and ``link`` follow the text; they are for ``address`` alone."""
    kept = [[each.about, each.label, each.words] for each in offers]
    if link is not None:
        kept = [[link.label, link.url]]
    session.add(
        NoticeRow(
            channel=address.channel,
            key=address.key,
            instead=str(instead) if instead and instead != address else "",
            proposal_id=proposal_id,
            text=text,
            offers=kept or None,
            created_at=now,
            next_at=now,
        )
    )
    session.flush()


def tell_privately(
    session: Session, account: Actor, text: str, now: datetime, link: LinkButton | None = None
) -> bool:
    """Have a text posted to a person in private; False where nothing can be posted to them.

    ``link``: a button below it. It goes to the account's own chat or, where it has none, to the chats of all
    accounts that are linked with it.
    """
    chats = [account]
    if account.channel in POSTLESS:
        linked = sorted(people.person_of(session, account).accounts)
        chats = [each for each in map(Actor.parse, linked) if each.channel not in POSTLESS]
    for each in chats:
        store_notice(session, Address(each.channel, each.key), text, now, link=link)
    return bool(chats)


def list_due(session: Session, now: datetime, limit: int) -> list[NoticeRow]:
    """Return the notices that are due, oldest first."""
    at = col(NoticeRow.next_at)
    query = select(NoticeRow).where(or_(at <= now, at > now + _LONGEST)).order_by(at, col(NoticeRow.id))
    return list(session.exec(query.limit(limit)))


def claim(session: Session, notice: NoticeRow, next_at: datetime) -> bool:
    """Count one more try, to be repeated at ``next_at`` unless it arrives; False if another did."""
    mine = (col(NoticeRow.id) == notice.id) & (col(NoticeRow.tries) == notice.tries)
    return bool(
        count_changed(
            session.execute(update(NoticeRow).where(mine).values(tries=notice.tries + 1, next_at=next_at))
        )
    )


def over(session: Session, notice: NoticeRow) -> None:
    """Delete a notice that was posted, or never can be."""
    session.execute(delete(NoticeRow).where(col(NoticeRow.id) == notice.id))
