"""The command ``/nod connections``, which lists, connects and ends accounts at other servers.

A connection is an account in whose name Nod makes calls at a server. A person has connections of their own. A
chat may have some as well: an admin connects and ends them there.

``connect`` gives a link to a page. After the sign-in at the server, the page shows a number of six digits;
``confirm`` takes this number, so that Nod knows whose browser it is. ``end``, or ``disconnect``, ends a
connection. In the list, an account *rests* while it is not used for a reason (`resting.py`).
"""

from sqlmodel import Session

from bot.approvals.commands.subcommands import (
    CommandError,
    CommandParts,
    CommandReply,
    Subcommand,
    first_word,
)
from bot.domain.chat import Answer, Command, LinkButton
from bot.domain.connections import Identity
from bot.domain.text import SHORT_ID_CHARS, escape_markdown
from bot.errors import SignInError
from bot.features.connections import ending
from bot.features.connections.port import AccountConnections
from bot.features.connections.rows import ListedConnection
from bot.features.connections.sign_in.connecting import ConnectFlow, find_chat

_EVERYWHERE = "everywhere"
_LINK_LABEL = "Connect your account at {server}"
_LINK_TEXT = "The page works once, for 10 minutes, for you alone. Don't show it to anyone."


class ConnectionCommands:
    """The command, whose ``subcommands`` become a part of ``/nod``."""

    def __init__(self, parts: CommandParts, port: AccountConnections) -> None:
        self._database, self._policies, self._clock = parts.database, parts.policies, parts.clock
        self._wake, self._port = parts.wake, port
        self._flow = ConnectFlow(port)
        self.subcommands = [
            Subcommand(
                "connections [connect NAME, confirm NUMBER, end NAME or ID, or end everywhere]",
                "the accounts at other servers that I act as for you; admins see everyone's",
                self._connections,
                is_private=True,
                synonyms=("connect", "accounts", "disconnect"),  # ``/nod connect`` suggests this command
            )
        ]

    async def _connections(self, command: Command, text: str) -> str | CommandReply:
        """Do what ``text`` says; an empty text lists the connections."""
        word, rest = first_word(text)
        match word.lower():
            case "":
                return await self._database.read(self._list, command)
            case "connect" if rest:
                return await self._connect(command, first_word(rest)[0])
            case "confirm" if rest:
                return await self._confirm(command, rest)
            case "end" | "disconnect" if rest:
                return await self._end(command, first_word(rest)[0])
            case _:
                raise CommandError("Say what to do, such as `connect github`.")

    async def _connect(self, command: Command, server: str) -> str | CommandReply:
        try:
            url = await self._flow.make_link(server, command.actor, command.address)
        except SignInError as error:
            return CommandReply(error.message, answer=Answer.REFUSED)
        link = LinkButton(_LINK_LABEL.format(server=server), url)
        return CommandReply(f"{link.markdown}\n{_LINK_TEXT}", link=link)

    async def _confirm(self, command: Command, digits: str) -> str | CommandReply:
        try:
            connected = await self._flow.confirm(command.actor, "".join(digits.split()))
        except SignInError as error:
            return CommandReply(error.message, answer=Answer.STALE)
        await self._wake(*connected.jobs)
        return ending.describe_connected(connected.connection)

    async def _end(self, command: Command, server_or_id: str) -> str | CommandReply:
        """End the person's connections at a server; without any, that of this chat at the server.

        If the chat has no connection there either, end the one whose id begins with this text.
        """
        now = self._clock()
        if server_or_id.lower() == _EVERYWHERE:
            ended = await self._database.write(ending.end_everywhere, command.actor, now)
            return escape_markdown(ending.describe_ended(ended))
        ended = await self._database.write(ending.end_connections_at_server, server_or_id, command.actor, now)
        chat = find_chat(command.address)
        if not ended and chat is not None:
            ended = await self._database.write(
                ending.end_connection_of_chat, self._policies, server_or_id, chat, command.actor, now
            )
        if not ended:
            one = await self._database.write(ending.end_one, self._policies, server_or_id, command.actor, now)
            ended = [one] if one is not None else []
        if not ended:
            return CommandReply(f"You have no connection {server_or_id[:40]}.", answer=Answer.UNKNOWN)
        return escape_markdown(ending.describe_ended(ended))

    def _list(self, session: Session, command: Command) -> str:
        visible = ending.list_visible(session, self._policies, command.actor, self._clock())
        lines = [_describe(each) for each in visible.listed]
        # the servers at which this person could connect an account of their own
        connections = [listed.connection for listed in visible.listed]
        connected = {each.server for each in connections if each.owner in visible.accounts}
        missing = [
            name
            for name, config in self._port.servers.items()
            if config.identity is Identity.PERSON and name not in connected
        ]
        lines += [f"- {name}: not connected. `/nod connections connect {name}`" for name in missing]
        # the person's sign-ins that wait for their six digits
        lines += [
            f"- {sign_in.server}: signed in as {escape_markdown(sign_in.name or 'an account')}, waits for "
            "`/nod connections confirm NUMBER`"
            for sign_in in visible.waiting_sign_ins
        ]
        return "\n".join(lines) or "No account is connected."


def _describe(listed: ListedConnection) -> str:
    """Return a line such as ``- `1a2b3c4d` As Ana at github (octocat), last used 01 Dec 2026``."""
    connection = listed.connection
    used = f", last used {listed.last_used_at:%d %b %Y}" if listed.last_used_at else ""
    remark = ""
    if listed.rest:
        remark = f", **rests: {listed.rest}**"
    elif connection.is_expired:
        remark = ", **expired: connect it again**"
    return f"- `{connection.id[:SHORT_ID_CHARS]}` {escape_markdown(connection.acts_as)}{used}{remark}"
