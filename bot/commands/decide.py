"""``/approvals``, first half: look at proposals and decide them by ID."""

from collections.abc import Awaitable, Callable

from sqlmodel import Session

from bot.commands.lists import SHORT_ID, find, titled
from bot.commands.values import account
from bot.commands.words import CommandWord, Misspoken, Told
from bot.domain.cards import card_of, whole_text
from bot.domain.chat import Clock, Command, Inbox, Press
from bot.domain.people import Actor, Role
from bot.domain.proposals import Proposal, State
from bot.domain.times import when
from bot.domain.verbs import COMMANDS, Verb
from bot.store import proposals
from bot.store.database import Database
from bot.store.record import audit
from bot.store.rules import Policies
from bot.tools.registry import Registry
from bot.transactions import rights


class DecidingWords:
    def __init__(
        self, database: Database, policies: Policies, registry: Registry, inbox: Inbox, clock: Clock
    ) -> None:
        self._database = database
        self._policies = policies
        self._registry = registry
        self._inbox = inbox
        self._clock = clock
        self.words = {
            "list": CommandWord("list", "everything waiting for a decision", self._list),
            "show": CommandWord("show ID", "one proposal in full, with its history", self._show),
            "decline": CommandWord("decline ID [reason]", "decline it", self._decline),
            "revise": CommandWord("revise ID CHANGES", "send a plan back for changes", self._revise),
            **{str(v): CommandWord(f"{v} ID", what, self._plain(v)) for v, what in COMMANDS.items()},
            "reassign": CommandWord(
                "reassign ID WHO…",
                "say who may decide it: accounts, requester, approver, admin",
                self._reassign,
            ),
        }

    async def _list(self, command: Command, __: str) -> str:
        waiting = await self._database.read_aside(self._waiting, command.actor)
        return (
            titled("Waiting for a decision", waiting, self._clock()) or "Nothing is waiting for a decision."
        )

    def _waiting(self, session: Session, actor: Actor) -> list[Proposal]:
        found = proposals.in_states(session, [State.PROPOSED])
        return [p for p in found if rights.visible(session, self._policies, p, actor)]

    async def _find(self, command: Command, prefix: str) -> Proposal:
        return await find(self._database, self._policies, command.actor, prefix)

    async def _show(self, command: Command, prefix: str) -> Told:
        found = await self._find(command, prefix)
        now = self._clock()
        history = await self._database.read(audit.history, found.id)
        lines = [f"- {when(e.at, now)}: {e.by.verb} by {e.by.person}" for e in history]
        schema = await self._database.read((await self._registry.shelf()).schema_of, found)
        card = card_of(found, schema)
        body = whole_text(card).replace("```", "'''")
        may = f"\nMay decide: {card.deciders}." if card.pending else ""
        text = f"`{found.id}` {card.outcome}{may}\n\n```\n{body}\n```\n" + "\n".join(lines)
        return Told(text, (found,))

    def _plain(self, verb: Verb) -> Callable[[Command, str], Awaitable[Told]]:
        async def do(command: Command, prefix: str) -> Told:
            return await self._press(command, prefix, verb)

        return do

    async def _decline(self, command: Command, rest: str) -> Told:
        prefix, _, reason = rest.partition(" ")
        return await self._press(command, prefix, Verb.DECLINE, reason.strip() or None)

    async def _revise(self, command: Command, rest: str) -> Told:
        prefix, _, changes = rest.partition(" ")
        return await self._press(command, prefix, Verb.REVISE, changes.strip() or None)

    async def _reassign(self, command: Command, rest: str) -> Told:
        prefix, _, who = rest.partition(" ")
        words = who.split()
        if not words:
            raise Misspoken("Who should decide?")
        for word in words:
            if word not in ("requester", *Role):
                account(word)
        return await self._press(command, prefix, Verb.REASSIGN, " ".join(words))

    async def _press(self, command: Command, prefix: str, verb: Verb, reason: str | None = None) -> Told:
        found = await self._find(command, prefix)
        reply = await self._inbox(Press(command.actor, verb, found.id, reason=reason))
        return Told(f"`{found.id[:SHORT_ID]}` {found.description}: {reply.text}", answer=reply.answer)
