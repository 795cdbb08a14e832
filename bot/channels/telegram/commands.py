"""Telegram's slash commands: the menus that people see in a chat, and the core's command for each entry.

People type ``/pending`` where the core's command is ``/approvals list``. `ENTRIES` is the table between the
two; `read_command` parses a message into a `TypedCommand`, which gives the core's `Command`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from telegram import (
    BotCommand,
    BotCommandScope,
    BotCommandScopeAllGroupChats,
    BotCommandScopeAllPrivateChats,
    BotCommandScopeChat,
    User,
)
from telegram.error import BadRequest, TelegramError
from telegram.ext import ExtBot

from bot.domain.chat import Address, Command
from bot.domain.people import Actor, Names
from bot.telemetry.logs import logger

log = logger(__name__)

_HELLO_TEXT = (
    "Hi, I'm Nod. Tell me what you need, in your own words. "
    "I look things up right away, and ask with buttons before I change anything."
)
_GROUPS_TEXT = "In a group, mention me or reply to me."
_START_COMMANDS = ("status", "pending", "new", "help")
"""The commands that `/start` names; the rest is in `/help`."""
_PROPOSAL_ID_PATTERN = re.compile(r"[0-9a-f]{8,64}")  # follows `/start` in a link to the bot


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """A command of the menu: what people type, and the core's command that it stands for.

    A decider is a person who may decide a proposal.
    """

    typed_name: str  # the name that people type in Telegram
    description: str
    core_command: str  # the name of the core's command
    core_words: str  # the beginning of that command's text; the words that a person adds follow
    in_groups: bool = True  # False if only private chats have it in their menu
    for_admins: bool = False  # True if only admins have it in their menu, in private chats
    for_deciders: bool = False  # True if only approvers and admins have it there; anyone may type it
    in_menu: bool = True  # False for a command that works, but is in no menu


ENTRIES = (
    MenuEntry("help", "What I am and what I understand", "nod", "help"),
    MenuEntry("new", "Start a new conversation here", "nod", "new"),
    MenuEntry("status", "What's waiting for you, and what you asked for", "nod", "status"),
    MenuEntry("team", "My teammates here, and their plans", "nod", "team"),
    MenuEntry("stop", "Stop the answer I'm writing", "stop", ""),
    MenuEntry("link", "Link this account with your account elsewhere", "nod", "link", in_groups=False),
    MenuEntry(
        "pending",
        "Everything waiting for a decision",
        "approvals",
        "list",
        in_groups=False,
        for_deciders=True,
    ),
    MenuEntry("show", "Show one proposal: /show ID", "approvals", "show", in_groups=False, for_deciders=True),
    MenuEntry(
        "approve", "Approve one: /approve ID", "approvals", "approve", in_groups=False, for_deciders=True
    ),
    MenuEntry(
        "decline",
        "Decline one: /decline ID reason",
        "approvals",
        "decline",
        in_groups=False,
        for_deciders=True,
    ),
    MenuEntry(
        "cancel", "Withdraw one: /cancel ID. Or stop answering", "approvals", "cancel", for_deciders=True
    ),
    MenuEntry("approvals", "Rules, grants, audit log: /approvals help", "approvals", "", for_admins=True),
    MenuEntry("nod", "The same commands, as they are called elsewhere", "nod", "", in_menu=False),
)
_BY_NAME = {entry.typed_name: entry for entry in ENTRIES} | {"start": ENTRIES[0]}
"""The entries by what people type. Telegram sends ``/start`` where a chat begins, which counts as help."""


@dataclass(frozen=True, slots=True)
class TypedCommand:
    """A typed command, ``/name@bot arguments``; ``bot`` is empty where none was named."""

    name: str
    bot: str
    arguments: str

    @property
    def is_known(self) -> bool:
        """True if Nod has a command of this name."""
        return self.name in _BY_NAME

    @property
    def is_confidential(self) -> bool:
        """True if the answer goes to the person's private chat. Raises KeyError for an unknown command.

        That is so for the commands of admins and deciders, and for those that are not in the menu of groups.
        The command ``cancel`` is in that menu, but for deciders, so it is confidential, too.
        """
        entry = _BY_NAME[self.name]
        return entry.for_admins or entry.for_deciders or not entry.in_groups

    def make_command(self, actor: Actor, address: Address, *, private: bool, names: Names) -> Command:
        """Return the core's command. Raises KeyError if this one is not known."""
        entry = _BY_NAME[self.name]
        arguments = "" if self.name == "start" else self.arguments
        words = f"{entry.core_words} {arguments}".strip()
        return Command(actor, entry.core_command, words, address, private, names=names)

    def rewrite_usage(self, usage: str) -> str:
        """Return the core's text on how to write the command, with Telegram's name for the command.

        Raises KeyError if the command is not known.
        """
        entry = _BY_NAME[self.name]
        if entry.core_words:
            return usage.replace(f"/{entry.core_command} {entry.core_words}", f"/{entry.typed_name}")
        return usage


