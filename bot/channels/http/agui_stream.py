"""What a run says in AG-UI's events (https://docs.ag-ui.com, protocol 1.0). Pure.

A proposal's call carries the proposal's id, which is unique, as models' own call ids are not. Its interrupt
carries the id and the round, so that an answer counts for the content that was shown.
"""

import json
from collections.abc import Sequence
from typing import Any

from ag_ui.core import (
    PROTOCOL_VERSION,
    AssistantMessage,
    BaseEvent,
    CustomEvent,
    FunctionCall,
    Interrupt,
    Message,
    MessagesSnapshotEvent,
    ReasoningEndEvent,
    ReasoningMessage,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunAgentInput,
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
    ToolCall,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
)

from bot.channels.http.wire import ProposalView
from bot.domain.chat import Answer, Reply
from bot.domain.conversations import TurnEnd
from bot.domain.events import (
    Ending,
    TextDelta,
    TextRestarted,
    ThoughtDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnEvent,
    TurnFailed,
)
from bot.domain.proposals import Kind, State
from bot.domain.verbs import Verb

_REASONS = {Kind.QUESTION: "input_required", Kind.PLAN: "confirmation"}
_CALL = "tool_call"
_UNENDED = (State.PROPOSED, State.APPROVED, State.EXECUTING)
_LONGEST_REASON = 1000
_TAKEN = (Answer.ACCEPTED, Answer.ALREADY, Answer.DUPLICATE)


