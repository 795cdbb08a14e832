"""The rows of a batch that a person has picked before a press, and the pages of its table.

A platform whose chats have a button for each row shows the table page by page. `Picked` are the picked rows;
channels without a state of their own pack them into the button.
"""

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from bot.domain.cards import Batch, BatchRow, Card
from bot.domain.chat import Address, BatchDecision, PickedRow
from bot.domain.people import Actor

ROWS_PER_PAGE = 10
"""The number of rows on one page of a table, in chats that have a button for each row to pick."""


@dataclass(frozen=True, slots=True)
class Picked:
    """The picked rows of a batch. Packed for a button, 100 rows take about 17 characters."""

    positions: frozenset[int]  # from 0

    @classmethod
    def all_of(cls, card: Card) -> Self:
        """Return every row that may be picked: it waits for a decision, and can be undone."""
        rows = enumerate(card.rows)
        return cls(
            frozenset(position for position, row in rows if row.card.pending and not row.needs_own_decision)
        )

    def toggle(self, position: int) -> "Picked":
        return Picked(self.positions ^ {position})

    def split_rows(self, card: Card) -> tuple[list[Card], list[Card]]:
        """Return the cards of the picked rows, and of the other rows that may be picked."""
        open_positions = Picked.all_of(card).positions
        picked = [card.rows[position].card for position in sorted(open_positions & self.positions)]
        others = [card.rows[position].card for position in sorted(open_positions - self.positions)]
        return picked, others

    def make_decision(
        self,
        card: Card,
        actor: Actor,
        round_: int | None,
        address: Address | None,
        *,
        declines: bool,
        ref: str | None = None,
    ) -> BatchDecision:
        """Build the `BatchDecision` of a press: approve these rows, and with ``declines`` decline the others.

        ``round_`` is that of the batch's card when it was pressed; ``ref`` is its message.
        """
        picked, others = self.split_rows(card)
        approve = tuple(PickedRow(row.proposal_id, round=row.round) for row in picked)
        decline = tuple(PickedRow(row.proposal_id, round=row.round) for row in others if declines)
        return BatchDecision(
            actor, card.proposal_id, approve, decline, round=round_, address=address, ref=ref
        )

    def pack(self) -> str:
        """Return URL-safe base64 of a number in which bit N stands for row N."""
        bits = sum(1 << position for position in self.positions)
        packed = base64.urlsafe_b64encode(bits.to_bytes(bits.bit_length() // 8 + 1, "little"))
        return packed.decode().rstrip("=")

    @classmethod
    def parse(cls, packed: str) -> Self:
        """Parse the output of `pack`. Raises ValueError for anything else."""
        raw = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        bits = int.from_bytes(raw, "little")
        return cls(frozenset(position for position in range(bits.bit_length()) if bits >> position & 1))


class BatchPage(NamedTuple):
    """One page of the table of a batch."""

    card: Card  # the card of the batch with only the rows of this page
    rows: Sequence[tuple[int, BatchRow]]  # these rows, each with its position in the batch
    page_count: int  # the number of pages


def page_of(card: Card, number: int) -> BatchPage:
    """Return the page of this number, counted from 0; a number past the last page means the last page."""
    page_count = max(1, math.ceil(len(card.rows) / ROWS_PER_PAGE))
    start = ROWS_PER_PAGE * min(number, page_count - 1)
    rows = card.rows[start : start + ROWS_PER_PAGE]
    page_card = replace(card, batch=Batch(rows, first_number=start + 1))
    return BatchPage(page_card, list(enumerate(rows, start)), page_count)


def format_split_label(approve: int, decline: int) -> str:
    """Format the label of a button that decides some rows, such as ``Approve 37, decline 3``."""
    counts = {"approve": approve, "decline": decline}
    words = ", ".join(f"{verb} {count}" for verb, count in counts.items() if count)
    return words[:1].upper() + words[1:]
