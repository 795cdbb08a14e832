"""Subcommands of ``/approvals`` that look at proposals and decide them by ID.

With proposals and rows of the audit log as lines of text.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlmodel import Session

from bot.approvals import rights
from bot.approvals.commands.accounts import Accounts
from bot.approvals.commands.values import account, names_in
from bot.approvals.commands.words import (
    CommandError,
    CommandParts,
    CommandReply,
    Subcommand,
    first_word,
    remove_quotes,
)
from bot.approvals.groups import Groups
from bot.approvals.lookup import context
from bot.domain.cards import card_of, whole_text
from bot.domain.chat import Command, Press
from bot.domain.people import Actor, Names, Role, find_written, place_called, with_names
from bot.domain.proposals import Proposal, State, others, together
from bot.domain.redaction import redact_text
from bot.domain.rules import Subject, value_of, value_words
from bot.domain.times import format_expiry, format_relative
from bot.domain.verbs import COMMANDS, Button, Verb
from bot.store import proposals
from bot.store.audit import log
from bot.store.rules import Policies

LISTED = 20
SHORT_ID = 8


class DecideCommands:
    """The words of ``/approvals`` that look at proposals, or press a button of one."""

    def __init__(self, parts: CommandParts) -> None:
        self._database, self._policies, self._clock = parts.database, parts.policies, parts.clock
        self._accounts = Accounts(parts)
        self._registry, self._inbox, self._groups = parts.registry, parts.inbox, parts.groups
        self.words = [
            Subcommand("list", "everything waiting for a decision", self._list),
            Subcommand("show ID", "one proposal in full, with its history", self._show),
            Subcommand("context ID", "what led to it: the request, what was read and said", self._context),
            *(Subcommand(_usage(each), each.command, self._pressing(each)) for each in COMMANDS),
        ]

    async def _list(self, command: Command, __: str) -> str:
        waiting = await self._groups.read(self._waiting, command.actor)
        return (
            format_titled_list("Waiting for a decision", waiting, self._clock())
            or "Nothing is waiting for a decision."
        )

    def _waiting(self, session: Session, actor: Actor) -> list[Proposal]:
        found = proposals.in_states(session, [State.PROPOSED])
        return [p for p in found if rights.visible(session, self._policies, p, actor)]

    async def _find(self, command: Command, prefix: str) -> Proposal:
        return await find(self._groups, self._policies, command.actor, prefix)

    async def _show(self, command: Command, prefix: str) -> CommandReply:
        found = await self._find(command, prefix)
        now = self._clock()
        history = await self._database.read(log.history, found.id)
        lines = [f"- {format_relative(e.at, now)}: {e.verb} by {e.person}" for e in history]
        schema = await self._database.read((await self._registry.available()).schema_of, found)
        card = card_of(found, schema)
        body = whole_text(card).replace("```", "'''")
        head = [
            f"`{found.id}` {card.outcome} {card.again}".strip(),
            f"{card.asked}, {format_relative(found.created_at, now)}.",
            *card.notes,
        ]
        head += [f"May decide: {card.deciders}.", card.undo_note] if card.pending else []
        head += [f"Undo: {card.undoing}."] if card.undoing else []
        text = "\n".join(filter(None, head)) + f"\n\n```\n{body}\n```\n" + "\n".join(lines)
        return CommandReply(text, (found,))

    async def _context(self, command: Command, prefix: str) -> str:
        found = await self._find(command, prefix)
        led = await context.context(self._groups, self._registry, found.id, command.actor, command.address)
        if led is None:
            return context.NOT_YOURS
        return context.format_lines(led)

    def _pressing(self, pressed: Button) -> Callable[[Command, str], Awaitable[CommandReply]]:
        async def press(command: Command, rest: str) -> CommandReply:
            prefix, words = rest, ""
            if pressed.asks:
                prefix, words = first_word(rest)
            if pressed.verb is Verb.REASSIGN:
                named = _check_who(words)
                await self._accounts.check([each for each in named if ":" in each], command)
            found = await self._find(command, prefix)
            reason = words.strip() or None
            reply = await self._inbox(Press(command.actor, pressed.verb, found.id, reason=reason))
            return CommandReply(
                f"`{found.id[:SHORT_ID]}` {found.description}: {reply.text}", answer=reply.answer
            )

        return press


def _usage(each: Button) -> str:
    if each.asks:
        return f"{each.verb} ID {each.asks.usage}"
    return f"{each.verb} ID"


def _check_who(text: str) -> list[str]:
    """Return the named deciders. Raises CommandError for a word that is no account and no suitable role."""
    words = names_in(text)
    if not words:
        raise CommandError("Who should decide?")
    for word in words:
        if word not in ("requester", *Role):
            account(word)
    return words


async def find(groups: Groups, policies: Policies, actor: Actor, prefix: str) -> Proposal:
    """Return the one proposal whose id begins with ``prefix``.

    Only proposals that the account may see are searched. Raises CommandError when none or several match.
    """
    if not prefix:
        raise CommandError("Which one? Give its ID (the first few characters are enough).")
    prefix = remove_quotes(prefix).strip("*<>")
    if len(prefix) < proposals.SHORTEST:
        raise CommandError(f"Give at least {proposals.SHORTEST} characters of the ID.")
    found = await groups.database.read(proposals.starting_with, prefix.lower())
    found = [p for p in found if await groups.read(rights.visible, policies, p, actor)]
    if not found:
        raise CommandError(f"There is no proposal {prefix[:40]}.")
    if len(found) > 1:
        raise CommandError(f"{prefix} matches several proposals. Give more characters of the ID.")
    return found[0]


def format_titled_list(title: str, found: Sequence[Proposal], now: datetime) -> str:
    """Return a heading and a line for each, of a batch one; at most `LISTED`, or empty."""
    if not found:
        return ""
    told = together(found)
    lines = [
        f"- `{p.id[:SHORT_ID]}` {redact_text(p.description)}{others(len(rest))} "
        f"(asked by {p.requester.label}, {format_expiry(p.expires_at, now)})"
        for p, *rest in told[:LISTED]
    ]
    more = f"\n…and {len(told) - LISTED} more" if len(told) > LISTED else ""
    return f"**{title}**\n" + "\n".join(lines) + more


def list_mentioned(row: Mapping[str, Any]) -> list[str]:
    """Return the accounts and places that a row of the audit log speaks of."""
    told = f"{row['key']} {row['before']} {row['after']} {row['rule']}"
    return [*(row[each] for each in ("actor", "requester", "place") if row.get(each)), *find_written(told)]


def format_audit_row(row: Mapping[str, Any], names: Names, *, private: bool = False) -> str:
    """Return one row of the audit log (`verification.rows`) as a line: when, what, who, from where, why.

    ``private``: its place is a chat with one person.
    """
    who = names.get(row["actor"]) or row["actor"]
    if row["thing"] == "context":
        return f"{row['at'][:16]} `{row['key'][:SHORT_ID]}`: what led to it was read by {who}"
    if row["thing"]:
        was, now = row["before"], row["after"]
        subject, _, about = row["key"].partition(" ") if row["thing"] == "rule" else ("", "", "")
        change = " → ".join(_format_state(each, subject) for each in (was, now))
        if subject in set(Subject):
            key = f"{Subject(subject).typed} {about}"
        else:
            key = row["key"]
        line = f"{row['thing']} {key}: {row['verb']} by {who}: {change}"
        # who is linked with whom is told by accounts: several of them may have one name
        return f"{row['at'][:16]} {line if row['thing'] == 'account' else with_names(line, names)}"
    if row["verb"] == "propose":
        name = row["requester_name"] or names.get(row["requester"]) or row["requester"]
        private = private or row["place"] == row["requester"]  # Telegram writes both alike
        who += f" for {name} in {'a private chat' if private else place_called(row['place'], names)}"
    more = [row["reason"] or "", f"rule: {with_names(row['rule'] or '', names)}"]
    more += [f"grant G-{row['grant_id']}"] if row["grant_id"] else []
    return (
        f"{row['at'][:16]} `{row['proposal_id'][:SHORT_ID]}` {row['tool_name']}: {row['verb']} by {who} "
        f"→ {row['state']} (v{row['version']}, {'; '.join(part for part in more if part)})"
    )


def _format_state(state: Mapping[str, Any] | None, subject: str) -> str:
    """Format the state of a thing in brief; ``subject``: of a rule."""
    if not state:
        return "nothing"
    if "stand_in" in state:
        return f"{state['stand_in']} until {state['until'][:16]}Z"
    for name in ("value", "allows", "person", "since", "account", "call", "ended"):
        if name in state:
            value = state[name]
            if name == "value" and subject in set(Subject):
                until = f" until {state['until'][:16]}Z" if "until" in state else ""
                return value_words(Subject(subject), value_of(Subject(subject), value)) + until
            if isinstance(value, list):
                return " ".join(map(str, value))
            return str(value)
    return "something"
