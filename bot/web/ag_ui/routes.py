"""``/agui``: front ends that speak AG-UI run conversations here, and people answer its interrupts.

An interrupt's answer is a press like any other: through the same gate, with the same checks. A thread is a
conversation of the caller's. Of what a front end sends, only people's newest messages are read, not its
history, state, tools or context. ``stream.py`` writes the events of a run.
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
from bot.web.streams import KEEP_ALIVE, heard, sse

router = api_routes("conversations")
app = RunBodies(router)

_STOPPING_TEXT = "Nod is stopping. What was said is kept: run again to read the rest."
_UNKNOWN_TEXT = "There is no such interrupt: {}"
_TWO_ANSWERS_TEXT = "{} has two answers that differ. Send one."
_END_EVENTS = (TurnEnded, TurnFailed)


class _Payload(BaseModel):
    """The answer to an interrupt, in the form of its response schema."""

    model_config = ConfigDict(populate_by_name=True)

    approved: StrictBool | None = None
    reason: Annotated[str, Field(max_length=1000)] | None = None
    edited: Annotated[dict[str, Any] | None, Field(alias="editedArgs")] = None
    revise: Annotated[str, Field(max_length=1000)] | None = None
    answer: Annotated[str, Field(max_length=1000)] | None = None

    @property
    def verb(self) -> Verb | None:
        """The verb of the press; None leaves the proposal open."""
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


_InterruptAnswer = tuple[ResumeEntry, str, int, _Payload]
"""An entry of ``resume``, the id of its proposal, the round, and its payload."""


async def _get_sent_messages(request: Request) -> SentMessages:
    sent: SentMessages = request.state.sent
    return sent


Sent = Annotated[SentMessages, Depends(_get_sent_messages)]
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
    conversation_id = existing(await _find_conversation_id(http, actor, body.thread_id), NO_CONVERSATION)
    answers = _parse_answers(body.resume or ())
    with ExitStack() as stack:
        # listen before a turn can begin to speak
        listener = stack.enter_context(http.hub.listen(key_of(actor, conversation_id)))
        last_end = await http.conversations.newest_end(conversation_id)
        max_history_bytes = max_run_bytes(site.files.message) // 4
        last_turn = last_end.turn_id if last_end else 0
        stream = RunStream(body, sent)
        run = _Run(http, actor, conversation_id, stream, listener, last_turn, max_history_bytes)
        stored = await run.history()  # later messages are heard
        texts = {message.id: "" for message in stored}
        texts |= {message.id: str(message.content) for message in stored if isinstance(message, UserMessage)}
        replies = await run.press(site, answers)
        taken, refused = await run.take_in(site, sent.written_since(texts))
        if answers:  # an earlier run told of the messages refused before them
            refused = []
        listening = stack.pop_all()

    async def events() -> AsyncIterator[str]:
        with listening:
            written = [UserMessage(id=message.id, content=message.text) for message in taken]
            for event in await run.begin([*stored, *written], replies, refused):
                yield sse(event)
            async for block in run.follow():
                yield block

    return streamed(events())


def _parse_answers(entries: Sequence[ResumeEntry]) -> list[_InterruptAnswer]:
    """Parse the entries of ``resume``. Raises Fault for one that can't be taken."""
    last_of = {entry.interrupt_id: entry for entry in entries}
    answers = []
    for entry in entries:
        if last_of[entry.interrupt_id] != entry:
            answer: _InterruptAnswer | str = _TWO_ANSWERS_TEXT.format(entry.interrupt_id)
        else:
            answer = _parse_entry(entry)
        if isinstance(answer, str):
            raise Fault(422, answer, fields={"resume": answer})
        answers.append(answer)
    return answers


