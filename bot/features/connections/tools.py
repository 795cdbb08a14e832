"""The tool `connect`, with which the model sends a person the link for a missing connection.

The conversation then waits: once the person has connected the account, the model continues with the request
(`waiting.py`).
"""

from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import Field
from sqlmodel import Session

from bot.domain.chat import LinkButton
from bot.domain.connections import Identity
from bot.domain.people import Actor
from bot.errors import SignInError, ToolError
from bot.features.connections.port import AccountConnections
from bot.features.connections.sign_in.connecting import ConnectFlow
from bot.features.connections.sign_in.waiting import keep_waiting
from bot.store import conversations, people, state
from bot.store.notices import store_private_notice
from bot.tools.call import CallContext
from bot.tools.decorator import tool
from bot.tools.signature import STORABLE
from bot.tools.toolset import FixedToolset

GROUP = "connections"
_STATE_NAMESPACE = "connect"  # of ``bot/store/state.py``: the links that were sent, by server and account
_LINK_PAUSE = timedelta(hours=1)
_LINK_LABEL = "Connect your account at {server}"
_LINK_TEXT = (
    "Then I act as you at {server} when you ask. "
    "The page works once, for 10 minutes, for you alone. `/nod connections connect {server}` gives a new one."
)
_SENT_TEXT = "They have the link in their private chat with Nod."
_SENT_BEFORE_TEXT = "They were sent a link within the last hour. Tell them to use it: you are woken then."
_CONSOLE_TEXT = "Tell them to open the page Connections of the console, and to connect there."


def make_connection_toolset(port: AccountConnections) -> FixedToolset:
    """Return a toolset with only the tool `connect`."""
    flow = ConnectFlow(port)

    @tool(writes=False, group=GROUP, summary="Send a link to connect an account at {server}")
    async def connect(
        server: Annotated[str, Field(min_length=1, max_length=40), STORABLE], context: CallContext
    ) -> dict[str, Any]:
        """Send the person who asks a private link to connect their own account at a server.

        Use it where you are told that they have none there and what they ask for needs it. It sends the link
        and nothing else, at most once an hour. End your answer then: you are woken once they are connected.

        Args:
            server: the server's name, as you were told it

        """
        now = port.clock()
        actor = await port.database.read(_load_actor, context)
        config = port.servers.get(server)
        if config is None or config.identity is not Identity.PERSON:
            raise ToolError("People connect no account of their own there.")
        await port.database.write(keep_waiting, server, actor, context.conversation_id, now)
        if not await port.database.write(_claim_link, f"{server} {actor}", now):
            return {"sent": False, "why": _SENT_BEFORE_TEXT}
        try:
            url = await flow.make_link(server, actor)
        except SignInError as error:
            raise ToolError(error.message) from None
        link = LinkButton(_LINK_LABEL.format(server=server), url)
        text_for_person = _LINK_TEXT.format(server=server)
        sent = await port.database.write(store_private_notice, actor, text_for_person, now, link)
        return {"sent": sent, "told": _SENT_TEXT if sent else _CONSOLE_TEXT}

    return FixedToolset(GROUP, (connect,))


def _load_actor(session: Session, context: CallContext) -> Actor:
    """Return the account of the person who asks, with its name. Raises ToolError without a conversation."""
    if conversations.get_conversation(session, context.conversation_id) is None:
        raise ToolError("That conversation is gone.")
    account = context.requested_by
    name = people.find_known_names(session, [account]).get(account, "")
    return Actor.parse(account, name)


def _claim_link(session: Session, key: str, now: datetime) -> bool:
    """Claim the one link of this hour. Return False if a link was sent already."""
    # delete the claims of links that were sent over an hour ago
    state.forget_states(session, _STATE_NAMESPACE, now - _LINK_PAUSE)
    if state.load_state(session, _STATE_NAMESPACE, key) is not None:
        return False
    state.store_state(session, _STATE_NAMESPACE, key, {}, now)
    return True
