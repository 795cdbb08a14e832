"""Slash commands, the same words in every channel: ``/nod`` for everyone, ``/approvals`` for admins.

Each answer is for the one who asked. A word that is not known gets the help, with the near word first.
"""

import difflib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from sqlmodel import Session

from bot.domain.cards import card_of, whole_text
from bot.domain.chat import Address, Answer, Clock, Command, Inbox, Press, Reply, Verb
from bot.domain.people import Role
from bot.domain.policy import Policy
from bot.domain.proposals import Proposal, State
from bot.store import audit, conversations, decisions, people, proposals
from bot.store.database import Database
from bot.tools.registry import Registry

_LISTED = 20
_SHORT_ID = 8


@dataclass(frozen=True, slots=True)
class _Word:
    usage: str
    meaning: str
    do: Callable[[Command, str], Awaitable[str]]


class Commands:
    def __init__(
        self,
        database: Database,
        registry: Registry,
        policy: Policy,
        clock: Clock,
        inbox: Inbox,
        stop: Callable[[Address], Awaitable[bool]],
    ) -> None:
        self._database = database
        self._registry = registry
        self._policy = policy
        self._clock = clock
        self._inbox = inbox
        self._stop = stop
        self._everyone: Mapping[str, _Word] = {
            "help": _Word("help", "this list", self._help),
            "new": _Word("new", "start a new conversation here", self._new),
            "status": _Word("status", "what waits for a decision, and what you asked for", self._status),
            "stop": _Word("stop", "stop what I am writing here", self._stop_here),
            "link": _Word("link [CODE]", "make your accounts in several channels one person", self._link),
        }
        self._admins: Mapping[str, _Word] = {
            "help": _Word("help", "this list", self._help),
            "list": _Word("list", "everything that waits for a decision", self._list),
            "show": _Word("show ID", "one proposal, whole, with its history", self._show),
            "approve": _Word("approve ID", "approve it as it is", self._approve),
            "decline": _Word("decline ID [reason]", "decline it", self._decline),
            "cancel": _Word("cancel ID", "take it back", self._cancel),
        }

    async def handle(self, command: Command) -> Reply:
        """Answer a command. Unknown words change nothing."""
        if command.name == "stop":
            return Reply(Answer.ACCEPTED, await self._stop_here(command, ""))
        words = {"nod": self._everyone, "approvals": self._admins}.get(command.name)
        if words is None:
            return Reply(Answer.INVALID, f"I do not know /{command.name}. Try /nod help.")
        if words is self._admins and not await self._database.read(self._is_admin, command):
            return Reply(Answer.REFUSED, "/approvals is for admins. Ask one of them, or use /nod help.")
        name, _, rest = command.text.strip().partition(" ")
        word = words.get(name.lower() or "help")
        if word is None:
            near = difflib.get_close_matches(name.lower(), words, 1)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            return Reply(Answer.INVALID, f"I do not know `{name}`.{hint}\n\n{await self._help(command, '')}")
        return Reply(Answer.ACCEPTED, await word.do(command, rest.strip()))

    def _is_admin(self, session: Session, command: Command) -> bool:
        return Role.ADMIN in self._policy.roles_of(people.person_of(session, command.actor))

    async def _help(self, command: Command, _: str) -> str:
        words = self._admins if command.name == "approvals" else self._everyone
        return "\n".join(f"- `/{command.name} {w.usage}`: {w.meaning}" for w in words.values())

    async def _new(self, command: Command, _: str) -> str:
        await self._stop(command.address)
        ended = await self._database.write(conversations.end_conversation, command.address, self._clock())
        if not ended:
            return "There is nothing to end here; just write to me."
        return "Done. Your next message starts a new conversation; open proposals stay open."

    async def _status(self, command: Command, _: str) -> str:
        waiting = await self._database.read(proposals.in_states, [State.PROPOSED])
        may, mine = await self._database.read(self._concerning, waiting, command)
        parts = [_titled("Waiting for you to decide", may), _titled("Asked for by you, still open", mine)]
        return "\n\n".join(part for part in parts if part) or "Nothing waits."

    def _concerning(
        self, session: Session, waiting: list[Proposal], command: Command
    ) -> tuple[list[Proposal], list[Proposal]]:
        """What this person may decide, and what they asked for."""
        may = [p for p in waiting if decisions.objection(session, self._policy, p, command.actor) is None]
        person = people.person_of(session, command.actor)
        return may, [p for p in waiting if people.person_of(session, p.requester) == person]

    async def _stop_here(self, command: Command, _: str) -> str:
        return "Stopped." if await self._stop(command.address) else "Nothing was running here."

    async def _link(self, command: Command, code: str) -> str:
        if not code:
            new = await self._database.write(people.new_code, command.actor, self._clock())
            return (
                f"Your code is `{new}`. Within 10 minutes, send `/nod link {new}` (Telegram: `/link {new}`) "
                "from your other account. It works once. Do not show it to anybody."
            )
        other = await self._database.write(people.link, command.actor, code, self._clock())
        if other is None:
            return "That code is not valid (any more). Send `/nod link` from the other account for a new one."
        return f"Linked: {other.label} and {command.actor.label} are one person now."

    async def _list(self, _: Command, __: str) -> str:
        waiting = await self._database.read(proposals.in_states, [State.PROPOSED])
        return _titled("Waiting for a decision", waiting) or "Nothing waits for a decision."

    async def _show(self, _: Command, prefix: str) -> str:
        found = await self._find(prefix)
        if isinstance(found, str):
            return found
        history = await self._database.read(audit.history, found.id)
        lines = [f"- {e.at:%Y-%m-%d %H:%M} UTC: {e.by.verb} by {e.by.person}" for e in history]
        tool = (await self._registry.shelf()).tools.get(found.tool_name)
        card = card_of(found, tool.parameters if tool else {})
        body = whole_text(card).replace("```", "'''")
        return f"`{found.id}` {card.outcome}\n\n```\n{body}\n```\n" + "\n".join(lines)

    async def _approve(self, command: Command, prefix: str) -> str:
        return await self._press(command, prefix, Verb.APPROVE, None)

    async def _decline(self, command: Command, rest: str) -> str:
        prefix, _, reason = rest.partition(" ")
        return await self._press(command, prefix, Verb.DECLINE, reason.strip() or None)

    async def _cancel(self, command: Command, prefix: str) -> str:
        return await self._press(command, prefix, Verb.CANCEL, None)

    async def _press(self, command: Command, prefix: str, verb: Verb, reason: str | None) -> str:
        found = await self._find(prefix)
        if isinstance(found, str):
            return found
        reply = await self._inbox(Press(command.actor, verb, found.id, reason=reason))
        return f"`{found.id[:_SHORT_ID]}` {found.description}: {reply.text}"

    async def _find(self, prefix: str) -> Proposal | str:
        """The one proposal whose id begins so, or what to say instead."""
        if not prefix:
            return "Which one? Give its ID (its first characters do), as `/approvals list` shows it."
        found = await self._database.read(proposals.starting_with, prefix.strip("`").lower())
        if not found:
            return f"There is no proposal {prefix}. `/approvals list` shows what waits."
        return found[0] if len(found) == 1 else f"{prefix} could be several; give more characters of the ID."


def _titled(title: str, found: list[Proposal]) -> str:
    if not found:
        return ""
    lines = [
        f"- `{p.id[:_SHORT_ID]}` {p.description} "
        f"(asked by {p.requester.label}, until {p.expires_at:%Y-%m-%d %H:%M} UTC)"
        for p in found[:_LISTED]
    ]
    more = f"\n…and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    return f"**{title}**\n" + "\n".join(lines) + more
