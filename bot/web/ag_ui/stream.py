"""Writes a run as AG-UI's events (https://docs.ag-ui.com, protocol 1.0), without any I/O.

A run is a piece of the agent's work in a thread, which is a conversation. `RunStream` turns what happens in
it into events: texts, thoughts, tool calls and their results. At the end comes an interrupt for each open
proposal, which is a call that waits for people (`interrupts.py`). The messages that the front end has are
kept as well, to bring them into line with the stored ones (`front_end_messages.py`). ``routes.py`` calls all
of it.

A proposal's call carries the proposal's id, since models' own call ids are not unique.
"""

import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

from ag_ui.core import (
    PROTOCOL_VERSION,
    AssistantMessage,
    BaseEvent,
    CustomEvent,
    Message,
    MessagesSnapshotEvent,
    ReasoningEndEvent,
    ReasoningMessage,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
)

from bot.domain.chat import Answer, Reply
from bot.domain.conversations import TurnEnd
from bot.domain.events import (
    AnswerBegun,
    Ending,
    TextDelta,
    TextRestarted,
    ThoughtDelta,
    TurnEnded,
    TurnEvent,
    TurnFailed,
)
from bot.web.ag_ui.front_end_messages import (
    REFUSED_SUFFIX,
    RESTART_INFIX,
    FrontEndMessages,
    NeededSnapshot,
)
from bot.web.ag_ui.history import find_result, make_call, make_call_id, make_result_message
from bot.web.ag_ui.interrupts import make_interrupt
from bot.web.ag_ui.run_input import AguiInput, SentMessages
from bot.web.schemas.events import CallEnded, CallStarted, TurnEvents
from bot.web.schemas.proposals import ProposalView


class RefusedMessage(NamedTuple):
    """A message of a person that was refused."""

    id: str  # empty if the message has no id
    reason: str  # why it was refused


