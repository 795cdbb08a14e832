"""The parts of slash commands: subcommands, the choice of the one that is meant, help, and hints on typos.

``/approvals show 3f2a`` is a command (``approvals``), the word of a subcommand (``show``), and the rest,
which the subcommand's handler reads. `SubcommandTable` has the subcommands of one command. `CommandParts` has
the dependencies of all handlers.
"""

import difflib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.approvals.groups import Groups
from bot.domain.chat import Address, Answer, Clock, Command, Inbox, LinkButton, Reply
from bot.domain.connection_port import Connections
from bot.domain.jobs import Wake
from bot.domain.people import Actor, Membership
from bot.domain.prices import Prices
from bot.domain.proposals import Proposal
from bot.domain.text import make_visible
from bot.errors import NodError
from bot.store.database import Database
from bot.store.rules import Policies
from bot.tools.registry import Registry

_NOT_HERE_TEXT = (
    "Here, each thread is its own conversation. Write outside a thread to start a new one. "
    "To stop me, use the stop button in the thread."
)
_MAX_HELP_LINES = 15  # a command with more subcommands lists only their words
QUOTES = "`'\"\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a"
"""Quotation marks of several languages, straight and curly."""


@dataclass(frozen=True, slots=True)
class CommandParts:
    """The dependencies of slash commands."""

    database: Database
    policies: Policies
    registry: Registry
    clock: Clock
    handle_press: Inbox  # takes presses
    # stops the agent's work at an address for a person; if a time is given, only work that began before it.
    # Returns a text on the stopped work, empty if there was none
    stop: Callable[[Address, Actor, datetime | None], Awaitable[str]]
    wake: Wake
    site_url: Callable[[], str]  # returns the address of the console, or an empty text
    prices: Prices
    models: Sequence[str]  # the names of the configured models, the default first
    # returns why Nod can't post at an address, in the platform's words; empty if it can
    find_posting_fault: Callable[[Address], Awaitable[str]]
    groups: Groups
    workspace: Callable[[], str] | None = None  # returns the instructions of the workspace's owner; it blocks
    # the next two functions ask a platform; None if no channels run
    # returns a person's membership in the team of a chat, None for a person that the platform does not know
    find_membership: Callable[[Actor, Address], Awaitable[Membership | None]] | None = None
    # see `HasAccount` in ``accounts/existence.py``
    has_account: Callable[[Actor], Awaitable[bool]] | None = None
    connections: Connections | None = None  # people's connected accounts; None if they are not set up


@dataclass(frozen=True, slots=True)
class CommandReply:
    """The reply to a subcommand."""

    text: str
    proposals: tuple[Proposal, ...] = ()  # the proposals in the reply; a channel may show their cards
    answer: Answer = Answer.ACCEPTED
    rule: int | None = None  # the id of the rule that was set
    link: LinkButton | None = None  # as in `Reply`


SubcommandHandler = Callable[[Command, str], Awaitable[str | CommandReply]]
"""A handler of a subcommand. It gets the command and the text after the subcommand's word."""


class CommandError(NodError):
    """A command was mistyped; the message says how to write it."""


@dataclass(frozen=True, slots=True)
class Subcommand:
    """A subcommand."""

    usage: str  # the word and what may follow it, such as "show ID"
    meaning: str
    handler: SubcommandHandler
    needs_conversation: bool = False  # the subcommand is about the conversation in which it is typed
    is_private: bool = False  # the reply may have facts from other chats
    synonyms: tuple[str, ...] = ()  # other words, for which this subcommand is suggested

    @property
    def word(self) -> str:
        return self.usage.split()[0].strip(",")


@dataclass(frozen=True, slots=True)
class CommandSet:
    """The subcommands that a feature adds."""

    nod: Sequence[Subcommand] = ()  # the subcommands of ``/nod``
    approvals: Sequence[Subcommand] = ()  # the subcommands of ``/approvals`` for everyone
    admins: Sequence[Subcommand] = ()  # the subcommands of ``/approvals`` for admins
    # ``admins`` concern every workspace, so the admin of one may not use them
    is_cross_workspace: bool = True


def remove_quotes(word: str) -> str:
    """Remove the quotation marks and unseen characters that phones and copying put around a word."""
    return make_visible(word, lambda _: "").strip(QUOTES)


def first_word(text: str) -> tuple[str, str]:
    """Return the first word without quotes, and the text after it; any white space ends a word."""
    match text.split(maxsplit=1):
        case [word, rest]:
            return remove_quotes(word), rest.strip()
        case [word]:
            return remove_quotes(word), ""
        case _:
            return "", ""


class SubcommandTable:
    """The subcommands of a command, ``/<name>``, by their words. ``help`` is always one of them."""

    def __init__(self, name: str, subcommands: Sequence[Subcommand]) -> None:
        self._name = name
        help_command = Subcommand("help [WORD]", "this list, or one of its commands", self._help)
        self._subcommands = {subcommand.word: subcommand for subcommand in (help_command, *subcommands)}

    async def answer(self, command: Command) -> Reply:
        """Run the subcommand that a command names, by default ``help``, and return the reply.

        An unknown word gets a reply with the nearest known word.
        """
        word, rest = first_word(command.text)
        subcommand = self._subcommands.get(word.lower() or "help")
        if subcommand is None:
            return Reply(Answer.INVALID, self._explain_unknown(word))
        if subcommand.needs_conversation and not command.in_conversation:
            return Reply(Answer.INVALID, _NOT_HERE_TEXT)
        try:
            reply = await subcommand.handler(command, rest)
        except CommandError as error:
            text = f"{error.message}\nUsage: `/{self._name} {subcommand.usage}`"
            return Reply(Answer.INVALID, text, is_private=subcommand.is_private)
        if isinstance(reply, str):
            reply = CommandReply(reply)
        return Reply(
            reply.answer,
            reply.text,
            reply.proposals,
            rule=reply.rule,
            is_private=subcommand.is_private,
            link=reply.link,
        )

    def _explain_unknown(self, word: str) -> str:
        """Return the reply to an unknown word, with the subcommand that is probably meant."""
        candidates = [
            other for other, subcommand in self._subcommands.items() if word.lower() in subcommand.synonyms
        ]
        if not candidates:
            candidates = difflib.get_close_matches(word.lower(), self._subcommands, 1)
        if candidates:
            hint = f"Did you mean `/{self._name} {self._subcommands[candidates[0]].usage}`?"
        else:
            hint = f"`/{self._name} help` lists them all."
        return f"Unknown command `{word[:40]}`. {hint}"

    async def _help(self, command: Command, rest: str) -> str:
        """Return the help of one subcommand, or of all that can be used where ``command`` was typed."""
        word, _ = first_word(rest)
        if word:
            subcommand = self._subcommands.get(word.lower())
            if subcommand is None:
                return self._explain_unknown(word.lower())
            return f"`/{self._name} {subcommand.usage}`: {subcommand.meaning}"
        usable = [
            subcommand
            for subcommand in self._subcommands.values()
            if command.in_conversation or not subcommand.needs_conversation
        ]
        if len(usable) > _MAX_HELP_LINES:
            how = f"`/{self._name} help WORD` says how to write one."
            words = ", ".join(subcommand.word for subcommand in usable)
            return f"/{self._name} and one of: {words}\n{how}"
        lines = [f"- `/{self._name} {subcommand.usage}`: {subcommand.meaning}" for subcommand in usable]
        return "\n".join(lines)