def write_introduction(typed: TypedCommand, *, is_admin: bool, is_decider: bool, notice: str = "") -> str:
    """Return the answer to `/start` and `/help`, with the commands as they are typed here."""
    entries = list_menu(is_admin=is_admin, is_decider=is_decider)
    if typed.name == "start":
        by_name = {entry.typed_name: entry for entry in entries}
        entries = [by_name[name] for name in _START_COMMANDS if name in by_name]
    lines = [f"{_HELLO_TEXT} {_GROUPS_TEXT}"]
    if notice:
        lines.append(notice)
    lines.append("")
    lines += [f"/{entry.typed_name}: {entry.description}" for entry in entries]
    return "\n".join(lines)


def list_menu(*, is_admin: bool = False, is_decider: bool = False) -> list[MenuEntry]:
    """Return the menu entries for a person in a private chat, by their roles."""
    entries = []
    for entry in ENTRIES:
        is_theirs = (is_admin or not entry.for_admins) and (is_decider or not entry.for_deciders)
        if entry.in_menu and is_theirs:
            entries.append(entry)
    return entries


def make_proposal_link(me: User, proposal_id: str) -> str:
    """Return an address that opens a private chat with the bot, which shows the proposal there."""
    return f"https://t.me/{me.username}?start={proposal_id}"


def read_command(text: str) -> TypedCommand | None:
    """Parse a command; None for other text. A link to a proposal becomes the command that shows it."""
    if not text.startswith("/") or text[1:2].isspace():
        return None
    words = text[1:].split(maxsplit=1)
    if not words:
        return None
    name, _, bot = words[0].partition("@")
    if not name:
        return None
    arguments = words[1].strip() if len(words) > 1 else ""
    typed = TypedCommand(name.lower(), bot, arguments)
    if typed.name == "start" and _PROPOSAL_ID_PATTERN.fullmatch(arguments):
        return replace(typed, name="show")
    return typed


async def publish(bot: ExtBot[Any], admins: Sequence[int], approvers: Sequence[int]) -> None:
    """Set the menus that people see after a slash. A failure is only logged."""
    everyone = list_menu()
    menus: list[tuple[BotCommandScope, list[MenuEntry]]] = [
        (BotCommandScopeAllPrivateChats(), everyone),
        (BotCommandScopeAllGroupChats(), [entry for entry in everyone if entry.in_groups]),
    ]
    only_approvers = [approver for approver in approvers if approver not in admins]
    menus += [(BotCommandScopeChat(approver), list_menu(is_decider=True)) for approver in only_approvers]
    menus += [(BotCommandScopeChat(admin), list_menu(is_admin=True, is_decider=True)) for admin in admins]
    for scope, entries in menus:
        menu = [BotCommand(entry.typed_name, entry.description) for entry in entries]
        try:
            await bot.set_my_commands(menu, scope=scope)
        except BadRequest as error:  # such as for a person who has not written to the bot yet
            log.info("telegram commands not set", scope=scope.type, why=error.message)
        except TelegramError as error:
            log.warning("telegram commands not set", scope=scope.type, why=error.message)
