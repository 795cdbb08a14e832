"""Saying something and reading what was said: the routes of conversations, each its owner's alone."""

import secrets
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Annotated, Any

from fastapi import APIRouter, Header
from pydantic import BaseModel, ConfigDict, Field
from sqlmodel import Session
from starlette.responses import JSONResponse, Response

from bot.channels.http import views
from bot.channels.http.channel import NAME, HttpChannel, key_of
from bot.channels.http.downloads import download
from bot.channels.http.errors import problem
from bot.channels.http.hub import Listener
from bot.channels.http.site import Caller, Here, ok
from bot.channels.http.streams import STILL_THERE, heard, sse, streaming
from bot.domain.chat import Address, Answer, Command, Message
from bot.domain.conversations import Conversation
from bot.domain.events import TurnEnded, TurnFailed
from bot.domain.people import Actor
from bot.store import conversations, messages, outputs, proposals, teams, turns

router = APIRouter(prefix="/api/chat")


class Chat(BaseModel):
    """``conversation_id`` continues a conversation; without it a new one begins."""

    model_config = ConfigDict(extra="forbid")

    message: str = Field(min_length=1)
    conversation_id: str | None = None


def _nothing() -> JSONResponse:
    return problem(404, "There is no such conversation.")


async def _own(http: HttpChannel, actor: Actor, conversation_id: str) -> Conversation | None:
    found = await http.database.read(conversations.get_conversation, conversation_id)
    if found is None or found.address != Address(NAME, key_of(actor, conversation_id)):
        return None
    return found


@router.post("", summary="Say something; the answer is an SSE stream")
async def chat(
    body: Chat,
    actor: Caller,
    site: Here,
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """A second message with the same ``Idempotency-Key`` is not taken in (409 names the conversation)."""
    http = site.channel
    if body.conversation_id is not None and await _own(http, actor, body.conversation_id) is None:
        return _nothing()
    conversation_id = body.conversation_id or secrets.token_hex(8)
    address = Address(NAME, key_of(actor, conversation_id))
    event_id = f"{actor.key}/{idempotency_key or secrets.token_hex(16)}"
    message = Message(address, actor, body.message, event_id, begin=conversation_id)
    with ExitStack() as stack:
        listener = stack.enter_context(http.hub.listen(address.key))  # before the turn can begin to speak
        reply = await site.take_in(message)
        if reply.answer is Answer.DUPLICATE:
            return problem(
                409,
                "This message was taken in already; read its conversation for the answer.",
                conversation_id=await http.database.read(messages.of_event, NAME, event_id),
            )
        if reply.message_id is None:
            return problem(413 if body.message.strip() else 422, reply.text)
        listening = stack.pop_all()
    accepted = {
        "type": "accepted",
        "conversation_id": reply.conversation_id,
        "message_id": reply.message_id,
    }
    answered = _until_answered(http, listener, reply.message_id, conversation_id)

    async def events() -> AsyncIterator[str]:
        with listening:
            yield sse(accepted)
            async for line in answered:
                yield line

    return streaming(events())


async def _until_answered(
    http: HttpChannel, listener: Listener, message_id: int, conversation_id: str
) -> AsyncIterator[str]:
    """Everything of the turns up to the end of the one that took the message in."""

    async def over() -> bool:
        return await http.database.read(turns.take_up, conversation_id) is None

    async for item in heard(listener, http.pace.quiet):
        if item is not None:
            event, payload = item
            yield sse(payload)
            # a turn that was stopped before it read the message leaves nothing to wait for
            if isinstance(event, TurnEnded | TurnFailed) and (event.seen >= message_id or await over()):
                return
        elif await over():
            yield sse({"type": "done", "conversation_id": conversation_id, "ending": "done"})
            return
        else:
            yield STILL_THERE


@router.get("/conversations", summary="Your conversations, newest first")
async def list_conversations(actor: Caller, site: Here) -> JSONResponse:
    def found(session: Session) -> list[dict[str, Any]]:
        mine = conversations.conversations_of(session, NAME, str(actor))
        counts = conversations.open_counts(session, [c.id for c in mine])
        return [views.conversation(c, counts.get(c.id, 0)) for c in mine]

    return ok(conversations=await site.channel.database.read(found))


@router.get("/conversations/{conversation_id}/messages", summary="What was said, in order")
async def list_messages(conversation_id: str, actor: Caller, site: Here) -> JSONResponse:
    if await _own(site.channel, actor, conversation_id) is None:
        return _nothing()
    transcript = await site.channel.database.read(conversations.read_transcript, conversation_id)
    return ok(messages=views.messages(transcript) if transcript else [])


@router.get(
    "/conversations/{conversation_id}/proposals", summary="Its proposals and its teammates', oldest first"
)
async def conversation_proposals(conversation_id: str, actor: Caller, site: Here) -> JSONResponse:
    http = site.channel
    if await _own(http, actor, conversation_id) is None:
        return _nothing()
    shelf = await http.registry.shelf()

    def found(session: Session) -> list[dict[str, Any]]:
        team = [each.id for each in teams.of_lead(session, conversation_id)]
        each_ones = [proposals.of_conversation(session, ident) for ident in (conversation_id, *team)]
        return http.views.visible(session, [p for found in each_ones for p in found], actor, shelf)

    return ok(proposals=await http.database.read(found))


@router.get("/conversations/{conversation_id}/files", summary="Long output and files of its tools, by name")
async def conversation_files(conversation_id: str, actor: Caller, site: Here) -> JSONResponse:
    if await _own(site.channel, actor, conversation_id) is None:
        return _nothing()
    listed = await site.channel.database.read(outputs.listed, conversation_id)
    return ok(files=[{"id": handle, "name": name} for handle, name in listed])


@router.get("/conversations/{conversation_id}/files/{file_id}", summary="One of them, as a text file")
async def conversation_file(conversation_id: str, file_id: str, actor: Caller, site: Here) -> Response:
    if await _own(site.channel, actor, conversation_id) is None:
        return _nothing()
    return await download(await site.channel.database.read(outputs.file, conversation_id, file_id))


@router.get("/conversations/{conversation_id}/team", summary="Its teammates, and how each stands")
async def team(conversation_id: str, actor: Caller, site: Here) -> JSONResponse:
    if await _own(site.channel, actor, conversation_id) is None:
        return _nothing()
    found = await site.channel.database.read(teams.board, conversation_id)
    return ok(team=views.board(found))


@router.get("/conversations/{conversation_id}/events", summary="SSE: its turns, as they run")
async def conversation_events(conversation_id: str, actor: Caller, site: Here) -> Response:
    http = site.channel
    if await _own(http, actor, conversation_id) is None:
        return _nothing()

    async def events() -> AsyncIterator[str]:
        with http.hub.listen(key_of(actor, conversation_id)) as listener:
            yield ": listening\n\n"
            async for item in heard(listener, http.pace.quiet):
                yield sse(item[1]) if item else STILL_THERE

    return streaming(events())


@router.post("/conversations/{conversation_id}/stop", summary="Stop what the agent is writing")
async def stop(conversation_id: str, actor: Caller, site: Here) -> JSONResponse:
    if await _own(site.channel, actor, conversation_id) is None:
        return _nothing()
    reply = await site.take_in(Command(actor, "stop", "", Address(NAME, key_of(actor, conversation_id))))
    return ok(text=reply.text)
