"""``/agui``: front ends that speak AG-UI run conversations here, and people answer its interrupts.

An interrupt's answer is a press like any other: through the same gate, with the same checks. A thread is a
conversation of the caller's; what a front end sends of its history, state, tools and context is not read,
only what people wrote since. What a run says is in ``stream.py``.
"""

import base64
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from ag_ui.core import BaseEvent, Context, ResumeEntry, RunAgentInput, TextPart, Tool, UserMessage
from ag_ui.core import Message as AguiMessage
from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError, model_validator
from starlette.responses import Response

from bot.approvals.lookup.proposals import Seen
from bot.domain.attachments import Upload
from bot.domain.chat import Address, Answer, Message, Press
from bot.domain.events import TurnEnded, TurnEvent, TurnFailed
from bot.domain.people import Actor
from bot.domain.proposals import State
from bot.domain.verbs import Verb
from bot.tools.signature import fault_in_words
from bot.web.ag_ui.history import history
from bot.web.ag_ui.stream import RunStream, parts_of
from bot.web.answers import Fault, Later, existing
from bot.web.body import check_storable
from bot.web.broadcaster import Heard, Listener
from bot.web.channel import NAME, HttpChannel, key_of
from bot.web.chat import NO_CONVERSATION, own, proposals_of
from bot.web.schemas.conversations import TeamView
from bot.web.schemas.events import AguiEvent, ProposalEvent, TeamEvent
from bot.web.schemas.proposals import ProposalView, conversation_of
from bot.web.site import Caller, Here, Site, Streaming, api_routes, event_stream
from bot.web.streams import STILL_THERE, heard, sse

router = api_routes("conversations")

_STOPPING = "Nod stops. What was said is kept: run again to read the rest."
_DATA_ONLY = "Nod takes files as data in base64, and fetches none. Send their bytes."
_MOST_VALUES = 50_000  # a front end sends its whole history with each run
_UNKNOWN = "There is no such interrupt: {}"
_TWO = "{} has two answers that differ. Send one."
_ENDS = (TurnEnded, TurnFailed)


