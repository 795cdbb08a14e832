"""Presses from anywhere: what a press needs is worked out before its transaction, then it is decided.

An edit is validated and previewed, a grant's reach is computed, a press that came too late asks again with
what is there now. Channels come here through the assistant, the shell directly.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlmodel import Session

from bot.approvals import decide, grants, rights
from bot.approvals.contents import Contents
from bot.approvals.gate import Gate
from bot.approvals.votes import Decided, Prepared, Similar, Steps
from bot.domain.chat import Address, Answer, Clock, Press, Reply
from bot.domain.names import written_in
from bot.domain.people import Actor
from bot.domain.proposals import Proposal, State
from bot.domain.similarity import Rung, Whose
from bot.domain.verbs import Verb
from bot.errors import BadArguments, LostRace, ToolError
from bot.store import names, people, proposals
from bot.store.database import Database
from bot.telemetry import tracing

_DECIDED = frozenset({State.APPROVED, State.DECLINED})
_APPROVING = (Verb.APPROVE, Verb.SIMILAR, Verb.APPROVE_STEPS)


class Presses:
    """Takes in one press after another; rows are the only state."""

    def __init__(self, database: Database, gate: Gate, clock: Clock) -> None:
        self._database = database
        self.gate = gate
        self._contents = Contents(database, gate)
        self._policies = gate.policies
        self._clock = clock

    async def take(self, press: Press) -> Decided:
        """Decide; returns once it is committed, with the answer and the work it made, which is not begun."""
        try:
            decided = await self._decide(press)
        except LostRace as error:
            return Decided(Reply(Answer.STALE, error.message))
        for each in decided.reply.proposals if decided.reply.answer is Answer.ACCEPTED else ():
            if each.state in _DECIDED and each.decided_at is not None:
                waited = (each.decided_at - each.created_at).total_seconds()
                tracing.decided(each.id, each.tool_name, each.state, waited)
        said = decided.reply.text
        if not written_in(said):
            return decided
        text = await self._database.read(names.named, said)
        return replace(decided, reply=replace(decided.reply, text=text))

    async def ladder(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Sequence[tuple[Rung, str]]:
        """What "approve similar" may allow here, narrowest first, in words; empty when nothing."""
        proposal = await self._database.read(self._grantable, proposal_id, actor, address)
        if proposal is None:
            return []
        try:
            return [(scope.rung, words) for scope, words in await self._contents.ladder(proposal)]
        except ToolError:
            return []

    async def reaches(
        self, proposal_id: str, actor: Actor, address: Address | None = None
    ) -> Sequence[tuple[Whose, str]]:
        """Whose calls that may be and where, narrowest first, in words; empty when nothing may be allowed."""
        proposal = await self._database.read(self._grantable, proposal_id, actor, address)
        if proposal is None:
            return []
        found = await self._database.read(self._reaches, proposal, actor)
        return [(reach, reach.words(proposal.requester.label)) for reach in found]

    def _reaches(self, session: Session, proposal: Proposal, actor: Actor) -> tuple[Whose, ...]:
        return grants.reaches(session, self._policies, proposal, people.person_of(session, actor))

    def _grantable(
        self, session: Session, proposal_id: str, actor: Actor, address: Address | None
    ) -> Proposal | None:
        proposal = proposals.get(session, proposal_id)
        if proposal is None or proposal.state is not State.PROPOSED:
            return None
        refused = rights.objection(session, self._policies, proposal, actor, at=address)
        return None if refused or grants.hindrance(session, self._policies, proposal) else proposal

    async def _decide(self, press: Press) -> Decided:
        decided = await self._prepared(press)
        late = [p for p in decided.reply.proposals if p.state is State.EXPIRED and not p.told_once]
        if decided.reply.answer is Answer.ALREADY and press.verb in _APPROVING and late:
            return await self._ask_anew(press, late[0], decided)
        return decided

    async def _prepared(self, press: Press) -> Decided:
        """Work out what the press needs before its transaction, if anything, then decide."""
        prepared: Prepared = None
        if press.arguments is not None or press.verb in (Verb.SIMILAR, Verb.APPROVE_STEPS):
            proposal = await self._database.read(self._pressable, press)
            try:
                prepared = await self._prepare(press, proposal) if proposal else None
            except BadArguments as error:
                return Decided(Reply(Answer.INVALID, error.message, fields=error.fields))
            except ToolError as error:
                return Decided(Reply(Answer.INVALID, error.message))
        return await self._database.write(
            decide.decide, press, self._policies, self._clock(), prepared, first=True
        )

    def _pressable(self, session: Session, press: Press) -> Proposal | None:
        """The proposal, if it is open and this person may press: no one else makes a tool work."""
        found = proposals.get(session, press.proposal_id)
        if found is None or found.state is not State.PROPOSED or press.round not in (None, found.round):
            return None
        refusal = rights.objection(session, self._policies, found, press.actor, press.verb, press.address)
        return None if refusal else found

    async def _prepare(self, press: Press, proposal: Proposal) -> Prepared:
        if press.verb is Verb.APPROVE_STEPS:
            return Steps(tuple(await self._contents.steps(proposal)))
        if press.verb is not Verb.SIMILAR:
            return await self._contents.edit(proposal, press.arguments or {})
        for scope, words in await self._contents.ladder(proposal):
            if scope.rung is press.rung and press.lasting is not None:
                return Similar(scope, words, press.lasting, press.reach)
        return None

    async def _ask_anew(self, press: Press, expired: Proposal, decided: Decided) -> Decided:
        """A press on an expired proposal asks again, with current values."""
        try:
            fresh = await self._contents.fresh(expired)
        except ToolError as error:
            text = f"{decided.reply.text} It cannot be asked again: {error.message}"
            return replace(decided, reply=replace(decided.reply, text=text))
        again = await self._database.write(
            decide.decide, press, self._policies, self._clock(), fresh, first=True
        )
        return replace(again, jobs=(*decided.jobs, *again.jobs))