@dataclass(frozen=True, slots=True)
class _Run:
    """A run: it takes in messages and answers, and yields events until the agent is at rest."""

    http: HttpChannel
    actor: Actor
    conversation_id: str
    stream: RunStream
    listener: Listener
    last_turn: int
    """The id of the last turn that had ended when the run began; 0 for none."""
    max_history_bytes: int
    """A part of a request's limit, so that the thread can grow by what a run says."""

    async def press(self, site: Site, answers: Sequence[_InterruptAnswer]) -> list[BaseEvent]:
        """Press for each answer, if this person may see all of their proposals, and return the replies."""
        proposals: dict[str, Seen] = {}
        for entry, proposal_id, *_ in answers:
            found = await self.http.proposals.find(proposal_id, self.actor)
            proposals[proposal_id] = existing(found, _UNKNOWN_TEXT.format(entry.interrupt_id))
        replies: list[BaseEvent] = []
        for entry, proposal_id, round_, payload in answers:
            self.stream.awaits(proposal_id)
            verb = Verb.CANCEL if entry.status == "cancelled" else payload.verb
            if verb is None:
                continue
            address = Address(NAME, key_of(self.actor, conversation_of(proposals[proposal_id])))
            words = payload.answer or payload.reason or payload.revise
            press = Press(self.actor, verb, proposal_id, round_, words, payload.edited, address=address)
            reply = await site.take_in(press)
            replies.append(self.stream.tell_answer(entry.interrupt_id, proposal_id, reply))
        return replies

    async def take_in(
        self, site: Site, new: Sequence[WrittenMessage]
    ) -> tuple[list[WrittenMessage], list[RefusedMessage]]:
        """Take in what people wrote, each message once. Return those, and the refused ones after the last.

        Front ends send all messages with each run; an earlier run told of those refused before that.
        """
        taken: list[WrittenMessage] = []
        refused: list[RefusedMessage] = []
        for written in new:
            refusal = written.problem or await self._take_in_one(site, written)
            if refusal:
                refused.append(RefusedMessage(written.id, refusal))
            else:
                taken.append(written)
                refused.clear()
        return taken, refused

    async def _take_in_one(self, site: Site, written: WrittenMessage) -> str:
        """Take in one message. Returns why it is refused, or an empty text. Raises Later."""
        address = Address(NAME, key_of(self.actor, self.conversation_id))
        event_id = f"{self._event_prefix}{written.id}"
        message = Message(
            address, self.actor, written.text, event_id, begin=self.conversation_id, files=written.files
        )
        reply = await site.take_in(message)
        if reply.answer is Answer.LATER:
            raise Later(reply.text)
        if reply.answer is Answer.DUPLICATE or reply.message_id is not None:
            return ""
        return reply.text

    @property
    def _event_prefix(self) -> str:
        """The prefix of the event ids of this thread's messages."""
        return f"{self.actor.key}/agui/{self.conversation_id}/"

    async def history(self) -> list[AguiMessage]:
        transcript = await self.http.conversations.transcript(self.conversation_id)
        if transcript is None:
            return []
        views = await proposals_of(self.http, self.actor, self.conversation_id)
        available = await self.http.registry.available()
        return take_newest(history(transcript, views, available, self._event_prefix), self.max_history_bytes)

    async def begin(
        self, stored: Sequence[AguiMessage], replies: Sequence[BaseEvent], refused: Sequence[RefusedMessage]
    ) -> list[BaseEvent]:
        """Return the first events. ``stored``: the messages that the front end should have by now."""
        team = await self.http.conversations.team(self.conversation_id)
        waiting = _list_open(await proposals_of(self.http, self.actor, self.conversation_id))
        state = {
            "conversation_id": self.conversation_id,
            "proposals": _dump(waiting),
            "team": TeamView.model_validate(team).model_dump(mode="json"),
        }
        caught_up = self.stream.catch_up(stored)
        refusals = [*self.stream.too_late(waiting), *self.stream.refuse_messages(refused)]
        return [*self.stream.begin(state), *caught_up, *replies, *refusals]

    async def follow(self) -> AsyncIterator[str]:
        """Yield the events until the agent and its team are silent or wait for people, then the run's end."""
        is_at_rest = await self._is_at_rest()
        if not is_at_rest:
            async for item in heard(self.listener, self.http.pace.quiet):
                for event in await self._tell(item):
                    yield sse(event)
                if item is None:
                    yield KEEP_ALIVE
                # a turn's rows come after its events, so within a turn they are not looked at
                if not _is_within_turn(item) and self.listener.empty():
                    is_at_rest = await self._is_at_rest()
                if is_at_rest:
                    break
        if not is_at_rest:
            for event in self.stream.break_off(_STOPPING_TEXT):
                yield sse(event)
            return
        while not self.listener.empty():
            for event in await self._tell(self.listener.get_nowait()):
                yield sse(event)
        proposals = await proposals_of(self.http, self.actor, self.conversation_id)
        # the last event of a turn comes after its rows, so it may still be missing
        end = await self.http.conversations.newest_end(self.conversation_id)
        if end and end.turn_id <= self.last_turn:
            end = None
        stored = await self.history()
        changes = self._tell_changes(proposals)
        for event in (*changes, *self.stream.finished(_list_open(proposals), end, stored)):
            yield sse(event)

    async def _tell(self, item: Heard | None) -> list[BaseEvent]:
        """Return the run's events for something heard, after those that the rows have to tell first."""
        if item is None:
            return []
        event, console_event = item.event, item.told
        events: list[BaseEvent] = []
        if event is None or isinstance(event, _END_EVENTS) or self.stream.awaited:
            events += self._tell_changes(await proposals_of(self.http, self.actor, self.conversation_id))
        match console_event:
            case ProposalEvent(type="proposal_opened"):
                events += self.stream.tell_proposal(console_event.proposal)
            case TeamEvent():
                events += self.stream.state(team=console_event.team.model_dump(mode="json"))
            case _ if event is not None:
                events += self.stream.of_turn(event, console_event)
        return events

    def _tell_changes(self, proposals: Sequence[ProposalView]) -> list[BaseEvent]:
        """Return the events for results that have come, and for the changed list of open proposals."""
        events: list[BaseEvent] = []
        for proposal in proposals:
            events += self.stream.tell_end(proposal)
        return events + self.stream.state(proposals=_dump(_list_open(proposals)))

    async def _is_at_rest(self) -> bool:
        return await self.http.conversations.at_rest(self.conversation_id)