class AguiInput(RunAgentInput):
    """A run: ``messages`` ends with what the person wrote, or ``resume`` answers interrupts, or both."""

    thread_id: Annotated[str, Field(min_length=1, max_length=200)]
    run_id: Annotated[str, Field(min_length=1, max_length=200)]
    messages: Annotated[list[AguiMessage], Field(max_length=5000)]
    tools: Annotated[list[Tool], Field(max_length=200)] | None = None
    context: Annotated[list[Context], Field(max_length=200)] | None = None
    resume: Annotated[list[ResumeEntry], Field(max_length=100)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        return check_storable(value, _MOST_VALUES)


class _Payload(BaseModel):
    """The answer to an interrupt, as its response schema says."""

    model_config = ConfigDict(populate_by_name=True)

    approved: StrictBool | None = None
    reason: Annotated[str, Field(max_length=1000)] | None = None
    edited: Annotated[dict[str, Any] | None, Field(alias="editedArgs")] = None
    revise: Annotated[str, Field(max_length=1000)] | None = None
    answer: Annotated[str, Field(max_length=1000)] | None = None

    @property
    def verb(self) -> Verb | None:
        """None leaves it open."""
        if self.answer is not None:
            return Verb.ANSWER
        if self.revise is not None:
            return Verb.REVISE
        if self.approved is None:
            return Verb.EDIT if self.edited is not None else None
        return Verb.APPROVE if self.approved else Verb.DECLINE


_Answer = tuple[ResumeEntry, str, int, _Payload]
"""An entry of ``resume``, the proposal and the round that it names, and its payload."""


@router.post(
    "/agui",
    summary="AG-UI: run a conversation; an open proposal ends the run with an interrupt",
    **event_stream(AguiEvent),
)
async def run(body: AguiInput, actor: Caller, site: Here, streamed: Streaming) -> Response:
    """An entry of `resume` answers an interrupt, checked like any press.

    Its payload is `{"approved": true}`, `{"approved": false, "reason": "…"}` or
    `{"approved": true, "editedArgs": {…}}`, for a question `{"answer": "…"}`; with status `cancelled` the
    proposal is withdrawn. The interrupt's `metadata.nod` is the proposal as `GET /api/proposals/{id}`
    gives it.
    """
    http = site.channel
    conversation_id = existing(await _conversation_of(http, actor, body.thread_id), NO_CONVERSATION)
    last_of = {each.interrupt_id: each for each in body.resume or ()}
    answers = [
        _answer(each) if last_of[each.interrupt_id] == each else _TWO.format(each.interrupt_id)
        for each in body.resume or ()
    ]
    said = _said(body)
    if wrong := next((each for each in answers if isinstance(each, str)), None):
        raise Fault(422, wrong, fields={"resume": wrong})
    # a front end sends all messages again with each run: one that was refused then must not end the thread
    if said and not said[-1].is_complete and not answers:
        raise Fault(422, _DATA_ONLY, fields={"messages": _DATA_ONLY})
    with ExitStack() as stack:
        listener = stack.enter_context(
            http.hub.listen(key_of(actor, conversation_id))
        )  # before a turn speaks
        last = await http.conversations.newest_end(conversation_id)
        run = _Run(http, actor, conversation_id, RunStream(body), listener, last.turn_id if last else 0)
        before = await run.history()  # what comes from here on is heard
        known = {message.id for message in before}
        said = [each for each in said if each.id not in known and each.is_complete]
        told = await run.press(site, [each for each in answers if not isinstance(each, str)])
        said = await run.say(site, said, passes_over_last=bool(answers))
        listening = stack.pop_all()

    async def events() -> AsyncIterator[str]:
        with listening:
            written = [UserMessage(id=each.id, content=each.text) for each in said]
            for event in await run.begun([*before, *written], told):
                yield sse(event)
            async for block in run.to_rest():
                yield block

    return streamed(events())


@dataclass(frozen=True, slots=True)
class _Run:
    """One run: what is taken in, and what is told of it until nothing is under way."""

    http: HttpChannel
    actor: Actor
    conversation_id: str
    stream: RunStream
    listener: Listener
    last_turn: int
    """The turn that had ended last when the run began."""

    async def press(self, site: Site, answers: Sequence[_Answer]) -> list[BaseEvent]:
        """Press for each answer, if every one is about a proposal that this person may see."""
        seen: dict[str, Seen] = {}
        for entry, ident, *_ in answers:
            shown = await self.http.proposals.find(ident, self.actor)
            seen[ident] = existing(shown, _UNKNOWN.format(entry.interrupt_id))
        told: list[BaseEvent] = []
        for entry, ident, number, payload in answers:
            self.stream.awaits(ident)
            verb = Verb.CANCEL if entry.status == "cancelled" else payload.verb
            if verb is not None:
                there = Address(NAME, key_of(self.actor, conversation_of(seen[ident])))
                why = payload.answer or payload.reason or payload.revise
                press = Press(self.actor, verb, ident, number, why, payload.edited, address=there)
                reply = await site.take_in(press)
                told.append(self.stream.answered(entry.interrupt_id, ident, reply))
        return told

    async def say(
        self, site: Site, said: "Sequence[_Written]", *, passes_over_last: bool
    ) -> "list[_Written]":
        """Take in what people wrote, each once, and return it. Raises Fault where the last is refused.

        One before it was refused in an earlier run, in words. With answers to interrupts, the last was too.
        """
        taken = []
        address = Address(NAME, key_of(self.actor, self.conversation_id))
        for place, written in enumerate(said, 1):
            ident, text, files, _ = written
            event_id = f"{self._sent}{ident}"
            message = Message(address, self.actor, text, event_id, begin=self.conversation_id, files=files)
            reply = await site.take_in(message)
            if reply.answer is Answer.LATER:
                raise Later(reply.text)
            if reply.answer is Answer.DUPLICATE or reply.message_id is not None:
                taken.append(written)
            elif place == len(said) and not passes_over_last:
                raise Fault(413 if text.strip() or files else 422, reply.text)
        return taken

    @property
    def _sent(self) -> str:
        """How the event ids of what front ends sent to this conversation begin."""
        return f"{self.actor.key}/agui/{self.conversation_id}/"

    async def history(self) -> list[AguiMessage]:
        transcript = await self.http.conversations.transcript(self.conversation_id)
        if transcript is None:
            return []
        every = await proposals_of(self.http, self.actor, self.conversation_id)
        return history(transcript, every, await self.http.registry.available(), self._sent)

    async def begun(self, said: Sequence[AguiMessage], answers: Sequence[BaseEvent]) -> list[BaseEvent]:
        """``said``: what the front end should have before this run tells more."""
        board = await self.http.conversations.team(self.conversation_id)
        every = await proposals_of(self.http, self.actor, self.conversation_id)
        waiting = _open(every)
        state = {
            "conversation_id": self.conversation_id,
            "proposals": _plain(waiting),
            "team": TeamView.model_validate(board).model_dump(mode="json"),
        }
        caught_up = self.stream.caught_up(said)
        return [*self.stream.started(state), *caught_up, *answers, *self.stream.too_late(waiting)]

    async def to_rest(self) -> AsyncIterator[str]:
        """What happens until the agent and its team are silent or wait for people, and the run's end."""
        if not await self._at_rest():
            ended = False
            async for item in heard(self.listener, self.http.pace.quiet):
                for event in await self._told(item):
                    yield sse(event)
                if item is None:
                    yield STILL_THERE
                # within a turn its events come before its rows
                speaking = (
                    item is not None
                    and isinstance(item.event, TurnEvent)
                    and not isinstance(item.event, _ENDS)
                )
                ended = not speaking and self.listener.empty() and await self._at_rest()
                if ended:
                    break
            if not ended:
                for event in self.stream.broken_off(_STOPPING):
                    yield sse(event)
                return
        while not self.listener.empty():
            for event in await self._told(self.listener.get_nowait()):
                yield sse(event)
        every = await proposals_of(self.http, self.actor, self.conversation_id)
        # a turn's last event comes after its rows, so it may still be on its way
        end = await self.http.conversations.newest_end(self.conversation_id)
        end = end if end and end.turn_id > self.last_turn else None
        said = await self.history()
        for event in (*self._news(every), *self.stream.finished(_open(every), end, said)):
            yield sse(event)

    async def _told(self, item: Heard | None) -> list[BaseEvent]:
        """What the run says of something heard, after what the rows have to tell first."""
        if item is None:
            return []
        event, said = item.event, item.told
        told: list[BaseEvent] = []
        if event is None or isinstance(event, _ENDS) or self.stream.awaited:
            told += self._news(await proposals_of(self.http, self.actor, self.conversation_id))
        match said:
            case ProposalEvent(type="proposal_opened"):
                return [*told, *self.stream.opened(said.proposal)]
            case TeamEvent():
                return [*told, *self.stream.state(team=said.team.model_dump(mode="json"))]
        return [*told, *(self.stream.of_turn(event, said) if event is not None else ())]

    def _news(self, every: Sequence[ProposalView]) -> list[BaseEvent]:
        """Results that the rows tell, and what is open now."""
        ended = [event for each in every for event in self.stream.ended(each)]
        return [*ended, *self.stream.state(proposals=_plain(_open(every)))]

    async def _at_rest(self) -> bool:
        return await self.http.conversations.at_rest(self.conversation_id)


def _open(every: Sequence[ProposalView]) -> list[ProposalView]:
    return [each for each in every if each.state is State.PROPOSED]


def _plain(every: Sequence[ProposalView]) -> list[dict[str, Any]]:
    return [each.model_dump(mode="json") for each in every]


async def _conversation_of(http: HttpChannel, actor: Actor, thread_id: str) -> str | None:
    """The caller's conversation of this id, or else the one made for this thread; None for a deleted one."""
    if await own(http, actor, thread_id) is not None:
        return thread_id
    ident = hashlib.sha256(f"{actor} {thread_id}".encode()).hexdigest()[:16]
    return None if await http.conversations.deleted(ident) else ident


class _Written(NamedTuple):
    """A message of the person's, with the files that came with it; complete where each brings its bytes."""

    id: str
    text: str
    files: tuple[Upload, ...]
    is_complete: bool


def _said(body: RunAgentInput) -> list[_Written]:
    """What the person wrote since anything else was said."""
    said = []
    for message in reversed(body.messages):
        if not isinstance(message, UserMessage):
            break
        parts = [TextPart(text=message.content)] if isinstance(message.content, str) else message.content
        texts = [part.text for part in parts if isinstance(part, TextPart)]
        others = [part for part in parts if not isinstance(part, TextPart)]
        files = [_file(number, part) for number, part in enumerate(others, 1)]
        taken = tuple(filter(None, files))
        said.append(_Written(message.id, "\n".join(texts), taken, len(taken) == len(files)))
    return said[::-1]


def _file(number: int, part: Any) -> Upload | None:
    """A part that is no text, named by its metadata if at all; None where its bytes are not with it."""
    named = part.metadata if isinstance(part.metadata, dict) else {}
    name = str(named.get("filename") or named.get("name") or f"{part.type}-{number}")
    try:
        data = base64.b64decode(part.source.value, validate=True) if part.source.type == "data" else b""
    except ValueError:
        return None
    return Upload(name, data) if data else None


def _answer(entry: ResumeEntry) -> _Answer | str:
    """What an entry answers, and how; a text says what is wrong with it."""
    named = parts_of(entry.interrupt_id)
    if named is None:
        return _UNKNOWN.format(entry.interrupt_id)
    try:
        payload = _Payload.model_validate({} if entry.payload is None else entry.payload)
    except ValidationError as error:
        why = fault_in_words(error.errors()[0])
        return f"The payload for {entry.interrupt_id} does not fit its schema. {why}"
    return entry, *named, payload
