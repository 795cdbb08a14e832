"""Subcommands of ``/approvals`` for everyone: they show proposals, and press buttons of proposals.

A proposal is named by its ID, or the first characters of it. A subcommand such as ``/approvals approve 3f2a``
is a press of the button with that verb. So the rights and checks are those of a press on a card. Also here
are the search for a proposal by its ID and the text for a list of proposals, which other commands use.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from sqlmodel import Session

from bot.approvals import rights
from bot.approvals.commands.accounts import Accounts
from bot.approvals.commands.operands import names_in, parse_account
from bot.approvals.commands.subcommands import (
    CommandError,
    CommandParts,
    CommandReply,
    Subcommand,
    first_word,
    remove_quotes,
)
from bot.approvals.groups import Groups
from bot.approvals.lookup import context
from bot.domain.batch_groups import describe_others, group_by_card
from bot.domain.call_text import format_call
from bot.domain.card_rendering import render_card
from bot.domain.chat import Command, Press
from bot.domain.people import Actor, Role
from bot.domain.proposal_states import State
from bot.domain.proposals import Proposal
from bot.domain.redaction import redact_text
from bot.domain.text import SHORT_ID_CHARS
from bot.domain.times import format_expiry, format_relative
from bot.domain.verbs import COMMANDS, Button, Verb
from bot.store import proposals
from bot.store.audit import log
from bot.store.rules import Policies

MAX_LISTED = 20  # the most proposals in a list; a batch counts as one


class DecideCommands:
    """The subcommands of ``/approvals`` that show proposals, or press a button of a proposal."""

    def __init__(self, parts: CommandParts) -> None:
        self._database = parts.database
        self._policies = parts.policies
        self._clock = parts.clock
        self._accounts = Accounts(parts)
        self._registry = parts.registry
        self._handle_press = parts.handle_press
        self._groups = parts.groups
        self.subcommands = [
            Subcommand("list", "everything waiting for a decision", self._list),
            Subcommand("show ID", "one proposal in full, with its history", self._show),
            Subcommand("context ID", "what led to it: the request, what was read and said", self._context),
            *(
                Subcommand(_format_usage(button), button.command_help, self._make_press_handler(button))
                for button in COMMANDS
            ),
        ]

    async def _list(self, command: Command, _: str) -> str:
        waiting = await self._groups.read_with_members(self._list_waiting, command.actor)
        text = format_titled_list("Waiting for a decision", waiting, self._clock())
        return text or "Nothing is waiting for a decision."

    def _list_waiting(self, session: Session, actor: Actor) -> list[Proposal]:
        waiting = proposals.list_in_states(session, [State.PROPOSED])
        return [
            proposal
            for proposal in waiting
            if rights.may_see_proposal(session, self._policies, proposal, actor)
        ]

    async def _find(self, command: Command, prefix: str) -> Proposal:
        return await find_visible(self._groups, self._policies, command.actor, prefix)

    async def _show(self, command: Command, prefix: str) -> CommandReply:
        proposal = await self._find(command, prefix)
        now = self._clock()
        available = await self._registry.load_tools()
        card = render_card(proposal, await self._database.read(available.schema_of, proposal))
        head = [
            f"`{proposal.id}` {card.outcome} {card.check_text}".strip(),
            f"{card.requester_line}, {format_relative(proposal.created_at, now)}.",
            *card.notes,
        ]
        if card.pending:
            head += [f"May decide: {card.deciders}.", card.undo_note]
        if card.undo_effect:
            head.append(f"Undo: {card.undo_effect}.")
        body = format_call(card).replace("```", "'''")  # it is shown as a block of code
        history = [
            f"- {format_relative(row.at, now)}: {row.verb} by {row.person}"
            for row in await self._database.read(log.list_rows_of_proposal, proposal.id)
        ]
        text = "\n".join(filter(None, head)) + f"\n\n```\n{body}\n```\n" + "\n".join(history)
        return CommandReply(text, (proposal,))

    async def _context(self, command: Command, prefix: str) -> str:
        proposal = await self._find(command, prefix)
        lines = await context.read_context(
            self._groups, self._registry, proposal.id, command.actor, command.address
        )
        if lines is None:
            return context.CONTEXT_NOT_YOURS_TEXT
        return context.format_lines(lines)

    def _make_press_handler(self, button: Button) -> Callable[[Command, str], Awaitable[CommandReply]]:
        """Return the handler of the subcommand that presses a button of the proposal with an ID."""

        async def press_button(command: Command, rest: str) -> CommandReply:
            prefix = rest
            reason = ""
            if button.text_question:  # the button takes a text, which follows the ID
                prefix, reason = first_word(rest)
            if button.verb is Verb.REASSIGN:
                deciders = _parse_deciders(reason)
                await self._accounts.check([name for name in deciders if ":" in name], command)
            proposal = await self._find(command, prefix)
            press = Press(command.actor, button.verb, proposal.id, reason=reason.strip() or None)
            reply = await self._handle_press(press)
            text = f"`{proposal.id[:SHORT_ID_CHARS]}` {proposal.description}: {reply.text}"
            return CommandReply(text, answer=reply.answer)

        return press_button


def _format_usage(button: Button) -> str:
    if button.text_question:
        return f"{button.verb} ID {button.text_question.usage}"
    return f"{button.verb} ID"


def _parse_deciders(text: str) -> list[str]:
    """Return the named deciders: accounts, roles and "requester". Raises CommandError for another word."""
    deciders = names_in(text)
    if not deciders:
        raise CommandError("Who should decide?")
    for decider in deciders:
        if decider not in ("requester", *Role):
            parse_account(decider)
    return deciders


async def find_visible(groups: Groups, policies: Policies, actor: Actor, prefix: str) -> Proposal:
    """Return the one proposal whose id begins with ``prefix``.

    Only proposals that the account may see are searched. Raises CommandError when none or several match.
    """
    if not prefix:
        raise CommandError("Which one? Give its ID (the first few characters are enough).")
    prefix = remove_quotes(prefix).strip("*<>")
    if len(prefix) < proposals.MIN_ID_CHARS:
        raise CommandError(f"Give at least {proposals.MIN_ID_CHARS} characters of the ID.")
    matching = await groups.database.read(proposals.find_by_prefix, prefix.lower())
    visible = [
        proposal
        for proposal in matching
        if await groups.read_with_members(rights.may_see_proposal, policies, proposal, actor)
    ]
    if not visible:
        raise CommandError(f"There is no proposal {prefix[:40]}.")
    if len(visible) > 1:
        raise CommandError(f"{prefix} matches several proposals. Give more characters of the ID.")
    return visible[0]


def format_titled_list(title: str, listed: Sequence[Proposal], now: datetime) -> str:
    """Return a heading and a line for each proposal or batch, at most `MAX_LISTED`; empty without any."""
    if not listed:
        return ""
    batches = group_by_card(listed)  # a list for each card: the rows of a batch, or one proposal
    lines = [f"**{title}**"]
    for first, *more in batches[:MAX_LISTED]:
        what = f"`{first.id[:SHORT_ID_CHARS]}` {redact_text(first.description)}{describe_others(len(more))}"
        lines.append(f"- {what} (asked by {first.requester.label}, {format_expiry(first.expires_at, now)})")
    if len(batches) > MAX_LISTED:
        lines.append(f"…and {len(batches) - MAX_LISTED} more")
    return "\n".join(lines)
