"""The outbox of Nod's own notices: texts to people, reminders at a card, cards in further places.

A *notice* is something that Nod posts by itself, outside the agent's answers. A transaction stores it as a
row; ``bot/channels/delivery/notices.py`` posts it and deletes the row afterwards, so a crash may post a
notice twice, but loses none.
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
from bot.store.tables.row import Row, count_changed, make_json_column, make_key_numbered_by_database

_LONGEST_PAUSE = timedelta(minutes=5)  # to the next try; if that is later, the clock was set back
# the number of texts in an inner list of `NoticeRow.offers`
_COMMAND_TEXTS = 3  # its subject, its label, its words
_PAGE_TEXTS = 2  # its label, its address
CHANNELS_WITHOUT_CHATS = frozenset({"http", SHELL})
"""The channels in which nothing can be posted to a person."""


class NoticeRow(Row, table=True):
    """A notice to be posted. It is deleted once it was posted, or once it can never be posted."""

    __tablename__ = "notice"
    __table_args__ = (Index("notice_due", "next_at"),)

    id: int | None = make_key_numbered_by_database()
    channel: str
    key: str
    instead: str = ""  # the address to try if the first refuses for good; empty: none
    proposal_id: str | None = None  # the proposal that the notice is about
    text: str = ""  # empty: the card of the proposal is posted
    # either offered commands, each a list of `_COMMAND_TEXTS` texts, or one page, a list of `_PAGE_TEXTS`
    offers: list[list[str]] | None = make_json_column(nullable=True)
    tries: int = 0
    created_at: datetime = Field(sa_type=UTCDateTime)
    next_at: datetime = Field(sa_type=UTCDateTime)

    @property
    def address(self) -> Address:
        return Address(self.channel, self.key)

    @property
    def commands(self) -> tuple[CommandOffer, ...]:
        """The commands that the notice offers, each with a button."""
        return tuple(CommandOffer(*texts) for texts in self.offers or () if len(texts) == _COMMAND_TEXTS)

    @property
    def link(self) -> LinkButton | None:
        """The page that the notice offers by a button."""
        return next((LinkButton(*texts) for texts in self.offers or () if len(texts) == _PAGE_TEXTS), None)


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
    """Have a notice posted soon: a text or, without one, the card of a proposal.

    ``instead``: the address to try if the first refuses for good. Below the text are either ``offers`` or a
    ``link``, but only at ``address``. Raises ValueError for both.
    """
    if offers and link is not None:
        raise ValueError("a notice offers either commands or a page")
    stored_offers = [[offer.description, offer.label, offer.text] for offer in offers]
    if link is not None:
        stored_offers = [[link.label, link.url]]
    session.add(
        NoticeRow(
            channel=address.channel,
            key=address.key,
            instead=str(instead) if instead and instead != address else "",
            proposal_id=proposal_id,
            text=text,
            offers=stored_offers or None,
            created_at=now,
            next_at=now,
        )
    )
    session.flush()


def store_private_notice(
    session: Session, account: Actor, text: str, now: datetime, link: LinkButton | None = None
) -> bool:
    """Store a notice to a person in private; return False where nothing can be posted to them.

    It goes to the chat of this account or, if the channel has no chats, to the chats of all accounts that are
    linked with it. ``link``: a button below the text.
    """
    chats = [account]
    if account.channel in CHANNELS_WITHOUT_CHATS:
        linked = sorted(people.load_person(session, account).accounts)
        chats = [chat for chat in map(Actor.parse, linked) if chat.channel not in CHANNELS_WITHOUT_CHATS]
    for chat in chats:
        store_notice(session, Address(chat.channel, chat.key), text, now, link=link)
    return bool(chats)


def list_due(session: Session, now: datetime, limit: int) -> list[NoticeRow]:
    """Return the notices that are due, the first due first."""
    next_at = col(NoticeRow.next_at)
    is_due = or_(next_at <= now, next_at > now + _LONGEST_PAUSE)
    query = select(NoticeRow).where(is_due).order_by(next_at, col(NoticeRow.id))
    return list(session.exec(query.limit(limit)))


def claim(session: Session, notice: NoticeRow, next_at: datetime) -> bool:
    """Claim the next try to post a notice; False if another process has claimed it.

    Unless it is deleted after it was posted, the notice is due again at ``next_at``.
    """
    is_unclaimed = (col(NoticeRow.id) == notice.id) & (col(NoticeRow.tries) == notice.tries)
    claimed = update(NoticeRow).where(is_unclaimed).values(tries=notice.tries + 1, next_at=next_at)
    return bool(count_changed(session.execute(claimed)))


def delete_notice(session: Session, notice: NoticeRow) -> None:
    """Delete a notice that was posted, or that can never be posted."""
    session.execute(delete(NoticeRow).where(col(NoticeRow.id) == notice.id))
