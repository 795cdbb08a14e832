"""One turn: ask the model, run its reads, turn its writes into proposals, until it is silent or must wait.

`run` is an async generator of `TurnEvent`. Everything the turn says is committed before the event that ends
it. A turn that opens proposals ends as ``WAITING``: from then on it is rows, with no task and no memory. It
is resumed by a new turn once every call of that answer has ended (``bot/store/decisions.py``, `settle`).
Running a turn again from its rows is safe, because a turn never writes anything but its own rows.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlmodel import Session

from bot.agent.gate import Considered, Gate, offer
from bot.agent.model import Finished, Model, Stop, Text, ToolCall, ToolSpec
from bot.agent.prompt import system_prompt
from bot.agent.transcript import entries
from bot.domain.chat import Clock
from bot.domain.conversations import CallResult, Transcript, Turn, Usage
from bot.domain.events import (
    Ending,
    ProposalOpened,
    TextDelta,
    TextRestarted,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnEvent,
    TurnFailed,
)
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact
from bot.errors import ModelCut, ModelError
from bot.store import conversations, grants, proposals
from bot.store.audit import By
from bot.store.database import Database
from bot.telemetry import logger
from bot.tools.registry import Shelf

log = logger(__name__)

_CUT_RETRIES = 2
_TOO_MANY = (
    "I stopped here: this took more steps than one turn may have. Tell me to go on, or ask for less at once."
)
_BROKEN = "Something broke on my side, and the log says what. Please try again."
_CUT_SHORT = "\n\n(My answer ran into its length limit and stops here.)"
_FILTERED = "\n\n(The provider of the language model withheld the rest of this answer.)"


@dataclass(frozen=True, slots=True)
class Limits:
    """``model_calls`` per turn; ``history_tokens`` the model is given at most, roughly."""

    model_calls: int = 12
    history_tokens: int = 24_000


@dataclass(frozen=True, slots=True)
class Committed:
    """What one answer became: its message id, what it opened, and how the turn ended, if it did."""

    message_id: int
    opened: tuple[Proposal, ...]
    ending: Ending | None


class Loop:
    def __init__(self, model: Model, gate: Gate, database: Database, clock: Clock, limits: Limits) -> None:
        self._model = model
        self._gate = gate
        self._database = database
        self._clock = clock
        self._limits = limits

    async def run(self, turn: Turn, *, delivered: bool) -> AsyncIterator[TurnEvent]:
        """Run a wanted turn to its end. ``delivered`` False: what is said still has to be shown."""
        said: list[str] = []
        try:
            shelf = await self._gate.registry.shelf()
            specs = tuple(offer(tool) for tool in shelf)
            prompt = system_prompt(shelf)
            while True:
                if not turn.transcript.awaits_answer:
                    if await self._database.write(_rest, turn, self._clock()):
                        yield TurnEnded(Ending.WAITING, turn.transcript.seen, _joined(said))
                        return
                    turn = await self._next(turn, turn.usage)
                    continue
                if turn.usage.model_calls >= self._limits.model_calls:
                    raise ModelError(_TOO_MANY)
                finished: Finished | None = None
                text: list[str] = []
                async for part in self._ask(turn.transcript, prompt, specs):
                    match part:
                        case Text(more):
                            text.append(more)
                            yield TextDelta(more)
                        case TextRestarted():
                            text.clear()
                            yield part
                        case Finished():
                            finished = part
                if finished is None:
                    raise ModelCut
                if note := {Stop.LENGTH: _CUT_SHORT, Stop.FILTERED: _FILTERED}.get(finished.stop):
                    text.append(note)
                    yield TextDelta(note)
                considered = await self._gate.consider(
                    shelf,
                    # calls of an answer that was cut may be cut themselves
                    _unique(finished.calls) if finished.stop is Stop.FINISHED else (),
                    turn.transcript.conversation,
                    turn.transcript.asker,
                    "".join(text),
                )
                reads = [c for c in considered if c.read]
                for c in reads:
                    shown = redact(c.read[1], c.read[0].parameters) if c.read else {}
                    yield ToolStarted(c.call.id, c.call.tool_name, c.call.summary, shown)
                results = {c.call.id: c.result for c in considered if c.result}
                results |= await self._read(reads, turn.transcript)
                for c in reads:
                    result = results[c.call.id]
                    yield ToolFinished(c.call.id, c.call.tool_name, result.ok, result.text)
                usage = Usage(
                    turn.usage.model_calls + 1,
                    turn.usage.prompt_tokens + finished.prompt_tokens,
                    turn.usage.completion_tokens + finished.completion_tokens,
                )
                said.append("".join(text))
                committed = await self._database.write(
                    self._commit, turn, said[-1], considered, results, usage, delivered, self._clock()
                )
                if committed is None:  # a person stopped the turn
                    yield TurnEnded(Ending.STOPPED, turn.transcript.seen, _joined(said))
                    return
                for proposal in committed.opened:
                    yield ProposalOpened(proposal)
                if committed.ending is not None:
                    yield TurnEnded(committed.ending, turn.transcript.seen, _joined(said))
                    return
                turn = await self._next(turn, usage)
        except Exception as error:  # noqa: BLE001 - people hear that it broke, and may write again
            if not isinstance(error, ModelError):
                log.error("a turn broke", conversation=turn.transcript.conversation.id, exc_info=error)
            words = error.message if isinstance(error, ModelError) else _BROKEN
            await self._database.write(_fail, turn, words, delivered, self._clock())
            yield TurnFailed(words, turn.transcript.seen)

    async def _ask(
        self, transcript: Transcript, prompt: str, specs: Sequence[ToolSpec]
    ) -> AsyncIterator[Text | Finished | TextRestarted]:
        """The model's answer; one that breaks off is asked for again, from the start."""
        history = entries(transcript, prompt, self._limits.history_tokens)
        for attempt in range(_CUT_RETRIES + 1):
            shown = False
            try:
                async for part in self._model.stream(history, specs):
                    shown = shown or isinstance(part, Text)
                    yield part
            except ModelCut:
                if attempt == _CUT_RETRIES:
                    raise
                if shown:
                    yield TextRestarted()
            else:
                return

    async def _read(self, reads: Sequence[Considered], transcript: Transcript) -> dict[str, CallResult]:
        """Run reads side by side."""
        done = await asyncio.gather(
            *(self._gate.read(*c.read, transcript.conversation) for c in reads if c.read is not None)
        )
        return {c.call.id: result for c, result in zip(reads, done, strict=True)}

    async def _next(self, turn: Turn, usage: Usage) -> Turn:
        """The same turn, with what it said and what people said meanwhile."""
        transcript = await self._database.read(conversations.read_transcript, turn.transcript.conversation.id)
        return replace(turn, transcript=transcript or turn.transcript, usage=usage)

    def _commit(
        self,
        session: Session,
        turn: Turn,
        text: str,
        considered: Sequence[Considered],
        results: dict[str, CallResult],
        usage: Usage,
        delivered: bool,  # noqa: FBT001 - passed through by position
        now: datetime,
    ) -> Committed | None:
        """One transaction: what the model said, the proposals it led to, the end of the turn if it ends."""
        calls = [c.call for c in considered]
        message_id = conversations.answer(
            session, turn, text, calls, results, usage, delivered=delivered, now=now
        )
        if message_id is None:
            return None
        asked = ((replace(c.proposal, message_id=message_id), c.key) for c in considered if c.proposal)
        policies = self._gate.policies
        opened = tuple(grants.use(session, policies, proposal, key, now) for proposal, key in asked)
        proposals.insert_all(session, opened, By.nod("propose"))
        ending = Ending.WAITING if opened else None if calls else Ending.DONE
        seen = turn.transcript.seen
        if ending and not conversations.end_turn(session, turn, ending, now, seen=seen):
            ending = None
        return Committed(message_id, opened, ending)


