"""The route ``/agui``, by which front ends that speak AG-UI run conversations, and people answer interrupts.

In AG-UI's words, a thread is a conversation of the caller's, and a run is one request. It brings a message or
answers interrupts, and its response streams events until the agent is at rest. An interrupt is an open
proposal at the end of a run. The answer to it, an entry of ``resume``, becomes a press like any other, with
the same checks. Of a front end's other input, only the person's newest messages are read, not its history,
state, tools or context. ``request.py`` reads the request, ``stream.py`` writes the events.
"""

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from ag_ui.core import BaseEvent, ResumeEntry, UserMessage
from ag_ui.core import Message as AguiMessage
from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError
from starlette.responses import Response

from bot.approvals.lookup.proposals import VisibleProposal
from bot.domain.chat import Address, Answer, Message, Press
from bot.domain.events import TurnEnded, TurnEvent, TurnFailed
from bot.domain.people import Actor
from bot.domain.proposal_states import State
from bot.domain.verbs import Verb
from bot.tools.signature import describe_pydantic_error
from bot.web.ag_ui.history import list_messages, take_newest
from bot.web.ag_ui.interrupts import parse_interrupt_id
from bot.web.ag_ui.request import RunBodies
from bot.web.ag_ui.run_input import AguiInput, SentMessages, WrittenMessage
from bot.web.ag_ui.stream import RefusedMessage, RunStream
from bot.web.answers import HttpError, TooManyRequests, require_or_404
from bot.web.broadcaster import Broadcast, Listener
from bot.web.channel import CHANNEL_NAME, HttpChannel, make_address_key
from bot.web.conversations import NO_CONVERSATION, find_own, list_visible_proposals
from bot.web.limits import max_run_bytes
from bot.web.schemas.conversations import TeamView
from bot.web.schemas.events import AguiEvent, ProposalEvent, TeamEvent
from bot.web.schemas.proposals import ProposalView, find_conversation_id
from bot.web.site import Caller, Site, SiteDep, Streaming, make_router, make_stream_options
from bot.web.streams import KEEP_ALIVE, format_event, read_listener

router = make_router("conversations")
app = RunBodies(router)
"""The routes behind the middleware that reads the body of a run. ``api.py`` mounts it at the path."""

_STOPPING_TEXT = "Nod is stopping. What was said is kept: run again to read the rest."
_UNKNOWN_TEXT = "There is no such interrupt: {}"
_TWO_ANSWERS_TEXT = "{} has two answers that differ. Send one."
_END_EVENTS = (TurnEnded, TurnFailed)
_HISTORY_SHARE = 4  # the history sent to a front end may be the most bytes of a request divided by this


class _Payload(BaseModel):
    """The payload of an answer to an interrupt, as its response schema describes it (``interrupts.py``)."""

    model_config = ConfigDict(populate_by_name=True)

    approved: StrictBool | None = None
    reason: Annotated[str, Field(max_length=1000)] | None = None
    edited: Annotated[dict[str, Any] | None, Field(alias="editedArgs")] = None  # the new arguments
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

    @property
    def text(self) -> str | None:
        """The text that goes with the verb; None if it is missing or empty."""
        match self.verb:
            case Verb.ANSWER:
                text = self.answer
            case Verb.REVISE:
                text = self.revise
            case _:
                text = self.reason
        return text or None


class _InterruptAnswer(NamedTuple):
    """An entry of ``resume``, parsed."""

    entry: ResumeEntry
    proposal_id: str
    round: int  # the proposal's count of changed contents; the answer is for the content of this round
    payload: _Payload

    @property
    def verb(self) -> Verb | None:
        """The verb of the press; None leaves the proposal open."""
        return Verb.CANCEL if self.entry.status == "cancelled" else self.payload.verb


async def _get_sent_messages(request: Request) -> SentMessages:
    sent: SentMessages = request.state.sent
    return sent


Sent = Annotated[SentMessages, Depends(_get_sent_messages)]
"""The messages that came with the run."""


