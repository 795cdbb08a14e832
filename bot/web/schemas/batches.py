"""Bodies about batches: several calls of one tool in one answer, as one table."""

from typing import Annotated, Literal, Self

from pydantic import AliasPath, Field

from bot.approvals.lookup.proposals import VisibleBatch
from bot.domain.chat import Answer
from bot.domain.proposal_states import State
from bot.web.schemas import DoneBody, Time, View
from bot.web.schemas.cards import AnnotationView, ButtonView, ChangeBody
from bot.web.schemas.proposals import ProposalView


class RowView(View):
    """A row of a batch: one of its proposals."""

    id: str = Field(description="the id of the proposal")
    seen: str = Field(description="a hash of all that its card shows; send it back with a press")
    about: str = Field(description="its title without the beginning that all titles share")
    alone: bool = Field(description="it can't be undone, so it is never approved with others")
    may_decide: bool = Field(description="whether you may decide it")
    changes: list[ChangeBody] = Field(description="the fields in which the rows differ")
    notes: list[str]
    fault: str = Field(description="why it did not succeed; else empty")


class _BatchCardFields(View):
    """Fields of a batch as its card shows them."""

    title: str
    size: Annotated[int, Field(validation_alias=AliasPath("group", "size"))]
    open: Annotated[int, Field(validation_alias=AliasPath("group", "open_count"))]
    round: int
    state: State
    outcome: str
    deciders: str
    warning: str
    undo: Annotated[str, Field(validation_alias="undo_sentence")]
    notes: list[str]
    acts_as: str = Field(description="the account in whose name all rows run; empty: Nod's own, or several")
    annotations: list[AnnotationView]
    expires_at: Time


class BatchView(_BatchCardFields):
    """Several calls of one tool in one answer, as a table."""

    id: str
    same: list[ChangeBody] = Field(description="the fields that are the same in all rows")
    buttons: list[ButtonView] = Field(
        description="the buttons for all rows; press them on any of its proposals"
    )
    rows: list[RowView]

    @classmethod
    def of_found(cls, found: VisibleBatch) -> Self:
        card = found.card
        return cls(
            **dict(_BatchCardFields.model_validate(card)),
            id=found.rows[0].proposal.card_id,
            same=[ChangeBody.of_change(card, change) for change in card.shown_fields],
            buttons=[ButtonView.model_validate(card.button(verb)) for verb in card.verbs],
            rows=[
                RowView(
                    id=visible.proposal.id,
                    seen=visible.proposal.seen,
                    about=row.about,
                    alone=row.needs_own_decision,
                    may_decide=visible.may_decide,
                    changes=[ChangeBody.of_change(row.card, change) for change in row.fields],
                    notes=list(row.notes),
                    fault=row.fault,
                )
                for visible, row in zip(found.rows, card.rows, strict=True)
            ],
        )


class OneBatch(DoneBody):
    """A batch, and each of its rows as a proposal."""

    batch: BatchView
    proposals: list[ProposalView]

    @classmethod
    def of_found(cls, found: VisibleBatch) -> Self:
        proposals = [ProposalView.of_found(row) for row in found.rows]
        return cls(batch=BatchView.of_found(found), proposals=proposals)


class ChosenBody(OneBatch):
    """A batch after a choice of rows."""

    text: str = Field(
        description="how many rows were approved and how many declined, and why the others were not"
    )
    answer: Literal[Answer.ACCEPTED, Answer.ALREADY]
