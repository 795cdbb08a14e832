"""``/agui``: front ends that speak AG-UI run conversations here, and people answer its interrupts.

An interrupt's answer is a press like any other: through the same gate, with the same checks. A thread is a
conversation of the caller's; what a front end sends of its history, state, tools and context is not read,
only what people wrote since. What a run says is in ``stream.py``.
"""

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, Any

from ag_ui.core import BaseEvent, ResumeEntry, UserMessage
from ag_ui.core import Message as AguiMessage
from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError
from starlette.responses import Response

from bot.approvals.lookup.proposals import Seen
from bot.domain.chat import Address, Answer, Message, Press
from bot.domain.events import TurnEnded, TurnEvent, TurnFailed
from bot.domain.people import Actor
from bot.domain.proposals import State
from bot.domain.verbs import Verb
from bot.tools.signature import fault_in_words
from bot.web.ag_ui.given import AguiInput, SentMessages, WrittenMessage
from bot.web.ag_ui.history import history, take_newest
from bot.web.ag_ui.request import RunBodies
from bot.web.ag_ui.stream import RefusedMessage, RunStream, parts_of
from bot.web.answers import Fault, Later, existing
from bot.web.broadcaster import Heard, Listener
from bot.web.channel import NAME, HttpChannel, key_of
from bot.web.chat import NO_CONVERSATION, find_own, proposals_of
from bot.web.limits import max_run_bytes
from bot.web.schemas.conversations import TeamView
from bot.web.schemas.events import AguiEvent, ProposalEvent, TeamEvent
from bot.web.schemas.proposals import ProposalView, conversation_of
from bot.web.site import Caller, Site, SiteDep, Streaming, api_routes, event_stream
from bot.web.streams import STILL_THERE, heard, sse

router = api_routes("conversations")
app = RunBodies(router)

_STOPPING = "Nod is stopping. What was said is kept: run again to read the rest."
_UNKNOWN = "There is no such interrupt: {}"
_TWO = "{} has two answers that differ. Send one."
_ENDS = (TurnEnded, TurnFailed)


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
            if self.edited is not None:
                return Verb.EDIT
            return None
        if self.approved:
            return Verb.APPROVE
        return Verb.DECLINE


_Answer = tuple[ResumeEntry, str, int, _Payload]
"""An entry of ``resume``, the proposal and the round that it names, and its payload."""


async def _find_sent(request: Request) -> SentMessages:
    sent: SentMessages = request.state.sent
    return sent


Sent = Annotated[SentMessages, Depends(_find_sent)]
"""The messages that came with the run."""


@router.post(
    "/agui",
    summary="AG-UI: run a conversation; an open proposal ends the run with an interrupt",
    **event_stream(AguiEvent),
)
async def run(body: AguiInput, actor: Caller, site: SiteDep, streamed: Streaming, sent: Sent) -> Response:
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
    wrong = next((each for each in answers if isinstance(each, str)), None)
    if wrong:
        raise Fault(422, wrong, fields={"resume": wrong})
    with ExitStack() as stack:
        listener = stack.enter_context(
            http.hub.listen(key_of(actor, conversation_id))
        )  # before a turn speaks
        last = await http.conversations.newest_end(conversation_id)
        most = max_run_bytes(site.files.message) // 4
        before_run = last.turn_id if last else 0
        run = _Run(http, actor, conversation_id, RunStream(body, sent), listener, before_run, most)
        before = await run.history()  # what comes from here on is heard
        texts = {each.id: str(each.content) for each in before if isinstance(each, UserMessage)}
        new = sent.written_since({message.id: texts.get(message.id, "") for message in before})
        told = await run.press(site, [each for each in answers if not isinstance(each, str)])
        taken, refused = await run.take_in(site, new)
        if answers:  # the message before them was refused by an earlier run
            refused = []
        listening = stack.pop_all()

    async def events() -> AsyncIterator[str]:
        with listening:
            written = [UserMessage(id=each.id, content=each.text) for each in taken]
            for event in await run.begun([*before, *written], told, refused):
                yield sse(event)
            async for block in run.to_rest():
                yield block

    return streamed(events())


