"""The workspaces with Nod: the installation, the token and the client of each.

An installation of Nod is for one workspace, or for an organisation with all its workspaces; "team" is the id
of either (``T1``, ``E1``). Nod's own installation is that of the bot token in the settings; the others are
rows that the install flow stored (``install.py``). `Workspaces` finds the installation of a request or an
address. What Slack knows of the people there is asked by ``people.py``, of user groups by ``user_groups.py``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiohttp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.authorization.async_authorize import AsyncAuthorize
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.channels.connecting import PlatformWaits
from bot.channels.slack.client import Client, make_client, sdk_logger
from bot.channels.slack.errors import DEAD_TOKEN_CODES, code_of, translate_errors
from bot.channels.slack.installations import find_bot, list_installation_ids
from bot.channels.slack.moved_chats import ChannelMoves
from bot.channels.slack.rows import end_installation, find_team_of_bot, find_workspace
from bot.domain.chat import Clock
from bot.errors import ChannelError, NotDeliverable
from bot.settings import Settings
from bot.store.database import Database


@dataclass(frozen=True, slots=True)
class Workspace:
    """A workspace that installed Nod, or an organisation that installed Nod for all its workspaces.

    ``team`` is the installation's id in addresses, accounts and rows: ``T…``; ``E…`` for an organisation.
    """

    team: str
    token: str
    bot_id: str
    bot_user: str
    enterprise: str = ""  # the organisation that installed Nod for all its workspaces; empty for a workspace

    def is_bot(self, bot: str, user: str) -> bool:
        """Tell if this is Nod's bot here, by the bot's id or, where Slack names none, by its account."""
        if bot:
            return bot == self.bot_id
        return user == self.bot_user


class Workspaces(AsyncAuthorize):
    """Finds the workspace of a request or an address; bolt uses it for authorization, too."""

    def __init__(self, settings: Settings, database: Database, clock: Clock) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._settings = settings
        self._database = database
        self._clock = clock
        self.waits = PlatformWaits("slack")
        self.moves = ChannelMoves(database, clock)
        self._own: Workspace | None = None  # the installation of the bot token in the settings
        self._is_own_refused = False  # True once Slack no longer accepts the token of the own installation
        self._clients: dict[str, Client] = {}
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Ask Slack which workspace or organisation the bot token is for.

        Raises NotDeliverable if Slack refuses the token, ChannelError if it gives no answer.
        """
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60))
        token = self._settings.slack_bot_token
        if token is None or self._own is not None:
            return
        client = make_client(self._settings, token.get_secret_value(), self._session)
        with translate_errors():
            response = await client.auth_test()
        organisation = organisation_of(response)
        self._own = Workspace(
            organisation or response["team_id"],
            token.get_secret_value(),
            response["bot_id"],
            response["user_id"],
            organisation,
        )

    @property
    def is_connecting(self) -> bool:
        """True if Slack has not yet said which workspace the bot token belongs to."""
        return self._own is None and self._settings.slack_bot_token is not None

    @property
    def is_refused(self) -> bool:
        """True if Slack no longer accepts the bot token of the settings."""
        return self._is_own_refused

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
        self._clients.clear()

    async def find(self, team: str | None) -> Workspace | None:
        """Return the installation of a team, or None if Nod is not or no longer installed there."""
        if team is None:
            return None
        if self._own is not None and self._own.team == team:
            return None if self._is_own_refused else self._own
        if self._settings.slack_client_id is None:
            return None
        row = await self._database.read(find_workspace, team)
        if row is None:
            return None
        organisation = team if team.startswith("E") else ""
        return Workspace(row.team, row.token, row.bot_id, row.bot_user, organisation)

    async def find_for_request(self, body: Mapping[str, Any]) -> Workspace | None:
        """Return the installation that a signed request is for, or None without one.

        It is that of the bot that posted the pressed message or view, if the request names the bot. Otherwise
        it is the first installation of a team that the request names. The bot counts more: a team may be the
        person's own workspace, with another installation of Nod.
        """
        candidates = []
        for team in list_installation_ids(body):
            workspace = await self.find(team)
            if workspace is not None:
                candidates.append(workspace)
        # the installation of the bot, among those that the request names and Nod's own
        bot, user = find_bot(body)
        own = await self.find(self._own.team) if self._own is not None else None
        for workspace in (*candidates, own):
            if workspace is not None and workspace.is_bot(bot, user):
                return workspace
        # or any other stored installation of the bot
        if bot and self._settings.slack_client_id is not None:
            workspace = await self.find(await self._database.read(find_team_of_bot, bot))
            if workspace is not None:
                return workspace
        return candidates[0] if candidates else None

    async def bot_user(self, team: str) -> str:
        """Return Nod's own account in a workspace; empty where Nod is not installed."""
        workspace = await self.find(team)
        if workspace:
            return workspace.bot_user
        return ""

    async def get_client(self, team: str) -> Client:
        """Return the client of a workspace.

        Raises NotDeliverable if Nod is not installed there, ChannelError if Slack has not been reached yet.
        """
        workspace = await self.find(team)
        if workspace is None and self.is_connecting:
            raise ChannelError("Slack has not been reached yet")
        if workspace is None:
            raise NotDeliverable(f"Nod is not installed in the Slack workspace {team}; install it there")
        client = self._clients.get(team)
        if client is None or client.token != workspace.token:
            client = make_client(self._settings, workspace.token, self._session)
            client.end_if_refused = partial(self._end_after_refusal, team)
            client.waits = self.waits
            client.team = team
            client.moves = self.moves
            self._clients[team] = client
        return client

    async def _end_after_refusal(self, team: str, code: str) -> bool:
        return await self.end_if_refused(team, f"Slack answered {code}")

    async def end_if_refused(self, team: str, why: str) -> bool:
        """Ask Slack whether the token of a team still works, and stop using the installation if it doesn't.

        Returns True if the token no longer works. Slack is asked because a refusal may be a mistake, and an
        event about an end may come after a new installation. Without an answer nothing changes. ``why``: the
        refusal or the event, for the log.
        """
        workspace = await self.find(team)
        if workspace is None:
            return True
        try:
            await make_client(self._settings, workspace.token, self._session).auth_test()
        except SlackApiError as error:
            if code_of(error) in DEAD_TOKEN_CODES:
                sdk_logger.error("Slack workspace %s is off (%s). Install the app there again.", team, why)
                await self._mark_off(workspace, why)
                return True
        except (aiohttp.ClientError, OSError) as error:
            sdk_logger.warning("Slack did not say whether a token works: %s", error)
        return False

    async def _mark_off(self, workspace: Workspace, reason: str) -> None:
        """Stop using an installation, unless it has a newer token."""
        if self._own is not None and self._own.team == workspace.team:
            self._is_own_refused = True
        await self._database.write(end_installation, workspace.team, workspace.token, reason, self._clock())
        self._clients.pop(workspace.team, None)

    async def __call__(
        self, *, enterprise_id: str | None, team_id: str | None, user_id: str | None, **_: Any
    ) -> AuthorizeResult:
        """Let bolt pass a signed request on without a token.

        Bolt gives too little of the request to find the installation; `find_for_request` finds it later.
        """
        return AuthorizeResult(enterprise_id=enterprise_id, team_id=team_id, user_id=user_id)


def organisation_of(response: AsyncSlackResponse) -> str:
    """Return the organisation that a token is for, by ``auth.test``; empty for a workspace's token."""
    if response.get("is_enterprise_install"):
        return str(response.get("enterprise_id") or "")
    return ""