class RunStream:
    """Makes the events of one run, in the order in which their grounds come."""

    def __init__(self, given: RunAgentInput) -> None:
        self._run = given
        self._texts = 0
        self._thoughts = 0
        self._open: AssistantMessage | ReasoningMessage | None = None
        self._made: list[Message] = []  # in this run
        self._calls: dict[str, str] = {}  # of reads that run: the model's id by ours, the other way round
        self._known = {
            call.id
            for message in given.messages
            if isinstance(message, AssistantMessage)
            for call in message.tool_calls or ()
        }
        self._awaited: set[str] = set()  # proposals whose result is still to be told
        self._state: dict[str, Any] = {}
        self._answers: dict[str, str] = {}  # why a press was not taken, by its proposal

    def started(self, state: dict[str, Any]) -> list[BaseEvent]:
        """The first events."""
        self._state = state
        begun = RunStartedEvent(
            thread_id=self._run.thread_id,
            run_id=self._run.run_id,
            parent_run_id=self._run.parent_run_id,
            protocol_version=PROTOCOL_VERSION,
        )
        return [begun, StateSnapshotEvent(snapshot=state)]

    def answered(self, interrupt_id: str, proposal_id: str, reply: Reply) -> BaseEvent:
        """How one entry of ``resume`` was taken, in words for people."""
        if reply.answer not in _TAKEN:
            why = "; ".join(f"{name}: {what}" for name, what in reply.fields.items())
            self._answers[proposal_id] = f"{reply.text} {why}".strip()
        told = {"interruptId": interrupt_id, "answer": reply.answer, "text": reply.text}
        return CustomEvent(name="nod.answer", value=told)

    def awaits(self, proposal_id: str) -> None:
        """An earlier run opened this call; its result comes in this one."""
        self._awaited.add(proposal_id)

    @property
    def awaited(self) -> Sequence[str]:
        return tuple(self._awaited)

    def of_turn(self, event: TurnEvent, payload: dict[str, Any]) -> list[BaseEvent]:
        """A turn's event, with what the console's stream says of it, secrets hidden."""
        match event:
            case TextDelta(text):
                return self._text(text)
            case ThoughtDelta(text):
                return self._thought(text)
            case TextRestarted():
                return self._again()
            case ToolStarted():
                ident = f"{self._run.run_id}:{len(self._calls) + 1}"
                self._calls[payload["call_id"]] = ident
                return self._call(ident, payload["tool_name"], payload["arguments"])
            case ToolFinished():
                known = self._calls.get(payload["call_id"])
                return [] if known is None else [self._result(known, payload["result"])]
            case TurnEnded() | TurnFailed():
                return self._closed()
            case _:
                return []

    def opened(self, proposal: ProposalView) -> list[BaseEvent]:
        """The call that became a proposal; nothing for one that the front end knows."""
        if proposal["id"] in self._known:
            return []
        self._awaited.add(proposal["id"])
        return self._announced(proposal)

    def ended(self, proposal: ProposalView) -> list[BaseEvent]:
        """The result of a proposal that this run opened or answered, once it has one."""
        if proposal["state"] in _UNENDED or proposal["id"] not in self._awaited:
            return []
        self._awaited.remove(proposal["id"])
        told = proposal["result"] if proposal["state"] is State.SUCCEEDED else None
        return [*self._announced(proposal), self._result(proposal["id"], told or proposal["outcome"])]

    def state(self, **now: Any) -> list[BaseEvent]:
        """What of the state changed."""
        changed = {name: value for name, value in now.items() if self._state.get(name) != value}
        self._state |= changed
        delta = [{"op": "replace", "path": f"/{name}", "value": value} for name, value in changed.items()]
        return [StateDeltaEvent.model_validate({"delta": delta})] if delta else []

    def finished(self, waiting: Sequence[ProposalView], end: TurnEnd | None) -> list[BaseEvent]:
        """The last events: an error, an interrupt for each open proposal, or the end.

        ``end``: how the run's last turn ended; None where it had none.
        """
        last = [*self._closed(), *(event for each in waiting for event in self.opened(each))]
        if end is not None and end.error is not None:
            return [*last, self.failed(end.error, "turn_failed")]
        outcome: RunFinishedInterruptOutcome | RunFinishedCancelledOutcome | RunFinishedSuccessOutcome
        if waiting:
            outcome = RunFinishedInterruptOutcome(interrupts=[self._interrupt(each) for each in waiting])
        elif end is not None and end.state == Ending.STOPPED:
            outcome = RunFinishedCancelledOutcome()
        else:
            outcome = RunFinishedSuccessOutcome()
        return [
            *last,
            RunFinishedEvent(thread_id=self._run.thread_id, run_id=self._run.run_id, outcome=outcome),
        ]

    def broken_off(self, text: str) -> list[BaseEvent]:
        """The run continues without this stream."""
        return [*self._closed(), self.failed(text, "stream_ended")]

    @staticmethod
    def failed(text: str, code: str) -> BaseEvent:
        return RunErrorEvent(message=text, code=code)

    def _text(self, text: str) -> list[BaseEvent]:
        events: list[BaseEvent] = []
        said = self._open
        if not isinstance(said, AssistantMessage):
            text = text.lstrip("\n")  # what parts two answers of one turn
            if not text:
                return []
            events = self._closed()
            self._texts += 1
            self._open = said = AssistantMessage(id=f"{self._run.run_id}:text:{self._texts}", content="")
            events.append(TextMessageStartEvent(message_id=said.id, role="assistant"))
        if text:
            said.content = f"{said.content}{text}"
            events.append(TextMessageContentEvent(message_id=said.id, delta=text))
        return events

    def _thought(self, text: str) -> list[BaseEvent]:
        events: list[BaseEvent] = []
        thought = self._open
        if not isinstance(thought, ReasoningMessage):
            events = self._closed()
            self._thoughts += 1
            self._open = thought = ReasoningMessage(
                id=f"{self._run.run_id}:thought:{self._thoughts}", content=""
            )
            events += [
                ReasoningStartEvent(message_id=thought.id),
                ReasoningMessageStartEvent(message_id=thought.id),
            ]
        thought.content += text
        return [*events, ReasoningMessageContentEvent(message_id=thought.id, delta=text)]

    def _closed(self) -> list[BaseEvent]:
        """End the text or the thought that is open."""
        if self._open is None:
            return []
        done, self._open = self._open, None
        self._made.append(done)
        if isinstance(done, ReasoningMessage):
            return [ReasoningMessageEndEvent(message_id=done.id), ReasoningEndEvent(message_id=done.id)]
        return [TextMessageEndEvent(message_id=done.id)]

    def _announced(self, proposal: ProposalView) -> list[BaseEvent]:
        """The call that became a proposal, unless the front end knows it; no text is open after it."""
        if proposal["id"] in self._known:
            return self._closed()
        self._known.add(proposal["id"])
        return self._call(proposal["id"], proposal["tool_name"], proposal["tool_arguments"])

    def _again(self) -> list[BaseEvent]:
        """The text since the last call was cut off and is said again: withdraw it."""
        events = self._closed()
        said = []
        for message in reversed(self._made):
            if isinstance(message, ToolMessage) or getattr(message, "tool_calls", None):
                break
            said += [message] if isinstance(message, AssistantMessage) else []
        if said:
            self._made = [message for message in self._made if message not in said]
            events.append(MessagesSnapshotEvent(messages=[*self._run.messages, *self._made]))
        return events

    def _call(self, ident: str, name: str, arguments: Any) -> list[BaseEvent]:
        text = json.dumps(arguments, ensure_ascii=False)
        made = ToolCall(id=ident, function=FunctionCall(name=name, arguments=text))
        events = self._closed()
        self._made.append(AssistantMessage(id=ident, tool_calls=[made]))
        return [
            *events,
            ToolCallStartEvent(tool_call_id=ident, tool_call_name=name),
            ToolCallArgsEvent(tool_call_id=ident, delta=text),
            ToolCallEndEvent(tool_call_id=ident),
        ]

    def _result(self, ident: str, text: str) -> BaseEvent:
        self._made.append(ToolMessage(id=f"{ident}:result", tool_call_id=ident, content=text))
        return ToolCallResultEvent(message_id=f"{ident}:result", tool_call_id=ident, content=text)

    def _interrupt(self, proposal: ProposalView) -> Interrupt:
        ident = interrupt_id(proposal)
        return Interrupt(
            id=ident,
            reason=_REASONS.get(proposal["kind"], _CALL),
            message=" ".join(t for t in (self._answers.get(proposal["id"]), proposal["headline"]) if t),
            tool_call_id=proposal["id"],
            response_schema=response_schema(proposal),
            expires_at=proposal["expires_at"],
            metadata={"nod": dict(proposal)},
        )