@router.post(
    "/agui",
    summary="AG-UI: run a conversation; an open proposal ends the run with an interrupt",
    **make_stream_options(AguiEvent),
)
async def run(
    body: AguiInput, actor: Caller, site: SiteDep, stream_response: Streaming, sent: Sent
) -> Response:
    """An entry of `resume` answers an interrupt, checked like any press.

    Its payload is `{"approved": true}`, `{"approved": false, "reason": "…"}` or
    `{"approved": true, "editedArgs": {…}}`, for a question `{"answer": "…"}`; with status `cancelled` the
    proposal is withdrawn. The interrupt's `metadata.nod` is the proposal as `GET /api/proposals/{id}`
    gives it.
    """
    channel = site.channel
    found_id = await _find_conversation_id(channel, actor, body.thread_id)
    conversation_id = require_or_404(found_id, NO_CONVERSATION)
    answers = _parse_answers(body.resume or ())
    # After an error the listener is closed here. Otherwise it stays open until the end of the response.
    with ExitStack() as stack:
        # before messages and answers are taken in, as a turn may begin then
        listener = stack.enter_context(channel.broadcaster.listen(make_address_key(actor, conversation_id)))
        last_end = await channel.conversations.newest_end(conversation_id)
        run = _Run(
            channel,
            actor,
            conversation_id,
            stream=RunStream(body, sent),
            listener=listener,
            last_turn_id=last_end.turn_id if last_end else 0,
            # less than a request's limit: the front end sends the history back, with what was said since
            max_history_bytes=max_run_bytes(site.file_bounds.max_message_bytes) // _HISTORY_SHARE,
        )
        stored = await run.list_history()  # later messages come through the listener
        replies = await run.press(site, answers)
        taken, refused = await run.take_in(site, sent.find_new(_list_known_texts(stored)))
        open_listener = stack.pop_all()
    if answers:
        refused = []  # the run that ended with these interrupts has reported the refused messages already

    async def events() -> AsyncIterator[str]:
        with open_listener:
            written = [UserMessage(id=message.id, content=message.text) for message in taken]
            for event in await run.begin([*stored, *written], replies, refused):
                yield format_event(event)
            async for block in run.follow():
                yield block

    return stream_response(events())


def _list_known_texts(stored: Sequence[AguiMessage]) -> dict[str, str]:
    """Return the texts of people's messages by id; any other stored message has an empty text."""
    texts: dict[str, str] = {}
    for message in stored:
        texts[message.id] = str(message.content) if isinstance(message, UserMessage) else ""
    return texts


def _parse_answers(entries: Sequence[ResumeEntry]) -> list[_InterruptAnswer]:
    """Parse the entries of ``resume``.

    Raises HttpError if one is invalid, or if two for one interrupt differ.
    """
    last_entries = {entry.interrupt_id: entry for entry in entries}
    answers = []
    for entry in entries:  # each must equal the last one of its interrupt
        if last_entries[entry.interrupt_id] != entry:
            raise _refuse_answer(_TWO_ANSWERS_TEXT.format(entry.interrupt_id))
        answers.append(_parse_entry(entry))
    return answers


def _parse_entry(entry: ResumeEntry) -> _InterruptAnswer:
    proposal_and_round = parse_interrupt_id(entry.interrupt_id)
    if proposal_and_round is None:
        raise _refuse_answer(_UNKNOWN_TEXT.format(entry.interrupt_id))
    try:
        payload = _Payload.model_validate({} if entry.payload is None else entry.payload)
    except ValidationError as error:
        why = describe_pydantic_error(error.errors()[0])
        text = f"The payload for {entry.interrupt_id} does not fit its schema. {why}"
        raise _refuse_answer(text) from None
    return _InterruptAnswer(entry, *proposal_and_round, payload)


def _refuse_answer(text: str) -> HttpError:
    return HttpError(422, text, fields={"resume": text})


