"""App Homes kept current: everybody who opened theirs sees every change, at most a moment later."""

import asyncio
import json

import aiohttp
from slack_sdk.errors import SlackClientError

from bot.channels.slack import home
from bot.channels.slack.places import actor_of
from bot.store.slack import homes, remember_home
from bot.channels.slack.workspaces import Workspaces
from bot.domain.chat import Clock, Desk
from bot.errors import ChannelError
from bot.store.database import Database
from bot.telemetry import logger

log = logger(__name__)

_CALM = 0.5  # seconds; changes within them are shown together


class Homes:
    def __init__(self, workspaces: Workspaces, database: Database, desk: Desk, clock: Clock) -> None:
        self._workspaces = workspaces
        self._database = database
        self._desk = desk
        self._clock = clock
        self._shown: dict[tuple[str, str], int] = {}
        self._pending: dict[str, asyncio.Task[None]] = {}

    async def opened(self, team: str, user: str) -> None:
        """Show a person's home and keep it current from now on."""
        await self._database.write(remember_home, team, user, self._clock())
        self._shown.pop((team, user), None)
        await self._publish(team, user)

    def changed(self, team: str) -> None:
        """Something in this workspace changed: refresh its homes soon."""
        if team not in self._pending:
            self._pending[team] = asyncio.create_task(self._refresh(team))

    async def close(self) -> None:
        for task in self._pending.values():
            task.cancel()
        await asyncio.gather(*self._pending.values(), return_exceptions=True)
        self._pending.clear()

    async def _refresh(self, team: str) -> None:
        await asyncio.sleep(_CALM)
        self._pending.pop(team, None)
        try:
            for user in await self._database.read(homes, team):
                await self._publish(team, user)
        except Exception:
            log.exception("homes were not refreshed", team=team)

    async def _publish(self, team: str, user: str) -> None:
        view = home.view(await self._desk.overview(actor_of(team, user)))
        mark = hash(json.dumps(view, sort_keys=True))
        if self._shown.get((team, user)) == mark:
            return
        try:
            client = await self._workspaces.client(team)
            await client.views_publish(user_id=user, view=view)
        except (SlackClientError, aiohttp.ClientError, OSError, ChannelError) as error:
            log.warning("an App Home was not published", team=team, why=str(error))
            return
        self._shown[team, user] = mark