def interrupt_id(proposal: ProposalView) -> str:
    """Names the content that is shown: after an edit it is another."""
    return f"{proposal['id']}-{proposal['round']}"


def parts_of(interrupt: str) -> tuple[str, int] | None:
    """The proposal's id and the round; None for what is no interrupt of Nod's."""
    ident, _, number = interrupt.partition("-")
    return (ident, int(number)) if ident.isalnum() and number.isdecimal() and len(number) < 9 else None  # noqa: PLR2004


def response_schema(proposal: ProposalView) -> dict[str, Any]:
    """What an answer to the interrupt may hold, for a form."""
    approved = {
        "type": "boolean",
        "description": "false declines; leave it out to decide later",
    }
    reason = {"type": "string", "maxLength": _LONGEST_REASON, "description": "why it is declined"}
    properties: dict[str, Any] = {"approved": approved, "reason": reason}
    if Verb.EDIT in proposal["verbs"]:
        properties["editedArgs"] = {
            **proposal["schema"],
            "description": "instead of the proposed arguments; without approved, people are asked again",
        }
    if Verb.REVISE in proposal["verbs"]:
        revise = {"type": "string", "maxLength": _LONGEST_REASON, "description": "what should change instead"}
        properties["revise"] = revise
    return {"type": "object", "properties": properties}
