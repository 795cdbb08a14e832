"""Writes a run as AG-UI's events (https://docs.ag-ui.com, protocol 1.0), without any I/O.

A run is a piece of the agent's work in a thread, which is a conversation. `RunStream` turns what happens in
it into events: texts, thoughts, tool calls and their results. At the end comes an interrupt for each open
proposal, which is a call that waits for people. `RunStream` also keeps the list of messages that the front
end has. `catch_up` returns the events that bring this list into line with the stored conversation.
``routes.py`` calls all of it.

A proposal's call carries the proposal's id, since models' own call ids are not unique.
"""

import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
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
    UserMessage,
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
from bot.web.ag_ui.history import find_result, make_call, make_call_id, make_result_message
from bot.web.ag_ui.interrupts import make_interrupt
from bot.web.ag_ui.run_input import AguiInput, SentMessages, is_same_text, read_text
from bot.web.schemas.events import CallEnded, CallStarted, TurnEvents
from bot.web.schemas.proposals import ProposalView

_REFUSED_SUFFIX = ":refused"
"""Added to the id of a refused message, it gives the id of the message that says why."""


class RefusedMessage(NamedTuple):
    """A message of a person that was refused."""

    id: str  # empty if the message has no id
    words: str  # why it was refused


class RunStream:
    """The writer of one run's events.

    An answer is one message of the model, known by its key; a turn may have several. An answer that was cut
    off may be restarted: what was sent of it is withdrawn.
    """

    def __init__(self, run: AguiInput, sent: SentMessages) -> None:
        self._run = run
        # the front end's messages fill too much of a request, until `catch_up` has sent it a shorter list
        self._is_heavy = sent.is_heavy
        # the key of the current answer; None if there is no answer, or it is stored, so its text is not sent
        self._answer_key: str | None = None
        self._thought_count = 0  # of the current answer
        self._restart_count = 0  # of the current answer
        self._open_text: AssistantMessage | None = None  # the text that is being written
        self._open_thought: ReasoningMessage | None = None  # the thought that is being written
        # the front end's messages by id; of several messages with one id, the last
        self._messages: list[Message] = list({message.id: message for message in sent.readable}.values())
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
        """Return the events that bring the front end's messages into line with the ``stored`` ones.

        - The messages are in line: no events.
        - Messages are missing or differ: a snapshot of all messages. A front end adds new messages of a
          snapshot at its end, and does not move those that it has.
        - The order would then be wrong: an empty snapshot comes first.

        Thoughts, which only the front end has, stay behind the message that they followed.
        """
        if not self._is_heavy:
            stored = self._with_files(stored)
        by_id = {message.id: message for message in stored}
        self._stored_ids = set(by_id)
        self._awaited -= {message.tool_call_id for message in stored if isinstance(message, ToolMessage)}

        shared = [message for message in self._messages if message.id in by_id]
        shared_texts, stored_texts = _list_text_ids(shared), _list_text_ids(stored)
        # the texts that the front end has must be the first of the stored ones, in the same order
        is_in_order = shared_texts == stored_texts[: len(shared_texts)]
        can_add_at_end = is_in_order and not self._is_heavy
        has_all = len(shared) == len(by_id)
        if has_all and can_add_at_end and not self._has_outdated(by_id):
            return []
        self._messages = self._merge(stored, by_id)
        self._is_heavy = False
        events = self._close_all()
        if not can_add_at_end:
            events.append(MessagesSnapshotEvent(messages=[]))
        return [*events, MessagesSnapshotEvent(messages=list(self._messages))]

    def _has_outdated(self, by_id: Mapping[str, Message]) -> bool:
        """Tell if the front end has an answer with another text than the stored one, or an unknown result.

        Some front ends keep a person's answer to an interrupt as the call's result. ``by_id``: the stored
        messages.
        """
        for message in self._messages:
            stored = by_id.get(message.id)
            if stored is None and isinstance(message, ToolMessage):
                return True
            if stored is None or not isinstance(message, AssistantMessage):
                continue
            if _content_of(message) != _content_of(stored):
                return True
        return False

    def _merge(self, stored: Sequence[Message], by_id: Mapping[str, Message]) -> list[Message]:
        """Return the stored messages, each followed by those that only the front end has there.

        Of the latter, thoughts and the like are kept, and refused messages with the messages that refuse
        them. Other texts, calls and results are dropped. ``by_id``: the stored messages.
        """
        refusal_ids = [message.id for message in self._messages if _REFUSED_SUFFIX in message.id]
        refused_ids = {refusal_id.partition(_REFUSED_SUFFIX)[0] for refusal_id in refusal_ids}
        # the kept messages by the id of the stored message before them; None for those before all stored ones
        following: dict[str | None, list[Message]] = defaultdict(list)
        last_id = None
        for message in self._messages:
            is_thought = not isinstance(message, UserMessage | AssistantMessage | ToolMessage)
            is_of_refusal = message.id in refused_ids or _REFUSED_SUFFIX in message.id
            if message.id in by_id:
                last_id = message.id
            elif is_thought or is_of_refusal:
                following[last_id].append(message)
        merged = list(following[None])
        for message in stored:
            merged += [message, *following[message.id]]
        return merged

    def _with_files(self, stored: Sequence[Message]) -> list[Message]:
        """Return the stored messages; people's are replaced by the front end's, which have the files."""
        from_people = {message.id: message for message in self._messages if isinstance(message, UserMessage)}
        messages: list[Message] = []
        for message in stored:
            sent = from_people.get(message.id)
            if sent is not None and is_same_text(read_text(sent), _content_of(message)):
                messages.append(sent)
            else:
                messages.append(message)
        return messages

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
            message_id = f"{refused.id or self._run.run_id}{_REFUSED_SUFFIX}"
            earlier = [message for message in self._messages if message.id.startswith(message_id)]
            if earlier:
                message_id += f":{len(earlier) + 1}"
            events += self._write_message(message_id, refused.words)
        return events

    def _write_message(self, message_id: str, words: str) -> list[BaseEvent]:
        self._messages.append(AssistantMessage(id=message_id, content=words))
        return [
            TextMessageStartEvent(message_id=message_id, role="assistant"),
            TextMessageContentEvent(message_id=message_id, delta=words),
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
        if self._has_call(proposal.id):
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
            message_id = f"{key}:again:{self._restart_count}" if self._restart_count else key
            self._open_text = AssistantMessage(id=message_id, content="")
            self._messages.append(self._open_text)
            events.append(TextMessageStartEvent(message_id=message_id, role="assistant"))
        self._open_text.content = f"{self._open_text.content}{text}"
        return [*events, TextMessageContentEvent(message_id=self._open_text.id, delta=text)]

    def _add_thought(self, key: str, text: str) -> list[BaseEvent]:
        events: list[BaseEvent] = []
        if self._open_thought is None:
            self._thought_count += 1
            message_id = f"{key}:thought:{self._thought_count}"
            self._open_thought = ReasoningMessage(id=message_id, content="")
            self._messages.append(self._open_thought)
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

    def _has_call(self, ident: str) -> bool:
        """Tell if the front end has the call of this id."""
        for message in self._messages:
            for tool_call in getattr(message, "tool_calls", None) or ():
                if tool_call.id == ident:
                    return True
        return False

    def _show_call(self, proposal: ProposalView) -> list[BaseEvent]:
        """Return the events that close all texts, and those of a proposal's call if it was not sent yet."""
        if self._has_call(proposal.id):
            return self._close_all()
        return self._add_call(proposal.id, proposal.tool_name, proposal.tool_arguments)

    def _withdraw_answer(self) -> list[BaseEvent]:
        """Return the events that withdraw the current answer's text: a snapshot without it."""
        events = self._close_all()
        prefix_of_restarts = f"{self._answer_key}:again:"
        others = [
            message
            for message in self._messages
            if message.id != self._answer_key and not message.id.startswith(prefix_of_restarts)
        ]
        if len(others) < len(self._messages):
            self._restart_count += 1  # so that the restarted text gets another id
            self._messages = others
            events.append(MessagesSnapshotEvent(messages=list(others)))
        return events

    def _add_call(self, ident: str, name: str, arguments: Any) -> list[BaseEvent]:
        message, text = make_call(ident, name, arguments)
        events = self._close_all()
        self._messages.append(message)
        return [
            *events,
            ToolCallStartEvent(tool_call_id=ident, tool_call_name=name),
            ToolCallArgsEvent(tool_call_id=ident, delta=text),
            ToolCallEndEvent(tool_call_id=ident),
        ]

    def _add_result(self, ident: str, text: str) -> BaseEvent:
        message = make_result_message(ident, text)
        self._messages.append(message)
        return ToolCallResultEvent(message_id=message.id, tool_call_id=ident, content=text)


def _content_of(message: Message) -> str:
    return str(message.content or "")


def _list_text_ids(messages: Sequence[Message]) -> list[str]:
    """Return the ids of the messages that people read as text."""
    ids = []
    for message in messages:
        is_answer = isinstance(message, AssistantMessage) and message.content
        if is_answer or isinstance(message, UserMessage):
            ids.append(message.id)
    return ids
