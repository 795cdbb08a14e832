"""``/approvals``, first half: look at proposals and decide them by ID."""

from bot.commands.lists import SHORT_ID, find, titled
from bot.commands.settings import account
from bot.commands.words import Misspoken, Told, Word
from bot.domain.cards import card_of, whole_text
from bot.domain.chat import Command, Inbox, Press, Verb
from bot.domain.people import Role
from bot.domain.proposals import State
from bot.store import audit, proposals
from bot.store.database import Database
from bot.tools.registry import Registry


class DecidingWords:
    def __init__(self, database: Database, registry: Registry, inbox: Inbox) -> None:
        self._database = database
        self._registry = registry
        self._inbox = inbox
        self.words = {
            "list": Word("list", "everything that waits for a decision", self._list),
            "show": Word("show ID", "one proposal, whole, with its history", self._show),
            "approve": Word("approve ID", "approve it as it is", self._approve),
            "decline": Word("decline ID [reason]", "decline it", self._decline),
            "revise": Word("revise ID CHANGES", "send a plan back for changes", self._revise),
            "cancel": Word("cancel ID", "take it back", self._cancel),
            "expire": Word("expire ID", "let it expire now", self._expire),
            "extend": Word("extend ID", "let it wait its whole time again", self._extend),
            "reassign": Word(
                "reassign ID WHO…",
                "say who may decide it: accounts, requester, approver, admin",
                self._reassign,
            ),
        }

    async def _list(self, _: Command, __: str) -> str:
        waiting = await self._database.read_aside(proposals.in_states, [State.PROPOSED])
        return titled("Waiting for a decision", waiting) or "Nothing waits for a decision."

    async def _show(self, _: Command, prefix: str) -> Told:
        found = await find(self._database, prefix)
        history = await self._database.read(audit.history, found.id)
        lines = [f"- {e.at:%Y-%m-%d %H:%M} UTC: {e.by.verb} by {e.by.person}" for e in history]
        schema = await self._database.read((await self._registry.shelf()).schema_of, found)
        card = card_of(found, schema)
        body = whole_text(card).replace("```", "'''")
        text = f"`{found.id}` {card.outcome}\n\n```\n{body}\n```\n" + "\n".join(lines)
        return Told(text, (found,))

    async def _approve(self, command: Command, prefix: str) -> Told:
        return await self._press(command, prefix, Verb.APPROVE)

    async def _decline(self, command: Command, rest: str) -> Told:
        prefix, _, reason = rest.partition(" ")
        return await self._press(command, prefix, Verb.DECLINE, reason.strip() or None)

    async def _revise(self, command: Command, rest: str) -> Told:
        prefix, _, changes = rest.partition(" ")
        return await self._press(command, prefix, Verb.REVISE, changes.strip() or None)

    async def _cancel(self, command: Command, prefix: str) -> Told:
        return await self._press(command, prefix, Verb.CANCEL)

    async def _expire(self, command: Command, prefix: str) -> Told:
        return await self._press(command, prefix, Verb.EXPIRE)

    async def _extend(self, command: Command, prefix: str) -> Told:
        return await self._press(command, prefix, Verb.EXTEND)

    async def _reassign(self, command: Command, rest: str) -> Told:
        prefix, _, who = rest.partition(" ")
        words = who.split()
        if not words:
            raise Misspoken("Who shall decide it?")
        for word in words:
            if word not in ("requester", *Role):
                account(word)
        return await self._press(command, prefix, Verb.REASSIGN, " ".join(words))

    async def _press(self, command: Command, prefix: str, verb: Verb, reason: str | None = None) -> Told:
        found = await find(self._database, prefix)
        reply = await self._inbox(Press(command.actor, verb, found.id, reason=reason))
        return Told(f"`{found.id[:SHORT_ID]}` {found.description}: {reply.text}", answer=reply.answer)
