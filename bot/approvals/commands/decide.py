"""``/approvals``: look at proposals and decide them by ID."""

from collections.abc import Awaitable, Callable, Sequence

from sqlmodel import Session

from bot.approvals import rights
from bot.approvals.commands.lists import SHORT_ID, find, titled
from bot.approvals.commands.values import account
from bot.approvals.commands.words import CommandWord, Misspoken, Told, first_word
from bot.domain.cards import card_of, whole_text
from bot.domain.chat import Clock, Command, Inbox, Press
from bot.domain.people import Actor, Role
from bot.domain.proposals import Proposal, State
from bot.domain.times import when
from bot.domain.verbs import COMMANDS, Button, Verb
from bot.store import proposals
from bot.store.audit import log
from bot.store.database import Database
from bot.store.rules import Policies
from bot.tools.registry import Registry


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
            **{
                str(each.verb): CommandWord(_usage(each), each.command, self._pressing(each))
                for each in COMMANDS
            },
        }

    async def _list(self, command: Command, __: str) -> str:
        waiting = await self._database.read(self._waiting, command.actor)
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
        history = await self._database.read(log.history, found.id)
        lines = [f"- {when(e.at, now)}: {e.by.verb} by {e.by.person}" for e in history]
        schema = await self._database.read((await self._registry.shelf()).schema_of, found)
        card = card_of(found, schema)
        body = whole_text(card).replace("```", "'''")
        head = [f"`{found.id}` {card.outcome}", f"{card.asked}, {when(found.created_at, now)}.", *card.notes]
        head += [f"May decide: {card.deciders}."] if card.pending else []
        text = "\n".join(head) + f"\n\n```\n{body}\n```\n" + "\n".join(lines)
        return Told(text, (found,))

    def _pressing(self, pressed: Button) -> Callable[[Command, str], Awaitable[Told]]:
        async def press(command: Command, rest: str) -> Told:
            prefix, words = rest, ""
            if pressed.asks:
                prefix, words = first_word(rest)
            if pressed.verb is Verb.REASSIGN:
                _check_who(words.split())
            found = await self._find(command, prefix)
            reason = words.strip() or None
            reply = await self._inbox(Press(command.actor, pressed.verb, found.id, reason=reason))
            return Told(f"`{found.id[:SHORT_ID]}` {found.description}: {reply.text}", answer=reply.answer)

        return press


def _usage(each: Button) -> str:
    return f"{each.verb} ID {each.asks.usage}" if each.asks else f"{each.verb} ID"


def _check_who(words: Sequence[str]) -> None:
    """Raises Misspoken for what names no one who could decide."""
    if not words:
        raise Misspoken("Who should decide?")
    for word in words:
        if word not in ("requester", *Role):
            account(word)
