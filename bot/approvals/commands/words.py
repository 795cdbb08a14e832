"""The subcommands of a slash command, with help and a suggestion for a wrong word.

`CommandParts` is what all commands work over.
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

_NOT_HERE = (
    "Here, each thread is its own conversation. Write outside a thread to start a new one. "
    "To stop me, use the stop button in the thread."
)
_FEW = 15  # words, each with a line of its own in a list of them
QUOTES = "`'\"\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a"


@dataclass(frozen=True, slots=True)
class CommandParts:
    """The dependencies of slash commands.

    ``inbox`` takes presses. ``stop`` stops the work at an address, or only what had begun by a time, and
    describes it; empty when nothing ran.
    ``site_url`` returns the address of the console, if there is one. ``hindrance`` returns why Nod can't post
    at an address, in the platform's words; empty where it can. ``models`` are the names of the configured
    models, the default first. ``workspace`` returns the instructions of the workspace's owner; it blocks.
    ``standing`` and ``has_account`` ask the channels, where they run. ``connections``: the accounts that
    people connected; None where no one set that up.
    """

    database: Database
    policies: Policies
    registry: Registry
    clock: Clock
    inbox: Inbox
    stop: Callable[[Address, Actor, datetime | None], Awaitable[str]]
    wake: Wake
    site_url: Callable[[], str]
    prices: Prices
    models: Sequence[str]
    hindrance: Callable[[Address], Awaitable[str]]
    groups: Groups
    workspace: Callable[[], str] | None = None
    standing: Callable[[Actor, Address], Awaitable[Membership | None]] | None = None
    has_account: Callable[[Actor], Awaitable[bool]] | None = None
    connections: Connections | None = None


@dataclass(frozen=True, slots=True)
class CommandReply:
    """An answer with the proposals it is about, whose cards a channel may show, and how it was taken.

    ``rule`` is the id of the rule that was set. ``link``: as in `Reply`.
    """

    text: str
    proposals: tuple[Proposal, ...] = ()
    answer: Answer = Answer.ACCEPTED
    rule: int | None = None
    link: LinkButton | None = None


Do = Callable[[Command, str], Awaitable[str | CommandReply]]


class CommandError(NodError):
    """A command was mistyped; the message says how to write it."""


@dataclass(frozen=True, slots=True)
class Subcommand:
    """A subcommand: its usage, its meaning, and its handler, which gets the text after the word.

    ``usage`` begins with the word. ``here`` says that it is about the conversation it is typed in,
    ``is_private`` that its answer tells what may be from other chats.
    """

    usage: str
    meaning: str
    do: Do
    here: bool = False
    is_private: bool = False
    also: tuple[str, ...] = ()  # what people type who mean this word

    @property
    def word(self) -> str:
        return self.usage.split()[0].strip(",")


@dataclass(frozen=True, slots=True)
class CommandSet:
    """The subcommands of a feature: of ``/nod``, of ``/approvals`` for everyone, and for admins.

    ``everywhere`` says that those for admins concern every workspace, so an admin of one may not use them.
    """

    nod: Sequence[Subcommand] = ()
    approvals: Sequence[Subcommand] = ()
    admins: Sequence[Subcommand] = ()
    everywhere: bool = True


def remove_quotes(word: str) -> str:
    """Remove the quotation marks and unseen characters that phones and copying put around a word."""
    return make_visible(word, lambda _: "").strip(QUOTES)


def first_word(text: str) -> tuple[str, str]:
    """Return the first word, and what follows it; any white space ends a word."""
    word, *rest = text.split(maxsplit=1) or [""]
    return remove_quotes(word), "".join(rest).strip()


class Words:
    """The subcommands of ``/<name>``. ``help`` is always one of them."""

    def __init__(self, name: str, words: Sequence[Subcommand]) -> None:
        self._name = name
        every = [Subcommand("help [WORD]", "this list, or one of its commands", self._help), *words]
        self._words = {each.word: each for each in every}

    async def answer(self, command: Command) -> Reply:
        """Do what the words say. An unknown word changes nothing and gets one line, with the near word."""
        name, rest = first_word(command.text)
        word = self._words.get(name.lower() or "help")
        if word is None:
            return Reply(Answer.INVALID, self._unknown(name))
        if word.here and not command.in_conversation:
            return Reply(Answer.INVALID, _NOT_HERE)
        try:
            said = await word.do(command, rest)
        except CommandError as error:
            text = f"{error.message}\nUsage: `/{self._name} {word.usage}`"
            return Reply(Answer.INVALID, text, is_private=word.is_private)
        told = said if isinstance(said, CommandReply) else CommandReply(said)
        return Reply(
            told.answer,
            told.text,
            told.proposals,
            rule=told.rule,
            is_private=word.is_private,
            link=told.link,
        )

    def _unknown(self, name: str) -> str:
        meant = [each for each, word in self._words.items() if name.lower() in word.also]
        near = meant or difflib.get_close_matches(name.lower(), self._words, 1)
        if near:
            hint = f"Did you mean `/{self._name} {self._words[near[0]].usage}`?"
        else:
            hint = f"`/{self._name} help` lists them all."
        return f"Unknown command `{name[:40]}`. {hint}"

    async def _help(self, command: Command, rest: str) -> str:
        """Return the help of one word, or of all that can be used where ``command`` was typed."""
        name = first_word(rest)[0].lower()
        if name:
            one = self._words.get(name)
            if one:
                return f"`/{self._name} {one.usage}`: {one.meaning}"
            return self._unknown(name)
        usable = {each: w for each, w in self._words.items() if command.in_conversation or not w.here}
        if len(usable) > _FEW:
            how = f"`/{self._name} help WORD` says how to write one."
            return f"/{self._name} and one of: {', '.join(usable)}\n{how}"
        return "\n".join(f"- `/{self._name} {w.usage}`: {w.meaning}" for w in usable.values())