class RunStream:
    """The writer of one run's events.

    An answer is one message of the model, known by its key; a turn may have several. An answer that was cut
    off may be restarted: what was sent of it is withdrawn.
    """

    def __init__(self, run: AguiInput, sent: SentMessages) -> None:
        self._run = run
        # the key of the current answer; None if there is no answer, or it is stored, so its text is not sent
        self._answer_key: str | None = None
        self._thought_count = 0  # of the current answer
        self._restart_count = 0  # of the current answer
        self._open_text: AssistantMessage | None = None  # the text that is being written
        self._open_thought: ReasoningMessage | None = None  # the thought that is being written
        self._messages = FrontEndMessages(sent)
        self._stored_ids: set[str] = set()  # the ids of the stored messages at the last `catch_up`
        self._awaited: set[str] = set()  # the ids of proposals whose result was not sent yet
        self._state: dict[str, Any] = {}  # the state that the front end has
        self._refusals: dict[str, str] = {}  # why a press was refused, by the proposal's id

    def begin(self, state: dict[str, Any]) -> list[BaseEvent]:
        """Return the first events: the beginning of the run, and the full state."""
        self._state = state
        begun = RunStartedEvent(
            thread_id=self._run.thread_id,
            run_id=self._run.run_id,
            parent_run_id=self._run.parent_run_id,
            protocol_version=PROTOCOL_VERSION,
        )
        return [begun, StateSnapshotEvent(snapshot=state)]

    def catch_up(self, stored: Sequence[Message]) -> list[BaseEvent]:
        """Return the events that bring the front end's messages into line with the ``stored`` ones."""
        self._stored_ids = {message.id for message in stored}
        self._awaited -= {message.tool_call_id for message in stored if isinstance(message, ToolMessage)}
        needed = self._messages.merge_stored(stored)
        if needed is NeededSnapshot.NONE:
            return []
        events = self._close_all()
        if needed is NeededSnapshot.AFTER_EMPTY:
            events.append(MessagesSnapshotEvent(messages=[]))
        return [*events, MessagesSnapshotEvent(messages=self._messages.copy())]

    def write_reply(self, interrupt_id: str, proposal_id: str, reply: Reply) -> BaseEvent:
        """Return the event for the core's reply to a press, which is an answer to an interrupt.

        A refusal is kept for the messages and interrupts at the end of the run.
        """
        if reply.answer not in (Answer.ACCEPTED, Answer.DUPLICATE):
            self._refusals[proposal_id] = reply.text
        value = {"interruptId": interrupt_id, "answer": reply.answer, "text": reply.text}
        return CustomEvent(name="nod.answer", value=value)

    def write_refused_presses(self, waiting: Sequence[ProposalView]) -> list[BaseEvent]:
        """Return the events of messages that say why presses were refused.

        Refusals for the ``waiting`` proposals are left out: their interrupts say them.
        """
        waiting_ids = {proposal.id for proposal in waiting}
        events: list[BaseEvent] = []
        for proposal_id, words in self._refusals.items():
            if proposal_id not in waiting_ids:
                events += self._write_message(secrets.token_hex(8), words)
        return events

    def refuse_messages(self, messages: Sequence[RefusedMessage]) -> list[BaseEvent]:
        """Return the events that answer each refused message.

        The front end sends the answers back with its next run, like all messages.
        """
        events: list[BaseEvent] = []
        for refused in messages:
            message_id = f"{refused.id or self._run.run_id}{REFUSED_SUFFIX}"
            earlier_count = self._messages.count_with_prefix(message_id)
            if earlier_count:
                message_id += f":{earlier_count + 1}"
            events += self._write_message(message_id, refused.reason)
        return events

    def _write_message(self, message_id: str, text: str) -> list[BaseEvent]:
        self._messages.add(AssistantMessage(id=message_id, content=text))
        return [
            TextMessageStartEvent(message_id=message_id, role="assistant"),
            TextMessageContentEvent(message_id=message_id, delta=text),
            TextMessageEndEvent(message_id=message_id),
        ]

    def expect_result(self, proposal_id: str) -> None:
        """Expect the result of a call that an earlier run opened."""
        self._awaited.add(proposal_id)

    @property
    def is_awaiting(self) -> bool:
        """True if the result of a proposal was not sent yet."""
        return bool(self._awaited)

    def write_turn_event(self, event: TurnEvent, console_event: TurnEvents | None) -> list[BaseEvent]:
        """Return the run's events for an event of a turn; none if front ends don't get it.

        ``console_event``: the same event as the console gets it, with secrets hidden. Calls are taken from
        it.
        """
        match event:
            case AnswerBegun(key):
                return self._start_answer(key)
            case TextDelta(text) if self._answer_key:
                return self._add_text(self._answer_key, text)
            case ThoughtDelta(text) if self._answer_key:
                return self._add_thought(self._answer_key, text)
            case TextRestarted():
                return self._withdraw_answer()
            case TurnEnded() | TurnFailed():
                return self._close_all()
        match console_event:
            case CallStarted() if self._answer_key:
                return self._add_call(
                    make_call_id(self._answer_key, console_event.call_id),
                    console_event.tool_name,
                    console_event.arguments,
                )
            case CallEnded() if self._answer_key:
                return [
                    self._add_result(
                        make_call_id(self._answer_key, console_event.call_id), console_event.result
                    )
                ]
        return []

    def show_proposal(self, proposal: ProposalView) -> list[BaseEvent]:
        """Return the events of a proposal's call, and expect its result; none if the call was sent before."""
        if self._messages.has_call(proposal.id):
            return []
        self._awaited.add(proposal.id)
        return self._show_call(proposal)

    def write_result(self, proposal: ProposalView) -> list[BaseEvent]:
        """Return the events of a proposal's result, if it has one that is awaited; each is sent once."""
        result = find_result(proposal)
        if result is None or proposal.id not in self._awaited:
            return []
        self._awaited.remove(proposal.id)
        return [*self._show_call(proposal), self._add_result(proposal.id, result)]

    def update_state(self, **parts: Any) -> list[BaseEvent]:
        """Return the events for the changed parts of the state."""
        changed = {name: value for name, value in parts.items() if self._state.get(name) != value}
        self._state |= changed
        if not changed:
            return []
        # a JSON Patch (RFC 6902)
        delta = [{"op": "replace", "path": f"/{name}", "value": value} for name, value in changed.items()]
        return [StateDeltaEvent.model_validate({"delta": delta})]

    def finish(
        self, waiting: Sequence[ProposalView], end: TurnEnd | None, stored: Sequence[Message]
    ) -> list[BaseEvent]:
        """Return the last events: an error, an interrupt for each open proposal, or the end.

        ``stored``: the newest messages of the conversation, as `list_messages` returns them. ``end``: the end
        of the last turn in this run; None if no turn ended in it.
        """
        events = self._close_all()
        for proposal in waiting:
            events += self.show_proposal(proposal)
        if end is not None and end.error is not None:
            return [*events, self.make_failure(end.error, "turn_failed")]
        events += self.catch_up(stored)
        outcome: RunFinishedInterruptOutcome | RunFinishedCancelledOutcome | RunFinishedSuccessOutcome
        if waiting:
            outcome = RunFinishedInterruptOutcome(
                interrupts=[make_interrupt(proposal, self._refusals.get(proposal.id)) for proposal in waiting]
            )
        elif end is not None and end.state == Ending.STOPPED:
            outcome = RunFinishedCancelledOutcome()
        else:
            outcome = RunFinishedSuccessOutcome()
        return [
            *events,
            RunFinishedEvent(thread_id=self._run.thread_id, run_id=self._run.run_id, outcome=outcome),
        ]

    def break_off(self, text: str) -> list[BaseEvent]:
        """Return the last events of a stream that ends before its run does."""
        return [*self._close_all(), self.make_failure(text, "stream_ended")]

    @staticmethod
    def make_failure(text: str, code: str) -> BaseEvent:
        return RunErrorEvent(message=text, code=code)

    def _start_answer(self, key: str) -> list[BaseEvent]:
        """Make this the current answer. Return the events that close or withdraw what was sent before.

        The text of a stored answer is not sent again. If the current answer is restarted, the text that was
        sent of it is withdrawn.
        """
        if any(stored_id == key or stored_id.startswith(f"{key}:") for stored_id in self._stored_ids):
            self._answer_key = None
        elif key == self._answer_key:
            return self._withdraw_answer()
        else:
            self._answer_key = key
            self._thought_count = 0
            self._restart_count = 0
        return self._close_all()

    def _add_text(self, key: str, text: str) -> list[BaseEvent]:
        events = self._close_thought()
        if self._open_text is None:
            text = text.lstrip("\n")  # line breaks separate the answers of a turn
            if not text:
                return events
            message_id = f"{key}{RESTART_INFIX}{self._restart_count}" if self._restart_count else key
            self._open_text = AssistantMessage(id=message_id, content="")
            self._messages.add(self._open_text)
            events.append(TextMessageStartEvent(message_id=message_id, role="assistant"))
        self._open_text.content = f"{self._open_text.content}{text}"
        return [*events, TextMessageContentEvent(message_id=self._open_text.id, delta=text)]

    def _add_thought(self, key: str, text: str) -> list[BaseEvent]:
        events: list[BaseEvent] = []
        if self._open_thought is None:
            self._thought_count += 1
            message_id = f"{key}:thought:{self._thought_count}"
            self._open_thought = ReasoningMessage(id=message_id, content="")
            self._messages.add(self._open_thought)
            events = [
                ReasoningStartEvent(message_id=message_id),
                ReasoningMessageStartEvent(message_id=message_id),
            ]
        self._open_thought.content += text
        return [*events, ReasoningMessageContentEvent(message_id=self._open_thought.id, delta=text)]

    def _close_thought(self) -> list[BaseEvent]:
        if self._open_thought is None:
            return []
        message_id = self._open_thought.id
        self._open_thought = None
        return [ReasoningMessageEndEvent(message_id=message_id), ReasoningEndEvent(message_id=message_id)]

    def _close_all(self) -> list[BaseEvent]:
        """End the text and the thought that are open."""
        events = self._close_thought()
        if self._open_text is not None:
            events.append(TextMessageEndEvent(message_id=self._open_text.id))
            self._open_text = None
        return events

    def _show_call(self, proposal: ProposalView) -> list[BaseEvent]:
        """Return the events that close all texts, and those of a proposal's call if it was not sent yet."""
        if self._messages.has_call(proposal.id):
            return self._close_all()
        return self._add_call(proposal.id, proposal.tool_name, proposal.tool_arguments)

    def _withdraw_answer(self) -> list[BaseEvent]:
        """Return the events that withdraw the current answer's text: a snapshot without it."""
        events = self._close_all()
        if self._answer_key is not None and self._messages.withdraw_answer(self._answer_key):
            self._restart_count += 1  # so that the restarted text gets another id
            events.append(MessagesSnapshotEvent(messages=self._messages.copy()))
        return events

    def _add_call(self, ident: str, name: str, arguments: Any) -> list[BaseEvent]:
        message, text = make_call(ident, name, arguments)
        events = self._close_all()
        self._messages.add(message)
        return [
            *events,
            ToolCallStartEvent(tool_call_id=ident, tool_call_name=name),
            ToolCallArgsEvent(tool_call_id=ident, delta=text),
            ToolCallEndEvent(tool_call_id=ident),
        ]

    def _add_result(self, ident: str, text: str) -> BaseEvent:
        message = make_result_message(ident, text)
        self._messages.add(message)
        return ToolCallResultEvent(message_id=message.id, tool_call_id=ident, content=text)
