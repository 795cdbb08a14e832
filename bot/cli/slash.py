"""Slash commands of the chats, typed in a shell: ``nod approvals``, ``nod link``, ``nod unlink``."""

import asyncio
import re

import typer

from bot.app import FEATURES
from bot.approvals.commands import Commands as SlashCommands
from bot.approvals.commands.words import CommandParts
from bot.channels.kinds import channels_of
from bot.cli.deciding import presses_of
from bot.cli.shared import as_may_be, load_settings, log_at, operator, plain, print_json
from bot.domain.chat import Address, Answer, Command, Incoming, Press, Reply
from bot.domain.jobs import Job
from bot.domain.people import SHELL, Actor
from bot.domain.times import now
from bot.errors import NodError
from bot.settings import Settings
from bot.store.connections import get_connections
from bot.store.database import Database

_CHATTED = re.compile(
    r"(?<![\w./])/(?:nod )?"
    r"(approvals|connections|schedules|away|back|link|unlink|approve|decline|show|pending|help)\b"
)
_ELSEWHERE = "(Telegram: "  # stands behind what is to be sent from an account in a chat


def say(name: str, text: str, *, as_json: bool = False) -> None:
    """Say a slash command at this shell."""
    settings = load_settings()
    log_at("error")
    with as_may_be(settings) as database:
        command = Command(operator(), name, text, Address(SHELL, operator().key))
        reply = asyncio.run(_answer_command(settings, database, command))
        if as_json:
            print_json({"answer": reply.answer, "text": reply.text, "rule": reply.rule})
        else:
            print(_write_as_typed(plain(reply.text)))
        if reply.answer is Answer.REFUSED:
            raise NodError(f"you act as {command.actor} here; an admin can add it to NOD_ADMINS")
        if reply.answer is not Answer.ACCEPTED:
            raise typer.Exit(1)


def _write_as_typed(text: str) -> str:
    text = text.replace("`", "")
    if _ELSEWHERE in text:
        return text
    return _CHATTED.sub(r"nod \1", text).replace("nod help", "nod --help")


async def _answer_command(settings: Settings, database: Database, command: Command) -> Reply:
    async def stop(_: Address, __: Actor) -> str:
        return ""

    async def wake(*_: Job) -> None:
        """Do nothing: the running nod finds the work in the rows."""

    async def hindrance(place: Address) -> str:
        kinds = [kind for kind in channels_of(settings) if kind.name == place.channel]
        found = [each for kind in kinds for each in await kind.check(settings, [place])]
        return next((each.fix for each in found if each.name == f"posting in {place}"), "")

    async with presses_of(settings, database) as presses:

        async def press(incoming: Incoming) -> Reply:
            if not isinstance(incoming, Press):
                raise TypeError("the shell only presses")
            return (await presses.take(incoming)).reply

        gate = presses.gate
        parts = CommandParts(
            database,
            gate.policies,
            gate.registry,
            now,
            press,
            stop,
            wake,
            settings.site_url,
            settings.prices(settings.model),
            [each.name for each in settings.models()] or [settings.model],
            hindrance,
            gate.groups,
            connections=get_connections(database),
        )
        return await SlashCommands(parts, [each.make_commands(settings, parts) for each in FEATURES]).handle(
            command
        )
