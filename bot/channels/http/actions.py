"""Proposals: listing them, deciding them, and the feed of their changes."""

from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Header
from pydantic import BaseModel, ConfigDict, Field
from sqlmodel import Session
from starlette.responses import JSONResponse, Response

from bot.channels.http.channel import NAME, HttpChannel, key_of
from bot.channels.http.downloads import download
from bot.channels.http.errors import problem
from bot.channels.http.site import Caller, Here, ok
from bot.channels.http.streams import STILL_THERE, sse, streaming
from bot.domain.chat import Address, Answer, Press, Verb
from bot.domain.files import File
from bot.domain.people import Actor
from bot.domain.proposals import Proposal, State
from bot.domain.similarity import Lasting, Rung
from bot.store import audit, outputs, proposals

router = APIRouter(prefix="/api")

_NEWEST_ROW = 2**63 - 1
_PAGE = 200  # how many proposals one answer lists
_SEARCHED = 20_000  # how many it looks through for those this person may see
_STATUS = {
    Answer.REFUSED: 403,
    Answer.UNKNOWN: 404,
    Answer.STALE: 409,
    Answer.INVALID: 422,
}


class Decide(BaseModel):
    """``round`` or ``digest``: what was looked at; the press is refused (409) if it changed since.

    ``arguments`` replace the proposed ones (verbs approve and edit); what was hidden stays what it was.
    ``rung`` and ``lasting`` go with the verb similar: how far the grant reaches, and how long it holds.
    """

    model_config = ConfigDict(extra="forbid")

    round: int | None = None
    digest: str | None = None
    reason: Annotated[str, Field(max_length=1000)] | None = None
    arguments: dict[str, Any] | None = None
    rung: Rung | None = None
    lasting: Lasting | None = None


@router.get("/chat/actions", summary="Proposals you may see, across all channels, newest first")
async def actions(actor: Caller, site: Here, state: State | None = None) -> JSONResponse:
    http = site.channel
    shelf = await http.registry.shelf()
    states = [state] if state else list(State)

    def found(session: Session) -> list[dict[str, Any]]:
        shown: list[dict[str, Any]] = []
        for after in range(0, _SEARCHED, _PAGE):  # others' newer ones must not hide this person's
            page = proposals.in_states(session, states, _PAGE, after=after)
            shown += http.views.visible(session, page, actor, shelf)
            if len(page) < _PAGE or len(shown) >= _PAGE:
                break
        return shown[:_PAGE]

    return ok(proposals=await http.database.read_aside(found))


@router.get("/chat/actions/{proposal_id}", summary="One proposal")
async def action(proposal_id: str, actor: Caller, site: Here) -> JSONResponse:
    shown = await _shown(site.channel, proposal_id, actor)
    return _nothing() if shown is None else ok(proposal=shown)


@router.get("/chat/actions/{proposal_id}/ladder", summary="What approving similar calls may allow")
async def ladder(proposal_id: str, actor: Caller, site: Here) -> JSONResponse:
    """Narrowest first, each in words; empty when this person cannot allow anything here."""
    shown = await _shown(site.channel, proposal_id, actor)
    if shown is None:
        return _nothing()
    rungs = await site.desk.ladder(proposal_id, actor, _at(shown, actor))
    return ok(ladder=[{"rung": rung, "words": words} for rung, words in rungs], lasting=list(Lasting))


@router.get(
    "/chat/actions/{proposal_id}/result", summary="What came of it, whole, as a text file; 404 before its end"
)
async def result(proposal_id: str, actor: Caller, site: Here) -> Response:
    found = await _seen(site.channel, proposal_id, actor)
    if found is None:
        return _nothing()
    told = found.result or found.error
    if not told:
        return problem(404, "It has no result.")
    return await download(File(f"{found.tool_name}-{found.id}.txt", told))


