"""Slash commands of the chats, typed in a shell, such as ``nod approvals`` and ``nod link``.

Each command passes its words to `run_slash_command`. That runs the same code as a command in a chat, with the
account of the person at this shell, and prints the reply with shell commands in place of slash commands.
"""

import asyncio
import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated

import typer

from bot.app.features import FEATURES
from bot.approvals.commands import Commands as SlashCommands
from bot.approvals.commands.subcommands import CommandParts
from bot.channels.kinds import channels_of
from bot.cli.command import command
from bot.cli.gate import open_presses
from bot.cli.shared import (
    Json,
    escape_for_terminal,
    get_shell_actor,
    load_settings,
    log_at,
    open_as_permitted,
    print_json,
)
from bot.domain.chat import Address, Answer, Command, Incoming, Press, Reply
from bot.domain.jobs import Job
from bot.domain.people import SHELL, Actor
from bot.domain.times import now
from bot.errors import NodError
from bot.settings import Settings
from bot.store.connections import get_connections
from bot.store.database import Database

app = typer.Typer()
# a slash command in a text: "/nod approve", "/approvals", but not a part of a path such as "docs/help"
_SLASH_PATTERN = re.compile(
    r"(?<![\w./])/(?:nod )?"
    r"(approvals|connections|memory|schedules|away|back|link|unlink|approve|decline|show|pending|help)\b"
)
# a reply with this mark says what to send from another chat, so its slash commands stay as they are
_OTHER_CHAT_MARK = "(Telegram: "


@command(app)
def approvals(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="WORDS", help="An admin command, as in the chats; try: help")
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Run an /approvals admin command.

    Such as: policy, approvers, grants, pause; nod approvals help lists them.
    """
    run_slash_command("approvals", " ".join(words or []), as_json=as_json)


@command(app)
def schedules(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD ID]", help="pause, resume, run or delete"),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """List schedules; pause, resume, run or delete one.

    An admin sees everyone's.
    """
    run_slash_command("nod", f"schedules {' '.join(words or [])}", as_json=as_json)


@command(app)
def connections(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD NAME]", help="connect, confirm or end"),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """List the accounts at other servers that Nod acts as for you; connect one, or end one.

    An admin sees everyone's, and never a token.
    """
    run_slash_command(
        "nod",
        f"connections {' '.join(words or [])}",
        as_json=as_json,
        explain_useless=_explain_no_connections,
    )


@command(app)
def memory(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD NUMBER]", help="forget, edit or export"),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """List what Nod remembers about you and the team; forget, edit or export it."""
    run_slash_command("nod", f"memory {' '.join(words or [])}", as_json=as_json)


@command(app)
def away(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="WHO until WHEN", help="Such as: slack:T1/U7 until monday.")
    ] = None,
) -> None:
    """Name who decides for you while you are away, 14 days at most; without words, say who is away."""
    run_slash_command("nod", f"away {' '.join(words or [])}")


@command(app)
def back(account: Annotated[str, typer.Argument(help="Someone else's account, for admins.")] = "") -> None:
    """Say that you are back; an admin ends anyone's absence."""
    run_slash_command("nod", f"back {account}")


@command(app)
def link(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="CODE", help="The code you got elsewhere; yes.")
    ] = None,
) -> None:
    """Link your account here with another of yours.

    Without a code: get one, for the other account.
    """
    run_slash_command("nod", f"link {' '.join(words or [])}")


@command(app)
def unlink(account: Annotated[str, typer.Argument(help="One of your accounts.")] = "") -> None:
    """Separate one of your linked accounts again.

    Without a name: the account of this shell.
    """
    run_slash_command("nod", f"unlink {account}")


def _explain_no_connections(database: Database) -> str:
    if get_connections(database) is not None:
        return ""
    return (
        "Nod acts as itself at every server, so there is no account to connect. "
        'An entry of mcpServers with "identity": "person" or "place" changes that: see docs/connections.md.'
    )


def run_slash_command(
    name: str,
    text: str,
    *,
    as_json: bool = False,
    explain_useless: Callable[[Database], str] | None = None,
) -> None:
    """Run a slash command of this shell's person, and print the reply. Exits with 1 unless it is accepted.

    ``explain_useless`` returns why the command can do nothing on this database, in words; empty if it can do
    something. Such a reason is printed as the reply, and the command does not run.
    """
    settings = load_settings()
    log_at("error")
    with open_as_permitted(settings) as database:
        person = get_shell_actor()
        command = Command(person, name, text, Address(SHELL, person.key))
        reason = explain_useless(database) if explain_useless else ""
        if reason:
            reply = Reply(Answer.ACCEPTED, reason)  # no error: the exit code is 0
        else:
            reply = asyncio.run(_answer_command(settings, database, command))
        if as_json:
            print_json({"answer": reply.answer, "text": reply.text, "rule": reply.rule})
        else:
            print(_write_for_shell(escape_for_terminal(reply.text)))
        if reply.answer is Answer.REFUSED:
            raise NodError(f"you act as {command.actor} here; an admin can add it to NOD_ADMINS")
        if reply.answer is not Answer.ACCEPTED:
            raise typer.Exit(1)


def _write_for_shell(text: str) -> str:
    """Replace slash commands in a reply by commands of the shell: "`/nod approve`" becomes "nod approve"."""
    text = text.replace("`", "")
    if _OTHER_CHAT_MARK in text:
        return text
    return _SLASH_PATTERN.sub(r"nod \1", text).replace("nod help", "nod --help")


async def _answer_command(settings: Settings, database: Database, command: Command) -> Reply:
    """Run a slash command with the parts that a shell has: no turns to stop, no jobs to wake."""

    async def stop_nothing(_address: Address, _actor: Actor, _requested_until: datetime | None) -> str:
        """Return no reply: no turn runs in this process."""
        return ""

    async def wake_nothing(*_: Job) -> None:
        """Do nothing: the running nod finds the work in the rows."""

    async def find_posting_fault(place: Address) -> str:
        """Return why no card can be posted at a place; empty if its channel finds no reason."""
        for kind in channels_of(settings):
            if kind.name != place.channel:
                continue
            for finding in await kind.check(settings, [place]):
                if finding.name == f"posting in {place}":  # the name that a channel's check gives it
                    return finding.fix
        return ""

    async with open_presses(settings, database) as presses:

        async def take_press(incoming: Incoming) -> Reply:
            if not isinstance(incoming, Press):
                raise TypeError("the shell only presses")
            return (await presses.handle_press(incoming)).reply

        gate = presses.gate
        parts = CommandParts(
            database=database,
            policies=gate.policies,
            registry=gate.registry,
            clock=now,
            handle_press=take_press,
            stop=stop_nothing,
            wake=wake_nothing,
            site_url=settings.site_url,
            prices=settings.prices(settings.model),
            models=[model.name for model in settings.list_answering_models()] or [settings.model],
            find_posting_fault=find_posting_fault,
            groups=gate.groups,
            connections=get_connections(database),
        )
        feature_commands = [feature.make_commands(settings, parts) for feature in FEATURES]
        return await SlashCommands(parts, feature_commands).handle(command)
