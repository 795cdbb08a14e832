"""A run as AG-UI's events (https://docs.ag-ui.com, protocol 1.0). Pure.

A proposal's call carries the proposal's id, which is unique, as models' own call ids are not. Its interrupt
carries the id and the round, so that an answer counts for the content that was shown.
"""

import secrets
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from ag_ui.core import (
    PROTOCOL_VERSION,
    AssistantMessage,
    BaseEvent,
    CustomEvent,
    Interrupt,
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

from bot.domain import kinds
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
from bot.domain.verbs import Verb
from bot.web.ag_ui.given import AguiInput, SentMessages, is_same_text, read_text
from bot.web.ag_ui.history import call_id, make_call, result_of, tool_result
from bot.web.schemas.events import CallEnded, CallStarted, TurnEvents
from bot.web.schemas.proposals import ProposalView

_REASONS = {kinds.QUESTION.name: "input_required", kinds.PLAN.name: "confirmation"}
_CALL = "tool_call"
_REFUSED = ":refused"
"""The end of the id of an answer to a message that was not taken in."""
_LONGEST_REASON = 1000


class RefusedMessage(NamedTuple):
    """A message of a person that was not taken in, and why. ``id`` is empty where it has none."""

    id: str
    words: str


class RunStream:
    """The writer of one run's events, in the order of their causes."""

    def __init__(self, given: AguiInput, sent: SentMessages) -> None:
        self._run = given
        self._is_heavy = sent.is_heavy
        self._answer: str | None = None  # the key of the one that is told; None: of nothing that began here
        self._thoughts = self._restarts = 0
        self._text: AssistantMessage | None = None  # open
        self._thought: ReasoningMessage | None = None  # open
        # what the front end has by now
        self._has: list[Message] = list({each.id: each for each in sent.readable}.values())
        self._stored: set[str] = set()  # ids of what the rows had when they were looked at last
        self._awaited: set[str] = set()  # proposals whose result is still to be told
        self._state: dict[str, Any] = {}
        self._answers: dict[str, str] = {}  # why a press was not taken, by its proposal

    def begin(self, state: dict[str, Any]) -> list[BaseEvent]:
        """Return the first events."""
        self._state = state
        begun = RunStartedEvent(
            thread_id=self._run.thread_id,
            run_id=self._run.run_id,
            parent_run_id=self._run.parent_run_id,
            protocol_version=PROTOCOL_VERSION,
        )
        return [begun, StateSnapshotEvent(snapshot=state)]

    def catch_up(self, said: Sequence[Message]) -> list[BaseEvent]:
        """Return all messages, for a front end that lacks some of them or has them in another order.

        Clients leave a message that they have where it is, and add others below: where that would be wrong,
        they begin with nothing. What they alone know of, such as thoughts, stays where it was.
        """
        if not self._is_heavy:
            said = self._with_files(said)
        ours = {message.id: message for message in said}
        self._stored = set(ours)
        self._awaited -= {each.tool_call_id for each in said if isinstance(each, ToolMessage)}
        kept = [message for message in self._has if message.id in ours]
        changed = any(isinstance(m, AssistantMessage) and _text(m) != _text(ours[m.id]) for m in kept)
        # some clients keep what a person answered as the call's result
        foreign = any(isinstance(m, ToolMessage) and m.id not in ours for m in self._has)
        have, told = _texts(kept), _texts(said)
        in_order = have == told[: len(have)] and not self._is_heavy
        if len(kept) == len(ours) and in_order and not (changed or foreign):
            return []
        alone: dict[str | None, list[Message]] = defaultdict(list)
        last = None
        refused = {message.id.partition(_REFUSED)[0] for message in self._has if _REFUSED in message.id}
        for message in self._has:
            is_spoken = isinstance(message, UserMessage | AssistantMessage | ToolMessage)
            if message.id in ours:
                last = message.id
            elif not is_spoken or message.id in refused or _REFUSED in message.id:
                alone[last].append(message)
        self._has = [*alone[None], *(each for m in said for each in (m, *alone[m.id]))]
        self._is_heavy = False
        nothing = [] if in_order else [MessagesSnapshotEvent(messages=[])]
        return [*self._close_all(), *nothing, MessagesSnapshotEvent(messages=list(self._has))]

    def _with_files(self, said: Sequence[Message]) -> list[Message]:
        """Return the messages, the person's as the front end has them: with their files."""
        theirs = {each.id: each for each in self._has if isinstance(each, UserMessage)}
        kept: list[Message] = []
        for message in said:
            sent = theirs.get(message.id)
            is_same = sent is not None and is_same_text(read_text(sent), _text(message))
            kept.append(sent if sent is not None and is_same else message)
        return kept

    def tell_answer(self, interrupt_id: str, proposal_id: str, reply: Reply) -> BaseEvent:
        """Return the event on how an entry of ``resume`` was taken, in words for people."""
        if reply.answer not in (Answer.ACCEPTED, Answer.DUPLICATE):
            self._answers[proposal_id] = reply.text
        told = {"interruptId": interrupt_id, "answer": reply.answer, "text": reply.text}
        return CustomEvent(name="nod.answer", value=told)

    def too_late(self, waiting: Sequence[ProposalView]) -> list[BaseEvent]:
        """Return the refusals of presses as text; for a waiting proposal its interrupt has them."""
        still = {each.id for each in waiting}
        late = [words for ident, words in self._answers.items() if ident not in still]
        return [event for words in late for event in self._tell(secrets.token_hex(8), words)]

    def refuse_messages(self, messages: Sequence[RefusedMessage]) -> list[BaseEvent]:
        """Answer each message in words. The front end keeps them, so that the next run comes after it."""
        events: list[BaseEvent] = []
        for refused in messages:
            name = f"{refused.id or self._run.run_id}{_REFUSED}"
            number = len([each for each in self._has if each.id.startswith(name)])
            events += self._tell(f"{name}:{number + 1}" if number else name, refused.words)
        return events

    def _tell(self, ident: str, words: str) -> list[BaseEvent]:
        self._has.append(AssistantMessage(id=ident, content=words))
        return [
            TextMessageStartEvent(message_id=ident, role="assistant"),
            TextMessageContentEvent(message_id=ident, delta=words),
            TextMessageEndEvent(message_id=ident),
        ]

    def awaits(self, proposal_id: str) -> None:
        """Expect the result of a call that an earlier run opened."""
        self._awaited.add(proposal_id)

    @property
    def awaited(self) -> Sequence[str]:
        return tuple(self._awaited)

    def of_turn(self, event: TurnEvent, said: TurnEvents | None) -> list[BaseEvent]:
        """Return a turn's event, with what the console's stream says of it, secrets hidden."""
        match event:
            case AnswerBegun(key):
                return self._begin(key)
            case TextDelta(text) if self._answer:
                return self._say(self._answer, text)
            case ThoughtDelta(text) if self._answer:
                return self._think(self._answer, text)
            case TextRestarted():
                return self._again()
            case TurnEnded() | TurnFailed():
                return self._close_all()
        match said:
            case CallStarted() if self._answer:
                return self._call(call_id(self._answer, said.call_id), said.tool_name, said.arguments)
            case CallEnded() if self._answer:
                return [self._result(call_id(self._answer, said.call_id), said.result)]
        return []

    def tell_proposal(self, proposal: ProposalView) -> list[BaseEvent]:
        """Return the call that became a proposal; nothing for one that the front end knows."""
        if self._knows(proposal.id):
            return []
        self._awaited.add(proposal.id)
        return self._announce(proposal)

    def tell_end(self, proposal: ProposalView) -> list[BaseEvent]:
        """Return the result of a proposal that this run opened or answered, once it has one."""
        if result_of(proposal) is None or proposal.id not in self._awaited:
            return []
        self._awaited.remove(proposal.id)
        return [*self._announce(proposal), self._result(proposal.id, result_of(proposal) or "")]

    def state(self, **now: Any) -> list[BaseEvent]:
        """Return the events for the changed parts of the state."""
        changed = {name: value for name, value in now.items() if self._state.get(name) != value}
        self._state |= changed
        delta = [{"op": "replace", "path": f"/{name}", "value": value} for name, value in changed.items()]
        if delta:
            return [StateDeltaEvent.model_validate({"delta": delta})]
        return []

    def finished(
        self, waiting: Sequence[ProposalView], end: TurnEnd | None, said: Sequence[Message]
    ) -> list[BaseEvent]:
        """Return the last events: an error, an interrupt for each open proposal, or the end.

        ``said``: all of the conversation, as `history` gives it. ``end``: how the run's last turn ended; None
        where it had none.
        """
        last = [*self._close_all(), *(event for each in waiting for event in self.tell_proposal(each))]
        if end is not None and end.error is not None:
            return [*last, self.make_failure(end.error, "turn_failed")]
        last += self.catch_up(said)
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

    def break_off(self, text: str) -> list[BaseEvent]:
        """Return the events for a run that continues without this stream."""
        return [*self._close_all(), self.make_failure(text, "stream_ended")]

    @staticmethod
    def make_failure(text: str, code: str) -> BaseEvent:
        return RunErrorEvent(message=text, code=code)

    def _begin(self, key: str) -> list[BaseEvent]:
        """Begin another answer. A stored one is not told again; one that begins again is withdrawn."""
        if any(ident == key or ident.startswith(f"{key}:") for ident in self._stored):
            self._answer = None
        elif key == self._answer:
            return self._again()
        else:
            self._answer, self._thoughts, self._restarts = key, 0, 0
        return self._close_all()

    def _say(self, key: str, text: str) -> list[BaseEvent]:
        events = self._close_thought()
        if self._text is None:
            text = text.lstrip("\n")  # what parts two answers of one turn
            if not text:
                return events
            ident = f"{key}:again:{self._restarts}" if self._restarts else key
            self._text = AssistantMessage(id=ident, content="")
            self._has.append(self._text)
            events.append(TextMessageStartEvent(message_id=ident, role="assistant"))
        self._text.content = f"{self._text.content}{text}"
        return [*events, TextMessageContentEvent(message_id=self._text.id, delta=text)]

    def _think(self, key: str, text: str) -> list[BaseEvent]:
        events: list[BaseEvent] = []
        if self._thought is None:
            self._thoughts += 1
            ident = f"{key}:thought:{self._thoughts}"
            self._thought = ReasoningMessage(id=ident, content="")
            self._has.append(self._thought)
            events = [
                ReasoningStartEvent(message_id=ident),
                ReasoningMessageStartEvent(message_id=ident),
            ]
        self._thought.content += text
        return [*events, ReasoningMessageContentEvent(message_id=self._thought.id, delta=text)]

    def _close_thought(self) -> list[BaseEvent]:
        if self._thought is None:
            return []
        ident, self._thought = self._thought.id, None
        return [ReasoningMessageEndEvent(message_id=ident), ReasoningEndEvent(message_id=ident)]

    def _close_all(self) -> list[BaseEvent]:
        """End the text and the thought that are open."""
        events = self._close_thought()
        if self._text is not None:
            events.append(TextMessageEndEvent(message_id=self._text.id))
            self._text = None
        return events

    def _knows(self, call: str) -> bool:
        return any(call == each.id for m in self._has for each in getattr(m, "tool_calls", None) or ())

    def _announce(self, proposal: ProposalView) -> list[BaseEvent]:
        """Return the call of a proposal, unless the front end has it; all texts are closed first."""
        if self._knows(proposal.id):
            return self._close_all()
        return self._call(proposal.id, proposal.tool_name, proposal.tool_arguments)

    def _again(self) -> list[BaseEvent]:
        """Withdraw the text of an answer that was cut off and begins again."""
        events = self._close_all()
        said = [m for m in self._has if m.id.startswith(f"{self._answer}:again:") or m.id == self._answer]
        if said:
            self._restarts += 1  # no id is used twice
            self._has = left = [message for message in self._has if message not in said]
            events.append(MessagesSnapshotEvent(messages=list(left)))
        return events

    def _call(self, ident: str, name: str, arguments: Any) -> list[BaseEvent]:
        made, text = make_call(ident, name, arguments)
        events = self._close_all()
        self._has.append(made)
        return [
            *events,
            ToolCallStartEvent(tool_call_id=ident, tool_call_name=name),
            ToolCallArgsEvent(tool_call_id=ident, delta=text),
            ToolCallEndEvent(tool_call_id=ident),
        ]

    def _result(self, ident: str, text: str) -> BaseEvent:
        made = tool_result(ident, text)
        self._has.append(made)
        return ToolCallResultEvent(message_id=made.id, tool_call_id=ident, content=text)

    def _interrupt(self, proposal: ProposalView) -> Interrupt:
        ident = interrupt_id(proposal)
        return Interrupt(
            id=ident,
            reason=_REASONS.get(proposal.kind, _CALL),
            message=" ".join(t for t in (self._answers.get(proposal.id), proposal.headline) if t),
            tool_call_id=proposal.id,
            response_schema=response_schema(proposal),
            # with ``expires_at``, which as the interrupt's own would end the thread
            metadata={"nod": proposal.model_dump(mode="json")},
        )


def _text(message: Message) -> str:
    return str(message.content or "")


def _texts(messages: Sequence[Message]) -> list[str]:
    """Return the ids of what people read as text."""
    return [
        m.id
        for m in messages
        if isinstance(m, UserMessage) or (isinstance(m, AssistantMessage) and m.content)
    ]


def interrupt_id(proposal: ProposalView) -> str:
    """Return an id for the content on display: an edit changes it."""
    return f"{proposal.id}-{proposal.round}"


def parts_of(interrupt: str) -> tuple[str, int] | None:
    """Return the proposal's id and the round; None for what is no interrupt of Nod's."""
    ident, _, number = interrupt.partition("-")
    return (ident, int(number)) if ident.isalnum() and number.isdecimal() and len(number) < 9 else None  # noqa: PLR2004


def response_schema(proposal: ProposalView) -> dict[str, Any]:
    """Return the schema of an answer to the interrupt, for a form."""
    approved = {
        "type": "boolean",
        "description": "false declines; leave it out to decide later",
    }
    words = {"type": "string", "maxLength": _LONGEST_REASON}
    reason = words | {"description": "why it is declined"}
    properties: dict[str, Any] = {"approved": approved, "reason": reason}
    if Verb.ANSWER in proposal.verbs:
        likely = {"examples": proposal.choices} if proposal.choices else {}
        properties["answer"] = words | {"description": "your answer"} | likely
    if Verb.EDIT in proposal.verbs:
        properties["editedArgs"] = {
            **proposal.schema_,
            "description": "instead of the proposed arguments; without approved, people are asked again",
        }
    if Verb.REVISE in proposal.verbs:
        properties["revise"] = words | {"description": "what should change instead"}
    return {"type": "object", "properties": properties}