@router.get(
    "/chat/actions/{proposal_id}/files", summary="The files its tool made, and its result if it is long"
)
async def files(proposal_id: str, actor: Caller, site: Here) -> JSONResponse:
    found = await _seen(site.channel, proposal_id, actor)
    if found is None:
        return _nothing()
    kept = await site.channel.database.read(outputs.of_proposal, found)
    return ok(files=[{"id": each.handle, "name": each.file.name} for each in kept])


@router.get("/chat/actions/{proposal_id}/files/{file_id}", summary="One of them, as a text file")
async def file(proposal_id: str, file_id: str, actor: Caller, site: Here) -> Response:
    found = await _seen(site.channel, proposal_id, actor)
    kept = await site.channel.database.read(outputs.of_proposal, found) if found else []
    return await download(next((each.file for each in kept if each.handle == file_id), None))


@router.post("/chat/actions/{proposal_id}/{verb}", summary="Decide: one press")
async def press(
    proposal_id: str, verb: Verb, actor: Caller, site: Here, body: Decide | None = None
) -> JSONResponse:
    """A press that comes too late answers with the proposal as it already is, and changes nothing."""
    before = await _shown(site.channel, proposal_id, actor)
    if before is None:
        return _nothing()
    given = body or Decide()
    reply = await site.take_in(
        Press(
            actor,
            verb,
            proposal_id,
            given.round,
            given.reason,
            given.arguments,
            given.digest,
            address=_at(before, actor),
            rung=given.rung,
            lasting=given.lasting,
        )
    )
    shown = await _shown(site.channel, proposal_id, actor)
    if reply.answer in _STATUS:
        more = {"fields": dict(reply.fields)} if reply.fields else {}
        return problem(_STATUS[reply.answer], reply.text, proposal=shown, **more)
    return ok(proposal=shown, text=reply.text, answer=reply.answer)


@router.get("/events", summary="SSE: every change of a proposal you may see; resumes by Last-Event-ID")
async def changes(
    actor: Caller, site: Here, last_event_id: Annotated[int | None, Header(ge=0, le=_NEWEST_ROW)] = None
) -> Response:
    http = site.channel
    begin = last_event_id if last_event_id is not None else await http.database.read(audit.last_id)
    return streaming(_changes(http, actor, begin))


async def _changes(http: HttpChannel, actor: Actor, seen: int) -> AsyncIterator[str]:
    yield f"id: {seen}\n: listening\n\n"
    quiet = 0.0
    while not http.hub.closed:
        rings = http.bell.rings
        rows = await http.database.read(audit.since, seen)
        newest = {proposal_id: row_id for row_id, proposal_id in rows}
        # in the order of their ids: who comes back after any of them misses nothing and hears none twice
        for proposal_id, row_id in sorted(newest.items(), key=lambda change: change[1]):
            shown = await _shown(http, proposal_id, actor)
            if shown is not None:
                yield f"id: {row_id}\n" + sse({"type": "action_update", "proposal": shown})
                quiet = 0.0
        if rows:
            seen = rows[-1][0]
            continue
        if quiet >= http.pace.quiet:
            quiet = 0.0
            yield STILL_THERE
        quiet += http.pace.feed
        await http.bell.wait(rings, http.pace.feed)


async def _shown(http: HttpChannel, proposal_id: str, actor: Actor) -> dict[str, Any] | None:
    return await http.database.read(http.views.find, proposal_id, actor, await http.registry.shelf())


async def _seen(http: HttpChannel, proposal_id: str, actor: Actor) -> Proposal | None:
    """The proposal itself, for those who may see it."""
    if await _shown(http, proposal_id, actor) is None:
        return None
    return await http.database.read(proposals.get, proposal_id)


def _at(shown: Mapping[str, Any], actor: Actor) -> Address:
    """Where the caller presses: their own conversation of that name, which nobody else can name."""
    return Address(NAME, key_of(actor, shown["conversation_id"]))


def _nothing() -> JSONResponse:
    return problem(404, "There is no such proposal.")
