"""Routes of conversations: list, read, rename, stop, export and delete them. Each is its owner's alone."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated, TypeVar

from fastapi import Depends, Query
from pydantic import BaseModel, Field
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from bot.domain.chat import Address, Command
from bot.domain.conversations import Conversation, Line
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.tools.signature import NOT_BLANK
from bot.web.answers import HttpError, make_download, require_or_404
from bot.web.body import Before, Body, Limit, format_cursor
from bot.web.channel import CHANNEL_NAME, HttpChannel, make_address_key
from bot.web.schemas import DoneBody, SaidBody
from bot.web.schemas.conversations import (
    ConversationPage,
    ConversationView,
    Export,
    KeptFiles,
    Messages,
    MessageView,
    Team,
)
from bot.web.schemas.events import TurnEvents
from bot.web.schemas.files import Files, FileView
from bot.web.schemas.proposals import Proposals, ProposalView, make_views
from bot.web.site import Caller, SiteDep, Streaming, make_router, make_stream_options
from bot.web.streams import KEEP_ALIVE, LISTENING, format_event, read_listener

router = make_router("conversations", prefix="/api")
T = TypeVar("T")
_EXPORT_BATCH = 500  # messages or proposals that an export writes at a time
NO_CONVERSATION = "There is no such conversation."


class Named(Body):
    title: Annotated[str, Field(min_length=1, max_length=80), NOT_BLANK]


async def find_own(channel: HttpChannel, actor: Actor, conversation_id: str) -> Conversation | None:
    """Return the caller's own conversation; None for any other, and for a deleted one."""
    return await channel.conversations.find_own(
        conversation_id, Address(CHANNEL_NAME, make_address_key(actor, conversation_id))
    )


async def _find_own_conversation(conversation_id: str, actor: Caller, site: SiteDep) -> Conversation:
    return require_or_404(await find_own(site.channel, actor, conversation_id), NO_CONVERSATION)


OwnConversation = Annotated[Conversation, Depends(_find_own_conversation)]
"""The caller's own conversation; for any other the answer is 404."""


@router.get("/conversations", summary="Your conversations, newest first")
async def list_conversations(
    actor: Caller,
    site: SiteDep,
    before: Before,
    limit: Limit = 50,
    q: Annotated[str, Query(max_length=200, description="in its title or in what was said")] = "",
) -> ConversationPage:
    """``next`` is the ``before`` of the next page; null on the last."""
    rows, next_mark = await site.channel.conversations.page(CHANNEL_NAME, actor, limit, before, q.strip())
    views = [ConversationView.of_conversation(*row) for row in rows]
    return ConversationPage(conversations=views, next=format_cursor(next_mark))


@router.patch("/conversations/{conversation_id}", summary="Rename a conversation")
async def rename(conversation: OwnConversation, body: Named, site: SiteDep) -> DoneBody:
    await site.channel.conversations.rename(conversation.id, body.title)
    return DoneBody()


@router.delete("/conversations/{conversation_id}", summary="Delete what was said in a conversation")
async def delete(conversation: OwnConversation, actor: Caller, site: SiteDep) -> DoneBody:
    """Its proposals and their audit rows stay. 409 while a proposal is open: decide or withdraw it first."""
    await site.submit(Command(actor, "stop", "", conversation.address))
    # nothing is deleted while proposals are open
    open_count = await site.channel.conversations.forget_conversation(conversation.id)
    if open_count:
        which = "One of its proposals is open"
        if open_count > 1:
            which = f"{open_count} of its proposals are open"
        raise HttpError(409, f"{which}. Decide or withdraw what is open first.")
    return DoneBody()


async def _limit_exports(actor: Caller, site: SiteDep) -> AsyncIterator[None]:
    with site.export_limit.hold(str(actor)):
        yield