@dataclass(frozen=True, slots=True)
class _Run:
    """A run: it takes in messages and answers to interrupts, and yields events until the agent is at rest.

    At rest means that no turn of the agent or its team runs, and none will run before people act.

    The methods are called in this order: `list_history`, `press` and `take_in` before the response begins,
    then `begin` and `follow` for its events.
    """

    channel: HttpChannel
    actor: Actor
    conversation_id: str
    stream: RunStream
    listener: Listener
    last_turn_id: int  # the id of the last turn that had ended when the run began; 0 for none
    max_history_bytes: int

    async def press(self, site: Site, answers: Sequence[_InterruptAnswer]) -> list[BaseEvent]:
        """Make a press of each answer to an interrupt, and return the core's replies as events.

        Raises NotFound, before any press, if this person may not see one of the proposals.
        """
        proposals: dict[str, VisibleProposal] = {}
        for answer in answers:
            found = await self.channel.proposals.find(answer.proposal_id, self.actor)
            unknown = _UNKNOWN_TEXT.format(answer.entry.interrupt_id)
            proposals[answer.proposal_id] = require_or_404(found, unknown)

        replies: list[BaseEvent] = []
        for answer in answers:
            self.stream.expect_result(answer.proposal_id)
            if answer.verb is None:
                continue
            conversation_id = find_conversation_id(proposals[answer.proposal_id])
            payload = answer.payload
            press = Press(
                self.actor,
                answer.verb,
                answer.proposal_id,
                answer.round,
                payload.text,
                payload.edited,
                address=Address(CHANNEL_NAME, make_address_key(self.actor, conversation_id)),
            )
            reply = await site.submit(press)
            event = self.stream.write_reply(answer.entry.interrupt_id, answer.proposal_id, reply)
            replies.append(event)
        return replies

    async def take_in(
        self, site: Site, new: Sequence[WrittenMessage]
    ) -> tuple[list[WrittenMessage], list[RefusedMessage]]:
        """Take in people's messages. Return those taken in, and the refused ones after the last of these.

        Front ends send all messages with each run. So refused messages before the last one that is taken in
        are left out: an earlier run has reported them.
        """
        taken: list[WrittenMessage] = []
        refused: list[RefusedMessage] = []
        for written in new:
            refusal = written.problem
            if not refusal:
                refusal = await self._take_in_one(site, written)
            if refusal:
                refused.append(RefusedMessage(written.id, refusal))
            else:
                taken.append(written)
                refused.clear()
        return taken, refused

    async def _take_in_one(self, site: Site, written: WrittenMessage) -> str:
        """Take in one message, unless it was taken in before. Return why it is refused, or an empty text.

        Raises TooManyRequests if the person sent too much.
        """
        address = Address(CHANNEL_NAME, make_address_key(self.actor, self.conversation_id))
        event_id = f"{self._event_prefix}{written.id}"
        message = Message(
            address,
            self.actor,
            written.text,
            event_id,
            begin=self.conversation_id,
            files=written.files,
        )
        reply = await site.submit(message)
        if reply.answer is Answer.LATER:
            raise TooManyRequests(reply.text)
        if reply.answer is Answer.DUPLICATE or reply.message_id is not None:
            return ""
        return reply.text

    @property
    def _event_prefix(self) -> str:
        """The beginning of the ids by which Nod recognises a message of this thread that is sent again."""
        return f"{self.actor.key}/agui/{self.conversation_id}/"

    async def list_history(self) -> list[AguiMessage]:
        """Return the newest stored messages as AG-UI's, as many as `max_history_bytes` allow."""
        transcript = await self.channel.conversations.transcript(self.conversation_id)
        if transcript is None:
            return []
        views = await self._list_proposals()
        available_tools = await self.channel.registry.load_tools()
        messages = list_messages(transcript, views, available_tools, self._event_prefix)
        return take_newest(messages, self.max_history_bytes)

    async def _list_proposals(self) -> list[ProposalView]:
        return await list_visible_proposals(self.channel, self.actor, self.conversation_id)

    async def begin(
        self, stored: Sequence[AguiMessage], replies: Sequence[BaseEvent], refused: Sequence[RefusedMessage]
    ) -> list[BaseEvent]:
        """Return the first events.

        ``stored``: the stored messages and those just taken in, which the front end should have now.
        ``replies``: the result of `press`. ``refused``: the refused messages of `take_in`.
        """
        team = await self.channel.conversations.team(self.conversation_id)
        waiting = _list_open(await self._list_proposals())
        state = {
            "conversation_id": self.conversation_id,
            "proposals": _dump(waiting),
            "team": TeamView.model_validate(team).model_dump(mode="json"),
        }
        events = self.stream.begin(state)
        events += self.stream.catch_up(stored)
        events += replies
        events += self.stream.write_refused_presses(waiting)
        events += self.stream.refuse_messages(refused)
        return events

    async def follow(self) -> AsyncIterator[str]:
        """Yield the events until the agent and its team are at rest, then the end of the run."""
        is_at_rest = await self._is_at_rest()
        if not is_at_rest:
            async for item in read_listener(self.listener, self.channel.pace.keep_alive_seconds):
                for event in await self._describe_item(item):
                    yield format_event(event)
                if item is None:
                    yield KEEP_ALIVE
                # within a turn the rows lag behind the events, so they say nothing yet
                if not _is_within_turn(item) and self.listener.empty():
                    is_at_rest = await self._is_at_rest()
                if is_at_rest:
                    break
        if not is_at_rest:  # the listener ended before, as the server stops
            for event in self.stream.break_off(_STOPPING_TEXT):
                yield format_event(event)
            return

        while not self.listener.empty():
            for event in await self._describe_item(self.listener.get_nowait()):
                yield format_event(event)
        for event in await self._finish():
            yield format_event(event)

    async def _finish(self) -> list[BaseEvent]:
        """Return the last events.

        They come from the database, because the listener may have missed the events of the turn's end.
        """
        proposals = await self._list_proposals()
        end = await self.channel.conversations.newest_end(self.conversation_id)
        if end and end.turn_id <= self.last_turn_id:
            end = None  # it ended before this run
        stored = await self.list_history()
        changes = self._describe_changes(proposals)
        return [*changes, *self.stream.finish(_list_open(proposals), end, stored)]

    async def _describe_item(self, item: Broadcast | None) -> list[BaseEvent]:
        """Return the run's events for one item of the listener; none for None, which stands for silence.

        The proposals are read again after a change that no turn made, at the end of a turn, and while the
        result of a proposal is awaited. Events for their changes come first.
        """
        if item is None:
            return []
        # one change in two forms: for this module, and as the console shows it
        event, console_event = item.turn_event, item.console_event
        events: list[BaseEvent] = []
        is_turn_over = isinstance(event, _END_EVENTS)
        if event is None or is_turn_over or self.stream.is_awaiting:
            events += self._describe_changes(await self._list_proposals())
        match console_event:
            case ProposalEvent(type="proposal_opened"):
                events += self.stream.show_proposal(console_event.proposal)
            case TeamEvent():
                events += self.stream.update_state(team=console_event.team.model_dump(mode="json"))
            case _ if event is not None:
                events += self.stream.write_turn_event(event, console_event)
        return events

    def _describe_changes(self, proposals: Sequence[ProposalView]) -> list[BaseEvent]:
        """Return the events for results that have come, and for the changed list of open proposals."""
        events: list[BaseEvent] = []
        for proposal in proposals:
            events += self.stream.write_result(proposal)
        return events + self.stream.update_state(proposals=_dump(_list_open(proposals)))

    async def _is_at_rest(self) -> bool:
        return await self.channel.conversations.is_at_rest(self.conversation_id)


def _is_within_turn(item: Broadcast | None) -> bool:
    """Tell if this is an event of a turn, but not the last event of the turn."""
    if item is None or not isinstance(item.turn_event, TurnEvent):
        return False
    return not isinstance(item.turn_event, _END_EVENTS)


def _list_open(proposals: Sequence[ProposalView]) -> list[ProposalView]:
    return [proposal for proposal in proposals if proposal.state is State.PROPOSED]


def _dump(proposals: Sequence[ProposalView]) -> list[dict[str, Any]]:
    return [proposal.model_dump(mode="json") for proposal in proposals]


async def _find_conversation_id(channel: HttpChannel, actor: Actor, thread_id: str) -> str | None:
    """Return the caller's conversation of this id, or the id made for the thread; None for a deleted one."""
    if await find_own(channel, actor, thread_id) is not None:
        return thread_id
    derived_id = hashlib.sha256(f"{actor} {thread_id}".encode()).hexdigest()[:16]
    if await channel.conversations.is_deleted(derived_id):
        return None
    return derived_id
