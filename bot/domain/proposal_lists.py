"""Lists of proposals: the filter, the order, and the place where the next page begins."""

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Self

from bot.domain.proposals import Proposal
from bot.domain.risks import Level


class Order(StrEnum):
    """The order of a list."""

    CHANGED = "changed"  # from the newest change to the oldest
    EXPIRES = "expires"  # from the first to expire to the last


class PageCursor(NamedTuple):
    """The last row of a page, in a list that is ordered by time: the row's time and id."""

    at: datetime
    id: str

    def __str__(self) -> str:
        return f"{self.at.isoformat()}~{self.id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the output of `str`; raises ValueError for any other text."""
        time_text, _, ident = text.partition("~")
        at = datetime.fromisoformat(time_text.replace(" ", "+"))  # a "+" that a client did not escape
        if at.tzinfo is None or not ident.isalnum():
            raise ValueError(f"{text!r} is no place in a list")
        return cls(at, ident)

    @classmethod
    def of(cls, proposal: Proposal, order: Order) -> Self:
        return cls(proposal.expires_at if order is Order.EXPIRES else proposal.updated_at, proposal.id)


class ProposalFilter(NamedTuple):
    """A filter of proposals, and their order; a field that is None matches all."""

    tool: str | None = None
    kind: str | None = None
    level: Level | None = None
    only_own: bool = False  # True: only requests of the person who lists them
    contained_text: str | None = None  # a text in the title, the tool's name or the requester's name
    channel: str | None = None  # the channel of the request
    accounts: frozenset[str] | None = None  # the accounts of the requester
    order: Order = Order.CHANGED
