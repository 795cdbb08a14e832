"""The REST and SSE interface, and the console's page. What each event and field means is on ``/docs``."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel, ConfigDict, Field
from sqlmodel import Session, text
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute
from swagger_ui_bundle import swagger_ui_path

from bot.channels.http import views
from bot.channels.http.auth import Doorkeeper
from bot.channels.http.channel import FEED_SECONDS, NAME, HttpChannel, key_of
from bot.channels.http.errors import install, problem
from bot.channels.http.hub import Listener
from bot.channels.http.limits import Limits
from bot.domain.chat import Address, Answer, Command, Message, Press, Reply, Verb
from bot.domain.conversations import Conversation
from bot.domain.events import TurnEnded, TurnFailed
from bot.domain.people import Actor
from bot.domain.proposals import State
from bot.store import audit, conversations, proposals

_STATIC = Path(__file__).parent / "static"
_QUIET_SECONDS = 15.0  # a comment line this often keeps proxies from closing a silent stream
_STATUS = {
    Answer.REFUSED: 403,
    Answer.UNKNOWN: 404,
    Answer.STALE: 409,
    Answer.INVALID: 422,
}


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Chat(_Body):
    """``conversation_id`` continues a conversation; without it a new one begins."""

    message: str = Field(min_length=1)
    conversation_id: str | None = None


class Decide(_Body):
    """``round`` or ``digest``: what was looked at; the press is refused (409) if it changed since."""

    round: int | None = None
    digest: str | None = None
    reason: str | None = Field(None, max_length=1000)
    arguments: dict[str, Any] | None = None


def create(
    channel: HttpChannel,
    doorkeeper: Doorkeeper,
    *,
    model_name: str,
    demo: bool,
    more_routes: Sequence[BaseRoute] = (),
) -> FastAPI:
    """Build the ASGI application over a channel that is started elsewhere."""
    app = FastAPI(title="Nod", version="1", docs_url=None, redoc_url=None)
    install(app)
    app.add_middleware(Limits)
    app.router.routes.extend(more_routes)
    database, registry, hub = channel.database, channel.registry, channel.hub

    def caller(request: Request) -> Actor:
        return doorkeeper(request)

    Caller = Annotated[Actor, Depends(caller)]  # noqa: N806 - a type

    async def take_in(incoming: Message | Press | Command) -> Reply:
        if channel.inbox is None:
            raise RuntimeError("the channel was not started")
        return await channel.inbox(incoming)

    async def own(actor: Actor, conversation_id: str) -> Conversation | None:
        found = await database.read(conversations.get_conversation, conversation_id)
        if found is None or found.address != Address(NAME, key_of(actor, conversation_id)):
            return None
        return found

    no_conversation = problem(404, "There is no such conversation.")

    @app.post("/api/chat", summary="Say something; the answer is an SSE stream")
    async def chat(
        body: Chat, actor: Caller, idempotency_key: Annotated[str | None, Header(max_length=200)] = None
    ) -> Response:
        if body.conversation_id is not None and await own(actor, body.conversation_id) is None:
            return no_conversation
        conversation_id = body.conversation_id or secrets.token_hex(8)
        address = Address(NAME, key_of(actor, conversation_id))
        event_id = f"{actor.key}/{idempotency_key or secrets.token_hex(16)}"
        message = Message(address, actor, body.message, event_id, begin=conversation_id)
        listening = hub.listen(address.key)
        listener = listening.__enter__()
        try:
            reply = await take_in(message)
            if reply.answer is Answer.DUPLICATE:
                return problem(
                    409, "This message was taken in already; read its conversation for the answer."
                )
            if reply.message_id is None:
                return problem(413 if len(body.message) > 1000 else 422, reply.text)  # noqa: PLR2004
        except BaseException:
            listening.__exit__(None, None, None)
            raise

        async def events() -> AsyncIterator[str]:
            try:
                yield _sse(
                    {
                        "type": "accepted",
                        "conversation_id": reply.conversation_id,
                        "message_id": reply.message_id,
                    }
                )
                async for line in _until_answered(listener, reply.message_id or 0, conversation_id):
                    yield line
            finally:
                listening.__exit__(None, None, None)

        return _stream(events())

    async def _until_answered(
        listener: Listener, message_id: int, conversation_id: str
    ) -> AsyncIterator[str]:
        while True:
            try:
                event, payload = await asyncio.wait_for(listener.get(), _QUIET_SECONDS)
            except TimeoutError:
                if await database.read(conversations.take_up, conversation_id) is None:
                    yield _sse({"type": "done", "ending": "done", "conversation_id": conversation_id})
                    return
                yield ": still there\n\n"
                continue
            yield _sse(payload)
            if isinstance(event, TurnEnded | TurnFailed) and event.seen >= message_id:
                return

    @app.get("/api/chat/conversations", summary="Your conversations, newest first")
    async def list_conversations(actor: Caller) -> JSONResponse:
        return _ok(conversations=await database.read(_conversations, actor))

    @app.get("/api/chat/conversations/{conversation_id}/messages", summary="What was said, in order")
    async def messages(conversation_id: str, actor: Caller) -> JSONResponse:
        if await own(actor, conversation_id) is None:
            return no_conversation
        transcript = await database.read(conversations.read_transcript, conversation_id)
        return _ok(messages=views.messages(transcript) if transcript else [])

    @app.get("/api/chat/conversations/{conversation_id}/proposals", summary="Its proposals, oldest first")
    async def conversation_proposals(conversation_id: str, actor: Caller) -> JSONResponse:
        if await own(actor, conversation_id) is None:
            return no_conversation
        shelf = await registry.shelf()

        def found(session: Session) -> list[dict[str, Any]]:
            of_conversation = proposals.of_conversation(session, conversation_id)
            return channel.views.visible(session, of_conversation, actor, shelf)

        return _ok(proposals=await database.read(found))

    @app.get("/api/chat/conversations/{conversation_id}/events", summary="SSE: its turns, as they run")
    async def conversation_events(conversation_id: str, actor: Caller) -> Response:
        if await own(actor, conversation_id) is None:
            return no_conversation

        async def events() -> AsyncIterator[str]:
            with hub.listen(key_of(actor, conversation_id)) as listener:
                yield ": listening\n\n"
                while True:
                    try:
                        _, payload = await asyncio.wait_for(listener.get(), _QUIET_SECONDS)
                        yield _sse(payload)
                    except TimeoutError:
                        yield ": still there\n\n"

        return _stream(events())

    @app.post("/api/chat/conversations/{conversation_id}/stop", summary="Stop what the agent is writing")
    async def stop(conversation_id: str, actor: Caller) -> JSONResponse:
        if await own(actor, conversation_id) is None:
            return no_conversation
        address = Address(NAME, key_of(actor, conversation_id))
        reply = await take_in(Command(actor, "stop", "", address))
        return _ok(text=reply.text)

    @app.get("/api/chat/actions", summary="Proposals you may see, across all channels, newest first")
    async def actions(actor: Caller, state: State | None = None) -> JSONResponse:
        shelf = await registry.shelf()
        states = [state] if state else list(State)

        def found(session: Session) -> list[dict[str, Any]]:
            return channel.views.visible(session, proposals.in_states(session, states), actor, shelf)

        return _ok(proposals=await database.read(found))

    @app.get("/api/chat/actions/{proposal_id}", summary="One proposal")
    async def action(proposal_id: str, actor: Caller) -> JSONResponse:
        shown = await database.read(channel.views.find, proposal_id, actor, await registry.shelf())
        if shown is None:
            return problem(404, "There is no such proposal.")
        return _ok(proposal=shown)

    @app.post("/api/chat/actions/{proposal_id}/{verb}", summary="Decide: one press")
    async def press(proposal_id: str, verb: Verb, actor: Caller, body: Decide | None = None) -> JSONResponse:
        shelf = await registry.shelf()
        if await database.read(channel.views.find, proposal_id, actor, shelf) is None:
            return problem(404, "There is no such proposal.")
        given = body or Decide()
        reply = await take_in(
            Press(actor, verb, proposal_id, given.round, given.reason, given.arguments, given.digest)
        )
        shown = await database.read(channel.views.find, proposal_id, actor, shelf)
        if reply.answer in _STATUS:
            more = {"fields": dict(reply.fields)} if reply.fields else {}
            return problem(_STATUS[reply.answer], reply.text, proposal=shown, **more)
        return _ok(proposal=shown, text=reply.text, answer=reply.answer)

    @app.get("/api/events", summary="SSE: every change of a proposal you may see; resumes by Last-Event-ID")
    async def changes(
        actor: Caller, last_event_id: Annotated[int | None, Header()] = None
    ) -> StreamingResponse:
        begin = last_event_id if last_event_id is not None else await database.read(audit.last_id)
        return _stream(_changes(actor, begin))

    async def _changes(actor: Actor, seen: int) -> AsyncIterator[str]:
        yield f"id: {seen}\n: listening\n\n"
        quiet = 0.0
        while True:
            rings = channel.bell.rings
            shelf = await registry.shelf()
            rows = await database.read(audit.since, seen)
            newest = {proposal_id: row_id for row_id, proposal_id in rows}
            for proposal_id, row_id in newest.items():
                shown = await database.read(channel.views.find, proposal_id, actor, shelf)
                if shown is not None:
                    yield f"id: {row_id}\n" + _sse({"type": "action_update", "proposal": shown})
                    quiet = 0.0
            seen = rows[-1][0] if rows else seen
            quiet += FEED_SECONDS
            if quiet > _QUIET_SECONDS:
                quiet = 0.0
                yield ": still there\n\n"
            await channel.bell.wait(rings, FEED_SECONDS)

    @app.get("/api/me", summary="Who you are here, and who answers")
    async def me(actor: Caller) -> JSONResponse:
        return _ok(name=actor.label, model=model_name, demo=demo)

    @app.get("/healthz", summary="The process is alive")
    async def healthz() -> JSONResponse:
        return _ok()

    @app.get("/readyz", summary="It can do its work: started, and the database answers")
    async def readyz() -> JSONResponse:
        if channel.inbox is None:
            return problem(503, "starting")
        await database.read(lambda session: session.execute(text("SELECT 1")).scalar())
        return _ok()

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return get_swagger_ui_html(
            openapi_url="/openapi.json",
            title="Nod: the HTTP interface",
            swagger_js_url="/docs/static/swagger-ui-bundle.js",
            swagger_css_url="/docs/static/swagger-ui.css",
            swagger_favicon_url="/docs/static/favicon-32x32.png",
        )

    @app.get("/", include_in_schema=False)
    async def console() -> FileResponse:
        return FileResponse(_STATIC / "index.html")

    app.mount("/docs/static", StaticFiles(directory=swagger_ui_path))
    app.mount("/static", StaticFiles(directory=_STATIC))
    return app


def _conversations(session: Session, actor: Actor) -> list[dict[str, Any]]:
    found = conversations.conversations_of(session, NAME, str(actor))
    counts = conversations.open_counts(session, [c.id for c in found])
    return [views.conversation(c, counts.get(c.id, 0)) for c in found]


def _ok(**more: Any) -> JSONResponse:
    return JSONResponse({"ok": True, **more})


def _sse(payload: dict[str, Any]) -> str:
    return f"data: {json.dumps(payload, ensure_ascii=False)}\n\n"


def _stream(events: AsyncIterator[str]) -> StreamingResponse:
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)
