"""Routes of proposals: list them, look at one, and decide it.

A press is a decision, or another verb such as retry or undo; it is handed to the core like a press in a chat.
"""

import asyncio
from collections.abc import Collection
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field
from starlette.responses import PlainTextResponse, Response

from bot.approvals.lookup.context import CONTEXT_NOT_YOURS_TEXT
from bot.approvals.lookup.proposals import VisibleProposal
from bot.domain.chat import Address, Answer, Press
from bot.domain.files import File
from bot.domain.people import Actor
from bot.domain.proposal_lists import Order, ProposalFilter
from bot.domain.proposal_states import State
from bot.domain.risks import Level
from bot.domain.similarity import GrantAudience, GrantDuration, GrantScope
from bot.domain.verbs import Verb
from bot.web.answers import HttpError, make_download, require_or_404
from bot.web.body import MAX_PAGE_ENTRIES, Before, Body, Limit, format_cursor
from bot.web.channel import CHANNEL_NAME, HttpChannel, make_address_key
from bot.web.schemas.conversations import Messages
from bot.web.schemas.files import Files, FileView
from bot.web.schemas.grants import LadderBody, ReachView, RungView
from bot.web.schemas.proposals import (
    Kind,
    OneProposal,
    PressedBody,
    ProposalPage,
    ProposalView,
    find_conversation_id,
    make_views,
)
from bot.web.schemas.questions import AskedQuestions
from bot.web.site import Caller, LongPoll, SiteDep, Waiting, make_router

router = make_router("proposals", prefix="/api")

Mine = Literal["asked", "decide"]

_RUNNING_STATES = (State.APPROVED, State.EXECUTING)
_NO_PROPOSAL_TEXT = "There is no such proposal."
STATUS_OF_ANSWER = {  # the status of the response to a press that was refused, by the core's answer
    Answer.REFUSED: 403,
    Answer.UNKNOWN: 404,
    Answer.STALE: 409,
    Answer.INVALID: 422,
    Answer.LATER: 429,
}


class Decide(Body):
    """``seen``, ``round`` or ``digest``: what was looked at. If it changed since, the press is refused (409).

    ``digest`` covers tool and arguments, ``seen`` all that the card shows: old values, too.

    With the verb answer, ``reason`` is the answer. ``arguments`` replace the proposed ones (verbs approve and
    edit); arguments that were hidden stay unchanged. ``rung``, ``lasting`` and ``reach`` go with the verb
    similar: which calls the grant allows, how long it holds, and whose calls it lets run where.
    """

    round: int | None = None
    digest: str | None = None
    seen: str | None = None
    reason: Annotated[str, Field(max_length=1000)] | None = None
    arguments: dict[str, Any] | None = None
    rung: GrantScope | None = None
    lasting: GrantDuration | None = None
    reach: GrantAudience = GrantAudience.HERE


@router.get("/proposals", summary="Proposals you may see, across all channels")
async def listed(
    actor: Caller,
    site: SiteDep,
    before: Before,
    state: Annotated[list[State] | None, Query(description="repeat it for several")] = None,
    tool: Annotated[str | None, Query(max_length=200)] = None,
    kind: Kind | None = None,
    risk: Level | None = None,
    mine: Annotated[Mine | None, Query(description="only what you asked for, or may decide")] = None,
    q: Annotated[str, Query(max_length=200, description="in its title, its tool or who asked")] = "",
    channel: Annotated[str | None, Query(max_length=40, description="where it was asked")] = None,
    requester: Annotated[
        str | None, Query(max_length=200, description="who asked: an account, and those linked with it")
    ] = None,
    order: Annotated[Order, Query(description="newest change, or what expires first")] = Order.CHANGED,
    limit: Limit = MAX_PAGE_ENTRIES,
) -> ProposalPage:
    """``next`` is the ``before`` of the next page; null on the last. A page may be short before the last."""
    states = state or list(State)
    if mine == "decide" and not state:
        states = [State.PROPOSED]
    accounts = None if requester is None else await site.channel.admin.accounts_of(requester)
    only = ProposalFilter(
        tool=tool,
        kind=kind,
        level=risk,
        only_own=mine == "asked",
        contained_text=q.strip() or None,
        channel=channel,
        accounts=accounts,
        order=order,
    )
    found, next_mark = await site.channel.proposals.page(
        actor, states, limit, before, only, to_decide=mine == "decide"
    )
    return ProposalPage(proposals=await make_views(found), next=format_cursor(next_mark))


@router.get("/proposals/{proposal_id}", summary="One proposal; `wait` for its end")
async def one(proposal_id: str, actor: Caller, site: SiteDep, poll: Waiting) -> OneProposal:
    """With ``wait``, the answer comes once the proposal was decided and has run, or after ``wait`` seconds.

    They are 60 at most.
    """
    ongoing = (State.PROPOSED, *_RUNNING_STATES)
    found = await _wait_for_end(site.channel, proposal_id, actor, poll, ongoing)
    return OneProposal(proposal=ProposalView.of_found(require_or_404(found, _NO_PROPOSAL_TEXT)))


@router.get("/proposals/{proposal_id}/ladder", summary="What approving similar calls may allow")
async def ladder(proposal_id: str, actor: Caller, site: SiteDep) -> LadderBody:
    """Return which calls may be allowed and whose, narrowest first, each in words.

    ``rung`` and ``reach`` of a press with the verb similar take these values. Both lists are empty when this
    person can't allow any.
    """
    found = require_or_404(await site.channel.proposals.find(proposal_id, actor), _NO_PROPOSAL_TEXT)
    address = _find_address(found, actor)
    scopes = await site.lookup.ladder(proposal_id, actor, address)
    audiences = await site.lookup.reaches(proposal_id, actor, address)
    return LadderBody(
        ladder=[RungView(rung=scope, words=words) for scope, words in scopes],
        reaches=[ReachView(reach=audience, words=words) for audience, words in audiences],
        lasting=list(GrantDuration),
    )


