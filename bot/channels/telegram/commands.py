"""The commands people see, by scope, and what each means to the core."""

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

_HELLO = (
    "Hi, I'm Nod. Tell me what you need, in your own words. "
    "I look things up right away, and ask with buttons before I change anything."
)
_GROUPS = "In a group, mention me or reply to me."
_SHORTLY = ("status", "pending", "new", "help")
"""The commands that `/start` names; the rest is in `/help`."""
_ID = re.compile(r"[0-9a-f]{8,64}")  # what a link to the bot brings


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """A command of the menu. ``name`` and ``text`` are the core's own; what the person adds follows ``text``.

    What is for ``admins``, ``decides`` or is not for ``groups`` is answered in private wherever it was asked.
    """

    typed: str
    description: str
    name: str
    text: str
    groups: bool = True
    admins: bool = False
    decides: bool = False  # for those who may; listed for approvers and admins
    listed: bool = True


ENTRIES = (
    MenuEntry("help", "What I am and what I understand", "nod", "help"),
    MenuEntry("new", "Start a new conversation here", "nod", "new"),
    MenuEntry("status", "What's waiting for you, and what you asked for", "nod", "status"),
    MenuEntry("team", "My teammates here, and their plans", "nod", "team"),
    MenuEntry("stop", "Stop the answer I'm writing", "stop", ""),
    MenuEntry("link", "Link this account with your account elsewhere", "nod", "link", groups=False),
    MenuEntry(
        "pending", "Everything waiting for a decision", "approvals", "list", groups=False, decides=True
    ),
    MenuEntry("show", "Show one proposal: /show ID", "approvals", "show", groups=False, decides=True),
    MenuEntry("approve", "Approve one: /approve ID", "approvals", "approve", groups=False, decides=True),
    MenuEntry(
        "decline", "Decline one: /decline ID reason", "approvals", "decline", groups=False, decides=True
    ),
    MenuEntry("cancel", "Withdraw one: /cancel ID. Or stop answering", "approvals", "cancel", decides=True),
    MenuEntry("approvals", "Rules, grants, audit log: /approvals help", "approvals", "", admins=True),
    MenuEntry("nod", "The same commands, as they are called elsewhere", "nod", "", listed=False),
)
_BY_NAME = {e.typed: e for e in ENTRIES} | {"start": ENTRIES[0]}


@dataclass(frozen=True, slots=True)
class Typed:
    """A typed command, ``/name@bot arguments``; ``bot`` is empty where none was named."""

    name: str
    bot: str
    arguments: str

    @property
    def known(self) -> bool:
        return self.name in _BY_NAME

    @property
    def confidential(self) -> bool:
        """True if every answer is for no one but who asked; raises KeyError when it is not `known`."""
        entry = _BY_NAME[self.name]
        return entry.admins or entry.decides or not entry.groups

    def command(self, actor: Actor, address: Address, *, private: bool, names: Names) -> Command:
        """Say it in the core's words; raises KeyError for a command that is not `known`."""
        entry = _BY_NAME[self.name]
        arguments = "" if self.name == "start" else self.arguments
        words = f"{entry.text} {arguments}".strip()
        return Command(actor, entry.name, words, address, private, names=names)

    def as_typed(self, usage: str) -> str:
        """Return the core's words on how to write the command, with its name here.

        Raises KeyError as `command`.
        """
        entry = _BY_NAME[self.name]
        if entry.text:
            return usage.replace(f"/{entry.name} {entry.text}", f"/{entry.typed}")
        return usage


def introduction(typed: Typed, *, admin: bool, decides: bool, notice: str = "") -> str:
    """Return the answer to `/start` and `/help`, with the commands as they are typed here."""
    entries = list_menu(admin=admin, decides=decides)
    if typed.name == "start":
        entries = [e for name in _SHORTLY for e in entries if e.typed == name]
    head = [f"{_HELLO} {_GROUPS}", *([notice] if notice else [])]
    return "\n".join([*head, "", *(f"/{e.typed}: {e.description}" for e in entries)])


def list_menu(*, admin: bool = False, decides: bool = False) -> list[MenuEntry]:
    """Return the menu entries for a person by their roles."""
    return [e for e in ENTRIES if e.listed and (admin or not e.admins) and (decides or not e.decides)]


def link_to(me: User, proposal_id: str) -> str:
    """Return an address that opens a private chat with the bot, which shows the proposal there."""
    return f"https://t.me/{me.username}?start={proposal_id}"


def read_command(text: str) -> Typed | None:
    """Parse a command; None for other text. A link to a proposal becomes the command that shows it."""
    if not text.startswith("/"):
        return None
    head, *rest = text[1:].split(maxsplit=1)[:2] or [""]
    name, _, bot = head.partition("@")
    typed = Typed(name.lower(), bot, rest[0].strip() if rest else "")
    if typed.name == "start" and _ID.fullmatch(typed.arguments):
        typed = replace(typed, name="show")
    return typed if name else None


async def publish(bot: ExtBot[Any], admins: Sequence[int], approvers: Sequence[int]) -> None:
    """Set the lists people see after a slash; one that cannot be set is no reason not to start."""
    everyone, decides = list_menu(), [each for each in approvers if each not in admins]
    lists: list[tuple[BotCommandScope, list[MenuEntry]]] = [
        (BotCommandScopeAllPrivateChats(), everyone),
        (BotCommandScopeAllGroupChats(), [e for e in everyone if e.groups]),
        *((BotCommandScopeChat(each), list_menu(decides=True)) for each in decides),
        *((BotCommandScopeChat(each), list_menu(admin=True, decides=True)) for each in admins),
    ]
    for scope, entries in lists:
        try:
            await bot.set_my_commands([BotCommand(e.typed, e.description) for e in entries], scope=scope)
        except BadRequest as error:  # one who has not written to the bot yet
            log.info("telegram commands not set", scope=scope.type, why=error.message)
        except TelegramError as error:
            log.warning("telegram commands not set", scope=scope.type, why=error.message)
