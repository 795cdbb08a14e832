"""Routes of batches: a batch is a table of several calls of one tool in one answer.

Each row is a proposal of its own. People decide the rows one by one or together.
"""

import asyncio
from typing import Annotated

from pydantic import Field

from bot.domain.chat import Address, BatchDecision, PickedRow
from bot.domain.work_limits import CALLS_PER_ANSWER
from bot.web.answers import HttpError, require_or_404
from bot.web.body import Body
from bot.web.channel import CHANNEL_NAME
from bot.web.proposals import STATUS_OF_ANSWER
from bot.web.schemas.batches import ChosenBody, OneBatch
from bot.web.site import Caller, SiteDep, make_router

router = make_router("batches", prefix="/api")

_NO_BATCH_TEXT = "There is no such batch."


class RowBody(Body):
    """A row's id, and its ``seen`` from when the person looked at it, as in the row's proposal.

    A row that has changed since stays open.
    """

    id: Annotated[str, Field(max_length=48)]
    seen: Annotated[str, Field(max_length=64)]


Rows = Annotated[list[RowBody], Field(max_length=CALLS_PER_ANSWER)]


class Deciding(Body):
    """The rows to approve and the rows to decline; other rows stay open."""

    approve: Rows = Field(default_factory=list)
    decline: Rows = Field(default_factory=list)
    reason: Annotated[str, Field(max_length=1000)] | None = None


@router.get("/batches/{batch_id}", summary="A batch: its table, and its rows as proposals")
async def one(batch_id: str, actor: Caller, site: SiteDep) -> OneBatch:
    """A batch has the id of its first proposal."""
    found = require_or_404(await site.channel.proposals.batch(batch_id, actor), _NO_BATCH_TEXT)
    return await asyncio.to_thread(OneBatch.of_found, found)


@router.post("/batches/{batch_id}/decide", summary="Approve some rows, decline others")
async def decide(batch_id: str, actor: Caller, site: SiteDep, body: Deciding) -> ChosenBody:
    """Decide each row as by a press of its own; ``text`` says how many rows were decided.

    A row to approve stays open if it has changed since it was looked at. So does a row that can't be undone:
    it is approved only by a press of its own. ``text`` says which stayed open.
    """
    require_or_404(await site.channel.proposals.batch(batch_id, actor), _NO_BATCH_TEXT)
    approve = tuple(PickedRow(row.id, row.seen) for row in body.approve)
    decline = tuple(PickedRow(row.id, row.seen) for row in body.decline)
    address = Address(CHANNEL_NAME, actor.key)
    choice = BatchDecision(actor, batch_id, approve, decline, body.reason, address=address, by_api=True)
    reply = await site.submit(choice)
    if reply.answer in STATUS_OF_ANSWER:  # the choice as a whole was refused, so no row was decided
        raise HttpError(STATUS_OF_ANSWER[reply.answer], reply.text)
    found = require_or_404(await site.channel.proposals.batch(batch_id, actor), _NO_BATCH_TEXT)
    view = await asyncio.to_thread(OneBatch.of_found, found)
    return ChosenBody.of(**dict(view), text=reply.text, answer=reply.answer)