@router.get(
    "/proposals/{proposal_id}/questions", summary="What was asked about it within a day, with the answers"
)
async def questions(proposal_id: str, actor: Caller, site: SiteDep) -> AskedQuestions:
    found = await site.channel.proposals.questions(proposal_id, actor)
    return AskedQuestions.of(questions=require_or_404(found, _NO_PROPOSAL_TEXT))


@router.get("/proposals/{proposal_id}/context", summary="What led to it, for who may decide it")
async def context(proposal_id: str, actor: Caller, site: SiteDep) -> Messages:
    """Return the turn that the proposal came from: what the person wrote, and what the agent read and said.

    It is recorded, once for each person, that they read it.
    """
    channel = site.channel
    require_or_404(await channel.proposals.find(proposal_id, actor), _NO_PROPOSAL_TEXT)
    lines = await channel.proposals.context(proposal_id, actor)
    if lines is None:
        raise HttpError(403, CONTEXT_NOT_YOURS_TEXT)
    return await asyncio.to_thread(Messages.of_redacted_lines, lines)


@router.get(
    "/proposals/{proposal_id}/result",
    summary="Its result in full, as a text file; 404 before its end",
    response_class=PlainTextResponse,
)
async def result(proposal_id: str, actor: Caller, site: SiteDep) -> Response:
    found = require_or_404(await site.channel.proposals.find(proposal_id, actor), _NO_PROPOSAL_TEXT)
    proposal = found.proposal
    text = require_or_404(proposal.result or proposal.error or None, "It has no result.")
    return await make_download(File(f"{proposal.tool_name}-{proposal.id}.txt", text))


@router.get("/proposals/{proposal_id}/files", summary="The files its tool made, and its result if it is long")
async def files(proposal_id: str, actor: Caller, site: SiteDep) -> Files:
    found_files = require_or_404(await site.channel.proposals.files(proposal_id, actor), _NO_PROPOSAL_TEXT)
    return Files(files=[FileView(id=handle, name=found_file.name) for handle, found_file in found_files])


@router.get(
    "/proposals/{proposal_id}/files/{file_id}",
    summary="One of them, as a text file",
    response_class=PlainTextResponse,
)
async def file(proposal_id: str, file_id: str, actor: Caller, site: SiteDep) -> Response:
    found_files = await site.channel.proposals.files(proposal_id, actor) or []
    return await make_download(dict(found_files).get(file_id))


@router.post("/proposals/{proposal_id}/{verb}", summary="Decide: one press")
async def press(
    proposal_id: str, verb: Verb, actor: Caller, site: SiteDep, poll: Waiting, body: Decide | None = None
) -> PressedBody:
    """A press that comes too late is answered with the proposal as it already is, and changes nothing.

    An approved call may still be running when the answer comes: ``wait`` up to 60 seconds for its end. If the
    proposal was edited since it was made, say with ``seen``, ``round`` or ``digest`` which content you
    approve. A ``digest`` stays the same if only the old values changed, ``seen`` does not.
    """
    decision = body or Decide()
    channel = site.channel
    generation = channel.notifier.generation  # read before the press, so that no change after it is missed
    reply = await site.submit(
        Press(
            actor=actor,
            verb=verb,
            proposal_id=proposal_id,
            round=decision.round,
            reason=decision.reason,
            arguments=decision.arguments,
            digest=decision.digest,
            address=Address(CHANNEL_NAME, actor.key),
            rung=decision.rung,
            lasting=decision.lasting,
            reach=decision.reach,
            seen=decision.seen,
            by_api=True,
        )
    )
    if reply.answer in STATUS_OF_ANSWER:
        poll = poll.without_wait()  # refused, so there is no end to wait for
    if poll.seconds and any(proposal.state in _RUNNING_STATES for proposal in reply.proposals):
        # the next change is in most cases the end of the run, so the rows are not read before
        await channel.notifier.wait(generation, min(poll.seconds, channel.pace.poll_seconds))
    found = await _wait_for_end(channel, proposal_id, actor, poll, _RUNNING_STATES)
    # a person who may not see it may not decide it
    view = ProposalView.of_found(require_or_404(found, _NO_PROPOSAL_TEXT))
    if reply.answer in STATUS_OF_ANSWER:
        fields = {"fields": dict(reply.fields)} if reply.fields else {}
        raise HttpError(STATUS_OF_ANSWER[reply.answer], reply.text, proposal=view, **fields)
    return PressedBody.of(proposal=view, text=reply.text, answer=reply.answer)


async def _wait_for_end(
    channel: HttpChannel,
    proposal_id: str,
    actor: Actor,
    poll: LongPoll,
    ongoing: Collection[State],
) -> VisibleProposal | None:
    """Return the proposal once its state is no longer ``ongoing``, or when the wait is over."""

    async def read() -> VisibleProposal | None:
        return await channel.proposals.find(proposal_id, actor)

    return await poll.poll(read, lambda found: found.proposal.state not in ongoing)


def _find_address(found: VisibleProposal, actor: Actor) -> Address:
    return Address(CHANNEL_NAME, make_address_key(actor, find_conversation_id(found)))
