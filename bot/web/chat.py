"""The route by which a person says something in a conversation of theirs, or begins one.

A message comes as JSON, or as a form with files, and the response streams the events of the turn that answers
it (SSE). The database has the same messages, so a client that loses the stream can read them there.
"""

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Header, Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError
from starlette.datastructures import UploadFile
from starlette.responses import Response

from bot.domain.attachments import Upload
from bot.domain.chat import Address, Answer, Message
from bot.domain.events import Ending, TurnEnded, TurnFailed
from bot.web.answers import HttpError, TooManyRequests, require_or_404
from bot.web.body import Body
from bot.web.broadcaster import Listener
from bot.web.channel import CHANNEL_NAME, HttpChannel, make_address_key
from bot.web.conversations import NO_CONVERSATION, find_own
from bot.web.schemas.events import AcceptedBody, TurnDone, TurnEvents
from bot.web.site import Caller, SiteDep, Streaming, make_router, make_stream_options
from bot.web.streams import KEEP_ALIVE, format_event, read_listener

router = make_router("conversations", prefix="/api")
_MAX_FORM_FIELDS = 10  # the most fields of a form, apart from files
_RECORDINGS = "recordings"  # the field of a form with the writer's own recordings
_FILE_FIELDS = ("files", _RECORDINGS)
_FILES_TEXT = "one or more files; then the body is `multipart/form-data`, and `message` may be empty"
_RECORDINGS_TEXT = "recordings of what you say for this message: your words, where a model transcribes them"
_FORM_SCHEMA = {
    "type": "object",
    "properties": {
        "message": {"type": "string"},
        "conversation_id": {"type": "string"},
        "files": {
            "type": "array",
            "items": {"type": "string", "format": "binary"},
            "description": _FILES_TEXT,
        },
        "recordings": {
            "type": "array",
            "items": {"type": "string", "format": "binary"},
            "description": _RECORDINGS_TEXT,
        },
    },
}


class Chat(Body):
    """``conversation_id`` continues a conversation; without it a new one begins."""

    message: str = Field(min_length=1)
    conversation_id: str | None = None


class ChatWithFiles(Chat):
    """A message with files may be empty."""

    message: str = ""


_BODY_SCHEMA = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": Chat.model_json_schema()},
            "multipart/form-data": {"schema": _FORM_SCHEMA},
        },
    }
}


class _ChatRequest(NamedTuple):
    """A message and the files that came with it."""

    chat: Chat
    files: tuple[Upload, ...] = ()


async def _read_message(request: Request, site: SiteDep) -> _ChatRequest:
    """Read a message from JSON or a form. Raises RequestValidationError."""
    content_type = request.headers.get("content-type", "application/json").lower()
    if not content_type.startswith("multipart/form-data"):
        body = await request.body() if "json" in content_type else b""
        return _ChatRequest(_validate(Chat, _parse_json(body)))
    async with request.form(max_files=site.file_bounds.max_files, max_fields=_MAX_FORM_FIELDS) as form:
        values = {name: value for name, value in form.items() if name not in _FILE_FIELDS}
        files = [
            Upload(value.filename, await value.read(), spoken=(name == _RECORDINGS))
            for name, value in form.multi_items()
            if name in _FILE_FIELDS and isinstance(value, UploadFile) and value.filename
        ]
    body_type = ChatWithFiles if files else Chat
    return _ChatRequest(_validate(body_type, values), tuple(files))


def _parse_json(body: bytes) -> Any:
    """Return the value of a JSON body, None for an empty one. Raises RequestValidationError."""
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):
        detail = {"type": "json_invalid", "loc": ("body",), "msg": "", "input": None}
        raise RequestValidationError([detail]) from None


def _validate(body_type: type[Chat], values: Any) -> Chat:
    try:
        return body_type.model_validate(values)
    except ValidationError as error:
        details = [{**detail, "loc": ("body", *detail["loc"])} for detail in error.errors()]
        raise RequestValidationError(details) from None


@router.post(
    "/chat",
    summary="Say something; the answer is an SSE stream",
    openapi_extra=_BODY_SCHEMA,
    **make_stream_options(TurnEvents),
)
async def chat(
    actor: Caller,
    chat_request: Annotated[_ChatRequest, Depends(_read_message)],
    site: SiteDep,
    stream_response: Streaming,
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """A second message with the same ``Idempotency-Key`` is not taken in: 409 names the conversation."""
    channel = site.channel
    body, files = chat_request
    if body.conversation_id is not None:
        require_or_404(await find_own(channel, actor, body.conversation_id), NO_CONVERSATION)
    conversation_id = body.conversation_id or secrets.token_hex(8)
    address = Address(CHANNEL_NAME, make_address_key(actor, conversation_id))
    event_id = f"{actor.key}/{idempotency_key or secrets.token_hex(16)}"
    message = Message(address, actor, body.message, event_id, begin=conversation_id, files=files)
    # If the message is refused, the listener is closed here. Otherwise it stays open for the stream.
    with ExitStack() as stack:
        listener = stack.enter_context(channel.broadcaster.listen(address.key))  # before the turn can begin
        reply = await site.submit(message)
        if reply.answer is Answer.DUPLICATE:
            raise HttpError(
                409,
                "This message was received before. Read its conversation for the answer.",
                conversation_id=await channel.conversations.find_by_event(CHANNEL_NAME, event_id),
            )
        if reply.answer is Answer.LATER:
            raise TooManyRequests(reply.text)
        if reply.message_id is None:  # it was not stored, in most cases since it is too large or empty
            raise HttpError(413 if body.message.strip() or files else 422, reply.text)
        open_listener = stack.pop_all()
    accepted = AcceptedBody.of(conversation_id=reply.conversation_id, message_id=reply.message_id)
    answer_events = _until_answered(channel, listener, reply.message_id, conversation_id)

    async def events() -> AsyncIterator[str]:
        with open_listener:
            yield format_event(accepted)
            async for block in answer_events:
                yield block

    return stream_response(events())


async def _until_answered(
    channel: HttpChannel, listener: Listener, message_id: int, conversation_id: str
) -> AsyncIterator[str]:
    """Yield the events of turns up to the end of the turn that answers the message.

    The event of that end may be lost. So after each ``Pace.keep_alive_seconds`` without an event, the
    database is asked whether a turn runs or is still to come. After the second no in a row the stream ends.
    """
    was_answered_at_last_silence = False
    async for item in read_listener(listener, channel.pace.keep_alive_seconds):
        if item is not None:
            was_answered_at_last_silence = False
            if item.console_event:
                yield format_event(item.console_event)
            if isinstance(item.turn_event, TurnEnded | TurnFailed):
                # ``seen``: the newest message that the turn read
                was_read = item.turn_event.seen >= message_id
                # a turn that was stopped before it read the message leaves nothing to wait for
                if was_read or not await channel.conversations.has_open_turn(conversation_id):
                    return
        elif await channel.conversations.has_open_turn(conversation_id):
            yield KEEP_ALIVE
        elif was_answered_at_last_silence:
            answer_id = await channel.conversations.last_answer(conversation_id)
            yield format_event(
                TurnDone(conversation_id=conversation_id, message_id=answer_id, ending=Ending.DONE)
            )
            return
        else:
            was_answered_at_last_silence = True
