"""The commands people see, by scope, and what each means to the core."""

from dataclasses import dataclass
from typing import Any

from telegram import (
    BotCommand,
    BotCommandScope,
    BotCommandScopeAllGroupChats,
    BotCommandScopeAllPrivateChats,
    BotCommandScopeChat,
)
from telegram.error import BadRequest, TelegramError
from telegram.ext import ExtBot

from bot.domain.chat import Address, Command
from bot.domain.people import Actor
from bot.telemetry import logger

_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Entry:
    """``name`` and ``text`` are the core's own command; what the person adds follows ``text``.

    What is for ``admins``, or not for ``groups``, is answered in private wherever it was asked.
    """

    typed: str
    description: str
    name: str
    text: str
    groups: bool = True
    admins: bool = False
    listed: bool = True


ENTRIES = (
    Entry("help", "What Nod is and how to work with it", "nod", "help"),
    Entry("new", "Start a new conversation here", "nod", "new"),
    Entry("status", "What Nod is doing here", "nod", "status"),
    Entry("team", "My teammates here, their plans and how they stand", "nod", "team"),
    Entry("stop", "Stop the answer that is being written", "stop", ""),
    Entry("link", "Link this account with your account elsewhere", "nod", "link", groups=False),
    Entry("pending", "What waits for a decision", "approvals", "list", groups=False, admins=True),
    Entry("show", "Show one proposal: /show ID", "approvals", "show", groups=False, admins=True),
    Entry("approve", "Approve one: /approve ID", "approvals", "approve", groups=False, admins=True),
    Entry("decline", "Decline one: /decline ID reason", "approvals", "decline", groups=False, admins=True),
    Entry("cancel", "Take one back: /cancel ID, or stop answering", "approvals", "cancel", admins=True),
    Entry("approvals", "Rules, grants, the record: /approvals help", "approvals", "", admins=True),
    Entry("nod", "The same commands, as they are called elsewhere", "nod", "", listed=False),
)
_BY_NAME = {e.typed: e for e in ENTRIES} | {"start": ENTRIES[0]}


@dataclass(frozen=True, slots=True)
class Typed:
    """``/name@bot arguments`` taken apart; ``bot`` is empty where none was named."""

    name: str
    bot: str
    arguments: str

    @property
    def known(self) -> bool:
        return self.name in _BY_NAME

    @property
    def confidential(self) -> bool:
        """Whether the answer is for nobody but who asked; raises KeyError when it is not `known`."""
        entry = _BY_NAME[self.name]
        links = entry.typed == "nod" and self.arguments.lower().startswith("link")
        return entry.admins or links or not entry.groups

    def command(self, actor: Actor, address: Address, *, private: bool) -> Command:
        """Say it in the core's words; raises KeyError for a command that is not `known`."""
        entry = _BY_NAME[self.name]
        arguments = "" if self.name == "start" else self.arguments
        return Command(actor, entry.name, f"{entry.text} {arguments}".strip(), address, private)


def read(text: str) -> Typed | None:
    """None when the text is no command."""
    if not text.startswith("/"):
        return None
    head, *rest = text[1:].split(maxsplit=1)[:2] or [""]
    name, _, bot = head.partition("@")
    return Typed(name.lower(), bot, rest[0].strip() if rest else "") if name else None


async def publish(bot: ExtBot[Any], admins: list[int]) -> None:
    """Set the lists people see after a slash; one that cannot be set is no reason not to start."""
    listed = [e for e in ENTRIES if e.listed]
    everyone = [e for e in listed if not e.admins]
    lists: list[tuple[BotCommandScope, list[Entry]]] = [
        (BotCommandScopeAllPrivateChats(), everyone),
        (BotCommandScopeAllGroupChats(), [e for e in everyone if e.groups]),
        *((BotCommandScopeChat(admin), listed) for admin in admins),
    ]
    for scope, entries in lists:
        try:
            await bot.set_my_commands([BotCommand(e.typed, e.description) for e in entries], scope=scope)
        except BadRequest as error:  # an admin who has not written to the bot yet
            _log.info("telegram commands not set", scope=scope.type, reason=error.message)
        except TelegramError as error:
            _log.warning("telegram commands not set", scope=scope.type, reason=error.message)