def _rest(session: Session, turn: Turn, now: datetime) -> bool:
    """End a turn that has nothing to say; False when that changed since it was read."""
    conversations.hold_turn(session, turn)
    transcript = conversations.read_transcript(session, turn.transcript.conversation.id)
    if transcript is not None and transcript.awaits_answer:
        return False
    return conversations.end_turn(session, turn, Ending.WAITING, now)


def _fail(
    session: Session,
    turn: Turn,
    explanation: str,
    delivered: bool,  # noqa: FBT001 - passed through by position
    now: datetime,
) -> None:
    """End the turn and tell people why. What they wrote meanwhile is still to be answered, by a new turn."""
    conversations.end_turn(session, turn, "failed", now, error=explanation)
    ident, seen = turn.transcript.conversation.id, turn.transcript.seen
    conversations.add_notice(session, ident, explanation, seen, now, delivered=delivered)
    if conversations.heard_since(session, ident, seen):
        conversations.want_turn(session, ident, now)


def _unique(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """Some servers give two calls one id; results are told apart by it."""
    taken: set[str] = set()
    kept = []
    for position, call in enumerate(calls):
        fresh = call if call.id not in taken else replace(call, id=f"{call.id}-{position}")
        taken.add(fresh.id)
        kept.append(fresh)
    return kept


def _joined(said: Sequence[str]) -> str:
    return "\n\n".join(text for text in said if text.strip())