@router.get(
    "/conversations/{conversation_id}/export",
    summary="All of a conversation, as a JSON file",
    response_model=Export,
)
async def export(
    conversation: OwnConversation, actor: Caller, site: SiteDep, _: Annotated[None, Depends(_limit_exports)]
) -> Response:
    """The file has the conversation's messages and proposals, with secrets hidden."""
    channel = site.channel
    transcript, found_proposals = await channel.conversations.read_in_full(conversation.id, actor)
    available_tools = await channel.registry.load_tools()
    open_count = sum(found.proposal.state is State.PROPOSED for found in found_proposals)
    conversation_json = ConversationView.of_conversation(conversation, open_count).model_dump_json()
    head = conversation_json.removesuffix("}")  # lists are added behind its fields
    lines: Sequence[Line] = transcript.lines if transcript else ()

    def make_line_view(line: Line) -> MessageView:
        proposals = transcript.proposals if transcript else {}
        files = transcript.files if transcript else {}
        return MessageView.of_line(line, proposals, available_tools, files)

    async def write_file() -> AsyncIterator[str]:
        yield f'{head}, "messages": ['
        async for part in _dump_in_batches(lines, make_line_view):
            yield part
        yield '], "proposals": ['
        async for part in _dump_in_batches(found_proposals, ProposalView.of_found):
            yield part
        yield "]}"

    headers = {"Content-Disposition": f'attachment; filename="conversation-{conversation.id}.json"'}
    return StreamingResponse(write_file(), media_type="application/json", headers=headers)


async def _dump_in_batches(values: Sequence[T], make_view: Callable[[T], BaseModel]) -> AsyncIterator[str]:
    """Yield the views of values as items of a JSON list, in batches made in a thread."""

    def dump(batch: Sequence[T]) -> str:
        return ", ".join(make_view(value).model_dump_json() for value in batch)

    for start in range(0, len(values), _EXPORT_BATCH):
        part = await asyncio.to_thread(dump, values[start : start + _EXPORT_BATCH])
        yield f", {part}" if start else part


@router.get("/conversations/{conversation_id}/messages", summary="What was said, in order")
async def list_messages(conversation: OwnConversation, site: SiteDep) -> Messages:
    transcript = await site.channel.conversations.transcript(conversation.id)
    available_tools = await site.channel.registry.load_tools()
    return Messages.of_transcript(transcript, available_tools)


@router.get(
    "/conversations/{conversation_id}/proposals", summary="Its proposals and its teammates', oldest first"
)
async def conversation_proposals(conversation: OwnConversation, actor: Caller, site: SiteDep) -> Proposals:
    return Proposals(proposals=await list_visible_proposals(site.channel, actor, conversation.id))


async def list_visible_proposals(
    channel: HttpChannel, actor: Actor, conversation_id: str
) -> list[ProposalView]:
    """Return a conversation's proposals and its teammates' that this person may see, oldest first."""
    return await make_views(await channel.proposals.of_conversation(conversation_id, actor))


@router.get("/files", summary="The newest files of your conversations")
async def files(actor: Caller, site: SiteDep, limit: Limit = 100) -> KeptFiles:
    """Return files that tools made, and output that was too long to show, of conversations you began here."""
    found = await site.channel.conversations.files_of(CHANNEL_NAME, actor, limit)
    return KeptFiles.of(files=found)


@router.get(
    "/conversations/{conversation_id}/files", summary="Long output, files of its tools and of people, by name"
)
async def conversation_files(conversation: OwnConversation, site: SiteDep) -> Files:
    listed = await site.channel.conversations.files(conversation.id)
    return Files(files=[FileView(id=file_id, name=name) for file_id, name in listed])


@router.get(
    "/conversations/{conversation_id}/files/{file_id}",
    summary="One of them, as a text file, or with the bytes that it has",
    response_class=PlainTextResponse,
)
async def conversation_file(conversation: OwnConversation, file_id: str, site: SiteDep) -> Response:
    """The file has an id from the list of the conversation's files."""
    return await make_download(await site.channel.conversations.file(conversation.id, file_id))


@router.get("/conversations/{conversation_id}/team", summary="Its teammates and their status")
async def team(conversation: OwnConversation, site: SiteDep) -> Team:
    return Team.of(team=await site.channel.conversations.team(conversation.id))


@router.get(
    "/conversations/{conversation_id}/events",
    summary="SSE: its turns, as they run",
    **make_stream_options(TurnEvents),
)
async def conversation_events(
    conversation: OwnConversation, site: SiteDep, stream_response: Streaming
) -> Response:
    channel = site.channel

    async def events() -> AsyncIterator[str]:
        with channel.broadcaster.listen(conversation.address.key) as listener:
            yield LISTENING
            async for item in read_listener(listener, channel.pace.keep_alive_seconds):
                if item is None:
                    yield KEEP_ALIVE
                elif item.console_event:
                    yield format_event(item.console_event)

    return stream_response(events())


@router.post("/conversations/{conversation_id}/stop", summary="Stop what the agent is writing")
async def stop(conversation: OwnConversation, actor: Caller, site: SiteDep) -> SaidBody:
    reply = await site.submit(Command(actor, "stop", "", conversation.address))
    return SaidBody(text=reply.text)