@dataclass(frozen=True, slots=True)
class _Run:
    """A run: the messages it takes in, and the events until nothing is under way."""

    http: HttpChannel
    actor: Actor
    conversation_id: str
    stream: RunStream
    listener: Listener
    last_turn: int
    """The turn that had ended last when the run began."""
    max_history_bytes: int
    """A part of what a request may have, so that the thread can grow by what one run says."""

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
                told.append(self.stream.tell_answer(entry.interrupt_id, ident, reply))
        return told

    async def take_in(
        self, site: Site, new: Sequence[WrittenMessage]
    ) -> tuple[list[WrittenMessage], list[RefusedMessage]]:
        """Take in what people wrote, each once. Return it, and what was refused after the last of it.

        What was refused before that was told by an earlier run: front ends send it again with each.
        """
        taken: list[WrittenMessage] = []
        refused: list[RefusedMessage] = []
        for written in new:
            why = written.problem or await self._take_in_one(site, written)
            if why:
                refused.append(RefusedMessage(written.id, why))
            else:
                taken.append(written)
                refused.clear()
        return taken, refused

    async def _take_in_one(self, site: Site, written: WrittenMessage) -> str:
        """Take in one message. Returns why it is refused, or an empty text. Raises Later."""
        address = Address(NAME, key_of(self.actor, self.conversation_id))
        event_id = f"{self._find_sent}{written.id}"
        message = Message(
            address, self.actor, written.text, event_id, begin=self.conversation_id, files=written.files
        )
        reply = await site.take_in(message)
        if reply.answer is Answer.LATER:
            raise Later(reply.text)
        is_taken = reply.answer is Answer.DUPLICATE or reply.message_id is not None
        return "" if is_taken else reply.text

    @property
    def _find_sent(self) -> str:
        return f"{self.actor.key}/agui/{self.conversation_id}/"

    async def history(self) -> list[AguiMessage]:
        transcript = await self.http.conversations.transcript(self.conversation_id)
        if transcript is None:
            return []
        every = await proposals_of(self.http, self.actor, self.conversation_id)
        available = await self.http.registry.available()
        return take_newest(history(transcript, every, available, self._find_sent), self.max_history_bytes)

    async def begun(
        self, said: Sequence[AguiMessage], answers: Sequence[BaseEvent], refused: Sequence[RefusedMessage]
    ) -> list[BaseEvent]:
        """Return the first events. ``said``: the messages that the front end should have before this run."""
        board = await self.http.conversations.team(self.conversation_id)
        every = await proposals_of(self.http, self.actor, self.conversation_id)
        waiting = _open(every)
        state = {
            "conversation_id": self.conversation_id,
            "proposals": _plain(waiting),
            "team": TeamView.model_validate(board).model_dump(mode="json"),
        }
        caught_up = self.stream.catch_up(said)
        in_words = [*self.stream.too_late(waiting), *self.stream.refuse_messages(refused)]
        return [*self.stream.begin(state), *caught_up, *answers, *in_words]

    async def to_rest(self) -> AsyncIterator[str]:
        """Yield the events until the agent and its team are silent or wait for people, then the run's end."""
        if not await self._at_rest():
            ended = False
            async for item in heard(self.listener, self.http.pace.quiet):
                for event in await self._tell(item):
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
                for event in self.stream.break_off(_STOPPING):
                    yield sse(event)
                return
        while not self.listener.empty():
            for event in await self._tell(self.listener.get_nowait()):
                yield sse(event)
        every = await proposals_of(self.http, self.actor, self.conversation_id)
        # a turn's last event comes after its rows, so it may still be on its way
        end = await self.http.conversations.newest_end(self.conversation_id)
        end = end if end and end.turn_id > self.last_turn else None
        said = await self.history()
        for event in (*self._news(every), *self.stream.finished(_open(every), end, said)):
            yield sse(event)

    async def _tell(self, item: Heard | None) -> list[BaseEvent]:
        """Return the run's events for something heard, after those that the rows have to tell first."""
        if item is None:
            return []
        event, said = item.event, item.told
        told: list[BaseEvent] = []
        if event is None or isinstance(event, _ENDS) or self.stream.awaited:
            told += self._news(await proposals_of(self.http, self.actor, self.conversation_id))
        match said:
            case ProposalEvent(type="proposal_opened"):
                return [*told, *self.stream.tell_proposal(said.proposal)]
            case TeamEvent():
                return [*told, *self.stream.state(team=said.team.model_dump(mode="json"))]
        return [*told, *(self.stream.of_turn(event, said) if event is not None else ())]

    def _news(self, every: Sequence[ProposalView]) -> list[BaseEvent]:
        ended = [event for each in every for event in self.stream.tell_end(each)]
        return [*ended, *self.stream.state(proposals=_plain(_open(every)))]

    async def _at_rest(self) -> bool:
        return await self.http.conversations.at_rest(self.conversation_id)


def _open(every: Sequence[ProposalView]) -> list[ProposalView]:
    return [each for each in every if each.state is State.PROPOSED]


def _plain(every: Sequence[ProposalView]) -> list[dict[str, Any]]:
    return [each.model_dump(mode="json") for each in every]


async def _conversation_of(http: HttpChannel, actor: Actor, thread_id: str) -> str | None:
    """Return the caller's conversation of this id, or the id made for the thread; None for a deleted one."""
    if await find_own(http, actor, thread_id) is not None:
        return thread_id
    ident = hashlib.sha256(f"{actor} {thread_id}".encode()).hexdigest()[:16]
    if await http.conversations.is_deleted(ident):
        return None
    return ident


def _answer(entry: ResumeEntry) -> _Answer | str:
    """Parse an entry of ``resume``; a text says why it can't be taken."""
    named = parts_of(entry.interrupt_id)
    if named is None:
        return _UNKNOWN.format(entry.interrupt_id)
    try:
        payload = _Payload.model_validate({} if entry.payload is None else entry.payload)
    except ValidationError as error:
        why = fault_in_words(error.errors()[0])
        return f"The payload for {entry.interrupt_id} does not fit its schema. {why}"
    return entry, *named, payload