def _is_within_turn(item: Heard | None) -> bool:
    """Tell if something heard is an event of a turn other than its last."""
    if item is None or not isinstance(item.event, TurnEvent):
        return False
    return not isinstance(item.event, _END_EVENTS)


def _list_open(proposals: Sequence[ProposalView]) -> list[ProposalView]:
    return [proposal for proposal in proposals if proposal.state is State.PROPOSED]


def _dump(proposals: Sequence[ProposalView]) -> list[dict[str, Any]]:
    return [proposal.model_dump(mode="json") for proposal in proposals]


async def _find_conversation_id(http: HttpChannel, actor: Actor, thread_id: str) -> str | None:
    """Return the caller's conversation of this id, or the id made for the thread; None for a deleted one."""
    if await find_own(http, actor, thread_id) is not None:
        return thread_id
    derived_id = hashlib.sha256(f"{actor} {thread_id}".encode()).hexdigest()[:16]
    if await http.conversations.is_deleted(derived_id):
        return None
    return derived_id


def _parse_entry(entry: ResumeEntry) -> _InterruptAnswer | str:
    """Parse an entry of ``resume``; return a text if it can't be taken."""
    proposal_and_round = parts_of(entry.interrupt_id)
    if proposal_and_round is None:
        return _UNKNOWN_TEXT.format(entry.interrupt_id)
    try:
        payload = _Payload.model_validate({} if entry.payload is None else entry.payload)
    except ValidationError as error:
        why = fault_in_words(error.errors()[0])
        return f"The payload for {entry.interrupt_id} does not fit its schema. {why}"
    return entry, *proposal_and_round, payload
